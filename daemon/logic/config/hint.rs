//! What was probably meant: by a value that is not accepted, an unknown key, a key outside of a section.

use super::key::{Key, Type};
use super::keys::device as keys;
use super::pasted;
use super::schema::{POLICIES, SectionKind};
use super::value::Value;
use crate::device::algorithm::Algorithm;
use crate::expr::Expr;
use crate::origin::Origin;
use crate::overlay::{list as toml_list, quoted};
use crate::text::nearest;
use crate::unit_name::{escape_path, normalised};

/// Most names in a message.
const MOST_NAMES: usize = 20;

/// `write NAME = VALUE` with a value that was probably meant and that the parser of the key accepts. `written` is a text that it does
/// not accept, or what the line has instead of a value.
pub(super) fn correction(kind: SectionKind, key: &Key, name: &str, written: &str) -> Option<String> {
    let before_comment = written.split(['#', ';']).next()?;
    let meant = |written: &str| {
        let text = written.replace(['"', '“', '”', '„', '‘', '’', '«', '»'], "");
        let text = text.trim().trim_matches('\'');
        if matches!(key.kind, Type::Algorithms | Type::Secondary) {
            return algorithms(kind, key, text);
        }
        let value = match key.kind {
            Type::Size { .. } if !key.kind.words().contains(&text) => Value::String(Expr::mended(text)?),
            Type::Options => Value::String(options(text.trim_matches(['[', ']']))),
            Type::Words if text.starts_with('[') => list(text.split(',')),
            Type::Command if text.contains([',', ' ']) => list(text.split([',', ' '])),
            _ => Value::String(text.to_owned()),
        };
        let as_it_is = Some(&value).filter(|value| !text.is_empty() && is_accepted(key, value));
        as_it_is.and_then(|value| value.toml().ok()).or_else(|| key.kind.meant(&value))
    };
    let value = [before_comment, written].into_iter().find_map(meant)?;
    Some(format!("write {name} = {value}"))
}

/// Whether the parser of the key accepts a value, apart from what depends on other keys and the machine.
fn is_accepted(key: &Key, value: &Value) -> bool {
    let text = match value {
        Value::String(text) => text,
        Value::Array(items) => match items.first() {
            Some((Value::String(text), _)) => text,
            _ => return false,
        },
        _ => return key.kind.accepts(value),
    };
    let is_good = match key.kind {
        Type::Path => path(key, text).is_ok(),
        Type::Command => text.starts_with('/'),
        _ => key.name != keys::FS_TYPE.name || wrong_fs_type(text).is_none(),
    };
    is_good && key.kind.accepts(value)
}

/// A list of texts.
fn list<'a>(items: impl Iterator<Item = &'a str>) -> Value {
    let items = items.map(|item| item.trim().trim_matches(['[', ']'])).filter(|item| !item.is_empty());
    Value::Array(items.map(|item| (Value::String(item.to_owned()), Origin::default())).collect())
}

/// Options with commas between them.
pub(super) fn options(text: &str) -> String {
    let options = text.split(',').map(str::trim).filter(|option| !option.is_empty());
    let options: Vec<String> =
        options.map(|option| with_commas(option).unwrap_or_else(|| option.to_owned())).collect();
    options.join(",")
}

/// A list of algorithms. What reads as zram-generator's is the first algorithm and those for recompression: `zstd lz4 (type=huge)`.
fn algorithms(kind: SectionKind, key: &Key, text: &str) -> Option<String> {
    let text = text.trim_matches(['[', ']']);
    let (mut depth, mut commas) = (0, false);
    let words = text.split(|letter: char| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        commas |= depth == 0 && letter == ',';
        depth == 0 && (letter == ',' || letter.is_whitespace())
    });
    let words: Vec<String> = words.map(str::to_owned).filter(|word| !word.is_empty()).collect();
    let quoted_list = |words: &[String]| match words {
        [word] => quoted(word),
        _ => toml_list(words),
    };
    let is_good = |word: &String| key.kind.words().contains(&word.as_str()) || Algorithm::parse(word).is_ok();
    if words.is_empty() || !words.iter().all(|word| is_good(word) || word.starts_with('(')) {
        return None;
    }
    let is_list = commas || words.len() == 1 || !text.contains('(') || key.kind == Type::Secondary;
    if is_list && words.iter().all(is_good) {
        return Some(quoted_list(&words));
    }
    let pasted::Algorithms { primary, secondary, .. } = pasted::parse(text);
    let primary = primary?;
    if key.kind == Type::Secondary {
        return Some(quoted_list(&[vec![primary], secondary].concat()));
    }
    let other = kind.key(keys::RECOMPRESSION_ALGORITHM.name).filter(|_| !secondary.is_empty());
    let more = other.map(|other| {
        format!(", {} = {}, and in [maintenance] recompress = true", other.name, quoted_list(&secondary))
    });
    Some(quoted(&primary) + &more.unwrap_or_default())
}

