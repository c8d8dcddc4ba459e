//! How the contents of a RAM disk are kept over reboots.

use crate::word::{of_word, word};
use serde::{Deserialize, Serialize};

/// The kind of contents that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Directories, owners, modes, and empty files.
    Skeleton,
    /// Everything.
    Snapshot,
}

/// Which contents of a RAM disk are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The word in the configuration and on the bus.
    pub fn word(self) -> &'static str {
        word(self)
    }

    /// Parses the word.
    pub fn of_word(word: &str) -> Option<Persist> {
        of_word(word)
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

/// How the contents of a RAM disk are kept over reboots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepSettings {
    /// Which contents.
    pub mode: Mode,
    /// Directory of the snapshots, absolute and normalised.
    pub store: String,
    /// Number of good snapshots to keep besides pinned ones, at least 1.
    pub generations: u32,
    /// Seconds between saves, besides the one at shutdown; `None` for never.
    pub save_interval: Option<u64>,
    /// What to do if no snapshot can be loaded; `None` to decide by whether the directory below is empty.
    pub on_failure: Option<OnFailure>,
    /// Whether to copy the contents of the directory below at the first use.
    pub seed: bool,
    /// Command to run before a save.
    pub pre_save: Vec<String>,
    /// Command to run after a load.
    pub post_restore: Vec<String>,
    /// Time limit for each of these commands, in seconds.
    pub hook_time_limit: u64,
    /// Time limit for loading or saving, in seconds, even if that is making progress.
    pub time_limit: u64,
}

/// What to do if no snapshot can be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// Use an empty RAM disk.
    Empty,
    /// Use the directory on disk until the next boot, without a RAM disk.
    Passthrough,
    /// Do not mount it; units that need it fail.
    Fail,
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::keep::*;

    #[test]
    fn what_is_kept_has_a_word_that_is_read_back() {
        for (mode, word) in
            [(None, "none"), (Some(Mode::Skeleton), "skeleton"), (Some(Mode::Snapshot), "snapshot")]
        {
            let persist = Persist::from(mode);
            assert_eq!((persist.word(), Persist::of_word(word)), (word, Some(persist)));
        }
        assert_eq!(Persist::of_word("all"), None);
    }
}
