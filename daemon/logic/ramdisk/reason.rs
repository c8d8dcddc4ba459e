//! Reasons of saves.

use serde::{Deserialize, Serialize};

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
    /// All reasons with a word.
    const KNOWN: [SaveReason; 6] = [
        SaveReason::Stop,
        SaveReason::Timer,
        SaveReason::Sleep,
        SaveReason::Asked,
        SaveReason::Restore,
        SaveReason::User,
    ];

    /// The word, as in files, on the command line and on the bus; empty for an unknown reason.
    pub const fn word(self) -> &'static str {
        match self {
            SaveReason::Stop => "stop",
            SaveReason::Timer => "timer",
            SaveReason::Sleep => "sleep",
            SaveReason::Asked => "asked",
            SaveReason::Restore => "restore",
            SaveReason::User => "user",
            SaveReason::Unknown => "",
        }
    }
}

impl std::str::FromStr for SaveReason {
    type Err = String;

    fn from_str(word: &str) -> Result<SaveReason, String> {
        let known = SaveReason::KNOWN.into_iter().find(|reason| reason.word() == word);
        known.ok_or_else(|| format!("`{word}` is no reason for a save"))
    }
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::reason::*;

    #[test]
    fn words_are_those_of_the_files() {
        for reason in SaveReason::KNOWN {
            assert_eq!(reason.word().parse(), Ok(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.word());
        }
        assert_eq!(serde_json::to_value(SaveReason::Unknown).unwrap(), "");
        for word in ["", "tomorrow"] {
            assert_eq!(serde_json::from_value::<SaveReason>(word.into()).unwrap(), SaveReason::Unknown);
            assert!(word.parse::<SaveReason>().is_err());
        }
    }
}
