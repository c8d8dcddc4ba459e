//! A client without shared code: `tests/interop/sdbus.c` with sd-bus of libsystemd.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::private_bus::{PrivateBus, quiet_devices};
use crate::support::{can_use_real_kernel, has_program, real_kernel_lock, repository, skip};

/// The output of the client, without the first word of each line.
const CHECKS: [&str; 34] = [
    "GetManagedObjects a{oa{sa{sv}}}",
    "Version s",
    "trivial t b d",
    "State s",
    "Capabilities as",
    "Problems a(sss)",
    "ProblemDetails a(sssss)",
    "DiskSizeBytes t",
    "Managed b",
    "CompressionRatio d",
    "AlgorithmParameters a{ss}",
    "RecompressionAlgorithms a(us)",
    "Priority i",
    "ListDevices a(sos)",
    "ListRamDisks a(sos)",
    "Describe",
    "Introspect",
    "GetStats a{sv}",
    "NotFound",
    "InvalidArgument",
    "unknown option",
    "UnknownMethod",
    "UnknownObject",
    "UnknownInterface",
    "UnknownProperty",
    "a property is set",
    "a string for a number",
    "too few arguments",
    "a number for a string",
    "a string for options",
    "too many arguments",
    "arguments for nothing",
    "a number for an interface",
    "StatsUpdated",
];

/// Compiles a client; `None`, with the reason printed, without a compiler or the header.
pub fn compiled(directory: &Path, source: &str) -> Option<PathBuf> {
    if !has_program("cc") {
        skip("needs a C compiler");
        return None;
    }
    let mut look = Command::new("cc");
    look.args(["-E", "-x", "c", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut look = look.spawn().unwrap();
    look.stdin.take().unwrap().write_all(b"#include <systemd/sd-bus.h>\n").unwrap();
    if !look.wait().unwrap().success() {
        skip("needs systemd/sd-bus.h (libsystemd-dev)");
        return None;
    }
    let program = directory.join("sdbus");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
    assert!(cc.arg(repository(source)).arg("-lsystemd").status().unwrap().success());
    Some(program)
}

#[test]
fn a_c_program_understands_us() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    let Some(program) = compiled(bus.bus().directory(), "tests/interop/sdbus.c") else { return };
    let output = Command::new(program).arg(bus.address()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    println!("{text}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let failed: Vec<&str> = text.lines().filter(|line| line.starts_with("FAILED ")).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let checks: Vec<&str> = text.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    assert_eq!(checks, CHECKS);
}

/// The only test here with changes: a device is added and removed.
#[test]
fn a_c_program_sees_devices_come_and_go() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let Some(bus) = PrivateBus::start() else { return };
    let Some(program) = compiled(bus.bus().directory(), "tests/interop/sdbus.c") else { return };
    let mut client =
        Command::new(program).args([bus.address(), "watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut added = None;
    let mut seen = Vec::new();
    for line in BufReader::new(client.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        match line.as_str() {
            "watching" => added = Some(HotAdded::new()),
            "ok InterfacesAdded" => added = None,
            _ => {}
        }
        if added_or_removed(&line) {
            seen.push(line);
        }
    }
    drop(added);
    assert!(client.wait().unwrap().success());
    assert_eq!(seen, ["ok InterfacesAdded", "ok InterfacesRemoved"]);
}

fn added_or_removed(line: &str) -> bool {
    line.contains("InterfacesAdded") || line.contains("InterfacesRemoved")
}

/// A device that is removed when dropped.
struct HotAdded(String);

impl HotAdded {
    fn new() -> HotAdded {
        HotAdded(std::fs::read_to_string("/sys/class/zram-control/hot_add").unwrap())
    }
}

impl Drop for HotAdded {
    fn drop(&mut self) {
        std::fs::write("/sys/class/zram-control/hot_remove", self.0.trim()).unwrap();
    }
}
