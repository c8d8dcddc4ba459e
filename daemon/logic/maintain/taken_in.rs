//! What compressed swap takes in while memory is short. `MemAvailable` and the use of swap do not show it: pages that do not
//! compress free no memory.

use std::time::Duration;

use crate::device::stat::{BdStat, BlockStat, IoStat, MmStat};
use crate::finding::{Code, Finding, Level};
use crate::human::human;
use crate::sample::Snapshot;

use super::span;

/// Bytes below which the share of incompressible pages is not judged.
const WORTH_JUDGING: u64 = 16 << 20;
/// Percentage of incompressible pages from which swapping frees little memory.
const HOPELESS: u64 = 80;

/// Totals of all managed swap since it was set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Bytes that were written to it without failure.
    written: u64,
    /// Bytes of these that do not compress. The kernel counts them since Linux 5.15.
    incompressible: u64,
    /// Bytes that were written to a disk, where they take no memory.
    written_back: u64,
}

impl Totals {
    /// Bytes written without failure, and those of them that do not compress.
    #[cfg(test)]
    pub fn new(written: u64, incompressible: u64) -> Totals {
        Totals { written, incompressible, written_back: 0 }
    }

    /// These, with bytes that were written to a disk.
    #[cfg(test)]
    #[must_use]
    pub fn written_back(self, written_back: u64) -> Totals {
        Totals { written_back, ..self }
    }

    /// Those of this sample.
    pub fn of(snapshot: &Snapshot) -> Totals {
        let devices = swaps(snapshot).map(|device| &device.stats);
        devices.fold(Totals::default(), |totals, stats| {
            totals.with(&stats.block, &stats.io, &stats.memory, &stats.backing, snapshot.page_size_bytes)
        })
    }

    /// These and those of one more device.
    #[must_use]
    pub fn with(
        self,
        block: &BlockStat,
        io: &IoStat,
        memory: &MmStat,
        backing: &BdStat,
        page_size: u64,
    ) -> Totals {
        let failed = io.failed_writes.saturating_mul(page_size);
        let incompressible = memory.huge_pages_since.saturating_mul(page_size);
        Totals {
            written: self.written.saturating_add(block.written_bytes.saturating_sub(failed)),
            incompressible: self.incompressible.saturating_add(incompressible),
            written_back: self.written_back.saturating_add(backing.written_bytes),
        }
    }

    /// What has arrived since `before`.
    pub fn since(self, before: Totals) -> Totals {
        // The counters of a new device begin at 0.
        if self.written < before.written {
            return self;
        }
        Totals {
            written: self.written - before.written,
            incompressible: self.incompressible.saturating_sub(before.incompressible),
            written_back: self.written_back.saturating_sub(before.written_back),
        }
    }

    /// Whether the share of incompressible pages means something.
    pub fn is_enough(self) -> bool {
        self.written >= WORTH_JUDGING
    }

    /// Percentage for which memory is not free now, if at least `least` bytes have arrived to judge by: what does not compress, and was not
    /// written to a disk.
    pub fn useless_percent(self, least: u64) -> Option<u64> {
        self.percent(self.incompressible.saturating_sub(self.written_back), least)
    }

    fn percent(self, part: u64, least: u64) -> Option<u64> {
        let percent = || (part.saturating_mul(100) / self.written).min(100);
        (self.written >= least.max(1)).then(percent)
    }

    /// `97 % of the 40.0 MiB that arrived do not compress`, if at least `least` bytes have arrived.
    pub fn share(self, least: u64) -> Option<String> {
        let percent = self.percent(self.incompressible, least)?;
        Some(format!("{percent} % of the {} that arrived do not compress", human(self.written)))
    }

