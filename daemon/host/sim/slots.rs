//! What the kernel knows about each page: when it was used, whether it is marked idle, with what it is compressed, where it is
//! (drivers/block/zram/zram_drv.c, `writeback_store` and `recompress_store`).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::host::Errno;

/// One page.
#[allow(clippy::struct_excessive_bools)] // Each is a flag of the kernel's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slot {
    /// When it was last read or written, since boot with suspend.
    pub accessed: Duration,
    /// Whether it is marked.
    pub idle: bool,
    /// Priority of the algorithm with which it is stored.
    pub priority: u32,
    /// Whether every secondary algorithm has failed to shrink it.
    pub incompressible: bool,
    /// Whether it is on the backing device.
    pub written: bool,
    /// Whether the primary algorithm could not shrink it. Here, those are pages without a half of zeros.
    pub huge: bool,
    /// Whether it is one repeated word: then it is neither marked nor processed.
    pub same: bool,
}

/// The pages of a device, and what of it is on the backing device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slots {
    /// By page number.
    pub all: BTreeMap<u64, Slot>,
    /// Now, since boot with suspend.
    pub clock: Duration,
    /// Blocks that fit on the backing device.
    pub capacity: u64,
    /// Blocks written there since the device was set up.
    pub written: u64,
    /// Blocks read back from there.
    pub read: u64,
    /// `writeback_limit`, in blocks.
    pub limit: u64,
    /// `writeback_limit_enable`.
    pub limited: bool,
}

/// The kernel's word for pages: `idle`, `huge`, `huge_idle`.
fn selects(word: &str, slot: &Slot) -> Option<bool> {
    Some(match word {
        "idle" => slot.idle,
        "huge" => slot.huge,
        "huge_idle" => slot.huge && slot.idle,
        _ => return None,
    })
}

impl Slots {
    /// Notes that a page was written.
    pub fn store(&mut self, number: u64, page: &[u8], same: bool) {
        let huge = !same && page[page.len() / 2..].iter().any(|byte| *byte != 0);
        let slot = Slot { accessed: self.clock, huge, same, ..Slot::default() };
        self.all.insert(number, slot);
    }

    /// Notes that a page was read.
    pub fn touch(&mut self, number: u64) {
        if let Some(slot) = self.all.get_mut(&number) {
            slot.accessed = self.clock;
            slot.idle = false;
            self.read += u64::from(slot.written);
        }
    }

    /// Blocks in use on the backing device.
    pub fn blocks(&self) -> u64 {
        self.all.values().filter(|slot| slot.written).count() as u64
    }

    /// Incompressible pages in memory.
    pub fn huge(&self) -> u64 {
        self.all.values().filter(|slot| slot.huge && slot.priority == 0 && !slot.written).count() as u64
    }

    /// `idle`: `all`, or an age in seconds where the kernel knows ages.
    pub fn mark(&mut self, value: &str, knows_ages: bool, exact: bool) -> Result<(), Errno> {
        let age = match value {
            "all" => None,
            _ if !knows_ages => return Err(Errno::INVAL),
            text => Some(Duration::from_secs(u64::from(text.parse::<u32>().map_err(|_| Errno::INVAL)?))),
        };
        let cutoff = age.map(|age| self.clock.checked_sub(age));
        for slot in self.all.values_mut().filter(|slot| !slot.same && !slot.written) {
            let old = match cutoff {
                None => true,
                Some(cutoff) => cutoff.is_some_and(|cutoff| slot.accessed <= cutoff),
            };
            slot.idle = old || (slot.idle && !exact);
        }
        Ok(())
    }

    /// `recompress`, for a device with these priorities.
    pub fn recompress(&mut self, value: &str, priorities: &[u32]) -> Result<(), Errno> {
        let (mut word, mut priority, mut left) = (None, 1, u64::MAX);
        for pair in value.split_whitespace() {
            match pair.split_once('=') {
                Some(("type", text)) => word = Some(text),
                Some(("priority", text)) => priority = text.parse().map_err(|_| Errno::INVAL)?,
                Some(("max_pages", text)) => left = text.parse().map_err(|_| Errno::INVAL)?,
                // Unknown keys are ignored, on every version.
                _ => {}
            }
        }
        if !priorities.contains(&priority) {
            return Err(Errno::INVAL);
        }
        for slot in self.all.values_mut() {
            let chosen = word.map_or(Some(true), |word| selects(word, slot)).ok_or(Errno::INVAL)?;
            if !chosen || slot.same || slot.written || slot.incompressible || slot.priority >= priority {
                continue;
            }
            if left == 0 {
                break;
            }
            left -= 1;
            slot.idle = false;
            if slot.huge {
                slot.incompressible = true;
            } else {
                slot.priority = priority;
            }
        }
        Ok(())
    }

    /// `writeback`.
    pub fn write_back(&mut self, word: &str) -> Result<(), Errno> {
        let mut blocks = self.blocks();
        for slot in self.all.values_mut() {
            if !selects(word, slot).ok_or(Errno::INVAL)? || slot.same || slot.written {
                continue;
            }
            if self.limited && self.limit == 0 {
                return Err(Errno::IO);
            }
            // The first block is the kernel's own.
            if blocks + 1 >= self.capacity {
                return Err(Errno::NOSPC);
            }
            slot.written = true;
            slot.idle = false;
            blocks += 1;
            self.written += 1;
            self.limit = self.limit.saturating_sub(1);
        }
        Ok(())
    }
}
