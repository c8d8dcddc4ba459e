//! How many pages one write to `recompress` may take: Linux 7 holds statistics back until it has ended.

use std::time::Duration;

use crate::logic::duration::micros;

/// How long one write should take. With one CPU, whoever asks for statistics waits for several: at 8 ms, 7 in 100 answers took more
/// than 20 ms (tests/lab/scenarios/maintenance-statistics), at 2 ms, 1 in 167.
const AIM: Duration = Duration::from_millis(2);
/// Fewest pages.
const LEAST: u32 = 64;
/// Fewest that are written to a disk.
const LEAST_WRITTEN: u32 = 16;
/// And of a large device, one of so many. For each write the kernel goes over the whole device from its beginning, some 2 ns a page (Linux
/// 6.12 in the lab); compressing this many takes about as long.
const SHARE: u64 = 8192;
/// Most pages: 64 MiB.
const MOST: u32 = 16384;
/// The first chunk.
const FIRST: u32 = 256;
/// Most of them where pages that would not shrink are tried again and again: 16 MiB.
const MOST_AGAIN: u32 = 4096;
/// In less than this for each page nothing can have been compressed, nor in the time that it takes to look at a slot.
const TRY: Duration = Duration::from_micros(1);
const SLOT: Duration = Duration::from_nanos(5);

/// The chunks of one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunks {
    /// Pages of the next chunk.
    pub pages: u32,
    /// Pages that have not had their turn.
    left: u64,
    slots: u64,
    least: u32,
    again: bool,
}

impl Chunks {
    /// The first chunk of a pass over so many pages, on a device that has room for `slots`.
    pub fn begin(pages: u64, slots: u64) -> Chunks {
        let least = share(slots).clamp(LEAST, MOST);
        Chunks { pages: FIRST.max(least), left: pages.max(1), slots, least, again: false }
    }

    /// Pages that would not shrink are tried again by the next chunk, before all others: it has to be larger to come to those.
    #[must_use]
    pub fn trying_again(self) -> Chunks {
        Chunks { again: true, ..self }
    }

    /// Of a disk, which may take milliseconds for each page.
    #[must_use]
    pub fn writing(self) -> Chunks {
        let least = share(self.slots).clamp(LEAST_WRITTEN, MOST);
        Chunks { pages: LEAST.max(least), least, ..self }
    }

    /// The next chunk, after one that took so long and in which so many pages shrank. Nothing when all pages had their turn: of pages
    /// that do not shrink, the first say nothing about the others.
    pub fn next(self, took: Duration, shrank: u64) -> Option<Chunks> {
        let left = self.left.saturating_sub(u64::from(self.pages));
        if left == 0 {
            return None;
        }
        let twice = self.pages.saturating_mul(2);
        let looking = SLOT.as_nanos() * u128::from(self.slots) + TRY.as_nanos() * u128::from(self.pages);
        if shrank == 0 && took.as_nanos() < looking {
            // No such page is left, or hardly one: the end comes soon.
            return Some(Chunks { pages: twice, left, ..self });
        }
        let mut least = self.least;
        if self.again && shrank < u64::from(self.pages / 2) {
            least = twice.clamp(least, MOST_AGAIN.max(least));
        }
        let ideal = u64::from(self.pages).saturating_mul(micros(AIM)) / micros(took).max(1);
        // At most twice as many: one chunk of pages that were easy says little about the next.
        let pages = u32::try_from(ideal).unwrap_or(u32::MAX).min(twice).min(MOST).max(least);
        Some(Chunks { pages, left, least, ..self })
    }
}

/// See [`SHARE`].
fn share(slots: u64) -> u32 {
    u32::try_from(slots / SHARE).unwrap_or(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = u64::MAX;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn chunks_grow_and_shrink_to_take_a_few_milliseconds() {
        let chunks = Chunks::begin(1 << 20, 1 << 19);
        assert_eq!(chunks.next(ms(1), ALL).map(|next| next.pages), Some(512));
        assert_eq!(chunks.next(ms(4), ALL).map(|next| next.pages), Some(128));
        assert_eq!(chunks.next(ms(5000), ALL).map(|next| next.pages), Some(LEAST));
        assert_eq!(chunks.writing().pages, 64);
        let large = Chunks::begin(1 << 23, 1 << 24).writing();
        for (writing, least) in [(Chunks::begin(1 << 20, 1 << 17).writing(), 16), (large, 2048)] {
            assert_eq!(writing.next(ms(5000), ALL).map(|next| next.pages), Some(least));
        }
        let mut chunks = chunks;
        for _ in 0..20 {
            chunks = chunks.next(Duration::ZERO, ALL).unwrap();
        }
        assert_eq!(chunks.pages, MOST);
    }

    /// 64 GiB: going over it takes longer than a chunk should, so that chunks would shrink, and their number grow, for nothing.
    #[test]
    fn a_large_device_is_not_gone_over_for_a_handful_of_pages() {
        let mut chunks = Chunks::begin(1 << 23, 1 << 24);
        let mut count = 1;
        while let Some(next) = chunks.next(ms(200), ALL) {
            (chunks, count) = (next, count + 1);
        }
        assert_eq!((chunks.pages, count), (2048, 4096));
        // Nor again and again when no such page is left.
        let (mut chunks, mut count) = (Chunks::begin(1 << 23, 1 << 24), 1);
        while let Some(next) = chunks.next(ms(30), 0) {
            (chunks, count) = (next, count + 1);
        }
        assert_eq!(count, 13);
    }

    #[test]
    fn a_pass_ends_when_all_had_their_turn() {
        assert_eq!(Chunks::begin(256, 256).next(ms(1), ALL), None);
        for shrank in [0, 1, ALL] {
            let mut chunks = Chunks::begin(5000, 1 << 17);
            let mut turns = chunks.pages;
            while let Some(next) = chunks.next(ms(2), shrank) {
                (chunks, turns) = (next, turns + next.pages);
            }
            assert!((5000..5256).contains(&turns), "{turns}");
        }
    }

    /// The first 3000 of 9000 pages do not shrink, and are tried again each time; a page takes 10 µs.
    #[test]
    fn pages_that_are_tried_again_keep_no_others_from_their_turn() {
        let (mut chunks, mut others) = (Chunks::begin(9000, 1 << 17).trying_again(), 6000_u64);
        loop {
            assert!(chunks.pages <= MOST_AGAIN);
            let shrank = u64::from(chunks.pages).saturating_sub(3000).min(others);
            others -= shrank;
            match chunks.next(Duration::from_micros(10) * chunks.pages, shrank) {
                Some(next) => chunks = next,
                None => break,
            }
        }
        assert!(others < 4000, "{others} had no turn");
    }
}
