//! Imports against the acceptance cases of zram-generator and of the other programs: what was written, what zramd makes
//! of it, and what was said about it. With ZRAM_GENERATOR=PROGRAM (1.2 or later), also against zram-generator itself.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::format_collect)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use zramd::logic::config;
use zramd::logic::facts::Facts;
use zramd::logic::import::files::{Content, Found, order};
use zramd::logic::import::{Imported, Peer, import};
use zramd::logic::plan::{self, Activation, Choice, Decision, DeviceRequest, Purpose, Request};
use zramd::logic::proc::Memory;

/// What zram-generator itself makes of the same files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Original {
    /// The same devices with the same sizes and limits.
    Same,
    /// Something else, on purpose, for this reason.
    Differs(&'static str),
}
use Original::{Differs, Same};

const REFUSES: Original = Differs("it refuses the whole configuration");

/// Case, MemTotal in KiB, kernel command line, devices.
type Row = (&'static str, u64, &'static str, Original, &'static [&'static str]);

/// The acceptance cases. `F` are from zram-generator's own fixtures, `P` from probes of it.
const ROWS: &[Row] = &[
    ("F01", 801_322, "", Same, &["zram0 409993216 swap 100 discard auto"]),
    ("F02", 801_322, "", Same, &["zram0 614989824 swap 100 discard zstd,auto limit=10484711424"]),
    ("F03", 8_013_220, "", Same, &[]),
    ("F04", 801_322, "", Same, &["zram0 409993216 swap 100 discard auto", "zram2 655989145 swap 200  auto"]),
    ("P01", 8_013_220, "systemd.zram=0", Same, &[]),
    ("F06", 8_013_220, "a\nsystemd.zram\nb", Same, &["zram0 4102553600 swap 100 discard auto"]),
    (
        "F07",
        801_322,
        "",
        Same,
        &[
            "zram11 409993216 ext4 /var/compressed discard auto",
            "zram12 409993216 ext4 /var/folded discard,casefold auto",
            "zram13 409993216 ext4 /foo/bar/baz discard auto",
            "zram15 409993216 ext4 / discard auto",
        ],
    ),
    ("F07a", 801_322, "", Same, &["zram14 409993216 ext4 /.żupan-ci3pły discard auto"]),
    ("F08", 801_322, "", Same, &["zram11 409993216 ext2 auto"]),
    ("F09", 801_322, "", Same, &["zram0 614989824 swap 100 discard zstd(dict=/etc/gaming, level=9),auto"]),
    (
        "F10",
        801_322,
        "",
        Differs("its program is not there"),
        &[
            "zram0 81998643 swap 100  lzo-rle,auto limit=6442450944 then=zstd(level=3) wb=/dev/zvol/tank/swap-writeback",
            "zram1 81998643 ext2 /run/compressed-mount-point discard auto",
        ],
    ),
    (
        "F10-program",
        801_322,
        "",
        Differs("its program is not there"),
        &["zram0 81998643 swap 100 discard auto"],
    ),
    (
        "F11",
        801_322,
        "",
        Same,
        &["zram0 81788928 swap 100 discard auto", "zram1 81788928 swap 100 discard auto"],
    ),
    ("P01", 1_048_576, "", Same, &["zram0 536870912 swap 100 discard auto"]),
    ("P01", 16_384_000, "", Same, &["zram0 4294967296 swap 100 discard auto"]),
    ("P03", 16_384_000, "", Same, &["zram0 8589934592 swap 100 discard auto"]),
    ("P03", 4_028_000, "", Same, &["zram0 4124049408 swap 100 discard auto"]),
    ("P05", 32_768_000, "", Same, &["zram0 16777216000 swap 100 discard zstd,auto"]),
    ("P07", 5_120_000, "", Same, &["zram0 524288000000 swap 100 discard auto"]),
    ("P08", 8_013_220, "", Same, &["zram0 524288 swap 100 discard auto", "zram1 1 swap 100 discard auto"]),
    (
        "P09",
        8_013_220,
        "",
        REFUSES,
        &[
            "zram0 4096 swap 100 discard auto",
            "zram1 2147483648 swap 100 discard auto",
            "zram2 4102553600 swap 100 discard auto",
            "zram3 4102553600 swap 100 discard auto",
            "zram4 285032508 swap 100 discard auto",
            "zram5 4102553600 swap 100 discard auto",
            "zram6 4102553600 swap 100 discard auto",
            "zram9 1025638400 swap 100 discard auto",
        ],
    ),
    (
        "P12",
        16_384_000,
        "",
        Same,
        &[
            "zram0 16777216000 swap 100 discard auto",
            "zram1 1048576000 swap 100 discard auto",
            "zram2 8388608000 swap 100 discard auto",
            "zram3 4194304000 swap 100 discard auto",
        ],
    ),
    (
        "P14",
        8_012_800,
        "",
        REFUSES,
        &["zram0 4102553600 swap 100 discard auto", "zram2 4102553600 swap 100 discard auto"],
    ),
    ("P15", 8_013_220, "", Same, &["zram0 4102553600 swap 100 discard auto"]),
    (
        "P16",
        1_048_576,
        "",
        REFUSES,
        &[
            "zram0 536870912 swap -1 discard auto",
            "zram1 536870912 swap 0 discard auto",
            "zram2 536870912 swap 32767 discard auto",
            "zram3 536870912 swap 100 discard auto",
            "zram4 536870912 swap 100 discard auto",
        ],
    ),
    ("P18", 1_048_576, "", Same, &["zram0 536870912 swap 100 discard auto"]),
    (
        "P20",
        8_013_220,
        "",
        Same,
        &[
            "zram0 4102553600 swap 100 discard auto limit=2051276800",
            "zram1 4102553600 ext4 /var/cache/build discard auto limit=2051276800",
            "zram2 4102553600 swap 100 discard auto limit=2097152000000000",
        ],
    ),
    (
        "P21",
        1_048_576,
        "",
        Same,
        &["zram0 536870912 swap 100 discard auto wb=/dev/disk/by-partuuid/2d54ffa0-01"],
    ),
    ("P22", 1_048_576, "", REFUSES, &["zram0 536870912 swap 100 discard auto"]),
    ("P23", 1_048_576, "", Same, &["zram0 536870912 ext2 /var/my cache discard auto"]),
    ("P24", 1_048_576, "", Same, &["zram0 536870912 ext2 /var/100%full discard auto"]),
    (
        "P25",
        1_048_576,
        "",
        Differs("it makes units that never work"),
        &["zram1 536870912 swap 100 discard auto"],
    ),
    (
        "P26",
        1_048_576,
        "",
        Differs("it waits for devices that cannot be"),
        &["zram1 536870912 swap 100 discard auto", "zram2 134217728 swap 100 discard auto"],
    ),
    ("P01", 1_048_576, "systemd.zram=0 systemd.zram", Same, &["zram0 536870912 swap 100 discard auto"]),
    ("P01", 1_048_576, "systemd.zram=1 systemd.zram=no", Same, &[]),
    ("P01", 1_048_576, "systemd.zram=0 systemd.zram=maybe", Same, &[]),
    ("P01", 1_048_576, "systemd.zram=Yes", Same, &["zram0 536870912 swap 100 discard auto"]),
    (
        "P31",
        8_013_220,
        "systemd.zram=1",
        Same,
        &["zram0 4102553600 swap 100 discard auto", "zram1 4102553600 swap 100 discard auto"],
    ),
    ("P32", 8_013_220, "systemd.zram=1", Same, &[]),
    ("P33", 1_048_576, "", Same, &["zram0 536870912 swap 100 discard auto"]),
    ("P33-run", 1_048_576, "", Same, &["zram0 536870912 swap 100 discard auto"]),
    ("P34", 1_048_576, "", Same, &[]),
    ("P34-null", 1_048_576, "", Same, &[]),
    ("P35", 1_048_576, "", Same, &["zram0 536870912 swap 100 discard auto"]),
    ("P36", 1_048_576, "", Same, &["zram0 268435456 swap 7 discard auto"]),
    ("P38", 1_048_576, "", Same, &["zram0 536870912 swap 100 discard auto"]),
    ("P39", 1_048_576, "", Same, &["zram0 536870912 swap 100 discard auto"]),
    ("P39-link", 1_048_576, "", Same, &["zram0 268435456 swap 100 discard auto"]),
    ("P42", 1_048_576, "", REFUSES, &[]),
    (
        "P43",
        8_013_220,
        "",
        Same,
        &[
            "zram0 2051276800 swap 100 discard auto",
            "zram1 2051276800 swap 100 discard auto",
            "zram2 2051276800 swap 100 discard auto",
        ],
    ),
    (
        "comments",
        1_048_576,
        "",
        REFUSES,
        &[
            "zram0 536870912 swap 50 discard zstd,auto",
            "zram1 536870912 ext2 /var/scratch discard,nosuid # not a comment auto",
        ],
    ),
    (
        "stray",
        1_048_576,
        "",
        Differs("it loses a section without a word"),
        &["zram0 268435456 swap 100 discard auto", "zram1 134217728 swap 100 discard auto"],
    ),
    ("twice", 1_048_576, "", Same, &["zram0 134217728 swap 100 discard auto"]),
    (
        "units",
        1_048_576,
        "",
        REFUSES,
        &[
            "zram0 34359738368 swap 100 discard auto",
            "zram1 1073741824 swap 100 discard auto",
            "zram2 805306368 swap 100 discard auto",
            "zram3 536870912 swap 100 discard auto",
        ],
    ),
    (
        "parameters",
        1_048_576,
        "",
        Same,
        &[
            "zram0 536870912 swap 100 discard zstd(level=3, dict=/etc/zram.dict),auto then=lz4(level=2)",
            "zram1 536870912 swap 100 discard auto then=lz4",
            "zram2 536870912 swap 100 discard lz4,auto then=zstd,lzo,lzo-rle",
        ],
    ),
];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/import")
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The links of a case, which git and packages should not carry: path and target.
fn links(case: &Path) -> Vec<(String, String)> {
    let split = |line: &String| line.split_once(" -> ").map(|(a, b)| (a.to_owned(), b.to_owned()));
    lines(&case.join("links")).iter().filter_map(split).collect()
}

