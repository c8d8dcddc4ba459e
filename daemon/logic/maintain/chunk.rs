//! How many pages one write to `recompress` or `writeback` may take: Linux 7 holds statistics back until it has ended.

use std::time::Duration;

use crate::duration::micros;

/// How long the pages of one write should take. With one CPU, whoever asks for statistics waits for several: at 8 ms, 7 in 100 answers
/// took more than 20 ms (tests/lab/scenarios/maintenance-statistics), at 2 ms, 1 in 167.
const AIM: Duration = Duration::from_millis(2);
/// Fewest pages, but for a probe.
const LEAST: u32 = 16;
/// Most pages: 256 MiB.
const MOST: u32 = 65536;
/// Most of them where pages that would not shrink are tried again and again: 16 MiB.
const MOST_AGAIN: u32 = 4096;
/// Chunks between two probes.
const PROBED: u32 = 16;
/// In less than this for each page nothing can have been compressed.
const TRY: Duration = Duration::from_micros(1);

/// The chunks of one pass.
///
/// For each write the kernel goes over the whole device first: Linux 6.12 passes by the pages that had their turn, Linux 7 makes a list
/// of those that had not. A chunk of one page, the probe, takes as long as that. Where it is longer than [`AIM`], pages take as long
/// again, so that no more than half of a pass is spent on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunks {
    /// Pages of the next chunk.
    pub pages: u32,
    /// Pages that have not had their turn.
    left: u64,
    /// How long the kernel takes to go over the device.
    look: Duration,
    /// Chunks until the next probe.
    until_probe: u32,
    /// Pages of the chunk after a probe, if the next one is a probe.
    after_probe: Option<u32>,
    least: u32,
    again: bool,
}

impl Chunks {
    /// The first chunk of a pass over so many pages.
    pub fn begin(pages: u64) -> Chunks {
        Chunks {
            pages: 1,
            left: pages.max(1),
            look: Duration::ZERO,
            until_probe: PROBED,
            after_probe: Some(LEAST),
            least: LEAST,
            again: false,
        }
    }

    /// Pages that would not shrink are tried again by the next chunk, before all others: it has to be larger to come to those.
    #[must_use]
    pub fn trying_again(self) -> Chunks {
        Chunks { again: true, ..self }
    }

    /// The next chunk, after one that took so long and in which so many pages shrank. Nothing when all pages had their turn: of pages
    /// that do not shrink, the first say nothing about the others.
    pub fn next(self, took: Duration, shrank: u64) -> Option<Chunks> {
        let left = self.left.saturating_sub(u64::from(self.pages));
        if left == 0 {
            return None;
        }
        if let Some(pages) = self.after_probe {
            return Some(Chunks { pages, left, look: took, until_probe: PROBED, after_probe: None, ..self });
        }
        // What disturbed a probe did not disturb this one.
        let look = self.look.min(took);
        let (pages, least) = self.size(took.saturating_sub(look), look, shrank);
        let next = Chunks { pages, left, look, until_probe: self.until_probe - 1, least, ..self };
        Some(if next.until_probe == 0 { Chunks { pages: 1, after_probe: Some(pages), ..next } } else { next })
    }

    /// Pages of the next chunk, and fewest of those that follow, when the pages of this one took so long and the rest `look`.
    fn size(&self, took: Duration, look: Duration, shrank: u64) -> (u32, u32) {
        // One chunk of pages that were easy says little about the next.
        let twice = self.pages.saturating_mul(2);
        if shrank == 0 && took < TRY * self.pages {
            // No such page is left, or hardly one: the end comes soon.
            return (twice, self.least);
        }
        let least = if self.again && shrank < u64::from(self.pages / 2) {
            twice.clamp(self.least, MOST_AGAIN)
        } else {
            self.least
        };
        let ideal = u64::from(self.pages).saturating_mul(micros(AIM.max(look))) / micros(took).max(1);
        (u32::try_from(ideal).unwrap_or(u32::MAX).min(twice).min(MOST).max(least), least)
    }
}

