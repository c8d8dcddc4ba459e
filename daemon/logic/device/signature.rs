//! Signatures of data on a block device, so that no existing data is overwritten.
//!
//! Deliberately broad: a false positive costs a message, a false negative a file system.

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
    fn swap_is_found_at_every_page_size() {
        for page in [4096, 16384, 65536] {
            let mut head = vec![0; PROBE_BYTES];
            head[page - 10..page].copy_from_slice(b"SWAPSPACE2");
            assert_eq!(find(&head), Some("swap area"));
        }
    }

    #[test]
    fn a_boot_sector_without_partitions_is_no_partition_table() {
        let mut head = vec![0; PROBE_BYTES];
        head[510..512].copy_from_slice(&[0x55, 0xAA]);
        assert_eq!(find(&head), None);
        head[446 + 4] = 0x83;
        head[446 + 12] = 1;
        assert_eq!(find(&head), Some("DOS partition table"));
    }
}
