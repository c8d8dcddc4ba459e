//! Figures derived from the counters of a device.

use serde::{Deserialize, Serialize};

use super::stat::{BdStat, MmStat};

/// Derived figures of one device.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Derived {
    /// Bytes that are actually compressed: stored bytes without same-filled pages (which need no memory) and without
    /// written-back ones (which are on the backing device).
    pub compressible_bytes: u64,
    /// `compressible_bytes` ÷ memory used, including allocator overhead; 0 if nothing is stored.
    ///
    /// `orig_data_size ÷ compr_data_size`, as shown by other programs, is higher: it counts same-filled and
    /// written-back pages as compressed, and ignores the overhead of the allocator.
    pub compression_ratio: f64,
    /// Memory that the stored pages would take uncompressed, minus the memory used; at least 0.
    pub saved_bytes: u64,
    /// The memory used, minus what the stored pages would take uncompressed; at least 0.
    pub loss_bytes: u64,
    /// Uncompressed bytes that the device can still store: limited by its size, its memory limit and the available
    /// memory, at the present ratio (at 1 while nothing is stored).
    pub headroom_bytes: u64,
    /// Share of the stored pages that do not compress, 0 to 1.
    pub huge_share: f64,
    /// Share of the stored pages that are same-filled, 0 to 1.
    pub same_share: f64,
}

impl Derived {
    /// Memory saved; negative if it is a loss.
    pub fn balance(&self) -> i64 {
        let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        bytes(self.saved_bytes) - bytes(self.loss_bytes)
    }
}

/// Properties of a device other than its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Bytes per page.
    pub page_size: u64,
    /// Uncompressed bytes that still fit: free swap slots, or `disksize` minus the bytes stored.
    pub free_bytes: u64,
    /// `MemAvailable` in bytes.
    pub available_bytes: u64,
}

/// Computes the figures.
pub fn derive(memory: &MmStat, backing: &BdStat, frame: Frame) -> Derived {
    let pages = |count: u64| count.saturating_mul(frame.page_size);
    let same = pages(memory.same_pages);
    let in_memory = memory.orig_data_size.saturating_sub(backing.used_bytes);
    let compressible = in_memory.saturating_sub(same);
    let ratio =
        if memory.mem_used_total == 0 { 0.0 } else { compressible as f64 / memory.mem_used_total as f64 };
    let share = |bytes: u64| {
        if memory.orig_data_size == 0 { 0.0 } else { (bytes as f64 / memory.orig_data_size as f64).min(1.0) }
    };
    // Without data, no ratio is known.
    let factor = if ratio == 0.0 { 1.0 } else { ratio };
    let room = match memory.mem_limit {
        0 => frame.available_bytes,
        limit => limit.saturating_sub(memory.mem_used_total).min(frame.available_bytes),
    };
    Derived {
        compressible_bytes: compressible,
        compression_ratio: ratio,
        saved_bytes: in_memory.saturating_sub(memory.mem_used_total),
        loss_bytes: memory.mem_used_total.saturating_sub(in_memory),
        headroom_bytes: frame.free_bytes.min(times(room, factor)),
        huge_share: share(pages(memory.huge_pages)),
        same_share: share(same),
    }
}

/// `bytes × factor`; the conversion saturates.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn times(bytes: u64, factor: f64) -> u64 {
    (bytes as f64 * factor) as u64
}

#[cfg(test)]
mod tests {
    use crate::device::derived::*;
    use proptest::prelude::{any, proptest};

    const MIB: u64 = 1 << 20;

    fn frame(free_mib: u64, available_mib: u64) -> Frame {
        Frame { page_size: 4096, free_bytes: free_mib * MIB, available_bytes: available_mib * MIB }
    }

    fn stat(orig_mib: u64, used_mib: u64) -> MmStat {
        MmStat { orig_data_size: orig_mib * MIB, mem_used_total: used_mib * MIB, ..MmStat::default() }
    }

    #[test]
    fn an_empty_device_promises_no_ratio() {
        let derived = derive(&MmStat::default(), &BdStat::default(), frame(100, 60));
        assert_eq!(derived, Derived { headroom_bytes: 60 * MIB, ..Derived::default() });
    }

    #[test]
    fn same_filled_and_written_back_pages_are_no_compression() {
        let memory = MmStat { same_pages: 10 * MIB / 4096, huge_pages: 25 * MIB / 4096, ..stat(100, 20) };
        let backing = BdStat { used_bytes: 30 * MIB, ..BdStat::default() };
        let derived = derive(&memory, &backing, frame(1000, 40));
        assert_eq!(derived.compressible_bytes, 60 * MIB);
        assert!((derived.compression_ratio - 3.0).abs() < 1e-9);
        assert_eq!(derived.saved_bytes, 50 * MIB);
        assert_eq!(derived.headroom_bytes, 120 * MIB);
        assert!((derived.huge_share - 0.25).abs() < 1e-9);
        assert!((derived.same_share - 0.1).abs() < 1e-9);
    }

    #[test]
    fn a_loss_is_not_hidden() {
        let balance = |orig, used| derive(&stat(orig, used), &BdStat::default(), frame(0, 0)).balance() >> 20;
        assert_eq!([balance(5, 3), balance(3, 3), balance(3, 5)], [2, 0, -2]);
    }

    #[test]
    fn the_smallest_bound_counts() {
        let free = derive(&stat(100, 50), &BdStat::default(), frame(7, 1000));
        assert_eq!(free.headroom_bytes, 7 * MIB);
        let limited = MmStat { mem_limit: 55 * MIB, ..stat(100, 50) };
        assert_eq!(derive(&limited, &BdStat::default(), frame(1000, 1000)).headroom_bytes, 10 * MIB);
    }

    proptest! {
        /// Counters are read one after another from a running kernel, so any combination can occur.
        #[test]
        fn no_combination_of_counters_gives_nonsense(
            orig in any::<u64>(), used in any::<u64>(), limit in any::<u64>(), same in any::<u64>(),
            huge in any::<u64>(), backing in any::<u64>(), free in any::<u64>(), available in any::<u64>()
        ) {
            let memory = MmStat {
                orig_data_size: orig, mem_used_total: used, mem_limit: limit, same_pages: same,
                huge_pages: huge, ..MmStat::default()
            };
            let backing = BdStat { used_bytes: backing, ..BdStat::default() };
            let derived =
                derive(&memory, &backing, Frame { page_size: 4096, free_bytes: free, available_bytes: available });
            assert!(derived.compression_ratio.is_finite() && derived.compression_ratio >= 0.0);
            assert!((0.0..=1.0).contains(&derived.huge_share) && (0.0..=1.0).contains(&derived.same_share));
            assert!(derived.saved_bytes <= orig && derived.loss_bytes <= used && derived.headroom_bytes <= free);
            assert!(derived.saved_bytes == 0 || derived.loss_bytes == 0);
            assert!(derived.compressible_bytes <= orig);
        }
    }
}
