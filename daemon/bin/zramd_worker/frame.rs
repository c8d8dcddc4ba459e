//! Common to all verbs: progress in a file, early end on SIGTERM, exit status.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::work::{Reporter, Stopped};
use engine::{Error, ErrorKind};
use host::linux::interrupt;
use host::out;
use logic::exit::ExitStatus;
use logic::text::worded;

/// Whether the calling program reads a reply ([`host::linux::process::ask`]).
static REPLY: AtomicBool = AtomicBool::new(false);

/// From now on, [`report`] writes JSON.
pub fn reply() {
    REPLY.store(true, Ordering::Relaxed);
}

/// Reports a result: as text, or as the reply to another program.
pub fn report(ended: &Result<String, Error>) -> ExitStatus {
    let ended = ended.as_ref().map(|message| worded(message.as_str()));
    if let Err(Error { private, .. }) = &ended
        && !private.is_empty()
    {
        out::warning(private);
    }
    if REPLY.load(Ordering::Relaxed) {
        // Serializing strings does not fail.
        out::reply(&(serde_json::to_string(&ended).unwrap_or_default() + "\n"));
    } else {
        match &ended {
            Ok(message) => out::line(message),
            Err(error) => out::note(&format!("zramd-worker: {error}")),
        }
    }
    ended.map_or_else(Error::exit_status, |_| ExitStatus::Success)
}

/// Prints a note besides the result.
pub fn note(text: &str) {
    if REPLY.load(Ordering::Relaxed) {
        out::note(text);
    } else {
        out::line(&worded(text));
    }
}

/// Runs `work`, with its progress in `/run/zramd/work/NAME.json`. `work` calls [`Reporter::check`] several times a second.
pub fn run(
    name: &str,
    verb: &str,
    work: impl FnOnce(&mut Reporter) -> Result<String, Stopped>,
) -> ExitStatus {
    run_with(|| Reporter::begin(Path::new("/"), name, verb), work)
}

/// As [`run`], but after the work of this name that is in progress ([`Reporter::begin_after`]).
pub fn run_after(
    name: &str,
    verb: &str,
    work: impl FnOnce(&mut Reporter) -> Result<String, Stopped>,
) -> ExitStatus {
    run_with(|| Reporter::begin_after(Path::new("/"), name, verb), work)
}

fn run_with(
    begin: impl FnOnce() -> Result<Reporter, Error>,
    work: impl FnOnce(&mut Reporter) -> Result<String, Stopped>,
) -> ExitStatus {
    interrupt::watch();
    match begin() {
        Ok(mut reporter) => {
            let ended = work(&mut reporter);
            end(reporter, &ended)
        }
        Err(error) if error.kind == ErrorKind::Cancelled => end_early(error),
        Err(error) => report(&Err(error)),
    }
}

/// Cancelled or postponed work is not an error.
fn end_early(error: Error) -> ExitStatus {
    report(&Err(error));
    ExitStatus::Success
}

/// Reports the result of work, also in its file. Cancelled or postponed work is not an error: its exit status is 0. A file
/// that cannot be written does not change the result.
pub fn end(reporter: Reporter, ended: &Result<String, Stopped>) -> ExitStatus {
    if let Err(error) = reporter.end(ended) {
        out::warning(&error.message);
    }
    match ended {
        Ok(message) => report(&Ok(message.clone())),
        Err(Stopped::Failed(error)) => report(&Err(error.clone())),
        Err(Stopped::Cancelled(message)) => end_early(Error::new(ErrorKind::Cancelled, message)),
        Err(Stopped::Postponed(message)) => end_early(Error::new(ErrorKind::Postponed, message)),
    }
}
