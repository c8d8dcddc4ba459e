//! Record of a target: its request, and how to undo the steps done so far.
//!
//! A record is written to `/run/zramd` *before* the step that it can undo, so that a kill leaves nothing unrecorded.
//! Removing a target, recovering after a crash and rolling back a failed step all apply the undo list from its end.
//! Each undo can be repeated, and checks that the device is still the same.

use crate::error::{Error, ErrorKind};
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::device::algorithm::Algorithm;
use super::device::signature::Signature;
use super::device::state::{DeviceFacts, Seen};
use super::human::human;
use super::proc::{MountLine, zram_number};
use super::ramdisk::place::place;
use super::request::{Purpose, Request};
use super::vm::Tunable;

/// Format version of record files; files of other versions are not touched.
pub const VERSION: u32 = 2;

/// Pages that the self-test of a device writes at most.
const SELF_TEST_PAGES: u64 = 6;

/// Suffix of records of scratch devices; they do not count as records of targets.
pub const SCRATCH: &str = ".scratch";

/// Subject of a record, a group of steps or a report.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// `/dev/zramN`.
    Device(u32),
    /// `[ramdisk.NAME]`.
    Ramdisk(String),
    /// Settings of `[vm]` for the time in which compressed swap is active.
    Vm,
    /// `[zswap]`, which is set before swap is activated.
    Zswap,
}

impl Target {
    /// The target of a section that has overrides: `zram0`, `ramdisk.logs`.
    pub fn of_section(section: &str) -> Option<Target> {
        match section.strip_prefix("ramdisk.") {
            Some(name) => Some(Target::Ramdisk(name.to_owned())),
            None => zram_number(section).map(Target::Device),
        }
    }

    /// Name of the record file below `/run/zramd`, without the directory.
    pub fn file_name(&self) -> String {
        match self {
            Target::Device(number) => format!("zram{number}.json"),
            Target::Ramdisk(name) => format!("ramdisk-{name}.json"),
            Target::Vm => "vm.json".to_owned(),
            Target::Zswap => "zswap.json".to_owned(),
        }
    }
}

impl Target {
    /// The target of a record file.
    pub fn of_file(name: &str) -> Option<Target> {
        let stem = name.strip_suffix(".json")?;
        match stem {
            "vm" => Some(Target::Vm),
            "zswap" => Some(Target::Zswap),
            _ => match stem.strip_prefix("ramdisk-") {
                Some(disk) => Some(Target::Ramdisk(disk.to_owned())),
                None => zram_number(stem).map(Target::Device),
            },
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Device(number) => write!(f, "zram{number}"),
            Target::Ramdisk(name) => write!(f, "ramdisk.{name}"),
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
    /// The kernel's ID of the boot in which it was written. Nothing of another boot is left, but without systemd `/run` may
    /// be: such a record counts as none.
    #[serde(default)]
    pub boot_id: String,
    pub target: Target,
    /// The kernel's `diskseq` of the device, or the inode of its directory in sysfs on kernels without it: its number
    /// may be reused for a device of another program.
    pub diskseq: Option<u64>,
    /// What the device carries; `None` until its size is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carries: Option<Carried>,
    /// The device that is about to be added; `None` once it is in the undo list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adding: Option<Adding>,
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
    /// Whether to reset the device instead of removing it, because it is set up again next. It then keeps its `diskseq`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
    /// `MemTotal` in KiB when a device was set up.
    #[serde(default)]
    pub memory_kib: u64,
    /// A scratch device for measuring. It belongs to the process that keeps [`Record::file_name`] locked, and is not a
    /// target; a process that gets the lock removes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scratch: bool,
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
            Some(Target::Ramdisk(ref name)) => format!(
                "run `zramdctl ramdisk save {name}` if it persists, unmount it, also from {}, and {remove}",
                place(name)
            ),
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

/// What a device carries since it was set up. Another program may reset it and set it up again, which leaves its `diskseq`
/// as it is; so this is compared before each change and each undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// `disksize` in bytes.
    pub disk_size: u64,
    /// The selected one of `comp_algorithm`.
    pub algorithm: Option<String>,
    /// What was written to its start; without a UUID or label, any. `None` if nothing was written.
    pub signature: Option<Signature>,
}

/// A device that is about to be added. If the process is killed before the record has its `diskseq`, the next run finds the
/// device by this, and undoes that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adding {
    /// The lowest free N of `zramN`, which the kernel assigns.
    pub number: u32,
    /// The highest `diskseq` of all zram devices before; 0 without one. That of the new device is higher.
    pub after: u64,
    /// Time since boot.
    pub at: Duration,
}

impl Adding {
    /// Longest time from the intention to the device.
    const LONGEST: Duration = Duration::from_secs(2);

