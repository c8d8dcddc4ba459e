//! What can go wrong while a plan is carried out.

use crate::host::{Cause, Errno, Holder, HostError};
use crate::logic::exit::ExitStatus;
use crate::logic::plan::Kind;
use crate::logic::record::{Damaged, Target};

/// One failure: one sentence that names the object, with its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What kind of failure.
    pub kind: ErrorKind,
    /// The sentence.
    pub message: String,
}

/// The kind of a failure, which decides the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The kernel or a program refused.
    Failed,
    /// There is no such target.
    NotFound,
    /// The kernel lacks it.
    Unsupported,
    /// It would hurt.
    Unsafe,
    /// We may not.
    NotPermitted,
    /// The configuration is wrong.
    Config,
    /// Somebody else set it up.
    Unmanaged,
    /// Memory could not take what is in a swap.
    InsufficientMemory,
    /// Somebody uses it.
    InUse,
    /// A RAM disk is too small for what belongs on it.
    DiskFull,
    /// There is no room where snapshots are kept.
    StoreFull,
    /// A snapshot is broken.
    SnapshotCorrupt,
    /// A RAM disk was not loaded, so it is not saved either.
    NotLoaded,
}

impl ErrorKind {
    /// The last part of its name on the bus, which is also its word in files.
    pub const fn word(self) -> &'static str {
        match self {
            ErrorKind::Failed => "Failed",
            ErrorKind::NotFound => "NotFound",
            ErrorKind::Unsupported => "NotSupported",
            ErrorKind::Unsafe => "Unsafe",
            ErrorKind::NotPermitted => "AccessDenied",
            ErrorKind::Config => "ConfigInvalid",
            ErrorKind::Unmanaged => "Unmanaged",
            ErrorKind::InsufficientMemory => "InsufficientMemory",
            ErrorKind::InUse => "InUse",
            ErrorKind::DiskFull => "DiskFull",
            ErrorKind::StoreFull => "StoreFull",
            ErrorKind::SnapshotCorrupt => "SnapshotCorrupt",
            ErrorKind::NotLoaded => "NotLoaded",
        }
    }
}

impl Error {
    /// A failure of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }

    /// A plain failure.
    pub fn failed(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Failed, message)
    }

    /// A target whose record cannot be used.
    pub fn damaged(damaged: &Damaged) -> Error {
        let name = damaged.target.as_ref().map_or_else(|| damaged.file.clone(), Target::to_string);
        Error::new(ErrorKind::Unsafe, format!("{name}: {damaged}; {}", damaged.remedy()))
    }

    /// What `zramd-worker` has said, which is a whole sentence.
    pub fn of_worker(error: HostError) -> Error {
        match error.cause {
            Cause::Text(said) => Error::failed(said),
            Cause::Errno(_) | Cause::Locked { .. } => error.into(),
        }
    }

    /// Both in one sentence, with the kind of the first.
    #[must_use]
    pub fn join(mut self, Error { message, .. }: Error) -> Error {
        self.message.push_str("; ");
        self.message.push_str(&message);
        self
    }

    /// The exit status for this failure alone.
    pub fn exit_status(&self) -> ExitStatus {
        match self.kind {
            ErrorKind::Failed | ErrorKind::Config | ErrorKind::InUse | ErrorKind::SnapshotCorrupt => {
                ExitStatus::Failure
            }
            ErrorKind::NotFound => ExitStatus::NotFound,
            ErrorKind::Unsupported => ExitStatus::Unsupported,
            ErrorKind::Unsafe
            | ErrorKind::Unmanaged
            | ErrorKind::InsufficientMemory
            | ErrorKind::DiskFull
            | ErrorKind::StoreFull
            | ErrorKind::NotLoaded => ExitStatus::Refused,
            ErrorKind::NotPermitted => ExitStatus::NotPermitted,
        }
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

impl From<HostError> for Error {
    fn from(error: HostError) -> Error {
        let kind = match &error.cause {
            Cause::Errno(Errno::PERM | Errno::ACCES | Errno::ROFS) => ErrorKind::NotPermitted,
            Cause::Locked { .. } => ErrorKind::InUse,
            _ => ErrorKind::Failed,
        };
        Error::new(kind, error.to_string())
    }
}

impl From<Kind> for ErrorKind {
    fn from(kind: Kind) -> ErrorKind {
        match kind {
            Kind::Config => ErrorKind::Config,
            Kind::Unsupported => ErrorKind::Unsupported,
            Kind::Unsafe => ErrorKind::Unsafe,
        }
    }
}
