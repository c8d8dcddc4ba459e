//! What the owner of the machine asked for: validated, typed, and still independent of the machine.
//!
//! Sizes stay expressions here, because their value depends on the memory of the machine; the planner evaluates
//! them with its facts and reports a bad result at the [`Origin`] of the expression.

use std::time::Duration;

use super::problem::Origin;
use crate::benchmark::score::Profile;
use crate::device::algorithm::Algorithm;
use crate::expr::Expr;
use crate::maintain::age::Range;
use crate::maintain::pressure::Thresholds;
use crate::maintain::recompress;
use crate::maintain::resize::OnChange;
use crate::ramdisk::{Mode, OnFailure};
use crate::vm::Tunable;

/// Everything that was asked for, in the order of device number and of RAM-disk name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// One entry per usable `[zramN]` section.
    pub devices: Vec<DeviceSettings>,
    /// One entry per usable `[ramdisk.NAME]` section.
    pub ramdisks: Vec<RamDiskSettings>,
    /// `[vm]`.
    pub vm: Option<VmSettings>,
    /// `[maintenance]`, if it is there and asks for anything.
    pub maintenance: Option<MaintenanceSettings>,
    /// `[benchmark]`.
    pub benchmark: BenchmarkSettings,
}

/// `[benchmark]`: how the algorithm of `auto` is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BenchmarkSettings {
    /// When it is measured.
    pub when: When,
    /// What the owner wants.
    pub profile: Profile,
    /// Which pages it compresses.
    pub sample: PageSource,
}

/// Which pages the benchmark compresses. All but the first are private to those who use the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageSource {
    /// Generated pages and files that every user may read, mixed according to the statistics of the swap in use.
    #[default]
    Public,
    /// Pages in the swap on zram; public ones while too few are there.
    Swap,
    /// Pages in the memory of processes; public ones where too few can be read.
    Processes,
}

/// When the benchmark runs by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum When {
    /// After boot, once the machine is quiet.
    #[default]
    Idle,
    /// At boot, before devices are set up.
    Boot,
    /// Only when somebody asks.
    Never,
}

/// The section `[vm]`.
#[derive(Debug, Clone, PartialEq)]
pub struct VmSettings {
    /// Where the section begins.
    pub origin: Origin,
    /// What each setting is to be, those of `zswap` aside; all are left alone unless `tune` is true.
    pub levels: Vec<(Tunable, Level)>,
    /// Whether zswap is to be switched off.
    pub zswap_off: bool,
}

/// What a setting is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// What fits the machine.
    Auto,
    /// What it is.
    Keep,
    /// This.
    Value(u64),
}

/// `[maintenance]`.
#[derive(Debug, Clone, PartialEq)]
pub struct MaintenanceSettings {
    /// Where the section begins.
    pub origin: Origin,
    /// Time between two passes.
    pub interval: Duration,
    /// Compress idle pages again.
    pub recompress: Option<recompress::Settings>,
    /// Write idle pages to the backing device.
    pub writeback: Option<WritebackSettings>,
    /// Follow how short memory is.
    pub pressure: Option<Thresholds>,
    /// What happens when the machine's memory has grown or shrunk, if that is given.
    pub on_memory_change: Option<OnChange>,
}

impl MaintenanceSettings {
    /// Whether anything of it happens now and then.
    pub fn needs_timer(&self) -> bool {
        self.recompress.is_some() || self.writeback.is_some() || self.on_memory_change.is_some()
    }
}

/// `writeback` of `[maintenance]`.
#[derive(Debug, Clone, PartialEq)]
pub struct WritebackSettings {
    /// Idle ages.
    pub age: Range,
    /// Upper bound of what is written in any 24 hours.
    pub daily: SizeExpr,
    /// Upper bound of what one run writes.
    pub per_run: SizeExpr,
    /// Whether incompressible pages are written that are not idle.
    pub huge: bool,
}

/// A size expression together with the place where it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeExpr {
    /// The parsed expression; its value is in MiB.
    pub expr: Expr,
    /// The expression as it was written, for messages.
    pub text: String,
    /// Where it was written.
    pub origin: Origin,
}

/// How large a device is to be, before the machine's memory is known.
#[derive(Debug, Clone, PartialEq)]
pub enum SizeRule {
    /// `zram-size`, capped by `max-zram-size` when that is given.
    Expression {
        /// The size.
        size: SizeExpr,
        /// Upper bound in MiB.
        max: Option<SizeExpr>,
    },
    /// `zram-fraction` of RAM in whole MiB, capped by `max-zram-size` when that is given.
    Fraction {
        /// Share of RAM, 0.5 by default.
        fraction: f64,
        /// Upper bound.
        max: Option<SizeExpr>,
    },
}

