//! When compressed swap takes so much memory that its oldest pages are written back, before tasks wait for memory.
//!
//! Cold pages take memory from hot ones although they are compressed. Free swap slots are no measure: a page that was
//! written back keeps its slot.

use std::time::Duration;

use super::Cause;
use super::age::shortest;
use super::pressure::{Level, is_of_machine};
use super::writeback::LEAST;
use crate::device::derived::Derived;
use crate::device::stat::MmStat;
use crate::sample::{DeviceView, RoleView, Snapshot};

/// Percentages of the memory of the machine, and of the memory limit of the device: more than the first is too much, and
/// is reduced to the second.
const OF_MEMORY: (u64, u64) = (12, 10);
const OF_LIMIT: (u64, u64) = (75, 60);
/// What swap is reduced to under critical pressure, as a percentage of the memory: frequent pages may wait for just that.
const OF_MEMORY_IF_CRITICAL: u64 = 5;

/// Bytes that arrive between two runs at least: without them, swap is not filling.
const ARRIVED: u64 = 16 << 20;

/// Whether a device takes too much memory: `all` bytes with others like it, of a machine with `total`.
fn is_too_much(memory: &MmStat, all: u64, total: u64) -> bool {
    over(memory, all, total, OF_MEMORY.0, OF_LIMIT.0) > 0
}

/// Uncompressed bytes to write back until a device takes as little memory as it should at this level, `all` being what it
/// takes with others like it.
pub fn excess(memory: &MmStat, all: u64, derived: &Derived, total: u64, level: Level) -> u64 {
    let of_memory = if level == Level::Critical { OF_MEMORY_IF_CRITICAL } else { OF_MEMORY.1 };
    let over = over(memory, all, total, of_memory, OF_LIMIT.1).min(memory.mem_used_total);
    // The conversion saturates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let bytes = (over as f64 * derived.compression_ratio.max(1.0)) as u64;
    bytes
}

/// Bytes of memory above these percentages.
fn over(memory: &MmStat, all: u64, total: u64, of_memory: u64, of_limit: u64) -> u64 {
    let limit = if memory.mem_limit == 0 { u64::MAX } else { part(memory.mem_limit, of_limit) };
    let above_limit = memory.mem_used_total.saturating_sub(limit);
    all.saturating_sub(part(total, of_memory)).max(above_limit)
}

/// Minimum time between two runs.
const BACK_OFF: Duration = Duration::from_secs(30);
/// Minimum time after a run that wrote nothing, because no page was old enough, or the budget is spent. Each further one
/// doubles it, up to the second value.
const AFTER_NOTHING: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(600));

/// Notices that swap with a backing device fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filling {
    last: Option<Begun>,
}

/// The last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begun {
    /// Of a clock that is never set.
    at: Duration,
    /// Bytes written to all such swap until then.
    arrived: u64,
    /// Bytes written from it to backing devices until then.
    written_back: u64,
    /// Minimum time until the next run if this one writes nothing.
    after_nothing: Duration,
}

impl Filling {
    /// Whether a run is due now, at this level. Under critical pressure, pages that do not compress are written as they arrive, so one that
    /// has written something is followed at once.
    pub fn is_due(self, snapshot: &Snapshot, level: Level, now: Duration) -> bool {
        let arrives = self.last.is_none_or(|last| {
            // The counters of a new device begin at 0.
            let least = match written_back(snapshot).checked_sub(last.written_back) {
                Some(0) => last.after_nothing,
                Some(LEAST..) if level == Level::Critical => Duration::ZERO,
                _ => BACK_OFF,
            };
            let new = arrived(snapshot).checked_sub(last.arrived);
            now.saturating_sub(last.at) >= least && new.is_none_or(|bytes| bytes >= ARRIVED)
        });
        // A memory limit of the device counts in any case: writes fail at it.
        let (available, total) = (snapshot.memory.available_bytes, snapshot.memory.total_bytes);
        let all = if is_of_machine(available, total) { used(snapshot) } else { 0 };
        arrives && swaps(snapshot).any(|device| is_too_much(&device.stats.memory, all, total))
    }

    /// Notes a run that begins now. One that looks only for older pages says nothing about those that are written while
    /// swap fills.
    pub fn begins(&mut self, cause: Cause, snapshot: &Snapshot, now: Duration) {
        if shortest(cause.level()) > shortest(Level::None) {
            return;
        }
        let (arrived, written_back) = (arrived(snapshot), written_back(snapshot));
        let (first, longest) = AFTER_NOTHING;
        let in_vain = self.last.filter(|last| last.written_back == written_back);
        let after_nothing = in_vain.map_or(first, |last| (last.after_nothing * 2).min(longest));
        self.last = Some(Begun { at: now, arrived, written_back, after_nothing });
    }
}

