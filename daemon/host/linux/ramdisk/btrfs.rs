//! Snapshots of btrfs (`linux/btrfs.h`), which do not change while they are read.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::ioctl::{Opcode, opcode};

use super::{Calls, Result};
use crate::Errno;

/// `struct btrfs_ioctl_vol_args_v2`, 4096 bytes.
#[repr(C)]
struct Arguments {
    fd: i64,
    transid: u64,
    flags: u64,
    unused: [u64; 4],
    name: [u8; 4040],
}

const READ_ONLY: u64 = 1 << 1;
const SNAP_CREATE_V2: Opcode = opcode::write::<Arguments>(0x94, 23);
const SNAP_DESTROY_V2: Opcode = opcode::write::<Arguments>(0x94, 63);

/// Inode number of the root directory of every subvolume.
pub const SUBVOLUME_ROOT: u64 = 256;

impl Calls {
    /// Creates a read-only snapshot `name` of an open subvolume, in that subvolume.
    pub fn make_snapshot(&self, subvolume: BorrowedFd<'_>, name: &str) -> Result<()> {
        self.enter("ioctl(SNAP_CREATE)", || name.to_owned())?;
        ask(subvolume, SNAP_CREATE_V2, READ_ONLY, name, subvolume)
    }

    /// Removes the snapshot of this name.
    pub fn remove_snapshot(&self, directory: BorrowedFd<'_>, name: &str) -> Result<()> {
        self.enter("ioctl(SNAP_DESTROY)", || name.to_owned())?;
        ask(directory, SNAP_DESTROY_V2, 0, name, directory)
    }
}

#[allow(unsafe_code)]
fn ask(
    directory: BorrowedFd<'_>,
    request: Opcode,
    flags: u64,
    name: &str,
    subject: BorrowedFd<'_>,
) -> Result<()> {
    let mut arguments = Box::new(Arguments {
        fd: i64::from(subject.as_raw_fd()),
        transid: 0,
        flags,
        unused: [0; 4],
        name: [0; 4040],
    });
    let field = arguments.name.get_mut(..name.len()).ok_or(Errno::INVAL)?;
    field.copy_from_slice(name.as_bytes());
    // SAFETY: both requests read one structure of the layout above, which lives until the call ends.
    match unsafe { libc::ioctl(directory.as_raw_fd(), request as _, &raw const *arguments) } {
        0 => Ok(()),
        _ => Err(Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))),
    }
}
