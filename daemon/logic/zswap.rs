//! zswap at one moment: its settings and counters, in the words of a zram device.

use serde::{Deserialize, Serialize};

use super::device::derived::{Derived, Frame, derive};
use super::device::stat::{BdStat, MmStat};
use super::proc::Memory;

/// Name of its row and of its target.
pub const NAME: &str = "zswap";

/// Why zswap did not store a page, which then went to the disk uncompressed. Files of debugfs, which only root reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rejection {
    /// The pool was full: each time.
    Limit,
    /// The page did not compress.
    CompressPoor,
    /// No memory for the compressed page.
    Allocation,
}

impl Rejection {
    pub const ALL: [Rejection; 3] = [Rejection::Limit, Rejection::CompressPoor, Rejection::Allocation];

    /// Its file (mm/zswap.c).
    pub const fn path(self) -> &'static str {
        match self {
            Rejection::Limit => "/sys/kernel/debug/zswap/pool_limit_hit",
            Rejection::CompressPoor => "/sys/kernel/debug/zswap/reject_compress_poor",
            Rejection::Allocation => "/sys/kernel/debug/zswap/reject_alloc_fail",
        }
    }
}

/// Pages that zswap did not store since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rejected {
    /// How often the pool was full.
    pub limit: u64,
    /// Pages that did not compress.
    pub compress_poor: u64,
    /// Pages for which there was no memory.
    pub allocation: u64,
}

/// zswap. Its figures are those of a zram device where the meaning is the same.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZswapView {
    /// Whether it takes pages. Pages that it has stored stay when it is disabled.
    pub enabled: bool,
    /// Whether zramd enabled it.
    pub managed: bool,
    /// Compression algorithm of new pages.
    pub algorithm: String,
    /// Most memory that it takes: `max_pool_percent` of `MemTotal`.
    pub memory_limit_bytes: u64,
    /// Whether cold pages are written back before the pool is full; null before Linux 6.8.
    pub shrinker: Option<bool>,
    /// Swap on disks, where its pages have their places: bytes that fit.
    pub swap_size_bytes: u64,
    /// Bytes of these places in use.
    pub swap_used_bytes: u64,
    /// Uncompressed bytes stored (`Zswapped`).
    pub original_data_bytes: u64,
    /// Memory that they take (`Zswap`).
    pub memory_used_bytes: u64,
    /// Stored bytes divided by the memory that they take; 0 if nothing is stored.
    pub compression_ratio: f64,
    /// Stored bytes less the memory that they take; at least 0.
    pub saved_bytes: u64,
    /// Bytes stored since boot (`zswpout`).
    pub written_bytes: u64,
    /// Bytes read from it since boot (`zswpin`).
    pub read_bytes: u64,
    /// Bytes written back to the disk since boot (`zswpwb`, Linux 6.8).
    pub backing_written_bytes: u64,
    /// Pages that it did not store since boot; null without debugfs or the right to read it.
    pub rejected: Option<Rejected>,
    /// Time of reading: microseconds since boot, excluding suspend.
    pub timestamp_monotonic_usec: u64,
}

/// A counter of `/proc/vmstat`; 0 if the kernel lacks it.
pub fn counter(vmstat: &str, name: &str) -> u64 {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    vmstat.lines().find_map(value).unwrap_or(0)
}

impl ZswapView {
    /// Adds what the kernel counts: of `/proc/meminfo`, and of `/proc/vmstat` in pages of this size.
    pub fn count(&mut self, memory: &Memory, vmstat: &str, page_size: u64) {
        let bytes = |name| counter(vmstat, name).saturating_mul(page_size);
        self.original_data_bytes = memory.zswapped_kib.saturating_mul(1024);
        self.memory_used_bytes = memory.zswap_kib.saturating_mul(1024);
        self.written_bytes = bytes("zswpout");
        self.read_bytes = bytes("zswpin");
        self.backing_written_bytes = bytes("zswpwb");
        let derived = self.derived();
        self.compression_ratio = derived.compression_ratio;
        self.saved_bytes = derived.saved_bytes;
    }

    /// Figures derived from them, as for a zram device.
    pub fn derived(&self) -> Derived {
        let frame = Frame {
            page_size: 0,
            free_bytes: self.swap_size_bytes.saturating_sub(self.swap_used_bytes),
            available_bytes: u64::MAX,
        };
        derive(&self.memory(), &BdStat::default(), frame)
    }

    /// Its memory as that of a zram device. What the kernel does not count of zswap is 0.
    pub fn memory(&self) -> MmStat {
        MmStat {
            orig_data_size: self.original_data_bytes,
            mem_used_total: self.memory_used_bytes,
            mem_limit: self.memory_limit_bytes,
            ..MmStat::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_the_kernel_become_figures() {
        let memory = Memory { zswap_kib: 100, zswapped_kib: 320, ..Memory::default() };
        let vmstat = "zswpin 3\nzswpout 80\nzswpwb 7\nzswpwbx 9\n";
        let mut view =
            ZswapView { memory_limit_bytes: 400 << 10, swap_size_bytes: 1 << 20, ..ZswapView::default() };
        view.count(&memory, vmstat, 4096);
        assert_eq!(
            (view.written_bytes, view.read_bytes, view.backing_written_bytes),
            (327_680, 12_288, 28_672)
        );
        assert_eq!((view.compression_ratio, view.saved_bytes), (3.2, 225_280));
        // The rest of the pool at this ratio.
        assert_eq!(view.derived().headroom_bytes, 983_040);
        view.count(&Memory::default(), "", 4096);
        assert_eq!((view.compression_ratio, view.written_bytes), (0.0, 0));
    }
}