    /// Whether the device with this `diskseq` is the one that was added. `age` is its age, and `now` the time since boot. One
    /// that appeared later was created by another program.
    pub fn is(&self, diskseq: u64, age: Duration, now: Duration) -> bool {
        let since = now.saturating_sub(self.at);
        diskseq > self.after && age.abs_diff(since) <= Adding::LONGEST
    }
}

/// A mount, to tell it from others at the same path. The default is that of any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MountId {
    /// Inode of the mount namespace; the other IDs are valid only there.
    pub namespace: u64,
    /// ID in `/proc/self/mountinfo`, which the kernel reuses; 0 if unknown.
    pub id: u64,
    /// ID that is not reused (Linux 6.8); 0 if unknown.
    pub unique: u64,
    /// Device number of its root directory, the same in all namespaces; 0:0 if unknown.
    pub device: (u32, u32),
}

impl MountId {
    /// Whether `mount`, in the namespace with this inode, is another mount than this one.
    pub fn is_not(&self, mount: &MountLine, namespace: u64) -> bool {
        self.id != 0 && self.namespace == namespace && self.id != mount.id
    }

    /// Whether `self` is the mount `other`, as far as both are known: in another namespace, it may be a copy.
    pub fn is(&self, other: &MountId) -> bool {
        let apart = self.namespace != other.namespace;
        let same = |ours: u64, other: u64| apart || ours == 0 || other == 0 || ours == other;
        let unknown = (0, 0);
        let same_device = [self.device, other.device].contains(&unknown) || self.device == other.device;
        same_device && same(self.id, other.id) && same(self.unique, other.unique)
    }
}

/// A swap file, to tell it from others at the same path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapFile {
    pub path: String,
    /// Device number of its file system.
    pub device: (u32, u32),
    pub inode: u64,
    /// Its size.
    pub bytes: u64,
}

