//! The zram swap that stores the most, and its statistics.

use host::Host;
use logic::benchmark::calibrate::Target;
use logic::device::attribute::Attribute;
use logic::device::stat::{BdStat, MmStat};

use crate::Error;
use crate::gather;

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
