//! Errors of the host as errors of the engine.

use crate::host::{Holder, HostError};
pub use crate::logic::error::{Error, ErrorKind};
use crate::logic::record::{Damaged, Target};

impl Error {
    /// A target whose record cannot be used.
    pub fn damaged(damaged: &Damaged) -> Error {
        let name = damaged.target.as_ref().map_or_else(|| damaged.file.clone(), Target::to_string);
        Error::new(ErrorKind::Unsafe, format!("{name}: {damaged}; {}", damaged.remedy()))
    }

    /// A verb that stayed busy, with those who are to blame.
    pub fn busy(error: &HostError, holders: &[Holder]) -> Error {
        let blame: Vec<String> = holders.iter().map(Holder::to_string).collect();
        let blame = match blame.as_slice() {
            [] => "nobody is seen holding it; look at `lsblk` and at other mount namespaces".to_owned(),
            names => format!("held open by {}", names.join(", ")),
        };
        Error::in_use(error, &blame)
    }

    /// A verb that stayed busy, and why.
    pub fn in_use(error: &HostError, why: &str) -> Error {
        Error::new(ErrorKind::InUse, format!("{error}: {why}"))
    }
}
