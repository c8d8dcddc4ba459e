//! Requests: settings with all values computed, as used by the planner and stored in records.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::device::algorithm::Algorithm;
use super::human::human;
use super::ramdisk::place::place;
use super::ramdisk::{KeepSettings, Persist};
use super::vm::Tunable;

/// The request for one target. Recorded, so that later runs can detect changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// A zram device.
    Device(DeviceRequest),
    Ramdisk(RamdiskRequest),
    /// Kernel settings.
    Vm(VmRequest),
}

impl Request {
    /// That of a zram device.
    pub fn device(&self) -> Option<&DeviceRequest> {
        match self {
            Request::Device(device) => Some(device),
            Request::Ramdisk(_) | Request::Vm(_) => None,
        }
    }

    /// Its mount, if any.
    pub fn mount(&self) -> Option<&MountRequest> {
        match self {
            Request::Device(device) => device.purpose.mount(),
            Request::Ramdisk(disk) => Some(&disk.mount),
            Request::Vm(_) => None,
        }
    }
}

/// A request for a zram device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRequest {
    /// N of `zramN`.
    pub number: u32,
    /// `disksize` in bytes, before the kernel rounds it up to pages.
    pub disk_size: u64,
    /// `mem_limit` in bytes; 0 for none.
    pub memory_limit: u64,
    /// Algorithms in order of preference, as configured.
    pub algorithms: Vec<Choice>,
    /// Secondary algorithms, priorities 1, 2, 3.
    pub recompression: Vec<Algorithm>,
    /// Destination of write-back.
    pub writeback: Option<Writeback>,
    /// Use of the device.
    pub purpose: Purpose,
    /// Label of the swap area or file system.
    pub label: String,
}

/// Destination of write-back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writeback {
    /// A block device, or a file.
    pub store: Store,
    /// Encrypt everything on it with a random key that is not stored.
    pub encrypted: bool,
}

/// Kind of a backing store. `Size` is in bytes, or an expression in settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Store<Size = u64> {
    /// A block device.
    Device(String),
    /// A file created by zramd.
    File {
        path: String,
        /// Its size; `None` to choose one that fits.
        size: Option<Size>,
    },
}

impl<Size> Store<Size> {
    /// The path of the device or file.
    pub fn path(&self) -> &str {
        let (Store::Device(path) | Store::File { path, .. }) = self;
        path
    }
}

impl fmt::Display for Writeback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.store.path())?;
        if let Store::File { size: Some(bytes), .. } = &self.store {
            write!(f, " ({})", human(*bytes))?;
        }
        f.write_str(if self.encrypted { ", encrypted" } else { ", plain" })
    }
}

/// One entry of `compression-algorithm`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Let zramd choose: lz4, else lzo-rle, else the kernel's default.
    Auto,
    Named(Algorithm),
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Auto => f.write_str("auto"),
            Choice::Named(algorithm) => algorithm.fmt(f),
        }
    }
}

/// A request for settings: recorded, so that later runs can detect changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VmRequest {
    /// Settings and their values, in the order in which they are written.
    pub values: Vec<(Tunable, String)>,
    /// Compressors of zswap in order of preference, as configured; the kernel's if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compressors: Vec<Choice>,
}

impl VmRequest {
    /// Whether zswap is enabled or disabled by this; `None` if it is not about zswap.
    pub fn zswap(&self) -> Option<bool> {
        self.values.iter().find(|(tunable, _)| *tunable == Tunable::Zswap).map(|(_, value)| value == "Y")
    }
}

impl fmt::Display for VmRequest {
    /// `vm.swappiness 150, vm.page-cluster 0`, `zswap.compressor zstd or lz4, zswap.enabled Y`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.compressors.iter().map(Choice::to_string).collect();
        let compressors =
            (!names.is_empty()).then(|| format!("{} {}", Tunable::ZswapCompressor, names.join(" or ")));
        let values = self.values.iter().map(|(tunable, value)| format!("{tunable} {value}"));
        let all: Vec<String> = compressors.into_iter().chain(values).collect();
        f.write_str(&all.join(", "))
    }
}

