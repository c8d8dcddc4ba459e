//! Number of pages per write to `recompress` or `writeback`: Linux 7 blocks reads of statistics until the write has
//! ended.

use std::time::Duration;

use super::Cause;
use crate::duration::micros;

/// Target time for the pages of one write. With one CPU, readers of statistics wait for several writes: with 8 ms, 7 of
/// 100 readings took more than 20 ms (tests/lab/scenarios/maintenance-statistics); with 2 ms, 1 of 167.
const AIM: Duration = Duration::from_millis(2);
/// The same while memory is short: with short chunks, the scans would take half of the time.
const AIM_WHILE_SHORT: Duration = Duration::from_millis(100);
/// Minimum number of pages, except for a probe.
const LEAST: u32 = 16;
/// Maximum number of pages: 256 MiB.
const MOST: u32 = 65536;
/// Maximum number while pages that did not shrink are tried again: 16 MiB.
const MOST_AGAIN: u32 = 4096;
/// Chunks between two probes.
const PROBED: u32 = 16;
/// With less time per page, nothing can have been compressed.
const TRY: Duration = Duration::from_micros(1);

/// The chunks of one pass.
///
/// For each write, the kernel first scans the whole device: Linux 6.12 skips the pages that it has processed, Linux 7
/// makes a list of the others. A chunk of one page, the probe, measures the time of that scan. If it is longer than
/// the target time, a chunk is made to take as long as the scan, so that scans take at most half of the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunks {
    /// Pages of the next chunk.
    pub pages: u32,
    /// Pages that have not been processed.
    left: u64,
    /// Duration of a scan.
    look: Duration,
    /// Chunks until the next probe.
    until_probe: u32,
    /// Pages of the chunk after a probe, if the next one is a probe.
    after_probe: Option<u32>,
    aim: Duration,
    least: u32,
    again: bool,
}

impl Chunks {
    /// The first chunk of a pass over this number of pages.
    pub fn begin(pages: u64, cause: Cause) -> Chunks {
        Chunks {
            pages: 1,
            left: pages.max(1),
            look: Duration::ZERO,
            until_probe: PROBED,
            after_probe: Some(LEAST),
            aim: if cause.is_short() { AIM_WHILE_SHORT } else { AIM },
            least: LEAST,
            again: false,
        }
    }

    /// Each chunk first tries those pages again that did not shrink: it must be larger to reach the others.
    #[must_use]
    pub fn trying_again(self) -> Chunks {
        Chunks { again: true, ..self }
    }

    /// The chunk after one that took this time and in which this number of pages shrank. `None` once all pages were
    /// processed: if the first pages do not shrink, others still may.
    pub fn next(self, took: Duration, shrank: u64) -> Option<Chunks> {
        let left = self.left.saturating_sub(u64::from(self.pages));
        if left == 0 {
            return None;
        }
        if let Some(pages) = self.after_probe {
            return Some(Chunks { pages, left, look: took, until_probe: PROBED, after_probe: None, ..self });
        }
        // This chunk shows that the probe took longer than a scan.
        let look = self.look.min(took);
        let (pages, least) = self.size(took.saturating_sub(look), look, shrank);
        let next = Chunks { pages, left, look, until_probe: self.until_probe - 1, least, ..self };
        Some(if next.until_probe == 0 { Chunks { pages: 1, after_probe: Some(pages), ..next } } else { next })
    }

    /// Pages of the next chunk, and the minimum for later ones, given the time of this chunk's pages and of the scan.
    fn size(&self, took: Duration, look: Duration, shrank: u64) -> (u32, u32) {
        // A chunk of pages that were quickly processed tells little about the next.
        let twice = self.pages.saturating_mul(2);
        if shrank == 0 && took < TRY * self.pages {
            // Hardly any such pages are left: the pass is nearly complete.
            return (twice, self.least);
        }
        let least = if self.again && shrank < u64::from(self.pages / 2) {
            twice.clamp(self.least, MOST_AGAIN)
        } else {
            self.least
        };
        let ideal = u64::from(self.pages).saturating_mul(micros(self.aim.max(look))) / micros(took).max(1);
        (u32::try_from(ideal).unwrap_or(u32::MAX).min(twice).min(MOST).max(least), least)
    }
}

