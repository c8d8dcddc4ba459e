//! Mounting, with options in the spelling of fstab.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Statx, StatxAttributes, StatxFlags, Uid};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, UnmountFlags};

use super::patience;
use crate::{Errno, Holder, HostError, MountSpec, RootSpec};
use logic::record::MountId;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// `STATX_MNT_ID_UNIQUE`, since Linux 6.8. Older kernels answer with the other ID.
const UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// Options that are flags of mount(2) rather than words for the file system: name, flag, whether it is set.
const FLAGS: [(&str, MountFlags, bool); 20] = [
    ("ro", MountFlags::RDONLY, true),
    ("rw", MountFlags::RDONLY, false),
    ("nosuid", MountFlags::NOSUID, true),
    ("suid", MountFlags::NOSUID, false),
    ("nodev", MountFlags::NODEV, true),
    ("dev", MountFlags::NODEV, false),
    ("noexec", MountFlags::NOEXEC, true),
    ("exec", MountFlags::NOEXEC, false),
    ("sync", MountFlags::SYNCHRONOUS, true),
    ("async", MountFlags::SYNCHRONOUS, false),
    ("dirsync", MountFlags::DIRSYNC, true),
    ("noatime", MountFlags::NOATIME, true),
    ("atime", MountFlags::NOATIME, false),
    ("nodiratime", MountFlags::NODIRATIME, true),
    ("diratime", MountFlags::NODIRATIME, false),
    ("relatime", MountFlags::RELATIME, true),
    ("norelatime", MountFlags::RELATIME, false),
    ("strictatime", MountFlags::STRICTATIME, true),
    ("lazytime", MountFlags::LAZYTIME, true),
    ("nolazytime", MountFlags::LAZYTIME, false),
];

/// Options for mount(8) or systemd, which the kernel does not know.
const USER_SPACE: [&str; 7] = ["defaults", "auto", "noauto", "nofail", "user", "nouser", "_netdev"];

/// Whether something is mounted at `path` below an open directory, or at the directory itself where `path` is empty.
pub fn is_mounted(directory: impl AsFd, path: &Path) -> rustix::io::Result<bool> {
    let found = rustix::fs::statx(directory, path, AtFlags::EMPTY_PATH, StatxFlags::empty())?;
    Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Attributes of `name` below an open directory, or of the directory itself if `name` is empty, without asking the server of a
/// network or FUSE file system.
fn statx(directory: impl AsFd, name: &[u8], what: StatxFlags) -> rustix::io::Result<Statx> {
    let flags =
        AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    rustix::fs::statx(directory, name, flags, what)
}

/// Inode of the mount namespace of this process; 0 if unknown.
pub fn namespace(root: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(root.join("proc/self/ns/mnt")).map_or(0, |found| found.ino())
}

/// A process in the mount namespace with this inode.
pub fn namespace_user(root: &Path, namespace: u64) -> Option<Holder> {
    let name = format!("mnt:[{namespace}]");
    let entries = std::fs::read_dir(root.join("proc")).ok()?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut processes = pids.map(|pid| (pid, root.join(format!("proc/{pid}"))));
    let found = processes.find(|(_, process)| {
        std::fs::read_link(process.join("ns/mnt")).is_ok_and(|link| link.as_os_str() == name.as_str())
    });
    found.map(|(pid, process)| Holder { pid, name: super::holders::comm(&process) })
}

/// The mount whose root is `name` below an open directory; `None` if nothing is mounted there.
fn id_of(root: &Path, directory: impl AsFd, name: &[u8]) -> rustix::io::Result<Option<MountId>> {
    let found = statx(&directory, name, StatxFlags::MNT_ID)?;
    // Before Linux 5.8, the attribute is unknown.
    let is_known = found.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT);
    if is_known && !found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
        return Ok(None);
    }
    let unique = statx(&directory, name, UNIQUE)?;
    let known = |found: &Statx, flag: StatxFlags| StatxFlags::from_bits_retain(found.stx_mask).contains(flag);
    Ok(Some(MountId {
        namespace: namespace(root),
        id: if known(&found, StatxFlags::MNT_ID) { found.stx_mnt_id } else { 0 },
        unique: if known(&unique, UNIQUE) { unique.stx_mnt_id } else { 0 },
        device: (found.stx_dev_major, found.stx_dev_minor),
    }))
}

