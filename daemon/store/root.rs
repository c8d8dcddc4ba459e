//! The root directory of a RAM disk: its identity, and its attributes before it was filled.

use std::os::fd::BorrowedFd;

use host::Errno;
use host::linux::ramdisk::{Calls, Subject};
use logic::ramdisk::entry::Time;
use logic::ramdisk::state::{Place, Root};

use super::Ramdisk;
use super::transfer_error::at;
use crate::{Error, ErrorKind};

/// Identifies the directory, on which something must be mounted. Also returns whether its mark says that it is loaded.
pub fn identify(calls: &Calls, disk: &Ramdisk, place: BorrowedFd<'_>) -> Result<(Place, bool), Error> {
    let path = disk.place.display();
    let meta = calls.look(place, b"").map_err(at(&path, "look at"))?;
    if !disk.trial && !calls.is_mount_point(place).map_err(at(&path, "look at"))? {
        return Err(Error::new(
            ErrorKind::NotLoaded,
            format!("nothing is mounted at {path}, where {} should be", disk.name),
        ));
    }
    let (mark, is_loaded) = calls.mark(place).map_err(at(&path, "read the mark of"))?;
    let born = (meta.born.seconds, meta.born.nanoseconds);
    Ok((Place { device: meta.device, inode: meta.inode, born, mark }, is_loaded))
}

/// Its present owner, mode, time and attributes.
pub fn look(calls: &Calls, directory: BorrowedFd<'_>) -> Result<Root, Errno> {
    let meta = calls.look(directory, b"")?;
    let (attributes, _) = calls.attributes(Subject::Open(directory))?;
    let mtime = (meta.mtime.seconds, meta.mtime.nanoseconds);
    Ok(Root { uid: meta.uid, gid: meta.gid, mode: meta.mode, mtime, attributes })
}

/// Restores owner, attributes, mode and time, in this order: chown(2) clears set-id bits, and an ACL changes the mode.
pub fn restore(calls: &Calls, directory: BorrowedFd<'_>, was: &Root) -> Result<(), Errno> {
    let subject = Subject::Open(directory);
    calls.set_owner(subject, was.uid, was.gid)?;
    let (now, _) = calls.attributes(subject)?;
    for (name, _) in now.iter().filter(|(name, _)| was.attributes.iter().all(|(kept, _)| kept != name)) {
        calls.remove_attribute(directory, name)?;
    }
    for attribute in was.attributes.iter().filter(|attribute| !now.contains(attribute)) {
        calls.set_attribute(subject, &attribute.0, &attribute.1)?;
    }
    calls.set_mode(subject, was.mode)?;
    calls.set_time(subject, Time { seconds: was.mtime.0, nanoseconds: was.mtime.1 })
}