/// The key of which this is a wrong spelling.
pub(super) fn misspelt(name: &str, kind: SectionKind) -> Option<&'static str> {
    if kind.key(name).is_some() {
        return None;
    }
    let foreign = foreign_spelling(name).find(|meant| kind.key(meant).is_some());
    foreign.or_else(|| nearest(name, kind.keys().iter().map(|key| key.name)))
}

/// What was probably meant by a key that the section does not have. Keys in `table` (with its dot) are written without it.
pub(super) fn meant_key(name: &str, table: &str, kind: SectionKind) -> String {
    let (policy, last) = name.rsplit_once('.').map_or(("", name), |(policy, last)| (policy, last));
    if let Some(meant) = nearest(name, POLICIES.into_iter()).filter(|_| kind == SectionKind::Maintenance) {
        return format!("did you mean `{meant}`?");
    }
    let near = |kind: SectionKind| {
        let names = kind.keys().iter().filter_map(|key| match policy {
            "" => Some(key.name),
            policy => key.name.strip_prefix(policy)?.strip_prefix('.'),
        });
        (nearest(last, names.clone()), names)
    };
    let (similar, mut names) = near(kind);
    let foreign = || foreign_spelling(last).find(|meant| kind.key(meant).is_some());
    let before = name[..name.len() - last.len()].trim_start_matches(table);
    let of_policy = |found: &str| format!("{before}{found}");
    if let Some(meant) = foreign().or(similar) {
        return format!("did you mean `{}`?", of_policy(meant));
    }
    if last.eq_ignore_ascii_case("percent") {
        return "write a size with a percent sign, such as \"50%\"".to_owned();
    }
    if let Some(home) = homes(name) {
        return format!(
            "it belongs in {home}{}",
            if home == "[vm]" && name != "tune" { ", with tune = true" } else { "" }
        );
    }
    let parts: Vec<String> = of_policies(name).map(|key| format!("`{key}`")).collect();
    if kind == SectionKind::Maintenance && !parts.is_empty() {
        return format!("did you mean {}?", parts.join(" or "));
    }
    let begins_a_word = |known: &&str| name.len() > 2 && format!("-{known}").contains(&format!("-{last}"));
    if let Some(meant) = names.find(begins_a_word) {
        return format!("did you mean `{}`?", of_policy(meant));
    }
    if !parts.is_empty() {
        return format!("it belongs in [maintenance], as {}", parts.join(" or "));
    }
    let elsewhere = KINDS.into_iter().find_map(|kind| near(kind).0);
    match elsewhere.and_then(|meant| Some((meant, homes(meant)?))) {
        Some((meant, home)) => format!("did you mean `{meant}`? it belongs in {home}"),
        None => "zramd.toml(5) lists all keys".to_owned(),
    }
}

/// All kinds of sections; the keys of `[defaults]` are those of devices.
const KINDS: [SectionKind; 6] = [
    SectionKind::Device,
    SectionKind::Ramdisk,
    SectionKind::Benchmark,
    SectionKind::Vm,
    SectionKind::Zswap,
    SectionKind::Maintenance,
];

fn has(kind: SectionKind, name: &str) -> bool {
    kind.key(name).is_some() || (kind == SectionKind::Maintenance && POLICIES.contains(&name))
}

/// The headers of the sections to which a key belongs.
fn homes(name: &str) -> Option<String> {
    let homes: Vec<&str> =
        KINDS.into_iter().filter(|kind| has(*kind, name)).map(SectionKind::header).collect();
    (!homes.is_empty()).then(|| homes.join(" or "))
}