/// Calls about a path, also where a directory above it does not answer.
fn at<T: Serialize + DeserializeOwned>(
    root: &Path,
    path: &[u8],
    call: impl FnOnce() -> rustix::io::Result<T>,
) -> rustix::io::Result<T> {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    patience::ask(root, &root.join(OsStr::from_bytes(path)), call)
}

/// What is mounted at `path`; `None` if nothing is.
pub fn id_at(root: &Path, path: &str) -> Result<Option<MountId>, HostError> {
    let look = || {
        let (parent, name) = open_parent(root, path.as_bytes())?;
        id_of(root, &parent, name)
    };
    at(root, path.as_bytes(), look).map_err(|errno| HostError::new(path, "look at the mount", errno))
}

/// Splits options into flags of mount(2) and words for the file system.
fn split(options: &str) -> (MountFlags, String) {
    let mut flags = MountFlags::empty();
    let mut words = Vec::new();
    for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        if let Some((_, flag, set)) = FLAGS.iter().find(|(name, _, _)| *name == option) {
            flags.set(*flag, *set);
        } else if !USER_SPACE.contains(&option) && !option.starts_with("x-") && !option.starts_with("X-") {
            words.push(option);
        }
    }
    (flags, words.join(","))
}

fn data(spec: &MountSpec, words: String) -> Result<CString, HostError> {
    CString::new(words).map_err(|_| HostError::new(&spec.mount_point, "read the mount options", Errno::INVAL))
}

/// Opens a directory below `root` without following symbolic links: the owner of a directory on the way could redirect them
/// at any time. Component by component, because openat2(2) is missing before Linux 5.6.
fn open(root: &Path, path: impl AsRef<[u8]>) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut directory = rustix::fs::open(root, flags, Mode::empty())?;
    for name in path.as_ref().split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        directory = rustix::fs::openat(&directory, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(directory)
}

/// Opens the parent of `path` in the same way, and returns it with the last component.
fn open_parent<'a>(root: &Path, path: &'a [u8]) -> rustix::io::Result<(OwnedFd, &'a [u8])> {
    let slash = path.iter().rposition(|byte| *byte == b'/').ok_or(rustix::io::Errno::INVAL)?;
    Ok((open(root, &path[..slash])?, &path[slash + 1..]))
}

/// A path in `/proc` that leads to an open directory, also after it was renamed.
fn path_of(directory: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", directory.as_raw_fd())
}

pub fn mount(root: &Path, spec: &MountSpec) -> Result<(), HostError> {
    let (flags, words) = split(&spec.options);
    let data = data(spec, words)?;
    let mount = || {
        let place = open(root, &spec.mount_point)?;
        rustix::mount::mount(&spec.source, path_of(&place), &spec.fs_type, flags, &*data)
    };
    at(root, spec.mount_point.as_bytes(), mount).map_err(|errno| {
        HostError::new(&spec.mount_point, format!("mount {} with `{}`", spec.source, spec.options), errno)
    })
}

/// Changes options of what is mounted.
pub fn remount(root: &Path, spec: &MountSpec) -> Result<(), HostError> {
    let (flags, words) = split(&spec.options);
    let data = data(spec, words)?;
    let remount = || rustix::mount::mount_remount(path_of(&open(root, &spec.mount_point)?), flags, &data);
    at(root, spec.mount_point.as_bytes(), remount)
        .map_err(|errno| HostError::new(&spec.mount_point, format!("remount with `{}`", spec.options), errno))
}

/// Bind-mounts `from` at `to`.
pub fn bind(root: &Path, from: &str, to: &str) -> Result<(), HostError> {
    let bound = at(root, to.as_bytes(), || {
        let (from, to) = (open(root, from)?, open(root, to)?);
        rustix::mount::mount_bind(path_of(&from), path_of(&to))
    });
    bound.map_err(|errno| HostError::new(to, format!("bind {from}"), errno))
}

