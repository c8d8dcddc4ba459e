//! What every user may know about a RAM disk that is kept: `/run/zramd/disks/NAME.json`.
//!
//! `zramd-worker` writes it after everything it does with the disk; the store itself is for root only, and may be slow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::omitted::Reason;

/// Version of the form of the file.
pub const SCHEMA_VERSION: u32 = 1;

/// The directory of these files.
pub const DIRECTORY: &str = "/run/zramd/disks";

/// The file of a disk.
pub fn path(name: &str) -> String {
    format!("{DIRECTORY}/{name}.json")
}

/// How far a disk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadState {
    /// It has not been loaded in this boot, or began empty.
    #[default]
    Empty,
    /// It is being loaded.
    Loading,
    /// It was loaded from its newest snapshot, or from the directory below when there was none yet.
    Loaded,
    /// It was loaded from an older snapshot, because newer ones are damaged.
    Fallback,
    /// No snapshot could be loaded, and the directory on disk is used instead.
    Passthrough,
    /// It could not be loaded.
    Failed,
}

impl LoadState {
    /// The word, as in JSON and on the bus.
    pub const fn word(self) -> &'static str {
        match self {
            LoadState::Empty => "empty",
            LoadState::Loading => "loading",
            LoadState::Loaded => "loaded",
            LoadState::Fallback => "fallback",
            LoadState::Passthrough => "passthrough",
            LoadState::Failed => "failed",
        }
    }
}

/// How a save ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SaveResult {
    /// There was none in this boot.
    #[default]
    #[serde(rename = "")]
    None,
    /// A snapshot was written.
    Ok,
    /// Nothing had changed.
    Unchanged,
    /// No snapshot could be written.
    Failed,
}

impl SaveResult {
    /// The word, as in JSON and on the bus.
    pub const fn word(self) -> &'static str {
        match self {
            SaveResult::None => "",
            SaveResult::Ok => "ok",
            SaveResult::Unchanged => "unchanged",
            SaveResult::Failed => "failed",
        }
    }
}

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskStatus {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// How far it is.
    pub load_state: LoadState,
    /// The snapshot that was loaded in this boot; 0 is none.
    pub generation: u64,
    /// When that was made, in microseconds since 1970; 0 is never.
    pub made_usec: u64,
    /// How old that was when it was loaded, in microseconds.
    pub made_age_usec: u64,
    /// Whether the boot before this one ended without a last save: what changed after `made_usec` is lost.
    pub unclean: bool,
    /// Why the newest snapshot was not loaded, or empty.
    pub refused: String,
    /// What there is to say about the load, for people.
    pub load_message: String,
    /// Why its store could not be written to when it was loaded, and what that means for saving, or empty.
    pub store_problem: String,
    /// How long loading took, in microseconds.
    pub load_took_usec: u64,
    /// When it was saved last, with or without anything to write, in microseconds since 1970; 0 is never in this boot.
    pub last_save_usec: u64,
    /// How that ended.
    pub last_save_result: SaveResult,
    /// What there is to say about it, for people.
    pub last_save_message: String,
    /// How many entries the last save that did not fail left out or could not keep whole, by reason.
    pub last_save_omitted: BTreeMap<Reason, u64>,
    /// What the files of all snapshots take, in bytes.
    pub store_bytes: u64,
    /// All snapshots, newest first.
    pub snapshots: Vec<SnapshotLine>,
    /// Names of files that were set aside because they are broken.
    pub set_aside: Vec<String>,
}

/// One snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SnapshotLine {
    /// Its number, as in the names of its files, `gen-N`.
    pub generation: u64,
    /// When it was made, in microseconds since 1970.
    pub time_usec: u64,
    /// Bytes of files in it.
    pub raw_bytes: u64,
    /// Bytes of its archive.
    pub stored_bytes: u64,
    /// Files, directories and all else in it.
    pub entries: u64,
    /// Why it was made: `stop`, `timer`, `sleep`, `asked`, `restore`, `user`.
    pub reason: String,
    /// Whether files changed while they were read.
    pub fuzzy: bool,
    /// Whether its manifest is good.
    pub good: bool,
    /// Why it is never pruned, or empty.
    pub pinned: String,
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::status::*;

    #[test]
    fn a_newer_file_is_still_read() {
        let text = r#"{"schema_version":1,"load_state":"fallback","generation":3,"news":[1],"snapshots":[{"generation":3}]}"#;
        let status: DiskStatus = serde_json::from_str(text).unwrap();
        assert_eq!(
            (status.load_state, status.generation, status.snapshots.len()),
            (LoadState::Fallback, 3, 1)
        );
        assert_eq!(serde_json::to_value(LoadState::Passthrough).unwrap(), LoadState::Passthrough.word());
        for result in [SaveResult::None, SaveResult::Ok, SaveResult::Unchanged, SaveResult::Failed] {
            assert_eq!(serde_json::to_value(result).unwrap(), result.word());
        }
    }
}
