//! The state of compressed memory on this machine at one moment.
//!
//! One type for all readers: the daemon publishes it on the bus, `Describe` is its JSON, `zramdctl` prints it. All
//! names of amounts include the unit. [`super::device::derived`] computes further figures from the counters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::device::derived::Derived;
use super::device::stat::{BdStat, BlockStat, IoStat, MmStat};
use super::finding::Finding;
use super::maintain_report::Report;
use super::psi::Level;
use super::ramdisk::Persist;
use super::ramdisk::status::RamdiskStatus;
use super::vm::VmView;
use super::zswap::{self, ZswapView};
use crate::word::word;

/// Version of the JSON form; incremented when a field is removed or changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// State of the machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "status"))]
pub struct Snapshot {
    /// Version of this form, incremented when a field is removed or changes its meaning.
    pub schema_version: u32,
    /// Time of the snapshot: microseconds since boot, excluding suspend (`CLOCK_MONOTONIC`).
    pub timestamp_monotonic_usec: u64,
    /// Memory of the machine.
    pub memory: MemoryView,
    /// Bytes per page.
    pub page_size_bytes: u64,
    /// Features of the kernel, as far as a device shows them.
    pub capabilities: Vec<String>,
    /// All zram devices in ascending order, managed or not.
    pub devices: Vec<DeviceView>,
    /// zswap; null if the kernel lacks it, or if it is disabled and empty.
    #[serde(default)]
    pub zswap: Option<ZswapView>,
    /// RAM disks of zramd, by name.
    pub ramdisks: Vec<RamdiskView>,
    /// Kernel settings changed by zramd.
    #[serde(default, rename = "vm_settings")]
    pub vm: Vec<VmView>,
    /// Report of the last maintenance run.
    #[serde(default)]
    pub maintenance: Report,
    /// Memory pressure, if it is monitored.
    #[serde(default, rename = "pressure_level")]
    pub pressure: Level,
    /// Why it has this level; empty without pressure.
    #[serde(default)]
    pub pressure_reason: String,
    /// Findings.
    pub problems: Vec<Finding>,
    /// Whether swap of another program has at least the priority of all of ours.
    #[serde(skip)]
    pub is_outranked: bool,
}

/// Memory and swap of the machine, from `/proc/meminfo` where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryView {
    /// `MemTotal` in bytes.
    pub total_bytes: u64,
    /// `MemAvailable` in bytes.
    pub available_bytes: u64,
    /// `SwapTotal` in bytes.
    pub swap_total_bytes: u64,
    /// `SwapFree` in bytes.
    pub swap_free_bytes: u64,
    /// Bytes read from swap since boot (`pswpin` of `/proc/vmstat`).
    #[serde(default)]
    pub swapped_in_bytes: u64,
    /// Bytes written to swap since boot (`pswpout`).
    #[serde(default)]
    pub swapped_out_bytes: u64,
    /// Time since boot in which tasks waited for memory, in microseconds (`some` of `/proc/pressure/memory`); 0 without PSI.
    #[serde(default)]
    pub stalled_usec: u64,
}

/// Use of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RoleView {
    /// Swap space.
    Swap,
    /// A file system.
    Filesystem,
    /// Set up for another use.
    Raw,
    /// Not set up.
    #[default]
    Unused,
}

impl RoleView {
    /// The word in JSON and on the bus.
    pub fn word(self) -> &'static str {
        word(self)
    }
}

/// State of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StateView {
    /// Active as swap.
    Active,
    /// Mounted.
    Mounted,
    /// Set up, but not in use.
    Ready,
    /// Being set up, or the set-up was interrupted.
    Unfinished,
    /// Not set up.
    #[default]
    Unused,
}

impl StateView {
    /// The word in JSON and on the bus.
    pub fn word(self) -> &'static str {
        word(self)
    }
}

/// Why a device has its algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ReasonView {
    /// It is the first in the configuration.
    Config,
    /// The configuration has `auto`, and the benchmark chose it.
    Benchmark,
    /// The configuration has `auto`.
    Auto,
    /// A preferred algorithm is not available in this kernel, or did not work.
    Fallback,
    /// It is the kernel's default.
    KernelDefault,
    /// The device was set up by another program.
    #[default]
    Unknown,
}

impl ReasonView {
    /// The word in JSON and on the bus.
    pub fn word(self) -> &'static str {
        word(self)
    }
}

