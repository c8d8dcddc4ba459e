//! The errors that callers see: one table from what went wrong to its name on the bus.

use std::collections::BTreeMap;

use zbus::message::{Header, Message};
use zbus::names::ErrorName;

use crate::engine::Error;
use crate::logic::exit::ExitStatus;

/// What kind of error it is, and with that its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// There is no such device, disk or job.
    NotFound,
    /// The kernel or a program refused.
    Failed,
    /// An argument makes no sense.
    InvalidArgument,
    /// Somebody else set the device up.
    Unmanaged,
    /// This kernel or machine lacks it.
    NotSupported,
    /// It would lose contents or hurt the machine.
    Unsafe,
    /// Memory could not take what is in the swap.
    InsufficientMemory,
    /// The configuration is wrong; the old one stays.
    ConfigInvalid,
    /// Work on it goes on already.
    Busy,
    /// Somebody uses it; the sentence says who.
    InUse,
    /// The RAM disk is too small for what belongs on it.
    DiskFull,
    /// There is no room where snapshots are kept.
    StoreFull,
    /// The snapshot is broken.
    SnapshotCorrupt,
    /// The RAM disk was not loaded, so it is not saved either.
    NotLoaded,
    /// The caller asked for too much at once.
    LimitExceeded,
    /// The job was cancelled.
    Cancelled,
    /// The machine has better things to do; it is tried again later.
    Postponed,
    /// The caller may not.
    AccessDenied,
}

/// Every name, for documentation and tests.
pub const NAMES: [(Name, &str); 18] = [
    (Name::NotFound, "org.zramd1.Error.NotFound"),
    (Name::Failed, "org.zramd1.Error.Failed"),
    (Name::InvalidArgument, "org.zramd1.Error.InvalidArgument"),
    (Name::Unmanaged, "org.zramd1.Error.Unmanaged"),
    (Name::NotSupported, "org.zramd1.Error.NotSupported"),
    (Name::Unsafe, "org.zramd1.Error.Unsafe"),
    (Name::InsufficientMemory, "org.zramd1.Error.InsufficientMemory"),
    (Name::ConfigInvalid, "org.zramd1.Error.ConfigInvalid"),
    (Name::Busy, "org.zramd1.Error.Busy"),
    (Name::InUse, "org.zramd1.Error.InUse"),
    (Name::DiskFull, "org.zramd1.Error.DiskFull"),
    (Name::StoreFull, "org.zramd1.Error.StoreFull"),
    (Name::SnapshotCorrupt, "org.zramd1.Error.SnapshotCorrupt"),
    (Name::NotLoaded, "org.zramd1.Error.NotLoaded"),
    (Name::LimitExceeded, "org.zramd1.Error.LimitExceeded"),
    (Name::Cancelled, "org.zramd1.Error.Cancelled"),
    (Name::Postponed, "org.zramd1.Error.Postponed"),
    (Name::AccessDenied, "org.freedesktop.DBus.Error.AccessDenied"),
];

impl Name {
    /// Whether the caller was wrong, asked for too much, or came at a wrong time: nothing is the matter with the machine.
    pub fn is_slip(self) -> bool {
        matches!(
            self,
            Name::NotFound
                | Name::InvalidArgument
                | Name::Unsafe
                | Name::ConfigInvalid
                | Name::Unmanaged
                | Name::Busy
        )
    }

    /// The name for an exit status of `zramd-setup`.
    pub fn of_exit_status(status: u8) -> Name {
        let table = [
            (ExitStatus::NotFound, Name::NotFound),
            (ExitStatus::Unsupported, Name::NotSupported),
            (ExitStatus::Refused, Name::Unsafe),
            (ExitStatus::NotPermitted, Name::AccessDenied),
        ];
        table.into_iter().find(|(known, _)| known.code() == status).map_or(Name::Failed, |(_, name)| name)
    }

