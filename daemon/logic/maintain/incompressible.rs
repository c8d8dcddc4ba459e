//! Swapping stops while what is swapped out does not compress: such a page takes as much memory in swap as before, and the time
//! to compress it.

use std::time::Duration;

use super::taken_in::Totals;
use crate::record::{Record, Undo};
use crate::request::Request;
use crate::vm::Tunable;

/// Percentage of incompressible pages from which swapping stops.
const STOPS: u64 = 90;
/// It is judged by what arrives until it is this part of the memory: a smaller amount may be a few pictures, between pages of
/// other programs that do compress.
const PART: u64 = 32;
/// With write-back, by this part: it takes seconds to begin, and what it has written takes no memory.
const PART_WITH_WRITE_BACK: u64 = 8;
/// But at least by this, in bytes.
const LEAST: u64 = 16 << 20;
/// And only if less than this part of the memory is available, as a divisor: `vm.swappiness` applies to all control groups, and must not
/// change because one is at its own limit, which a user may set. In the lab, it was 2 % when swapping had to stop.
const SHORT: u64 = 10;
/// The longest time without swapping, unless write-back frees memory sooner. Then pages arrive again, and are judged.
pub const LONGEST: Duration = Duration::from_secs(30);
/// Interval between two looks while memory is short.
pub const INTERVAL: Duration = Duration::from_millis(100);
/// Memory is no longer short after this time without a report of the kernel.
pub const CALM: Duration = Duration::from_secs(8);
/// The trigger in `/proc/pressure/memory`: 5 ms of waiting within half a second, the shortest time that the kernel accepts. It
/// then reports within 50 ms, with `CAP_SYS_RESOURCE` only (Documentation/accounting/psi.rst).
pub const TRIGGER: &str = "some 5000 500000";
/// `vm.swappiness` without swapping.
pub const NEVER: &str = "0";

/// What to do about swapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Stop it, because of what has arrived.
    Stop(Totals),
    Resume,
}

/// Follows what arrives while memory is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// Bytes of the machine.
    memory: u64,
    writes_back: bool,
    /// From which on it is judged.
    before: Option<Totals>,
    /// The time of a stop, and from which on that was judged.
    stopped: Option<(Duration, Totals)>,
}

impl Watch {
    /// Nothing has arrived yet, on a machine with this many bytes of memory.
    pub fn new(memory: u64, writes_back: bool) -> Watch {
        Watch { memory, writes_back, before: None, stopped: None }
    }

    /// Evaluates the totals at time `now` (of a clock that is never set). `available` reads how many bytes of memory are available, and
    /// is called when enough has arrived.
    pub fn look(
        &mut self,
        now: Duration,
        totals: Totals,
        available: impl FnOnce() -> u64,
    ) -> Option<Decision> {
        if let Some((since, before)) = self.stopped {
            let is_useless = totals.since(before).useless_percent(0).is_some_and(|percent| percent >= STOPS);
            return (self.writes_back && !is_useless || now.saturating_sub(since) >= LONGEST).then(|| {
                *self = Watch { before: Some(totals), stopped: None, ..*self };
                Decision::Resume
            });
        }
        let before = *self.before.get_or_insert(totals);
        let arrived = totals.since(before);
        let part = if self.writes_back { PART_WITH_WRITE_BACK } else { PART };
        let percent = arrived.useless_percent((self.memory / part).max(LEAST))?;
        self.before = Some(totals);
        (percent >= STOPS && available() < self.memory / SHORT).then(|| {
            self.stopped = Some((now, before));
            Decision::Stop(arrived)
        })
    }
}

/// The value of `vm.swappiness` that `[vm]` has set, according to its record.
pub fn configured(record: &Record) -> Option<&str> {
    let Request::Vm(request) = &record.request else { return None };
    let (_, value) = request.values.iter().find(|(tunable, _)| *tunable == Tunable::Swappiness)?;
    Some(value)
}

/// The undo of a stop. It is the last one in the record of `[vm]` while memory is short: a daemon that is killed leaves it to the next
/// one, or to the end of `[vm]`.
pub fn undo(record: &Record) -> Option<Undo> {
    let before = configured(record).filter(|value| *value != NEVER)?.to_owned();
    Some(Undo::RestoreTunable { tunable: Tunable::Swappiness, before, ours: NEVER.to_owned() })
}

