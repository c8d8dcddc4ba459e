//! The manifest of a generation, `gen-N.json`: contents and digest of the archive.

use serde::{Deserialize, Serialize};

use super::omitted::Omitted;
use super::{Mode, SaveReason};

/// The format version of archives and manifests; no other version is read.
pub const FORMAT: u32 = 1;

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
    /// Number of entries in the archive.
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
            .map(|file| format!("{} ({})", file.path, size_text(file.bytes)))
            .collect();
        if names.is_empty() { String::new() } else { format!("the biggest files are {}", names.join(", ")) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format_version: u32,
    /// Which contents were kept.
    pub mode: Mode,
    /// When the save began, in microseconds since 1970.
    pub began_at_usec: u64,
    /// When the archive was complete, in microseconds since 1970.
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
    /// Number of sockets, and of foreign mounts, which are not in the archive.
    #[serde(default)]
    pub skipped: u64,
    /// Entries that were left out or could not be saved completely.
    #[serde(default)]
    pub omitted: Omitted,
    /// Totals of the archive.
    pub contents: Contents,
    /// Size of the archive in bytes.
    pub archive_bytes: u64,
    /// Digest of the archive: `blake3:` and 64 hexadecimal digits.
    pub digest: String,
}

/// Only the version: manifests of other versions may have other fields.
#[derive(Deserialize)]
struct Version {
    format_version: u32,
}

/// Why a manifest is unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// It was written by another version of zramd. It is not damaged.
    OtherVersion(u32),
    /// All but its version is as in this version: one of the two is true.
    PerhapsOtherVersion(u32),
    /// There is none, so the archive is not ours.
    Missing,
    /// It is not a manifest.
    Broken(String),
}

impl Manifest {
    pub fn parse(text: &str) -> Result<Manifest, Unusable> {
        let broken =
            |error: serde_json::Error| Unusable::Broken(format!("the manifest cannot be read: {error}"));
        let Version { format_version } = serde_json::from_str(text).map_err(broken)?;
        if format_version == 0 {
            return Err(Unusable::Broken("the manifest has no version".to_owned()));
        }
        let manifest = serde_json::from_str(text).map_err(broken);
        let manifest = manifest.and_then(|manifest: Manifest| {
            let digest = manifest.digest.strip_prefix("blake3:");
            match digest.filter(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())) {
                Some(_) => Ok(manifest),
                None => Err(Unusable::Broken("the manifest has no digest".to_owned())),
            }
        });
        match manifest {
            Ok(_) if format_version != FORMAT => Err(Unusable::PerhapsOtherVersion(format_version)),
            Err(_) if format_version != FORMAT => Err(Unusable::OtherVersion(format_version)),
            manifest => manifest,
        }
    }

    /// Whether a user other than root requested it.
    pub fn is_by_user(&self) -> bool {
        self.reason == SaveReason::User
    }

    /// Its JSON.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// An amount for people: `3.2 GiB`.
pub fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let power = (bytes.ilog2() / 10).clamp(1, 5);
    let whole = bytes as f64 / (1_u64 << (10 * power)) as f64;
    format!("{whole:.1} {}", UNITS[power as usize - 1])
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::ramdisk::manifest::*;

    pub(crate) fn manifest() -> Manifest {
        Manifest {
            format_version: FORMAT,
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
            archive_bytes: 3,
            digest: format!("blake3:{}", "0".repeat(64)),
        }
    }

    #[test]
    fn a_manifest_comes_back() {
        let manifest = manifest();
        assert_eq!(Manifest::parse(&manifest.text()), Ok(manifest));
    }

    #[test]
    fn another_version_is_not_broken() {
        let text = r#"{"format_version": 2, "digests": []}"#;
        assert_eq!(Manifest::parse(text), Err(Unusable::OtherVersion(2)));
        let good = manifest().text();
        let other = |version| Manifest::parse(&Manifest { format_version: version, ..manifest() }.text());
        assert_eq!(other(3), Err(Unusable::PerhapsOtherVersion(3)));
        assert!(matches!(other(0), Err(Unusable::Broken(_))), "there was none before 1");
        for text in ["", "{}", "[]", &good[..good.len() / 2], &good.replace("blake3:", "crc32:")] {
            assert!(matches!(Manifest::parse(text), Err(Unusable::Broken(_))), "{text}");
        }
    }

    #[test]
    fn sizes_are_for_people() {
        assert_eq!(size_text(1023), "1023 bytes");
        assert_eq!(size_text(u64::MAX), "16384.0 PiB");
    }
}