/// What to do about a device that another program has taken over: an imperative, lower case, no full stop.
pub fn adopt_or_forget(target: &Target) -> String {
    let file = target.file_name();
    format!(
        "run `zramdctl adopt {target}` if it is in use as configured; otherwise remove /run/zramd/{file}, and zramd forgets it"
    )
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
        mount_point: String,
        /// The zram device; `None` for a tmpfs.
        number: Option<u32>,
        /// The mount; `None` until it is mounted, and for one that was adopted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mounted: Option<MountId>,
    },
    /// Unmount a RAM disk from its mount point, and save its contents.
    HideRamdisk {
        /// NAME of `[ramdisk.NAME]`.
        name: String,
        /// Private mount point.
        place: String,
        mount_point: String,
        /// Whether its contents are kept over reboots.
        kept: bool,
        /// The mount at the public mount point; `None` until it is mounted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mounted: Option<MountId>,
    },
    /// Detach the backing file of a device. It has no name, so this deletes it.
    DetachFile {
        /// N of `zramN`.
        number: u32,
        /// `diskseq` of the loop device since then; `None` if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diskseq: Option<u64>,
    },
    /// Remove the encrypted mapping of a device.
    CloseCrypt {
        /// N of `zramN`.
        number: u32,
        /// `diskseq` of the mapping; `None` if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diskseq: Option<u64>,
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
    RemoveDirectory { path: String },
    /// `swapoff` a file on a disk if it is active, after checking that memory has space for the pages, and remove it.
    RemoveSwapFile(SwapFile),
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

    /// Whether the record is about the device that has this `diskseq` now; false without one, because devices cannot be
    /// told apart then. Another program may have set it up since: see [`Record::is_about`].
    pub fn is_of(&self, diskseq: Option<u64>) -> bool {
        diskseq.is_some() && diskseq == self.diskseq
    }

    /// Whether the record is about this device, and the device is as zramd set it up, or uninitialised.
    pub fn is_about(&self, device: &DeviceFacts) -> bool {
        self.is_of(device.diskseq) && self.differs(device).is_none()
    }

    /// Why the device must not be reset, although it may be as zramd set it up: a raw device is there for other programs, and has
    /// what they wrote to it. Otherwise as [`Record::taken_over`].
    pub fn not_ours(&self, device: &DeviceFacts) -> Option<String> {
        let written = match &device.seen {
            Seen::Signature(found) if self.is_raw() && device.initialised => Some(found),
            _ => None,
        };
        let written = written.map(|found| format!("it contains: {found}; zramd wrote nothing"));
        self.taken_over(device).or_else(|| written.filter(|_| self.is_of(device.diskseq)))
    }

    /// Whether it is a device that other programs write to, set up, and without anything that zramd wrote.
    fn is_raw(&self) -> bool {
        let Request::Device(request) = &self.request else { return false };
        matches!(request.purpose, Purpose::Raw { .. })
            && self.progress == Progress::Done
            && self.carries.as_ref().is_some_and(|carries| carries.signature.is_none())
    }

    /// What another program has changed if it has set up the device of this record since; for people, without a full stop.
    pub fn taken_over(&self, device: &DeviceFacts) -> Option<String> {
        self.differs(device).filter(|_| self.is_of(device.diskseq))
    }

    fn differs(&self, device: &DeviceFacts) -> Option<String> {
        if !device.initialised {
            return None;
        }
        let Some(carries) = &self.carries else {
            return Some(format!("its size is {}, and zramd has set none", human(device.disk_size)));
        };
        if device.disk_size != carries.disk_size {
            let (found, ours) = (device.disk_size, carries.disk_size);
            return Some(format!("its size is {found} bytes, and zramd set {ours}"));
        }
        if device.algorithm != carries.algorithm {
            let name = |algorithm: &Option<String>| algorithm.clone().unwrap_or_else(|| "none".to_owned());
            let (found, ours) = (name(&device.algorithm), name(&carries.algorithm));
            return Some(format!("its algorithm is {found}, and zramd selected {ours}"));
        }
        // The contents of a scratch device change while it is measured.
        let working = self.progress == Progress::Working;
        match (&device.seen, &carries.signature) {
            (Seen::Unknown, _) => None,
            _ if self.scratch || self.is_raw() => None,
            (Seen::Signature(found), Some(ours)) if ours.is_that_of(found) => None,
            // Pages of the self-test, or of an interrupted mkfs.
            (Seen::Signature(found), ours)
                if working && found.is_unknown() && (ours.is_some() || device.pages <= SELF_TEST_PAGES) =>
            {
                None
            }
            (Seen::Nothing, Some(_)) if working => None,
            (Seen::Nothing, None) => None,
            (Seen::Nothing, Some(ours)) => Some(format!("it is empty; zramd wrote: {ours}")),
            (Seen::Signature(found), Some(ours)) => {
                Some(format!("it contains: {found}; zramd wrote: {ours}"))
            }
            (Seen::Signature(found), None) => Some(format!("it contains: {found}; zramd wrote nothing")),
        }
    }

    /// The error of an operation on a device that another program has taken over.
    pub fn refusal(&self, differs: &str) -> Error {
        let message = format!(
            "{0}: another program has set it up since zramd did, so it is not changed: {differs}; {1}",
            self.target,
            adopt_or_forget(&self.target)
        );
        Error::new(ErrorKind::Unmanaged, message)
    }

    /// The mount at a path that an undo is about, if it is known.
    pub fn mounted(&self, path: &str) -> Option<MountId> {
        self.undo.iter().find_map(|undo| match undo {
            Undo::Unmount { mount_point, mounted, .. } | Undo::HideRamdisk { mount_point, mounted, .. }
                if mount_point == path =>
            {
                *mounted
            }
            _ => None,
        })
    }

    /// Records the `diskseq` of the loop device of the write-back file.
    pub fn set_file(&mut self, found: Option<u64>) {
        for undo in &mut self.undo {
            if let Undo::DetachFile { diskseq, .. } = undo {
                *diskseq = found;
            }
        }
    }

    /// Records the `diskseq` of the encrypted mapping.
    pub fn set_mapping(&mut self, found: Option<u64>) {
        for undo in &mut self.undo {
            if let Undo::CloseCrypt { diskseq, .. } = undo {
                *diskseq = found;
            }
        }
    }

    /// Records the mount that the undo of a step is about.
    pub fn set_mounted(&mut self, path: &str, id: Option<MountId>) {
        for undo in &mut self.undo {
            if let Undo::Unmount { mount_point, mounted, .. } | Undo::HideRamdisk { mount_point, mounted, .. } =
                undo
                && mount_point == path
            {
                *mounted = id;
            }
        }
    }

    /// Whether the request is of the kind of the target.
    fn is_of_one_kind(&self) -> bool {
        match (&self.target, &self.request) {
            (Target::Device(number), Request::Device(request)) => request.number == *number,
            (Target::Ramdisk(name), Request::Ramdisk(request)) => request.name == *name,
            (Target::Vm | Target::Zswap, Request::Vm(_)) => true,
            _ => false,
        }
    }

    /// A record for work that is about to begin.
    pub fn begin(target: Target, request: Request) -> Record {
        Record {
            version: VERSION,
            boot_id: String::new(),
            target,
            diskseq: None,
            carries: None,
            adding: None,
            progress: Progress::Working,
            algorithm: None,
            measured: false,
            found_algorithm: None,
            request,
            undo: Vec::new(),
            stays: false,
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
        // What is made again is another one.
        match &undo {
            Undo::Unmount { mount_point, .. } | Undo::HideRamdisk { mount_point, .. } => {
                self.set_mounted(mount_point, None);
            }
            Undo::DetachFile { .. } => self.set_file(None),
            Undo::CloseCrypt { .. } => self.set_mapping(None),
            _ => {}
        }
        if !self.undo.contains(&undo) {
            self.undo.push(undo);
        }
    }

    /// Whether removing the target also removes the device, because we created it.
    pub fn owns_device(&self) -> bool {
        self.undo.iter().any(|undo| matches!(undo, Undo::RemoveDevice { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::parse_mountinfo;
    use crate::request::tests::device as device_request;
    use crate::request::{MountRequest, RamdiskRequest, VmRequest};

    const MOUNT: MountId = MountId { namespace: 1, id: 25, unique: 900, device: (253, 0) };

    #[test]
    fn a_mount_is_the_same_as_far_as_both_are_known() {
        let is = |other: MountId| MOUNT.is(&other) && other.is(&MOUNT);
        assert!(is(MOUNT) && is(MountId::default()));
        for unknown in [
            MountId { id: 0, ..MOUNT },
            MountId { unique: 0, ..MOUNT },
            MountId { device: (0, 0), ..MOUNT },
            // A copy in another namespace has IDs of its own.
            MountId { namespace: 2, id: 26, unique: 901, ..MOUNT },
        ] {
            assert!(is(unknown), "{unknown:?}");
        }
        for other in [
            MountId { id: 26, ..MOUNT },
            MountId { id: 26, unique: 0, ..MOUNT },
            MountId { unique: 901, ..MOUNT },
            MountId { unique: 901, id: 0, ..MOUNT },
            MountId { device: (253, 1), ..MOUNT },
            MountId { namespace: 2, device: (0, 253), ..MOUNT },
        ] {
            assert!(!is(other), "{other:?}");
        }
    }

    #[test]
    fn a_line_is_another_mount_only_by_its_id_in_the_same_namespace() {
        let mounts = parse_mountinfo(
            b"25 1 253:0 / /a rw - ext4 /dev/zram0 rw\n26 1 253:0 / /a rw - ext4 /dev/zram0 rw\n",
        );
        let is_not = |mount: MountId| {
            let found: Vec<bool> = mounts.iter().map(|line| mount.is_not(line, 1)).collect();
            found
        };
        assert_eq!(is_not(MOUNT), [false, true]);
        assert_eq!(is_not(MountId { namespace: 2, ..MOUNT }), [false, false]);
        assert_eq!(is_not(MountId { id: 0, ..MOUNT }), [false, false]);
    }

    #[test]
    fn an_added_device_is_newer_and_as_old_as_the_intention() {
        let seconds = Duration::from_secs;
        let adding = Adding { number: 0, after: 7, at: seconds(100) };
        let is = |diskseq, age| adding.is(diskseq, seconds(age), seconds(110));
        assert!(is(8, 10) && is(8, 8) && is(9, 12));
        assert!(!is(7, 10) && !is(8, 7) && !is(8, 13), "older than the highest, later, or earlier");
    }

    fn swap(number: u32) -> Request {
        Request::Device(device_request(number, Purpose::Swap { priority: 100, options: String::new() }))
    }

    fn disk(name: &str) -> Request {
        let mount = MountRequest {
            mount_point: "/srv".to_owned(),
            options: String::new(),
            mode: None,
            uid: None,
            gid: None,
        };
        Request::Ramdisk(RamdiskRequest {
            name: name.to_owned(),
            size: 1 << 20,
            inodes: None,
            mount,
            huge: None,
            number: None,
            required: false,
            keep: None,
        })
    }

    #[test]
    fn a_file_is_named_after_its_target() {
        for (target, section, file) in [
            (Target::Device(0), "zram0", "zram0.json"),
            (Target::Device(12), "zram12", "zram12.json"),
            (Target::Ramdisk("a.b".to_owned()), "ramdisk.a.b", "ramdisk-a.b.json"),
            (Target::Vm, "vm", "vm.json"),
            (Target::Zswap, "zswap", "zswap.json"),
        ] {
            assert_eq!((target.to_string().as_str(), target.file_name().as_str()), (section, file));
            assert_eq!(Target::of_file(file), Some(target.clone()));
            let has_overrides = matches!(target, Target::Device(_) | Target::Ramdisk(_));
            assert_eq!(Target::of_section(section), has_overrides.then_some(target));
        }
        for file in ["zram01.json", "zram.json", "zram0", "other.json", "vm.json.bak"] {
            assert_eq!(Target::of_file(file), None, "{file}");
        }
    }

    #[test]
    fn a_record_is_read_only_from_the_file_of_its_target_and_with_a_request_for_it() {
        let vm = || Request::Vm(VmRequest::default());
        for (target, request, is_usable) in [
            (Target::Device(1), swap(1), true),
            (Target::Device(1), swap(2), false),
            (Target::Device(1), vm(), false),
            (Target::Ramdisk("a".to_owned()), disk("a"), true),
            (Target::Ramdisk("a".to_owned()), disk("b"), false),
            (Target::Ramdisk("a".to_owned()), swap(1), false),
            (Target::Vm, vm(), true),
            (Target::Zswap, vm(), true),
            (Target::Vm, swap(1), false),
        ] {
            let record = Record::begin(target.clone(), request);
            let text = serde_json::to_string(&record).unwrap();
            let file = target.file_name();
            let damaged = Damaged {
                file: file.clone(),
                target: Some(target.clone()),
                why: format!("it is about {target}"),
            };
            let expected = if is_usable { Ok(record) } else { Err(damaged) };
            assert_eq!(Record::parse(&file, Ok(&text)), expected, "{text}");
            let other = Record::parse("zram9.json", Ok(&text)).unwrap_err();
            assert_eq!(
                (other.target, other.why),
                (Some(Target::Device(9)), format!("it is about {target}")),
                "{text}"
            );
        }
        let newer = Record { version: VERSION + 1, ..Record::begin(Target::Vm, vm()) };
        let why = Record::parse("vm.json", Ok(&serde_json::to_string(&newer).unwrap())).unwrap_err().why;
        assert_eq!(why, format!("it has version {}, and this zramd knows {VERSION}", VERSION + 1));
    }

    #[test]
    fn what_to_do_about_a_damaged_record_depends_on_its_target() {
        for (file, remedy) in [
            (
                "zram3.json",
                "run `zramdctl adopt zram3` if the device is in use as configured; otherwise remove /run/zramd/zram3.json",
            ),
            (
                "ramdisk-a.json",
                "run `zramdctl ramdisk save a` if it persists, unmount it, also from /run/zramd/ramdisk/a, and remove /run/zramd/ramdisk-a.json",
            ),
            ("vm.json", "remove /run/zramd/vm.json"),
            ("other.json", "remove /run/zramd/other.json"),
        ] {
            let damaged = Record::parse(file, Err("why".to_owned())).unwrap_err();
            assert_eq!(damaged.remedy(), remedy);
            let refusal = damaged.refusal();
            assert_eq!(refusal.kind, ErrorKind::Unsafe);
            assert!(refusal.message.contains(file) && refusal.message.ends_with(remedy), "{refusal:?}");
        }
    }

    fn signature(kind: &str, uuid: &str) -> Signature {
        Signature { kind: kind.to_owned(), uuid: uuid.to_owned(), label: String::new() }
    }

    /// A device, and its record after the set-up wrote this.
    fn set_up(wrote: Option<Signature>) -> (Record, DeviceFacts) {
        let carries = Carried { disk_size: 1 << 20, algorithm: Some("zstd".to_owned()), signature: wrote };
        let device = DeviceFacts {
            diskseq: Some(7),
            initialised: true,
            disk_size: carries.disk_size,
            algorithm: carries.algorithm.clone(),
            seen: carries.signature.clone().map_or(Seen::Nothing, Seen::Signature),
            ..DeviceFacts::default()
        };
        let record = Record {
            diskseq: device.diskseq,
            carries: Some(carries),
            progress: Progress::Done,
            ..Record::begin(Target::Device(0), swap(0))
        };
        (record, device)
    }

    /// What another program wrote, and data whose type is not known.
    fn theirs() -> Seen {
        Seen::Signature(signature("swap area", "2"))
    }

    fn unknown() -> Seen {
        Seen::Signature(Signature::unknown())
    }

    #[test]
    fn what_another_program_has_set_up_since_is_told_by_size_algorithm_and_contents() {
        type Case = (Option<Signature>, fn(&mut Record, &mut DeviceFacts), Option<&'static str>);
        let ours = || Some(signature("swap area", "1"));
        let replaced = Some("it contains: swap area with UUID 2; zramd wrote: swap area with UUID 1");
        let written = Some("it contains: swap area with UUID 2; zramd wrote nothing");
        let size = "its size is 1048577 bytes, and zramd set 1048576";
        let algorithm = "its algorithm is none, and zramd selected zstd";
        let overwritten = "it contains: data of an unknown type; zramd wrote: swap area with UUID 1";
        let filled = "it contains: data of an unknown type; zramd wrote nothing";
        let cases: [Case; 21] = [
            (ours(), |_, _| {}, None),
            (None, |_, _| {}, None),
            (ours(), |_, device| device.disk_size += 1, Some(size)),
            (ours(), |_, device| device.algorithm = None, Some(algorithm)),
            (ours(), |record, _| record.carries = None, Some("its size is 1.0 MiB, and zramd has set none")),
            (ours(), |_, device| device.seen = Seen::Unknown, None),
            (
                ours(),
                |_, device| device.seen = Seen::Nothing,
                Some("it is empty; zramd wrote: swap area with UUID 1"),
            ),
            (ours(), |_, device| device.seen = theirs(), replaced),
            (None, |_, device| device.seen = theirs(), written),
            (ours(), |_, device| device.seen = unknown(), Some(overwritten)),
            // An uninitialised device carries nothing.
            (ours(), |_, device| (device.initialised, device.disk_size) = (false, 0), None),
            // Interrupted before or during mkfs, or during the self-test.
            (ours(), |record, device| working(record, device, Seen::Nothing, 0), None),
            (ours(), |record, device| working(record, device, unknown(), 99), None),
            (None, |record, device| working(record, device, unknown(), 6), None),
            (None, |record, device| working(record, device, unknown(), 7), Some(filled)),
            (ours(), |record, device| working(record, device, theirs(), 6), replaced),
            // The contents of a scratch device change while it is measured; its size does not.
            (None, |record, device| (record.scratch, device.seen) = (true, theirs()), None),
            (ours(), |record, device| (record.scratch, device.disk_size) = (true, (1 << 20) + 1), Some(size)),
            // Other programs write to a raw device once it is set up, unless zramd has formatted it.
            (None, |record, device| raw(record, device, Progress::Done), None),
            (None, |record, device| raw(record, device, Progress::Working), written),
            (ours(), |record, device| raw(record, device, Progress::Done), replaced),
        ];
        for (wrote, change, expected) in cases {
            let (mut record, mut device) = set_up(wrote);
            change(&mut record, &mut device);
            assert_eq!(record.taken_over(&device).as_deref(), expected, "{record:?}\n{device:?}");
            assert_eq!(record.is_about(&device), expected.is_none(), "{record:?}\n{device:?}");
        }
    }

    fn working(record: &mut Record, device: &mut DeviceFacts, seen: Seen, pages: u64) {
        record.progress = Progress::Working;
        (device.seen, device.pages) = (seen, pages);
    }

    fn raw(record: &mut Record, device: &mut DeviceFacts, progress: Progress) {
        let purpose = Purpose::Raw { fs_type: None, mkfs_options: Vec::new() };
        record.request = Request::Device(device_request(0, purpose));
        record.progress = progress;
        device.seen = theirs();
    }

    #[test]
    fn a_device_with_another_sequence_number_or_none_is_not_that_of_the_record() {
        for (ours, found, is_it) in
            [(Some(7), Some(7), true), (Some(7), Some(8), false), (Some(7), None, false), (None, None, false)]
        {
            let (record, device) = set_up(None);
            let (record, device) =
                (Record { diskseq: ours, ..record }, DeviceFacts { diskseq: found, ..device });
            assert_eq!((record.is_of(found), record.is_about(&device)), (is_it, is_it), "{ours:?} {found:?}");
            // Nor has another program taken over what it is not about.
            let larger = DeviceFacts { disk_size: 2 << 20, ..device };
            assert_eq!(record.taken_over(&larger).is_some(), is_it, "{ours:?} {found:?}");
        }
    }

    #[test]
    fn a_raw_device_is_not_reset_with_what_other_programs_wrote() {
        let (mut record, mut device) = set_up(None);
        raw(&mut record, &mut device, Progress::Done);
        let why = "it contains: swap area with UUID 2; zramd wrote nothing";
        assert_eq!(record.not_ours(&device).as_deref(), Some(why));
        for free in [
            DeviceFacts { seen: Seen::Nothing, ..device.clone() },
            DeviceFacts { initialised: false, ..device.clone() },
            DeviceFacts { diskseq: Some(8), ..device },
        ] {
            assert_eq!(record.not_ours(&free), None, "{free:?}");
        }
        let (record, device) = set_up(Some(signature("swap area", "1")));
        assert_eq!(record.not_ours(&device), None);
    }

    #[test]
    fn what_is_made_again_is_recorded_as_another_one() {
        let mut record = Record::begin(Target::Ramdisk("a".to_owned()), disk("a"));
        let unmount =
            |path: &str| Undo::Unmount { mount_point: path.to_owned(), number: None, mounted: None };
        let hide = Undo::HideRamdisk {
            name: "a".to_owned(),
            place: "/place".to_owned(),
            mount_point: "/b".to_owned(),
            kept: true,
            mounted: None,
        };
        let file = Undo::DetachFile { number: 0, diskseq: None };
        let mapping = Undo::CloseCrypt { number: 0, diskseq: None };
        let undos = [unmount("/a"), hide, file, mapping];
        for undo in &undos {
            record.push(undo.clone());
        }
        assert_eq!((record.mounted("/a"), record.owns_device()), (None, false));
        let other = MountId { id: 26, ..MOUNT };
        record.set_mounted("/a", Some(MOUNT));
        record.set_mounted("/b", Some(other));
        record.set_file(Some(8));
        record.set_mapping(Some(9));
        let found = ["/a", "/b", "/c"].map(|path| record.mounted(path));
        assert_eq!(found, [Some(MOUNT), Some(other), None]);
        let made = record.clone();
        // Each is made again, and the others stay known.
        for (index, undo) in undos.iter().enumerate() {
            let mut record = made.clone();
            record.push(undo.clone());
            let mut expected = made.undo.clone();
            expected[index] = undo.clone();
            assert_eq!(record.undo, expected);
        }
        record.push(Undo::RemoveDevice { number: 0 });
        record.push(Undo::RemoveDevice { number: 0 });
        assert_eq!((record.undo.len(), record.owns_device()), (5, true));
    }
}
