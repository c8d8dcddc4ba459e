//! Errors of the host as errors of the engine.

use host::{Holder, HostError};
pub use logic::error::{Error, ErrorKind};

/// The error of an operation that stayed busy, naming the processes that hold the device.
pub fn held_open(error: &HostError, holders: &[Holder]) -> Error {
    let blame: Vec<String> = holders.iter().map(Holder::to_string).collect();
    let blame = match blame.as_slice() {
        [] => "no process was found that holds it; check `lsblk` and other mount namespaces".to_owned(),
        names => format!("held open by {}", names.join(", ")),
    };
    in_use(error, &blame)
}

/// The error of an operation that stayed busy, and why.
pub fn in_use(error: &HostError, why: &str) -> Error {
    Error::new(ErrorKind::InUse, format!("{error}: {why}"))
}
