//! The kernel's rules for one zram device, as a state machine (drivers/block/zram/zram_drv.c).

use std::collections::BTreeMap;
use std::time::Duration;

use super::slots::{PAGE, Passes, Slot, Slots};
use host::Errno;
use logic::device::attribute::Attribute;

/// Memory of one entry of the slot table.
const SLOT_BYTES: u64 = 16;
/// Major number of zram devices, as on the reference machine.
pub const MAJOR: u32 = 253;

/// Build options and version of the kernel.
#[allow(clippy::struct_excessive_bools)] // Each is an independent feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelConfig {
    /// Algorithms in the order listed.
    pub algorithms: Vec<String>,
    /// The default of a new device.
    pub default_algorithm: String,
    /// `CONFIG_ZRAM_MULTI_COMP`.
    pub multi_comp: bool,
    /// `CONFIG_ZRAM_WRITEBACK`.
    pub writeback: bool,
    /// Whether `algorithm_params` exists (since 6.12).
    pub algorithm_params: bool,
    /// Whether `idle` takes an age (`CONFIG_ZRAM_TRACK_ENTRY_ACTIME`).
    pub entry_times: bool,
    /// Whether an age also clears the marks of younger pages (since 6.12).
    pub exact_marks: bool,
    /// How it processes pages.
    pub passes: Passes,
    /// Whether write-back knows `huge_idle` (since 5.19).
    pub writes_huge_idle: bool,
    /// Whether compressed write-back has the name `writeback_compressed`.
    pub other_name: bool,
    /// Time to recompress one page.
    pub recompress_time: Duration,
    /// Time to write one page back.
    pub write_time: Duration,
    /// Time that a write-back takes to scan the device.
    pub scan_time: Duration,
    /// Whether `reset` keeps the selected algorithm (before 6.12).
    pub reset_keeps_algorithm: bool,
    /// Whether devices have a sequence number (since 5.15).
    pub diskseq: bool,
    /// Whether `max_comp_streams` exists (before 6.15).
    pub streams: bool,
}

impl KernelConfig {
    fn with(algorithms: &[&str]) -> KernelConfig {
        KernelConfig {
            algorithms: algorithms.iter().map(|&name| name.to_owned()).collect(),
            default_algorithm: algorithms.first().copied().unwrap_or_default().to_owned(),
            multi_comp: false,
            writeback: false,
            algorithm_params: true,
            entry_times: false,
            exact_marks: true,
            passes: Passes::Walk,
            writes_huge_idle: true,
            other_name: false,
            recompress_time: Duration::ZERO,
            write_time: Duration::ZERO,
            scan_time: Duration::ZERO,
            reset_keeps_algorithm: false,
            diskseq: true,
            streams: false,
        }
    }

    /// All features, as in Linux 6.12.
    pub fn full() -> KernelConfig {
        let all = ["lzo-rle", "lzo", "lz4", "lz4hc", "zstd", "deflate", "842"];
        KernelConfig { multi_comp: true, writeback: true, entry_times: true, ..KernelConfig::with(&all) }
    }

    /// All features, as in Linux 7.2.
    pub fn newest() -> KernelConfig {
        KernelConfig { passes: Passes::Buckets, ..KernelConfig::full() }
    }

    /// All algorithms and write-back, but no recompression.
    pub fn plain() -> KernelConfig {
        KernelConfig { multi_comp: false, ..KernelConfig::full() }
    }

    /// The kernel of the reference machine.
    pub fn this_machine() -> KernelConfig {
        KernelConfig::with(&["lzo-rle", "lzo", "lz4"])
    }

    /// Whether devices have this attribute.
    pub fn has(&self, attribute: Attribute) -> bool {
        let is_newest = self.writeback && self.passes == Passes::Buckets;
        match attribute {
            Attribute::AlgorithmParams => self.algorithm_params,
            Attribute::DiskSeq => self.diskseq,
            Attribute::MaxCompStreams => self.streams,
            Attribute::RecompAlgorithm | Attribute::Recompress => self.multi_comp,
            Attribute::BackingDev
            | Attribute::BdStat
            | Attribute::Writeback
            | Attribute::WritebackLimit
            | Attribute::WritebackLimitEnable => self.writeback,
            Attribute::CompressedWriteback => is_newest && !self.other_name,
            Attribute::WritebackCompressed => is_newest && self.other_name,
            Attribute::WritebackBatchSize => is_newest,
            _ => true,
        }
    }

    fn offers(&self, name: &str) -> bool {
        self.algorithms.iter().any(|known| known == name)
    }

