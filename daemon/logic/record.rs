//! Record of a target: its request, and how to undo the steps done so far.
//!
//! A record is written to `/run/zramd` *before* the step that it can undo, so that a kill leaves nothing unrecorded.
//! Removing a target, recovering after a crash and rolling back a failed step all apply the undo list from its end.
//! Each undo can be repeated, and checks that the device is still the same.

use crate::error::{Error, ErrorKind};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::device::algorithm::Algorithm;
use super::proc::zram_number;
use super::request::Request;
use super::vm::Tunable;

/// Format version of record files; files of other versions are not touched.
pub const VERSION: u32 = 1;

/// Suffix of records of scratch devices; they do not count as records of targets.
pub const SCRATCH: &str = ".scratch";

/// Subject of a record, a group of steps or a report.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// `/dev/zramN`.
    Device(u32),
    /// `[ramdisk.NAME]`.
    RamDisk(String),
    /// Settings of `[vm]` for the time in which compressed swap is active.
    Vm,
    /// `zswap` of `[vm]`, which is disabled before swap is activated.
    Zswap,
}

impl Target {
    /// The target of a section that has overrides: `zram0`, `ramdisk.logs`.
    pub fn of_section(section: &str) -> Option<Target> {
        match section.strip_prefix("ramdisk.") {
            Some(name) => Some(Target::RamDisk(name.to_owned())),
            None => zram_number(section).map(Target::Device),
        }
    }

    /// Name of the record file below `/run/zramd`, without the directory.
    pub fn file_name(&self) -> String {
        match self {
            Target::Device(number) => format!("zram{number}.json"),
            Target::RamDisk(name) => format!("ramdisk-{name}.json"),
            Target::Vm => "vm.json".to_owned(),
            Target::Zswap => "zswap.json".to_owned(),
        }
    }
}

impl Target {
    /// The target of a record file.
    pub fn of_file(name: &str) -> Option<Target> {
        let stem = name.strip_suffix(".json")?;
        let target = match stem {
            "vm" => Target::Vm,
            "zswap" => Target::Zswap,
            _ => match stem.strip_prefix("ramdisk-") {
                Some(disk) => Target::RamDisk(disk.to_owned()),
                None => Target::Device(zram_number(stem)?),
            },
        };
        (target.file_name() == name).then_some(target)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Device(number) => write!(f, "zram{number}"),
            Target::RamDisk(name) => write!(f, "ramdisk.{name}"),
            Target::Vm => f.write_str("vm"),
            Target::Zswap => f.write_str("zswap"),
        }
    }
}

/// Whether the recorded work is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// Steps are being done, or were interrupted.
    Working,
    /// All steps are done.
    Done,
}

/// Contents of a record file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`VERSION`].
    pub version: u32,
    /// The target.
    pub target: Target,
    /// The kernel's `diskseq` of the device, or the inode of its directory in sysfs on kernels without it: its number
    /// may be reused for a device of another program.
    pub diskseq: Option<u64>,
    /// Whether the work is complete.
    pub progress: Progress,
    /// The algorithm in use, once one has succeeded.
    pub algorithm: Option<Algorithm>,
    /// Whether it is the verdict of the benchmark.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub measured: bool,
    /// The previous algorithm of a device that we did not create; kernels before 6.12 keep ours after a reset.
    pub found_algorithm: Option<String>,
    /// The request, to detect later changes of the configuration.
    pub request: Request,
    /// Undo list, to be applied from its end.
    pub undo: Vec<Undo>,
    /// `MemTotal` in KiB when a device was set up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_kib: u64,
    /// A scratch device for measuring. It belongs to the process that keeps [`Record::file_name`] locked, and is not a
    /// target; a process that gets the lock removes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scratch: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Required by serde.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A record file that is damaged or of a newer version. Its target is left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// Its name, without the directory.
    pub file: String,
    /// The target of this file; `None` if the name is not that of a target.
    pub target: Option<Target>,
    /// Why it cannot be used.
    pub why: String,
}

impl Damaged {
    /// The error of an operation on a target with a damaged record.
    pub fn refusal(&self) -> Error {
        let name = self.target.as_ref().map_or_else(|| self.file.clone(), Target::to_string);
        Error::new(ErrorKind::Unsafe, format!("{name}: {self}; {}", self.remedy()))
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        let remove = format!("remove /run/zramd/{}", self.file);
        match self.target {
            Some(Target::Device(_)) => {
                let target = self.file.trim_end_matches(".json");
                format!(
                    "run `zramdctl adopt {target}` if the device is in use as configured; otherwise {remove}"
                )
            }
            _ => remove,
        }
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/run/zramd/{} is not a usable record: {}", self.file, self.why)
    }
}

