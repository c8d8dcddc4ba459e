//! `places`: creates the directory below which RAM disks are filled; only root can enter it.

use std::path::Path;

use engine::Error;
use host::linux::places;
use host::out;
use logic::exit::ExitStatus;

pub fn run() -> ExitStatus {
    match places::make(Path::new("/")) {
        Ok(()) => ExitStatus::Success,
        Err(error) => {
            let error = Error::from(error);
            out::note(&format!("zramd-worker: {error}"));
            error.exit_status()
        }
    }
}