    /// `lzo-rle [lzo] lz4 `, including the trailing blank.
    fn list(&self, selected: &str) -> String {
        let mark = |name: &String| if name == selected { format!("[{name}] ") } else { format!("{name} ") };
        self.algorithms.iter().map(mark).collect()
    }
}

/// A file system on a device: only its type and its directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filesystem {
    pub fs_type: String,
    /// Number of its tree of directories.
    pub tree: usize,
}

/// One zram device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// N of `zramN`.
    pub number: u32,
    /// The kernel's sequence number.
    pub diskseq: u64,
    /// Time since boot at which it appeared.
    pub created: Duration,
    /// Size in bytes; 0 if uninitialised.
    pub disk_size: u64,
    /// `mem_limit` in bytes.
    pub memory_limit: u64,
    /// Primary algorithm, and secondary ones by priority.
    pub algorithms: BTreeMap<u8, String>,
    /// What was written to `algorithm_params`, by priority.
    pub parameters: BTreeMap<u8, String>,
    /// `backing_dev`.
    pub backing: Option<String>,
    /// `compressed_writeback`.
    pub compressed: bool,
    /// `writeback_batch_size`.
    pub batch: u32,
    /// Contents by page number; missing pages read as zeros.
    pub pages: BTreeMap<u64, Vec<u8>>,
    /// State of each page.
    pub slots: Slots,
    /// The file system on it.
    pub filesystem: Option<Filesystem>,
    /// Whether a udev that drops events of locked devices (before systemd 250) has handled one.
    pub seen: bool,
}

impl Device {
    /// A new, uninitialised device.
    pub fn new(number: u32, diskseq: u64, kernel: &KernelConfig) -> Device {
        Device {
            number,
            diskseq,
            created: Duration::ZERO,
            disk_size: 0,
            memory_limit: 0,
            algorithms: BTreeMap::from([(0, kernel.default_algorithm.clone())]),
            parameters: BTreeMap::new(),
            backing: None,
            compressed: false,
            batch: 32,
            pages: BTreeMap::new(),
            slots: Slots::default(),
            filesystem: None,
            seen: false,
        }
    }

    /// Whether it is initialised.
    pub fn is_initialised(&self) -> bool {
        self.disk_size > 0
    }

    /// Resets it. The caller has checked that no process has the device open.
    pub fn reset(&mut self, kernel: &KernelConfig) {
        let selected = self.algorithms.get(&0).cloned();
        *self = Device { created: self.created, ..Device::new(self.number, self.diskseq, kernel) };
        if let Some(selected) = selected.filter(|_| kernel.reset_keeps_algorithm) {
            self.algorithms.insert(0, selected);
        }
    }

    /// The text of an attribute.
    pub fn show(&self, attribute: Attribute, kernel: &KernelConfig) -> Result<String, Errno> {
        if !kernel.has(attribute) {
            return Err(Errno::NOENT);
        }
        Ok(match attribute {
            Attribute::CompAlgorithm => {
                format!("{}\n", kernel.list(self.algorithms.get(&0).map_or("", String::as_str)))
            }
            Attribute::RecompAlgorithm => {
                let secondary = self.algorithms.iter().filter(|(priority, _)| **priority > 0);
                let line = |(priority, name): (&u8, &String)| format!("#{priority}: {}\n", kernel.list(name));
                secondary.map(line).collect::<Vec<_>>().concat()
            }
            Attribute::Dev => format!("{MAJOR}:{}\n", self.number),
            Attribute::DiskSeq => format!("{}\n", self.diskseq),
            Attribute::DiskSize => format!("{}\n", self.disk_size),
            Attribute::InitState => format!("{}\n", u8::from(self.is_initialised())),
            Attribute::MmStat => self.mm_stat(),
            Attribute::MaxCompStreams => "2\n".to_owned(),
            Attribute::IoStat => format!("{0:8} {0:8} {0:8} {0:8}\n", 0),
            Attribute::BdStat => {
                format!("{:8} {:8} {:8}\n", self.slots.blocks(), self.slots.read, self.slots.written)
            }
            Attribute::Stat => "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n".to_owned(),
            Attribute::BackingDev => format!("{}\n", self.backing.as_deref().unwrap_or("none")),
            Attribute::CompressedWriteback | Attribute::WritebackCompressed => {
                format!("{}\n", u8::from(self.compressed))
            }
            Attribute::WritebackBatchSize => format!("{}\n", self.batch),
            Attribute::WritebackLimit => format!("{}\n", self.slots.limit),
            Attribute::WritebackLimitEnable => format!("{}\n", u8::from(self.slots.limited)),
            _ => return Err(Errno::ACCES),
        })
    }

