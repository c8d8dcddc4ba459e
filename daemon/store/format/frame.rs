//! Heads of frames, and the index that repeats them.

use super::{BLOCK, Bytes, CONTENTS, FRAME, Hash, STORED, hash, short};

/// The first bytes of a frame.
pub const MAGIC: [u8; 4] = *b"zfrm";
/// The first bytes of a head in the index, where a search for frames must not find it.
const REPEATED: [u8; 4] = *b"zidx";
/// Length of a head without its contents.
pub const HEAD: usize = 48;
const CHECK: usize = 8;

/// A content: its hash, and its length in the raw bytes of the frame.
pub type Content = (Hash, u32);

/// The head of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Bytes before compression: the sum of the contents' lengths.
    pub raw: u32,
    /// Bytes after it.
    pub stored: u32,
    /// Hash of these.
    pub hash: Hash,
    /// In the order of the raw bytes.
    pub contents: Vec<Content>,
}

impl Head {
    /// Its length in the file.
    pub fn length(&self) -> usize {
        HEAD + 36 * self.contents.len() + CHECK
    }

    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        self.put_as(MAGIC, out);
    }

    fn put_as(&self, magic: [u8; 4], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(magic);
        out.extend(short(self.contents.len()).to_le_bytes());
        out.extend(self.raw.to_le_bytes());
        out.extend(self.stored.to_le_bytes());
        out.extend(self.hash);
        for (hash, length) in &self.contents {
            out.extend(hash);
            out.extend(length.to_le_bytes());
        }
        let check = hash(&out[start..]);
        out.extend(&check[..CHECK]);
    }

    /// The length of the head that begins with these bytes, at least [`HEAD`] of them.
    fn measure(magic: [u8; 4], bytes: &[u8]) -> Option<usize> {
        let mut bytes = Bytes(bytes);
        (bytes.array()? == magic).then_some(())?;
        let count = bytes.u32()? as usize;
        (1..=CONTENTS).contains(&count).then_some(HEAD + 36 * count + CHECK)
    }

    /// Parses a head; `None` for anything that [`Head::put`] does not write for a valid frame.
    pub fn parse(bytes: &[u8]) -> Option<Head> {
        Head::parse_as(MAGIC, bytes)
    }

    fn parse_as(magic: [u8; 4], bytes: &[u8]) -> Option<Head> {
        let length = Head::measure(magic, bytes)?;
        let (checked, check) = bytes.get(..length)?.split_at(length - CHECK);
        (hash(checked)[..CHECK] == *check).then_some(())?;
        let mut rest = Bytes(&checked[8..]);
        let (raw, stored, hash) = (rest.u32()?, rest.u32()?, rest.array()?);
        let mut contents = Vec::with_capacity((length - HEAD) / 36);
        let mut sum = 0;
        while !rest.0.is_empty() {
            let (hash, length) = (rest.array()?, rest.u32()?);
            (1..=BLOCK).contains(&(length as usize)).then_some(())?;
            sum += length;
            contents.push((hash, length));
        }
        let is_right = sum == raw && raw as usize <= FRAME && stored as usize <= STORED;
        is_right.then_some(Head { raw, stored, hash, contents })
    }
}

/// Appends a frame's place and head to an index.
pub fn index(offset: u64, head: &Head, out: &mut Vec<u8>) {
    out.extend(offset.to_le_bytes());
    head.put_as(REPEATED, out);
}

/// The frames of an index, for a file of this size.
pub fn parse_index(bytes: &[u8], size: u64) -> Option<Vec<(u64, Head)>> {
    let mut rest = Bytes(bytes);
    let mut frames = Vec::new();
    while !rest.0.is_empty() {
        let offset = rest.u64()?;
        let head = Head::parse_as(REPEATED, rest.0)?;
        rest.take(head.length())?;
        let end = offset.checked_add((head.length() + head.stored as usize) as u64)?;
        (end <= size).then_some(())?;
        frames.push((offset, head));
    }
    Some(frames)
}

/// The frames whose heads are within `bytes`, which begin at `offset` of a file of this size, and where to continue: a head
/// that is cut off by the end of `bytes` is searched for again from there.
pub fn scan(bytes: &[u8], offset: u64, size: u64, frames: &mut Vec<(u64, Head)>) -> u64 {
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(MAGIC.len()).position(|window| window == MAGIC) {
        at += found;
        let place = offset + at as u64;
        let rest = &bytes[at..];
        let is_cut = match Head::measure(MAGIC, rest) {
            Some(length) => length > rest.len(),
            None => rest.len() < HEAD,
        };
        if is_cut && place + rest.len() as u64 != size {
            return place;
        }
        let head =
            Head::parse(rest).filter(|head| place + (head.length() + head.stored as usize) as u64 <= size);
        let Some(head) = head else {
            at += 1;
            continue;
        };
        let end = at + head.length() + head.stored as usize;
        frames.push((place, head));
        if end >= bytes.len() {
            return offset + end as u64;
        }
        at = end;
    }
    // The magic may be cut off, too.
    (offset + bytes.len() as u64).saturating_sub(MAGIC.len() as u64 - 1).max(offset + at as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head() -> impl Strategy<Value = Head> {
        let content = (any::<[u8; 32]>(), 1..=short(BLOCK));
        (proptest::collection::vec(content, 1..16), 0..=short(STORED), any::<[u8; 32]>()).prop_map(
            |(contents, stored, hash)| Head {
                raw: contents.iter().map(|(_, length)| length).sum(),
                stored,
                hash,
                contents,
            },
        )
    }

    proptest! {
        #[test]
        fn a_head_comes_back_and_no_other_bit_pattern_is_one(head in head(), bit in any::<u32>()) {
            let mut bytes = Vec::new();
            head.put(&mut bytes);
            prop_assert_eq!(bytes.len(), head.length());
            prop_assert_eq!(Head::parse(&bytes), Some(head));
            let bit = bit as usize % (8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Head::parse(&bytes), None);
        }

        #[test]
        fn frames_are_found_without_an_index(
            heads in proptest::collection::vec(head(), 0..5), noise in 0..40_usize, step in 60..100_000_usize,
        ) {
            // Damage between frames: part of a head, and zeros.
            let mut file = vec![0; 16];
            let mut wanted = Vec::new();
            for head in heads {
                file.extend(&MAGIC[..noise % 5 % MAGIC.len()]);
                file.extend(vec![b'z'; noise]);
                let head = Head { stored: head.stored % 300, ..head };
                wanted.push((file.len() as u64, head.clone()));
                head.put(&mut file);
                file.extend(vec![1; head.stored as usize]);
            }
            file.extend(vec![0; 60]);
            let size = file.len() as u64;
            let (mut found, mut at, mut step) = (Vec::new(), 16_u64, step);
            while at + 4 <= size {
                let start = usize::try_from(at).unwrap();
                let end = (start + step).min(file.len());
                let next = scan(&file[start..end], at, size, &mut found);
                // A buffer that is too small for a head has to grow.
                step = if next == at { 2 * step } else { step };
                prop_assert!(next >= at);
                if end as u64 == size && next == at { break }
                at = next;
            }
            prop_assert_eq!(&found, &wanted);
            let mut bytes = Vec::new();
            for (offset, head) in &wanted {
                index(*offset, head, &mut bytes);
            }
            prop_assert_eq!(parse_index(&bytes, size), Some(wanted.clone()));
            if let Some((offset, _)) = wanted.last() {
                prop_assert_eq!(parse_index(&bytes, *offset + 50), None);
            }
        }
    }
}