fn part(bytes: u64, percent: u64) -> u64 {
    bytes / 100 * percent + bytes % 100 * percent / 100
}

fn used(snapshot: &Snapshot) -> u64 {
    swaps(snapshot).map(|device| device.stats.memory.mem_used_total).sum()
}

fn arrived(snapshot: &Snapshot) -> u64 {
    swaps(snapshot).map(|device| device.stats.block.written_bytes).sum()
}

fn written_back(snapshot: &Snapshot) -> u64 {
    swaps(snapshot).map(|device| device.stats.backing.written_bytes).sum()
}

/// Swap of zramd with a backing device.
fn swaps(snapshot: &Snapshot) -> impl Iterator<Item = &DeviceView> {
    let has_backing = |device: &&DeviceView| {
        device.managed && device.role == RoleView::Swap && !device.backing_device.is_empty()
    };
    snapshot.devices.iter().filter(has_backing)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use crate::maintain::filling::*;

    const MIB: u64 = 1 << 20;

    /// In MiB, with this memory limit (0 for none) and ratio, on a machine of 800 MiB.
    fn excess_mib(used: u64, limit: u64, compression_ratio: f64) -> (bool, u64) {
        excess_beside(0, used, limit, compression_ratio)
    }

    fn excess_beside(others: u64, used: u64, limit: u64, compression_ratio: f64) -> (bool, u64) {
        let memory = MmStat { mem_used_total: used * MIB, mem_limit: limit * MIB, ..MmStat::default() };
        let derived = Derived { compression_ratio, ..Derived::default() };
        let (all, total) = ((others + used) * MIB, 800 * MIB);
        (is_too_much(&memory, all, total), excess(&memory, all, &derived, total, Level::None) / MIB)
    }

    #[test]
    fn more_than_the_first_share_is_reduced_to_the_second() {
        let without_limit = [0, 80, 96, 97, 180].map(|used| excess_mib(used, 0, 3.0));
        assert_eq!(without_limit, [(false, 0), (false, 0), (false, 48), (true, 51), (true, 300)]);
        let with_limit = [36, 45, 46].map(|used| excess_mib(used, 60, 1.0));
        assert_eq!(with_limit, [(false, 0), (false, 9), (true, 10)]);
        assert_eq!(excess_mib(200, 0, 0.9), (true, 120), "data that does not compress is written as it is");
        let beside = [10, 70, 90].map(|used| excess_beside(88, used, 0, 1.0));
        assert_eq!(beside, [(true, 10), (true, 70), (true, 90)], "no more than it holds");
        assert_eq!(excess_beside(88, 7, 0, 1.0), (false, 7));
        assert!(excess_beside(500, 46, 60, 1.0).0);
    }

    #[test]
    fn critical_pressure_leaves_half_of_that_share() {
        let memory = MmStat { mem_used_total: 70 * MIB, ..MmStat::default() };
        let left = [Level::Moderate, Level::Severe, Level::Critical]
            .map(|level| excess(&memory, 70 * MIB, &Derived::default(), 800 * MIB, level) / MIB);
        assert_eq!(left, [0, 0, 30]);
    }

    /// A machine of 800 MiB whose swap takes 120 MiB, after this number of bytes was written to it.
    fn sample(written_bytes: u64, backing: &str) -> Snapshot {
        let mut device = DeviceView {
            managed: true,
            role: RoleView::Swap,
            backing_device: backing.to_owned(),
            ..DeviceView::default()
        };
        device.stats.memory.mem_used_total = 120 * MIB;
        device.stats.derived.compression_ratio = 3.0;
        device.stats.block.written_bytes = written_bytes;
        let mut snapshot = Snapshot { devices: vec![device], ..Snapshot::default() };
        snapshot.memory.total_bytes = 800 * MIB;
        snapshot
    }

    #[test]
    fn devices_are_judged_together() {
        let of = |used: &[u64]| {
            let mut sample = sample(MIB, "/dev/sda3");
            sample.devices = used
                .iter()
                .map(|used| {
                    let mut device = sample.devices[0].clone();
                    device.stats.memory.mem_used_total = used * MIB;
                    device
                })
                .collect();
            Filling::default().is_due(&sample, Level::None, Duration::ZERO)
        };
        assert_eq!([of(&[96]), of(&[90, 6]), of(&[90, 7]), of(&[])], [false, false, true, false]);
    }

    #[test]
    fn on_a_machine_with_memory_only_a_device_at_its_limit_matters() {
        for (available, limit, expected) in [(199, 0, true), (200, 0, false), (200, 159, true)] {
            let mut sample = sample(MIB, "/dev/sda3");
            sample.memory.available_bytes = available * MIB;
            sample.devices[0].stats.memory.mem_limit = limit * MIB;
            assert_eq!(
                Filling::default().is_due(&sample, Level::None, Duration::ZERO),
                expected,
                "{available} {limit}"
            );
        }
    }

    #[test]
    fn a_run_is_due_again_when_time_has_passed_and_pages_have_arrived() {
        let second = Duration::from_secs(1);
        let mut filling = Filling::default();
        assert!(filling.is_due(&sample(MIB, "/dev/sda3"), Level::None, second));
        assert!(!filling.is_due(&sample(MIB, ""), Level::None, second), "there is no backing device");
        filling.begins(Cause::Filling, &sample(MIB, "/dev/sda3"), second);
        let (severe, critical) = (Level::Severe, Level::Critical);
        for (level, arrived, written_back, now, expected) in [
            (severe, MIB, 1, second + BACK_OFF, false),
            (severe, MIB + ARRIVED, 1, BACK_OFF, false),
            (severe, MIB + ARRIVED, LEAST, BACK_OFF, false),
            (severe, MIB + ARRIVED, 1, second + BACK_OFF, true),
            (severe, 0, 1, second + BACK_OFF, true), // a new device
            (severe, MIB + ARRIVED, 0, second + BACK_OFF, false),
            (severe, MIB + ARRIVED, 0, second + AFTER_NOTHING.0, true),
            (critical, MIB, LEAST, second + BACK_OFF, false),
            (critical, MIB + ARRIVED, LEAST, second, true),
            (critical, MIB + ARRIVED, LEAST - 1, BACK_OFF, false),
            (critical, MIB + ARRIVED, LEAST - 1, second + BACK_OFF, true),
            (critical, MIB + ARRIVED, 0, second + BACK_OFF, false),
        ] {
            let mut sample = sample(arrived, "/dev/sda3");
            sample.devices[0].stats.backing.written_bytes = written_back;
            assert_eq!(
                filling.is_due(&sample, level, now),
                expected,
                "{level:?} {arrived} {written_back} {now:?}"
            );
        }
    }

    #[test]
    fn a_new_device_has_not_written_in_vain() {
        let mut filling = Filling::default();
        let mut before = sample(MIB, "/dev/sda3");
        before.devices[0].stats.backing.written_bytes = LEAST;
        filling.begins(Cause::Filling, &before, Duration::ZERO);
        let new = sample(MIB + ARRIVED, "/dev/sda3");
        for level in [Level::None, Level::Critical] {
            assert!(!filling.is_due(&new, level, BACK_OFF.saturating_sub(Duration::from_secs(1))));
            assert!(filling.is_due(&new, level, BACK_OFF));
        }
    }

    #[test]
    fn runs_that_write_nothing_become_rarer_until_one_writes() {
        let mut filling = Filling::default();
        let mut now = Duration::ZERO;
        let mut run = |arrived: u64, written_back| {
            let mut sample = sample(arrived * ARRIVED, "/dev/sda3");
            sample.devices[0].stats.backing.written_bytes = written_back;
            let begun = now;
            while !filling.is_due(&sample, Level::None, now) {
                now += Duration::from_secs(1);
            }
            filling.begins(Cause::Filling, &sample, now);
            now.saturating_sub(begun).as_secs()
        };
        let pauses: Vec<u64> = (1..8).map(|run_number| run(run_number, 0)).collect();
        assert_eq!(pauses, [0, 60, 120, 240, 480, 600, 600]);
        assert_eq!([run(8, MIB), run(9, MIB), run(10, MIB)], [30, 60, 120]);
    }

    #[test]
    fn a_run_for_older_pages_does_not_delay_one_for_younger_ones() {
        for (level, expected) in [(Level::Moderate, true), (Level::Severe, false), (Level::Critical, false)] {
            let mut filling = Filling::default();
            let now = Duration::from_secs(1);
            filling.begins(Cause::Pressure(level), &sample(MIB, "/dev/sda3"), now);
            assert_eq!(filling.is_due(&sample(MIB, "/dev/sda3"), Level::None, now), expected, "{level:?}");
        }
    }

    proptest! {
        #[test]
        fn no_combination_of_figures_overflows(
            used in any::<u64>(), all in any::<u64>(), mem_limit in any::<u64>(), total in any::<u64>(), ratio in any::<f64>()
        ) {
            let memory = MmStat { mem_used_total: used, mem_limit, ..MmStat::default() };
            let derived = Derived { compression_ratio: ratio, ..Derived::default() };
            excess(&memory, all, &derived, total, Level::Critical);
        }
    }
}
