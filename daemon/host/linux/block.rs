//! Block devices: lock against udev, direct I/O, discard, probing.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::ioctl::{Opcode, opcode};

use crate::{BlockProbe, Errno, HostError};
use logic::device::signature::PROBE_BYTES;
use logic::proc::MountLine;

/// `BLKDISCARD` in include/uapi/linux/fs.h.
const BLKDISCARD: Opcode = opcode::none(0x12, 119);
#[cfg(target_arch = "powerpc")]
const _: () = assert!(BLKDISCARD == 0x2000_1277, "its directions have other numbers");

/// Whether the disk below a mount is rotational, if the kernel says so.
pub fn rotates(root: &Path, mount: &MountLine) -> Option<bool> {
    let found = device_directories(root, mount.device, &mount.source).flat_map(|device| {
        // The second is that of the disk of a partition.
        ["queue/rotational", "../queue/rotational"].map(|file| fs::read_to_string(device.join(file)).ok())
    });
    found.flatten().next().map(|text| text.trim() == "1")
}

/// Whether a mount is on dm-crypt, possibly below LVM or the like; `None` if its device is unknown.
pub fn is_encrypted(root: &Path, mount: &MountLine) -> Option<bool> {
    let device = device_directories(root, mount.device, &mount.source).find(|device| device.is_dir())?;
    Some(has_crypt(&device, MOST_LAYERS))
}

/// Devices on top of each other.
const MOST_LAYERS: u32 = 8;

fn has_crypt(device: &Path, layers: u32) -> bool {
    let uuid = fs::read_to_string(device.join("dm/uuid")).unwrap_or_default();
    let below = || fs::read_dir(device.join("slaves")).into_iter().flatten().flatten();
    uuid.starts_with("CRYPT-") || layers > 0 && below().any(|slave| has_crypt(&slave.path(), layers - 1))
}

/// Directories of a block device in sysfs, by number and by name. Of a file system without a device number of its own, such as
/// btrfs, the device is that of its source.
fn device_directories(root: &Path, number: (u32, u32), source: &str) -> impl Iterator<Item = PathBuf> {
    let (major, minor) = number;
    let source = root.join(source.trim_start_matches('/'));
    // /dev/mapper has links.
    let node = fs::canonicalize(&source).unwrap_or(source);
    let by_number = (major > 0).then(|| format!("dev/block/{major}:{minor}"));
    let by_name = node.file_name().map(|name| format!("class/block/{}", name.display()));
    let sys = root.join("sys");
    [by_number, by_name].into_iter().flatten().map(move |device| sys.join(device))
}

/// Memory aligned for direct I/O: the kernel wants the logical block size, and a page always satisfies that.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Aligned {
        let page = rustix::param::page_size();
        let bytes = vec![0; length + page];
        let start = bytes.as_ptr().align_offset(page);
        Aligned { bytes, start, length }
    }

    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }

    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }
}

fn open(node: &Path, object: &str, flags: OFlags) -> Result<OwnedFd, HostError> {
    rustix::fs::open(node, flags | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| HostError::new(object, "open the device node", errno))
}

/// Opens the node read-only and takes the exclusive BSD lock that udevd honours (systemd's block device locking protocol).
/// Read-only, because closing a writable descriptor makes udev probe the device again. Only root and the group disk can open
/// the node. This does not wait; the caller retries as with any busy device.
pub fn lock(node: &Path, object: &str) -> Result<OwnedFd, HostError> {
    let fd = open(node, object, OFlags::RDONLY)?;
    rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
        // EWOULDBLOCK: another program probes or configures the device.
        let errno = if errno == rustix::io::Errno::WOULDBLOCK { Errno::BUSY } else { errno.into() };
        HostError::new(object, "lock the device node", errno)
    })?;
    Ok(fd)
}

