//! The machine, as a set of plain verbs. No verb decides anything.
//!
//! [`linux::LinuxHost`] is the real machine, `SimHost` of the crate `sim` a state machine with the kernel's rules. The same
//! scenarios run on both and are compared (`tests/machine/conformance.rs`), so the simulator cannot drift from the kernel.

pub mod error;
pub mod linux;
pub mod out;
pub mod script;

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use error::{Cause, Errno, HostError, absent};
use logic::device::attribute::Attribute;
use logic::error::Error;
use logic::facts::Permissions;
use logic::order::Order;
use logic::path_kind::PathKind;
use logic::record::{MountId, SwapFile};
use logic::vm::Tunable;
use logic::zswap::Rejection;

/// Bytes as text; what is not UTF-8 is replaced.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Text files that describe the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineFile {
    /// `/proc/meminfo`.
    Meminfo,
    /// `/proc/swaps`.
    Swaps,
    /// `/proc/self/mountinfo`.
    Mountinfo,
    /// `/proc/cmdline`.
    Cmdline,
    /// `/run/zramd/work/maintenance.json`.
    Maintenance,
    /// `/run/zramd/work/pressure`.
    PressureLevel,
    /// `/etc/passwd`.
    Passwd,
    /// `/etc/group`.
    Group,
    /// `/proc/sys/kernel/osrelease`.
    KernelRelease,
    /// `/proc/cpuinfo`.
    Cpuinfo,
    /// `/sys/devices/system/cpu/online`.
    OnlineCpus,
    /// `scaling_driver` of the first CPU, in `/sys/devices/system/cpu/cpufreq/policy0` like the next three.
    FrequencyDriver,
    /// `scaling_governor`.
    FrequencyGovernor,
    /// `scaling_max_freq`.
    FrequencyLimit,
    /// `cpuinfo_max_freq`.
    FrequencyMaximum,
    /// `/proc/pressure/memory`.
    MemoryPressure,
    /// `/proc/pressure/cpu`.
    CpuPressure,
    /// `/proc/loadavg`.
    Loadavg,
    /// `/proc/vmstat`.
    Vmstat,
    /// `/proc/diskstats`.
    Diskstats,
    /// A counter of zswap in debugfs.
    Zswap(Rejection),
    /// `/sys/power/resume`: the device number of the disk that hibernation uses, or `0:0`.
    Resume,
    /// `/etc/fstab`.
    Fstab,
    /// `/sys/fs/cgroup/cgroup.controllers`.
    Controllers,
    /// `/var/lib/zramd/benchmark.json`: the verdict of the benchmark.
    Verdict,
    /// `/proc/sys/kernel/random/boot_id`.
    BootId,
}

/// A process that has a device open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// `comm`.
    pub name: String,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// Name of a record file, and its text, or why that cannot be read.
pub type RecordFile = (String, Result<String, HostError>);

/// What a path leads to that should be a block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockProbe {
    /// Device number; `None` if it is not a block device.
    pub device: Option<(u32, u32)>,
    /// Its first bytes, at most [`logic::device::signature::PROBE_BYTES`].
    pub head: Vec<u8>,
    /// Names of the partitions and devices on top of it.
    pub holders: Vec<String>,
}

/// How to make a file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MkfsSpec {
    /// Type, as in `mkfs.TYPE`.
    pub fs_type: String,
    /// Arguments between the program and the device.
    pub arguments: Vec<String>,
}

/// How to activate swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwapSpec {
    /// Priority; −1 lets the kernel choose.
    pub priority: i32,
    /// Discard freed pages (`SWAP_FLAG_DISCARD`).
    pub discard: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountSpec {
    /// Source: a device node, or a word for file systems without one.
    pub source: String,
    pub mount_point: String,
    /// File system type.
    pub fs_type: String,
    /// Options in the spelling of fstab.
    pub options: String,
}

/// Owner and permission bits of the root directory of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RootSpec {
    /// Permission bits.
    pub mode: Option<u32>,
    /// User id.
    pub uid: Option<u32>,
    /// Group id.
    pub gid: Option<u32>,
}

/// How full a file system is (statvfs(3)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    pub used_bytes: u64,
    /// Bytes that fit.
    pub total_bytes: u64,
    /// Files that still fit.
    pub free_inodes: u64,
    /// Inodes of the empty file system; 0 if there is no such limit.
    pub total_inodes: u64,
}

/// How soon maintenance gets a CPU when others want it, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// After most others. It is not raised again.
    Low,
    /// Like others.
    Normal,
    /// Before others.
    RealTime,
}

/// State of maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateFile {
    /// Kept until the next boot, in `/run/zramd/work/maintenance.state`.
    Boot,
    /// Bytes written to backing devices, in `/var/lib/zramd/budget.json`. Synced before a write returns.
    Budget,
}

impl StateFile {
    pub const fn path(self) -> &'static str {
        match self {
            StateFile::Boot => "/run/zramd/work/maintenance.state",
            StateFile::Budget => "/var/lib/zramd/budget.json",
        }
    }
}

