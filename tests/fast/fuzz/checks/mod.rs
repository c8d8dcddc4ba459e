//! Properties that hold for any input of a parser, shared by the fuzz targets and `tests/fast/fuzz.rs`.
//!
//! A check panics if its parser violates one. Parsers of text get only valid UTF-8.

mod config;
mod kernel;
mod ramdisk;

use logic::device::algorithm::Algorithm;
use logic::device::{signature, swap_header};
use logic::ended;
use logic::expr::{Expr, Variables, size_in_bytes};
use logic::log::{Context, put_field};
use logic::unit_name;

/// A check.
type Check = fn(&[u8]);

/// Every check by name, which is that of the fuzz target and of its directory of seeds.
pub const ALL: [(&str, Check); 14] = [
    ("algorithm", algorithm),
    ("block_device", block_device),
    ("cmdline", config::cmdline),
    ("config", config::config),
    ("ramdisk_frames", ramdisk::frames),
    ("ramdisk_manifest", ramdisk::manifest),
    ("ramdisk_tree", ramdisk::tree),
    ("expr", expr),
    ("journal", journal),
    ("kernel_files", kernel::files),
    ("log_context", log_context),
    ("overlay", config::overlay),
    ("record", kernel::record),
    ("unit_path", unit_path),
];

/// Runs the check of this name.
pub fn run(name: &str, data: &[u8]) {
    let known = ALL.iter().find(|(known, _)| *known == name);
    let (_, check) = known.unwrap_or_else(|| panic!("there is no check `{name}`"));
    check(data);
}

fn expr(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let expr = match Expr::parse(text) {
        Ok(expr) => expr,
        Err(error) => {
            assert!(error.start <= error.end && error.start <= text.len(), "{error:?}");
            assert!(!error.message.is_empty());
            return;
        }
    };
    for (ram_mib, swap_mib, cpus) in [(0.0, 0.0, 1.0), (7825.0, 100.0, 4.0), (67_108_864.0, 1.0, 4096.0)] {
        let machine = Variables { ram_mib, swap_mib, cpus };
        let Ok(value) = expr.evaluate(&machine) else { continue };
        assert!(value.is_finite(), "{text} is {value}");
        if let Ok(bytes) = size_in_bytes(value) {
            assert!(value >= 0.0 && bytes < 1 << 63, "{value} MiB are {bytes} bytes");
            assert!((value * 1_048_576.0 - bytes as f64).abs() < 1.0 || bytes > 1 << 52, "{value}: {bytes}");
        }
    }
}

fn algorithm(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    match Algorithm::parse(text) {
        Ok(algorithm) => {
            assert_eq!(Algorithm::parse(&algorithm.to_string()), Ok(algorithm.clone()));
            // Parameters become one line of words for the kernel.
            let words = algorithm.parameters.iter().flat_map(|(key, value)| [key, value]);
            for word in words.chain([&algorithm.name]) {
                assert!(!word.is_empty() && !word.contains([' ', '\n', '\0']), "{algorithm:?}");
            }
        }
        Err(error) => assert!(!error.message.is_empty()),
    }
}

/// Few notes of one line each, whatever others wrote to the journal.
fn journal(data: &[u8]) {
    let found = ended::findings(Some(&ended::Log::parse(data)), Some(1), "", |usec| usec.to_string());
    assert!((1..=4).contains(&found.len()), "{found:?}");
    for found in found {
        let line = found.one_line();
        assert!(!line.contains(char::is_control) && line.len() < 8192, "{line}");
    }
}

/// What another program passes on becomes fields of the journal, each of them one field.
fn log_context(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let context = Context::parse(text);
    assert_eq!(Context::parse(&context.json()), context);
    for (name, value) in &context.fields {
        let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(name.starts_with("ZRAMD_") && name.bytes().all(is_name) && name.len() <= 64, "{name:?}");
        assert!(value.len() <= 256, "{value:?}");
        let mut entry = Vec::new();
        put_field(&mut entry, name, value);
        assert_eq!(one_field(&entry), Some((name.as_bytes(), value.as_bytes())));
    }
}

/// Name and value of an entry with one field, as the journal reads it (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>).
fn one_field(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = entry.iter().position(|byte| matches!(byte, b'=' | b'\n'))?;
    let (name, rest) = (&entry[..end], &entry[end + 1..]);
    let (length, rest) = match entry[end] {
        b'=' => (rest.iter().position(|byte| *byte == b'\n')?, rest),
        _ => {
            let (length, rest) = rest.split_first_chunk()?;
            (usize::try_from(u64::from_le_bytes(*length)).ok()?, rest)
        }
    };
    let (value, after) = rest.split_at_checked(length)?;
    (after == b"\n").then_some((name, value))
}

/// The first bytes of a disk; also used as parameters of a swap header.
fn block_device(data: &[u8]) {
    let found = signature::find(data);
    let mut longer = data.to_vec();
    longer.resize(data.len().max(signature::PROBE_BYTES), 0);
    assert!(
        found.is_none() || signature::find(&longer).is_some(),
        "found in the beginning, but not in all of it"
    );

    let Some((head, label)) = data.split_at_checked(25) else { return };
    let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap());
    let size = number(0) >> (head[24] & 63);
    let page_size = 4096_usize << (head[24] % 5);
    let uuid: [u8; 16] = head[8..24].try_into().unwrap();
    let Ok(label) = str::from_utf8(label) else { return };
    match swap_header::build(size, page_size, uuid, label) {
        Err(swap_header::HeaderError::TooSmall) => assert!(size / page_size as u64 <= 9),
        Err(swap_header::HeaderError::LabelTooLong) => assert!(label.len() > 15),
        Ok(page) => {
            assert_eq!(page.len(), page_size);
            assert_eq!(signature::find(&page), Some("swap area"));
            let last = u32::from_ne_bytes(page[1028..1032].try_into().unwrap());
            assert!(u64::from(last) < size / page_size as u64, "it ends within the device");
            assert_eq!(&page[1052..1052 + label.len()], label.as_bytes());
            assert_eq!(page[1052 + label.len()], 0);
        }
    }
}

fn unit_path(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let path = format!("/{}", parts.join("/"));
    let name = unit_name::escape_path(&path);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-:_.\\".contains(c);
    assert!(!name.starts_with('.') && name.chars().all(plain), "{name}");
    assert_eq!(unescaped(&name), path.as_bytes(), "{name}");
}

/// As `systemd-escape --unescape --path`.
fn unescaped(name: &str) -> Vec<u8> {
    let mut out = vec![b'/'];
    let mut rest = if name == "-" { "" } else { name };
    while let Some(letter) = rest.chars().next() {
        let escaped = rest.strip_prefix("\\x").and_then(|digits| digits.get(..2));
        let length = match escaped {
            Some(digits) => {
                out.push(u8::from_str_radix(digits, 16).unwrap());
                4
            }
            None => {
                out.push(if letter == '-' { b'/' } else { u8::try_from(letter).unwrap() });
                1
            }
        };
        rest = &rest[length..];
    }
    out
}
