//! Running `zramd-worker` as a child, with the privileges of the caller.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::job::Meter;
use engine::{Error, ErrorKind, scratch};
use host::Host;
use host::linux::process::{self, Pidfd};
use host::linux::{LinuxHost, interrupt, work};
use logic::duration::micros;
use logic::order::Order;
use logic::work::Work;

/// The absolute form of a path, for a process with another working directory.
pub fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|error| Error::failed(format!("{}: {error}", path.display())))
}

/// This machine, if we may change it.
pub fn privileged(doing: &str) -> Result<LinuxHost, Error> {
    let host = LinuxHost::new("/");
    if host.is_privileged() {
        return Ok(host);
    }
    Err(Error::new(ErrorKind::NotPermitted, format!("{doing} needs root")))
}

/// Polling interval.
const LOOK: Duration = Duration::from_millis(25);

/// Carries out `order` with `zramd-worker`, and returns its result. Progress is drawn on a terminal; Ctrl-C ends the worker
/// early. Remains of a killed worker are removed.
pub fn run<D: DeserializeOwned + Default>(order: &Order, doing: &str) -> Result<D, Error> {
    let words = order.words();
    let words = words.map_err(|error| Error::new(ErrorKind::InvalidArgument, format!("{doing}: {error}")))?;
    let name = order.work();
    let mut host = privileged(doing)?;
    interrupt::watch();
    let asked = micros(host.monotonic());
    let failed = |error: std::io::Error| Error::failed(format!("run zramd-worker: {error}"));
    let mut child =
        process::worker().args(words).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut meter = Meter::new(doing);
    let mut running = Pidfd::of(&child);
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        // Once.
        if let Some(worker) = running.take_if(|_| interrupt::is_asked()) {
            worker.terminate();
        }
        if let Some(work) = read::<serde::de::IgnoredAny>(&name, asked) {
            meter.share(work.progress);
        }
        meter.draw();
        std::thread::sleep(LOOK);
    };
    meter.clear();
    // One line, which fits into the pipe buffer.
    let reply = child.stdout.take().map(serde_json::from_reader::<_, Result<String, Error>>);
    match reply {
        Some(Ok(Err(error))) => Err(error),
        Some(Ok(Ok(_))) => {
            let work = read::<D>(&name, asked);
            work.map(|work| work.detail).ok_or_else(|| Error::failed("zramd-worker wrote no result"))
        }
        _ => {
            let ended = Error::failed(format!("zramd-worker: {status}, without a reply"));
            Err(scratch::sweep_now(&mut host).err().into_iter().fold(ended, Error::join))
        }
    }
}

/// The state file of the work, unless it is older than `asked`.
fn read<D: DeserializeOwned + Default>(name: &str, asked: u64) -> Option<Work<D>> {
    let work: Work<D> = serde_json::from_str(&work::read(Path::new("/"), name)?).ok()?;
    (work.started_monotonic_usec >= asked).then_some(work)
}