/// What the engine may ask of a machine: first the verbs that only look, then those that act.
pub trait Host {
    /// The contents of one file about the machine.
    fn bytes(&self, file: MachineFile) -> Result<Vec<u8>, HostError>;
    /// The text of one file about the machine; what is not UTF-8 is replaced.
    fn text(&self, file: MachineFile) -> Result<String, HostError> {
        Ok(lossy(self.bytes(file)?))
    }
    /// A setting of the kernel, without the line break.
    fn read_tunable(&self, tunable: Tunable) -> Result<String, HostError>;
    /// CPUs online.
    fn cpus(&self) -> u32;
    /// Page size in bytes.
    fn page_size(&self) -> u64;
    /// Whether we may administer the machine.
    fn is_privileged(&self) -> bool;
    /// The kind of container that we run in; `None` outside of one.
    fn container(&self) -> Option<String>;
    /// Whether `/sys/class/zram-control` exists.
    fn has_control(&self) -> bool;
    /// Numbers of all zram devices, ascending.
    fn device_numbers(&self) -> Result<Vec<u32>, HostError>;
    /// Whether device `number` has this attribute.
    fn has_attribute(&self, number: u32, attribute: Attribute) -> bool;
    fn read_attribute(&self, number: u32, attribute: Attribute) -> Result<String, HostError>;
    /// The first bytes of a device, read directly from it: whole pages, at most `length`.
    fn head(&self, number: u32, length: usize) -> Result<Vec<u8>, HostError>;
    /// What is mounted at `path`; `None` if nothing is.
    fn mount_id(&self, path: &str) -> Result<Option<MountId>, HostError>;
    /// Inode of the mount namespace of this process.
    fn mount_namespace(&self) -> u64;
    /// A process in the mount namespace with this inode.
    fn namespace_user(&self, namespace: u64) -> Option<Holder>;
    /// Processes other than this one that have the device open; those that were found within a second.
    fn holders(&self, number: u32) -> Vec<Holder>;
    /// Processes other than this one that use the file system mounted at `path`; those that were found within a second.
    fn mount_users(&self, path: &str) -> Vec<Holder>;
    /// Capacity of the battery in percent while the machine runs on it.
    fn on_battery(&self) -> Option<u8>;
    /// Size of a block device in bytes.
    fn block_bytes(&self, path: &str) -> Result<u64, HostError>;
    /// What is at `path`, which should be a block device; `None` if the path does not exist.
    fn probe_block(&self, path: &str) -> Result<Option<BlockProbe>, HostError>;
    /// The loop device that [`Host::attach_file`] made for device `number`, if it is there.
    fn loop_device(&self, number: u32) -> Result<Option<String>, HostError>;
    /// The mapping that [`Host::open_crypt`] made for device `number`, if it is there.
    fn crypt_device(&self, number: u32) -> Result<Option<String>, HostError>;
    /// The kernel's sequence number of a block device, which tells it from earlier ones with the same name; `None` before Linux
    /// 5.15. Loop devices get another one with each file.
    fn diskseq(&self, node: &str) -> Option<u64>;
    /// Path of the program that makes file systems of this type.
    fn find_mkfs(&self, fs_type: &str) -> Option<PathBuf>;
    /// What is at `path`.
    fn path_kind(&self, path: &str) -> PathKind;
    /// Permission bits and owners of what is at `path`; `None` if it is missing, or cannot be looked at.
    fn permissions(&self, path: &str) -> Option<Permissions>;
    /// Where `path` leads if it is a symbolic link or has one on the way.
    fn link(&self, path: &str) -> Option<String>;
    /// The names in a directory, sorted; none if it cannot be read.
    fn names(&self, directory: &str) -> Vec<String>;
    /// The text of a configuration file of another program, with replacements for what is not UTF-8; `None` if it is missing, cannot be
    /// read, or is too large.
    fn other_text(&self, file: &str) -> Option<String>;
    /// How full the file system mounted at `path` is.
    fn space(&self, path: &[u8]) -> Result<Space, HostError>;
    /// The state file of a persistent RAM disk, as `zramd-worker` wrote it; empty without one.
    fn ramdisk_status(&self, name: &str) -> String;
    /// Time since a device appeared, if `/dev` tells it.
    fn device_age(&self, number: u32) -> Option<Duration>;
    /// Inode of the directory of a device in `/sys/block`.
    fn device_inode(&self, number: u32) -> Result<u64, HostError>;
    fn records(&self) -> Result<Vec<RecordFile>, HostError>;
    /// The records of scratch devices.
    fn scratch_records(&self) -> Result<Vec<RecordFile>, HostError>;
    /// Numbers of the swaps that are off for hibernation ([`logic::device::drain`]), ascending.
    fn drained(&self) -> Result<Vec<u32>, HostError>;
    /// The stored state of maintenance; `None` if there is none.
    fn read_state(&self, file: StateFile) -> Result<Option<String>, HostError>;
    /// Time since 1970 if the kernel considers its clock synchronised (adjtimex(2)).
    fn synchronised_clock(&self) -> Option<Duration>;
    /// Time since boot, including suspend.
    fn now(&self) -> Duration;
    /// Time since boot without suspend, which time stamps on the bus use.
    fn monotonic(&self) -> Duration;

