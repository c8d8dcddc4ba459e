//! Backing stores for write-back: whether they are suitable, and the steps to set them up.

use super::ownership::Ownership;
use super::{Step, Through};
use crate::facts::{Facts, FileFacts};
use crate::human::human;
use crate::path_kind::PathKind;
use crate::record::{Progress, Undo};
use crate::request::{DeviceRequest, Store};

/// Default size of the file, as in ChromeOS and Android.
const USUAL_BYTES: u64 = 1 << 30;
/// Minimum size of a file without a configured size: a smaller one is not worth the wear.
const LEAST_BYTES: u64 = 128 << 20;
/// Maximum share of the free space for such a file, in percent.
const SHARE_PERCENT: u64 = 15;
/// Space that always remains free: a tenth of the file system, but at most this.
const FLOOR_BYTES: u64 = 1536 << 20;
/// File systems that keep (or may keep) files in memory, or that need memory to write while it is short.
const UNFIT: [&str; 14] = [
    "tmpfs",
    "ramfs",
    "devtmpfs",
    "hugetlbfs",
    "overlay",
    "squashfs",
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "9p",
    "ceph",
    "virtiofs",
    "fuse",
];

/// Size of the file in bytes, or why there is none; `free` of `total` bytes are free on its file system.
pub fn file_size(asked: Option<u64>, free: u64, total: u64) -> Result<u64, String> {
    let spare = free.saturating_sub((total / 10).min(FLOOR_BYTES));
    match asked {
        Some(bytes) if bytes > spare => Err(format!(
            "{} are asked for, but only {} of the {} that are free may be taken",
            human(bytes),
            human(spare),
            human(free)
        )),
        Some(bytes) if bytes < 1 << 20 => Err(format!("{} is less than 1 MiB", human(bytes))),
        Some(bytes) => Ok(bytes / 4096 * 4096),
        None => {
            let bytes = (free / 100 * SHARE_PERCENT).min(spare).min(USUAL_BYTES) / 4096 * 4096;
            if bytes >= LEAST_BYTES {
                return Ok(bytes);
            }
            Err(format!(
                "{SHARE_PERCENT} % of the {} that are free are less than {} (writeback-size asks for a certain size)",
                human(free),
                human(LEAST_BYTES)
            ))
        }
    }
}

/// Why the file cannot be there, if so.
fn unfit(path: &str, file: &FileFacts) -> Option<String> {
    for kind in [file.directory, file.kind] {
        if let PathKind::Unreadable(why) = kind {
            return Some(format!("{path} cannot be looked at: {why}"));
        }
    }
    if !matches!(file.directory, PathKind::Directory | PathKind::Empty) {
        return Some(format!("the directory of {path} does not exist"));
    }
    if file.kind != PathKind::Missing {
        return Some(format!("{path} exists already, and zramd makes the file itself"));
    }
    no_disk(file).map(|what| format!("{path} would be on {what}, not on a disk of this machine"))
}

/// What the file would be on if that is not a disk of this machine.
pub fn no_disk(file: &FileFacts) -> Option<&str> {
    let fs_type = file.fs_type.as_str();
    if file.on_zram {
        return Some("zram");
    }
    UNFIT.contains(&fs_type.split('.').next().unwrap_or_default()).then_some(fs_type)
}

/// The steps that set up the store, or why there is no write-back.
pub(super) fn steps(request: &DeviceRequest, facts: &Facts) -> Result<Vec<Step>, String> {
    let Some(writeback) = &request.writeback else { return Ok(Vec::new()) };
    let number = request.number;
    let mut steps = Vec::new();
    let store = match &writeback.store {
        Store::Device(path) => Some(path.clone()),
        Store::File { path, size } => {
            // Not examined, as when units are generated: that is done at set-up.
            let Some(file) = facts.files.get(path) else { return Ok(Vec::new()) };
            if let Some(why) = unfit(path, file) {
                return Err(why);
            }
            let bytes = file_size(*size, file.free_bytes, file.total_bytes)?;
            steps.push(Step::AttachFile { number, path: path.clone(), bytes });
            None
        }
    };
    if writeback.encrypted {
        steps.push(Step::OpenCrypt { number, store });
    }
    Ok(steps)
}

/// The path of the store, and what is between it and the device.
pub(super) fn through(request: &DeviceRequest) -> Option<(String, Through)> {
    let writeback = request.writeback.as_ref()?;
    let through = match (&writeback.store, writeback.encrypted) {
        (_, true) => Through::Crypt,
        (Store::File { .. }, false) => Through::Loop,
        (Store::Device(_), false) => Through::Itself,
    };
    Some((writeback.store.path().to_owned(), through))
}

/// Why a device to be created has no write-back, if so.
pub(super) fn left_out(request: &DeviceRequest, owner: &Ownership<'_>, facts: &Facts) -> Option<String> {
    let in_place = matches!(owner, Ownership::Ours(record) if record.progress == Progress::Done
        && record.undo.iter().any(|undo| matches!(undo, Undo::DetachFile { .. })));
    steps(request, facts).err().filter(|_| !in_place)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const MIB: u64 = 1 << 20;

    #[test]
    fn the_size_leaves_room_for_others() {
        for (asked, free, total, expected) in [
            (None, 100 * GIB, 200 * GIB, Some(GIB)),
            (None, 4 * GIB, 200 * GIB, Some(4 * GIB / 100 * 15 / 4096 * 4096)),
            (None, 800 * MIB, 2 * GIB, None),
            (None, 2 * GIB, 100 * GIB, Some(2 * GIB / 100 * 15 / 4096 * 4096)),
            (None, 1600 * MIB, 100 * GIB, None),
            (Some(8 * GIB), 100 * GIB, 200 * GIB, Some(8 * GIB)),
            (Some(8 * GIB), 9 * GIB, 200 * GIB, None),
            (Some(16 * MIB + 5), 300 * MIB, GIB, Some(16 * MIB)),
            (Some(16 * MIB), 110 * MIB, GIB, None),
            (Some(4096), 100 * GIB, 200 * GIB, None),
            (Some(MIB - 1), 100 * GIB, 200 * GIB, None),
            (Some(MIB), 100 * GIB, 200 * GIB, Some(MIB)),
            // A tenth of 10 GiB stays free.
            (Some(GIB), 2 * GIB, 10 * GIB, Some(GIB)),
            (Some(GIB + 1), 2 * GIB, 10 * GIB, None),
            (None, 0, 0, None),
            (Some(u64::MAX), u64::MAX, u64::MAX, None),
        ] {
            assert_eq!(file_size(asked, free, total).ok(), expected, "{asked:?} of {free}");
        }
    }

    #[test]
    fn a_file_in_memory_is_no_store() {
        let file = |fs_type: &str| FileFacts {
            directory: PathKind::Directory,
            kind: PathKind::Missing,
            fs_type: fs_type.to_owned(),
            on_zram: false,
            free_bytes: GIB,
            total_bytes: GIB,
        };
        for fs_type in ["tmpfs", "overlay", "nfs4", "fuse.sshfs"] {
            assert!(unfit("/x", &file(fs_type)).is_some_and(|why| why.contains(fs_type)), "{fs_type}");
        }
        assert_eq!(unfit("/x", &file("ext4")), None);
        assert!(unfit("/x", &FileFacts { on_zram: true, ..file("ext4") }).is_some());
        assert!(unfit("/x", &FileFacts { kind: PathKind::Other, ..file("ext4") }).is_some());
        assert!(unfit("/x", &FileFacts { directory: PathKind::Missing, ..file("ext4") }).is_some());
    }
}
