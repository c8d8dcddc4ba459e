//! Steps: their effect, their undo, and descriptions of both.

use std::fmt;

use super::{Taken, Through};
use crate::device::algorithm::Algorithm;
use crate::human::human;
use crate::record::{Undo, crypt_name};
use crate::request::MountRequest;
use crate::vm::Tunable;

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Load the zram module.
    LoadModule,
    /// Create `zramN` with `hot_add`, and remove lower numbers created for that.
    CreateDevice { number: u32 },
    /// Record which device this is, and lock it against udev while it is configured.
    ClaimDevice { number: u32 },
    /// Write `comp_algorithm` and read it back.
    SetAlgorithm {
        number: u32,
        /// Name.
        algorithm: String,
    },
    /// Write `recomp_algorithm` and read it back.
    SetRecompression {
        number: u32,
        /// 1 to 3.
        priority: u8,
        /// Name.
        algorithm: String,
    },
    /// Write `algorithm_params`, with all keys at once because each write replaces the whole set.
    SetParameters {
        number: u32,
        /// 0 is the primary algorithm.
        priority: u8,
        /// The algorithm with its parameters.
        algorithm: Algorithm,
    },
    /// Create an unnamed file and attach it to a loop device.
    AttachFile {
        number: u32,
        /// Its path while it is created.
        path: String,
        bytes: u64,
    },
    /// Create a mapping encrypted with a random key that only the kernel has.
    OpenCrypt {
        number: u32,
        /// The block device; `None` for the loop device.
        store: Option<String>,
    },
    /// Write `backing_dev` and read it back.
    SetBackingDevice {
        number: u32,
        /// The configured path.
        path: String,
        /// What is between them.
        through: Through,
    },
    /// Write `disksize`, which initialises the device, and read it back.
    SetDiskSize { number: u32, bytes: u64 },
    /// Write `mem_limit` and read it back.
    SetMemoryLimit {
        number: u32,
        /// Bytes; 0 for none.
        bytes: u64,
    },
    /// Write pages of three kinds with direct I/O, read them back, compare, discard.
    SelfTest {
        number: u32,
        /// Size of the device in bytes.
        bytes: u64,
    },
    /// Write a swap header.
    MakeSwap { number: u32, label: String },
    /// Make a file system.
    MakeFilesystem {
        number: u32,
        fs_type: String,
        /// Arguments for `mkfs`.
        arguments: Vec<String>,
    },
    /// Set owner and mode of the root directory before it becomes visible.
    SetRoot {
        number: u32,
        fs_type: String,
        /// Owner and mode.
        mount: MountRequest,
    },
    /// Release the lock that keeps udev away.
    ReleaseLock { number: u32 },
    /// Create a missing directory of a mount point.
    CreateDirectory { path: String },
    /// Activate swap.
    SwapOn {
        number: u32,
        priority: i32,
        /// Whether freed pages are discarded.
        discard: bool,
    },
    /// Deactivate swap, to activate it again with other options.
    SwapOff { number: u32 },
    MountDevice {
        number: u32,
        fs_type: String,
        /// Mount point and options.
        mount: MountRequest,
    },
    MountTmpfs {
        /// Mount point.
        mount: MountRequest,
        /// All options, including size and mode.
        options: String,
    },
    /// Change size or other options of a mounted tmpfs.
    RemountTmpfs { mount_point: String, options: String },
    /// Load the newest good snapshot into a RAM disk at its private place.
    LoadRamdisk {
        /// NAME of `[ramdisk.NAME]`.
        name: String,
    },
    /// Make a RAM disk visible at its mount point.
    ShowRamdisk {
        /// NAME of `[ramdisk.NAME]`.
        name: String,
        /// Private mount point.
        place: String,
        mount_point: String,
        /// Whether its contents are kept over reboots.
        kept: bool,
    },
    /// Read a kernel setting back once it is in use: instead of a compressor that it lacks, the kernel takes another.
    CheckTunable { tunable: Tunable, value: String },
    /// Change a kernel setting and read it back.
    SetTunable {
        /// The setting.
        tunable: Tunable,
        /// The previous value.
        before: String,
        /// The new value.
        value: String,
    },
    /// Undo an earlier step.
    Undo(Undo),
}