    /// Takes the lock that serialises changes, waiting for it.
    fn lock_run(&mut self) -> Result<(), HostError>;
    /// Releases that lock.
    fn unlock_run(&mut self);
    /// Writes a record atomically.
    fn write_record(&mut self, name: &str, text: &str) -> Result<(), HostError>;
    /// Removes a record; an absent one is fine.
    fn remove_record(&mut self, name: &str) -> Result<(), HostError>;
    /// Replaces the stored state of maintenance.
    fn write_state(&mut self, file: StateFile, text: &str) -> Result<(), HostError>;
    /// Writes or removes the drop-in that keeps a swap off for hibernation.
    fn mark_drained(&mut self, number: u32, drained: bool) -> Result<(), HostError>;
    /// Locks a scratch record until this process ends; false if another process has it.
    fn own_scratch(&mut self, name: &str) -> Result<bool, HostError>;
    /// Sets the priority of this thread from now on.
    fn set_priority(&mut self, priority: Priority);
    /// Waits.
    fn sleep(&mut self, time: Duration);
    /// Random bytes for a UUID.
    fn random(&mut self) -> [u8; 16];
    fn load_module(&mut self) -> Result<(), HostError>;
    /// Creates a device; the kernel chooses the lowest free number. The only caller is the engine's device creation.
    fn hot_add(&mut self) -> Result<u32, HostError>;
    /// Removes a device.
    fn hot_remove(&mut self, number: u32) -> Result<(), HostError>;
    fn write_attribute(&mut self, number: u32, attribute: Attribute, value: &str) -> Result<(), HostError>;
    /// Creates a file of this size, unlinks it, and attaches it to a loop device with direct I/O for device `number`. Only
    /// root can read it, and it ends with the loop device.
    fn attach_file(&mut self, number: u32, path: &str, bytes: u64) -> Result<(), HostError>;
    fn detach_file(&mut self, number: u32) -> Result<(), HostError>;
    /// Maps a block device for device `number`, encrypted with a random key that is stored nowhere.
    fn open_crypt(&mut self, number: u32, store: &str) -> Result<(), HostError>;
    /// Removes that mapping; a missing one is not an error.
    fn close_crypt(&mut self, number: u32) -> Result<(), HostError>;
    /// Keeps udev from probing the device: an exclusive BSD lock on its node.
    fn lock_device(&mut self, number: u32) -> Result<(), HostError>;
    /// Releases that lock.
    fn unlock_device(&mut self, number: u32) -> Result<(), HostError>;
    /// Makes the kernel send an event about the device. Before systemd 250, udev drops those of a locked device.
    fn announce_device(&mut self, number: u32) -> Result<(), HostError>;
    /// Writes whole pages with direct I/O.
    fn write_pages(&mut self, number: u32, offset: u64, data: &[u8]) -> Result<(), HostError>;
    /// Reads whole pages with direct I/O.
    fn read_pages(&mut self, number: u32, offset: u64, length: usize) -> Result<Vec<u8>, HostError>;
    /// Discards a range.
    fn discard(&mut self, number: u32, offset: u64, length: u64) -> Result<(), HostError>;
    /// Makes a file system.
    fn mkfs(&mut self, number: u32, spec: &MkfsSpec) -> Result<(), HostError>;
    /// Sets owner and mode of the root directory of the file system on the device, without mounting it at any path.
    fn set_root(&mut self, number: u32, fs_type: &str, root: &RootSpec) -> Result<(), HostError>;
    /// Activates swap.
    fn swap_on(&mut self, number: u32, spec: SwapSpec) -> Result<(), HostError>;
    /// Deactivates swap, in a child process: during swapoff(2) the caller is the preferred victim of the OOM killer.
    fn swap_off(&mut self, number: u32) -> Result<(), HostError>;
    /// Deactivates swap on this file if it is active, as [`Host::swap_off`], and removes it. Another file at its path stays.
    fn remove_swap_file(&mut self, file: &SwapFile) -> Result<(), HostError>;
    fn mount(&mut self, spec: &MountSpec) -> Result<(), HostError>;
    /// Changes the options of a mounted file system.
    fn remount(&mut self, spec: &MountSpec) -> Result<(), HostError>;
    /// Bind-mounts `from` at `to`.
    fn bind(&mut self, from: &str, to: &str) -> Result<(), HostError>;
    /// Runs `zramd-worker` and waits for its end.
    fn run_worker(&mut self, order: &Order) -> Result<(), Error>;
    /// Unmounts what is mounted at `path`, never lazily. Other file systems than `mount`, and other mounts if it has a unique
    /// ID of this namespace, stay mounted, and the call fails with `ESTALE`.
    fn unmount(&mut self, path: &[u8], mount: &MountId) -> Result<(), HostError>;
    /// Changes a setting of the kernel.
    fn write_tunable(&mut self, tunable: Tunable, value: &str) -> Result<(), HostError>;
    /// Creates one directory, mode 0755.
    fn make_directory(&mut self, path: &str) -> Result<(), HostError>;
    /// Removes an empty directory.
    fn remove_directory(&mut self, path: &str) -> Result<(), HostError>;
}