/// What is at an absolute path in a case.
fn found(case: &Path, root: usize, path: &str) -> Option<Found> {
    let relative = path.trim_start_matches('/');
    let content = if let Some((_, target)) = links(case).into_iter().find(|(link, _)| link == relative) {
        let text = match target.as_str() {
            "/dev/null" | "../../../dev/null" => Some(String::new()),
            "/gone" => None,
            _ => Some("another file".to_owned()),
        };
        Content::Link { target, text }
    } else {
        Content::Text(fs::read_to_string(case.join(relative)).ok()?)
    };
    Some(Found { root, path: path.into(), content })
}

fn imported(name: &str) -> Imported {
    let case = fixtures().join(name);
    let peer =
        lines(&case.join("peer")).first().map_or(Peer::ZramGenerator, |name| Peer::parse(name).unwrap());
    let sources = peer.sources();
    let mains = sources.mains.iter().enumerate().filter_map(|(root, path)| found(&case, root, path));
    let mut drop_ins = Vec::new();
    for (root, folder) in sources.drop_ins.iter().enumerate() {
        let entries = fs::read_dir(case.join(folder.trim_start_matches('/'))).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let linked = links(&case).into_iter().filter_map(|(link, _)| {
            link.strip_prefix(&format!("{}/", folder.trim_start_matches('/'))).map(str::to_owned)
        });
        drop_ins
            .extend(names.chain(linked).filter_map(|name| found(&case, root, &format!("{folder}/{name}"))));
    }
    let (files, warnings) = order(peer, mains.collect(), drop_ins);
    let values: Vec<(String, String)> = lines(&case.join("values"))
        .iter()
        .map(|line| line.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap())
        .collect();
    let mut imported = import(peer, &files, &values);
    imported.warnings.splice(0..0, warnings);
    imported
}

