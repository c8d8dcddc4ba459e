//! How many pages one write to `recompress` may take: Linux 7 holds statistics back until it has ended.

use std::time::Duration;

use crate::logic::duration::micros;

/// How long one write should take. With one CPU, whoever asks for statistics waits for several: at 8 ms, 7 in 100 answers took more
/// than 20 ms (tests/lab/scenarios/maintenance-statistics), at 2 ms, 1 in 167.
const AIM: Duration = Duration::from_millis(2);
/// Fewest pages.
const LEAST: u32 = 64;
/// And of a large device, one of so many. For each write the kernel goes over the whole device from its beginning, some 2 ns a page (Linux
/// 6.12 in the lab); compressing this many takes about as long.
const SHARE: u64 = 8192;
/// Most pages: 64 MiB.
const MOST: u32 = 16384;
/// The first chunk.
const FIRST: u32 = 256;
/// Chunks in a row without any change after which a pass is at its end.
const FRUITLESS: u32 = 2;

/// The chunks of one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunks {
    /// Pages of the next chunk.
    pub pages: u32,
    /// Pages that there can be.
    left: u64,
    least: u32,
    fruitless: u32,
    patience: u32,
}

impl Chunks {
    /// The first chunk of a pass over so many pages, on a device that has room for `slots`.
    pub fn begin(pages: u64, slots: u64) -> Chunks {
        let least = u32::try_from(slots / SHARE).unwrap_or(MOST).clamp(LEAST, MOST);
        Chunks { pages: FIRST.max(least), left: pages.max(1), least, fruitless: 0, patience: FRUITLESS }
    }

    /// Goes on until all pages had their turn: of pages that do not compress, the first say nothing about the others.
    #[must_use]
    pub fn patient(self) -> Chunks {
        Chunks { patience: u32::MAX, ..self }
    }

    /// The next chunk, after one that took so long and changed something or nothing. Nothing at the end of the pass: all pages
    /// had their turn, or nothing changes any more.
    pub fn next(self, took: Duration, changed: bool) -> Option<Chunks> {
        let left = self.left.saturating_sub(u64::from(self.pages));
        let fruitless = if changed { 0 } else { self.fruitless + 1 };
        if left == 0 || fruitless >= self.patience {
            return None;
        }
        let took = micros(took).max(1);
        let aim = micros(AIM);
        let ideal = u64::from(self.pages).saturating_mul(aim) / took;
        // At most twice as many: one chunk of pages that were easy says little about the next.
        let pages = u32::try_from(ideal)
            .unwrap_or(u32::MAX)
            .clamp(self.least, self.pages.saturating_mul(2))
            .min(MOST);
        Some(Chunks { pages, left, fruitless, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn chunks_grow_and_shrink_to_take_a_few_milliseconds() {
        let chunks = Chunks::begin(1 << 20, 1 << 19);
        assert_eq!(chunks.next(ms(1), true).map(|next| next.pages), Some(512));
        assert_eq!(chunks.next(ms(4), true).map(|next| next.pages), Some(128));
        assert_eq!(chunks.next(ms(5000), true).map(|next| next.pages), Some(LEAST));
        let mut chunks = chunks;
        for _ in 0..20 {
            chunks = chunks.next(Duration::ZERO, true).unwrap();
        }
        assert_eq!(chunks.pages, MOST);
    }

    /// 64 GiB: going over it takes longer than a chunk should, so that chunks would shrink, and their number grow, for nothing.
    #[test]
    fn a_large_device_is_not_gone_over_for_a_handful_of_pages() {
        let mut chunks = Chunks::begin(1 << 23, 1 << 24);
        let mut count = 1;
        while let Some(next) = chunks.next(ms(200), true) {
            (chunks, count) = (next, count + 1);
        }
        assert_eq!((chunks.pages, count), (2048, 4096));
    }

    #[test]
    fn a_pass_ends() {
        assert_eq!(Chunks::begin(256, 256).next(ms(1), true), None, "all had their turn");
        let once = Chunks::begin(1 << 20, 1 << 19).next(ms(1), false).unwrap();
        assert_eq!(once.next(ms(1), false), None, "nothing changes any more");
        assert!(once.next(ms(1), true).is_some());
        let mut patient = Chunks::begin(5000, 1 << 19).patient();
        let mut turns = patient.pages;
        while let Some(next) = patient.next(ms(2), false) {
            (patient, turns) = (next, turns + next.pages);
        }
        assert!((5000..5256).contains(&turns), "{turns}");
    }
}
