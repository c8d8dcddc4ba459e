//! Imports compared with zram-generator: its expression evaluator for random configurations, and with ZRAM_GENERATOR=PROGRAM
//! (1.2 or later) the program itself.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::apart::command_for;
use crate::support::import::cases::{Original, ROWS};
use crate::support::import::{devices, fixtures, imported, lay_out};
use crate::support::skip;
use fasteval::Evaler;
use import::peer::{Peer, Values, import};
use logic::config;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const MAIN: &str = "etc/systemd/zram-generator.conf";

/// Number, size and memory limit of a device.
type Sizes = Vec<(u32, u64, u64)>;

/// The size keys of a random section.
#[derive(Debug, Clone)]
struct Device {
    size: Option<String>,
    fraction: Option<f64>,
    max: Option<String>,
    host_limit: Option<String>,
    limit: Option<String>,
    rest: Vec<String>,
}

/// An expression with a value above 0 and below a few TiB for any amount of RAM.
fn any_size() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        3 => Just("ram".to_owned()),
        1 => Just("ram()".to_owned()),
        2 => (1u32..9000).prop_map(|number| number.to_string()),
        2 => (1u32..4000).prop_map(|number| (f64::from(number) / 1000.0).to_string()),
        1 => (1u32..9).prop_map(|number| format!("{number}k")),
    ];
    let two = || prop::sample::select(vec!["+", "&&", "||", "*0.25*", "/3+"]);
    leaf.prop_recursive(3, 12, 3, move |inner| {
        prop_oneof![
            (inner.clone(), two(), inner.clone()).prop_map(|(a, operator, b)| format!("{a} {operator} {b}")),
            (inner.clone(), 1u32..9, 1u32..9).prop_map(|(a, b, c)| format!("{a} * {b} / {c}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("min({a}; {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("max[{a}, {b}]")),
            inner.clone().prop_map(|a| format!("({a})")),
            inner.clone().prop_map(|a| format!("log[2, ({a}) + 1] + e()")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("max({a} - {b} + 1, {a} % 7 ^ 2 + 1)")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(ram<4096)*({a}) + (ram>=4096)*({b})")),
            inner.prop_map(|a| format!("round(64, {a}) + 64")),
        ]
    })
}

fn any_rest() -> impl Strategy<Value = Vec<String>> {
    let algorithm = prop::sample::select(vec![
        "zstd",
        "lz4",
        "lzo-rle zstd(level=3) (type=idle)",
        "zstd(level=3,dict=/etc/d)",
        "",
    ])
    .prop_map(|names| format!("compression-algorithm = {names}"));
    let swap = prop_oneof![
        (-1i32..=32767).prop_map(|priority| format!("swap-priority = {priority}")),
        Just("fs-type = swap".to_owned()),
    ];
    let mount = (
        prop::sample::select(vec!["/a", "/a/b//c/", "\"/a b\"", "/x/./y"]),
        prop::option::of(prop::sample::select(vec!["ext2", "ext4", "btrfs"])),
    )
        .prop_map(|(path, kind)| {
            format!(
                "mount-point = {path}{}",
                kind.map_or(String::new(), |kind| format!("\nfs-type = {kind}"))
            )
        });
    let options = prop::sample::select(vec!["", "discard", "discard,nosuid"])
        .prop_map(|text| format!("options = {text}"));
    (
        prop::option::of(algorithm),
        prop_oneof![swap, mount],
        prop::option::of(options),
        prop::option::of(Just("writeback-device = /dev/sda3".to_owned())),
    )
        .prop_map(|(a, b, c, d)| [a, Some(b), c, d].into_iter().flatten().collect())
}

fn any_device() -> impl Strategy<Value = Device> {
    let limit =
        || prop_oneof![(1u64..100_000).prop_map(|number| number.to_string()), Just("none".to_owned())];
    let deprecated =
        || prop::option::weighted(0.2, (1u32..150).prop_map(|percent| f64::from(percent) / 100.0));
    (
        prop::option::of(any_size()),
        deprecated(),
        prop::option::weighted(0.2, limit()),
        prop::option::of(limit()),
        prop::option::of(any_size()),
        any_rest(),
    )
        .prop_map(|(size, fraction, max, host_limit, limit, rest)| Device {
            size,
            fraction,
            max,
            host_limit,
            limit,
            rest,
        })
}

fn any_config() -> impl Strategy<Value = Vec<(u32, Device)>> {
    prop::collection::btree_map(0u32..6, any_device(), 1..4).prop_map(|devices| devices.into_iter().collect())
}

fn text(devices: &[(u32, Device)]) -> String {
    let mut out = String::new();
    for (name, device) in devices {
        out.push_str(&format!("[zram{name}]\n"));
        let lines = [
            device.size.as_ref().map(|size| format!("zram-size = {size}")),
            device.fraction.map(|fraction| format!("zram-fraction = {fraction}")),
            device.max.as_ref().map(|max| format!("max-zram-size = {max}")),
            device.host_limit.as_ref().map(|limit| format!("host-memory-limit = {limit}")),
            device.limit.as_ref().map(|limit| format!("zram-resident-limit = {limit}")),
        ];
        for line in lines.iter().flatten().chain(&device.rest) {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Bytes as computed by zram-generator: fasteval, truncated.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn bytes(expression: &str, ram: f64) -> u64 {
    let mut slab = fasteval::Slab::new();
    let parsed = fasteval::Parser::new().parse(expression, &mut slab.ps).unwrap().from(&slab.ps);
    let mut names = |name: &str, _: Vec<f64>| (name == "ram").then_some(ram);
    let value = parsed.eval(&slab, &mut names).unwrap();
    assert!(value >= 0.0, "{expression}");
    (value * 1024.0 * 1024.0) as u64
}

/// The devices of zram-generator for random sections, by its documented rules.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn by_the_rules(devices: &[(u32, Device)], mem_total_kib: u64) -> Sizes {
    let mib = mem_total_kib / 1024;
    let ram = mib as f64;
    // `none` or an empty value is no limit.
    let mib_of = |limit: Option<&String>| limit.and_then(|limit| limit.parse().ok()).unwrap_or(u64::MAX);
    let wanted = devices.iter().filter(|(_, device)| mib_of(device.host_limit.as_ref()) >= mib);
    wanted
        .map(|(number, device)| {
            let size = if device.fraction.is_some() || device.max.is_some() {
                let max = mib_of(device.max.as_ref());
                ((device.fraction.unwrap_or(0.5) * ram) as u64).min(max) * 1024 * 1024
            } else {
                bytes(device.size.as_deref().unwrap_or("min(ram / 2, 4096)"), ram)
            };
            (*number, size, bytes(device.limit.as_deref().unwrap_or("0"), ram))
        })
        .filter(|(_, size, _)| *size > 0)
        .collect()
}

/// The devices of zramd for a configuration of zram-generator.
fn ours(config: &str, mem_total_kib: u64) -> Sizes {
    let files = [(PathBuf::from("/").join(MAIN), config.to_owned())];
    sizes(&import(Peer::ZramGenerator, &files, &Values::default()).toml, mem_total_kib, "")
}

fn sizes(toml: &str, mem_total_kib: u64, cmdline: &str) -> Sizes {
    let devices = devices(toml, mem_total_kib, cmdline);
    devices.iter().map(|device| (device.number, device.disk_size, device.memory_limit)).collect()
}

/// Names of variables of the other programs.
const NAMES: &[&str] = &[
    "ALGO",
    "COMP_ALG",
    "LOG_DISK_SIZE",
    "MAX_SIZE",
    "PAGE_CLUSTERS",
    "PATH_DISK",
    "PERCENT",
    "PORTION",
    "PRIORITY",
    "SIZE",
    "SWAPPINESS",
    "ZL2R",
];
/// Values that are easily misread.
const VALUES: &[&str] = &[
    "",
    "0",
    "-1",
    "3",
    "500",
    "99999999999999999999",
    "1e400",
    "nan",
    "inf",
    "0x10",
    "lots",
    "4G",
    "50%",
    "true",
    "/",
    "/a",
    "/a;/a;/a/",
    "/a b ;/c\\",
    "/ż;relative;/a/../b",
    "lz4",
    "zstd(level=3)",
    "zstd lz4",
    "\u{1}",
    "\"]\n[zram0]",
];

proptest! {
    #[test]
    fn any_valid_configuration_loads_and_has_the_sizes_of_the_original(config in any_config(), mem_total_kib in 65_536u64..1 << 30) {
        let text = text(&config);
        let expected = by_the_rules(&config, mem_total_kib);
        // Above this, both fail in different ways.
        prop_assume!(expected.iter().all(|(_, size, limit)| *size.max(limit) < 1 << 63));
        prop_assert_eq!(ours(&text, mem_total_kib), expected, "{}", text);
    }

    #[test]
    fn every_import_loads(text in "(\\[zram[0-3+]?\\]?|zram-size|mount-point|options|fs-type|SIZE|PATH_DISK|PORTION|ALGO|zram-fraction|set!n|[ \t]|=|:|#|\"|\\\\|\n|\n|ram|/|[0-9]|[a-z(),;]|ż|\u{1}){0,40}") {
        for peer in Peer::ALL {
            let imported = import(peer, &[("/f".into(), text.clone())], &Values::default());
            let loaded = config::load(&[("zramd.toml".into(), imported.toml.clone())], "");
            prop_assert!(loaded.problems.is_empty(), "{:?}\n{}\n{:?}", text, imported.toml, loaded.problems);
        }
    }

    #[test]
    fn every_import_of_a_shell_file_loads(
        lines in prop::collection::vec((prop::sample::select(NAMES), prop::sample::select(VALUES)), 0..8)
    ) {
        let lines: Vec<String> = lines.iter().map(|(name, value)| format!("{name}='{value}'")).collect();
        let text = lines.join("\n");
        for peer in [Peer::ZramTools, Peer::Log2ram, Peer::PopZram] {
            let imported = import(peer, &[("/f".into(), text.clone())], &Values::default());
            let loaded = config::load(&[("zramd.toml".into(), imported.toml.clone())], "");
            prop_assert!(loaded.problems.is_empty(), "{}\n{}\n{:?}", text, imported.toml, loaded.problems);
            for row in imported.table {
                // A row of the table is in the file, and in effect.
                let line = row.is.split_once("] ").map(|(_, line)| line);
                prop_assert!(line.is_none_or(|line| imported.toml.lines().any(|found| found == line)), "{}\n{}", row.is, imported.toml);
            }
        }
    }
}

/// The program to compare with; `None`, and the test is skipped, without one.
pub fn original() -> Option<PathBuf> {
    let program = env::var_os("ZRAM_GENERATOR").map(PathBuf::from);
    if program.is_none() {
        skip("needs ZRAM_GENERATOR=PROGRAM, a zram-generator 1.2 or later");
    }
    program
}

/// Sets up all devices in a fake sysfs, and prints what was written to it.
const SET_UP: &str = r#"
mount -t tmpfs none /sys && mount --bind /dev/null /dev/kmsg || exit 1
for number in 0 1 2 3 4 5 11 12 13 14 15; do
    directory=/sys/block/zram$number
    mkdir -p $directory
    "$ZRAM_GENERATOR" --setup-device zram$number >/dev/null 2>&1
    [ -e $directory/disksize ] && echo $number $(cat $directory/disksize) $(cat $directory/mem_limit)
done
exit 0
"#;

/// What the program writes for a configuration directory.
fn theirs(root: &Path, mem_total_kib: u64, cmdline: &str) -> Sizes {
    fs::create_dir_all(root.join("proc")).unwrap();
    fs::write(root.join("proc/meminfo"), format!("MemTotal: {mem_total_kib} kB\n")).unwrap();
    fs::write(root.join("proc/cmdline"), cmdline).unwrap();
    let output = command_for("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", SET_UP])
        .env("ZRAM_GENERATOR_ROOT", root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let numbers =
        |line: &str| line.split_whitespace().map(|word| word.parse().unwrap()).collect::<Vec<u64>>();
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(numbers).map(|line| (u32::try_from(line[0]).unwrap(), line[1], line[2])).collect()
}

#[test]
fn every_case_has_the_sizes_of_the_original() {
    if original().is_none() {
        return;
    }
    for (case, mem_total_kib, cmdline, original, _) in ROWS {
        if let Original::Differs(why) = original {
            println!("{case}: not compared, {why}");
            continue;
        }
        let root = tempfile::tempdir().unwrap();
        lay_out(&fixtures().join(case), root.path());
        let theirs = theirs(root.path(), *mem_total_kib, cmdline);
        assert_eq!(sizes(&imported(case).toml, *mem_total_kib, cmdline), theirs, "{case}");
    }
}

#[test]
fn random_configurations_have_the_sizes_of_the_original() {
    if original().is_none() {
        return;
    }
    let mut runner = TestRunner::new(Config { cases: 60, source_file: Some(file!()), ..Config::default() });
    let strategy = (any_config(), 65_536u64..1 << 30);
    let outcome = runner.run(&strategy, |(config, mem_total_kib)| {
        let text = text(&config);
        prop_assume!(
            by_the_rules(&config, mem_total_kib).iter().all(|(_, size, limit)| *size.max(limit) < 1 << 63)
        );
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(MAIN).parent().unwrap()).unwrap();
        fs::write(root.path().join(MAIN), &text).unwrap();
        prop_assert_eq!(ours(&text, mem_total_kib), theirs(root.path(), mem_total_kib, ""), "{}", text);
        Ok(())
    });
    outcome.unwrap();
}