/// Keys of the policies in `[maintenance]` that end with this name.
fn of_policies(name: &str) -> impl Iterator<Item = &'static str> {
    let keys = SectionKind::Maintenance.keys().iter().map(|key| key.name);
    keys.filter(move |key| key.rsplit_once('.').is_some_and(|(_, last)| last == name))
}

/// Where to put keys that stand outside of a section: below one header, if a section can have them all.
pub(super) fn sections_for(names: &[&str]) -> String {
    let header = |kind: SectionKind| if kind == SectionKind::Device { "[zram0]" } else { kind.header() };
    let it = if names.len() == 1 { "it" } else { "them" };
    if let Some(kind) = KINDS.into_iter().find(|kind| names.iter().all(|name| has(*kind, name))) {
        let such_as =
            if matches!(kind, SectionKind::Device | SectionKind::Ramdisk) { "a header such as " } else { "" };
        return format!("put {it} below {such_as}{}", header(kind));
    }
    let is_upper = |name: &&str| name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
    if names.iter().all(is_upper) {
        let has = |any: &[&str]| names.iter().any(|name| any.contains(name));
        let program = if has(&["PATH_DISK", "USE_RSYNC", "ZL2R", "COMP_ALG", "LOG_DISK_SIZE"]) {
            "log2ram"
        } else if has(&["PORTION", "MAX_SIZE"]) {
            "pop-zram"
        } else {
            "zram-tools"
        };
        return format!("`zramdctl import {program} FILE` translates a file of {program}");
    }
    let mut places: Vec<(SectionKind, Vec<&str>)> = Vec::new();
    for name in names {
        let has_it =
            |kind: &SectionKind| has(*kind, name) || foreign_spelling(name).any(|meant| has(*kind, meant));
        let Some(kind) = KINDS.into_iter().find(has_it) else { continue };
        match places.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, names)) => names.push(name),
            None => places.push((kind, vec![name])),
        }
    }
    let places: Vec<String> =
        places.iter().map(|(kind, names)| format!("{} below {}", listed(names), header(*kind))).collect();
    if places.is_empty() {
        let headers = SectionKind::ALL.map(SectionKind::header).join(", ");
        return format!("put {it} below one of the headers {headers}");
    }
    format!("put {}", places.join(", "))
}

/// `` `a`, `b` and `c` ``
pub(super) fn listed(names: &[&str]) -> String {
    let rest = names.len().saturating_sub(MOST_NAMES);
    let mut names: Vec<String> = names.iter().take(MOST_NAMES).map(|name| format!("`{name}`")).collect();
    if rest > 0 {
        names.push(format!("{rest} more"));
    }
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Names in zramd for a key of zram-generator, zram-tools, fstab, systemd units, or another kind of section.
fn foreign_spelling(key: &str) -> impl Iterator<Item = &'static str> {
    const SPELLINGS: [(&[&str], &str); 13] = [
        (
            &[
                "mem-limit",
                "mem_limit",
                "memory-limit",
                "memory_limit",
                "resident-limit",
                "limit",
                "size-limit",
            ],
            "zram-resident-limit",
        ),
        (&["max-size", "max_size"], "max-zram-size"),
        (&["where", "mountpoint", "mount_point", "path"], "mount-point"),
        (&["type", "fstype", "fs_type"], "fs-type"),
        (&["comp-algorithm", "comp_algorithm"], "compression-algorithm"),
        (&["recomp_algorithm"], "recompression-algorithm"),
        (&["backing-dev", "backing_dev"], "writeback-device"),
        (&["user"], "owner"),
        (&["disksize", "disk-size", "size"], "zram-size"),
        (&["disksize", "disk-size", "zram-size"], "size"),
        (&["persistence"], "persist"),
        (&["interval", "save-every"], "save-interval"),
        (&["nr-inodes", "nr_inodes"], "inodes"),
    ];
    let lower = key.to_ascii_lowercase();
    SPELLINGS
        .into_iter()
        .filter(move |(written, _)| written.contains(&lower.as_str()))
        .map(|(_, meant)| meant)
}

