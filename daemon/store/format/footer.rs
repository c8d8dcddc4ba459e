//! The end of a file: where everything else is, and the proof that the file is complete.

use super::{Bytes, Hash, TREE, hash};

/// Its length.
pub const FOOTER: usize = 336;
const MAGIC: [u8; 8] = *b"zramdend";
/// The version of the format, also in the start of the file; no other one is read.
pub const VERSION: u32 = 1;

/// A part of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Section {
    pub offset: u64,
    pub length: u64,
    /// Of its bytes as they are in the file.
    pub hash: Hash,
}

/// In this order: magic, version u32, KiB that may be copied u32, number, the four sections (offset u64, length u64, hash), raw length of the
/// tree u64, its hash, hash of the base, bytes of contents that are new u64, that are copies u64, hash of all this.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Footer {
    /// N of `gen-N`.
    pub number: u64,
    /// KiB that later saves may copy from old files, as far as earlier ones have not.
    pub allowance: u32,
    pub index: Section,
    pub manifest: Section,
    pub tree: Section,
    /// The tree again; empty if the tree has a base.
    pub again: Section,
    /// Bytes of the tree when it is not compressed.
    pub tree_bytes: u64,
    /// Hash of the tree when it is not compressed, by which others have it as their base.
    pub tree_hash: Hash,
    /// The base of the tree.
    pub base: Option<Hash>,
    /// Bytes of frames that the save added.
    pub new_bytes: u64,
    /// Bytes of frames that it copied from other files.
    pub copied_bytes: u64,
}

/// Why a footer cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// A later version of zramd wrote it.
    Version(u32),
    /// There is none, or it is damaged.
    Broken,
}

impl Footer {
    /// Its bytes.
    pub fn bytes(&self) -> [u8; FOOTER] {
        let mut out = Vec::with_capacity(FOOTER);
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(self.allowance.to_le_bytes());
        out.extend(self.number.to_le_bytes());
        for Section { offset, length, hash } in [self.index, self.manifest, self.tree, self.again] {
            out.extend(offset.to_le_bytes());
            out.extend(length.to_le_bytes());
            out.extend(hash);
        }
        out.extend(self.tree_bytes.to_le_bytes());
        out.extend(self.tree_hash);
        out.extend(self.base.unwrap_or_default());
        out.extend(self.new_bytes.to_le_bytes());
        out.extend(self.copied_bytes.to_le_bytes());
        let sum = hash(&out);
        out.extend(sum);
        let mut bytes = [0; FOOTER];
        bytes.copy_from_slice(&out);
        bytes
    }

    /// Parses the last [`FOOTER`] bytes of a file of this size.
    pub fn parse(bytes: &[u8; FOOTER], size: u64) -> Result<Footer, Unusable> {
        let (checked, sum) = bytes.split_at(FOOTER - 32);
        if hash(checked) != *sum {
            return Err(Unusable::Broken);
        }
        let mut rest = Bytes(checked);
        if rest.array() != Some(MAGIC) {
            return Err(Unusable::Broken);
        }
        match rest.u32() {
            Some(VERSION) => Footer::fields(rest, size).ok_or(Unusable::Broken),
            Some(version) => Err(Unusable::Version(version)),
            None => Err(Unusable::Broken),
        }
    }

    fn fields(mut rest: Bytes<'_>, size: u64) -> Option<Footer> {
        let (allowance, number) = (rest.u32()?, rest.u64()?);
        let mut section = || {
            let section = Section { offset: rest.u64()?, length: rest.u64()?, hash: rest.array()? };
            (section.offset.checked_add(section.length)? <= size).then_some(section)
        };
        let (index, manifest, tree, again) = (section()?, section()?, section()?, section()?);
        let (tree_bytes, tree_hash, base) = (rest.u64()?, rest.array()?, rest.array::<32>()?);
        let (new_bytes, copied_bytes) = (rest.u64()?, rest.u64()?);
        let base = (base != [0; 32]).then_some(base);
        (tree_bytes <= TREE as u64 && rest.0.is_empty()).then_some(Footer {
            number,
            allowance,
            index,
            manifest,
            tree,
            again,
            tree_bytes,
            tree_hash,
            base,
            new_bytes,
            copied_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footer() -> Footer {
        let section = |offset| Section { offset, length: 9, hash: [7; 32] };
        Footer {
            number: 7,
            allowance: 3,
            index: section(1),
            manifest: section(2),
            tree: section(3),
            again: section(4),
            tree_bytes: 5,
            tree_hash: [6; 32],
            base: Some([7; 32]),
            new_bytes: 8,
            copied_bytes: 9,
        }
    }

    #[test]
    fn a_footer_comes_back_and_each_damaged_bit_is_noticed() {
        let footer = footer();
        let bytes = footer.bytes();
        assert_eq!(Footer::parse(&bytes, 13), Ok(footer.clone()));
        for bit in 0..8 * FOOTER {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Footer::parse(&bytes, 13), Err(Unusable::Broken), "{bit}");
        }
        let without = Footer { base: None, ..footer };
        assert_eq!(Footer::parse(&without.bytes(), 13), Ok(without));
    }

    #[test]
    fn what_does_not_fit_into_the_file_or_into_memory_is_refused() {
        assert_eq!(Footer::parse(&footer().bytes(), 12), Err(Unusable::Broken));
        let large = Footer { tree_bytes: TREE as u64 + 1, ..footer() };
        assert_eq!(Footer::parse(&large.bytes(), 13), Err(Unusable::Broken));
        let mut newer = footer().bytes();
        newer[8] = 2;
        let sum = hash(&newer[..FOOTER - 32]);
        newer[FOOTER - 32..].copy_from_slice(&sum);
        assert_eq!(Footer::parse(&newer, 13), Err(Unusable::Version(2)));
    }
}
