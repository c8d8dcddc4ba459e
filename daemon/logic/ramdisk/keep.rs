//! How the contents of a RAM disk are kept over a reboot.

use serde::{Deserialize, Serialize};

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Directories, owners, modes, and files without contents.
    Skeleton,
    /// Everything.
    Snapshot,
}

/// What of a RAM disk is kept, if anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Persist {
    /// Nothing.
    #[default]
    None,
    /// As [`Mode::Skeleton`].
    Skeleton,
    /// As [`Mode::Snapshot`].
    Snapshot,
}

impl Persist {
    const ALL: [Persist; 3] = [Persist::None, Persist::Skeleton, Persist::Snapshot];

    /// The word, as in the configuration and on the bus.
    pub const fn word(self) -> &'static str {
        match self {
            Persist::None => "none",
            Persist::Skeleton => "skeleton",
            Persist::Snapshot => "snapshot",
        }
    }

    /// What a word means.
    pub fn of_word(word: &str) -> Option<Persist> {
        Persist::ALL.into_iter().find(|persist| persist.word() == word)
    }
}

impl From<Option<Mode>> for Persist {
    fn from(mode: Option<Mode>) -> Persist {
        match mode {
            None => Persist::None,
            Some(Mode::Skeleton) => Persist::Skeleton,
            Some(Mode::Snapshot) => Persist::Snapshot,
        }
    }
}

/// What is done when no snapshot can be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The disk begins empty.
    Empty,
    /// The directory on disk stays visible, and no RAM disk is used until the next boot.
    Passthrough,
    /// The disk is not mounted, and what needs it fails.
    Fail,
}