#[cfg(test)]
mod tests {
    use crate::maintain::chunk::*;

    const US: Duration = Duration::from_micros(1);

    /// A kernel, and the figures of a pass on it.
    #[derive(Debug, Clone, Copy, Default)]
    struct Pass {
        /// Nanoseconds per page of the device, per page not yet processed, and per page being processed.
        slot: u64,
        candidate: u64,
        page: u64,
        slots: u64,
        candidates: u64,
        /// Number of pages that do not shrink, and remain before all others.
        hopeless: u64,
        /// Number of chunks, their total time, and the longest.
        chunks: u64,
        took: Duration,
        longest: Duration,
    }

    impl Pass {
        /// Runs over all stored pages.
        fn run(mut self, mut chunks: Chunks) -> Pass {
            loop {
                let tried = u64::from(chunks.pages).min(self.candidates);
                let shrank = tried.saturating_sub(self.hopeless);
                let took = self.slot * self.slots + self.candidate * self.candidates + self.page * tried;
                let took = Duration::from_nanos(took);
                self.candidates -= shrank;
                self.chunks += 1;
                self.took += took;
                self.longest = self.longest.max(took);
                match chunks.next(took, shrank) {
                    Some(next) => chunks = next,
                    None => return self,
                }
            }
        }
    }

    #[test]
    fn chunks_take_a_few_milliseconds() {
        for page in [5_000, 50_000, 500_000] {
            let pass = Pass { page, slots: 1 << 20, candidates: 50_000, ..Pass::default() }
                .run(Chunks::begin(50_000, Cause::Timer));
            assert_eq!(pass.candidates, 0, "{pass:?}");
            assert!(pass.longest <= Duration::from_millis(8), "{pass:?}");
            assert!(pass.chunks < 50_000 * page / 1_600_000 + 60, "{pass:?}");
        }
    }

    /// A page takes 2 ms, and a scan 30 ms.
    #[test]
    fn while_memory_is_short_scans_take_less_of_the_time() {
        let kernel =
            Pass { page: 2_000_000, slots: 1_500_000, slot: 20, candidates: 5_000, ..Pass::default() };
        let took = |cause| {
            let pass = kernel.run(Chunks::begin(5_000, cause));
            assert!(pass.longest <= Duration::from_millis(300), "{pass:?}");
            pass.took
        };
        let ideal = Duration::from_nanos(kernel.page * kernel.candidates);
        assert!(took(Cause::Filling) < ideal * 3 / 2, "{:?}", took(Cause::Filling));
        assert!(took(Cause::Timer) > ideal * 3 / 2, "{:?}", took(Cause::Timer));
    }

    /// 8 GiB in use on a device of 64 GiB. With minimal chunks, the scans would take minutes or hours.
    #[test]
    fn going_over_a_large_device_takes_as_long_as_compressing() {
        for (slot, candidate) in [(2, 0), (20, 0), (2, 100), (2, 500)] {
            let pages = 2 << 20;
            let kernel =
                Pass { slot, candidate, page: 10_000, slots: 16 << 20, candidates: pages, ..Pass::default() };
            let pass = kernel.run(Chunks::begin(pages, Cause::Timer));
            let compressing = Duration::from_nanos(10_000 * pages);
            let once = Duration::from_nanos(slot * kernel.slots + candidate * pages);
            assert_eq!(pass.candidates, 0, "{pass:?}");
            assert!(pass.took < compressing * 5 / 2 + once * 30, "{pass:?}");
            assert!(pass.longest < once * 4 + AIM, "{pass:?}");
        }
    }