/// The section that was probably meant.
pub(super) fn meant_section(name: &str) -> String {
    let lower = name.trim().trim_matches('"').to_ascii_lowercase();
    let lower = lower.trim_start_matches("/dev/");
    if let Some(rest) = lower.strip_prefix("zram") {
        let digits = rest.trim_start_matches(['+', ' ', '-', '_', '.']);
        return match digits.parse::<u32>() {
            Ok(number) => format!("write [zram{number}]"),
            Err(_) if digits.is_empty() => "write [zram0]".to_owned(),
            Err(_) => "device sections are named [zram0], [zram1] and so on".to_owned(),
        };
    }
    if POLICIES.contains(&lower) {
        return format!("write [maintenance.{lower}]");
    }
    match lower {
        "swap" => return "write [zram0]".to_owned(),
        "tmpfs" => return "write [ramdisk.NAME]".to_owned(),
        _ => {}
    }
    if let Some((_, disk)) = lower
        .split_once([' ', '.', '-', '_'])
        .filter(|(kind, disk)| ["ramdisk", "tmpfs"].contains(kind) && !disk.trim().is_empty())
    {
        let is_name =
            |name: &&str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
        let name = Some(disk.trim()).filter(is_name).unwrap_or("NAME");
        return format!("write [ramdisk.{name}]");
    }
    let names = SectionKind::ALL.map(|kind| kind.header().trim_matches(['[', ']']).trim_end_matches(".NAME"));
    let begun = |name: &str| lower.len() > 2 && name.starts_with(lower);
    match nearest(lower, names.into_iter()).or_else(|| names.into_iter().find(|name| begun(name))) {
        Some("ramdisk") => "write [ramdisk.NAME]".to_owned(),
        Some("zramN") => "write [zram0]".to_owned(),
        Some(meant) => format!("write [{meant}]"),
        None => format!("sections are {}", SectionKind::ALL.map(SectionKind::header).join(", ")),
    }
}

/// The path, normalised; or why a text is not one, and what to write.
pub(super) fn path(key: &Key, text: &str) -> Result<String, (String, String)> {
    if ["swap", "none"].contains(&text) {
        // As in fstab.
        let hint = "leave this key out".to_owned();
        return Err((format!("`{text}` is not an absolute path"), hint));
    }
    if !text.starts_with('/') {
        let device = if key.name.ends_with("device") { device_path(text) } else { None };
        let slash = device.unwrap_or_else(|| format!("/{text}"));
        let is_meant =
            text.starts_with(|c: char| c.is_alphanumeric() || c == '_') && path(key, &slash).is_ok();
        let hint = if is_meant {
            format!("write {}", quoted(&slash))
        } else {
            "write the whole path, from / on".to_owned()
        };
        return Err((format!("`{text}` is not an absolute path"), hint));
    }
    let Some(path) = normalised(text) else {
        return Err((format!("`{text}` contains `..`"), "write the path without it".to_owned()));
    };
    let too_long = escape_path(&path).len() > LONGEST_UNIT;
    match unfit_for_unit(&path).or(too_long.then_some("is too long for the name of a systemd unit")) {
        Some(why) => Err((format!("the path {why}"), "use another one".to_owned())),
        None => Ok(path),
    }
}

/// The path of a device that is written as in fstab, or by its name.
fn device_path(text: &str) -> Option<String> {
    if let Some((tag, value)) = text.split_once('=') {
        // udev writes blanks and the like in another form there.
        let is_plain = value.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.\"".contains(letter));
        let is_tag = is_plain && ["UUID", "LABEL", "PARTUUID", "PARTLABEL"].contains(&tag);
        return is_tag
            .then(|| format!("/dev/disk/by-{}/{}", tag.to_ascii_lowercase(), value.trim_matches('"')));
    }
    let is_disk =
        ["sd", "vd", "xvd", "nvme", "mmcblk", "loop", "dm-"].iter().any(|kind| text.starts_with(kind));
    (is_disk && !text.contains('/')).then(|| format!("/dev/{text}"))
}

/// The longest escaped path for which the file name `*.device.d` is not too long.
const LONGEST_UNIT: usize = 255 - ".device.d".len();