/// Unmounts `mount`, never lazily. By name in the open parent: an open descriptor of the mount itself would keep it busy. A user
/// may rename directories above at any time, but not the mount point itself, so what is compared is what is unmounted.
pub fn unmount(root: &Path, path: &[u8], mount: &MountId) -> Result<(), HostError> {
    let failed = |errno: rustix::io::Errno| HostError::new(path.escape_ascii().to_string(), "unmount", errno);
    let unmount = || {
        let (parent, name) = open_parent(root, path)?;
        let found = id_of(root, &parent, name)?.ok_or(rustix::io::Errno::INVAL)?;
        if !found.is(mount) {
            return Err(rustix::io::Errno::STALE);
        }
        let path = [path_of(&parent).as_bytes(), b"/", name].concat();
        rustix::mount::unmount(path, UnmountFlags::NOFOLLOW)
    };
    at(root, path, unmount).map_err(failed)
}

/// Creates a directory, mode 0755.
pub fn make_directory(root: &Path, path: &str) -> Result<(), HostError> {
    let make = || {
        let (parent, name) = open_parent(root, path.as_bytes())?;
        rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755))
    };
    at(root, path.as_bytes(), make).map_err(|errno| HostError::new(path, "create directory", errno))
}

/// Removes an empty directory.
pub fn remove_directory(root: &Path, path: &str) -> Result<(), HostError> {
    let remove = || {
        let (parent, name) = open_parent(root, path.as_bytes())?;
        rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
    };
    at(root, path.as_bytes(), remove).map_err(|errno| HostError::new(path, "remove directory", errno))
}

/// Mounts the device at no path (fsopen(2), fsmount(2)), and sets owner and mode of its root directory. Closing the
/// descriptor unmounts it.
pub fn set_root(node: &Path, object: &str, fs_type: &str, root: &RootSpec) -> Result<(), HostError> {
    let fail = |what: &str| {
        let what = format!("{what} to set the owner of its root directory");
        move |errno: rustix::io::Errno| HostError::new(object, what.clone(), errno)
    };
    let context = rustix::mount::fsopen(fs_type, FsOpenFlags::FSOPEN_CLOEXEC)
        .map_err(fail("open the file system type"))?;
    rustix::mount::fsconfig_set_string(&context, "source", node).map_err(fail("name the device"))?;
    rustix::mount::fsconfig_create(&context).map_err(fail("open the file system"))?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mounted =
        rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(fail("mount"))?;
    apply_root(&mounted, object, root)
}

/// `fchown` before `fchmod`: chown clears the set-id bits.
fn apply_root(mounted: &OwnedFd, object: &str, root: &RootSpec) -> Result<(), HostError> {
    // A mount descriptor is an O_PATH descriptor; fchown and fchmod need an ordinary one.
    let directory =
        rustix::fs::openat(mounted, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| HostError::new(object, "open the root directory", errno))?;
    if root.uid.is_some() || root.gid.is_some() {
        let (uid, gid) = (root.uid.map(Uid::from_raw), root.gid.map(Gid::from_raw));
        rustix::fs::fchown(&directory, uid, gid)
            .map_err(|errno| HostError::new(object, "set the owner of the root directory", errno))?;
    }
    if let Some(mode) = root.mode {
        rustix::fs::fchmod(&directory, Mode::from_raw_mode(mode))
            .map_err(|errno| HostError::new(object, "set the mode of the root directory", errno))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_no_mount_point() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(is_mounted(rustix::fs::CWD, directory.path()), Ok(false));
        assert_eq!(is_mounted(rustix::fs::CWD, Path::new("/proc")), Ok(true));
        let open = std::fs::File::open("/proc").unwrap();
        assert_eq!(is_mounted(&open, Path::new("")), Ok(true));
        assert!(is_mounted(rustix::fs::CWD, &directory.path().join("none")).is_err());
    }

    #[test]
    fn options_are_split_as_mount_8_does_it() {
        for (options, flags, words) in [
            ("", MountFlags::empty(), ""),
            ("defaults,nofail,x-systemd.automount", MountFlags::empty(), ""),
            ("nosuid,nodev,size=64m", MountFlags::NOSUID | MountFlags::NODEV, "size=64m"),
            ("ro,rw,discard, commit=30", MountFlags::empty(), "discard,commit=30"),
        ] {
            assert_eq!(split(options), (flags, words.to_owned()), "{options}");
        }
    }
}
