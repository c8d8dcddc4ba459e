//! The directory at the root of a disk: what it was before the disk was filled.

use std::os::fd::BorrowedFd;

use host::Errno;
use host::linux::ramdisk::{Calls, Subject};
use logic::ramdisk::entry::Time;
use logic::ramdisk::state::Root;

/// What it is now.
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
