//! Signatures of data on a block device, so that no existing data is overwritten.
//!
//! Deliberately broad: a false positive costs a message, a false negative a file system.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Bytes at the start of a device that [`find`] needs: btrfs has its super block at 64 KiB.
pub const PROBE_BYTES: usize = 68 * 1024;

/// Offset, magic bytes, description. Sources: the on-disk format documents of each, and libblkid's superblock probers.
const MAGICS: [(usize, &[u8], &str); 16] = [
    (0x438, &[0x53, 0xEF], "ext2/3/4 file system"),
    (0, b"XFSB", "xfs file system"),
    (0x10040, b"_BHRfS_M", "btrfs file system"),
    (1024, &[0x10, 0x20, 0xF5, 0xF2], "f2fs file system"),
    (0, b"LUKS\xBA\xBE", "LUKS volume"),
    (0, b"hsqs", "squashfs file system"),
    (1024, &[0xE2, 0xE1, 0xF5, 0xE0], "erofs file system"),
    (3, b"NTFS    ", "NTFS file system"),
    (3, b"EXFAT   ", "exFAT file system"),
    (0x36, b"FAT", "FAT file system"),
    (0x52, b"FAT32", "FAT file system"),
    (0x218, b"LVM2 001", "LVM physical volume"),
    (512, b"EFI PART", "GPT partition table"),
    (0x1000, &[0xFC, 0x4E, 0x2B, 0xA9], "Linux RAID member"),
    (0x8001, b"CD001", "ISO 9660 file system"),
    (0, b"BCXF", "bcachefs file system"),
];

/// Type of data without a known signature.
const UNKNOWN: &str = "data of an unknown type";

/// What tells the contents of a device from others of the same type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Type, as [`find`] names it.
    pub kind: String,
    /// UUID, as [`uuid_text`] writes it; on FAT the serial number; empty for types whose UUID is not read.
    pub uuid: String,
    /// Label; empty without one.
    pub label: String,
}

impl Signature {
    /// That of data of an unknown type.
    pub fn unknown() -> Signature {
        Signature { kind: UNKNOWN.to_owned(), uuid: String::new(), label: String::new() }
    }

    /// Whether it is that of data of an unknown type.
    pub fn is_unknown(&self) -> bool {
        self.kind == UNKNOWN
    }

    /// Whether `found` is this one; a UUID or label that is not known is not compared.
    pub fn is_that_of(&self, found: &Signature) -> bool {
        let same = |ours: &String, found: &String| ours.is_empty() || ours == found;
        self.kind == found.kind && same(&self.uuid, &found.uuid) && same(&self.label, &found.label)
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.label.is_empty() {
            write!(f, " labelled `{}`", self.label.escape_default())?;
        }
        if !self.uuid.is_empty() {
            write!(f, " with UUID {}", self.uuid)?;
        }
        Ok(())
    }
}

/// Where a type has its UUID and its label; empty where they are not read.
struct Fields {
    uuid: Range<usize>,
    label: Range<usize>,
}

/// Sources: as for [`MAGICS`].
fn fields(kind: &str, head: &[u8]) -> Fields {
    let (uuid, label) = match kind {
        "swap area" => (1036..1052, 1052..1068),
        "ext2/3/4 file system" => (0x468..0x478, 0x478..0x488),
        "xfs file system" => (32..48, 108..120),
        "btrfs file system" => (0x10020..0x10030, 0x1012B..0x1022B),
        // The label is in UTF-16.
        "f2fs file system" => (0x46C..0x47C, 0..0),
        // Those of FAT32 are further behind.
        "FAT file system" if head.get(0x52..0x57) == Some(b"FAT32") => (0x43..0x47, 0x47..0x52),
        "FAT file system" => (0x27..0x2B, 0x2B..0x36),
        _ => (0..0, 0..0),
    };
    Fields { uuid, label }
}

/// The signature of a device that begins with `head`; `None` if nothing is recognised.
pub fn read(head: &[u8]) -> Option<Signature> {
    let kind = find(head)?;
    let Fields { uuid, label } = fields(kind, head);
    let bytes = |range: Range<usize>| head.get(range).unwrap_or_default();
    let label = bytes(label).split(|byte| *byte == 0).next().unwrap_or_default();
    Some(Signature {
        kind: kind.to_owned(),
        uuid: uuid_text(bytes(uuid)),
        label: String::from_utf8_lossy(label).trim_end().to_owned(),
    })
}

/// A UUID as text: hexadecimal digits with hyphens.
pub fn uuid_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&at) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// Type of the signature that `mkfs.TYPE` writes, as [`find`] names it; `None` for types whose UUID is not set.
pub fn of_type(fs_type: &str) -> Option<&'static str> {
    match fs_type {
        "ext2" | "ext3" | "ext4" => Some("ext2/3/4 file system"),
        "xfs" => Some("xfs file system"),
        "btrfs" => Some("btrfs file system"),
        _ => None,
    }
}

/// What a device contains that begins with `head`; `None` if nothing is recognised.
pub fn find(head: &[u8]) -> Option<&'static str> {
    let known = MAGICS
        .iter()
        .find(|(offset, magic, _)| head.get(*offset..*offset + magic.len()) == Some(*magic))
        .map(|(_, _, name)| *name);
    known.or_else(|| swap_area(head)).or_else(|| dos_partition_table(head))
}

/// Swap areas have their magic in the last ten bytes of the first page, for any page size.
fn swap_area(head: &[u8]) -> Option<&'static str> {
    [4096, 8192, 16384, 32768, 65536].iter().find_map(|page| match head.get(page - 10..*page)? {
        b"SWAPSPACE2" | b"SWAP-SPACE" => Some("swap area"),
        b"S1SUSPEND\0" | b"S2SUSPEND\0" => Some("hibernation image"),
        _ => None,
    })
}

