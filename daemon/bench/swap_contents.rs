//! The zram swap that stores the most, and its statistics.

use crate::calibrate::Target;
use host::Host;
use logic::device::attribute::Attribute;
use logic::device::stat::{BdStat, MmStat};

use engine::Error;
use engine::gather;

/// Compressed swap.
pub(super) struct FilledSwap {
    /// N of its `zramN`.
    pub number: u32,
    pub memory: MmStat,
    /// Pages stored, same-filled ones included.
    pub used: u64,
    /// Its size in pages.
    pub slots: u64,
}

impl FilledSwap {
    /// Pages stored that hold more than one repeated word.
    pub fn compressed(&self) -> u64 {
        self.used.saturating_sub(self.memory.same_pages)
    }

    /// The share of the pages that hold one repeated word.
    pub fn same_filled_share(&self) -> f64 {
        (self.memory.same_pages as f64 / self.used.max(1) as f64).min(1.0)
    }
}

/// The zram swap that stores the most.
pub(super) fn fullest_swap<H: Host>(host: &H) -> Result<Option<FilledSwap>, Error> {
    let page = host.page_size();
    let swaps = gather::swaps(host)?;
    let filled = swaps.iter().filter_map(|swap| {
        let number = swap.zram_number()?;
        let memory = MmStat::parse(&host.read_attribute(number, Attribute::MmStat).ok()?)?;
        Some(FilledSwap {
            number,
            memory,
            used: memory.orig_data_size / page,
            slots: swap.size_kib * 1024 / page,
        })
    });
    Ok(filled.max_by_key(|swap| swap.used))
}

/// The swap whose statistics tell how well this machine's pages compress; `None` until it stores enough.
pub(super) fn calibrating_swap<H: Host>(host: &H) -> Result<Option<(FilledSwap, Target)>, Error> {
    let Some(swap) = fullest_swap(host)? else { return Ok(None) };
    let backing = host.read_attribute(swap.number, Attribute::BdStat).ok();
    let backing = backing.and_then(|text| BdStat::parse(&text)).unwrap_or_default();
    let target = Target::new(&swap.memory, &backing, host.page_size());
    Ok(target.map(|target| (swap, target)))
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // The values are exact.
mod tests {
    use super::*;

    #[test]
    fn same_filled_pages_are_told_from_compressed_ones() {
        let swap = |used, same_pages| FilledSwap {
            number: 0,
            memory: MmStat { same_pages, ..MmStat::default() },
            used,
            slots: 1000,
        };
        assert_eq!((swap(100, 25).compressed(), swap(100, 25).same_filled_share()), (75, 0.25));
        assert_eq!((swap(0, 0).compressed(), swap(0, 0).same_filled_share()), (0, 0.0));
        // The figures are not read at the same moment.
        assert_eq!((swap(5, 6).compressed(), swap(5, 6).same_filled_share()), (0, 1.0));
    }
}
