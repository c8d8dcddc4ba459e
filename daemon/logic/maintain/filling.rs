//! When compressed swap takes so much memory that its oldest pages are written back, before tasks wait for memory.
//!
//! Cold pages take memory from hot ones although they are compressed. Free swap slots are no measure: a page that was
//! written back keeps its slot.

use std::time::Duration;

use crate::device::derived::Derived;
use crate::device::stat::MmStat;
use crate::sample::{DeviceView, RoleView, Snapshot};

/// Percentages of the memory of the machine, and of the memory limit of the device: more than the first is too much, and
/// is reduced to the second.
const OF_MEMORY: (u64, u64) = (12, 10);
const OF_LIMIT: (u64, u64) = (75, 60);

/// Bytes that arrive between two runs at least: without them, swap is not filling.
const ARRIVED: u64 = 16 << 20;

/// Whether a device takes too much memory; `total` is the memory of the machine in bytes.
fn is_too_much(memory: &MmStat, total: u64) -> bool {
    over(memory, total, |(most, _)| most) > 0
}

/// Uncompressed bytes to write back until a device takes as little memory as it should.
pub fn excess(memory: &MmStat, derived: &Derived, total: u64) -> u64 {
    let over = over(memory, total, |(_, aim)| aim);
    // The conversion saturates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let bytes = (over as f64 * derived.compression_ratio.max(1.0)) as u64;
    bytes
}

/// Bytes of memory above a percentage.
fn over(memory: &MmStat, total: u64, percent: impl Fn((u64, u64)) -> u64) -> u64 {
    let above = |of: u64, shares| memory.mem_used_total.saturating_sub(part(of, percent(shares)));
    let above_limit = if memory.mem_limit == 0 { 0 } else { above(memory.mem_limit, OF_LIMIT) };
    above(total, OF_MEMORY).max(above_limit)
}

/// Minimum time between two runs.
const BACK_OFF: Duration = Duration::from_secs(30);
/// Minimum time after a run that wrote nothing: the budget may be spent, or no page old enough.
const AFTER_NOTHING: Duration = Duration::from_secs(600);

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
}

impl Filling {
    /// Whether a run is due now.
    pub fn is_due(self, snapshot: &Snapshot, now: Duration) -> bool {
        let arrives = self.last.is_none_or(|last| {
            let did_nothing = written_back(snapshot) == last.written_back;
            let least = if did_nothing { AFTER_NOTHING } else { BACK_OFF };
            // The counter of a new device begins at 0.
            let new = arrived(snapshot).checked_sub(last.arrived);
            now.saturating_sub(last.at) >= least && new.is_none_or(|bytes| bytes >= ARRIVED)
        });
        arrives
            && swaps(snapshot).any(|device| is_too_much(&device.stats.memory, snapshot.memory.total_bytes))
    }

    /// Notes a run that begins now.
    pub fn begins(&mut self, snapshot: &Snapshot, now: Duration) {
        let (arrived, written_back) = (arrived(snapshot), written_back(snapshot));
        self.last = Some(Begun { at: now, arrived, written_back });
    }
}

fn part(bytes: u64, percent: u64) -> u64 {
    bytes / 100 * percent + bytes % 100 * percent / 100
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
        let memory = MmStat { mem_used_total: used * MIB, mem_limit: limit * MIB, ..MmStat::default() };
        let derived = Derived { compression_ratio, ..Derived::default() };
        (is_too_much(&memory, 800 * MIB), excess(&memory, &derived, 800 * MIB) / MIB)
    }

    #[test]
    fn more_than_the_first_share_is_reduced_to_the_second() {
        let without_limit = [0, 80, 96, 97, 180].map(|used| excess_mib(used, 0, 3.0));
        assert_eq!(without_limit, [(false, 0), (false, 0), (false, 48), (true, 51), (true, 300)]);
        let with_limit = [36, 45, 46].map(|used| excess_mib(used, 60, 1.0));
        assert_eq!(with_limit, [(false, 0), (false, 9), (true, 10)]);
        assert_eq!(excess_mib(200, 0, 0.9), (true, 120), "data that does not compress is written as it is");
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
    fn a_run_is_due_again_when_time_has_passed_and_pages_have_arrived() {
        let second = Duration::from_secs(1);
        let mut filling = Filling::default();
        assert!(filling.is_due(&sample(MIB, "/dev/sda3"), second));
        assert!(!filling.is_due(&sample(MIB, ""), second), "there is no backing device");
        filling.begins(&sample(MIB, "/dev/sda3"), second);
        for (arrived, written_back, now, expected) in [
            (MIB, 1, second + BACK_OFF, false),
            (MIB + ARRIVED, 1, BACK_OFF, false),
            (MIB + ARRIVED, 1, second + BACK_OFF, true),
            (0, 1, second + BACK_OFF, true), // a new device
            (MIB + ARRIVED, 0, second + BACK_OFF, false),
            (MIB + ARRIVED, 0, second + AFTER_NOTHING, true),
        ] {
            let mut sample = sample(arrived, "/dev/sda3");
            sample.devices[0].stats.backing.written_bytes = written_back;
            assert_eq!(filling.is_due(&sample, now), expected, "{arrived} {written_back} {now:?}");
        }
    }

    proptest! {
        #[test]
        fn no_combination_of_figures_overflows(
            mem_used_total in any::<u64>(), mem_limit in any::<u64>(), total in any::<u64>(), compression_ratio in any::<f64>()
        ) {
            let memory = MmStat { mem_used_total, mem_limit, ..MmStat::default() };
            excess(&memory, &Derived { compression_ratio, ..Derived::default() }, total);
        }
    }
}
