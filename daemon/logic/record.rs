//! The journal of one target: what was asked for, and how to take back what has been done so far.
//!
//! A record is written *before* the step that it can undo, into `/run/zramd`, so that a kill at any moment leaves
//! nothing unexplained. Taking a target away, recovering after a crash and rolling back a failed step are all the same
//! thing: the undo list, from its end. Every undo is safe to repeat and checks that the device is still the same one.

use crate::error::{Error, ErrorKind};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::device::algorithm::Algorithm;
use super::proc::zram_number;
use super::request::Request;
use super::vm::Tunable;

/// Format version of the record files; a file of another version is not touched.
pub const VERSION: u32 = 1;

/// End of the names of records of scratch devices; they are not among the records of targets.
pub const SCRATCH: &str = ".scratch";

/// What a record, a group of steps or a report is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// `/dev/zramN`.
    Device(u32),
    /// `[ramdisk.NAME]`.
    RamDisk(String),
    /// Settings of `[vm]` that hold while compressed swap is in use.
    Vm,
    /// `zswap` of `[vm]`, which has to be off before the swap is on.
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
    /// The target whose record file has this name.
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

/// Whether the work that a record describes was finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// Steps are being done, or whoever did them died.
    Working,
    /// Everything that was asked for is in place.
    Done,
}

/// One record file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`VERSION`].
    pub version: u32,
    /// What it is about.
    pub target: Target,
    /// The kernel's `diskseq` of the device, or the inode of its directory in sysfs where the kernel has no `diskseq`: the number
    /// alone may be given to a stranger's device later.
    pub diskseq: Option<u64>,
    /// How far the work is.
    pub progress: Progress,
    /// The algorithm that is in use, once one works.
    pub algorithm: Option<Algorithm>,
    /// Whether it is the verdict of the benchmark.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub measured: bool,
    /// The algorithm that a device had which we did not create; kernels before 6.12 keep ours after a reset.
    pub found_algorithm: Option<String>,
    /// What was asked for, to tell whether the configuration has changed since.
    pub request: Request,
    /// How to take it back; done from the end.
    pub undo: Vec<Undo>,
    /// `MemTotal` in KiB when a device was set up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_kib: u64,
    /// A device for measuring, which belongs to the process that keeps [`Record::file_name`] locked, and is nobody's
    /// target: whoever finds the lock free takes it back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scratch: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // As serde wants it.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A record file that cannot be used: it is damaged, or a newer zramd wrote it. Its target stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// Its name, without the directory.
    pub file: String,
    /// The target that has this file; nothing when its name is that of no target.
    pub target: Option<Target>,
    /// What is wrong with it.
    pub why: String,
}

impl Damaged {
    /// The refusal to touch a target whose record cannot be used.
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

/// How to take back one step. Each is safe to repeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undo {
    /// Remove uninitialised devices up to and including `up_to` that are not in `before`: what a `hot_add` that was
    /// interrupted may have left.
    RemoveNewDevices {
        /// Numbers that existed before.
        before: Vec<u32>,
        /// The number that was wanted.
        up_to: u32,
    },
    /// `hot_remove` a device that was created on the way to another number, if it is still the same and uninitialised.
    RemoveSpare {
        /// N of `zramN`.
        number: u32,
        /// As [`Record::diskseq`].
        diskseq: Option<u64>,
    },
    /// `hot_remove` the device, which we created.
    RemoveDevice {
        /// N of `zramN`.
        number: u32,
    },
    /// `reset` the device: forgets algorithms, parameters, backing device, size, limits and contents.
    Reset {
        /// N of `zramN`.
        number: u32,
    },
    /// `swapoff`, after checking that memory can take the pages.
    SwapOff {
        /// N of `zramN`.
        number: u32,
    },
    /// Unmount, if what is mounted there is still ours.
    Unmount {
        /// Where.
        mount_point: String,
        /// The zram device, or nothing for a tmpfs.
        number: Option<u32>,
    },
    /// Take a RAM disk away from its mount point, and save what is in it.
    HideDisk {
        /// NAME of `[ramdisk.NAME]`.
        name: String,
        /// Where the file system itself is mounted.
        place: String,
        /// Where it appears.
        mount_point: String,
        /// Whether its contents are kept.
        kept: bool,
    },
    /// Detach the file that takes the pages of a device; it has no name, so that ends it.
    DetachFile {
        /// N of `zramN`.
        number: u32,
    },
    /// Remove the encrypting mapping of a device.
    CloseCrypt {
        /// N of `zramN`.
        number: u32,
    },
    /// Give a setting its earlier value back, unless another program has changed it in the meantime.
    RestoreTunable {
        /// Which.
        tunable: Tunable,
        /// What it was.
        before: String,
        /// What we set it to.
        ours: String,
    },
    /// Remove a directory that we created, if it is empty.
    RemoveDirectory {
        /// Its path.
        path: String,
    },
}

/// Name of the encrypting mapping of `zramN`, and of the loop device of its file: by this we know them again.
pub fn crypt_name(number: u32) -> String {
    format!("zramd-zram{number}")
}

impl Record {
    /// Reads the file of this name. `text` is its contents, or why they cannot be read.
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

    /// Whether the device with this `diskseq` is the one of the record. Without one nothing tells it from a stranger's.
    pub fn is_about(&self, diskseq: Option<u64>) -> bool {
        diskseq.is_some() && diskseq == self.diskseq
    }

    /// Whether what was asked for is what the target can be.
    fn is_of_one_kind(&self) -> bool {
        match (&self.target, &self.request) {
            (Target::Device(number), Request::Device(request)) => request.number == *number,
            (Target::RamDisk(name), Request::RamDisk(request)) => request.name == *name,
            (Target::Vm | Target::Zswap, Request::Vm(_)) => true,
            _ => false,
        }
    }

    /// A record of work that is about to begin.
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

    /// Name of the file that it is in, below `/run/zramd`.
    pub fn file_name(&self) -> String {
        if self.scratch { format!("{}{SCRATCH}", self.target) } else { self.target.file_name() }
    }

    /// Adds an undo unless it is there already.
    pub fn push(&mut self, undo: Undo) {
        if !self.undo.contains(&undo) {
            self.undo.push(undo);
        }
    }

    /// Whether releasing the target also removes the device node, because we created it.
    pub fn owns_device(&self) -> bool {
        self.undo.iter().any(|undo| matches!(undo, Undo::RemoveDevice { .. }))
    }
}