/// Writes whole pages with direct I/O.
pub fn write(node: &Path, object: &str, offset: u64, data: &[u8]) -> Result<(), HostError> {
    let fd = open(node, object, OFlags::WRONLY | OFlags::DIRECT)?;
    let mut buffer = Aligned::new(data.len());
    buffer.as_mut().copy_from_slice(data);
    let mut done = 0;
    while done < data.len() {
        match rustix::io::pwrite(&fd, &buffer.as_ref()[done..], offset + done as u64) {
            Ok(0) => return Err(HostError::new(object, "write", Errno::IO)),
            Ok(count) => done += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(HostError::new(object, "write", errno)),
        }
    }
    Ok(())
}

/// Reads the first whole pages with direct I/O, fewer if the device is smaller.
///
/// # Errors
///
/// Also if the node is not that of the device with this number.
pub fn head(
    node: &Path,
    object: &str,
    device: Option<(u32, u32)>,
    length: usize,
) -> Result<Vec<u8>, HostError> {
    let failed = |errno| HostError::new(object, "look at the device node", errno);
    let fd = open(node, object, OFlags::RDONLY | OFlags::DIRECT)?;
    let stat = rustix::fs::fstat(&fd).map_err(failed)?;
    let found = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
    if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice || device != Some(found) {
        let text = format!("{} is not this device", node.display());
        return Err(HostError::text(object, "look at the device node", text));
    }
    let mut buffer = Aligned::new(length);
    let mut done = 0;
    while done < length {
        match rustix::io::pread(&fd, &mut buffer.as_mut()[done..], done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(HostError::new(object, "read", errno)),
        }
    }
    Ok(buffer.as_ref()[..done].to_vec())
}

/// Reads whole pages with direct I/O.
pub fn read(node: &Path, object: &str, offset: u64, length: usize) -> Result<Vec<u8>, HostError> {
    let fd = open(node, object, OFlags::RDONLY | OFlags::DIRECT)?;
    let mut buffer = Aligned::new(length);
    let mut done = 0;
    while done < length {
        match rustix::io::pread(&fd, &mut buffer.as_mut()[done..], offset + done as u64) {
            Ok(0) => return Err(HostError::new(object, "read", Errno::IO)),
            Ok(count) => done += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(HostError::new(object, "read", errno)),
        }
    }
    Ok(buffer.as_ref().to_vec())
}

/// Discards a range, which releases its memory.
#[allow(unsafe_code)]
pub fn discard(node: &Path, object: &str, offset: u64, length: u64) -> Result<(), HostError> {
    let fd = open(node, object, OFlags::WRONLY)?;
    let range = [offset, length];
    // SAFETY: BLKDISCARD reads two 64-bit numbers from the pointer, which outlives the call.
    let answer = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), BLKDISCARD as _, range.as_ptr()) };
    if answer == 0 {
        return Ok(());
    }
    Err(HostError::io(object, "discard", &std::io::Error::last_os_error()))
}

/// Reads what should be a block device, without changing anything.
pub fn probe(root: &Path, path: &Path, shown: &str) -> Result<Option<BlockProbe>, HostError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(HostError::io(shown, "look at", &error)),
    };
    if !metadata.file_type().is_block_device() {
        return Ok(Some(BlockProbe { device: None, head: Vec::new(), holders: Vec::new() }));
    }
    let device = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_CLOEXEC | libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| HostError::io(shown, "open", &error))?;
    let mut head = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, PROBE_BYTES as u64), &mut head)
        .map_err(|error| HostError::io(shown, "read", &error))?;
    Ok(Some(BlockProbe { device: Some(device), head, holders: block_holders(root, device) }))
}

/// What is on top of a block device: its partitions and the devices in its `holders` directory.
fn block_holders(root: &Path, (major, minor): (u32, u32)) -> Vec<String> {
    let directory = root.join(format!("sys/dev/block/{major}:{minor}"));
    let names = |path: &Path| -> Vec<String> {
        let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    };
    let mut holders = names(&directory.join("holders"));
    let mut partitions = names(&directory);
    partitions.retain(|name| directory.join(name).join("partition").exists());
    holders.append(&mut partitions);
    holders.sort();
    holders
}
