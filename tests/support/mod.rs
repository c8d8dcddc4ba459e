//! Common helpers: running programs, skipping tests, access to the real kernel.
// Each test program uses only a part of it.
#![allow(dead_code)]

pub mod dead_fuse;
pub mod described;
pub mod example;
pub mod figures;
pub mod holder;
pub mod import;
pub mod introspection;
pub mod kept;
pub mod killer;
pub mod maintenance;
pub mod mounted;
pub mod operations;
pub mod outputs;
pub mod polkit;
pub mod private_bus;
pub mod ramdisk;
pub mod raw;
pub mod session;
pub mod skips;
pub mod validator;
pub mod verdict;

use std::fmt::Debug;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use engine::work::Stopped;
use host::Host;
use host::linux::LinuxHost;
use logic::device::attribute::Attribute;
use logic::finding::Finding;
use rustix::fs::{FlockOperation, flock};
pub use skips::skip;

use crate::command_for;

/// Our programs. Tests start them with `program` of their test program.
pub const CTL: &str = env!("CARGO_BIN_EXE_zramdctl");
pub const DAEMON: &str = env!("CARGO_BIN_EXE_zramd");
pub const SETUP: &str = env!("CARGO_BIN_EXE_zramd-setup");
pub const WORKER: &str = env!("CARGO_BIN_EXE_zramd-worker");

/// Runs `zramd-setup` with these arguments.
pub fn setup(words: &[&str]) -> Output {
    command_for(SETUP).args(words).output().unwrap()
}

/// Writes an executable shell script. A child process writes it: the kernel refuses to execute a file that is open for
/// writing, and children forked by other threads at that time inherit the descriptor until they call exec.
pub fn write_program(path: &Path, text: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", "printf '%s' \"$1\" >\"$0\" && chmod 755 \"$0\""]).arg(path).arg(text);
    assert!(command.status().unwrap().success());
}

/// Copies a program in the same way.
pub fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

/// Standard output and standard error as text.
pub fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Runs a measurement, repeatedly while it is postponed because the machine is busy, for example with other tests.
pub fn in_a_better_moment<T: Debug>(mut measure: impl FnMut() -> Result<T, Stopped>) -> T {
    let mut result = None;
    within(UNTIL_QUIET, "a quiet moment", || {
        result = match measure() {
            Err(Stopped::Postponed(_)) => None,
            result => Some(result.unwrap()),
        };
        result.is_some()
    });
    result.unwrap()
}

/// The same for `zramdctl bench run` with these arguments.
pub fn bench_run(words: &[&str]) -> Output {
    let mut output = None;
    within(UNTIL_QUIET, "a quiet moment", || {
        let mut command = command_for(CTL);
        let run = command.args(["bench", "run"]).args(words).output().unwrap();
        let work = std::fs::read_to_string("/run/zramd/work/benchmark.json").unwrap_or_default();
        let work: serde_json::Value = serde_json::from_str(&work).unwrap_or_default();
        let is_postponed = !run.status.success() && work["result"] == "postponed";
        output = Some(run);
        !is_postponed
    });
    output.unwrap()
}

/// Path of a file in the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Whether tests that change the running kernel can run; otherwise says that the test is skipped.
#[track_caller]
pub fn can_use_real_kernel() -> bool {
    let privileged = rustix::process::geteuid().is_root();
    let zram = Path::new("/sys/class/zram-control").is_dir();
    match (privileged, zram, in_use()) {
        (true, true, None) => return true,
        (false, ..) => skip("needs root"),
        (true, false, _) => skip("needs a kernel with zram loaded"),
        (true, true, Some(why)) => skip(&format!("needs a machine that does not use zram or zramd: {why}")),
    }
    false
}