/// A DOS partition table with at least one entry with a type and a length.
fn dos_partition_table(head: &[u8]) -> Option<&'static str> {
    if head.get(510..512)? != [0x55, 0xAA] {
        return None;
    }
    let used = (0..4).any(|entry| {
        let at = 446 + entry * 16;
        head[at + 4] != 0 && head[at + 12..at + 16] != [0, 0, 0, 0]
    });
    used.then_some("DOS partition table")
}

#[cfg(test)]
mod tests {
    use crate::device::signature::*;

    #[test]
    fn every_magic_is_found_and_an_empty_device_is_empty() {
        assert_eq!(find(&vec![0; PROBE_BYTES]), None);
        assert_eq!(find(&[]), None);
        for (offset, magic, name) in MAGICS {
            let mut head = vec![0; PROBE_BYTES];
            head[offset..offset + magic.len()].copy_from_slice(magic);
            assert_eq!(find(&head), Some(name));
        }
    }

    #[test]
    fn uuid_and_label_are_those_that_were_written() {
        let header = crate::device::swap_header::build(64 << 20, 4096, [0x5A; 16], "fast").unwrap();
        let found = read(&header).unwrap();
        assert_eq!(
            found.to_string(),
            "swap area labelled `fast` with UUID 5a5a5a5a-5a5a-4a5a-9a5a-5a5a5a5a5a5a"
        );
        let other = Signature { label: "other".to_owned(), ..found.clone() };
        assert!(found.is_that_of(&found) && !found.is_that_of(&other));
        let unnamed = Signature { uuid: String::new(), label: String::new(), ..found.clone() };
        assert!(unnamed.is_that_of(&found) && !found.is_that_of(&unnamed));
        assert!(Signature::unknown().is_unknown() && !found.is_unknown());
        let mut fat = vec![0; PROBE_BYTES];
        fat[0x52..0x57].copy_from_slice(b"FAT32");
        fat[0x43..0x47].copy_from_slice(&[1, 2, 3, 4]);
        fat[0x47..0x52].copy_from_slice(b"BOOT       ");
        assert_eq!(read(&fat).unwrap().to_string(), "FAT file system labelled `BOOT` with UUID 01020304");
    }

    #[test]
    fn each_type_has_its_uuid_and_label_elsewhere() {
        // Super blocks are at 1024, that of btrfs at 64 KiB. The label of f2fs is not read.
        for (kind, (at, magic), uuid, label) in [
            ("ext2/3/4 file system", (0x438, &b"\x53\xEF"[..]), 1024 + 0x68..1024 + 0x78, Some(1024 + 0x78)),
            ("xfs file system", (0, b"XFSB"), 32..48, Some(108)),
            ("btrfs file system", (0x10040, b"_BHRfS_M"), 0x10020..0x10030, Some(0x1012B)),
            ("f2fs file system", (1024, b"\x10\x20\xF5\xF2"), 1024 + 108..1024 + 124, None),
            ("FAT file system", (0x36, b"FAT16   "), 0x27..0x2B, Some(0x2B)),
        ] {
            let mut head = vec![0; PROBE_BYTES];
            head[at..at + magic.len()].copy_from_slice(magic);
            let bytes: Vec<u8> = (1..=16).take(uuid.len()).collect();
            head[uuid].copy_from_slice(&bytes);
            if let Some(at) = label {
                head[at..at + 4].copy_from_slice(b"data");
            }
            let text = if bytes.len() == 4 { "01020304" } else { "01020304-0506-0708-090a-0b0c0d0e0f10" };
            let label = label.map_or("", |_| "data").to_owned();
            assert_eq!(read(&head), Some(Signature { kind: kind.to_owned(), uuid: text.to_owned(), label }));
        }
    }

    #[test]
    fn a_type_whose_uuid_is_set_is_found_under_its_name() {
        for (fs_type, kind) in [
            ("ext2", Some("ext2/3/4 file system")),
            ("ext4", Some("ext2/3/4 file system")),
            ("xfs", Some("xfs file system")),
            ("btrfs", Some("btrfs file system")),
            ("vfat", None),
        ] {
            assert_eq!(of_type(fs_type), kind);
            assert!(kind.is_none_or(|kind| MAGICS.iter().any(|(.., found)| *found == kind)), "{fs_type}");
        }
    }

    #[test]
    fn swap_and_hibernation_images_are_found_at_every_page_size() {
        for page in [4096, 8192, 16384, 32768, 65536] {
            for (magic, kind) in [
                (b"SWAPSPACE2", "swap area"),
                (b"SWAP-SPACE", "swap area"),
                (b"S1SUSPEND\0", "hibernation image"),
                (b"S2SUSPEND\0", "hibernation image"),
            ] {
                let mut head = vec![0; PROBE_BYTES];
                head[page - 10..page].copy_from_slice(magic);
                assert_eq!(find(&head), Some(kind));
            }
        }
    }

    #[test]
    fn a_boot_sector_without_partitions_is_no_partition_table() {
        let mut head = vec![0; PROBE_BYTES];
        head[510..512].copy_from_slice(&[0x55, 0xAA]);
        // The code of a boot loader comes before the four entries.
        head[..446].fill(0xF4);
        assert_eq!(find(&head), None);
        for entry in [446, 462, 478, 494] {
            for length in 12..16 {
                let mut head = head.clone();
                head[entry + length] = 1;
                assert_eq!(find(&head), None, "it has no type");
                head[entry + 4] = 0x83;
                assert_eq!(find(&head), Some("DOS partition table"));
                head[entry + length] = 0;
                assert_eq!(find(&head), None, "it has no length");
            }
        }
    }
}
