//! Errors between a store and a tree, by cause: that decides what is done next.

use std::fmt::Display;
use std::path::Path;

use crate::{Error, ErrorKind};
use host::{Errno, HostError};
use logic::ramdisk::hold::refuse_size;
use logic::ramdisk::limits::shown;
use logic::ramdisk::manifest::Contents;

use super::Ramdisk;

/// An error in saving or loading.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    /// A part of the store is damaged.
    #[error("damaged: {0}")]
    Bad(String),
    /// The snapshot is intact, but this program cannot read it.
    #[error("it cannot be read: {0}")]
    Unusable(String),
    /// The store could not be read or written.
    #[error("{0}")]
    Store(HostError),
    /// The tree could not be read or written.
    #[error("{0}")]
    Tree(HostError),
    /// The watcher ended the job.
    #[error("the snapshots are unchanged")]
    Ended,
}

/// The object of an error in a file of the store whose path is not known yet.
pub const A_FILE: &str = "a file of the store";

impl TransferError {
    /// Names the file of the store in which it was.
    pub fn of(self, path: impl Display) -> TransferError {
        match self {
            TransferError::Store(error) if error.object == A_FILE => {
                TransferError::Store(HostError { object: path.to_string(), ..error })
            }
            other => other,
        }
    }
}

impl From<TransferError> for Error {
    fn from(error: TransferError) -> Error {
        match error {
            TransferError::Bad(_) | TransferError::Unusable(_) => {
                Error::new(ErrorKind::SnapshotCorrupt, error.to_string())
            }
            TransferError::Ended => Error::new(ErrorKind::Cancelled, error.to_string()),
            TransferError::Store(error) => in_store(error),
            TransferError::Tree(error) => or_full(error, ErrorKind::DiskFull),
        }
    }
}

/// The error for a directory that was not opened because of this part of its path.
pub fn not_opened(directory: &Path, part: &Path, errno: Errno) -> Error {
    let at = if part == directory { String::new() } else { format!("{}: ", part.display()) };
    HostError::new(directory.display().to_string(), format!("{at}open"), errno).into()
}

/// Whether an error is of this program or the machine, so that other files would fail, too.
pub fn is_general(errno: Errno) -> bool {
    // The last is the answer to every call of a process that a fault script has killed.
    matches!(errno.0, libc::ENOMEM | libc::EMFILE | libc::ENFILE | libc::EOWNERDEAD)
}

/// Calls a second time after an error that says that something is damaged: it may pass.
pub fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    match call() {
        Err(errno) if is_damage(errno) => call(),
        done => done,
    }
}

/// Whether an error says that what was written to a disk cannot be read from it.
pub fn is_damage(errno: Errno) -> bool {
    matches!(errno.0, libc::EIO | libc::EUCLEAN | libc::EBADMSG | libc::EILSEQ | libc::ENODATA)
}

/// Whether an error concerns only the entry to create, so that others may succeed.
pub fn is_of_entry(errno: Errno) -> bool {
    matches!(
        errno.0,
        libc::EPERM
            | libc::ENOENT
            | libc::ENXIO
            | libc::E2BIG
            | libc::EACCES
            | libc::EEXIST
            | libc::EXDEV
            | libc::ENODEV
            | libc::ENOTDIR
            | libc::EISDIR
            | libc::EINVAL
            | libc::EFBIG
            | libc::EMLINK
            | libc::ENAMETOOLONG
            | libc::ELOOP
            | libc::EOVERFLOW
            | libc::EILSEQ
            | libc::EOPNOTSUPP
    )
}

fn or_full(error: HostError, full: ErrorKind) -> Error {
    match error.errno() {
        Some(Errno::NOSPC | Errno(libc::EDQUOT)) => Error::new(full, error.to_string()),
        _ => Error::from(error),
    }
}

/// Refuses contents that do not fit. The names of the biggest files are reported to root only.
pub fn check_fit(
    disk: &Ramdisk,
    what: &str,
    contents: &Contents,
    bytes: u64,
    inodes: u64,
) -> Result<(), Error> {
    let Some(why) = refuse_size(contents, bytes, inodes) else { return Ok(()) };
    let error = Error::new(ErrorKind::DiskFull, format!("{}{what}: {why}", disk.name));
    Err(match contents.biggest_text().as_str() {
        "" => error,
        names => error.with_private(format!("{}: {names}", disk.name)),
    })
}

/// An error in the store.
pub fn in_store(error: HostError) -> Error {
    or_full(error, ErrorKind::StoreFull)
}

/// An error of an operation on a path or on the machine.
pub fn at(object: impl Display, operation: &'static str) -> impl FnOnce(Errno) -> Error {
    move |errno| Error::from(HostError::new(object.to_string(), operation, errno))
}

/// An error of an operation on an entry of a tree.
pub fn in_tree(path: &[u8], operation: &'static str) -> impl FnOnce(Errno) -> TransferError {
    move |errno| TransferError::Tree(HostError::new(shown(path), operation, errno))
}

/// Completes the path of an error in a tree below `to`.
pub fn below(to: &Path, error: TransferError) -> TransferError {
    match error {
        TransferError::Tree(error) => {
            let path = if error.object == "." { to.to_owned() } else { to.join(&error.object) };
            TransferError::Tree(HostError { object: path.display().to_string(), ..error })
        }
        other => other,
    }
}