    fn mm_stat(&self) -> String {
        let same = self.slots.all.values().filter(|slot| slot.same).count() as u64;
        let stored = self.pages.len() as u64 * PAGE;
        let data = self.data();
        let used = self.used();
        let limit = self.memory_limit;
        let huge = self.slots.huge();
        format!("{stored:8} {data:8} {used:8} {limit:8} {used:8} {same:8} {0:8} {huge:8} {0:8}\n", 0)
    }

    /// Bytes of memory used.
    fn used(&self) -> u64 {
        self.data() + self.slots.holes
    }

    /// Bytes stored: same-filled pages and pages on the backing device need none. The simulated primary algorithm
    /// shrinks nothing, secondary ones halve compressible pages.
    fn data(&self) -> u64 {
        let bytes = |slot: &Slot| match slot.priority {
            _ if slot.same || slot.written => 0,
            0 => PAGE,
            _ => slot.shrunk(),
        };
        self.slots.all.values().map(bytes).sum()
    }

    /// Writes an attribute. For `reset` and `backing_dev`, the caller checks the state of the machine first.
    pub fn store(
        &mut self,
        attribute: Attribute,
        value: &str,
        kernel: &KernelConfig,
        ram_bytes: u64,
    ) -> Result<(), Errno> {
        if !kernel.has(attribute) {
            return Err(Errno::NOENT);
        }
        let value = value.trim_end_matches('\n');
        match attribute {
            Attribute::CompAlgorithm => self.select(0, value, kernel),
            Attribute::RecompAlgorithm => {
                let (mut name, mut slot) = (None, Some(1));
                for (key, value) in words(value) {
                    match key {
                        "algo" => name = Some(value),
                        "priority" => slot = value.parse().ok(),
                        _ => {}
                    }
                }
                match (name, slot) {
                    (Some(name), Some(slot @ 1..=3)) => self.select(slot, name, kernel),
                    _ => Err(Errno::INVAL),
                }
            }
            Attribute::AlgorithmParams => self.set_parameters(value),
            Attribute::DiskSize => self.set_size(value, ram_bytes),
            Attribute::MemLimit => {
                self.memory_limit = memparse(value).next_multiple_of(PAGE);
                Ok(())
            }
            Attribute::Reset => match value.trim().parse::<u16>() {
                Ok(1..) => {
                    self.reset(kernel);
                    Ok(())
                }
                _ => Err(Errno::INVAL),
            },
            Attribute::BackingDev | Attribute::CompressedWriteback | Attribute::WritebackCompressed
                if self.is_initialised() =>
            {
                Err(Errno::BUSY)
            }
            Attribute::CompressedWriteback | Attribute::WritebackCompressed => {
                self.compressed = value == "1";
                Ok(())
            }
            Attribute::WritebackBatchSize => {
                self.batch = value.parse().map_err(|_| Errno::INVAL)?;
                Ok(())
            }
            Attribute::BackingDev => {
                self.backing = Some(value.to_owned());
                Ok(())
            }
            Attribute::MemUsedMax if value.trim() != "0" => Err(Errno::INVAL),
            Attribute::Compact | Attribute::Idle | Attribute::Recompress | Attribute::Writeback
                if !self.is_initialised() =>
            {
                Err(Errno::INVAL)
            }
            Attribute::Idle => self.slots.mark(value, kernel.entry_times, kernel.exact_marks, kernel.passes),
            Attribute::Recompress => {
                let secondary = self.algorithms.iter().filter(|(slot, _)| **slot > 0);
                let secondary = secondary.map(|(slot, name)| (u32::from(*slot), name.clone())).collect();
                self.slots.recompress(value, &secondary, kernel.passes)
            }
            Attribute::Writeback if self.backing.is_none() => Err(Errno::NODEV),
            Attribute::Writeback if value == "huge_idle" && !kernel.writes_huge_idle => Err(Errno::INVAL),
            Attribute::Writeback => self.slots.write_back(value, self.disk_size / PAGE, kernel.passes),
            Attribute::WritebackLimit => {
                self.slots.limit = value.parse().map_err(|_| Errno::INVAL)?;
                Ok(())
            }
            Attribute::WritebackLimitEnable => {
                self.slots.limited = value.parse::<u64>().map_err(|_| Errno::INVAL)? != 0;
                Ok(())
            }
            Attribute::Compact => {
                self.slots.holes = 0;
                Ok(())
            }
            Attribute::MemUsedMax => Ok(()),
            _ => Err(Errno::ACCES),
        }
    }