/// One section `[zramN]`.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceSettings {
    /// N of `/dev/zramN`.
    pub number: u32,
    /// Where the section begins, for problems that concern the whole device.
    pub origin: Origin,
    /// Uncompressed size (`disksize`).
    pub size: SizeRule,
    /// Do not create the device when the machine has more RAM than this (MiB).
    pub host_memory_limit: Option<SizeExpr>,
    /// Upper bound of the memory that the compressed data may use (`mem_limit`).
    pub resident_limit: Option<SizeExpr>,
    /// Accept a memory limit on a mounted file system, where reaching it loses data silently.
    pub force_resident_limit: bool,
    /// Algorithms in order of preference; never empty.
    pub algorithms: Vec<AlgorithmChoice>,
    /// Where `compression-algorithm` was written.
    pub algorithms_origin: Origin,
    /// Secondary algorithms, priorities 1, 2, 3 in this order.
    pub recompression: Vec<Algorithm>,
    /// Where `recompression-algorithm` was written.
    pub recompression_origin: Origin,
    /// Where pages are written back to.
    pub writeback: Option<BackingSettings>,
    /// What the device is for.
    pub role: Role,
    /// Label of the swap area or file system.
    pub label: Option<String>,
}

/// Where pages are written back to.
#[derive(Debug, Clone, PartialEq)]
pub struct BackingSettings {
    /// A block device, or a file.
    pub store: StoreSettings,
    /// Whether everything on it is encrypted, with a key that nobody keeps.
    pub encrypted: bool,
    /// Where the store was written.
    pub origin: Origin,
}

/// What takes pages that are written back.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreSettings {
    /// A block device of its own.
    Device(String),
    /// A file that zramd makes.
    File {
        /// Where.
        path: String,
        /// Its size; zramd chooses one when absent.
        size: Option<SizeExpr>,
    },
}

/// One entry of `compression-algorithm`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlgorithmChoice {
    /// Let zramd choose: lz4, else lzo-rle, else the kernel's default.
    Auto,
    /// This one.
    Named(Algorithm),
}

/// What a device is for.
#[derive(Debug, Clone, PartialEq)]
pub enum Role {
    /// Swap space.
    Swap {
        /// −1 (let the kernel choose) … 32767; higher is used first.
        priority: i32,
        /// Options for `swapon`, in the spelling of fstab; `discard` by default.
        options: String,
    },
    /// A mounted file system.
    Filesystem {
        /// File system type; `ext4` by default.
        fs_type: String,
        /// Where it is mounted.
        mount: MountSettings,
        /// Further words for `mkfs`.
        mkfs_options: Vec<String>,
    },
    /// Configured, and formatted when a type is given, but not used by zramd.
    Raw {
        /// File system type, or nothing for an unformatted device.
        fs_type: Option<String>,
        /// Further words for `mkfs`.
        mkfs_options: Vec<String>,
    },
}

/// Where and how something is mounted, the same for zram file systems and tmpfs disks.
#[derive(Debug, Clone, PartialEq)]
pub struct MountSettings {
    /// Absolute, normalised (no `.`, `..`, double or trailing slash).
    pub mount_point: String,
    /// Where `mount-point` was written.
    pub origin: Origin,
    /// Mount options in the spelling of fstab.
    pub options: String,
    /// Permission bits of the root directory.
    pub mode: Option<u32>,
    /// Owner of the root directory.
    pub owner: Option<Principal>,
    /// Group of the root directory.
    pub group: Option<Principal>,
}

/// A user or a group, by number or by name; names are resolved on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// A numeric id.
    Id(u32),
    /// A name, and where it was written.
    Name(String, Origin),
}

/// One section `[ramdisk.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct RamDiskSettings {
    /// NAME.
    pub name: String,
    /// Where the section begins.
    pub origin: Origin,
    /// How much fits.
    pub size: SizeExpr,
    /// Upper bound of the number of inodes, `None` for the kernel's own.
    pub inodes: Option<u64>,
    /// Where and how it is mounted.
    pub mount: MountSettings,
    /// What holds it.
    pub backend: Backend,
    /// Whether somebody is told when it is getting full.
    pub watch: bool,
    /// Whether boot fails without it.
    pub required: bool,
    /// What of its contents is kept over a reboot; nothing loses them.
    pub keep: Option<KeepSettings>,
}

/// What holds a RAM disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// A tmpfs.
    Tmpfs {
        /// `huge=` of tmpfs(5).
        huge: Option<String>,
    },
    /// A file system on this zram device, which is among [`Settings::devices`].
    Zram {
        /// N of `/dev/zramN`.
        number: u32,
    },
}

/// How the contents of a RAM disk are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct KeepSettings {
    /// What of them.
    pub mode: Mode,
    /// Directory of the snapshots, absolute and normalised.
    pub store: String,
    /// Where `store` was written.
    pub store_origin: Origin,
    /// Upper bound of what the snapshots take together.
    pub store_limit: Option<SizeExpr>,
    /// How many good snapshots are kept besides pinned ones, at least 1.
    pub generations: u32,
    /// How often it is saved besides at shutdown; nothing is never.
    pub save_interval: Option<Duration>,
    /// What is done when no snapshot can be loaded; nothing decides by whether the directory below is empty.
    pub on_failure: Option<OnFailure>,
    /// Whether the first use begins with what is in the directory below.
    pub seed: bool,
    /// Run before it is saved.
    pub pre_save: Vec<String>,
    /// Run after it was loaded.
    pub post_restore: Vec<String>,
    /// How long each of these may take.
    pub hook_time_limit: Duration,
    /// How long loading or saving may take, however well it continues.
    pub time_limit: Duration,
}
