//! Facts for saving and loading: file systems, space, boot id, clocks.

use std::fs;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use super::{Calls, Result};
use crate::linux::clock;
use crate::linux::files::read_mountinfo;
use crate::linux::mount::is_mounted;
use crate::{Errno, Space};
use logic::ledger::Clocks;
use logic::proc::mount_source;
use logic::ramdisk::entry::Time;
use logic::ramdisk::limits;

/// The file system on which a directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystem {
    /// `f_type` of statfs(2).
    pub magic: u64,
    /// The name of its block device in sysfs, where it has one.
    pub device: Option<String>,
    /// Its size and usage.
    pub space: Space,
    /// Bytes available to programs without privileges.
    pub available_bytes: u64,
    pub total_inodes: u64,
}

impl FileSystem {
    /// Bytes free; unlimited for a tmpfs without a limit, which reports a size of 0.
    pub fn free_bytes(&self) -> u64 {
        self.size_bytes().saturating_sub(self.space.used_bytes)
    }

    /// Its size in bytes; unlimited for a tmpfs without a limit, which reports a size of 0.
    pub fn size_bytes(&self) -> u64 {
        if self.space.total_bytes == 0 { u64::MAX } else { self.space.total_bytes }
    }
}

/// `BTRFS_SUPER_MAGIC`.
pub const BTRFS: u64 = 0x9123_683e;
/// `TMPFS_MAGIC`.
pub const TMPFS: u64 = 0x0102_1994;
/// `RAMFS_MAGIC`.
pub const RAMFS: u64 = 0x8584_58f6;
/// `OVERLAYFS_SUPER_MAGIC`.
pub const OVERLAY: u64 = 0x794c_7630;

fn errno(error: &std::io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(libc::EIO))
}

impl Calls {
    /// The file system of an open directory. If its device number is not that of the block device (btrfs), the mount table
    /// is used.
    pub fn file_system(&self, directory: BorrowedFd<'_>) -> Result<FileSystem> {
        self.enter("fstatfs", String::new)?;
        let found = rustix::fs::fstatfs(directory)?;
        let room = rustix::fs::fstatvfs(directory)?;
        let meta = self.look(directory, b"")?;
        let by_number = fs::read_link(format!("/sys/dev/block/{}:{}", meta.device.0, meta.device.1));
        let by_number =
            by_number.ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let unit = room.f_frsize;
        #[allow(clippy::cast_sign_loss, clippy::cast_lossless, clippy::useless_conversion)]
        // The type differs between machines.
        let magic = found.f_type as u64 & 0xffff_ffff;
        Ok(FileSystem {
            magic,
            device: by_number.or_else(|| source_of(meta.mount)),
            space: Space {
                used_bytes: room.f_blocks.saturating_sub(room.f_bfree).saturating_mul(unit),
                total_bytes: room.f_blocks.saturating_mul(unit),
                // btrfs allocates inodes dynamically and reports 0 of 0.
                free_inodes: if room.f_files == 0 { u64::MAX } else { room.f_ffree },
                total_inodes: room.f_files,
            },
            available_bytes: self
                .shown_room(meta.inode)
                .unwrap_or_else(|| room.f_bavail.saturating_mul(unit)),
            total_inodes: if room.f_files == 0 { u64::MAX } else { room.f_files },
        })
    }

    /// The id of this boot.
    pub fn boot_id(&self) -> Result<String> {
        self.enter("read", || "boot_id".to_owned())?;
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        text.map(|text| text.trim().to_owned()).map_err(|error| errno(&error))
    }

    /// The text of a small file in a directory; `None` if it does not exist.
    pub fn read_text(&self, directory: BorrowedFd<'_>, name: &str) -> Result<Option<String>> {
        let file = match self.open_file(directory, name.as_bytes()) {
            Err(Errno::NOENT) => return Ok(None),
            opened => opened?,
        };
        let mut text = Vec::new();
        let mut buffer = [0; 16 * 1024];
        loop {
            use std::os::fd::AsFd;
            let length = self.read(file.as_fd(), &mut buffer)?;
            text.extend_from_slice(&buffer[..length]);
            // Longer files are not ours; truncated, they do not parse.
            if length == 0 || text.len() > limits::SMALL_FILE {
                return Ok(Some(String::from_utf8_lossy(&text).into_owned()));
            }
        }
    }

