//! Facts about this machine: plain data, gathered by the engine, read by the planner.

use std::collections::{BTreeMap, BTreeSet};

use super::device::algorithm::Algorithm;
pub use super::device::state::{DeviceFacts, Seen};
use super::neighbours::driver;
use super::neighbours::fstab;
use super::neighbours::programs::OtherManager;
use super::path_kind::PathKind;
use super::proc::{Memory, MountLine, SwapLine, mount_of, top};
use super::ramdisk::UnitRamdisk;
use super::ramdisk::status::SnapshotLine;
use super::raw_path::RawPath;
use super::record::{Damaged, Record, Target};
use super::verdict::Unusable;
use super::vm::{Advice, Tunable};

/// The verdict of the benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Best {
    pub algorithm: Algorithm,
    /// Why it will be measured again; empty if it need not.
    pub provisional: String,
}

/// All facts that the planner uses.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// `/proc/meminfo`; a total of 0 if it could not be read.
    pub memory: Memory,
    /// Whether this is an image, whose memory is known when it boots: sizes that depend on it are not evaluated.
    pub is_image: bool,
    /// CPUs online.
    pub cpus: u32,
    /// Page size in bytes.
    pub page_size: u64,
    /// Availability of zram.
    pub support: Support,
    /// All zram devices, by number.
    pub devices: BTreeMap<u32, DeviceFacts>,
    /// `/proc/swaps`.
    pub swaps: Vec<SwapLine>,
    /// `/proc/self/mountinfo`.
    pub mounts: Vec<MountLine>,
    /// Inode of the mount namespace that `mounts` is of.
    pub mount_namespace: u64,
    /// The kernel command line; empty if not read.
    pub cmdline: String,
    /// The kernel settings that exist.
    pub tunables: BTreeMap<Tunable, String>,
    /// Whether control groups (v2) cannot keep memory here; false without protect-sessions.
    pub lacks_memory_controller: bool,
    /// The suggestions of a valid verdict of the benchmark, if `[vm]` may need them.
    pub advice: Option<Advice>,
    /// Whether the system enables zswap, and has swap on a disk: it has chosen zswap.
    pub has_chosen_zswap: bool,
    /// Other programs that set up zram, by the file that indicates this.
    pub other_managers: Vec<OtherManager>,
    /// Lines of `/etc/fstab`.
    pub fstab: Vec<fstab::Line>,
    /// Options for the zram driver.
    pub driver: Vec<driver::Line>,
    /// Units of the administrator with the names of those of zramd, by path.
    pub units: BTreeMap<String, PathKind>,
    /// Records of targets that zramd set up.
    pub records: BTreeMap<Target, Record>,
    /// Damaged records.
    pub damaged: Vec<Damaged>,
    /// State of each write-back device in the settings.
    pub backing: BTreeMap<String, BackingFacts>,
    /// State of the path of each write-back file in the settings.
    pub files: BTreeMap<String, FileFacts>,
    /// IDs of the users and groups in the settings; unknown ones are missing.
    pub users: BTreeMap<String, u32>,
    /// See `users`.
    pub groups: BTreeMap<String, u32>,
    /// Why users or groups could not be looked up, if so.
    pub accounts_unread: Option<String>,
    /// Whether the `mkfs` of a file system type is installed, for the types in the settings.
    pub mkfs: BTreeMap<String, bool>,
    /// RAM disks mounted by PID 1, from units of ours.
    pub unit_ramdisks: Vec<UnitRamdisk>,
    /// RAM disks that could not be loaded, and whose directory on disk is used instead.
    pub passthrough: BTreeSet<String>,
    /// The newest good snapshot of each RAM disk, as far as its status shows it.
    pub snapshots: BTreeMap<String, SnapshotLine>,
    /// Bytes in use on each mounted tmpfs, by mount point.
    pub ramdisk_used: BTreeMap<RawPath, u64>,
    /// The verdict of the benchmark for `auto`, or why there is none.
    pub best: Option<Result<Best, Unusable>>,
    /// Type of the file at each mount point in the settings.
    pub mount_points: BTreeMap<String, PathKind>,
    /// Directories on which nothing is mounted, and whose file system would get default permissions.
    pub directories: BTreeMap<String, Permissions>,
    /// Targets of mount points with a symbolic link in their path.
    pub links: BTreeMap<String, String>,
}

/// Availability of zram.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Support {
    /// `/sys/class/zram-control` exists.
    #[default]
    Ready,
    /// The driver is not loaded; loading its module may help.
    NotLoaded,
    /// In a container of this type, which has no devices of its own.
    Container(String),
}

/// Permission bits and owners of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permissions {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

/// State of the path of a file to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    /// Type of its directory.
    pub directory: PathKind,
    /// Type of an existing file.
    pub kind: PathKind,
    /// Type of the file system of the directory.
    pub fs_type: String,
    /// Whether that file system is on zram.
    pub on_zram: bool,
    /// Free bytes of the file system.
    pub free_bytes: u64,
    /// Total bytes of the file system.
    pub total_bytes: u64,
}

/// State of a block device for write-back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackingFacts {
    /// It does not exist.
    Missing,
    /// It is not a block device.
    NotABlockDevice,
    /// It cannot be examined, for this reason.
    Unreadable(String),
    /// It is a block device.
    Block {
        /// Device number.
        device: (u32, u32),
        /// Kind of file system or other signature found on it.
        signature: Option<String>,
        /// Names of the devices on top of it: partitions, device-mapper, md.
        holders: Vec<String>,
    },
}

/// Use of a zram device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// Active swap.
    Swap {
        /// In use, in KiB.
        used_kib: u64,
        priority: i32,
    },
    Mounted {
        mount_point: String,
    },
}

impl Facts {
    /// The use of device `number`, if any.
    pub fn device_use(&self, number: u32) -> Option<Use> {
        if let Some(swap) = self.swaps.iter().find(|swap| swap.zram_number() == Some(number)) {
            return Some(Use::Swap { used_kib: swap.used_kib, priority: swap.priority });
        }
        let mount = mount_of(&self.mounts, number, self.devices.get(&number)?.device)?;
        Some(Use::Mounted { mount_point: mount.mount_point.lossy() })
    }

    /// Whether zswap is enabled: it takes pages before any swap device. On another machine, the kernel command line tells.
    pub fn zswap_is_on(&self) -> bool {
        let found = if self.tunables.is_empty() {
            Tunable::Zswap.on_cmdline(&self.cmdline)
        } else {
            self.tunables.get(&Tunable::Zswap).cloned()
        };
        found.is_some_and(|value| value == "Y")
    }

    /// The damaged record of a target, if there is one.
    pub fn damaged_record(&self, target: &Target) -> Option<&Damaged> {
        self.damaged.iter().find(|damaged| damaged.target.as_ref() == Some(target))
    }

    /// The topmost mount on exactly this path.
    pub fn mount_at(&self, path: &str) -> Option<&MountLine> {
        top(&self.mounts, path)
    }

    /// Whether PID 1 has mounted a RAM disk of ours there.
    pub fn is_mounted_by_unit(&self, path: &str) -> bool {
        self.unit_ramdisks.iter().any(|disk| disk.mount_point == path)
    }

    /// Any device: all have the same attributes and algorithms.
    pub fn specimen(&self) -> Option<&DeviceFacts> {
        self.devices.values().next()
    }
}