/// How to undo a step. Each can be repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undo {
    /// `hot_remove` a device created only to reach a higher number, if it is the same one and uninitialised.
    RemoveSpare {
        /// N of `zramN`.
        number: u32,
        /// As [`Record::diskseq`].
        diskseq: Option<u64>,
    },
    /// `hot_remove` a device that we created.
    RemoveDevice {
        /// N of `zramN`.
        number: u32,
    },
    /// `reset` the device, which discards its configuration and contents.
    Reset {
        /// N of `zramN`.
        number: u32,
    },
    /// `swapoff`, after checking that memory has space for the pages.
    SwapOff {
        /// N of `zramN`.
        number: u32,
    },
    /// Unmount, if the visible mount is still ours.
    Unmount {
        /// Mount point.
        mount_point: String,
        /// The zram device; `None` for a tmpfs.
        number: Option<u32>,
    },
    /// Unmount a RAM disk from its mount point, and save its contents.
    HideDisk {
        /// NAME of `[ramdisk.NAME]`.
        name: String,
        /// Private mount point.
        place: String,
        /// Public mount point.
        mount_point: String,
        /// Whether its contents are kept over reboots.
        kept: bool,
    },
    /// Detach the backing file of a device. It has no name, so this deletes it.
    DetachFile {
        /// N of `zramN`.
        number: u32,
    },
    /// Remove the encrypted mapping of a device.
    CloseCrypt {
        /// N of `zramN`.
        number: u32,
    },
    /// Restore a setting, unless another program has changed it since.
    RestoreTunable {
        /// The setting.
        tunable: Tunable,
        /// The previous value.
        before: String,
        /// The value that we set.
        ours: String,
    },
    /// Remove a directory that we created, if it is empty.
    RemoveDirectory {
        /// Its path.
        path: String,
    },
}

/// Name of the encrypted mapping for `zramN`, and of the loop device of its file, by which they are recognised.
pub fn crypt_name(number: u32) -> String {
    format!("zramd-zram{number}")
}

impl Record {
    /// Parses a record file. `text` is its contents, or why they cannot be read.
    pub fn parse(file: &str, text: Result<&str, String>) -> Result<Record, Damaged> {
        let read = || {
            let record: Record = serde_json::from_str(text?).map_err(|error| error.to_string())?;
            match record.version {
                VERSION if record.file_name() == file && record.is_of_one_kind() => Ok(record),
                VERSION => Err(format!("it is about {}", record.target)),
                version => Err(format!("it has version {version}, and this zramd knows {VERSION}")),
            }
        };
        read().map_err(|why| Damaged { file: file.to_owned(), target: Target::of_file(file), why })
    }

    /// Whether the record is about the device with this `diskseq`; false without one, because devices cannot be told
    /// apart then.
    pub fn is_about(&self, diskseq: Option<u64>) -> bool {
        diskseq.is_some() && diskseq == self.diskseq
    }

    /// Whether the request is of the kind of the target.
    fn is_of_one_kind(&self) -> bool {
        match (&self.target, &self.request) {
            (Target::Device(number), Request::Device(request)) => request.number == *number,
            (Target::RamDisk(name), Request::RamDisk(request)) => request.name == *name,
            (Target::Vm | Target::Zswap, Request::Vm(_)) => true,
            _ => false,
        }
    }

    /// A record for work that is about to begin.
    pub fn begin(target: Target, request: Request) -> Record {
        Record {
            version: VERSION,
            target,
            diskseq: None,
            progress: Progress::Working,
            algorithm: None,
            measured: false,
            found_algorithm: None,
            request,
            undo: Vec::new(),
            memory_kib: 0,
            scratch: false,
        }
    }

    /// Name of its file below `/run/zramd`.
    pub fn file_name(&self) -> String {
        if self.scratch { format!("{}{SCRATCH}", self.target) } else { self.target.file_name() }
    }

    /// Adds an undo, unless it is in the list already.
    pub fn push(&mut self, undo: Undo) {
        if !self.undo.contains(&undo) {
            self.undo.push(undo);
        }
    }

    /// Whether removing the target also removes the device, because we created it.
    pub fn owns_device(&self) -> bool {
        self.undo.iter().any(|undo| matches!(undo, Undo::RemoveDevice { .. }))
    }
}