/// Why this text cannot be at the end of a line of a unit file: it cannot be escaped (systemd.syntax(7)).
pub(super) fn unfit_for_unit(text: &str) -> Option<&'static str> {
    if text.contains(char::is_control) {
        Some("has a control character in it")
    } else if text.ends_with('\\') {
        Some("ends with a backslash")
    } else if text.ends_with(' ') {
        Some("ends with a blank")
    } else {
        None
    }
}

/// Why a text is not the type of a file system on a device, and what to write.
pub(super) fn wrong_fs_type(name: &str) -> Option<(String, String)> {
    let lower = name.to_ascii_lowercase();
    if lower == "tmpfs" || lower == "ramfs" {
        let hint = "write a section [ramdisk.NAME] with mount-point and size instead";
        return Some((format!("{lower} is in memory, not on a device"), hint.to_owned()));
    }
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    (name.is_empty() || !name.chars().all(is_plain))
        .then(|| (format!("`{name}` is no file system type"), format!("did you mean \"{lower}\"?")))
}

/// Several options that are separated by blanks or semicolons, with commas instead; `None` for a single one, whose value may have them.
pub fn with_commas(option: &str) -> Option<String> {
    const BETWEEN: [char; 2] = [' ', ';'];
    let name = option.split('=').next()?.trim();
    // As on the command line of mount.
    let words = option.split(BETWEEN).filter(|word| !word.is_empty() && *word != "-o");
    name.contains(BETWEEN).then(|| words.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_without_quotation_marks_becomes_text_or_a_list() {
        let meant = |key: &Key, text| correction(SectionKind::Device, key, key.name, text);
        for (key, text, meant_by_it) in [
            (&keys::MKFS_OPTIONS, "[-N, 5]", "mkfs-options = [\"-N\", \"5\"]"),
            (&keys::MKFS_OPTIONS, "-N 5", "mkfs-options = \"-N 5\""),
            (&keys::FS_TYPE, "my-fs_2", "fs-type = \"my-fs_2\""),
            (
                &keys::COMPRESSION_ALGORITHM,
                "zstd(level=3, dict=/d), lz4",
                "compression-algorithm = [\"zstd(level=3, dict=/d)\", \"lz4\"]",
            ),
        ] {
            assert_eq!(meant(key, text), Some(format!("write {meant_by_it}")), "{text}");
        }
        for nothing in ["lz4 zst", ","] {
            assert_eq!(meant(&keys::COMPRESSION_ALGORITHM, nothing), None, "{nothing}");
        }
    }

    #[test]
    fn three_letters_are_the_beginning_of_a_name_and_two_are_not() {
        let key = |name| meant_key(name, "", SectionKind::Device);
        assert_eq!(key("alg"), "did you mean `compression-algorithm`?");
        assert_eq!(key("fs"), "zramd.toml(5) lists all keys");
        assert_eq!(meant_section("ben"), "write [benchmark]");
        assert!(meant_section("be").starts_with("sections are [defaults], [zramN], "));
    }

    #[test]
    fn the_number_or_name_in_a_wrong_header_is_kept() {
        for (name, header) in [
            ("zram", "[zram0]"),
            ("zram 1", "[zram1]"),
            ("ramdisk web-1", "[ramdisk.web-1]"),
            ("tmpfs.web_1", "[ramdisk.NAME]"),
            ("ramdisk-", "[ramdisk.NAME]"),
        ] {
            assert_eq!(meant_section(name), format!("write {header}"), "{name}");
        }
    }

    #[test]
    fn of_many_names_twenty_are_listed() {
        let names = ["a"; 22];
        assert!(!listed(&names[..20]).contains("more"));
        assert!(listed(&names).ends_with("`a`, `a` and 2 more"));
    }

    #[test]
    fn a_device_is_named_by_its_tag_or_its_name_in_dev() {
        let path = |text| device_path(text).unwrap_or_default();
        assert_eq!(path("PARTLABEL=\"swap\""), "/dev/disk/by-partlabel/swap");
        assert_eq!(path("nvme0n1p3"), "/dev/nvme0n1p3");
        for other in ["TYPE=swap", "LABEL=my swap", "swap", "sda/3"] {
            assert_eq!(device_path(other), None, "{other}");
        }
    }
}