    /// `compressed swap holds 1.2 GiB in 312.0 MiB of memory and has room for 2.7 GiB; 92 % of the 40.0 MiB that arrived do
    /// not compress`, where these have arrived.
    pub fn sentence(self, snapshot: &Snapshot) -> String {
        let sum = |value: fn(&crate::sample::Stats) -> u64| {
            human(swaps(snapshot).map(|device| value(&device.stats)).sum())
        };
        let text = format!(
            "compressed swap holds {} in {} of memory and has room for {}",
            sum(|stats| stats.memory.orig_data_size),
            sum(|stats| stats.memory.mem_used_total),
            sum(|stats| stats.derived.headroom_bytes)
        );
        match self.share(WORTH_JUDGING) {
            Some(share) => format!("{text}; {share}"),
            None => text,
        }
    }

    /// A warning, if these have arrived within `time`, until `snapshot`, and most do not compress.
    pub fn warning(self, snapshot: &Snapshot, time: Duration) -> Option<Finding> {
        self.useless_percent(WORTH_JUDGING).filter(|percent| *percent >= HOPELESS)?;
        let percent = self.percent(self.incompressible, WORTH_JUDGING)?;
        let text = format!(
            "{percent} % of the {} that compressed swap took in {} do not compress, so swapping frees little memory",
            human(self.written),
            span(time)
        );
        let remedy = if swaps(snapshot).any(|device| !device.backing_device.is_empty()) {
            "end the program that takes the memory"
        } else {
            "end the program that takes the memory, or add a writeback-device or a writeback-file"
        };
        Some(Finding::new(Level::Warning, Code::Incompressible, "", text, remedy))
    }
}

fn swaps(snapshot: &Snapshot) -> impl Iterator<Item = &crate::sample::DeviceView> {
    snapshot.devices.iter().filter(|device| device.managed && device.swap.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{DeviceView, SwapView};

    const MIB: u64 = 1 << 20;

    fn machine(written: u64, incompressible_pages: u64) -> Snapshot {
        let mut ours = DeviceView {
            managed: true,
            swap: Some(SwapView { priority: 100, size_bytes: 1 << 30, used_bytes: written }),
            ..DeviceView::default()
        };
        ours.stats.block.written_bytes = written;
        ours.stats.memory.huge_pages_since = incompressible_pages;
        let theirs = DeviceView { managed: false, ..ours.clone() };
        Snapshot { devices: vec![ours, theirs], page_size_bytes: 4096, ..Snapshot::default() }
    }

    #[test]
    fn what_does_not_compress_is_warned_of() {
        let before = Totals::of(&machine(100 * MIB, 0));
        let arrived = |written, incompressible: u64| {
            Totals::of(&machine(100 * MIB + written, incompressible / 4096)).since(before)
        };
        assert_eq!(before.since(before), Totals::default());
        let sample = machine(0, 0);
        let warns = |totals: Totals| totals.warning(&sample, Duration::from_secs(2)).is_some();
        assert!(warns(arrived(40 * MIB, 32 * MIB)));
        assert!(!warns(arrived(40 * MIB, 31 * MIB)));
        assert!(!warns(arrived(15 * MIB, 15 * MIB)), "too little to judge by");
        assert!(!warns(arrived(0, 0)));
        assert!(arrived(16 * MIB, 0).is_enough() && !arrived(16 * MIB - 1, 0).is_enough());
        let of_a_new_device = Totals::of(&machine(40 * MIB, 40 * MIB / 4096)).since(before);
        assert!(warns(of_a_new_device), "its counters begin at 0");
        assert!(!warns(Totals { written_back: 20 * MIB, ..arrived(40 * MIB, 40 * MIB) }));
        let mut with_backing = machine(0, 0);
        with_backing.devices[0].backing_device = "/dev/sda9".to_owned();
        let remedy = |sample| {
            let warning = arrived(40 * MIB, 40 * MIB).warning(sample, Duration::from_secs(2));
            warning.map(|found| found.remedy).unwrap_or_default()
        };
        assert!(remedy(&sample).contains("writeback-file"));
        assert_eq!(remedy(&with_backing), "end the program that takes the memory");
        let text = arrived(40 * MIB, 10 * MIB).sentence(&machine(0, 0));
        assert!(text.contains("25 %") && text.contains("40.0 MiB"), "{text}");
        assert!(!arrived(MIB, MIB).sentence(&machine(0, 0)).contains('%'));
    }
}
