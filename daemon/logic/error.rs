//! Errors: the kinds, with exit status and bus name of each.
//!
//! An [`Error`] passes between the programs of zramd as JSON and over the bus by name, so its kind reaches the user
//! unchanged. The message is for people: no program interprets it.

use serde::{Deserialize, Serialize};

use super::exit::ExitStatus;
use super::text::worded;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The kernel or a program failed.
    Failed,
    /// There is no such device, RAM disk or job.
    NotFound,
    /// An argument is invalid.
    InvalidArgument,
    /// The configuration is invalid; the old one stays.
    Config,
    /// Not supported by this kernel or machine.
    Unsupported,
    /// Refused: memory would run out, or another program or target is in the way.
    Unsafe,
    /// Contents would be lost. The same request with `force` is carried out.
    LosesContents,
    /// Memory cannot take the contents of the swap.
    InsufficientMemory,
    /// Another program set the device up.
    Unmanaged,
    /// The device or RAM disk is in use.
    InUse,
    /// Another request is in progress for it.
    Busy,
    /// A RAM disk is too small for its contents.
    DiskFull,
    /// The file system of the snapshots is full.
    StoreFull,
    /// A snapshot is damaged.
    SnapshotCorrupt,
    /// A RAM disk was not loaded, so it is not saved either.
    NotLoaded,
    /// The caller asked for too much at once.
    LimitExceeded,
    /// The request was cancelled.
    Cancelled,
    /// The machine is busy; the work is tried again later.
    Postponed,
    /// Permission denied.
    NotPermitted,
    /// The daemon, or the bus, is not running.
    NotRunning,
    /// Some of several targets failed.
    Partly,
}

/// All kinds with bus name and exit status. If a bus name occurs more than once, the first entry is used to parse it.
const TABLE: &[(ErrorKind, &str, ExitStatus)] = &[
    (ErrorKind::Failed, "org.zramd1.Error.Failed", ExitStatus::Failure),
    (ErrorKind::NotFound, "org.zramd1.Error.NotFound", ExitStatus::NotFound),
    (ErrorKind::InvalidArgument, "org.zramd1.Error.InvalidArgument", ExitStatus::Usage),
    (ErrorKind::Config, "org.zramd1.Error.ConfigInvalid", ExitStatus::Failure),
    (ErrorKind::Unsupported, "org.zramd1.Error.NotSupported", ExitStatus::Unsupported),
    (ErrorKind::Unsafe, "org.zramd1.Error.Unsafe", ExitStatus::Refused),
    (ErrorKind::LosesContents, "org.zramd1.Error.LosesContents", ExitStatus::Refused),
    (ErrorKind::InsufficientMemory, "org.zramd1.Error.InsufficientMemory", ExitStatus::Refused),
    (ErrorKind::Unmanaged, "org.zramd1.Error.Unmanaged", ExitStatus::Refused),
    (ErrorKind::InUse, "org.zramd1.Error.InUse", ExitStatus::Failure),
    (ErrorKind::Busy, "org.zramd1.Error.Busy", ExitStatus::Failure),
    (ErrorKind::DiskFull, "org.zramd1.Error.DiskFull", ExitStatus::Refused),
    (ErrorKind::StoreFull, "org.zramd1.Error.StoreFull", ExitStatus::Refused),
    (ErrorKind::SnapshotCorrupt, "org.zramd1.Error.SnapshotCorrupt", ExitStatus::Failure),
    (ErrorKind::NotLoaded, "org.zramd1.Error.NotLoaded", ExitStatus::Refused),
    (ErrorKind::LimitExceeded, "org.zramd1.Error.LimitExceeded", ExitStatus::Failure),
    (ErrorKind::Cancelled, "org.zramd1.Error.Cancelled", ExitStatus::Failure),
    (ErrorKind::Postponed, "org.zramd1.Error.Postponed", ExitStatus::Failure),
    (ErrorKind::NotPermitted, "org.freedesktop.DBus.Error.AccessDenied", ExitStatus::NotPermitted),
    (ErrorKind::NotRunning, "org.freedesktop.DBus.Error.ServiceUnknown", ExitStatus::NotRunning),
    (ErrorKind::Partly, "org.zramd1.Error.Partly", ExitStatus::Partly),
    // Names used only by the bus or its library.
    (ErrorKind::NotRunning, "org.freedesktop.DBus.Error.NameHasNoOwner", ExitStatus::NotRunning),
    (ErrorKind::NotRunning, "org.freedesktop.DBus.Error.NoServer", ExitStatus::NotRunning),
    (ErrorKind::NotPermitted, "org.freedesktop.DBus.Error.AuthFailed", ExitStatus::NotPermitted),
    (
        ErrorKind::NotPermitted,
        "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
        ExitStatus::NotPermitted,
    ),
    (ErrorKind::Unsupported, "org.freedesktop.DBus.Error.NotSupported", ExitStatus::Unsupported),
    (ErrorKind::Unsupported, "org.freedesktop.DBus.Error.UnknownMethod", ExitStatus::Unsupported),
    (ErrorKind::InvalidArgument, "org.freedesktop.DBus.Error.InvalidArgs", ExitStatus::Usage),
    (ErrorKind::NotFound, "org.freedesktop.DBus.Error.UnknownObject", ExitStatus::NotFound),
    (ErrorKind::NotFound, "org.freedesktop.DBus.Error.UnknownInterface", ExitStatus::NotFound),
];