impl Step {
    /// How the step is undone.
    pub fn taken_back(&self) -> Taken {
        match self {
            Step::LoadModule => Taken::Never("the module stays loaded: others may use it by now"),
            Step::CreateDevice { number } => Taken::By(Undo::RemoveDevice { number: *number }),
            Step::ClaimDevice { number } => Taken::By(Undo::Reset { number: *number }),
            Step::AttachFile { number, .. } => Taken::By(Undo::DetachFile { number: *number, diskseq: None }),
            Step::OpenCrypt { number, .. } => Taken::By(Undo::CloseCrypt { number: *number, diskseq: None }),
            Step::SetAlgorithm { .. }
            | Step::SetRecompression { .. }
            | Step::SetParameters { .. }
            | Step::SetBackingDevice { .. }
            | Step::SetDiskSize { .. }
            | Step::SetMemoryLimit { .. }
            | Step::SelfTest { .. }
            | Step::MakeSwap { .. }
            | Step::MakeFilesystem { .. }
            | Step::SetRoot { .. }
            | Step::LoadRamdisk { .. }
            | Step::CheckTunable { .. } => Taken::WithEarlier,
            Step::ReleaseLock { .. } => Taken::Never("the lock ends with the process anyway"),
            Step::CreateDirectory { path } => Taken::By(Undo::RemoveDirectory { path: path.clone() }),
            Step::SwapOn { number, .. } => Taken::By(Undo::SwapOff { number: *number }),
            Step::SwapOff { .. } => Taken::Never("the next step activates the swap again"),
            Step::MountDevice { number, mount, .. } => {
                let mount_point = mount.mount_point.clone();
                Taken::By(Undo::Unmount { mount_point, number: Some(*number), mounted: None })
            }
            Step::MountTmpfs { mount, .. } => {
                let mount_point = mount.mount_point.clone();
                Taken::By(Undo::Unmount { mount_point, number: None, mounted: None })
            }
            Step::ShowRamdisk { name, place, mount_point, kept } => Taken::By(Undo::HideRamdisk {
                name: name.clone(),
                place: place.clone(),
                mount_point: mount_point.clone(),
                kept: *kept,
                mounted: None,
            }),
            Step::RemountTmpfs { .. } => {
                Taken::Never("the contents stay, and the next run sets the options again")
            }
            Step::SetTunable { tunable, before, value } => Taken::By(Undo::RestoreTunable {
                tunable: *tunable,
                before: before.clone(),
                ours: value.clone(),
            }),
            Step::Undo(_) => Taken::Never("it is itself the undo of an earlier step"),
        }
    }

    /// Whether the step may fail with only a warning on a kernel without the feature: swap without write-back is better
    /// than none.
    pub fn is_optional(&self) -> bool {
        match self {
            Step::SetRecompression { .. } => true,
            Step::SetParameters { priority, .. } => *priority > 0,
            _ => self.is_backing(),
        }
    }

    /// Whether it is a step of write-back: if one of them fails, the others are left out.
    pub fn is_backing(&self) -> bool {
        matches!(self, Step::AttachFile { .. } | Step::OpenCrypt { .. } | Step::SetBackingDevice { .. })
    }
}

