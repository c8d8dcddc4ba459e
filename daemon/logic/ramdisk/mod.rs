//! RAM disks that are kept over reboots: their generations, which one to load, which ones to prune.
//!
//! A *generation* is a complete copy of a RAM disk, the file `gen-N`. Contents that others have, too, are stored once, in
//! whichever file was first. The file gets its name last, so that after a kill there is either a complete generation N or none.

pub mod choose;
pub mod directories;
pub mod entry;
pub mod fingerprint;
pub mod hold;
mod keep;
pub mod limits;
pub mod manifest;
pub mod omitted;
pub mod paths;
pub mod place;
mod reason;
pub mod space;
pub mod state;
pub mod status;

pub use keep::{KeepSettings, Mode, OnFailure, Persist};
pub use reason::SaveReason;
use serde::{Deserialize, Serialize};

/// Kind of a file in the store, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFile {
    /// `gen-N`.
    Generation(u64),
    /// `rest-N`: a generation that was pruned. Others need its contents.
    Rest(u64),
    /// `gen-N.bad`: set aside because it could not be loaded. Others may need its contents.
    Bad(u64),
    /// `gen-N.pin`: the generation is never pruned; the file contains the reason.
    Pin(u64),
    /// `gen-N.held`: as a pin, because the generation could not be loaded; the file contains a [`hold::Hold`].
    Held(u64),
    /// `gen-N.tar.zst` or `gen-N.json`: of a version before the first release, in another format.
    Old(u64),
    /// Left behind by an interrupted save.
    Partial,
    /// Any other file.
    Other,
}

/// The name of generation `number`.
pub fn generation_name(number: u64) -> String {
    format!("gen-{number}")
}

/// The name of a pruned generation whose contents others need.
pub fn rest_name(number: u64) -> String {
    format!("rest-{number}")
}

/// The name of a generation that was set aside.
pub fn bad_name(number: u64) -> String {
    format!("gen-{number}.bad")
}

/// The name of the file that pins generation `number`.
pub fn pin_name(number: u64) -> String {
    format!("gen-{number}.pin")
}

/// The name of the file that holds generation `number` because it could not be loaded.
pub fn hold_name(number: u64) -> String {
    format!("gen-{number}.held")
}

/// The kind of a file with this name. Only names in exactly the form of the functions above are ours.
pub fn classify(name: &str) -> StoreFile {
    if name.ends_with(".partial") {
        return StoreFile::Partial;
    }
    let (kind, rest) = name.split_once('-').unwrap_or_default();
    let (digits, ending) =
        rest.split_once('.').map_or((rest, None), |(digits, ending)| (digits, Some(ending)));
    let canonical = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    let Some(number) = digits.parse().ok().filter(|_| canonical) else { return StoreFile::Other };
    match (kind, ending) {
        ("gen", None) => StoreFile::Generation(number),
        ("rest", None) => StoreFile::Rest(number),
        ("gen", Some("bad")) => StoreFile::Bad(number),
        ("gen", Some("pin")) => StoreFile::Pin(number),
        ("gen", Some("held")) => StoreFile::Held(number),
        ("gen", Some("tar.zst" | "json")) => StoreFile::Old(number),
        _ => StoreFile::Other,
    }
}

/// Whether this is a valid name of a RAM disk: it is used as a directory and in unit names.
pub fn is_ramdisk_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty() && name.len() <= 64 && !name.starts_with('.') && name.bytes().all(plain)
}

/// A RAM disk mounted by our units. It has no record, because PID 1 did all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UnitRamdisk {
    /// NAME of `[ramdisk.NAME]`.
    pub name: String,
    pub mount_point: String,
    /// Which contents are kept.
    #[serde(default)]
    pub persist: Persist,
    /// Directory of its snapshots, or empty.
    #[serde(default)]
    pub store: String,
    /// Whether to warn when it is getting full.
    #[serde(default)]
    pub watch: bool,
}

impl UnitRamdisk {
    /// Whether stopping it saves its contents.
    pub fn is_kept(&self) -> bool {
        self.persist != Persist::None
    }
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::*;

    #[test]
    fn files_of_a_store_are_known_by_their_names() {
        for (name, file) in [
            ("gen-1", StoreFile::Generation(1)),
            ("gen-18446744073709551615", StoreFile::Generation(u64::MAX)),
            ("gen-18446744073709551616", StoreFile::Other),
            ("rest-7", StoreFile::Rest(7)),
            ("rest-7.pin", StoreFile::Other),
            ("gen-7.pin", StoreFile::Pin(7)),
            ("gen-7.held", StoreFile::Held(7)),
            ("gen-7.bad", StoreFile::Bad(7)),
            ("gen-7.tar.zst", StoreFile::Old(7)),
            ("gen-7.json", StoreFile::Old(7)),
            ("gen-7.tar.zst.bad", StoreFile::Other),
            ("gen-8.partial", StoreFile::Partial),
            ("gen-07", StoreFile::Other),
            ("gen-+7", StoreFile::Other),
            ("gen-", StoreFile::Other),
            ("gen-7.", StoreFile::Other),
            ("state.json", StoreFile::Other),
        ] {
            assert_eq!(classify(name), file, "{name}");
        }
        assert_eq!(classify(&generation_name(3)), StoreFile::Generation(3));
        assert_eq!(classify(&rest_name(3)), StoreFile::Rest(3));
        assert_eq!(classify(&bad_name(3)), StoreFile::Bad(3));
        assert_eq!(classify(&pin_name(3)), StoreFile::Pin(3));
        assert_eq!(classify(&hold_name(3)), StoreFile::Held(3));
    }

    #[test]
    fn a_skeleton_is_kept_as_a_snapshot_is() {
        let is_kept = |persist| UnitRamdisk { persist, ..UnitRamdisk::default() }.is_kept();
        assert_eq!([Persist::None, Persist::Skeleton, Persist::Snapshot].map(is_kept), [false, true, true]);
    }

    #[test]
    fn a_name_of_a_disk_is_one_directory() {
        for name in ["logs", "a.b-c_D9"] {
            assert!(is_ramdisk_name(name), "{name}");
        }
        for name in ["", ".", "..", "a/b", "a b", ".hidden", "ü"] {
            assert!(!is_ramdisk_name(name), "{name}");
        }
    }
}
