//! What several tests need: running the program, and knowing whether the real kernel may be used.
// Each test program uses a part of it.
#![allow(dead_code)]

pub mod described;
pub mod disk;
pub mod figures;
pub mod holder;
pub mod import;
pub mod introspection;
pub mod kept;
pub mod killer;
pub mod operations;
pub mod polkit;
pub mod private_bus;
pub mod raw;
pub mod session;
pub mod upkeep;
pub mod verdict;

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use zramd::engine::work::Stopped;

/// Runs `zramd-setup` with these words.
pub fn setup(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zramd-setup")).args(words).output().unwrap()
}

/// Standard output and standard error as text.
pub fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Measures, again and again while the machine has better things to do: other tests may just have kept it busy.
pub fn in_a_better_moment<T: Debug>(mut measure: impl FnMut() -> Result<T, Stopped>) -> T {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        match measure() {
            Err(Stopped::Postponed(_)) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_secs(1));
            }
            result => return result.unwrap(),
        }
    }
}

/// The same for `zramdctl bench run` with these words.
pub fn bench_run(words: &[&str]) -> Output {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zramdctl"));
        let output = command.args(["bench", "run"]).args(words).output().unwrap();
        let work = std::fs::read_to_string("/run/zramd/work/benchmark.json").unwrap_or_default();
        let work: serde_json::Value = serde_json::from_str(&work).unwrap_or_default();
        let postponed = !output.status.success() && work["result"] == "postponed";
        if !postponed || Instant::now() >= deadline {
            return output;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Whether tests that change the running kernel can run; says why when they cannot. With `ZRAMD_REQUIRE_ROOT_TESTS=1`, as
/// in CI, not being able to is a failure.
pub fn can_use_real_kernel() -> bool {
    let privileged = rustix::process::geteuid().is_root();
    let zram = Path::new("/sys/class/zram-control").is_dir();
    let reason = match (privileged, zram) {
        (true, true) => return true,
        (false, _) => "needs root",
        (true, false) => "needs a kernel with zram loaded",
    };
    skip(reason);
    false
}

/// Says why a test does not run. With `ZRAMD_REQUIRE_ROOT_TESTS=1`, as in CI, that is a failure.
#[track_caller]
pub fn skip(reason: &str) {
    assert!(std::env::var_os("ZRAMD_REQUIRE_ROOT_TESTS").is_none(), "required, but it {reason}");
    eprintln!("skipped: {reason}");
}

/// Whether a program is below `PATH`.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Whether it becomes true within half a minute; for what nothing tells of.
pub fn eventually(mut is_true: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_true() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Serialises tests that change the running kernel, over all test programs.
pub fn real_kernel_lock() -> std::fs::File {
    let file = std::fs::File::create(std::env::temp_dir().join("zramd-tests.lock")).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    file
}

/// Compares text with a file of the repository, which `UPDATE_GOLDEN=1` writes anew. A file that is not there is stale too.
#[track_caller]
pub fn golden(path: &str, found: &str) {
    let file = repository(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, found).unwrap();
    }
    let expected = std::fs::read_to_string(&file).ok();
    assert_eq!(Some(found), expected.as_deref(), "{path} is not current; UPDATE_GOLDEN=1 writes it anew");
}