    /// The name whose last part is this word, as our other programs say it in files.
    pub fn of_word(word: &str) -> Name {
        let ends_so = |name: &str| name.rsplit_once('.').is_some_and(|(_, last)| last == word);
        NAMES.into_iter().find(|(_, name)| ends_so(name)).map_or(Name::Failed, |(name, _)| name)
    }

    /// The name on the bus.
    pub fn on_the_bus(self) -> &'static str {
        let names: BTreeMap<Name, &'static str> = NAMES.into_iter().collect();
        names.get(&self).copied().unwrap_or("org.zramd1.Error.Failed")
    }
}

/// An error with its name and one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BusError {
    /// Its kind.
    pub name: Name,
    /// The sentence.
    pub message: String,
}

/// What methods return.
pub type Result<T> = std::result::Result<T, BusError>;

impl BusError {
    /// An error of this kind.
    pub fn new(name: Name, message: impl Into<String>) -> BusError {
        BusError { name, message: message.into() }
    }
}

impl From<Error> for BusError {
    fn from(error: Error) -> BusError {
        BusError { name: Name::of_word(error.kind.word()), message: error.message }
    }
}

impl From<zbus::Error> for BusError {
    fn from(error: zbus::Error) -> BusError {
        let message = match &error {
            zbus::Error::MethodError(name, text, _) => text.clone().unwrap_or_else(|| name.to_string()),
            other => other.to_string(),
        };
        BusError::new(Name::Failed, message)
    }
}

/// Longest sentence that is sent, in bytes. It may repeat what the caller sent.
const LONGEST: usize = 4096;

/// The beginning of a text that is too long, and dots.
fn shortened(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let whole = text.char_indices().map(|(start, _)| start).take_while(|start| *start <= LONGEST).last();
    format!("{}…", &text[..whole.unwrap_or(0)])
}

impl zbus::DBusError for BusError {
    fn create_reply(&self, call: &Header<'_>) -> zbus::Result<Message> {
        Message::error(call, self.name()).build(&shortened(&self.message))
    }

    fn name(&self) -> ErrorName<'_> {
        ErrorName::from_static_str_unchecked(self.name.on_the_bus())
    }

    fn description(&self) -> Option<&str> {
        Some(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ErrorKind;

    #[test]
    fn every_kind_of_error_has_its_name() {
        for (kind, name) in [
            (ErrorKind::Failed, Name::Failed),
            (ErrorKind::NotFound, Name::NotFound),
            (ErrorKind::Unsupported, Name::NotSupported),
            (ErrorKind::Unsafe, Name::Unsafe),
            (ErrorKind::NotPermitted, Name::AccessDenied),
            (ErrorKind::Config, Name::ConfigInvalid),
            (ErrorKind::Unmanaged, Name::Unmanaged),
            (ErrorKind::InsufficientMemory, Name::InsufficientMemory),
            (ErrorKind::InUse, Name::InUse),
            (ErrorKind::DiskFull, Name::DiskFull),
            (ErrorKind::StoreFull, Name::StoreFull),
            (ErrorKind::SnapshotCorrupt, Name::SnapshotCorrupt),
            (ErrorKind::NotLoaded, Name::NotLoaded),
        ] {
            assert_eq!(BusError::from(Error::new(kind, "")).name, name, "{kind:?}");
        }
        assert_eq!(Name::of_word("of a later version"), Name::Failed);
    }

    #[test]
    fn long_sentences_end_with_dots_between_two_letters() {
        assert_eq!(shortened("short"), "short");
        // With a letter of one byte before those of two, the limit is in the middle of one.
        let text = shortened(&format!("x{}", "ä".repeat(LONGEST)));
        assert!(text.len() <= LONGEST + '…'.len_utf8() && text.ends_with("ä…"), "{text:.20}");
        assert_eq!(shortened(&"x".repeat(LONGEST)).len(), LONGEST);
    }
}
