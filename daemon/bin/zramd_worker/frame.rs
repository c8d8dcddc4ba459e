//! What every verb has in common: progress in a file, an early end on SIGTERM, an exit status.

use std::path::Path;

use zramd::engine::work::{Reporter, Stopped};
use zramd::host::linux::interrupt;
use zramd::logic::exit::ExitStatus;

/// Does `work`, whose progress is in `/run/zramd/work/NAME.json`. It looks at [`Reporter::check`] several times a second.
pub fn run(
    name: &str,
    verb: &str,
    work: impl FnOnce(&mut Reporter) -> Result<String, Stopped>,
) -> ExitStatus {
    run_with(name, verb, false, work)
}

/// As [`run`]; with `keeping`, the details of the last time stay in the file until there are others.
pub fn run_with(
    name: &str,
    verb: &str,
    keeping: bool,
    work: impl FnOnce(&mut Reporter) -> Result<String, Stopped>,
) -> ExitStatus {
    interrupt::watch();
    let mut reporter = match Reporter::begin_with(Path::new("/"), name, verb, keeping) {
        Ok(reporter) => reporter,
        Err(error) => {
            eprintln!("zramd-worker: {error}");
            return error.exit_status();
        }
    };
    let ended = work(&mut reporter);
    end(reporter, &ended)
}

/// Says how work has ended, also in its file.
pub fn end(reporter: Reporter, ended: &Result<String, Stopped>) -> ExitStatus {
    let status = match ended {
        // Nothing is wrong with work that was cancelled or postponed: its unit has not failed.
        Ok(message) | Err(Stopped::Cancelled(message) | Stopped::Postponed(message)) => {
            println!("{message}");
            ExitStatus::Success
        }
        Err(Stopped::Failed(error)) => {
            eprintln!("zramd-worker: {error}");
            error.exit_status()
        }
    };
    match reporter.end(ended) {
        Ok(_) => status,
        Err(error) => {
            eprintln!("zramd-worker: {error}");
            error.exit_status()
        }
    }
}