/// Use of a device. `Mount` is [`MountRequest`], or what the configuration says in settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose<Mount = MountRequest> {
    /// Swap space.
    Swap {
        /// −1 (let the kernel choose) … 32767; higher is used first.
        priority: i32,
        /// Options for `swapon`, in the form of fstab.
        options: String,
    },
    /// A mounted file system.
    Filesystem {
        fs_type: String,
        /// Additional arguments for `mkfs`.
        mkfs_options: Vec<String>,
        /// Mount point and options.
        mount: Mount,
    },
    /// Set up, and formatted if a type is set, but not used by zramd.
    Raw {
        /// Type; `None` for an unformatted device.
        fs_type: Option<String>,
        /// Additional arguments for `mkfs`.
        mkfs_options: Vec<String>,
    },
}

impl<Mount> Purpose<Mount> {
    /// `swap`, `filesystem` or `raw`.
    pub fn role(&self) -> &'static str {
        match self {
            Purpose::Swap { .. } => "swap",
            Purpose::Filesystem { .. } => "filesystem",
            Purpose::Raw { .. } => "raw",
        }
    }

    /// The file system type, if there is one.
    pub fn fs_type(&self) -> Option<&str> {
        match self {
            Purpose::Swap { .. } => None,
            Purpose::Filesystem { fs_type, .. } => Some(fs_type),
            Purpose::Raw { fs_type, .. } => fs_type.as_deref(),
        }
    }

    /// Its mount, if any.
    pub fn mount(&self) -> Option<&Mount> {
        match self {
            Purpose::Filesystem { mount, .. } => Some(mount),
            Purpose::Swap { .. } | Purpose::Raw { .. } => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountRequest {
    pub mount_point: String,
    /// Options in the form of fstab.
    pub options: String,
    /// Permission bits of the root directory.
    pub mode: Option<u32>,
    /// Owner of the root directory.
    pub uid: Option<u32>,
    /// Group of the root directory.
    pub gid: Option<u32>,
}

/// A request for a RAM disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RamdiskRequest {
    /// NAME of `[ramdisk.NAME]`.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Maximum number of inodes; `None` for the kernel's default.
    pub inodes: Option<u64>,
    /// Mount point and options.
    pub mount: MountRequest,
    /// `huge=` of tmpfs(5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge: Option<String>,
    /// N of its zram device; `None` for a tmpfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Whether boot fails without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// How its contents are kept over reboots; `None` if they are lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<KeepRequest>,
}

/// How the contents of a RAM disk are kept: everything that loading and saving needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepRequest {
    #[serde(flatten)]
    pub settings: KeepSettings,
    /// Maximum size of all snapshots in bytes; `None` for no limit.
    pub store_limit: Option<u64>,
    /// Maximum of what saves should write in 24 hours, in bytes; `None` for no limit.
    pub daily_budget: Option<u64>,
}

impl RamdiskRequest {
    /// Whether it is mounted at a private place first.
    pub fn is_layered(&self) -> bool {
        self.number.is_some() || self.keep.is_some()
    }

    /// The mount point of the file system itself.
    pub fn place(&self) -> String {
        if self.is_layered() { place(&self.name) } else { self.mount.mount_point.clone() }
    }

    /// Which contents are kept.
    pub fn persist(&self) -> Persist {
        self.keep.as_ref().map(|keep| keep.settings.mode).into()
    }

    /// `tmpfs` or `zram`.
    pub fn backend(&self) -> &'static str {
        if self.number.is_some() { "zram" } else { "tmpfs" }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// For 1 MiB, without anything optional.
    pub(crate) fn device(number: u32, purpose: Purpose) -> DeviceRequest {
        DeviceRequest {
            number,
            disk_size: 1 << 20,
            memory_limit: 0,
            algorithms: Vec::new(),
            recompression: Vec::new(),
            writeback: None,
            purpose,
            label: String::new(),
        }
    }

    #[test]
    fn settings_are_named_with_their_values() {
        let choice = |name: &str| Choice::Named(Algorithm::parse(name).unwrap());
        for (values, compressors, expected) in [
            (
                vec![(Tunable::Swappiness, "150"), (Tunable::PageCluster, "0")],
                vec![],
                "vm.swappiness 150, vm.page-cluster 0",
            ),
            (
                vec![(Tunable::Zswap, "Y")],
                vec![choice("zstd"), choice("lz4")],
                "zswap.compressor zstd or lz4, zswap.enabled Y",
            ),
        ] {
            let values = values.into_iter().map(|(tunable, value)| (tunable, value.to_owned())).collect();
            assert_eq!(VmRequest { values, compressors }.to_string(), expected);
        }
    }
}
