//! Common to all verbs: progress in a file, early end on SIGTERM, exit status.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::work::{Reporter, Stopped};
use engine::{Error, ErrorKind};
use host::linux::interrupt;
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
        warn(private);
    }
    if REPLY.load(Ordering::Relaxed) {
        // Serializing strings does not fail.
        println!("{}", serde_json::to_string(&ended).unwrap_or_default());
    } else {
        match &ended {
            Ok(message) => println!("{message}"),
            Err(error) => eprintln!("{}", worded(format!("zramd-worker: {error}"))),
        }
    }
    ended.map_or_else(Error::exit_status, |_| ExitStatus::Success)
}

/// Prints a warning: to the journal with its priority, or to a terminal.
pub fn warn(text: &str) {
    let journal = std::env::var_os("JOURNAL_STREAM").is_some();
    eprintln!("{}{}", if journal { "<4>" } else { "warning: " }, worded(text));
}

/// Prints a note besides the result.
pub fn note(text: &str) {
    if REPLY.load(Ordering::Relaxed) {
        eprintln!("{}", worded(text));
    } else {
        println!("{}", worded(text));
    }
}

/// Runs `work`, with its progress in `/run/zramd/work/NAME.json`. `work` calls [`Reporter::check`] several times a second.
pub fn run(
    name: &str,
    verb: &str,
    work: impl FnOnce(&mut Reporter) -> Result<String, Stopped>,
) -> ExitStatus {
    run_with(name, verb, false, work)
}

/// As [`run`]; with `keeping`, the details of the previous run stay in the file until they are replaced.
pub fn run_with(
    name: &str,
    verb: &str,
    keeping: bool,
    work: impl FnOnce(&mut Reporter) -> Result<String, Stopped>,
) -> ExitStatus {
    interrupt::watch();
    let mut reporter = match Reporter::begin_with(Path::new("/"), name, verb, keeping) {
        Ok(reporter) => reporter,
        Err(error) => return report(&Err(error)),
    };
    let ended = work(&mut reporter);
    end(reporter, &ended)
}

/// Reports the result of work, also in its file. Cancelled or postponed work is not an error: its exit status is 0.
pub fn end(reporter: Reporter, ended: &Result<String, Stopped>) -> ExitStatus {
    if let Err(error) = reporter.end(ended) {
        return report(&Err(error));
    }
    let stopped = |kind, message: &String| {
        report(&Err(Error::new(kind, message)));
        ExitStatus::Success
    };
    match ended {
        Ok(message) => report(&Ok(message.clone())),
        Err(Stopped::Failed(error)) => report(&Err(error.clone())),
        Err(Stopped::Cancelled(message)) => stopped(ErrorKind::Cancelled, message),
        Err(Stopped::Postponed(message)) => stopped(ErrorKind::Postponed, message),
    }
}
