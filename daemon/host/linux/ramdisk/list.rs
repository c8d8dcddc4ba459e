//! The names in a directory.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, RawDir};

use super::{Calls, Result, open_without_atime};

/// A name in a directory.
pub type Name = Vec<u8>;

/// Buffer sizes: for nearly all directories, for large ones, and for hundreds of thousands of names.
const ROOM: [usize; 3] = [32 << 10, 1 << 20, 32 << 20];
/// Size of `struct linux_dirent64` before the name, and with the longest name.
const HEAD: usize = 19;
const LONGEST: usize = (HEAD + 256).next_multiple_of(8);

impl Calls {
    /// All names in a directory but `.` and `..`, sorted.
    ///
    /// The kernel locks a directory during one call of getdents(2), but not between two. A file that is renamed over another
    /// name in between may be in neither result (seen with tmpfs). So a listing that needs a second call is repeated with a
    /// larger buffer, and only directories larger than all of them are exposed to this.
    pub fn list(&self, directory: BorrowedFd<'_>) -> Result<Vec<Name>> {
        let mut names = Vec::new();
        for room in ROOM {
            self.enter("getdents", String::new)?;
            // Opened again for a position of its own, so that each listing begins at the start.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let own = open_without_atime(directory, b".", flags)?;
            names.clear();
            let mut buffer = Vec::with_capacity(room);
            if read(own, buffer.spare_capacity_mut(), room == ROOM[2], &mut names)? {
                break;
            }
        }
        names.sort_unstable();
        // A file that is renamed between two calls may be listed twice.
        names.dedup();
        Ok(names)
    }
}

/// Reads names. Returns true if one call returned all of them, with room for one more. If not, the rest is read only with
/// `anyway`.
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