impl fmt::Display for Step {
    /// A description in one sentence, without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::LoadModule => f.write_str("load the zram module"),
            Step::CreateDevice { number } => write!(f, "create /dev/zram{number} (hot_add)"),
            Step::ClaimDevice { number } => {
                write!(f, "take /dev/zram{number}, record it in /run/zramd and keep udev from probing it")
            }
            Step::SetAlgorithm { algorithm, .. } => write!(f, "select {algorithm} as compression algorithm"),
            Step::SetRecompression { priority, algorithm, .. } => {
                write!(f, "select {algorithm} as secondary algorithm with priority {priority}")
            }
            Step::SetParameters { priority: 0, algorithm, .. } => {
                write!(f, "set the parameters of {algorithm}")
            }
            Step::SetParameters { priority, algorithm, .. } => {
                write!(f, "set the parameters of {algorithm} at priority {priority}")
            }
            Step::AttachFile { path, bytes, .. } => {
                write!(f, "make a file of {} at {path}, unlink it and attach it", human(*bytes))
            }
            Step::OpenCrypt { number, store } => {
                let store = store.as_deref().unwrap_or("the file");
                write!(f, "map {store} as {}, encrypted with a random key", crypt_name(*number))
            }
            Step::SetBackingDevice { path, through, .. } => {
                let how = if *through == Through::Crypt { ", encrypted," } else { "" };
                write!(f, "attach {path}{how} as write-back device")
            }
            Step::SetDiskSize { bytes, .. } => write!(f, "set the size to {} (disksize)", human(*bytes)),
            Step::SetMemoryLimit { bytes: 0, .. } => f.write_str("remove the memory limit (mem_limit)"),
            Step::SetMemoryLimit { bytes, .. } => {
                write!(f, "limit the memory used to {} (mem_limit)", human(*bytes))
            }
            Step::SelfTest { .. } => {
                f.write_str("write compressible, incompressible and zero pages, read them back and compare")
            }
            Step::MakeSwap { label, .. } => write!(f, "write a swap header with label {label}"),
            Step::MakeFilesystem { fs_type, .. } => write!(f, "format it as {fs_type}"),
            Step::SetRoot { mount, .. } => {
                f.write_str("set the root directory's")?;
                let mut separator = " ";
                for (name, value) in [
                    ("mode", mount.mode.map(|mode| format!("{mode:04o}"))),
                    ("owner", mount.uid.map(|id| id.to_string())),
                    ("group", mount.gid.map(|id| id.to_string())),
                ] {
                    if let Some(value) = value {
                        write!(f, "{separator}{name} to {value}")?;
                        separator = ", ";
                    }
                }
                Ok(())
            }
            Step::ReleaseLock { number } => write!(f, "let udev see /dev/zram{number}"),
            Step::CreateDirectory { path } => write!(f, "create the directory {path}"),
            Step::SwapOn { number, priority: -1, .. } => {
                write!(f, "activate swap on /dev/zram{number} with the kernel's own priority")
            }
            Step::SwapOn { number, priority, .. } => {
                write!(f, "activate swap on /dev/zram{number} with priority {priority}")
            }
            Step::SwapOff { number } => write!(f, "deactivate swap on /dev/zram{number} temporarily"),
            Step::MountDevice { number, mount, .. } => {
                write!(f, "mount /dev/zram{number} on {}", mount.mount_point)
            }
            Step::MountTmpfs { mount, .. } => write!(f, "mount a tmpfs on {}", mount.mount_point),
            Step::RemountTmpfs { mount_point, options } => write!(f, "remount {mount_point} with {options}"),
            Step::LoadRamdisk { name } => write!(f, "load ramdisk.{name} from its newest good snapshot"),
            Step::ShowRamdisk { mount_point, .. } => write!(f, "bind-mount it on {mount_point}"),
            Step::SetTunable { tunable, before, value } => {
                write!(f, "set {tunable} from {before} to {value}")
            }
            Step::CheckTunable { tunable, value } => write!(f, "check that {tunable} is {value}"),
            Step::Undo(undo) => undo.fmt(f),
        }
    }
}

impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undo::RemoveSpare { number, .. } => {
                write!(f, "remove /dev/zram{number}, which is not needed (hot_remove)")
            }
            Undo::RemoveDevice { number } => write!(f, "remove /dev/zram{number} (hot_remove)"),
            Undo::Reset { number } => write!(f, "reset /dev/zram{number}, which frees its memory"),
            Undo::SwapOff { number } => write!(f, "deactivate swap on /dev/zram{number}"),
            Undo::Unmount { mount_point, .. } | Undo::HideRamdisk { mount_point, kept: false, .. } => {
                write!(f, "unmount {mount_point}")
            }
            Undo::HideRamdisk { name, mount_point, .. } => {
                write!(f, "unmount {mount_point} and save ramdisk.{name}")
            }
            Undo::DetachFile { number, .. } => {
                write!(f, "detach the write-back file of zram{number}, which ends it")
            }
            Undo::CloseCrypt { number, .. } => {
                write!(f, "remove the mapping {}, and with it its key", crypt_name(*number))
            }
            Undo::RestoreTunable { tunable, before, ours } => {
                write!(f, "set {tunable} to {before} again if it is still {ours}")
            }
            Undo::RemoveDirectory { path } => write!(f, "remove the directory {path} if it is empty"),
            Undo::RemoveSwapFile(file) => write!(f, "deactivate swap on {} and remove it", file.path),
        }
    }
}
