//! Every command that changes the machine does the same with outputs that cannot be written.
//!
//! Each test is a story that is run with usual outputs first. With the others, the machine must be in the same state after
//! each of its commands.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::example;
use crate::support::kept::Kept;
use crate::support::outputs::{BROKEN, Broken, UNWRITTEN};
use crate::support::private_bus::Bus;
use crate::support::session::{attribute, swaps};

const CTL: &str = env!("CARGO_BIN_EXE_zramdctl");
const DAEMON: &str = env!("CARGO_BIN_EXE_zramd");
const SETUP: &str = env!("CARGO_BIN_EXE_zramd-setup");
const WORKER: &str = env!("CARGO_BIN_EXE_zramd-worker");

/// Name of the RAM disk.
const DISK: &str = "output";
/// Devices that a story uses.
const DEVICES: [&str; 3] = ["zram0", "zram1", "zram2"];
const MIB: usize = 1 << 20;

/// What happens next in a story.
#[derive(Debug)]
enum Step {
    /// The disk has this size from now on.
    Configure(&'static str),
    /// Random contents of this size for a file of the disk.
    Fill(&'static str, usize),
    /// The record of this device is lost.
    Forget(&'static str),
    /// A command. `FILE` is the configuration, `HERE` a directory.
    Run(&'static str, &'static str),
}

use Step::{Configure, Fill, Forget, Run};

/// After the last `apply` the newest snapshot does not fit, about which there is a warning.
const WITHOUT_DAEMON: [Step; 40] = [
    Configure("12MiB"),
    Run(SETUP, "--config FILE apply"),
    Fill("small", MIB),
    Run(WORKER, r#"save output {"config":"FILE"}"#),
    Fill("large", 8 * MIB),
    Run(WORKER, r#"save output {"reason":"stop","config":"FILE"}"#),
    Fill("large", 7 * MIB),
    Run(WORKER, r#"--reply save output {"config":"FILE"}"#),
    Run(WORKER, r#"pin output {"config":"FILE","snapshot":1}"#),
    Run(WORKER, r#"verify output {"config":"FILE","snapshot":1}"#),
    Run(WORKER, r#"export output {"config":"FILE","to":"HERE/exported","snapshot":1}"#),
    Run(WORKER, r#"delete output {"config":"FILE","snapshot":2}"#),
    Run(WORKER, r#"unpin output {"config":"FILE","snapshot":1}"#),
    Run(WORKER, r#"prepare-restore output {"config":"FILE","snapshot":1}"#),
    Run(WORKER, r#"cancel-restore output {"config":"FILE"}"#),
    Run(WORKER, r#"refresh output {"config":"FILE"}"#),
    Run(WORKER, "places"),
    Run(WORKER, "drain"),
    Run(WORKER, "refill"),
    Run(WORKER, r#"benchmark {"generator":true,"algorithms":["lzo-rle"],"seconds":1}"#),
    Run(CTL, "--config FILE init --yes --root HERE/root"),
    Run(SETUP, "write-units"),
    Run(WORKER, r#"maintain {"cause":"request","config":"FILE"}"#),
    Run(CTL, "--config FILE ramdisk export output HERE/again 1"),
    Run(CTL, "--config FILE report HERE/report.json"),
    Run(SETUP, "--config FILE generate HERE/units"),
    Run(SETUP, "down zram1"),
    Run(SETUP, "--config FILE carry-out zram1"),
    Run(SETUP, "take-down zram1"),
    Run(SETUP, "--config FILE up zram1"),
    Run(SETUP, "--config FILE adapt zram0"),
    Run(SETUP, "down zram0"),
    Run(SETUP, "--config FILE up zram0"),
    Run(SETUP, "down vm"),
    Run(SETUP, "down ramdisk.output"),
    Run(SETUP, "--config FILE apply"),
    Run(SETUP, "revert"),
    Configure("6MiB"),
    Run(SETUP, "--config FILE apply"),
    Run(SETUP, "revert"),
];

const WITH_DAEMON: [Step; 25] = [
    Configure("12MiB"),
    Run(CTL, "reload"),
    Forget("zram0"),
    Run(CTL, "--config FILE adopt zram0"),
    Fill("small", MIB),
    Run(CTL, "ramdisk save output"),
    Fill("large", 2 * MIB),
    Run(CTL, "ramdisk save output"),
    Run(CTL, "ramdisk verify output"),
    Run(CTL, "ramdisk pin output 1"),
    Run(CTL, "ramdisk pin --off output 1"),
    Run(CTL, "ramdisk delete output 1"),
    Run(CTL, "ramdisk resize output 16MiB"),
    Run(CTL, "limit zram0 8MiB"),
    Run(CTL, "resize zram0 24MiB"),
    Run(CTL, "swap off zram0"),
    Run(CTL, "swap on zram0"),
    Run(CTL, "set --runtime zram0 swap-priority=70"),
    Run(CTL, "maintain"),
    Run(CTL, "bench forget"),
    Run(CTL, "create --size 16MiB"),
    Run(CTL, "compact zram0"),
    Run(CTL, "remove zram2"),
    Run(CTL, "unset --runtime --all"),
    Run(SETUP, "revert"),
];

/// Two devices, a disk whose hooks fail if they cannot print, and a mistake to warn about.
fn configuration(kept: &Kept, here: &Path, size: &str) -> String {
    let hook = r#"["/bin/sh", "-c", "echo begins && echo why >&2"]"#;
    let lines = format!("size = \"{size}\"\nkeep = 3\npre-save = {hook}\npost-restore = {hook}");
    format!(
        "[zram0]\nzram-size = \"16MiB\"\nzram-sise = 1\n[zram1]\nzram-size = \"32MiB\"\nmount-point = \"{}\"\n{}",
        here.join("cache").display(),
        kept.section(&lines)
    )
}

/// Devices, swaps, mounts, records, and all files below these directories. Snapshots by name, because they contain times.
fn state(here: &Path, kept: &Kept) -> String {
    let mut lines = Vec::new();
    for entry in fs::read_dir("/sys/block").unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if DEVICES.contains(&name.as_str()) {
            let read = |file| attribute(&name, file);
            lines.push(format!(
                "{name} {} {} {}",
                read("disksize"),
                read("initstate"),
                read("comp_algorithm")
            ));
        }
    }
    let is_ours =
        |place: &str| [here, &kept.mount_point()].iter().any(|path| Path::new(place).starts_with(path));
    for line in fs::read_to_string("/proc/self/mounts").unwrap().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if is_ours(words[1]) {
            lines.push(format!("{} on {}: {} {}", words[0], words[1], words[2], words[3]));
        }
    }
    // Others are of the machine, such as the time of the last maintenance.
    names(Path::new("/run/zramd"), &mut lines);
    let is_of_story = |name: &str| [DISK, "zram", "vm"].iter().any(|word| name.contains(word));
    lines.retain(|line| line.strip_prefix("/run/zramd/").is_none_or(is_of_story));
    for directory in [here, &kept.mount_point(), &kept.store()] {
        names(directory, &mut lines);
    }
    // Also in names of units.
    let temporary = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let (here, kept) = (temporary(here), temporary(kept.store().parent().unwrap()));
    for line in &mut lines {
        *line = line.replace(&here, "HERE").replace(&kept, "KEPT");
    }
    lines.sort();
    format!("{:?}\n{}", swaps(), lines.join("\n"))
}

fn names(directory: &Path, lines: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        let found = path.symlink_metadata().unwrap();
        if found.is_dir() {
            lines.push(format!("{}/", path.display()));
            names(&path, lines);
        // Times of files, which a save has, compress differently.
        } else if path.extension().is_none() && directory.file_name().unwrap() != "store" {
            lines.push(format!("{} {}", path.display(), found.size()));
        } else {
            lines.push(path.display().to_string());
        }
    }
}

/// The end of a command, and the state after it.
type Told = (&'static str, Option<i32>, String);

/// Runs the commands of a story, each as `command` makes it.
fn tell(steps: &[Step], file: &Path, command: impl Fn(&str) -> Command) -> Vec<Told> {
    let kept = Kept::new(DISK);
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let mut told = Vec::new();
    let mut random = fastrand::Rng::with_seed(1);
    for step in steps {
        match step {
            Configure(size) => fs::write(file, configuration(&kept, here, size)).unwrap(),
            Fill(name, bytes) => {
                let bytes: Vec<u8> = (0..*bytes).map(|_| random.u8(..)).collect();
                let path = kept.mount_point().join(name);
                fs::write(path, bytes).unwrap_or_else(|error| panic!("{name}: {error}, after {told:#?}"));
            }
            Forget(name) => fs::remove_file(format!("/run/zramd/{name}.json")).unwrap(),
            Run(program, line) => {
                let (directory, config) = (here.display().to_string(), file.display().to_string());
                let words =
                    line.split(' ').map(|word| word.replace("HERE", &directory).replace("FILE", &config));
                let mut command = command(program);
                command.args(words).stdin(Stdio::null()).env("EDITOR", "true");
                let status = command.status().unwrap();
                told.push((*line, status.code(), state(here, &kept)));
            }
        }
    }
    told
}

fn usual(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[track_caller]
fn compare(found: &[Told], usual: &[Told], broken: Broken) {
    for ((line, status, state), (_, expected, before)) in found.iter().zip(usual) {
        assert_eq!(state, before, "{line}, {broken:?}");
        let is_lost = *expected == Some(0) && *status == Some(UNWRITTEN) && broken != Broken::Closed;
        // Of a pipe without a reader, only a reply is an error.
        let is_lost = is_lost
            && (broken == Broken::Full
                || ["--reply", "carry-out", "take-down", "adapt", "write-units"]
                    .iter()
                    .any(|word| line.contains(word)));
        assert!(status == expected || is_lost, "{line}, {broken:?}: {status:?} instead of {expected:?}");
    }
}

#[test]
fn changes_without_a_daemon() {
    let Some(_session) = example::session() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("z.toml");
    let expected = tell(&WITHOUT_DAEMON, &file, usual);
    let failed: Vec<&Told> =
        expected.iter().filter(|(_, status, _)| !matches!(status, Some(0 | 1))).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    for broken in BROKEN {
        let found = tell(&WITHOUT_DAEMON, &file, |program| broken.command(program));
        compare(&found, &expected, broken);
    }
}

/// The daemon has the same outputs.
#[test]
fn changes_with_a_daemon() {
    let Some(_session) = example::session() else { return };
    let told = |broken: Option<Broken>| {
        let bus = Bus::start()?;
        let command = |program: &str| broken.map_or_else(|| usual(program), |broken| broken.command(program));
        let mut daemon = bus.connect(command(DAEMON));
        fs::write(bus.config(), "").unwrap();
        daemon.arg("--config").arg(bus.config());
        if let Some(broken) = broken {
            broken.set(&mut daemon);
        }
        let _daemon = bus.ready(daemon);
        Some(tell(&WITH_DAEMON, &bus.config(), |program| {
            let mut command = command(program);
            command.env("DBUS_SYSTEM_BUS_ADDRESS", bus.address());
            command
        }))
    };
    let Some(expected) = told(None) else { return };
    let failed: Vec<&Told> = expected.iter().filter(|(_, status, _)| *status != Some(0)).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    for broken in BROKEN {
        compare(&told(Some(broken)).unwrap(), &expected, broken);
    }
}
