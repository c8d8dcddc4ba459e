//! The format of a store, version 1. Each save writes one file, `gen-N`, which never changes; `rest-N` is one whose
//! generation was pruned while others need its contents, and `gen-N.bad` one that was set aside. All numbers are
//! little-endian.
//!
//! ```text
//! file    = START frame* tree index manifest [tree again] footer footer
//! frame   = head, then contents compressed with zstd (at most 256 KiB before)
//! head    = "zfrm", count u32, raw u32, stored u32, hash of the stored bytes,
//!           count times (hash of a content, its length u32), the first 8 bytes of the hash of all this
//! index   = (offset of a frame u64, its head with "zidx")*
//! footer  = see `Footer`; 336 bytes
//! ```
//!
//! A content is a part of a file: files are cut every 16 KiB. It is stored once, whichever files and generations have it, and
//! found by its hash (BLAKE3, 32 bytes). A tree (`tree.rs`) is compressed with zstd; one with a base is a difference to that:
//! the base is the prefix of the compression, and is the tree of another file. A tree without a base is stored twice.
//!
//! Every length is checked before memory is taken for it, and every hash before a byte is used. Where the index is damaged,
//! the frames are searched for.

mod footer;
mod frame;
pub mod tree;

pub use footer::{FOOTER, Footer, Section, Unusable};
pub use frame::{Content, HEAD, Head, MAGIC, index, parse_index, scan};

/// The first bytes of a file: its kind and version.
pub const START: [u8; 16] = *b"zramd store 1\n\0\0";
/// Files are cut into contents of this many bytes.
pub const BLOCK: usize = 16 << 10;
/// Maximum bytes of a frame before compression.
pub const FRAME: usize = 256 << 10;
/// Maximum bytes of a compressed frame (`ZSTD_compressBound`).
pub const STORED: usize = FRAME + (FRAME >> 8);
/// Maximum number of contents in a frame.
pub const CONTENTS: usize = 4096;
/// Maximum bytes of a tree.
pub const TREE: usize = 128 << 20;

/// A BLAKE3 hash.
pub type Hash = [u8; 32];
/// Hashes, which users can choose to some degree: their order in memory is random.
pub type Hashes = std::collections::HashSet<Hash, foldhash::fast::RandomState>;
pub type ByHash<V> = std::collections::HashMap<Hash, V, foldhash::fast::RandomState>;

/// The hash of these bytes.
pub fn hash(bytes: &[u8]) -> Hash {
    *blake3::hash(bytes).as_bytes()
}

/// A length that is bounded far below this.
pub fn short(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Takes numbers and bytes from the start of a slice.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number in groups of seven bits, lowest first (LEB128).
    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.array::<1>()?[0];
            let part = u64::from(byte & 0x7f);
            if part.checked_shl(shift)? >> shift != part {
                return None;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// As [`Bytes::varint`], at most `most`.
    pub fn below(&mut self, most: usize) -> Option<usize> {
        usize::try_from(self.varint()?).ok().filter(|value| *value <= most)
    }
}

/// Appends a number in groups of seven bits.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}
