//! System calls for saving and loading directory trees, as methods of [`Calls`].
//!
//! A [`Script`](crate::script::Script) can make any of them fail: tests iterate over all of them.

mod btrfs;
mod layers;
mod list;
mod script;
mod system;
mod trusted;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, ResolveFlags, SeekFrom, StatxAttributes, StatxFlags, Timespec, Timestamps,
    Uid, XattrFlags,
};
use rustix::io::retry_on_intr;

use crate::linux::lock;
use crate::linux::patience::wait_for;
use crate::{Errno, HostError};
pub use btrfs::SUBVOLUME_ROOT;
pub use list::Name;
use logic::ramdisk::entry::{Attribute, Kind, Meta, Time};
use logic::ramdisk::limits;
pub use script::{Calls, Room};
pub use system::{BTRFS, FileSystem, OVERLAY, RAMFS, TMPFS};
pub use trusted::Untrusted;

type Result<T> = std::result::Result<T, Errno>;

/// Extended attribute of the root of a RAM disk, by which a loaded one is recognised.
const MARK: &[u8] = b"trusted.zramd.ramdisk";
/// The end of the mark of a directory that is loaded completely.
const LOADED: &str = " loaded";

/// Attributes for access control, or that only root can set: they are read by name if there are too many to list.
const KNOWN: [&[u8]; 8] = [
    b"security.SMACK64",
    b"security.apparmor",
    b"security.capability",
    b"security.evm",
    b"security.ima",
    b"security.selinux",
    b"system.posix_acl_access",
    b"system.posix_acl_default",
];

/// Maximum length of one path for openat2(2), a little below `PATH_MAX`.
const STEP: usize = 4000;

fn time(stamp: rustix::fs::StatxTimestamp) -> Time {
    Time { seconds: stamp.tv_sec, nanoseconds: stamp.tv_nsec }
}

fn kind(mode: u16) -> Kind {
    match u32::from(mode) & libc::S_IFMT {
        libc::S_IFREG => Kind::File,
        libc::S_IFDIR => Kind::Directory,
        libc::S_IFLNK => Kind::Symlink,
        libc::S_IFIFO => Kind::Fifo,
        libc::S_IFCHR => Kind::Character,
        libc::S_IFBLK => Kind::Block,
        libc::S_IFSOCK => Kind::Socket,
        _ => Kind::Unknown,
    }
}

