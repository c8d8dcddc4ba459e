//! `state.json` of a store: whether and where the RAM disk was loaded in this boot, its last save, and what saves wrote.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::SaveReason;
use super::entry::Attribute;
use super::hold::Hold;
use crate::duration::micros;
use crate::ledger::{Clocks, Ledger};

/// How often the newest generation is read as a whole.
const VERIFY_EVERY: Duration = Duration::from_secs(7 * 24 * 3600);

/// The version of the file.
pub const SCHEMA: u32 = 1;

/// Identity of a directory. A path alone may show another mount later; IDs of mounts are reused, and differ between
/// mount namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Device of the file system.
    pub device: (u32, u32),
    pub inode: u64,
    /// Creation time in seconds since 1970 and nanoseconds, if the file system has it.
    pub born: (i64, u32),
    /// The mark set by loading, if the file system supports attributes.
    pub mark: String,
}

/// The root directory of a RAM disk before it was filled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Permission bits with set-id and sticky bits.
    pub mode: u32,
    /// Modification time in seconds since 1970 and nanoseconds.
    pub mtime: (i64, u32),
    /// Extended attributes, including ACLs.
    pub attributes: Vec<Attribute>,
}

/// Result of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It has not finished: the contents are incomplete.
    Unfinished,
    /// The newest generation was loaded.
    Loaded,
    /// An older generation was loaded, because newer ones could not be.
    Fallback,
    /// There was no generation yet; the RAM disk was filled from a directory, or is empty.
    FirstUse,
    /// No generation could be loaded; the RAM disk is empty.
    Empty,
    /// No generation could be loaded; the RAM disk is not used.
    Passthrough,
    /// No generation could be loaded.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// ID of the boot.
    pub boot_id: String,
    pub place: Place,
    pub outcome: Outcome,
    /// The generation that was loaded.
    pub generation: Option<u64>,
    /// When it ended, in microseconds since 1970.
    pub at_usec: u64,
    /// State of the root before, to undo an interrupted load.
    #[serde(default)]
    pub root: Option<Root>,
}

/// Result of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SaveOutcome {
    /// A generation was written.
    Saved,
    /// Nothing had changed, so nothing was written.
    Unchanged,
    /// It failed: the generations are unchanged.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveRecord {
    /// When it ended, in microseconds since 1970.
    pub at_usec: u64,
    pub reason: SaveReason,
    pub outcome: SaveOutcome,
    /// The generation that matches the RAM disk.
    pub generation: Option<u64>,
    /// The error.
    #[serde(default)]
    pub message: Option<String>,
    /// Duration in microseconds.
    pub took_usec: u64,
}

/// State of a RAM disk besides its generations. If the file is lost, no data is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// [`SCHEMA`].
    pub schema_version: u32,
    /// The last load.
    pub load: Option<LoadRecord>,
    /// The last save.
    pub save: Option<SaveRecord>,
    /// Set by loading, cleared by the last save of a boot: if set in a later boot, there was no last save.
    pub dirty: bool,
    /// Whether a boot before the last load ended without a last save, and there was no save since.
    pub unclean: bool,
    /// Fingerprint of the tree saved in `fingerprint_of`; `None` if unknown.
    pub fingerprint: Option<String>,
    /// A generation.
    pub fingerprint_of: Option<u64>,
    /// A generation and its hold, whose file could not be written yet.
    pub hold: Option<(u64, Hold)>,
    /// Parts of files that could not be read at the last load or verification: number of the file, offset. They count as not
    /// stored, so that the next save writes them again.
    pub damaged: BTreeSet<(u64, u64)>,
    /// Bytes that saves have written; `None` before the first one.
    pub writes: Option<Ledger>,
    /// When the newest generation was read as a whole last, by loading or verifying it, in microseconds since 1970; at first, when
    /// there was one. 0 before.
    pub verified_usec: u64,
    /// What that found to be wrong with it. It contains no file names.
    pub damage: Option<String>,
}

impl State {
    /// Parses the file. Invalid text counts as empty: then nothing is saved until the next load.
    pub fn parse(text: &str) -> State {
        serde_json::from_str(text)
            .ok()
            .filter(|state: &State| state.schema_version == SCHEMA)
            .unwrap_or_default()
    }

    /// Its JSON.
    pub fn text(&self) -> String {
        let state = State { schema_version: SCHEMA, ..self.clone() };
        // Compact: every block that is written wears flash.
        let mut text = serde_json::to_string(&state).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The bytes that saves have written until now.
    pub fn writes_at(&self, now: Clocks) -> Ledger {
        let Some(mut writes) = self.writes.clone() else { return Ledger::first(now) };
        writes.resume(now);
        writes
    }

    /// Adds bytes that a save has written.
    pub fn wrote(&mut self, bytes: u64, now: Clocks) {
        let mut writes = self.writes_at(now.clone());
        writes.settle(bytes, now);
        self.writes = Some(writes);
    }

    /// Whether the newest generation has to be verified. After the clock was set to another time, it may be again.
    pub fn is_unverified(&self, now_usec: u64) -> bool {
        self.verified_usec > 0 && now_usec.abs_diff(self.verified_usec) >= micros(VERIFY_EVERY)
    }

    /// Whether an earlier boot ended without a last save.
    pub fn is_unclean(&self, boot_id: &str) -> bool {
        self.dirty && self.load.as_ref().is_some_and(|load| load.boot_id != boot_id)
    }

    /// The generation loaded in this boot.
    pub fn loaded_now(&self, boot_id: &str) -> Option<u64> {
        self.load.as_ref().filter(|load| load.boot_id == boot_id)?.generation
    }

    /// Why the directory `place` must not be saved: if it was never loaded, that would replace good data by nothing.
    pub fn refuse_save(&self, boot_id: &str, place: &Place) -> Option<&'static str> {
        let Some(load) = self.load.as_ref().filter(|load| load.boot_id == boot_id) else {
            return Some("it was not loaded in this boot");
        };
        match load.outcome {
            Outcome::Unfinished => Some("loading it has not finished"),
            Outcome::Passthrough => Some("it is not in use: no snapshot could be loaded"),
            Outcome::Failed => Some("loading it failed"),
            _ if load.place != *place => Some("another file system is mounted there"),
            _ => None,
        }
    }

