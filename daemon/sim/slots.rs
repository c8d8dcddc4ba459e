//! State of each page: time of last access, idle mark, algorithm, location (drivers/block/zram/zram_drv.c,
//! `writeback_store` and `recompress_store`). tests/fast/conformance_rules.rs compares this with the recorded behaviour
//! of two kernels.

use std::collections::BTreeMap;
use std::time::Duration;

use host::Errno;

/// Page size of the simulated machine.
pub const PAGE: u64 = 4096;
/// Pages of at least this compressed size are stored uncompressed, with chains of 8 pages
/// (Documentation/mm/zsmalloc.rst). Thresholds must be below.
const HUGE_CLASS: u64 = 3632 - 7;

/// One page.
#[allow(clippy::struct_excessive_bools)] // Each is a flag of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slot {
    /// Time of the last access, since boot including suspend.
    pub accessed: Duration,
    /// Whether it is marked idle.
    pub idle: bool,
    /// Priority of the algorithm that compressed it.
    pub priority: u32,
    /// Whether all secondary algorithms have failed to shrink it.
    pub incompressible: bool,
    /// Whether it was written to the backing device.
    pub written: bool,
    /// Whether the primary algorithm could not shrink it. In the simulation: less than half of it is zeros.
    pub huge: bool,
    /// Whether no algorithm can shrink it. In the simulation: it is not plain ASCII.
    pub stubborn: bool,
    /// Whether a denser algorithm shrinks it by a quarter only. In the simulation: a huge page with a plus sign.
    pub tight: bool,
    /// Whether it is same-filled: then it is neither marked nor processed.
    pub same: bool,
}

/// How the kernel iterates over the pages of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Passes {
    /// One by one, up to the last page, or until the limit or the backing device is used up, whether or not another
    /// page would follow. Unknown words select all pages (6.12).
    #[default]
    Walk,
    /// The pages to process are determined first. The largest are processed first; of equal ones, the last. Unknown
    /// words are errors. Pages on the backing device keep their flags (7.2).
    Buckets,
}

/// The pages of a device, and the state of its backing device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slots {
    /// Pages by number.
    pub all: BTreeMap<u64, Slot>,
    /// Number of pages that were recompressed, whether or not they shrank.
    pub tried: u64,
    /// Bytes of memory freed between objects that have shrunk.
    pub holes: u64,
    /// Time since boot including suspend.
    pub clock: Duration,
    /// Number of blocks of the backing device.
    pub capacity: u64,
    /// Blocks written to it since the device was set up.
    pub written: u64,
    /// Blocks read back from it.
    pub read: u64,
    /// `writeback_limit`, in blocks.
    pub limit: u64,
    /// `writeback_limit_enable`.
    pub limited: bool,
}

impl Slot {
    /// Bytes that it takes in memory, roughly; determines the order of processing, and is compared with thresholds.
    fn size(&self) -> u64 {
        if self.huge { PAGE } else { self.shrunk() }
    }

    /// Bytes that it takes with a denser algorithm.
    pub fn shrunk(&self) -> u64 {
        if self.tight { PAGE / 4 * 3 + 80 } else { PAGE / 2 }
    }
}

/// The kernel's words that select pages: `idle`, `huge`, `huge_idle`, `incompressible`.
fn selects(word: &str, slot: &Slot) -> Option<bool> {
    Some(match word {
        "idle" => slot.idle,
        "huge" => slot.huge,
        "huge_idle" => slot.huge && slot.idle,
        "incompressible" => slot.incompressible,
        _ => return None,
    })
}

impl Slots {
    /// Records that a page was written.
    pub fn store(&mut self, number: u64, page: &[u8], same: bool) {
        let huge = !same && page[page.len() / 2..].iter().any(|byte| *byte != 0);
        let stubborn = !same && !page.is_ascii();
        let tight = huge && page.contains(&b'+');
        let slot = Slot { accessed: self.clock, huge, stubborn, tight, same, ..Slot::default() };
        self.all.insert(number, slot);
    }

