//! `zramd-worker places`: creates the directory below which RAM disks are filled; only root can enter it.

use std::ffi::OsString;
use std::path::Path;

use engine::Error;
use host::linux::places;
use host::out;
use logic::exit::ExitStatus;

/// Output of `--help`.
pub const HELP: &str = "make the directory below which RAM disks are filled";

/// Runs the verb. `Err` is wrong usage.
pub fn run(arguments: Vec<OsString>) -> Result<ExitStatus, String> {
    if let Some(word) = arguments.into_iter().next() {
        return Err(format!("what is {}?", word.display()));
    }
    Ok(match places::make(Path::new("/")) {
        Ok(()) => ExitStatus::Success,
        Err(error) => {
            let error = Error::from(error);
            out::note(&format!("zramd-worker: {error}"));
            error.exit_status()
        }
    })
}
