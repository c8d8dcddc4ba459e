//! `zramd-worker places`: makes the directory below which RAM disks are filled, closed to all but root.

use std::ffi::OsString;
use std::path::Path;

use engine::Error;
use host::linux::places;
use logic::exit::ExitStatus;

/// What `--help` says.
pub const HELP: &str = "make the directory below which RAM disks are filled";

/// Does it. `Err` is wrong usage.
pub fn run(arguments: Vec<OsString>) -> Result<ExitStatus, String> {
    if let Some(word) = arguments.into_iter().next() {
        return Err(format!("what is {}?", word.display()));
    }
    Ok(match places::make(Path::new("/")) {
        Ok(()) => ExitStatus::Success,
        Err(error) => {
            let error = Error::from(error);
            eprintln!("zramd-worker: {error}");
            error.exit_status()
        }
    })
}