    /// Whether this directory has been loaded in this boot.
    pub fn is_loaded(&self, boot_id: &str, place: &Place) -> bool {
        self.refuse_save(boot_id, place).is_none()
    }

    /// Whether a load into this directory was interrupted.
    pub fn is_half_loaded(&self, boot_id: &str, place: &Place) -> bool {
        let load = self.load.as_ref();
        load.is_some_and(|load| {
            load.boot_id == boot_id && load.place == *place && load.outcome == Outcome::Unfinished
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::state::*;

    const PLACE: Place = Place { device: (0, 40), inode: 1, born: (5, 6), mark: String::new() };

    fn state(outcome: Outcome) -> State {
        let load = LoadRecord {
            boot_id: "a".to_owned(),
            place: PLACE,
            outcome,
            generation: Some(3),
            at_usec: 1,
            root: None,
        };
        State { schema_version: SCHEMA, load: Some(load), dirty: true, ..State::default() }
    }

    #[test]
    fn only_what_was_loaded_is_saved() {
        for outcome in [Outcome::Loaded, Outcome::Fallback, Outcome::FirstUse, Outcome::Empty] {
            assert_eq!(state(outcome).refuse_save("a", &PLACE), None, "{outcome:?}");
        }
        for outcome in [Outcome::Unfinished, Outcome::Passthrough, Outcome::Failed] {
            assert!(state(outcome).refuse_save("a", &PLACE).is_some(), "{outcome:?}");
        }
        let loaded = state(Outcome::Loaded);
        assert!(loaded.refuse_save("b", &PLACE).is_some());
        assert!(State::default().refuse_save("a", &PLACE).is_some());
        for place in [
            Place { mark: "x".to_owned(), ..PLACE },
            Place { born: (5, 7), ..PLACE },
            Place { inode: 2, ..PLACE },
            Place { device: (8, 1), ..PLACE },
        ] {
            assert!(loaded.refuse_save("a", &place).is_some(), "{place:?}");
        }
        assert_eq!((loaded.loaded_now("a"), loaded.loaded_now("b")), (Some(3), None));
    }

    #[test]
    fn only_a_load_of_this_boot_into_this_directory_is_taken_up_again() {
        let other = Place { inode: 2, ..PLACE };
        let half = state(Outcome::Unfinished);
        assert!(half.is_half_loaded("a", &PLACE) && !half.is_loaded("a", &PLACE));
        assert!(!half.is_half_loaded("b", &PLACE) && !half.is_half_loaded("a", &other));
        let loaded = state(Outcome::Loaded);
        assert!(loaded.is_loaded("a", &PLACE) && !loaded.is_half_loaded("a", &PLACE));
    }

    #[test]
    fn a_boot_that_ended_without_the_last_save_is_unclean() {
        let state = state(Outcome::Loaded);
        assert!(state.is_unclean("b") && !state.is_unclean("a"));
        assert!(!State { dirty: false, ..state }.is_unclean("b"));
    }

    #[test]
    fn what_saves_wrote_comes_back_and_ages() {
        let now = |hours: u64| Clocks {
            boot_id: "a".to_owned(),
            boot: Duration::from_secs(3600 * hours),
            synchronised: None,
        };
        let figures = |state: &State, hours| {
            let writes = state.writes_at(now(hours));
            (writes.spent(), writes.total())
        };
        let mut state = state(Outcome::Loaded);
        assert_eq!(figures(&state, 1), (0, 0));
        state.wrote(5, now(1));
        state.wrote(7, now(20));
        let state = State::parse(&state.text());
        assert_eq!(
            (figures(&state, 20), figures(&state, 25), figures(&state, 44)),
            ((12, 12), (7, 12), (0, 12))
        );
    }

    #[test]
    fn the_newest_generation_is_verified_once_a_week() {
        let week = 604_800_000_000;
        let state = State { verified_usec: 3 * week, ..State::default() };
        let due =
            [0, 2 * week, 2 * week + 1, 3 * week, 4 * week - 1, 4 * week].map(|now| state.is_unverified(now));
        assert_eq!(due, [true, true, false, false, false, true]);
        assert!(!State::default().is_unverified(week), "without one");
    }

    #[test]
    fn a_state_comes_back_and_noise_is_none() {
        let state = state(Outcome::Fallback);
        assert_eq!(State::parse(&state.text()), state);
        for text in ["", "[]", "{\"schema_version\": 2, \"dirty\": true}"] {
            assert_eq!(State::parse(text), State::default(), "{text}");
        }
    }
}
