//! Everything there is to know about compressed memory on this machine at one moment.
//!
//! One type for all readers: the daemon publishes it on the bus, `Describe` is its JSON, `zramdctl` prints it. Bytes are
//! bytes, pages are pages, and every amount says which in its name. [`super::device::derived`] adds what follows from the counters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::device::derived::Derived;
use super::device::stat::{BdStat, BlockStat, IoStat, MmStat};
use super::finding::Finding;
use super::maintain::pressure::Level;
use super::maintain::report::Report;
use super::ramdisk::Persist;
use super::ramdisk::status::DiskStatus;
use super::vm::VmView;

/// Version of the JSON form; it changes when a field changes meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// The machine at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// When it was taken: microseconds since boot, without suspend (`CLOCK_MONOTONIC`).
    pub timestamp_monotonic_usec: u64,
    /// Memory of the whole machine.
    pub memory: MemoryView,
    /// Bytes of a page.
    pub page_size_bytes: u64,
    /// What this kernel can do, as far as a device shows it.
    pub capabilities: Vec<String>,
    /// Every zram device, ascending, managed or not.
    pub devices: Vec<DeviceView>,
    /// tmpfs disks that zramd mounted, by name.
    pub disks: Vec<DiskView>,
    /// Settings of the kernel that zramd has changed.
    #[serde(default)]
    pub vm: Vec<VmView>,
    /// What maintenance did when it last ran.
    #[serde(default)]
    pub maintenance: Report,
    /// How short memory is, where that is followed.
    #[serde(default)]
    pub pressure: Level,
    /// What is wrong, or deserves a look.
    pub problems: Vec<Finding>,
    /// Whether the kernel prefers swap of another program, on whatever it lies, to all of ours.
    #[serde(skip)]
    pub is_outranked: bool,
}

/// Memory and swap of the whole machine, from `/proc/meminfo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryView {
    /// `MemTotal` in bytes.
    pub total_bytes: u64,
    /// `MemAvailable` in bytes.
    pub available_bytes: u64,
    /// `SwapTotal` in bytes.
    pub swap_total_bytes: u64,
    /// `SwapFree` in bytes.
    pub swap_free_bytes: u64,
}

/// What a device is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoleView {
    /// Swap space.
    Swap,
    /// A file system.
    Filesystem,
    /// Set up, but neither of the two.
    Raw,
    /// Not set up.
    #[default]
    Unused,
}

impl RoleView {
    /// The word, as in JSON and on the bus.
    pub const fn word(self) -> &'static str {
        match self {
            RoleView::Swap => "swap",
            RoleView::Filesystem => "filesystem",
            RoleView::Raw => "raw",
            RoleView::Unused => "unused",
        }
    }
}

/// How far a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateView {
    /// Swap is on.
    Active,
    /// It is mounted.
    Mounted,
    /// Set up, but not in use.
    Ready,
    /// zramd is at work on it, or was interrupted.
    Unfinished,
    /// Not set up.
    #[default]
    Unused,
}

impl StateView {
    /// The word, as in JSON and on the bus.
    pub const fn word(self) -> &'static str {
        match self {
            StateView::Active => "active",
            StateView::Mounted => "mounted",
            StateView::Ready => "ready",
            StateView::Unfinished => "unfinished",
            StateView::Unused => "unused",
        }
    }
}

/// Why a device has its algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReasonView {
    /// It is the first that the configuration names.
    Config,
    /// The configuration leaves it to zramd, and the benchmark has found it to be the best.
    Benchmark,
    /// The configuration leaves it to zramd.
    Auto,
    /// What was preferred is not offered by this kernel, or did not work.
    Fallback,
    /// The kernel chose.
    KernelDefault,
    /// Another program set the device up.
    #[default]
    Unknown,
}

impl ReasonView {
    /// The word, as in JSON and on the bus.
    pub const fn word(self) -> &'static str {
        match self {
            ReasonView::Config => "config",
            ReasonView::Benchmark => "benchmark",
            ReasonView::Auto => "auto",
            ReasonView::Fallback => "fallback",
            ReasonView::KernelDefault => "kernel-default",
            ReasonView::Unknown => "unknown",
        }
    }
}