#[cfg(test)]
mod tests {
    use crate::maintain::chunk::*;

    const US: Duration = Duration::from_micros(1);

    /// A kernel, and what a pass came to on it.
    #[derive(Debug, Clone, Copy, Default)]
    struct Pass {
        /// Time for each page of the device, for each that has not had its turn, and for each that has it, in nanoseconds.
        slot: u64,
        candidate: u64,
        page: u64,
        slots: u64,
        candidates: u64,
        /// How many of them do not shrink, are in front of all others, and stay there.
        hopeless: u64,
        /// Chunks, their time, and the longest.
        chunks: u64,
        took: Duration,
        longest: Duration,
    }

    impl Pass {
        /// Over all pages that are stored.
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
                .run(Chunks::begin(50_000));
            assert_eq!(pass.candidates, 0, "{pass:?}");
            assert!(pass.longest <= Duration::from_millis(8), "{pass:?}");
            assert!(pass.chunks < 50_000 * page / 1_600_000 + 60, "{pass:?}");
        }
    }

    /// 8 GiB in use on a device of 64 GiB. Were chunks as short as can be, going over the device would take minutes, or hours.
    #[test]
    fn going_over_a_large_device_takes_as_long_as_compressing() {
        for (slot, candidate) in [(2, 0), (20, 0), (2, 100), (2, 500)] {
            let pages = 2 << 20;
            let kernel =
                Pass { slot, candidate, page: 10_000, slots: 16 << 20, candidates: pages, ..Pass::default() };
            let pass = kernel.run(Chunks::begin(pages));
            let compressing = Duration::from_nanos(10_000 * pages);
            let once = Duration::from_nanos(slot * kernel.slots + candidate * pages);
            assert_eq!(pass.candidates, 0, "{pass:?}");
            assert!(pass.took < compressing * 5 / 2 + once * 30, "{pass:?}");
            assert!(pass.longest < once * 4 + AIM, "{pass:?}");
        }
    }

    /// Most pages are in use, and were left out.
    #[test]
    fn a_pass_ends_soon_when_no_such_page_is_left() {
        for (candidates, most) in [(0, 22), (3, 24), (1000, 40)] {
            let kernel = Pass { slot: 20, page: 10_000, slots: 4 << 20, candidates, ..Pass::default() };
            let pass = kernel.run(Chunks::begin(4 << 20));
            assert_eq!(pass.candidates, 0, "{pass:?}");
            assert!(pass.chunks <= most, "{pass:?}");
        }
    }

    /// A page takes 10 µs. Those that do not shrink are tried again each time.
    #[test]
    fn pages_that_are_tried_again_keep_no_others_from_their_turn() {
        let kernel =
            Pass { page: 10_000, slots: 1 << 17, candidates: 9000, hopeless: 3000, ..Pass::default() };
        let pass = kernel.run(Chunks::begin(9000).trying_again());
        assert!(pass.candidates < 3000 + 4000, "{pass:?}");
        assert!(pass.longest <= US * 10 * MOST_AGAIN, "{pass:?}");
    }

    #[test]
    fn pages_that_gain_nothing_have_their_turn_once() {
        let mut chunks = Chunks::begin(5000);
        let mut turns = chunks.pages;
        while let Some(next) = chunks.next(US * 10 * chunks.pages, 0) {
            (chunks, turns) = (next, turns + next.pages);
        }
        assert!((5000..5400).contains(&turns), "{turns}");
    }

    /// A program of the same CPU, or a disk that had to start.
    #[test]
    fn what_disturbs_a_probe_leads_to_no_large_chunk() {
        let mut chunks = Chunks::begin(1 << 20).next(Duration::from_secs(5), 1).unwrap();
        for _ in 0..200 {
            assert!(chunks.pages < 1000, "{chunks:?}");
            chunks = chunks.next(US * 10 * chunks.pages, u64::from(chunks.pages)).unwrap();
        }
    }
}
