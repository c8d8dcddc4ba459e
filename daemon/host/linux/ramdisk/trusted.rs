//! Opening a directory that only root and its owner can have put at its path.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};

use super::Calls;
use crate::Errno;
use crate::linux::patience::wait_for;
use logic::ramdisk::paths::{Foreign, Part, foreign};

/// Maximum number of links in a path, as in the kernel.
const LINKS: usize = 40;

/// Why a directory was not opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Untrusted {
    /// The kernel returned an error for this path.
    Errno(PathBuf, Errno),
    /// Other users could change what this path leads to.
    Foreign(PathBuf, Foreign),
}

impl Calls {
    /// Opens a directory for reading if only root and we can change what its path leads to: every component, and every link
    /// on the way, is checked after it was opened. `create` makes missing components with mode 0700.
    pub fn open_trusted(&self, path: &Path, create: bool) -> Result<OwnedFd, Untrusted> {
        self.open_checked(path, create, &[Part::Above, Part::Link, Part::Last])
    }

    /// As [`Calls::open_trusted`], but directories may belong to other users; only their links are not followed.
    pub fn open_without_links(&self, path: &Path, create: bool) -> Result<OwnedFd, Untrusted> {
        self.open_checked(path, create, &[Part::Link])
    }

    fn open_checked(&self, path: &Path, create: bool, checked: &[Part]) -> Result<OwnedFd, Untrusted> {
        let mut shown = PathBuf::from("/");
        let fail = |shown: &Path| {
            let shown = shown.to_owned();
            move |errno| Untrusted::Errno(shown, errno)
        };
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        wait_for(&absolute).map_err(fail(&absolute))?;
        let mut at = self.root().map_err(fail(&shown))?;
        let mut pending = parts(&absolute);
        let mut links = 0;
        while let Some(name) = pending.pop() {
            if name == ".." {
                shown.pop();
            } else {
                shown.push(&name);
            }
            let (opened, stat) = self.part(&at, &name, create).map_err(fail(&shown))?;
            let part = match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => Part::Link,
                FileType::Directory if pending.is_empty() => Part::Last,
                FileType::Directory => Part::Above,
                _ => return Err(fail(&shown)(Errno(libc::ENOTDIR))),
            };
            let us = rustix::process::geteuid().as_raw();
            if let Some(foreign) = foreign(part, stat.st_uid, stat.st_mode, us)
                && checked.contains(&part)
            {
                return Err(Untrusted::Foreign(shown, foreign));
            }
            if part != Part::Link {
                at = opened;
                continue;
            }
            links += 1;
            if links > LINKS {
                return Err(fail(&shown)(Errno(libc::ELOOP)));
            }
            let target = self.target(&opened).map_err(fail(&shown))?;
            shown.pop();
            if target.is_absolute() {
                at = self.root().map_err(fail(&shown))?;
                shown = PathBuf::from("/");
            }
            pending.extend(parts(&target));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.enter("openat", || ".".to_owned()).map_err(fail(&shown))?;
        rustix::fs::openat(&at, ".", flags, Mode::empty()).map_err(|errno| fail(&shown)(errno.into()))
    }

    fn root(&self) -> Result<OwnedFd, Errno> {
        self.enter("open", || "/".to_owned())?;
        Ok(rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
    }

    fn part(&self, at: &OwnedFd, name: &OsStr, create: bool) -> Result<(OwnedFd, Stat), Errno> {
        let open = || {
            self.enter("openat", || name.display().to_string())?;
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(rustix::fs::openat(at, name, flags, Mode::empty())?)
        };
        let opened = match open() {
            Err(Errno::NOENT) if create => {
                self.enter("mkdirat", || name.display().to_string())?;
                match rustix::fs::mkdirat(at, name, Mode::RWXU) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => open()?,
                    Err(errno) => return Err(errno.into()),
                }
            }
            opened => opened?,
        };
        let stat = rustix::fs::fstat(&opened)?;
        Ok((opened, stat))
    }

    fn target(&self, link: &OwnedFd) -> Result<PathBuf, Errno> {
        self.enter("readlinkat", String::new)?;
        let target = rustix::fs::readlinkat(link, "", Vec::new())?;
        Ok(PathBuf::from(std::ffi::OsString::from_vec(target.into_bytes())))
    }
}

/// The components of a path, last one first.
fn parts(path: &Path) -> Vec<std::ffi::OsString> {
    let names = path.components().rev().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::from_bytes(b"..").to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    names.collect()
}