/// Whether the record of `[vm]` has it.
pub fn is_prepared(record: &Record) -> bool {
    record.undo.last().is_some_and(|last| undo(record).as_ref() == Some(last))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A look at a machine without available memory.
    fn look(watch: &mut Watch, at: u64, written: u64, incompressible: u64) -> Option<Decision> {
        watch.look(seconds(at), Totals::new(written, incompressible), || 0)
    }

    #[test]
    fn it_stops_for_half_a_minute_at_most_and_judges_what_arrives_then() {
        let mut watch = Watch::new(GIB, false);
        let mut look =
            |at, written, incompressible| look(&mut watch, at, written * MIB, incompressible * MIB);
        let stop =
            |written, incompressible| Some(Decision::Stop(Totals::new(written * MIB, incompressible * MIB)));
        assert_eq!(look(0, 100, 0), None);
        assert_eq!(look(1, 131, 31), None);
        assert_eq!(look(2, 132, 30), stop(32, 30));
        // Without write-back, the memory is still taken.
        assert_eq!(look(3, 150, 30), None);
        assert_eq!(look(31, 200, 90), None);
        assert_eq!(look(32, 200, 90), Some(Decision::Resume));
        assert_eq!(look(33, 231, 121), None);
        assert_eq!(look(34, 240, 130), stop(40, 40));
    }

    #[test]
    fn swapping_is_resumed_as_soon_as_write_back_has_freed_memory() {
        let mut watch = Watch::new(GIB, true);
        let totals = |written, written_back| {
            Totals::new(written * MIB, written * MIB).written_back(written_back * MIB)
        };
        let mut look =
            |at, written, written_back| watch.look(seconds(at), totals(written, written_back), || 0);
        assert_eq!(look(0, 100, 50), None);
        assert_eq!(look(1, 228, 50), Some(Decision::Stop(totals(128, 0))));
        assert_eq!(look(2, 228, 62), None);
        assert_eq!(look(3, 228, 63), Some(Decision::Resume));
        // While write-back keeps pace, swapping does not stop.
        assert_eq!(look(4, 356, 76), None);
        assert_eq!(look(5, 484, 76), Some(Decision::Stop(totals(128, 0))));
    }

    #[test]
    fn pages_of_which_more_than_a_tenth_compress_are_swapped_out() {
        let mut watch = Watch::new(GIB, false);
        for step in 0..100 {
            assert_eq!(look(&mut watch, step, step * 64 * MIB, step * 57 * MIB), None);
        }
    }

    #[test]
    fn a_small_machine_judges_by_16_mib_a_large_one_by_more_and_with_write_back_by_still_more() {
        for (memory, writes_back, enough) in [
            (64 * MIB, false, 16 * MIB),
            (256 * MIB, false, 16 * MIB),
            (16 * GIB, false, 512 * MIB),
            (64 * MIB, true, 16 * MIB),
            (256 * MIB, true, 32 * MIB),
            (16 * GIB, true, 2 * GIB),
        ] {
            let stops = |arrived| {
                let mut watch = Watch::new(memory, writes_back);
                look(&mut watch, 0, 0, 0);
                look(&mut watch, 1, arrived, arrived).is_some()
            };
            assert!(stops(enough) && !stops(enough - 1));
        }
    }

    #[test]
    fn what_a_control_group_swaps_out_at_its_own_limit_stops_nothing() {
        for (available, stops) in [(0, true), (GIB / 10 - 1, true), (GIB / 10, false), (GIB, false)] {
            let mut watch = Watch::new(GIB, false);
            watch.look(seconds(0), Totals::default(), || available);
            let decision = watch.look(seconds(1), Totals::new(32 * MIB, 32 * MIB), || available);
            assert_eq!(decision.is_some(), stops, "{available}");
        }
    }

    proptest! {
        /// Whatever the counters do, each stop is followed by the end of it, in time.
        #[test]
        fn each_stop_ends(steps in prop::collection::vec((0_u64..20_000, any::<u64>(), any::<u64>()), 0..100)) {
            let (mut watch, mut now, mut stopped) = (Watch::new(GIB, false), Duration::ZERO, None);
            for (passed, written, incompressible) in steps {
                now += Duration::from_millis(passed);
                match watch.look(now, Totals::new(written, incompressible), || 0) {
                    Some(Decision::Stop(_)) => {
                        prop_assert_eq!(stopped, None);
                        stopped = Some(now);
                    }
                    Some(Decision::Resume) => {
                        prop_assert!(now.saturating_sub(stopped.take().unwrap()) >= LONGEST);
                    }
                    None => prop_assert!(stopped.is_none_or(|since| now.saturating_sub(since) < LONGEST)),
                }
            }
        }
    }
}
