//! SIGKILL of the daemon in the middle of each operation, on the running kernel: the next daemon finishes it or undoes it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "support/private_bus.rs"]
mod private_bus;
mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use private_bus::PrivateBus;
use support::{can_use_real_kernel, real_kernel_lock, setup};

const CONFIG: &str =
    "[zram6]\nzram-size = \"24MiB\"\nswap-priority = 5\ncompression-algorithm = \"lzo-rle\"\n";

/// When the daemon is killed after it was asked, in milliseconds; from before it begins to after it is done.
const MOMENTS: [u64; 4] = [0, 5, 15, 60];

/// What is done, and what the device may be like afterwards: size in KiB and priority of its swap, or nothing.
struct Operation {
    name: &'static str,
    words: &'static [&'static str],
    /// What the configuration becomes before it is asked for.
    config: Option<(&'static str, &'static str)>,
    device: &'static str,
    before: Option<(u64, i32)>,
    after: Option<(u64, i32)>,
}

const BEFORE: Option<(u64, i32)> = Some((24 * 1024 - 4, 5));

const OPERATIONS: [Operation; 8] = [
    Operation {
        name: "create",
        words: &["create", "zram9", "--size", "16MiB", "--priority", "3"],
        config: None,
        device: "zram9",
        before: None,
        after: Some((16 * 1024 - 4, 3)),
    },
    Operation {
        name: "create that is refused",
        words: &["create", "zram9", "--size", "16MiB", "--algorithm", "nope"],
        config: None,
        device: "zram9",
        before: None,
        after: None,
    },
    Operation {
        name: "resize that is refused",
        words: &["resize", "zram6", "99999TiB"],
        config: None,
        device: "zram6",
        before: BEFORE,
        after: BEFORE,
    },
    Operation {
        name: "resize",
        words: &["resize", "zram6", "40MiB"],
        config: None,
        device: "zram6",
        before: BEFORE,
        after: Some((40 * 1024 - 4, 5)),
    },
    Operation {
        name: "limit",
        words: &["limit", "zram6", "8MiB"],
        config: None,
        device: "zram6",
        before: BEFORE,
        after: BEFORE,
    },
    Operation {
        name: "reload",
        words: &["reload"],
        config: Some(("swap-priority = 5", "swap-priority = 8")),
        device: "zram6",
        before: BEFORE,
        after: Some((24 * 1024 - 4, 8)),
    },
    Operation {
        name: "swap off",
        words: &["swap", "off", "zram6"],
        config: None,
        device: "zram6",
        before: BEFORE,
        after: None,
    },
    Operation {
        name: "remove",
        words: &["remove", "zram6"],
        config: None,
        device: "zram6",
        before: BEFORE,
        after: None,
    },
];

fn zramdctl(bus: &PrivateBus, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zramdctl"));
    command.args(words).env("DBUS_SYSTEM_BUS_ADDRESS", bus.address());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Size in KiB and priority of the swap on a device.
fn swap(device: &str) -> Option<(u64, i32)> {
    let text = fs::read_to_string("/proc/swaps").unwrap();
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(&format!("/dev/{device}")))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    Some((words[2].parse().unwrap(), words[4].parse().unwrap()))
}

fn devices() -> Vec<String> {
    let names =
        fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("zram")).collect();
    names.sort();
    names
}

/// Whatever a round leaves is taken away, also when it fails.
struct Cleanup;

impl Drop for Cleanup {
    fn drop(&mut self) {
        let output = setup(&["revert"]);
        fs::remove_dir_all("/run/zramd/zramd.toml.d").ok();
        fs::remove_file("/run/zramd/operation").ok();
        fs::remove_dir("/run/zramd").ok();
        if !output.status.success() {
            eprintln!("could not clean up: {output:?}");
        }
    }
}

/// Until nothing works on the machine any more that the killed daemon had started.
fn settle() {
    let ours = fs::canonicalize(env!("CARGO_BIN_EXE_zramd-setup")).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        let runs = fs::read_dir("/proc")
            .unwrap()
            .filter_map(Result::ok)
            .any(|process| fs::read_link(process.path().join("exe")).is_ok_and(|program| program == ours));
        if !runs {
            return;
        }
        std::thread::yield_now();
    }
    panic!("zramd-setup does not end");
}

fn round(operation: &Operation, moment: u64) -> bool {
    let before = devices();
    let _cleanup = Cleanup;
    let Some(mut bus) = PrivateBus::start_with(CONFIG) else { return false };
    assert!(zramdctl(&bus, &["reload"]).status().unwrap().success());
    assert_eq!(swap("zram6"), BEFORE);
    let mut expected = before.clone();
    expected.push("zram6".to_owned());
    if let Some((from, to)) = operation.config {
        fs::write(bus.bus().config(), CONFIG.replace(from, to)).unwrap();
    }
    let mut asked = zramdctl(&bus, operation.words).spawn().unwrap();
    // No synchronisation: the moment is what is tried out.
    std::thread::sleep(Duration::from_millis(moment));
    bus.crash();
    asked.wait().unwrap();
    settle();
    bus.start_again();
    let what = format!("{} killed after {moment} ms", operation.name);
    let found = swap(operation.device);
    assert!(found == operation.before || found == operation.after, "{what}: {found:?}");
    assert!(!Path::new("/run/zramd/operation").exists(), "{what}: still to be finished");
    let plan = Command::new(env!("CARGO_BIN_EXE_zramdctl"))
        .arg("plan")
        .env("DBUS_SYSTEM_BUS_ADDRESS", bus.address())
        .output()
        .unwrap();
    let plan = String::from_utf8_lossy(&plan.stdout).into_owned();
    // Killed before it heard of the reload: then the file is still ahead of the machine, which is what plan says.
    let ahead = operation.config.is_some() && found == operation.before;
    assert!(plan.starts_with("nothing to change") || ahead, "{what}: {plan}");
    for name in devices() {
        let known = before.contains(&name) || swap(&name).is_some();
        assert!(known, "{what}: {name} was left behind");
    }
    true
}

#[test]
fn whatever_is_interrupted_is_finished_or_undone() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let before = devices();
    for operation in &OPERATIONS {
        for moment in MOMENTS {
            if !round(operation, moment) {
                return;
            }
        }
        assert_eq!(devices(), before, "after {}", operation.name);
    }
}
