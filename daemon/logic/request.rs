//! What is asked for, in concrete numbers: what the planner makes of the configuration, and what a record keeps.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::device::algorithm::Algorithm;
use super::human::human;
use super::ramdisk::place::place;
use super::ramdisk::{Mode, OnFailure, Persist};
use super::vm::VmRequest;

/// What is asked for one target, in concrete numbers. Recorded, so that a later run can tell what has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// A zram device.
    Device(DeviceRequest),
    /// A RAM disk.
    RamDisk(RamDiskRequest),
    /// Settings of the kernel.
    Vm(VmRequest),
}

impl Request {
    /// Where and how it is mounted.
    pub fn mount(&self) -> Option<&MountRequest> {
        match self {
            Request::Device(DeviceRequest { purpose: Purpose::Filesystem { mount, .. }, .. }) => Some(mount),
            Request::RamDisk(disk) => Some(&disk.mount),
            Request::Device(_) | Request::Vm(_) => None,
        }
    }
}

/// A zram device that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRequest {
    /// N of `zramN`.
    pub number: u32,
    /// `disksize` in bytes, before the kernel rounds it up to pages.
    pub disk_size: u64,
    /// `mem_limit` in bytes; 0 is none.
    pub memory_limit: u64,
    /// Algorithms in order of preference, as written.
    pub algorithms: Vec<Choice>,
    /// Secondary algorithms, priorities 1, 2, 3.
    pub recompression: Vec<Algorithm>,
    /// Where pages are written back to.
    pub writeback: Option<Writeback>,
    /// What it is for.
    pub purpose: Purpose,
    /// Label of the swap area or file system.
    pub label: String,
}

/// Where pages are written back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writeback {
    /// A block device, or a file.
    pub store: Store,
    /// Whether everything on it is encrypted, with a key that nobody keeps.
    pub encrypted: bool,
}

/// What takes pages that are written back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Store {
    /// A block device of its own.
    Device(String),
    /// A file that zramd makes.
    File {
        /// Where.
        path: String,
        /// Its size in bytes; what fits when absent.
        bytes: Option<u64>,
    },
}

impl Writeback {
    /// The device or file.
    pub fn path(&self) -> &str {
        match &self.store {
            Store::Device(path) | Store::File { path, .. } => path,
        }
    }
}

impl fmt::Display for Writeback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path())?;
        if let Store::File { bytes: Some(bytes), .. } = &self.store {
            write!(f, " ({})", human(*bytes))?;
        }
        f.write_str(if self.encrypted { ", encrypted" } else { ", plain" })
    }
}

/// One algorithm that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Let zramd choose.
    Auto,
    /// This one.
    Named(Algorithm),
}

/// What a device is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Swap space.
    Swap {
        /// Priority; −1 lets the kernel choose.
        priority: i32,
        /// Options in the spelling of fstab.
        options: String,
    },
    /// A mounted file system.
    Filesystem {
        /// Type.
        fs_type: String,
        /// Further words for `mkfs`.
        mkfs_options: Vec<String>,
        /// Where and how.
        mount: MountRequest,
    },
    /// Not used by zramd.
    Raw {
        /// Type, or nothing for an unformatted device.
        fs_type: Option<String>,
        /// Further words for `mkfs`.
        mkfs_options: Vec<String>,
    },
}

/// Where and how something is mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountRequest {
    /// Where.
    pub mount_point: String,
    /// Options in the spelling of fstab.
    pub options: String,
    /// Permission bits of the root directory.
    pub mode: Option<u32>,
    /// Its owner.
    pub uid: Option<u32>,
    /// Its group.
    pub gid: Option<u32>,
}

/// A RAM disk that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RamDiskRequest {
    /// NAME of `[ramdisk.NAME]`.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Upper bound of inodes; the kernel's own when absent.
    pub inodes: Option<u64>,
    /// Where and how.
    pub mount: MountRequest,
    /// `huge=` of tmpfs(5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge: Option<String>,
    /// N of the zram device that holds it; nothing for a tmpfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Whether boot fails without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// How its contents are kept; nothing loses them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<KeepRequest>,
}

/// How the contents of a RAM disk are kept, in concrete numbers: all that loading and saving needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepRequest {
    /// What of them.
    pub mode: Mode,
    /// Directory of the snapshots.
    pub store: String,
    /// Bytes that all snapshots may take together; nothing is no limit.
    pub store_limit: Option<u64>,
    /// How many good snapshots are kept besides pinned ones.
    pub generations: u32,
    /// Seconds between saves; nothing is never.
    pub save_interval: Option<u64>,
    /// What is done when no snapshot can be loaded; nothing decides by whether the directory below is empty.
    pub on_failure: Option<OnFailure>,
    /// Whether the first use begins with what is in the directory below.
    pub seed: bool,
    /// Run before it is saved.
    pub pre_save: Vec<String>,
    /// Run after it was loaded.
    pub post_restore: Vec<String>,
    /// Seconds that each of these may take.
    pub hook_time_limit: u64,
    /// Seconds that loading or saving may take.
    pub time_limit: u64,
}

impl RamDiskRequest {
    /// Whether it is mounted at a private place first.
    pub fn is_layered(&self) -> bool {
        self.number.is_some() || self.keep.is_some()
    }

    /// Where the file system itself is mounted.
    pub fn place(&self) -> String {
        if self.is_layered() { place(&self.name) } else { self.mount.mount_point.clone() }
    }

    /// What of it is kept.
    pub fn persist(&self) -> Persist {
        self.keep.as_ref().map(|keep| keep.mode).into()
    }

    /// `tmpfs` or `zram`.
    pub fn backend(&self) -> &'static str {
        if self.number.is_some() { "zram" } else { "tmpfs" }
    }
}
