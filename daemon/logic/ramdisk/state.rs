//! `state.json` of a store: whether the disk was loaded in this boot, where, and what has become of it since.

use serde::{Deserialize, Serialize};

use super::entry::Attribute;

/// The version of the file.
pub const SCHEMA: u32 = 1;

/// Which directory a disk is: a path alone may show another mount later. Mounts have numbers, but those are given again to
/// others, and differ between mount namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Device that it is on.
    pub device: (u32, u32),
    /// Inode.
    pub inode: u64,
    /// When it was made, in seconds since 1970 and nanoseconds, where the file system knows that.
    pub born: (i64, u32),
    /// What loading has written on it, where the file system takes attributes.
    pub mark: String,
}

/// The directory at the root of a disk before it was filled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Permission bits with set-id and sticky bits.
    pub mode: u32,
    /// When its contents changed, in seconds since 1970 and nanoseconds.
    pub mtime: (i64, u32),
    /// Extended attributes, ACLs among them.
    pub attributes: Vec<Attribute>,
}

/// How loading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It has not ended: what is in the disk is not whole.
    Unfinished,
    /// The newest generation was loaded.
    Loaded,
    /// An older one was, because those after it could not be.
    Fallback,
    /// There was no generation yet; the disk was filled from a directory, or is empty.
    FirstUse,
    /// No generation could be loaded; the disk is empty.
    Empty,
    /// No generation could be loaded; the disk is not used.
    Passthrough,
    /// No generation could be loaded.
    Failed,
}

/// A load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// In which boot.
    pub boot_id: String,
    /// Where.
    pub place: Place,
    /// How it ended.
    pub outcome: Outcome,
    /// What was loaded.
    pub generation: Option<u64>,
    /// When it ended, in microseconds since 1970.
    pub at_usec: u64,
    /// What the root was before: a load that was interrupted has changed it.
    #[serde(default)]
    pub root: Option<Root>,
}

/// How a save ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SaveOutcome {
    /// A generation was written.
    Saved,
    /// Nothing had changed, nothing was written.
    Unchanged,
    /// It failed: the generations are as they were.
    Failed,
}

/// A save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveRecord {
    /// When it ended, in microseconds since 1970.
    pub at_usec: u64,
    /// Why it was made.
    pub reason: String,
    /// How it ended.
    pub outcome: SaveOutcome,
    /// The generation that holds what is on the disk.
    pub generation: Option<u64>,
    /// What went wrong.
    #[serde(default)]
    pub message: Option<String>,
    /// How long it took, in microseconds.
    pub took_usec: u64,
}

/// What is known of a disk besides its generations. Losing the file loses no data.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// [`SCHEMA`].
    pub schema_version: u32,
    /// The last load.
    pub load: Option<LoadRecord>,
    /// The last save.
    pub save: Option<SaveRecord>,
    /// Set when the disk is loaded, cleared by the save at the end: set in another boot, that one ended without.
    pub dirty: bool,
    /// Whether a boot before the last load ended without, and nothing was saved since.
    pub unclean: bool,
    /// What the tree looked like that `fingerprint_of` holds; nothing when that is not known.
    pub fingerprint: Option<String>,
    /// A generation.
    pub fingerprint_of: Option<u64>,
}

impl State {
    /// Reads the file. What cannot be read counts as nothing: then saving waits for the next load.
    pub fn parse(text: &str) -> State {
        serde_json::from_str(text)
            .ok()
            .filter(|state: &State| state.schema_version == SCHEMA)
            .unwrap_or_default()
    }

    /// As it is written.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(&State { schema_version: SCHEMA, ..self.clone() })
            .unwrap_or_default();
        text.push('\n');
        text
    }

    /// Whether a boot before this one ended without the last save.
    pub fn is_unclean(&self, boot_id: &str) -> bool {
        self.dirty && self.load.as_ref().is_some_and(|load| load.boot_id != boot_id)
    }

    /// What was loaded in this boot.
    pub fn loaded_now(&self, boot_id: &str) -> Option<u64> {
        self.load.as_ref().filter(|load| load.boot_id == boot_id)?.generation
    }

    /// Why the directory `place` may not be saved: saving what was never loaded would replace good data with nothing.
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

    /// Whether this very directory has been loaded in this boot.
    pub fn is_loaded(&self, boot_id: &str, place: &Place) -> bool {
        self.refuse_save(boot_id, place).is_none()
    }

    /// Whether a load into this very directory was interrupted.
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
    fn a_boot_that_ended_without_the_last_save_is_unclean() {
        let state = state(Outcome::Loaded);
        assert!(state.is_unclean("b") && !state.is_unclean("a"));
        assert!(!State { dirty: false, ..state }.is_unclean("b"));
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
