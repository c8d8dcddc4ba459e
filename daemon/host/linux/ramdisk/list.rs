//! The names in a directory.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, RawDir};

use super::{Calls, Result};

/// A name in a directory.
pub type Name = Vec<u8>;

/// Room for names: for nearly all directories, for large ones, and for those with hundreds of thousands.
const ROOM: [usize; 3] = [32 << 10, 1 << 20, 32 << 20];
/// What `struct linux_dirent64` takes before the name, and with the longest one.
const HEAD: usize = 19;
const LONGEST: usize = (HEAD + 256).next_multiple_of(8);

impl Calls {
    /// All names in a directory but `.` and `..`, sorted.
    ///
    /// The kernel lets nobody change a directory during one call of getdents(2), but between two it does, and a name that
    /// another file takes over then may be in neither (seen with tmpfs). What one call does not hold is asked for again with
    /// more room, so that only directories beyond all of it are at the mercy of that.
    pub fn list(&self, directory: BorrowedFd<'_>) -> Result<Vec<Name>> {
        let mut names = Vec::new();
        for room in ROOM {
            self.enter("getdents", String::new)?;
            // Its own position, so that a second listing starts anew.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let own = rustix::fs::openat(directory, ".", flags, Mode::empty())?;
            names.clear();
            let mut buffer = Vec::with_capacity(room);
            if read(own, buffer.spare_capacity_mut(), room == ROOM[2], &mut names)? {
                break;
            }
        }
        names.sort_unstable();
        // One that was renamed between two calls may be in both.
        names.dedup();
        Ok(names)
    }
}

/// Reads names. Whether all of them came with one call, which had room for one more; if not, the rest is read only if they are
/// wanted `anyway`.
fn read(
    directory: OwnedFd,
    buffer: &mut [MaybeUninit<u8>],
    anyway: bool,
    names: &mut Vec<Name>,
) -> Result<bool> {
    let mut left = buffer.len();
    let mut entries = RawDir::new(directory, buffer);
    let mut calls = 0;
    loop {
        calls += usize::from(entries.is_buffer_empty());
        let Some(entry) = entries.next() else { return Ok(left >= LONGEST) };
        if calls > 1 && !anyway {
            return Ok(false);
        }
        let entry = entry?;
        let name = CStr::to_bytes(entry.file_name());
        left = left.saturating_sub((HEAD + name.len() + 1).next_multiple_of(8));
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
}
