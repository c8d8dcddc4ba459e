//! Bytes that are not UTF-8 in every file of `/proc`, `/sys` and `/etc` that is read: users choose names of mounts and
//! programs, and account files may use other encodings.

use std::fs;
use std::path::Path;

use crate::support::setup;
use engine::sample;
use engine::sample::Detail;
use host::linux::LinuxHost;
use host::{Holder, Host, MachineFile};
use logic::config::{self, Loaded};
use logic::proc;
use logic::view::View;
use proptest::prelude::*;
use sim::SimMachine;
use sim::kernel::KernelConfig;

const CONFIGURATION: &str = r#"
[zram0]
zram-size = "ram / 8"
swap-priority = 100

[zram1]
zram-size = "64MiB"
mount-point = "/srv/data"
owner = "build"
group = "build"

[ramdisk.scratch]
mount-point = "/srv/scratch"
size = "16MiB"

[vm]
tune = true
"#;

/// Bytes appended to each file.
const ODD: [(MachineFile, &[u8]); 14] = [
    (MachineFile::Meminfo, b"Odd\xff: \xfe kB\nMemTot\xe9l: 1 kB\n"),
    (MachineFile::Swaps, b"/mnt/\xff/swap\\040\xe9 file 8 0 -7\n\xff\n"),
    (
        MachineFile::Mountinfo,
        b"70 20 0:70 / /mnt/\xff rw - tmpfs \xfe rw,\xfd\n71 20 0:71 /\xff /home/u/\xe9 rw - fuse.\xff /dev/zram0 rw\n\xff\n",
    ),
    (MachineFile::Cmdline, b" name=\xff\xfe"),
    (MachineFile::Passwd, b"m\xfcller:x:1001:1001:M\xfcller:/home/m\xfcller:/bin/sh\n\xff\n"),
    (MachineFile::Group, b"g\xe4ste:x:1002:m\xfcller\n\xff\n"),
    (MachineFile::KernelRelease, b"\xff\n"),
    (MachineFile::Cpuinfo, b"model name : \xff\n"),
    (MachineFile::OnlineCpus, b"\xff\n"),
    (MachineFile::Loadavg, b"\xff\n"),
    (MachineFile::Vmstat, b"\xff 1\n"),
    (MachineFile::Diskstats, b"\xff 1\n"),
    (MachineFile::MemoryPressure, b"\xff\n"),
    (MachineFile::Verdict, b"\xff\n"),
];

fn loaded() -> Loaded {
    let loaded = config::load(&[("/etc/zramd/zramd.toml".into(), CONFIGURATION.to_owned())], "");
    assert_eq!(loaded.problems, []);
    loaded
}

fn machine() -> SimMachine {
    let machine = SimMachine::new(KernelConfig::full());
    machine.change().add_directories("/srv");
    machine.change().passwd = "build:x:1000:1000::/:/bin/sh\n".to_owned();
    machine.change().group = "build:x:1000:\n".to_owned();
    machine
}

/// Sets up, reads and removes everything, and returns the states.
fn life(machine: &SimMachine) -> String {
    let mut host = machine.process();
    let loaded = loaded();
    let before = machine.snapshot();
    let applied = engine::apply(&mut host, &loaded).unwrap();
    assert!(applied.outcomes.iter().all(|outcome| outcome.errors.is_empty()), "{:?}", applied.outcomes);
    let again = engine::apply(&mut host, &loaded).unwrap();
    assert!(again.plan.is_empty(), "{:?}", again.plan.groups);
    let seen = sample::figures(&host, &View::of(&loaded), Detail::Listed).unwrap();
    let rows = engine::status::rows(&host).unwrap();
    let there = machine.snapshot();
    let removed = engine::revert(&mut host).unwrap();
    assert!(removed.iter().all(|(_, result)| result.is_ok()), "{removed:?}");
    assert_eq!(machine.snapshot(), before);
    format!("{there:?}\n{:?}\n{:?}\n{rows:?}", seen.devices, seen.ramdisks)
}

#[test]
fn odd_bytes_in_any_file_change_nothing() {
    let expected = life(&machine());
    for (file, bytes) in ODD {
        let machine = machine();
        machine.change().further.insert(file, bytes.to_owned());
        assert_eq!(life(&machine), expected, "{file:?}");
    }
}

#[test]
fn names_of_any_bytes_are_told_apart() {
    let machine = machine();
    machine.change().further.extend(ODD.map(|(file, bytes)| (file, bytes.to_owned())));
    let host = machine.process();
    let swaps = proc::parse_swaps(&host.bytes(MachineFile::Swaps).unwrap());
    assert_eq!(swaps.last().unwrap().path.as_bytes(), b"/mnt/\xff/swap \xe9");
    let mounts = proc::parse_mountinfo(&host.bytes(MachineFile::Mountinfo).unwrap());
    let points: Vec<&[u8]> = mounts.iter().map(|mount| mount.mount_point.as_bytes()).collect();
    assert_eq!(points, [&b"/"[..], b"/mnt/\xff", b"/home/u/\xe9"]);
    // The printed path differs.
    let shown = mounts[1].mount_point.to_string();
    assert_ne!(mounts[1].mount_point, shown);
    // The source of a FUSE mount is chosen by the user, and identifies no device.
    assert_eq!(proc::mount_of(&mounts, 0, Some((252, 0))), None);
}

