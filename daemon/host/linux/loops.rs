//! Loop devices on unlinked files (Documentation/admin-guide/blockdev; include/uapi/linux/loop.h).

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FallocateFlags, FileType, IFlags, Mode, OFlags};

use crate::{Errno, HostError};

const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
/// `LO_FLAGS_DIRECT_IO`: without it, written-back pages would be in the page cache again, and zram would free their memory before they are
/// on the disk.
const DIRECT_IO: u32 = 16;
/// Block size of zram's reads and writes.
const BLOCK: u32 = 4096;
/// Attempts to get a free loop device; another program may take it first.
const ATTEMPTS: u32 = 16;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

impl Info {
    const EMPTY: Info = Info {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: 0,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
}

/// `struct loop_config`.
#[repr(C)]
struct Config {
    fd: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

/// Creates the file, unlinks it, and attaches it under the name `tag`.
pub fn attach(root: &Path, tag: &str, path: &str, bytes: u64) -> Result<(), HostError> {
    let file = make(root, path, bytes)?;
    let control = open(&root.join("dev/loop-control"), "/dev/loop-control", OFlags::RDWR)?;
    let mut config = Config {
        fd: u32::try_from(file.as_raw_fd()).unwrap_or(u32::MAX),
        block_size: BLOCK,
        info: Info { flags: DIRECT_IO, ..Info::EMPTY },
        reserved: [0; 8],
    };
    config.info.file_name[..tag.len()].copy_from_slice(tag.as_bytes());
    for _ in 0..ATTEMPTS {
        let free = get_free(&control)?;
        let name = format!("/dev/loop{free}");
        let device = open(&root.join(name.trim_start_matches('/')), &name, OFlags::RDWR)?;
        match configure(&device, &config, &name) {
            Err(error) if error.is(Errno::BUSY) => {}
            other => return other,
        }
    }
    Err(HostError::new(path, "find a free loop device", Errno::BUSY))
}

/// Creates an unlinked file with mode 0600. It is freed when the last descriptor is closed.
fn make(root: &Path, path: &str, bytes: u64) -> Result<OwnedFd, HostError> {
    let full = root.join(path.trim_start_matches('/'));
    let failed =
        |operation: &'static str| move |errno: rustix::io::Errno| HostError::new(path, operation, errno);
    if full.symlink_metadata().is_ok() {
        return Err(failed("create")(rustix::io::Errno::EXIST));
    }
    let (flags, mode) = (OFlags::RDWR | OFlags::CLOEXEC | OFlags::LARGEFILE, Mode::RUSR | Mode::WUSR);
    let directory = full.parent().unwrap_or(root);
    let file = match rustix::fs::open(directory, flags | OFlags::TMPFILE | OFlags::EXCL, mode) {
        // The file system does not support O_TMPFILE (open(2)).
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {
            let named = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let file = rustix::fs::open(&full, named, mode).map_err(failed("create"))?;
            fs::remove_file(&full).map_err(|error| HostError::io(path, "unlink", &error))?;
            file
        }
        other => other.map_err(failed("create"))?,
    };
    allocate(&file, bytes).map_err(failed("allocate its space"))?;
    Ok(file)
}

/// Allocates the space of a file that is empty yet.
pub(super) fn allocate(file: &OwnedFd, bytes: u64) -> rustix::io::Result<()> {
    // For copy-on-write file systems such as btrfs: write in place, without checksums or compression.
    if let Ok(flags) = rustix::fs::ioctl_getflags(file) {
        rustix::fs::ioctl_setflags(file, flags | IFlags::NOCOW).ok();
    }
    rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes)
}

fn open(path: &Path, shown: &str, flags: OFlags) -> Result<OwnedFd, HostError> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| HostError::new(shown, "open", errno))
}

#[allow(unsafe_code)]
fn get_free(control: &OwnedFd) -> Result<u32, HostError> {
    // SAFETY: the call takes no argument.
    let number = unsafe { libc::ioctl(control.as_fd().as_raw_fd(), LOOP_CTL_GET_FREE as _) };
    u32::try_from(number).map_err(|_| {
        HostError::io("/dev/loop-control", "find a free loop device", &std::io::Error::last_os_error())
    })
}

#[allow(unsafe_code)]
fn configure(device: &OwnedFd, config: &Config, name: &str) -> Result<(), HostError> {
    // SAFETY: the kernel reads one `struct loop_config`, whose layout `Config` has, and takes its own reference to the file.
    let answer =
        unsafe { libc::ioctl(device.as_fd().as_raw_fd(), LOOP_CONFIGURE as _, std::ptr::from_ref(config)) };
    if answer == 0 {
        return Ok(());
    }
    Err(HostError::io(name, "attach a file", &std::io::Error::last_os_error()))
}

#[allow(unsafe_code)]
fn status(device: &OwnedFd) -> Option<Info> {
    let mut info = Info::EMPTY;
    // SAFETY: the kernel writes one `struct loop_info64`, whose layout `Info` has.
    let answer = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) };
    (answer == 0).then_some(info)
}

/// The loop device that was attached under the name `tag`.
pub fn find(root: &Path, tag: &str) -> Result<Option<String>, HostError> {
    Ok(find_open(root, tag)?.map(|(name, _)| name))
}

fn find_open(root: &Path, tag: &str) -> Result<Option<(String, OwnedFd)>, HostError> {
    let directory = root.join("sys/block");
    let entries = fs::read_dir(&directory).map_err(|error| HostError::io("/sys/block", "list", &error))?;
    for entry in entries.filter_map(Result::ok) {
        let Ok(name) = entry.file_name().into_string() else { continue };
        // Only a loop device with a file on it has this directory.
        if !name.starts_with("loop") || !entry.path().join("loop").is_dir() {
            continue;
        }
        // It may have been detached meanwhile.
        let Ok(device) = open(&root.join("dev").join(&name), &name, OFlags::RDONLY) else { continue };
        let is_ours = |info: Info| {
            let end = info.file_name.iter().position(|byte| *byte == 0).unwrap_or(info.file_name.len());
            info.file_name[..end] == *tag.as_bytes()
        };
        if is_block(&device) && status(&device).is_some_and(is_ours) {
            return Ok(Some((format!("/dev/{name}"), device)));
        }
    }
    Ok(None)
}

fn is_block(device: &OwnedFd) -> bool {
    rustix::fs::fstat(device).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice)
}

/// Detaches the file, which frees it. The kernel does so when the last user has closed the device.
#[allow(unsafe_code)]
pub fn detach(root: &Path, tag: &str) -> Result<(), HostError> {
    let Some((name, device)) = find_open(root, tag)? else { return Ok(()) };
    // SAFETY: the call takes no argument.
    if unsafe { libc::ioctl(device.as_fd().as_raw_fd(), LOOP_CLR_FD as _, 0) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    // Another program has detached it already.
    if error.raw_os_error() == Some(libc::ENXIO) {
        Ok(())
    } else {
        Err(HostError::io(name, "detach", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_are_as_large_as_the_kernels() {
        assert_eq!((size_of::<Info>(), size_of::<Config>()), (232, 304));
    }
}