    /// The kernel checks the algorithm before it checks whether the device is initialised.
    fn select(&mut self, slot: u8, name: &str, kernel: &KernelConfig) -> Result<(), Errno> {
        if !kernel.offers(name) {
            return Err(Errno::INVAL);
        }
        if self.is_initialised() {
            return Err(Errno::BUSY);
        }
        self.algorithms.insert(slot, name.to_owned());
        Ok(())
    }

    fn set_parameters(&mut self, value: &str) -> Result<(), Errno> {
        let mut slot = 0;
        for (key, value) in words(value) {
            match key {
                "priority" => slot = value.parse().map_err(|_| Errno::INVAL)?,
                "algo" => {
                    let found = self.algorithms.iter().find(|(_, name)| *name == value);
                    slot = *found.ok_or(Errno::INVAL)?.0;
                }
                "level" | "deflate.winbits" => {
                    value.parse::<i32>().map_err(|_| Errno::INVAL)?;
                }
                _ => {}
            }
        }
        if !self.algorithms.contains_key(&slot) {
            return Err(Errno::INVAL);
        }
        self.parameters.insert(slot, value.to_owned());
        Ok(())
    }

    fn set_size(&mut self, value: &str, ram_bytes: u64) -> Result<(), Errno> {
        let size = memparse(value);
        if size == 0 {
            return Err(Errno::INVAL);
        }
        if self.is_initialised() {
            return Err(Errno::BUSY);
        }
        let size = size.checked_next_multiple_of(PAGE).ok_or(Errno::NOMEM)?;
        if size / PAGE > ram_bytes / SLOT_BYTES {
            return Err(Errno::NOMEM);
        }
        self.disk_size = size;
        Ok(())
    }

    fn page_range(&self, offset: u64, length: u64) -> Result<std::ops::Range<u64>, Errno> {
        let end = offset.checked_add(length).ok_or(Errno::INVAL)?;
        if !offset.is_multiple_of(PAGE) || !length.is_multiple_of(PAGE) {
            return Err(Errno::INVAL);
        }
        // This includes an uninitialised device, whose size is 0.
        if end > self.disk_size {
            return Err(Errno::IO);
        }
        Ok(offset / PAGE..end / PAGE)
    }

    /// Stores whole pages; beyond the memory limit, the kernel returns an I/O error.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let range = self.page_range(offset, data.len() as u64)?;
        if range.contains(&0) {
            self.filesystem = None;
        }
        for (number, page) in range.zip(data.chunks(page_bytes())) {
            let same = is_same(page);
            let grows = !same && self.slots.all.get(&number).is_none_or(|old| old.same);
            if grows && self.memory_limit > 0 && self.used() + PAGE > self.memory_limit {
                return Err(Errno::IO);
            }
            self.slots.store(number, page, same);
            self.pages.insert(number, page.to_vec());
        }
        Ok(())
    }

    /// Reads whole pages.
    pub fn read(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let range = self.page_range(offset, length as u64)?;
        range.clone().for_each(|number| self.slots.touch(number));
        let zeros = vec![0; page_bytes()];
        Ok(range.flat_map(|number| self.pages.get(&number).unwrap_or(&zeros).clone()).collect())
    }

    /// The first pages, at most `length` bytes, without counting as a read.
    pub fn head(&self, length: usize) -> Vec<u8> {
        let pages = (length as u64 / PAGE).min(self.disk_size / PAGE);
        let zeros = vec![0; page_bytes()];
        (0..pages).flat_map(|number| self.pages.get(&number).unwrap_or(&zeros).clone()).collect()
    }

    /// Discards pages.
    pub fn discard(&mut self, offset: u64, length: u64) -> Result<(), Errno> {
        let range = self.page_range(offset, length)?;
        if range.contains(&0) {
            self.filesystem = None;
        }
        self.pages.retain(|number, _| !range.contains(number));
        self.slots.all.retain(|number, _| !range.contains(number));
        Ok(())
    }

    /// Whether the first page is the header of a swap area.
    pub fn has_swap_header(&self) -> bool {
        self.pages.get(&0).is_some_and(|page| page.ends_with(b"SWAPSPACE2"))
    }
}

fn page_bytes() -> usize {
    usize::try_from(PAGE).unwrap_or(usize::MAX)
}

fn is_same(page: &[u8]) -> bool {
    page.len() <= 8 || page[8..] == page[..page.len() - 8]
}

fn words(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split_whitespace().map(|word| word.split_once('=').unwrap_or((word, "")))
}

/// memparse() of the kernel: a number with an optional suffix; 0 without a number.
fn memparse(text: &str) -> u64 {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let shift = match text[end..].chars().next().map(|letter| letter.to_ascii_uppercase()) {
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        Some('T') => 40,
        _ => 0,
    };
    text[..end].parse::<u64>().unwrap_or(0) << shift
}
