//! Files and block devices for measurements. No path leads to the files and mounts made here, so the kernel removes them
//! with their descriptors, also after a crash.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Advice, Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use super::files::{fill, read_mountinfo};
use crate::HostError;
use logic::proc::parse_mountinfo;

/// An open file or block device.
#[derive(Debug)]
pub struct BenchFile {
    file: File,
    shown: String,
}

/// A directory for files without a name.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    shown: String,
}

impl Directory {
    /// Opens an existing directory.
    pub fn open(path: &Path) -> Result<Directory, HostError> {
        let shown = path.display().to_string();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(fd) => Ok(Directory { fd, shown }),
            Err(errno) => Err(HostError::new(shown, "open the directory", errno)),
        }
    }

    /// The root directory of a file system that is mounted nowhere (fsopen(2), fsmount(2)).
    pub fn mounted_nowhere(fs_type: &str, options: &[(&str, &str)]) -> Result<Directory, HostError> {
        let fail = |what: &str| {
            let what = what.to_owned();
            move |errno: rustix::io::Errno| HostError::new(fs_type, what, errno)
        };
        let context = rustix::mount::fsopen(fs_type, FsOpenFlags::FSOPEN_CLOEXEC)
            .map_err(fail("open the file system type"))?;
        for (key, value) in options {
            rustix::mount::fsconfig_set_string(&context, *key, *value).map_err(fail(key))?;
        }
        rustix::mount::fsconfig_create(&context).map_err(fail("open the file system"))?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let mounted = rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
            .map_err(fail("mount"))?;
        // A mount descriptor is an O_PATH descriptor; O_TMPFILE needs an ordinary one.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&mounted, ".", flags, Mode::empty())
            .map_err(fail("open the root directory"))?;
        Ok(Directory { fd, shown: fs_type.to_owned() })
    }

    /// A new file without a name, reached through the page cache.
    pub fn file(&self) -> Result<BenchFile, HostError> {
        let (read_write, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
        let made = match rustix::fs::openat(&self.fd, ".", read_write | OFlags::TMPFILE, mode) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::INVAL) => {
                // No O_TMPFILE (FAT, NFS): create and unlink.
                let name = format!(".zramd-{}", std::process::id());
                let made =
                    rustix::fs::openat(&self.fd, &name, read_write | OFlags::CREATE | OFlags::EXCL, mode);
                made.and_then(|fd| {
                    rustix::fs::unlinkat(&self.fd, &name, rustix::fs::AtFlags::empty()).map(|()| fd)
                })
            }
            made => made,
        };
        match made {
            Ok(fd) => Ok(BenchFile { file: File::from(fd), shown: self.shown.clone() }),
            Err(errno) => Err(HostError::new(&self.shown, "make a file", errno)),
        }
    }

    /// Bytes available to users without privileges.
    pub fn free_bytes(&self) -> Result<u64, HostError> {
        let space =
            rustix::fs::fstatvfs(&self.fd).map_err(|errno| HostError::new(&self.shown, "statvfs", errno))?;
        Ok(space.f_bavail * space.f_frsize)
    }

    /// Whether nothing can be written there.
    pub fn is_read_only(&self) -> Result<bool, HostError> {
        let found =
            rustix::fs::fstatvfs(&self.fd).map_err(|errno| HostError::new(&self.shown, "statvfs", errno))?;
        Ok(found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
    }

    /// Type of its file system.
    pub fn fs_type(&self) -> Result<String, HostError> {
        let status =
            rustix::fs::fstat(&self.fd).map_err(|errno| HostError::new(&self.shown, "look at", errno))?;
        let device = (rustix::fs::major(status.st_dev), rustix::fs::minor(status.st_dev));
        let path = "/proc/self/mountinfo";
        let read = read_mountinfo(Path::new("/")).map_err(|error| HostError::io(path, "read", &error));
        let mounts = parse_mountinfo(&read?);
        // btrfs gives each subvolume a device number that no mount has.
        let found = mounts.into_iter().find(|mount| mount.device == device).map(|mount| mount.fs_type);
        Ok(found.unwrap_or_else(|| "unknown".to_owned()))
    }
}

impl BenchFile {
    /// Opens a block device with direct I/O.
    pub fn device(path: &Path) -> Result<BenchFile, HostError> {
        let shown = path.display().to_string();
        match rustix::fs::open(path, OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => Ok(BenchFile { file: File::from(fd), shown }),
            Err(errno) => Err(HostError::new(shown, "open the device node", errno)),
        }
    }

    /// Opens the same file with direct I/O; `None` if its file system does not support it.
    pub fn direct(&self) -> Result<Option<BenchFile>, HostError> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        match rustix::fs::open(path, OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => Ok(Some(BenchFile { file: File::from(fd), shown: self.shown.clone() })),
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(HostError::new(&self.shown, "open with O_DIRECT", errno)),
        }
    }

    /// Reads all of `buffer`.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), HostError> {
        self.file.read_exact_at(buffer, offset).map_err(|error| HostError::io(&self.shown, "read", &error))
    }

    /// Writes all of `data`.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), HostError> {
        self.file.write_all_at(data, offset).map_err(|error| HostError::io(&self.shown, "write", &error))
    }

    /// Waits until what was written is on the device.
    pub fn sync(&self) -> Result<(), HostError> {
        self.file.sync_data().map_err(|error| HostError::io(&self.shown, "sync", &error))
    }

    /// Drops its clean pages from the page cache.
    pub fn drop_cache(&self) -> Result<(), HostError> {
        rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed)
            .map_err(|errno| HostError::new(&self.shown, "drop the page cache", errno))
    }
}

/// Reads the beginning of a file, and returns the number of bytes.
pub fn read_file(path: &Path, data: &mut [u8]) -> Result<usize, HostError> {
    let read = File::open(path).and_then(|file| fill(file, data));
    read.map_err(|error| HostError::io(path.display().to_string(), "read", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_a_name_hold_what_is_written() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path()).unwrap();
        let file = directory.file().unwrap();
        file.write(4096, b"data").unwrap();
        file.sync().unwrap();
        file.drop_cache().unwrap();
        let mut found = [0; 4];
        file.read(4096, &mut found).unwrap();
        assert_eq!(&found, b"data");
        assert!(file.read(8192, &mut found).is_err(), "there is no more");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
        assert!(Directory::open(&place.path().join("none")).is_err());
    }

    #[test]
    fn free_bytes_are_those_that_stat_shows() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path()).unwrap();
        let stat = || {
            let mut command = std::process::Command::new("stat");
            let output = command.args(["-f", "-c", "%a %S"]).arg(place.path()).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            text.split_whitespace().map(|word| word.parse::<u64>().unwrap()).product::<u64>()
        };
        // Others may write at the same time.
        let is_same = |_| {
            let (before, found, after) = (stat(), directory.free_bytes().unwrap(), stat());
            before.min(after) <= found && found <= before.max(after)
        };
        assert!((0..1000).any(is_same));
    }
}