    /// Most pages are recently used, and not selected.
    #[test]
    fn a_pass_ends_soon_when_no_such_page_is_left() {
        for (candidates, most) in [(0, 22), (3, 24), (1000, 40)] {
            let kernel = Pass { slot: 20, page: 10_000, slots: 4 << 20, candidates, ..Pass::default() };
            let pass = kernel.run(Chunks::begin(4 << 20, Cause::Timer));
            assert_eq!(pass.candidates, 0, "{pass:?}");
            assert!(pass.chunks <= most, "{pass:?}");
        }
    }

    /// A page takes 10 µs. Those that do not shrink are tried again each time.
    #[test]
    fn pages_that_are_tried_again_keep_no_others_from_their_turn() {
        let kernel =
            Pass { page: 10_000, slots: 1 << 17, candidates: 9000, hopeless: 3000, ..Pass::default() };
        let pass = kernel.run(Chunks::begin(9000, Cause::Timer).trying_again());
        assert!(pass.candidates < 3000 + 4000, "{pass:?}");
        assert!(pass.longest <= US * 10 * MOST_AGAIN, "{pass:?}");
        // Once chunks are large enough, they remain so: of 60000 pages that are tried, half shrink.
        let kernel = Pass { candidates: 60_000, hopeless: 1000, ..kernel };
        let pass = kernel.run(Chunks::begin(60_000, Cause::Timer).trying_again());
        assert!(pass.candidates < 1000 + 30_000, "{pass:?}");
    }

    #[test]
    fn the_next_chunk_is_sized_by_the_time_of_this_one() {
        let first = Chunks::begin(1 << 20, Cause::Timer);
        let first = Chunks { after_probe: None, ..first };
        for (pages, took, shrank, expected) in [
            (100, US * 1000, 1, 200),
            (100, US * 4000, 1, 50),
            (100, US * 1_000_000, 1, LEAST),
            // No page has been compressed.
            (4096, US * 4095, 0, 8192),
            (4096, US * 4096, 0, 2000),
        ] {
            let next = Chunks { pages, ..first }.next(took, shrank).unwrap();
            assert_eq!(next.pages, expected, "{pages} {took:?} {shrank}");
        }
        // With pages that are tried again, a chunk grows if less than half of it shrank.
        for (shrank, expected) in [(50, 50), (49, 200)] {
            let again = Chunks { pages: 100, ..first }.trying_again();
            assert_eq!(again.next(US * 4000, shrank).unwrap().pages, expected, "{shrank}");
        }
    }

    #[test]
    fn a_pass_begins_with_a_probe_and_after_sixteen_chunks_there_is_another_one() {
        let mut chunks = Chunks::begin(1 << 20, Cause::Timer);
        let mut probes = Vec::new();
        for index in 0..40 {
            probes.extend((chunks.pages == 1).then_some(index));
            chunks = chunks.next(US * 10 * chunks.pages, u64::from(chunks.pages)).unwrap();
        }
        assert_eq!(probes, [0, 17, 34]);
        // The page of a probe counts as processed.
        let second = Chunks::begin(17, Cause::Timer).next(US, 1).unwrap();
        assert_eq!((second.pages, second.next(US, 1)), (16, None));
    }

    #[test]
    fn pages_that_gain_nothing_have_their_turn_once() {
        let mut chunks = Chunks::begin(5000, Cause::Timer);
        let mut turns = chunks.pages;
        while let Some(next) = chunks.next(US * 10 * chunks.pages, 0) {
            (chunks, turns) = (next, turns + next.pages);
        }
        assert!((5000..5400).contains(&turns), "{turns}");
    }

    /// Another program on the same CPU, or a disk that had to spin up.
    #[test]
    fn what_disturbs_a_probe_leads_to_no_large_chunk() {
        let mut chunks = Chunks::begin(1 << 20, Cause::Timer).next(Duration::from_secs(5), 1).unwrap();
        for _ in 0..200 {
            assert!(chunks.pages < 1000, "{chunks:?}");
            chunks = chunks.next(US * 10 * chunks.pages, u64::from(chunks.pages)).unwrap();
        }
    }
}