/// What the machine uses of zram or zramd, apart from tests: it stays as it is. Looked up once, before a test of this program
/// changes it, and while those of other programs do not.
fn in_use() -> Option<&'static str> {
    static IN_USE: OnceLock<Option<String>> = OnceLock::new();
    let look = || {
        let _lock = locked_file(FlockOperation::LockExclusive);
        let host = LinuxHost::new("/");
        for number in host.device_numbers().unwrap_or_default() {
            if host.read_attribute(number, Attribute::DiskSize).is_ok_and(|size| size.trim() != "0") {
                return Some(format!("zram{number} is set up"));
            }
        }
        if let Some(target) = engine::gather::records(&host).unwrap_or_default().keys().next() {
            return Some(format!("{target} is set up"));
        }
        let overrides = "/run/zramd/zramd.toml.d";
        let mut found = std::fs::read_dir(overrides).into_iter().flatten();
        found.next().map(|_| format!("{overrides} is not empty"))
    };
    IN_USE.get_or_init(look).as_deref()
}

/// Whether a test may mount, in a directory of its own; otherwise says that it is skipped.
#[track_caller]
pub fn may_mount() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip("needs root");
    }
    is_root
}

/// Exclusive use of the machine, for tests that change what others see; `None`, and the test is skipped, without root.
#[track_caller]
pub fn alone() -> Option<File> {
    may_mount().then(real_kernel_lock)
}

/// The distribution's Python. The first one in `PATH` may be the script of a version manager, which takes ten times as long to
/// start, and lacks the distribution's modules.
pub const PYTHON: &str = "/usr/bin/python3";

/// A program in `PATH`, or at an absolute path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// Whether there is such a program.
pub fn has_program(name: &str) -> bool {
    find_program(name).is_some()
}

/// Time limit of [`eventually`], much longer than necessary because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time limit for other work on the machine to end: measurements are postponed until then.
const UNTIL_QUIET: Duration = Duration::from_secs(300);

/// Pause before the next poll: a twentieth of the time so far.
fn pause(begun: Instant) -> Duration {
    Duration::from_millis(2) + begun.elapsed() / 20
}

/// Polls until `look` returns true; panics with `what` at the time limit. For state without notification.
#[track_caller]
pub fn eventually(what: &str, is_true: impl FnMut() -> bool) {
    within(PATIENCE, what, is_true);
}

#[track_caller]
fn within(limit: Duration, what: &str, mut is_true: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(pause(begun));
    }
}

/// As [`eventually`], with an asynchronous `look`, whose result is returned.
pub async fn eventually_some<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(pause(begun)).await;
    }
}

/// Serialises tests that change the running kernel, across test programs and working trees.
pub fn real_kernel_lock() -> File {
    locked(FlockOperation::LockExclusive)
}

/// Prevents such tests, but not others that hold this lock.
pub fn no_changes_lock() -> File {
    locked(FlockOperation::LockShared)
}

fn locked(how: FlockOperation) -> File {
    in_use();
    locked_file(how)
}

fn locked_file(how: FlockOperation) -> File {
    let path = std::env::temp_dir().join("zramd-tests.lock");
    // Another user may have made it.
    let file = File::open(&path).or_else(|_| File::create(&path)).unwrap();
    flock(&file, how).unwrap();
    file
}

/// Whether the record of a device for measuring names it, so that it is removed after a kill.
pub fn scratch_is_recorded() -> bool {
    let entries = std::fs::read_dir("/run/zramd").into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut scratch = paths.filter(|path| path.extension().is_some_and(|extension| extension == "scratch"));
    scratch.any(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("remove-device")))
}

/// Compares text with a golden file. `UPDATE_GOLDEN=1` writes the file; a missing file counts as outdated.
#[track_caller]
pub fn golden(path: &str, found: &str) {
    let file = repository(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, found).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    let same = found.lines().zip(expected.lines()).take_while(|(new, old)| new == old).count();
    let [new, old] = [found, &expected].map(|text| text.lines().nth(same).unwrap_or("(end)"));
    assert!(
        found == expected,
        "{path}:{}: not current; UPDATE_GOLDEN=1 writes it anew\n  old: {old}\n  new: {new}",
        same + 1
    );
}

/// A configuration and its problems, for a golden file.
pub fn mistake(text: &str, problems: &[Finding]) -> String {
    let lines = problems.iter().map(|problem| format!("    {}\n", problem.one_line()));
    format!("{}\n{}\n", text.trim_end(), lines.collect::<String>())
}