fn text(imported: &Imported) -> String {
    let mut out = String::new();
    for warning in &imported.warnings {
        let line = warning.line.map_or(String::new(), |line| format!(":{line}"));
        writeln!(out, "{}{line}: {}", warning.file.display(), warning.text).unwrap();
    }
    out.push('\n');
    for row in &imported.table {
        writeln!(out, "{} | {} | {}", row.was, row.is, row.note).unwrap();
    }
    out
}

fn golden(path: &Path, found: &str) {
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, found).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, expected, "{} is not current; UPDATE_GOLDEN=1 writes it anew", path.display());
}

/// One line for a device.
fn describe(request: &DeviceRequest) -> String {
    let mut out = format!("zram{} {}", request.number, request.disk_size);
    match &request.purpose {
        Purpose::Swap { priority, options } => write!(out, " swap {priority} {options}").unwrap(),
        Purpose::Filesystem { fs_type, mount, .. } => {
            write!(out, " {fs_type} {} {}", mount.mount_point, mount.options).unwrap();
        }
        Purpose::Raw { fs_type, .. } => write!(out, " {}", fs_type.as_deref().unwrap_or("none")).unwrap(),
    }
    let choices: Vec<String> = request
        .algorithms
        .iter()
        .map(|choice| match choice {
            Choice::Auto => "auto".to_owned(),
            Choice::Named(algorithm) => algorithm.to_string(),
        })
        .collect();
    write!(out, " {}", choices.join(",")).unwrap();
    if request.memory_limit > 0 {
        write!(out, " limit={}", request.memory_limit).unwrap();
    }
    let secondary: Vec<String> = request.recompression.iter().map(ToString::to_string).collect();
    if !secondary.is_empty() {
        write!(out, " then={}", secondary.join(",")).unwrap();
    }
    if let Some(device) = &request.writeback_device {
        write!(out, " wb={device}").unwrap();
    }
    out
}

