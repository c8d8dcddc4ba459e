//! The list of the tests that did not run in this run of `cargo test`, which `tests/skipped.rs` prints at its end: libtest
//! counts them as passed, and shows the output of failed tests only.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// What the names of lists begin with.
pub const PREFIX: &str = "zramd-tests-skipped-";

/// The list of this run: of the process that started this test program, at the time when that process began.
pub fn list() -> PathBuf {
    let parent = std::os::unix::process::parent_id();
    let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
    let begun = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(19)).unwrap_or("0");
    std::env::temp_dir().join(format!("{PREFIX}{parent}-{begun}"))
}

/// Whether every test has to run: in CI, as root, with zram.
fn must_run() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
        && rustix::process::geteuid().is_root()
        && std::path::Path::new("/sys/class/zram-control").is_dir()
}

/// Says that the calling test, or a part of it, does not run, and why. Where it could run, in CI, it fails.
#[track_caller]
pub fn skip(reason: &str) {
    assert!(!must_run(), "required, but it {reason}");
    let thread = std::thread::current();
    let test = thread
        .name()
        .filter(|name| *name != "main")
        .map_or_else(|| std::panic::Location::caller().to_string(), str::to_owned);
    // Not `eprintln!`, which libtest captures.
    host::out::note(&format!("skipped: {test}: {reason}"));
    let mut list = File::options().create(true).append(true).open(list()).unwrap();
    list.write_all(format!("{test}\t{reason}\n").as_bytes()).unwrap();
}