/// A path for a name in an open directory, for calls that take no descriptor. The only link in it is that of procfs to the
/// descriptor.
fn proc_path(directory: BorrowedFd<'_>, name: &[u8]) -> Vec<u8> {
    let mut path = format!("/proc/self/fd/{}", directory.as_raw_fd()).into_bytes();
    if !name.is_empty() {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    path
}

/// A file of which attributes are read or set.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// An open file or directory.
    Open(BorrowedFd<'a>),
    /// A name in a directory. Symbolic links are not followed.
    Named(BorrowedFd<'a>, &'a [u8]),
}

/// Opens without updating the access time, if permitted: a new one would be written to the disk later.
fn open_without_atime(directory: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd> {
    match rustix::fs::openat(directory, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(rustix::io::Errno::PERM) => Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?),
        opened => Ok(opened?),
    }
}

/// The names of all attributes, each with a terminating zero.
fn list_attributes(subject: Subject<'_>) -> Result<Vec<u8>> {
    let list = |buffer: &mut [u8]| match subject {
        Subject::Open(file) => rustix::fs::flistxattr(file, buffer),
        Subject::Named(directory, name) => rustix::fs::llistxattr(proc_path(directory, name), buffer),
    };
    let mut small = [0; 1024];
    match list(&mut small) {
        Err(rustix::io::Errno::OPNOTSUPP) => Ok(Vec::new()),
        Ok(length) => Ok(small[..length].to_vec()),
        Err(rustix::io::Errno::RANGE) => {
            // The largest list of the kernel (XATTR_LIST_MAX).
            let mut large = vec![0; 64 << 10];
            let length = list(&mut large)?;
            large.truncate(length);
            Ok(large)
        }
        Err(error) => Err(error.into()),
    }
}

impl Calls {
    /// Opens a directory by its path.
    pub fn open_directory(&self, path: &Path) -> Result<OwnedFd> {
        self.enter("open", || path.display().to_string())?;
        wait_for(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(path, flags, Mode::empty())?)
    }

    /// Opens a directory below another one. No component may be a symbolic link or another mount.
    pub fn open_below(&self, root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mut at: Option<OwnedFd> = None;
        let mut rest = path;
        loop {
            let (step, after) = if rest.len() <= STEP {
                (rest, &b""[..])
            } else {
                let end =
                    rest[..STEP].iter().rposition(|byte| *byte == b'/').ok_or(Errno(libc::ENAMETOOLONG))?;
                (&rest[..end], &rest[end + 1..])
            };
            let step = if step.is_empty() { b"." } else { step };
            self.enter("openat2", || step.escape_ascii().to_string())?;
            let from = at.as_ref().map_or(root, AsFd::as_fd);
            let resolve = ResolveFlags::BENEATH
                | ResolveFlags::NO_SYMLINKS
                | ResolveFlags::NO_MAGICLINKS
                | ResolveFlags::NO_XDEV;
            let opened = rustix::fs::openat2(from, step, flags, Mode::empty(), resolve)?;
            if after.is_empty() {
                return Ok(opened);
            }
            (at, rest) = (Some(opened), after);
        }
    }

    /// Opens a file for reading, without following links, and without updating its access time if permitted.
    pub fn open_file(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd> {
        self.enter("openat", || name.escape_ascii().to_string())?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        open_without_atime(directory, name, flags)
    }

    /// Creates a file, which must not exist, and opens it for reading and writing.
    pub fn create(&self, directory: BorrowedFd<'_>, name: &[u8], mode: u32) -> Result<OwnedFd> {
        self.enter("create", || name.escape_ascii().to_string())?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(mode))?)
    }

    /// Makes a hard link.
    pub fn link(&self, from: BorrowedFd<'_>, old: &[u8], to: BorrowedFd<'_>, new: &[u8]) -> Result<()> {
        self.enter("linkat", || new.escape_ascii().to_string())?;
        Ok(rustix::fs::linkat(from, old, to, new, AtFlags::empty())?)
    }

    /// Renames within a directory; an existing `new` is replaced, unless `keep`.
    pub fn rename(&self, directory: BorrowedFd<'_>, old: &str, new: &str, keep: bool) -> Result<()> {
        self.enter("renameat", || format!("{old} -> {new}"))?;
        if keep {
            let flags = rustix::fs::RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(directory, old, directory, new, flags) {
                // Not every file system supports the flag.
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                    if rustix::fs::statat(directory, new, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                        return Err(Errno::EXIST);
                    }
                    rustix::fs::renameat(directory, old, directory, new)?;
                }
                renamed => renamed?,
            }
        } else {
            rustix::fs::renameat(directory, old, directory, new)?;
        }
        self.leave()
    }

    /// Removes a name; `is_directory` selects rmdir.
    pub fn remove(&self, directory: BorrowedFd<'_>, name: &[u8], is_directory: bool) -> Result<()> {
        self.enter("unlinkat", || name.escape_ascii().to_string())?;
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        rustix::fs::unlinkat(directory, name, flags)?;
        self.leave()
    }

    pub fn make_directory(&self, directory: BorrowedFd<'_>, name: &[u8], mode: u32) -> Result<()> {
        self.enter("mkdirat", || name.escape_ascii().to_string())?;
        Ok(rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(mode))?)
    }

    /// Creates a directory and its parents.
    pub fn make_directories(&self, path: &Path, mode: u32) -> Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        self.enter("mkdir", || path.display().to_string())?;
        let made = std::fs::DirBuilder::new().recursive(true).mode(mode).create(path);
        made.map_err(|error| Errno(error.raw_os_error().unwrap_or(libc::EIO)))
    }

    /// Makes a symbolic link.
    pub fn make_symlink(&self, directory: BorrowedFd<'_>, name: &[u8], target: &[u8]) -> Result<()> {
        self.enter("symlinkat", || name.escape_ascii().to_string())?;
        Ok(rustix::fs::symlinkat(target, directory, name)?)
    }

    /// Makes a named pipe or a device node.
    pub fn make_node(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        kind: Kind,
        device: (u32, u32),
    ) -> Result<()> {
        self.enter("mknodat", || name.escape_ascii().to_string())?;
        let kind = match kind {
            Kind::Fifo => rustix::fs::FileType::Fifo,
            Kind::Character => rustix::fs::FileType::CharacterDevice,
            Kind::Block => rustix::fs::FileType::BlockDevice,
            _ => return Err(Errno::INVAL),
        };
        let device = rustix::fs::makedev(device.0, device.1);
        Ok(rustix::fs::mknodat(directory, name, kind, Mode::from_raw_mode(0o600), device)?)
    }

    /// statx(2) of a name in a directory, or of the directory if the name is empty.
    pub fn look(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<Meta> {
        self.enter("statx", || name.escape_ascii().to_string())?;
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
        let mask = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID | StatxFlags::BTIME;
        let found = rustix::fs::statx(directory, name, flags, mask)?;
        let has = |flag: StatxFlags| found.stx_mask & flag.bits() != 0;
        Ok(Meta {
            kind: kind(found.stx_mode),
            mode: u32::from(found.stx_mode) & 0o7777,
            uid: found.stx_uid,
            gid: found.stx_gid,
            size: found.stx_size,
            occupied: found.stx_blocks.saturating_mul(512),
            mtime: time(found.stx_mtime),
            ctime: time(found.stx_ctime),
            born: if has(StatxFlags::BTIME) { time(found.stx_btime) } else { Time::default() },
            links: found.stx_nlink,
            inode: found.stx_ino,
            device: (found.stx_dev_major, found.stx_dev_minor),
            special: (found.stx_rdev_major, found.stx_rdev_minor),
            mount: if has(StatxFlags::MNT_ID) { found.stx_mnt_id } else { 0 },
            is_locked: found.stx_attributes.intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND),
        })
    }

    /// Reads; 0 at the end of the file.
    pub fn read(&self, file: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize> {
        let most = self.transfer("read", buffer.len())?;
        Ok(retry_on_intr(|| rustix::io::read(file, &mut buffer[..most]))?)
    }

    /// Writes some of `data`, and returns the number of bytes.
    pub fn write(&self, file: BorrowedFd<'_>, data: &[u8]) -> Result<usize> {
        let most = self.transfer("write", data.len())?;
        match retry_on_intr(|| rustix::io::write(file, &data[..most]))? {
            0 if most > 0 => Err(Errno::IO),
            written => Ok(written),
        }
    }

    /// Writes all of `data`.
    pub fn write_all(&self, file: BorrowedFd<'_>, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            data = &data[self.write(file, data)?..];
        }
        Ok(())
    }

    /// Reads at `offset`; 0 at the end of the file.
    pub fn read_at(&self, file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let most = self.transfer("pread", buffer.len())?;
        Ok(retry_on_intr(|| rustix::io::pread(file, &mut buffer[..most], offset))?)
    }

    /// Writes all of `data` at `offset`.
    pub fn write_all_at(&self, file: BorrowedFd<'_>, mut data: &[u8], mut offset: u64) -> Result<()> {
        while !data.is_empty() {
            let most = self.transfer("pwrite", data.len())?;
            let written = retry_on_intr(|| rustix::io::pwrite(file, &data[..most], offset))?;
            if written == 0 {
                return Err(Errno::IO);
            }
            data = &data[written..];
            offset += written as u64;
        }
        Ok(())
    }

    /// The next range of data from `offset` on: start and end; `None` if only a hole is left.
    pub fn next_data(&self, file: BorrowedFd<'_>, offset: u64) -> Result<Option<(u64, u64)>> {
        self.enter("lseek(SEEK_DATA)", || offset.to_string())?;
        let data = match rustix::fs::seek(file, SeekFrom::Data(offset)) {
            Err(rustix::io::Errno::NXIO) => return Ok(None),
            found => found?,
        };
        Ok(Some((data, rustix::fs::seek(file, SeekFrom::Hole(data))?)))
    }

    /// Sets the size of a file.
    pub fn set_size(&self, file: BorrowedFd<'_>, size: u64) -> Result<()> {
        self.enter("ftruncate", || size.to_string())?;
        Ok(rustix::fs::ftruncate(file, size)?)
    }

    /// The target of a symbolic link.
    pub fn read_link(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<Vec<u8>> {
        self.enter("readlinkat", || name.escape_ascii().to_string())?;
        Ok(rustix::fs::readlinkat(directory, name, Vec::new())?.into_bytes())
    }

    pub fn set_owner(&self, subject: Subject<'_>, uid: u32, gid: u32) -> Result<()> {
        self.enter("fchownat", String::new)?;
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        match subject {
            Subject::Open(file) => rustix::fs::fchown(file, uid, gid)?,
            Subject::Named(directory, name) => {
                rustix::fs::chownat(directory, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
            }
        }
        Ok(())
    }

    /// Sets the permission bits. Symbolic links have none.
    pub fn set_mode(&self, subject: Subject<'_>, mode: u32) -> Result<()> {
        self.enter("fchmodat", String::new)?;
        let mode = Mode::from_raw_mode(mode);
        match subject {
            Subject::Open(file) => rustix::fs::fchmod(file, mode)?,
            Subject::Named(directory, name) => {
                // chmod(2) would follow a link that another user has put there meanwhile.
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = rustix::fs::openat(directory, name, flags, Mode::empty())?;
                rustix::fs::chmod(proc_path(file.as_fd(), b"").as_slice(), mode)?;
            }
        }
        Ok(())
    }

    /// Sets modification and access time to the same value.
    pub fn set_time(&self, subject: Subject<'_>, time: Time) -> Result<()> {
        self.enter("utimensat", String::new)?;
        let stamp = Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.into() };
        let times = Timestamps { last_access: stamp, last_modification: stamp };
        match subject {
            Subject::Open(file) => rustix::fs::futimens(file, &times)?,
            Subject::Named(directory, name) => {
                rustix::fs::utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            }
        }
        Ok(())
    }

    /// All extended attributes but our mark, sorted by name, and whether the list is complete: user attributes are left out
    /// if the kernel cannot list them, or if there are too many. Empty on file systems without attributes.
    pub fn attributes(&self, subject: Subject<'_>) -> Result<(Vec<Attribute>, bool)> {
        let listed = self.enter("listxattr", String::new).and_then(|()| list_attributes(subject));
        let (names, mut complete) = match listed {
            Err(Errno(libc::E2BIG)) => (KNOWN.join(&0), false),
            names => (names?, true),
        };
        let mut attributes = Vec::new();
        let mut total = 0;
        let is_of_user = |name: &[u8]| name.starts_with(b"user.");
        // The largest value of the kernel (XATTR_SIZE_MAX).
        let mut value = vec![0; if names.is_empty() { 0 } else { 64 << 10 }];
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty() && *name != MARK) {
            if is_of_user(name) && !complete {
                continue;
            }
            self.enter("getxattr", || name.escape_ascii().to_string())?;
            let length = match subject {
                Subject::Open(file) => rustix::fs::fgetxattr(file, name, &mut value),
                Subject::Named(directory, file) => {
                    rustix::fs::lgetxattr(proc_path(directory, file), name, &mut value)
                }
            };
            match length {
                Ok(length) => {
                    total += name.len() + length;
                    attributes.push((name.to_vec(), value[..length].to_vec()));
                }
                // Removed meanwhile, or not supported by this file system.
                Err(rustix::io::Errno::NODATA | rustix::io::Errno::OPNOTSUPP) => {}
                Err(error) => return Err(error.into()),
            }
            if total > limits::ATTRIBUTES && complete {
                complete = false;
                attributes.retain(|(name, _)| !is_of_user(name));
            }
        }
        attributes.sort();
        Ok((attributes, complete))
    }

    /// Sets an extended attribute.
    pub fn set_attribute(&self, subject: Subject<'_>, name: &[u8], value: &[u8]) -> Result<()> {
        self.enter("setxattr", || name.escape_ascii().to_string())?;
        match subject {
            Subject::Open(file) => rustix::fs::fsetxattr(file, name, value, XattrFlags::empty())?,
            Subject::Named(directory, file) => {
                rustix::fs::lsetxattr(proc_path(directory, file), name, value, XattrFlags::empty())?;
            }
        }
        Ok(())
    }

    /// Writes a new mark on a directory, which is not loaded yet.
    pub fn set_mark(&self, directory: BorrowedFd<'_>) -> Result<()> {
        let mut mark = [0; 16];
        rustix::rand::getrandom(&mut mark, rustix::rand::GetRandomFlags::empty())?;
        self.write_mark(directory, &format!("{:032x}", u128::from_ne_bytes(mark)))
    }

    /// Adds to the mark that the directory is loaded: it can be saved even if all notes about it are lost.
    pub fn finish_mark(&self, directory: BorrowedFd<'_>, mark: &str) -> Result<()> {
        self.write_mark(directory, &format!("{mark}{LOADED}"))
    }

    fn write_mark(&self, directory: BorrowedFd<'_>, text: &str) -> Result<()> {
        self.enter("fsetxattr", || "mark".to_owned())?;
        match rustix::fs::fsetxattr(directory, MARK, text.as_bytes(), XattrFlags::empty()) {
            // Without attributes or privileges the RAM disk is recognised in other ways.
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::PERM) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The mark on a directory, empty if there is none, and whether the directory is loaded according to it.
    pub fn mark(&self, directory: BorrowedFd<'_>) -> Result<(String, bool)> {
        self.enter("fgetxattr", || "mark".to_owned())?;
        let mut mark = [0; 64];
        match rustix::fs::fgetxattr(directory, MARK, &mut mark) {
            Ok(length) => {
                let text = String::from_utf8_lossy(&mark[..length]);
                let loaded = text.strip_suffix(LOADED);
                Ok((loaded.unwrap_or(&text).to_owned(), loaded.is_some()))
            }
            Err(rustix::io::Errno::NODATA | rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::PERM) => {
                Ok((String::new(), false))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes an extended attribute; a missing one is not an error.
    pub fn remove_attribute(&self, file: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
        self.enter("fremovexattr", || name.escape_ascii().to_string())?;
        match rustix::fs::fremovexattr(file, name) {
            Ok(()) | Err(rustix::io::Errno::NODATA | rustix::io::Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The owner of new files; `None` with privileges, because mount options may set another one.
    pub fn identity(&self) -> Option<(u32, u32)> {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        (!uid.is_root()).then_some((uid.as_raw(), gid.as_raw()))
    }

    /// Waits until a file or directory is on disk.
    pub fn sync(&self, file: BorrowedFd<'_>) -> Result<()> {
        let is_directory = || {
            rustix::fs::fstat(file)
                .is_ok_and(|found| rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir())
        };
        self.enter("fsync", || if is_directory() { "directory".to_owned() } else { String::new() })?;
        rustix::fs::fsync(file)?;
        self.leave()
    }

    /// Waits until the whole file system of an open directory is on disk.
    pub fn sync_file_system(&self, directory: BorrowedFd<'_>) -> Result<()> {
        self.enter("syncfs", String::new)?;
        Ok(rustix::fs::syncfs(directory)?)
    }

    /// Waits for the lock of a directory, which allows one save or load at a time and needs no write; `shown` is its path,
    /// for messages.
    ///
    /// # Errors
    ///
    /// [`Cause::Locked`](crate::Cause::Locked) after `patience`, with the process that holds it.
    pub fn lock(
        &self,
        directory: BorrowedFd<'_>,
        shown: &str,
        patience: Duration,
    ) -> std::result::Result<(), HostError> {
        self.enter("flock", String::new).map_err(|errno| HostError::new(shown, "lock", errno))?;
        lock::wait(directory, shown, patience)
    }
}