/// One zram device.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DeviceView {
    /// `zramN`.
    pub name: String,
    /// N.
    pub number: u32,
    /// Device number, `major << 8 | minor` in the form of makedev(3) of the C library.
    pub device_number: u64,
    /// Whether zramd set it up.
    pub managed: bool,
    /// What it is for.
    pub role: RoleView,
    /// How far it is.
    pub state: StateView,
    /// Section of the configuration, or empty.
    pub config_section: String,
    /// `disksize`: uncompressed bytes that fit.
    pub disk_size_bytes: u64,
    /// `mem_limit`; 0 is none.
    pub memory_limit_bytes: u64,
    /// Primary algorithm.
    pub algorithm: String,
    /// Why this one.
    pub algorithm_reason: ReasonView,
    /// Its parameters, as configured: the kernel does not show them.
    pub algorithm_parameters: BTreeMap<String, String>,
    /// What the kernel offers.
    pub available_algorithms: Vec<String>,
    /// Secondary algorithms with their priorities.
    pub recompression_algorithms: Vec<(u32, String)>,
    /// Where written-back pages go, or empty.
    pub backing_device: String,
    /// Whether it was to have such a place, and has none.
    #[serde(default)]
    pub writeback_missing: bool,
    /// What may still be written back, in bytes; nothing when there is no limit.
    pub writeback_limit_bytes: Option<u64>,
    /// How it is used as swap.
    pub swap: Option<SwapView>,
    /// Where it is mounted.
    pub mount: Option<MountView>,
    /// Counters.
    pub stats: Stats,
}

/// A device as swap, from `/proc/swaps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SwapView {
    /// Priority.
    pub priority: i32,
    /// Bytes that fit.
    pub size_bytes: u64,
    /// Bytes of swap slots in use. Not equal to what the device stores: a page that was read back keeps its slot, and
    /// one that was freed is discarded later.
    pub used_bytes: u64,
}

/// A device as a file system.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MountView {
    /// Where.
    pub mount_point: String,
    /// Type.
    pub fs_type: String,
    /// Options of the file system.
    pub options: String,
    /// Bytes that fit, as the file system counts.
    pub size_bytes: u64,
    /// Bytes in use, as the file system counts.
    pub used_bytes: u64,
}

/// A RAM disk that zramd mounted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiskView {
    /// NAME of `[ramdisk.NAME]`.
    pub name: String,
    /// Where.
    pub mount_point: String,
    /// Its type of file system.
    pub fs_type: String,
    /// Options of the file system.
    pub options: String,
    /// Whether it is mounted.
    pub mounted: bool,
    /// Bytes that fit.
    pub size_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Bytes free.
    pub free_bytes: u64,
    /// Inodes free.
    pub free_inodes: u64,
    /// `zramN` that holds it, or empty for a tmpfs.
    #[serde(default)]
    pub device: String,
    /// What of its contents is kept over a reboot.
    #[serde(default)]
    pub persistence: Persist,
    /// How keeping it goes.
    #[serde(default)]
    pub status: DiskStatus,
}

impl DiskView {
    /// What holds it: `tmpfs` or `zram`.
    pub fn backend(&self) -> &'static str {
        if self.device.is_empty() { "tmpfs" } else { "zram" }
    }

    /// Files that still fit; nothing where there is no limit: a btrfs makes inodes as it needs them.
    pub fn files_left(&self) -> Option<u64> {
        (self.fs_type != "btrfs").then_some(self.free_inodes)
    }

    /// Whether its contents are kept.
    pub fn is_kept(&self) -> bool {
        self.persistence != Persist::None
    }
}

/// Counters of a device at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Stats {
    /// When they were read: microseconds since boot, without suspend (`CLOCK_MONOTONIC`).
    pub timestamp_monotonic_usec: u64,
    /// `mm_stat`.
    pub memory: MmStat,
    /// `io_stat`.
    pub io: IoStat,
    /// `bd_stat`; all 0 without a backing device.
    pub backing: BdStat,
    /// `stat`.
    pub block: BlockStat,
    /// What follows from them.
    pub derived: Derived,
}

impl Snapshot {
    /// The device of this name.
    pub fn device(&self, name: &str) -> Option<&DeviceView> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// The tmpfs disk of this name.
    pub fn disk(&self, name: &str) -> Option<&DiskView> {
        self.disks.iter().find(|disk| disk.name == name)
    }

    /// Sum over the devices that zramd set up.
    pub fn total(&self, amount: impl Fn(&Stats) -> u64) -> u64 {
        self.devices.iter().filter(|device| device.managed).map(|device| amount(&device.stats)).sum()
    }
}