    /// Records that a page was read.
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
        self.all.values().filter(|slot| slot.huge && !slot.written).count() as u64
    }

    /// `idle`: `all`, or an age in seconds if the kernel tracks access times.
    pub fn mark(&mut self, value: &str, knows_ages: bool, exact: bool, passes: Passes) -> Result<(), Errno> {
        let age = match value {
            "all" => None,
            _ if !knows_ages => return Err(Errno::INVAL),
            text => Some(Duration::from_secs(u64::from(text.parse::<u32>().map_err(|_| Errno::INVAL)?))),
        };
        let cutoff = age.map(|age| self.clock.checked_sub(age));
        for slot in self.all.values_mut().filter(|slot| !slot.same && !slot.written) {
            let old = match cutoff {
                None => true,
                Some(Some(cutoff)) => slot.accessed <= cutoff,
                // An age before the boot.
                Some(None) => passes == Passes::Buckets,
            };
            slot.idle = old || (slot.idle && !exact);
        }
        Ok(())
    }

    /// Numbers of the pages that `chosen` selects, in the order of processing.
    fn turns(&self, passes: Passes, chosen: impl Fn(&Slot) -> bool) -> Vec<u64> {
        let mut turns: Vec<u64> =
            self.all.iter().filter(|(_, slot)| chosen(slot)).map(|(number, _)| *number).collect();
        if passes == Passes::Buckets {
            turns.reverse();
            turns.sort_by_key(|number| std::cmp::Reverse(self.all.get(number).map(Slot::size)));
        }
        turns
    }

    /// `recompress`, for a device with these secondary algorithms.
    pub fn recompress(
        &mut self,
        value: &str,
        secondary: &BTreeMap<u32, String>,
        passes: Passes,
    ) -> Result<(), Errno> {
        let (mut word, mut wanted, mut left, mut threshold) = (None, None, u64::MAX, 0);
        for pair in value.split_whitespace() {
            match pair.split_once('=') {
                Some(("type", text)) => word = Some(text),
                Some(("priority", text)) => wanted = Some(text.parse().map_err(|_| Errno::INVAL)?),
                Some(("algo", text)) => {
                    let found = secondary.iter().find(|(_, name)| *name == text);
                    wanted = Some(*found.ok_or(Errno::INVAL)?.0);
                }
                Some(("max_pages", text)) => left = text.parse().map_err(|_| Errno::INVAL)?,
                Some(("threshold", text)) => threshold = text.parse().map_err(|_| Errno::INVAL)?,
                // Unknown keys are ignored by all versions.
                _ => {}
            }
        }
        if threshold >= HUGE_CLASS {
            return Err(Errno::INVAL);
        }
        let known = |word: &str| selects(word, &Slot::default()).is_some() && word != "incompressible";
        let tried: Vec<u32> =
            secondary.keys().copied().filter(|one| wanted.is_none_or(|wanted| wanted == *one)).collect();
        if passes == Passes::Buckets && (word.is_some_and(|word| !known(word)) || tried.is_empty()) {
            return Err(Errno::INVAL);
        }
        let last = tried.iter().max().copied().unwrap_or(0);
        let turns = self.turns(passes, |slot| {
            let chosen = word.filter(|word| known(word)).is_none_or(|word| selects(word, slot) == Some(true));
            let is_done = passes == Passes::Buckets && slot.priority >= last;
            let is_fit = !slot.same && !slot.written && !slot.incompressible;
            chosen && is_fit && !is_done && slot.size() >= threshold
        });
        for slot in &turns {
            if left == 0 {
                break;
            }
            let Some(slot) = self.all.get_mut(slot) else { continue };
            slot.idle = false;
            if slot.priority >= last {
                continue;
            }
            left -= 1;
            self.tried += 1;
            let too_large = threshold > 0 && slot.shrunk() >= threshold;
            // In the simulation, a second algorithm gains nothing over the first.
            if slot.stubborn || slot.priority > 0 || too_large {
                slot.incompressible |= match passes {
                    Passes::Walk => !too_large && tried.len() == secondary.len(),
                    Passes::Buckets => secondary.keys().max() == Some(&last),
                };
            } else {
                // The kernel copies the object to another place; it frees the old page only on compaction.
                self.holes += slot.size();
                slot.priority = last;
                slot.huge = false;
            }
        }
        Ok(())
    }

    /// `writeback`, for a device with this number of pages.
    pub fn write_back(&mut self, word: &str, pages: u64, passes: Passes) -> Result<(), Errno> {
        selects(word, &Slot::default()).ok_or(Errno::INVAL)?;
        let chosen = |slot: &Slot| selects(word, slot) == Some(true) && !slot.same && !slot.written;
        let mut turns = self.turns(passes, chosen);
        let reserved = u64::from(passes == Passes::Walk);
        // A walk visits all pages up to the last one, and fails as soon as the limit or the space is used up.
        if passes == Passes::Walk && turns.last() != pages.checked_sub(1).as_ref() {
            turns.extend(pages.checked_sub(1));
        }
        let mut blocks = self.blocks();
        for number in turns {
            if self.limited && self.limit == 0 {
                return Err(Errno::IO);
            }
            if blocks + reserved >= self.capacity {
                return Err(Errno::NOSPC);
            }
            let Some(slot) = self.all.get_mut(&number).filter(|slot| chosen(slot)) else { continue };
            slot.written = true;
            slot.idle = false;
            if passes == Passes::Walk {
                (slot.huge, slot.incompressible, slot.priority) = (false, false, 0);
            }
            blocks += 1;
            self.written += 1;
            if self.limited {
                self.limit -= 1;
            }
        }
        Ok(())
    }
}
