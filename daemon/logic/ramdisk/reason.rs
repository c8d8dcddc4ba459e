//! Reasons of saves.

use serde::{Deserialize, Serialize};

use crate::word::{of_word, word};

/// The reason of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SaveReason {
    /// The RAM disk is stopped, in most cases because the machine shuts down.
    Stop,
    /// The save interval has passed.
    Timer,
    /// The machine is about to sleep.
    Sleep,
    /// Requested by root.
    Asked,
    /// Another generation is selected for the next load.
    Restore,
    /// Requested by a user other than root.
    User,
    /// Unknown: the manifest is broken, or was written by a newer version.
    #[default]
    #[serde(rename = "", other)]
    Unknown,
}

impl SaveReason {
    /// The word, as in files, on the command line and on the bus; empty for an unknown reason.
    pub fn word(self) -> &'static str {
        word(self)
    }
}

impl std::str::FromStr for SaveReason {
    type Err = String;

    fn from_str(word: &str) -> Result<SaveReason, String> {
        let known = of_word(word).filter(|reason| *reason != SaveReason::Unknown);
        known.ok_or_else(|| format!("`{word}` is no reason for a save"))
    }
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::reason::*;

    #[test]
    fn words_are_those_of_the_files() {
        assert_eq!("timer".parse(), Ok(SaveReason::Timer));
        for word in ["", "tomorrow"] {
            assert_eq!(serde_json::from_value::<SaveReason>(word.into()).unwrap(), SaveReason::Unknown);
            assert!(word.parse::<SaveReason>().is_err());
        }
    }
}