proptest! {
    /// Any line of bytes neither hides nor changes the lines around it.
    #[test]
    fn a_line_of_any_bytes_does_not_affect_others(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let odd: Vec<u8> = bytes.into_iter().filter(|byte| *byte != b'\n').chain([b'\n']).collect();
        let among = |before: &str, after: &str| [before.as_bytes(), &odd, after.as_bytes()].concat();
        let swaps = proc::parse_swaps(&among("Filename\n", "/dev/zram7 partition 8 0 -7\n"));
        prop_assert_eq!(swaps.last().and_then(proc::SwapLine::zram_number), Some(7));
        let line = "36 35 252:7 / /a\\040b rw - ext4 /dev/zram7 rw\n";
        let mounts = proc::parse_mountinfo(&among(line, line));
        prop_assert_eq!(mounts.first(), mounts.last());
        prop_assert!(mounts.len() >= 2 && mounts[0].mount_point == "/a b");
        let name = "someone-else";
        prop_assert_eq!(proc::parse_account(&among("", "someone-else:x:7:7::/:\n"), name), Some(7));
        prop_assert_eq!(proc::mount_source(&among("", line), 36).is_some(), true);
    }
}

/// A root directory with account files in Latin-1 and zramd enabled.
fn old_root(configuration: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/meminfo", &b"MemTotal: 8388608 kB\n"[..]),
        ("proc/cmdline", b"systemd.zram=1 name=\xff\n"),
        ("etc/passwd", b"m\xfcller:x:1001:1001:M\xfcller:/:/bin/sh\nbuild:x:1000:1000::/:/bin/sh\n"),
        ("etc/group", b"g\xe4ste:x:1002:m\xfcller\nbuild:x:1000:\n"),
        ("etc/zramd/zramd.toml", configuration.as_bytes()),
    ] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

/// Names of the units of devices and disks.
fn generated(root: &Path) -> Vec<String> {
    let out = tempfile::tempdir().unwrap();
    let output = setup(&["--root", root.to_str().unwrap(), "generate", out.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let names =
        fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut units: Vec<String> =
        names.filter(|name| name.ends_with(".swap") || name.ends_with(".mount")).collect();
    units.sort();
    units
}

const THREE: [&str; 3] = ["dev-zram0.swap", "srv-data.mount", "srv-scratch.mount"];

#[test]
fn units_are_written_with_accounts_in_latin_1() {
    assert_eq!(generated(old_root(CONFIGURATION).path()), THREE);
}

#[test]
fn a_failed_lookup_disables_only_its_section() {
    // A FIFO stands for any unreadable file; reading it must not block.
    let fifo = |root: &Path, path: &str| {
        fs::remove_file(root.join(path)).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join(path), 0o600.into()).unwrap();
    };
    for (path, left) in [
        ("etc/passwd", &["dev-zram0.swap", "srv-scratch.mount"][..]),
        ("etc/group", &["dev-zram0.swap", "srv-scratch.mount"]),
        ("proc/meminfo", &["srv-data.mount", "srv-scratch.mount"]),
    ] {
        let root = old_root(CONFIGURATION);
        fifo(root.path(), path);
        assert_eq!(generated(root.path()), left, "{path}");
    }
}

#[test]
fn programs_with_odd_names_are_named() {
    let root = tempfile::tempdir().unwrap();
    let process = root.path().join("proc/7");
    for directory in [process.join("fd"), process.join("fdinfo"), root.path().join("proc/self")] {
        fs::create_dir_all(directory).unwrap();
    }
    fs::write(process.join("comm"), b"m\xfcller\n").unwrap();
    let mounts = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n25 21 0:5 / /dev rw - devtmpfs udev rw\n";
    for mountinfo in [process.join("mountinfo"), root.path().join("proc/self/mountinfo")] {
        fs::write(mountinfo, mounts).unwrap();
    }
    std::os::unix::fs::symlink("/dev/zram0", process.join("fd/3")).unwrap();
    let holders = |flags: &str, mount: u64| {
        let text = format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t{mount}\nino:\t9\n");
        fs::write(process.join("fdinfo/3"), text).unwrap();
        LinuxHost::new(root.path()).holders(0)
    };
    assert_eq!(holders("0100000", 25), [Holder { pid: 7, name: "m\\xfcller".to_owned() }]);
    // Opened with O_PATH, which every user may; a file of a user with that name.
    assert_eq!(holders("012000000", 25), []);
    assert_eq!(holders("0100000", 21), []);
}
