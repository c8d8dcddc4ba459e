//! A second process that puts the machine back when the one that measures is killed.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::error::Error;
use crate::scratch;
use host::Host;
use host::linux::LinuxHost;
use host::linux::cgroup::MemoryCgroup;
use host::linux::pressed::parent;

/// Verb of `zramd-worker` that it is.
pub const VERB: &str = "bench-guard";
/// How often it looks whether the one who measured is gone entirely.
const LOOK: Duration = Duration::from_millis(5);
/// What it is told when there is nothing to put back.
const ALL_WELL: &[u8] = b".";

/// The guard of this process.
#[derive(Debug)]
pub struct Guard(Child);

impl Guard {
    /// Starts it; from then on what scratch records say, and the cgroup of this name, are taken back however we end.
    pub fn start(cgroup: &str) -> Result<Guard, Error> {
        let failed = |error: std::io::Error| Error::failed(format!("start the guard: {error}"));
        let child = Command::new(ourselves()?)
            .args([VERB, cgroup])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        Ok(Guard(child))
    }

    /// Lets it go: nothing is left to take back.
    pub fn end(mut self) -> Result<(), Error> {
        let told = self.0.stdin.take().map(|mut pipe| pipe.write_all(ALL_WELL));
        match (told, self.0.wait()) {
            (Some(Ok(())), Ok(_)) => Ok(()),
            _ => Err(Error::failed("the guard was gone before its time")),
        }
    }
}

/// What the guard does: waits for the end of whoever started it, and cleans up unless that was a good one.
pub fn run(cgroup: &str) -> Result<(), Error> {
    let measuring = parent();
    let mut told = Vec::new();
    // A signal does not end the waiting: whatever ends us both is sent to both.
    std::io::stdin().read_to_end(&mut told).ok();
    if told == ALL_WELL {
        return Ok(());
    }
    let mut host = LinuxHost::new("/");
    // The pipe may have been closed before the lock on the record was.
    while parent() == measuring {
        host.sleep(LOOK);
    }
    host.lock_run()?;
    let swept = scratch::sweep(&mut host);
    host.unlock_run();
    let removed = MemoryCgroup::find(cgroup).map_or(Ok(()), MemoryCgroup::remove);
    swept?;
    Ok(removed?)
}

/// The name of the cgroup of this process.
pub fn cgroup_name() -> String {
    format!("zramd-bench-{}", std::process::id())
}

/// The program that we are.
pub fn ourselves() -> Result<PathBuf, Error> {
    std::env::current_exe().map_err(|error| Error::failed(format!("find our own program: {error}")))
}
