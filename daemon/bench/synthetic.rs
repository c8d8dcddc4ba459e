//! Generated pages that compress like those of programs.
//!
//! Calibration: with the mixture below, the ratios of total memory are within a tenth of those of the r/Fedora table of
//! 2021, which was measured with the memory of a desktop (lz4 2.63, lzo-rle 2.74, lzo 2.77, zstd 3.37);
//! `tests/machine/benchmark.rs` checks that on the running kernel. Shares and lengths were fitted to that table only.

use fastrand::Rng;

/// Fills a page with contents of one kind.
type Kind = fn(&mut [u8], &mut Rng);

/// Kinds of pages, with their shares in percent.
const KINDS: [(u64, Kind); 5] = [(38, objects), (23, text), (24, sparse), (5, numbers), (10, noise)];

/// Percentage of compressible pages. The last kind, noise, is the rest.
const COMPRESSIBLE: u64 = 90;

/// Fills a page with contents of any kind.
pub fn fill(page: &mut [u8], random: &mut Rng) {
    let roll = random.u64(..100);
    fill_as(roll, page, random);
}

/// Fills a page with contents of a compressible kind.
pub fn compressible(page: &mut [u8], random: &mut Rng) {
    let roll = random.u64(..COMPRESSIBLE);
    fill_as(roll, page, random);
}

fn fill_as(mut roll: u64, page: &mut [u8], random: &mut Rng) {
    for (share, kind) in KINDS {
        if roll < share {
            return kind(page, random);
        }
        roll -= share;
    }
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    let end = (at + bytes.len()).min(page.len());
    page[at.min(end)..end].copy_from_slice(&bytes[..end - at.min(end)]);
}

/// Heap objects of a few kinds: a header, pointers into two regions, small numbers, unused space.
fn objects(page: &mut [u8], random: &mut Rng) {
    let regions: [u64; 2] = std::array::from_fn(|_| 0x7F00_0000_0000 | (random.u64(..1 << 24) << 16));
    // Header and words of each kind.
    let kinds: [(u64, Vec<u64>); 4] = std::array::from_fn(|_| {
        let header = (random.u64(..64) << 4) | 1;
        (header, (0..2 + random.u64(..6)).map(|_| random.u64(..9)).collect())
    });
    let mut at = 0;
    while at < page.len() {
        let (header, words) = &kinds[random.usize(..kinds.len())];
        put(page, at, &header.to_le_bytes());
        at += 8;
        for word in words {
            let word = match word {
                0..=1 => regions[random.usize(..regions.len())] | (random.u64(..1 << 10) << 4),
                2 => random.u64(..16),
                3 if random.u64(..10) < 3 => random.u64(..1 << 32),
                3 => 1,
                _ => 0,
            };
            put(page, at, &word.to_le_bytes());
            at += 8;
        }
    }
}

/// Words; the frequent ones are short.
fn text(page: &mut [u8], random: &mut Rng) {
    const WORDS: &[&str] = &[
        "the",
        "of",
        "and",
        "to",
        "in",
        "is",
        "that",
        "for",
        "value",
        "with",
        "name",
        "class",
        "return",
        "function",
        "length",
        "window",
        "element",
        "document",
        "string",
        "number",
        "object",
        "http://www.",
        ".com/",
        "style",
        "color",
        "width",
        "position",
        "undefined",
        "prototype",
        "error",
        "message",
        "request",
        "response",
        "content-type",
    ];
    const MARKS: &[u8] = b" \n\",;.={}()<>/:0";
    let mut at = 0;
    let mut phrases: Vec<std::ops::Range<usize>> = Vec::new();
    while at < page.len() {
        // Text repeats itself.
        if !phrases.is_empty() && random.u64(..10) < 6 {
            let again = page[phrases[random.usize(..phrases.len())].clone()].to_vec();
            put(page, at, &again);
            at += again.len();
            continue;
        }
        let begun = at;
        for _ in 0..=random.u64(..5) {
            // Squaring makes the words at the beginning of the list more frequent.
            let share = (random.u64(..1 << 16) * random.u64(..1 << 16)) >> 16;
            let word = WORDS[usize::try_from((share * WORDS.len() as u64) >> 16).unwrap_or(0)].as_bytes();
            let mark = MARKS[random.usize(..MARKS.len())];
            let letters: [u8; 5] = std::array::from_fn(|_| random.u8(b'a'..=b'z'));
            let rare: &[u8] = if random.u64(..6) == 0 { &letters } else { &[] };
            for part in [word, &[mark], rare] {
                put(page, at, part);
                at += part.len();
            }
        }
        phrases.push(begun.min(page.len())..at.min(page.len()));
    }
}

/// Mostly zeros: sparse tables, unused stack.
pub fn sparse(page: &mut [u8], random: &mut Rng) {
    page.fill(0);
    for _ in 0..8 + random.u64(..40) {
        let at = random.usize(..page.len() / 8) * 8;
        put(page, at, &random.u64(..1 << 16).to_le_bytes());
    }
}

/// Lists of numbers of similar size.
fn numbers(page: &mut [u8], random: &mut Rng) {
    let base = random.u64(..1 << 20);
    for at in (0..page.len()).step_by(4) {
        let number = u32::try_from(base + random.u64(..1 << 8)).unwrap_or(0);
        put(page, at, &number.to_le_bytes());
    }
}

/// Compressed or encrypted data.
pub fn noise(page: &mut [u8], random: &mut Rng) {
    random.fill(page);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_make_a_whole_and_pages_are_filled() {
        assert_eq!(KINDS.iter().map(|(share, _)| share).sum::<u64>(), 100);
        assert_eq!(KINDS.last().unwrap().0, 100 - COMPRESSIBLE);
        let mut random = Rng::with_seed(1);
        for _ in 0..200 {
            let mut page = [0xAA; 4096];
            fill(&mut page, &mut random);
            assert!(page.chunks(8).any(|word| word != &page[..8]), "a same-filled page tells nothing");
        }
    }
}
