//! The example configuration on the running kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{can_use_real_kernel, real_kernel_lock, repository, setup};

/// Exclusive use of the machine; dropping it removes everything of the test.
pub struct Session {
    _lock: fs::File,
}

/// Starts a test on the running kernel; `None`, with the reason printed, if that is impossible.
pub fn session() -> Option<Session> {
    can_use_real_kernel().then(|| Session { _lock: real_kernel_lock() })
}

impl Drop for Session {
    fn drop(&mut self) {
        let output = setup(&["revert"]);
        if !output.status.success() {
            eprintln!("could not clean up: {output:?}");
        }
    }
}

/// The visible state of zram: devices, swaps, mounts, records.
pub fn machine() -> String {
    let mut devices: Vec<String> = fs::read_dir("/sys/block")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("zram"))
        .map(|name| {
            let read = |file: &str| {
                fs::read_to_string(format!("/sys/block/{name}/{file}")).unwrap().trim().to_owned()
            };
            format!("{name} {} {} {}", read("initstate"), read("disksize"), read("comp_algorithm"))
        })
        .collect();
    devices.sort();
    let swaps = fs::read_to_string("/proc/swaps").unwrap();
    // Without the used amount, which varies.
    let swaps: Vec<Vec<&str>> = swaps
        .lines()
        .map(|line| {
            line.split_whitespace().enumerate().filter(|(at, _)| *at != 3).map(|(_, word)| word).collect()
        })
        .collect();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mut mounts: Vec<&str> = mounts.lines().filter(|line| line.contains("zram")).collect();
    mounts.sort_unstable();
    let records = fs::read_dir("/run/zramd").map_or(0, Iterator::count);
    let directory = Path::new("/mnt/zramd-example").exists();
    format!("{devices:#?}\n{swaps:?}\n{mounts:#?}\n{records} records, directory {directory}")
}

pub fn example() -> PathBuf {
    repository("config/example.toml")
}

pub fn apply() -> Output {
    setup(&["--config", example().to_str().unwrap(), "apply"])
}

pub fn assert_success(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}