    /// The time of day, in microseconds since 1970.
    pub fn now_usec(&self) -> u64 {
        clock::unix_usec()
    }

    /// The clocks of a ledger. Without an ID of this boot, no time between boots is certain.
    pub fn clocks(&self) -> Clocks {
        let boot_id = self.boot_id().unwrap_or_default();
        Clocks { boot_id, boot: clock::since_boot(), synchronised: clock::synchronised() }
    }

    /// The current time of file time stamps, and their resolution.
    pub fn file_clock(&self) -> (Time, Time) {
        let clock = rustix::time::ClockId::RealtimeCoarse;
        let step = rustix::time::clock_getres(clock);
        (from_timespec(rustix::time::clock_gettime(clock)), from_timespec(step))
    }

    /// Whether an open directory is a mount point.
    pub fn is_mount_point(&self, directory: BorrowedFd<'_>) -> Result<bool> {
        self.enter("statx", || "mount".to_owned())?;
        Ok(is_mounted(directory, Path::new(""))?)
    }

    /// Waits until the clock of file time stamps is more than one step ahead, so that later changes get a different time
    /// than earlier ones, also with the fine-grained time stamps of Linux 6.13. Gives up after 50 steps: on a busy machine
    /// the clock is late.
    pub fn wait_for_tick(&self) {
        let now = from_timespec(rustix::time::clock_gettime(rustix::time::ClockId::Realtime));
        let (_, step) = self.file_clock();
        let pause = Duration::new(u64::try_from(step.seconds).unwrap_or(0), step.nanoseconds);
        for _ in 0..50 {
            std::thread::sleep(pause);
            if self.file_clock().0 > now.saturating_add(step) {
                return;
            }
        }
    }

    /// Starts writing this range of the file to disk, without waiting.
    pub fn start_writing(&self, file: BorrowedFd<'_>, offset: u64, length: u64) {
        sync_range(file, offset, length, libc::SYNC_FILE_RANGE_WRITE);
    }

    /// Waits until this range of the file is on disk, and drops it from the page cache.
    pub fn let_go(&self, file: BorrowedFd<'_>, offset: u64, length: u64) {
        sync_range(file, offset, length, WRITE_AND_WAIT);
        rustix::fs::fadvise(file, offset, NonZeroU64::new(length), rustix::fs::Advice::DontNeed).ok();
    }

    /// Advises the kernel that the file will be read sequentially and completely.
    pub fn will_read(&self, file: BorrowedFd<'_>) {
        // Also advice; errors are ignored.
        rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Sequential).ok();
        rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::WillNeed).ok();
    }
}

const WRITE_AND_WAIT: libc::c_uint =
    libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;

#[allow(unsafe_code)]
fn sync_range(file: BorrowedFd<'_>, offset: u64, length: u64, flags: libc::c_uint) {
    let (Ok(offset), Ok(length)) = (offset.try_into(), length.try_into()) else { return };
    // SAFETY: the call takes numbers only. Errors are ignored: fsync repeats the write and reports them.
    unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, flags) };
}

fn from_timespec(time: rustix::fs::Timespec) -> Time {
    Time { seconds: time.tv_sec, nanoseconds: u32::try_from(time.tv_nsec).unwrap_or(0) }
}

/// The source of the mount with this id, from `/proc/self/mountinfo`.
fn source_of(mount: u64) -> Option<String> {
    let source = mount_source(&read_mountinfo(Path::new("/")).ok()?, mount)?;
    // The user of a FUSE mount chooses its source.
    let path = fs::canonicalize(Some(source).filter(|source| source.starts_with("/dev/"))?).ok()?;
    path.starts_with("/dev").then(|| path.file_name().map(|name| name.to_string_lossy().into_owned()))?
}