/// What zramd makes of an imported file on a machine: devices, and the lines of RAM disks.
fn requests(toml: &str, mem_total_kib: u64, cmdline: &str) -> Vec<Request> {
    let loaded = config::load(&[("zramd.toml".into(), toml.to_owned())], cmdline);
    assert_eq!(loaded.problems, [], "{toml}");
    let facts = Facts {
        memory: Memory { total_kib: mem_total_kib, available_kib: mem_total_kib, ..Memory::default() },
        cpus: 4,
        page_size: 4096,
        ..Facts::default()
    };
    let plan = plan::plan(&loaded.settings, vec![], &facts, Activation::Direct);
    let wanted = plan.items.into_iter().filter(|item| item.decision != Decision::Skipped);
    wanted.filter_map(|item| item.request).collect()
}

fn devices(toml: &str, mem_total_kib: u64, cmdline: &str) -> Vec<DeviceRequest> {
    let requests = requests(toml, mem_total_kib, cmdline).into_iter();
    let device = |request| if let Request::Device(device) = request { Some(device) } else { None };
    requests.filter_map(device).collect()
}

#[test]
fn every_case_is_written_as_expected() {
    let mut cases: Vec<PathBuf> =
        fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    for case in cases {
        let imported = imported(case.file_name().unwrap().to_str().unwrap());
        golden(&case.join("expected.toml"), &imported.toml);
        golden(&case.join("expected.txt"), &text(&imported));
    }
}

#[test]
fn every_case_becomes_the_devices_that_it_asks_for() {
    for (case, mem_total_kib, cmdline, _, expected) in ROWS {
        let devices = devices(&imported(case).toml, *mem_total_kib, cmdline);
        let described: Vec<String> = devices.iter().map(describe).collect();
        assert_eq!(described, *expected, "{case} with {mem_total_kib} KiB and `{cmdline}`");
    }
}

#[test]
fn every_warning_is_one_sentence_with_its_place() {
    for case in fs::read_dir(fixtures()).unwrap() {
        let case = case.unwrap().file_name().into_string().unwrap();
        for warning in imported(&case).warnings {
            let text = &warning.text;
            let first = text.chars().next().unwrap();
            assert!(!first.is_uppercase() && !text.ends_with('.') && !text.contains('\n'), "{case}: {text}");
            assert!(warning.file.is_absolute(), "{case}: {text}");
        }
    }
}
