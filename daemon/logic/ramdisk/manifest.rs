//! The manifest of a generation, a part of its file: when and why it was saved, and totals of its contents.

use serde::{Deserialize, Serialize};

use super::omitted::Omitted;
use super::{Mode, SaveReason};
use crate::human::human;

/// Number of the biggest files that are named.
pub const BIGGEST: usize = 10;

/// Whether all files are of the same point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// Nothing changed during the save, or it was made from a snapshot of the file system.
    Exact,
    /// Some files changed during the save; see `changed`.
    Fuzzy,
}

/// A file and its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sized {
    /// Path below the root, printable and shortened.
    pub path: String,
    /// Bytes that it occupies.
    pub bytes: u64,
}

/// Totals of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Contents {
    /// Regular files, without additional hard links.
    pub files: u64,
    /// Directories, including the root.
    pub directories: u64,
    /// Symbolic links, named pipes, device nodes.
    pub others: u64,
    /// Additional hard links.
    pub hard_links: u64,
    /// Sizes of all files, in bytes.
    pub bytes: u64,
    /// Bytes that all files occupy with pages of 4 KiB, without holes.
    pub occupied_bytes: u64,
    /// The biggest files, biggest first.
    pub biggest: Vec<Sized>,
}

impl Contents {
    /// Number of entries.
    pub fn entries(&self) -> u64 {
        [self.directories, self.others, self.hard_links]
            .iter()
            .fold(self.files, |sum, more| sum.saturating_add(*more))
    }

    /// Number of inodes needed.
    pub fn inodes(&self) -> u64 {
        self.files.saturating_add(self.directories).saturating_add(self.others)
    }

    /// The biggest files by name, for root only. Empty if there are none.
    pub fn biggest_text(&self) -> String {
        let names: Vec<String> = self
            .biggest
            .iter()
            .take(5)
            .map(|file| format!("{} ({})", file.path, human(file.bytes)))
            .collect();
        if names.is_empty() { String::new() } else { format!("the biggest files are {}", names.join(", ")) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Which contents were kept.
    pub mode: Mode,
    /// When the save began, in microseconds since 1970.
    pub began_at_usec: u64,
    /// When all files had been read, in microseconds since 1970.
    pub finished_at_usec: u64,
    /// `/proc/sys/kernel/random/boot_id` of the boot in which it was saved.
    pub boot_id: String,
    /// Reason of the save.
    pub reason: SaveReason,
    /// Whether all files are of the same point in time.
    pub consistency: Consistency,
    /// Some of the files that changed during the save.
    #[serde(default)]
    pub changed: Vec<String>,
    /// Number of sockets, and of foreign mounts, which are not saved.
    #[serde(default)]
    pub skipped: u64,
    /// Entries that were left out or could not be saved completely.
    #[serde(default)]
    pub omitted: Omitted,
    /// Totals of its files.
    pub contents: Contents,
}

/// Why a manifest is unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// The generation was written by a later version of zramd. It is not damaged.
    OtherVersion(u32),
    /// It is damaged, or is not a generation.
    Broken(String),
}

impl Manifest {
    pub fn parse(text: &str) -> Result<Manifest, Unusable> {
        serde_json::from_str(text)
            .map_err(|error| Unusable::Broken(format!("its manifest cannot be read: {error}")))
    }

    /// Whether a user other than root requested it.
    pub fn is_by_user(&self) -> bool {
        self.reason == SaveReason::User
    }

    /// Its JSON.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::ramdisk::manifest::*;

    pub(crate) fn manifest() -> Manifest {
        Manifest {
            mode: Mode::Snapshot,
            began_at_usec: 1,
            finished_at_usec: 2,
            boot_id: "b".to_owned(),
            reason: SaveReason::Asked,
            consistency: Consistency::Exact,
            changed: Vec::new(),
            skipped: 0,
            omitted: Omitted::default(),
            contents: Contents::default(),
        }
    }

    #[test]
    fn a_manifest_comes_back() {
        let manifest = manifest();
        assert_eq!(Manifest::parse(&manifest.text()), Ok(manifest));
    }

    #[test]
    fn a_further_hard_link_is_an_entry_and_no_inode() {
        let contents = Contents { files: 5, directories: 3, others: 2, hard_links: 1, ..Contents::default() };
        assert_eq!((contents.entries(), contents.inodes()), (11, 10));
    }

    #[test]
    fn what_is_no_manifest_is_broken() {
        let good = manifest().text();
        for text in ["", "{}", "[]", &good[..good.len() / 2]] {
            assert!(matches!(Manifest::parse(text), Err(Unusable::Broken(_))), "{text}");
        }
    }
}
