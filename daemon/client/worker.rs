//! Having `zramd-worker` measure something, as a child: the right to do so is our own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::job::Meter;
use crate::engine::{Error, ErrorKind};
use crate::host::Host;
use crate::host::linux::{LinuxHost, interrupt, work};
use crate::logic::duration::micros;
use crate::logic::work::{Outcome, Work, ending};

/// A path that others with another working folder find.
pub fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|error| Error::failed(format!("{}: {error}", path.display())))
}

/// How often we look whether it has ended.
const LOOK: Duration = Duration::from_millis(25);

/// Does the work `name` with `zramd-worker VERB WORD…`, and returns what it found. Progress is drawn on a terminal; Ctrl-C ends
/// it early.
pub fn run<D: DeserializeOwned + Default>(
    name: &str,
    verb: &str,
    words: &[OsString],
    doing: &str,
) -> Result<D, Error> {
    let host = LinuxHost::new("/");
    if !host.is_privileged() {
        return Err(Error::new(ErrorKind::NotPermitted, format!("{doing} needs root")));
    }
    interrupt::watch();
    let asked = micros(host.monotonic());
    let failed = |error: std::io::Error| Error::failed(format!("run zramd-worker: {error}"));
    let mut child = Command::new(program())
        .arg(verb)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut meter = Meter::new(doing);
    let mut told = false;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if interrupt::is_asked() && !told {
            told = true;
            interrupt::ask(child.id());
        }
        if let Some(work) = read::<serde::de::IgnoredAny>(name, asked) {
            meter.share(work.progress);
        }
        meter.draw();
        std::thread::sleep(LOOK);
    };
    meter.clear();
    let kind = kind(status);
    let Some(work) = read::<D>(name, asked) else {
        let said = std::io::read_to_string(child.stderr.take().ok_or_else(|| failed(gone()))?);
        let said = said.unwrap_or_default();
        let said = said.lines().next().unwrap_or("zramd-worker said nothing");
        return Err(Error::new(kind, said.trim_start_matches("zramd-worker: ")));
    };
    match ending(Some(&work), asked) {
        (Outcome::Done, _) => Ok(work.detail),
        (_, message) => Err(Error::new(kind, message)),
    }
}

fn gone() -> std::io::Error {
    std::io::ErrorKind::BrokenPipe.into()
}

/// The file of the work, unless it is older than the question.
fn read<D: DeserializeOwned + Default>(name: &str, asked: u64) -> Option<Work<D>> {
    let work: Work<D> = serde_json::from_str(&work::read(Path::new("/"), name)?).ok()?;
    (work.started_monotonic_usec >= asked).then_some(work)
}

/// What it failed with, by its exit status.
pub fn kind(status: std::process::ExitStatus) -> ErrorKind {
    match status.code() {
        Some(4) => ErrorKind::NotFound,
        Some(5) => ErrorKind::Unsupported,
        Some(7) => ErrorKind::Unsafe,
        Some(77) => ErrorKind::NotPermitted,
        _ => ErrorKind::Failed,
    }
}

/// Beside us where everything was built, otherwise where it is installed.
pub fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join("zramd-worker")));
    beside.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from("/usr/lib/zramd/zramd-worker"))
}
