//! Public status of a RAM disk that is kept: `/run/zramd/ramdisks/NAME.json`.
//!
//! Written by `zramd-worker` after each operation; the store itself is accessible to root only, and may be slow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SaveReason;
use super::hold::Hold;
use super::omitted::Reason;
use crate::word::word;

/// Version of the file's format.
pub const SCHEMA_VERSION: u32 = 1;

/// The directory of these files.
pub const DIRECTORY: &str = "/run/zramd/ramdisks";

/// Path of the file of a RAM disk.
pub fn path(name: &str) -> String {
    format!("{DIRECTORY}/{name}.json")
}

/// Load state of a RAM disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum LoadState {
    /// Not loaded in this boot, or loaded without a snapshot.
    #[default]
    Empty,
    /// Being loaded.
    Loading,
    /// Loaded from its newest snapshot, or from the directory below if there was none yet.
    Loaded,
    /// Loaded from an older snapshot, because newer ones cannot be loaded.
    Fallback,
    /// No snapshot could be loaded; the directory on disk is used instead.
    Passthrough,
    /// Not loaded, because of an error.
    Failed,
}

impl LoadState {
    /// The word in JSON and on the bus.
    pub fn word(self) -> &'static str {
        word(self)
    }
}

/// Result of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SaveResult {
    /// No save in this boot.
    #[default]
    #[serde(rename = "")]
    None,
    /// A snapshot was written.
    Ok,
    /// Nothing had changed.
    Unchanged,
    /// The save failed.
    Failed,
}

impl SaveResult {
    /// The word in JSON and on the bus.
    pub fn word(self) -> &'static str {
        word(self)
    }
}

/// Contents of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RamdiskStatus {
    /// Version of this form, incremented when a field is removed or changes its meaning.
    pub schema_version: u32,
    /// Load state.
    pub load_state: LoadState,
    /// The snapshot that was loaded in this boot; 0 for none.
    pub generation: u64,
    /// When that was saved, in microseconds since 1970; 0 for none.
    pub made_usec: u64,
    /// The age of that when it was loaded, in microseconds.
    pub made_age_usec: u64,
    /// Whether the boot before this one ended without a last save: changes after `made_usec` are lost.
    pub unclean: bool,
    /// Why the newest snapshot was not loaded; or empty.
    pub refused: String,
    /// Remarks about the load, for people.
    pub load_message: String,
    /// Why the store could not be written to during the load, and what that means for saving; or empty.
    pub store_problem: String,
    /// Duration of the load in microseconds.
    pub load_took_usec: u64,
    /// Time of the last save, including those without changes, in microseconds since 1970; 0 for none in this boot.
    #[serde(rename = "last_save_timestamp")]
    pub last_save_usec: u64,
    /// Result of the last save.
    pub last_save_result: SaveResult,
    /// Remarks about it, for people.
    pub last_save_message: String,
    /// Number of entries that the last successful save left out or could not save completely, by reason.
    pub last_save_omitted: BTreeMap<Reason, u64>,
    /// Size of all snapshots together in bytes.
    pub store_bytes: u64,
    /// Bytes that saves wrote in the 24 hours before the last save or load, over reboots.
    pub written_day_bytes: u64,
    /// Bytes that saves have written since they are counted, over reboots.
    pub written_total_bytes: u64,
    /// Bytes that saves should write in 24 hours at most; 0 for no limit.
    pub daily_budget_bytes: u64,
    /// When the newest snapshot was read as a whole last, by loading or verifying it, in microseconds since 1970; at first, when
    /// there was one.
    #[serde(rename = "last_verify_timestamp")]
    pub last_verify_usec: u64,
    /// What that found to be wrong with it; or empty.
    pub damage: String,
    /// Bytes that the next save probably needs in the store; 0 without a snapshot.
    pub next_save_bytes: u64,
    /// Bytes of the snapshots that are pruned after it, and may be removed before.
    pub next_spare_bytes: u64,
    /// Bytes that were free there.
    pub store_free_bytes: u64,
    /// All snapshots, newest first.
    pub snapshots: Vec<SnapshotLine>,
    /// Names of damaged files that were set aside.
    pub set_aside: Vec<String>,
    /// How to unpack snapshots of earlier versions, which this one does not load; or empty.
    pub old_snapshots: String,
}

impl RamdiskStatus {
    /// Intact snapshots that were not loaded, or not completely, newest first, with the reason.
    pub fn held(&self) -> impl Iterator<Item = (u64, &Hold)> {
        let intact = self.snapshots.iter().filter(|line| line.good);
        intact.filter_map(|line| Some((line.generation, line.held.as_ref()?)))
    }
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SnapshotLine {
    /// Its number, as in the names of its files (`gen-N`).
    pub generation: u64,
    /// When it was saved, in microseconds since 1970.
    pub time_usec: u64,
    /// Bytes of its files.
    pub raw_bytes: u64,
    /// Bytes of its file; contents that other snapshots have, too, may be in theirs.
    pub stored_bytes: u64,
    /// Number of files, directories and other entries.
    pub entries: u64,
    /// Reason of the save.
    pub reason: SaveReason,
    /// Whether files changed during the save.
    pub fuzzy: bool,
    /// Whether its end and manifest are intact.
    pub good: bool,
    /// Why it is pinned; or empty.
    pub pinned: String,
    /// Bytes that its files need on the disk.
    pub occupied_bytes: u64,
    /// Inodes that they need.
    pub inodes: u64,
    /// Why it was not loaded, or not completely, although it is intact; it is pinned, too.
    pub held: Option<Hold>,
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::status::*;

    #[test]
    fn a_newer_file_is_still_read() {
        let text = r#"{"schema_version":1,"load_state":"fallback","generation":3,"news":[1],"snapshots":[{"generation":3}]}"#;
        let status: RamdiskStatus = serde_json::from_str(text).unwrap();
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
