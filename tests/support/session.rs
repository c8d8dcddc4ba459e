//! Exclusive use of the running kernel, with a private bus, a daemon, and `zramdctl`.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::private_bus::PrivateBus;
use crate::support::{CTL, can_use_real_kernel, real_kernel_lock, setup, texts};
use host::linux::work;

/// Exclusive use of the machine, with a daemon; dropping it removes everything of the test.
pub struct Session {
    // In this order: the daemon ends, devices are removed, the lock is released.
    pub bus: Option<PrivateBus>,
    pub before: String,
    _lock: fs::File,
}

impl Session {
    /// Starts a session; `None`, with the reason printed, if that is impossible.
    pub fn begin(config: &str) -> Option<Session> {
        Session::with(|| PrivateBus::start_with(config))
    }

    /// As [`Session::begin`], on this bus.
    pub fn with(bus: impl FnOnce() -> Option<PrivateBus>) -> Option<Session> {
        if !can_use_real_kernel() {
            return None;
        }
        let lock = real_kernel_lock();
        // The first job makes it, and it stays.
        fs::create_dir_all(work::DIRECTORY).unwrap();
        let before = machine();
        Some(Session { bus: Some(bus()?), before, _lock: lock })
    }

    pub fn bus(&self) -> &PrivateBus {
        self.bus.as_ref().unwrap()
    }

    /// `zramdctl` with these arguments on this bus.
    pub fn command(&self, words: &[&str]) -> Command {
        zramdctl(self.bus().address(), words)
    }

    /// Output of `zramdctl`, which has to succeed.
    #[track_caller]
    pub fn ok(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        let (result, messages) = texts(&output);
        assert!(output.status.success() && messages.is_empty(), "{words:?}: {output:?}");
        result.trim_end().to_owned()
    }

    /// Output of `zramdctl` as JSON. It has to succeed.
    #[track_caller]
    pub fn json(&self, words: &[&str]) -> serde_json::Value {
        let output = self.command(&[words, &["--json"]].concat()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Messages of `zramdctl`, which has to end with this status.
    #[track_caller]
    pub fn fails(&self, words: &[&str], status: i32) -> String {
        let output = self.command(words).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{words:?}: {output:?}");
        texts(&output).1
    }

    /// Replaces the configuration.
    pub fn write(&self, text: &str) {
        fs::write(self.bus().bus().config(), text).unwrap();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.bus = None;
        let output = setup(&["revert"]);
        if !output.status.success() {
            eprintln!("could not clean up: {output:?}");
        }
    }
}

pub fn zramdctl(address: &str, words: &[&str]) -> Command {
    let mut command = crate::command_for(CTL);
    command.args(words).env("DBUS_SYSTEM_BUS_ADDRESS", address).stdin(Stdio::null());
    command
}

/// The visible state: devices, swaps, records.
pub fn machine() -> String {
    let mut devices: Vec<String> = fs::read_dir("/sys/block")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("zram"))
        .map(|name| format!("{name} {}", attribute(&name, "disksize")))
        .collect();
    devices.sort();
    let notes: Vec<String> = fs::read_dir("/run/zramd").map_or_else(
        |_| Vec::new(),
        |entries| {
            let files = entries.map(Result::unwrap).filter(|entry| entry.file_type().unwrap().is_file());
            files.map(|entry| entry.file_name().into_string().unwrap()).collect()
        },
    );
    format!("{devices:?} {:?} {notes:?}", swaps())
}

pub fn attribute(device: &str, name: &str) -> String {
    fs::read_to_string(format!("/sys/block/{device}/{name}")).unwrap().trim().to_owned()
}

/// Name, size in KiB and priority of every active zram swap.
pub fn swaps() -> Vec<(String, u64, i32)> {
    let text = fs::read_to_string("/proc/swaps").unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("/dev/zram"));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (format!("zram{}", words[0]), words[2].parse().unwrap(), words[4].parse().unwrap())
        })
        .collect()
}