impl ErrorKind {
    /// All kinds with their bus names, for documentation and tests.
    pub fn all() -> impl Iterator<Item = (ErrorKind, &'static str)> {
        let mut seen = std::collections::BTreeSet::new();
        TABLE.iter().filter(move |(kind, ..)| seen.insert(*kind)).map(|(kind, name, _)| (*kind, *name))
    }

    fn row(self) -> &'static (ErrorKind, &'static str, ExitStatus) {
        TABLE.iter().find(|(kind, ..)| *kind == self).unwrap_or(&TABLE[0])
    }

    /// The exit status for this error.
    pub fn exit_status(self) -> ExitStatus {
        self.row().2
    }

    /// The bus name.
    pub fn on_the_bus(self) -> &'static str {
        self.row().1
    }

    /// The kind for a bus name; [`ErrorKind::Failed`] if it is unknown.
    pub fn of_bus(name: &str) -> ErrorKind {
        TABLE.iter().find(|(_, known, _)| *known == name).map_or(ErrorKind::Failed, |(kind, ..)| *kind)
    }

    /// Whether the error is due to the request or its timing, as opposed to a problem of the machine.
    pub fn is_slip(self) -> bool {
        matches!(
            self,
            ErrorKind::NotFound
                | ErrorKind::InvalidArgument
                | ErrorKind::Unsafe
                | ErrorKind::LosesContents
                | ErrorKind::Config
                | ErrorKind::Unmanaged
                | ErrorKind::Busy
        )
    }
}

/// An error: its kind, and one sentence that names the object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    /// The sentence. It is public: on the bus and in `/run/zramd`.
    pub message: String,
    /// Details for root only, such as names of files: printed by the program in which the error occurs, but not passed
    /// on. Often empty.
    #[serde(skip)]
    pub private: String,
}

impl Error {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: worded(message), private: String::new() }
    }

    /// An error of kind [`ErrorKind::Failed`].
    pub fn failed(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Failed, message)
    }

    /// Joins the sentences of both; the kind is that of the first.
    #[must_use]
    pub fn join(mut self, Error { message, private, .. }: Error) -> Error {
        append(&mut self.message, &message);
        append(&mut self.private, &private);
        self
    }

    /// Adds details for root only.
    #[must_use]
    pub fn with_private(mut self, text: impl Into<String>) -> Error {
        self.private = worded(text);
        self
    }

    /// The sentence with the details for root.
    pub fn full(&self) -> String {
        let mut full = self.message.clone();
        append(&mut full, &self.private);
        full
    }

    /// The exit status for this error.
    pub fn exit_status(&self) -> ExitStatus {
        self.kind.exit_status()
    }
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str("; ");
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_name_and_one_status() {
        for (kind, name) in ErrorKind::all() {
            assert_eq!(ErrorKind::of_bus(name), kind, "{name}");
            let statuses =
                TABLE.iter().filter(|(other, ..)| *other == kind).map(|(.., status)| status.code());
            assert!(statuses.into_iter().all(|code| code == kind.exit_status().code()), "{name}");
        }
        assert_eq!(ErrorKind::all().count(), ErrorKind::Partly as usize + 1);
        assert_eq!(ErrorKind::of_bus("org.example.Unheard"), ErrorKind::Failed);
    }

    #[test]
    fn the_statuses_are_what_scripts_depend_on() {
        for (kind, code) in [
            (ErrorKind::Failed, 1),
            (ErrorKind::Config, 1),
            (ErrorKind::InvalidArgument, 2),
            (ErrorKind::NotFound, 4),
            (ErrorKind::Unsupported, 5),
            (ErrorKind::Unsafe, 7),
            (ErrorKind::LosesContents, 7),
            (ErrorKind::InsufficientMemory, 7),
            (ErrorKind::Unmanaged, 7),
            (ErrorKind::NotRunning, 69),
            (ErrorKind::NotPermitted, 77),
        ] {
            assert_eq!(kind.exit_status().code(), code, "{kind:?}");
        }
    }

    #[test]
    fn sentences_are_joined_and_what_only_root_may_read_stays_apart() {
        let second = Error::new(ErrorKind::Busy, "zram1 is busy").with_private("/srv/x: EIO");
        let both = Error::failed("zram0 failed").join(second);
        assert_eq!((both.kind, both.message.as_str()), (ErrorKind::Failed, "zram0 failed; zram1 is busy"));
        assert_eq!(both.private, "/srv/x: EIO");
        assert_eq!(both.full(), "zram0 failed; zram1 is busy; /srv/x: EIO");
        assert_eq!(Error::failed("zram0 failed").full(), "zram0 failed");
    }

    #[test]
    fn what_another_request_would_avoid_is_no_problem_of_the_machine() {
        for (kind, is_slip) in [
            (ErrorKind::NotFound, true),
            (ErrorKind::LosesContents, true),
            (ErrorKind::Busy, true),
            (ErrorKind::Failed, false),
            (ErrorKind::StoreFull, false),
            (ErrorKind::SnapshotCorrupt, false),
        ] {
            assert_eq!(kind.is_slip(), is_slip, "{kind:?}");
        }
    }
}