/// A zram device.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceView {
    /// `zramN`.
    pub name: String,
    /// N.
    pub number: u32,
    /// Device number, `major << 8 | minor`, encoded as by makedev(3) of the C library.
    pub device_number: u64,
    /// Whether zramd set it up.
    pub managed: bool,
    /// How another program has changed it since zramd set it up; empty if none has.
    #[serde(skip)]
    pub taken_over: String,
    /// Use.
    pub role: RoleView,
    /// State.
    pub state: StateView,
    /// Section of the configuration; or empty.
    pub config_section: String,
    /// `disksize`: capacity in uncompressed bytes.
    pub disk_size_bytes: u64,
    /// `mem_limit`; 0 for none.
    pub memory_limit_bytes: u64,
    /// Primary algorithm.
    pub algorithm: String,
    /// Why it was selected.
    pub algorithm_reason: ReasonView,
    /// Its parameters, as configured: the kernel does not show them.
    pub algorithm_parameters: BTreeMap<String, String>,
    /// Algorithms offered by the kernel.
    #[serde(rename = "supported_algorithms")]
    pub available_algorithms: Vec<String>,
    /// Secondary algorithms and their priorities.
    pub recompression_algorithms: Vec<(u32, String)>,
    /// The RAM disk that it holds; or empty.
    #[serde(default)]
    pub ramdisk: String,
    /// Path of the backing device; or empty.
    pub backing_device: String,
    /// Whether it lacks its configured backing device.
    #[serde(default)]
    pub writeback_missing: bool,
    /// Write-back limit left, in bytes; `None` without a limit.
    pub writeback_limit_bytes: Option<u64>,
    /// Number of concurrent compressions (`max_comp_streams`); `None` since Linux 6.15, which does not limit them.
    #[serde(default)]
    pub streams: Option<u32>,
    /// Its swap, if it is active.
    pub swap: Option<SwapView>,
    /// Its mount, if it is mounted.
    pub mount: Option<MountView>,
    /// Counters.
    pub stats: Stats,
}

/// A device as swap, from `/proc/swaps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwapView {
    /// Priority.
    pub priority: i32,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Bytes of swap slots in use. Differs from the bytes stored: a page that was read back keeps its slot, and a freed
    /// one is discarded later.
    pub used_bytes: u64,
}

/// A device as a file system.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MountView {
    /// Mount point.
    pub mount_point: String,
    /// Type.
    pub fs_type: String,
    /// Options of the file system.
    pub options: String,
    /// Size in bytes according to the file system.
    pub size_bytes: u64,
    /// Bytes in use according to the file system.
    pub used_bytes: u64,
}

/// A RAM disk set up by zramd.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RamdiskView {
    /// NAME of `[ramdisk.NAME]`.
    pub name: String,
    /// Mount point.
    pub mount_point: String,
    /// File system type.
    pub fs_type: String,
    /// Options of the file system.
    pub options: String,
    /// Whether it is mounted.
    pub mounted: bool,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Free bytes.
    pub free_bytes: u64,
    /// Free inodes.
    pub free_inodes: u64,
    /// Inodes that the empty RAM disk has; 0 if they are made as they are needed.
    #[serde(default)]
    pub total_inodes: u64,
    /// Its `zramN`; empty for a tmpfs.
    #[serde(default)]
    pub device: String,
    /// Which contents are kept over reboots.
    #[serde(default)]
    pub persistence: Persist,
    /// Status of its snapshots.
    #[serde(default)]
    pub status: RamdiskStatus,
    /// When its timer saves it next, in microseconds since 1970; 0 is never, or not known: only PID 1 knows.
    #[serde(skip)]
    pub next_save_usec: u64,
}

impl RamdiskView {
    /// Bytes and inodes of the empty RAM disk.
    pub fn room(&self) -> (u64, u64) {
        (self.size_bytes, self.total_inodes)
    }

    /// Its backend: `tmpfs` or `zram`.
    pub fn backend(&self) -> &'static str {
        if self.device.is_empty() { "tmpfs" } else { "zram" }
    }

    /// Number of files that can still be created; `None` without a limit, as on btrfs, which allocates inodes as
    /// needed.
    pub fn files_left(&self) -> Option<u64> {
        (self.fs_type != "btrfs").then_some(self.free_inodes)
    }

    /// Whether its contents are kept over reboots.
    pub fn is_kept(&self) -> bool {
        self.persistence != Persist::None
    }
}

/// Counters of a device at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stats {
    /// Time of reading: microseconds since boot, excluding suspend (`CLOCK_MONOTONIC`).
    #[serde(rename = "stats_timestamp_monotonic")]
    pub timestamp_monotonic_usec: u64,
    /// `mm_stat`.
    pub memory: MmStat,
    /// `io_stat`.
    pub io: IoStat,
    /// `bd_stat`; all 0 without a backing device.
    pub backing: BdStat,
    /// `stat`.
    pub block: BlockStat,
    /// Figures derived from them.
    pub derived: Derived,
}

impl From<&ZswapView> for DeviceView {
    /// zswap as a device, for the same columns. What the kernel does not count of it is 0.
    fn from(view: &ZswapView) -> DeviceView {
        let block = BlockStat {
            read_bytes: view.read_bytes,
            written_bytes: view.written_bytes,
            ..BlockStat::default()
        };
        DeviceView {
            name: zswap::NAME.to_owned(),
            managed: view.managed,
            role: RoleView::Swap,
            state: if view.enabled { StateView::Active } else { StateView::Ready },
            disk_size_bytes: view.swap_size_bytes,
            memory_limit_bytes: view.memory_limit_bytes,
            algorithm: view.algorithm.clone(),
            stats: Stats {
                timestamp_monotonic_usec: view.timestamp_monotonic_usec,
                memory: view.memory(),
                block,
                derived: view.derived(),
                ..Stats::default()
            },
            ..DeviceView::default()
        }
    }
}

impl Snapshot {
    /// Looks up a device by name.
    pub fn device(&self, name: &str) -> Option<&DeviceView> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// Looks up a RAM disk by name.
    pub fn ramdisk(&self, name: &str) -> Option<&RamdiskView> {
        self.ramdisks.iter().find(|disk| disk.name == name)
    }

    /// Sum over the managed devices.
    pub fn total(&self, amount: impl Fn(&Stats) -> u64) -> u64 {
        self.devices.iter().filter(|device| device.managed).map(|device| amount(&device.stats)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ramdisk::hold::Hold;

    #[test]
    fn only_devices_that_zramd_set_up_are_summed_up() {
        let device = |managed, orig_data_size| {
            let memory = MmStat { orig_data_size, ..MmStat::default() };
            DeviceView { managed, stats: Stats { memory, ..Stats::default() }, ..DeviceView::default() }
        };
        let devices = vec![device(true, 3), device(false, 10), device(true, 4)];
        let snapshot = Snapshot { devices, ..Snapshot::default() };
        assert_eq!(snapshot.total(|stats| stats.memory.orig_data_size), 7);
    }

    #[test]
    fn zswap_is_swap_with_a_limit_and_a_ratio() {
        let zswap = |enabled| {
            DeviceView::from(&ZswapView {
                enabled,
                managed: true,
                algorithm: "zstd".to_owned(),
                memory_limit_bytes: 400,
                swap_size_bytes: 1000,
                original_data_bytes: 300,
                memory_used_bytes: 100,
                written_bytes: 700,
                read_bytes: 50,
                timestamp_monotonic_usec: 9,
                ..ZswapView::default()
            })
        };
        let device = zswap(true);
        assert_eq!((device.name.as_str(), device.algorithm.as_str()), ("zswap", "zstd"));
        assert_eq!((device.managed, device.role, device.state), (true, RoleView::Swap, StateView::Active));
        assert_eq!((device.disk_size_bytes, device.memory_limit_bytes), (1000, 400));
        let Stats { memory, block, derived, timestamp_monotonic_usec, .. } = device.stats;
        assert_eq!((memory.orig_data_size, memory.mem_used_total, derived.saved_bytes), (300, 100, 200));
        assert_eq!((block.written_bytes, block.read_bytes, timestamp_monotonic_usec), (700, 50, 9));
        assert_eq!(zswap(false).state, StateView::Ready, "it keeps what it has stored");
    }

    #[test]
    fn a_snapshot_that_was_too_large_fits_into_a_disk_with_as_many_bytes_and_inodes() {
        let disk = RamdiskView { size_bytes: 8 << 20, total_inodes: 100, ..RamdiskView::default() };
        for (hold, expected) in [
            (Hold::Size { needed: 8 << 20, size: 4 << 20 }, true),
            (Hold::Size { needed: (8 << 20) + 1, size: 4 << 20 }, false),
            (Hold::Inodes { needed: 100, inodes: 50 }, true),
            (Hold::Inodes { needed: 101, inodes: 50 }, false),
        ] {
            let (why, _) = hold.report("a", disk.room(), 1);
            assert_eq!(why.ends_with("it fits now"), expected, "{why}");
        }
    }

    #[test]
    fn directories_alone_are_contents_that_are_kept() {
        for (persistence, kept) in
            [(Persist::None, false), (Persist::Skeleton, true), (Persist::Snapshot, true)]
        {
            assert_eq!(RamdiskView { persistence, ..RamdiskView::default() }.is_kept(), kept);
        }
    }

    #[test]
    fn btrfs_has_no_limit_of_files() {
        for (fs_type, left) in [("tmpfs", Some(7)), ("ext4", Some(7)), ("btrfs", None)] {
            let disk = RamdiskView { fs_type: fs_type.to_owned(), free_inodes: 7, ..RamdiskView::default() };
            assert_eq!(disk.files_left(), left, "{fs_type}");
        }
    }
}
