//! What goes wrong between an archive and a tree, and whose fault it is: that decides what happens next.

use std::fmt::Display;
use std::io;
use std::path::Path;

use crate::{Error, ErrorKind};
use host::{Errno, HostError};
use logic::ramdisk::limits::shown;
use logic::ramdisk::manifest::{Contents, refuse_size};

use super::Disk;

/// A failure on the way from an archive to a tree or back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The archive is not what it should be.
    #[error("the archive is damaged: {0}")]
    Bad(String),
    /// The archive is what was written, but not what this program can read.
    #[error("the archive cannot be read: {0}")]
    Unusable(String),
    /// The archive could not be read or written.
    #[error("{0}")]
    Archive(HostError),
    /// The tree could not be read or written.
    #[error("{0}")]
    Tree(HostError),
    /// The watcher wants no more.
    #[error("{}", super::ENDED)]
    Ended,
}

impl Trouble {
    /// What reading from a decompressor failed with: the kernel has numbers, the decompressor words.
    pub fn reading(error: &io::Error) -> Trouble {
        match error.raw_os_error() {
            Some(number) => Trouble::Archive(HostError::new("the archive", "read", Errno(number))),
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                Trouble::Bad("it ends too early".to_owned())
            }
            None => Trouble::Bad(error.to_string()),
        }
    }

    /// What writing to a compressor failed with.
    pub fn writing(error: &io::Error) -> Trouble {
        Trouble::Archive(HostError::io("the archive", "write", error))
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Error {
        match trouble {
            Trouble::Bad(_) | Trouble::Unusable(_) => {
                Error::new(ErrorKind::SnapshotCorrupt, trouble.to_string())
            }
            Trouble::Ended => Error::failed(trouble.to_string()),
            Trouble::Archive(error) => in_store(error),
            Trouble::Tree(error) => or_full(error, ErrorKind::DiskFull),
        }
    }
}

/// Whether an error number is about this program or the machine: no other file would fare better.
pub fn is_general(errno: Errno) -> bool {
    // The last is what a script has a dead process get.
    matches!(errno.0, libc::ENOMEM | libc::EMFILE | libc::ENFILE | libc::EOWNERDEAD)
}

/// Whether an error number is about what is to be made on a disk: other files may well be made.
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

/// Refuses contents that do not fit. Only root may read the names of the biggest files.
pub fn check_fit(disk: &Disk, what: &str, contents: &Contents, bytes: u64, inodes: u64) -> Result<(), Error> {
    let Some(why) = refuse_size(contents, bytes, inodes) else { return Ok(()) };
    let error = Error::new(ErrorKind::DiskFull, format!("{}{what}: {why}", disk.name));
    Err(match contents.biggest_text().as_str() {
        "" => error,
        names => error.with_private(format!("{}: {names}", disk.name)),
    })
}

/// What went wrong in the store.
pub fn in_store(error: HostError) -> Error {
    or_full(error, ErrorKind::StoreFull)
}

/// Says of an error number of the place or of the machine what it was.
pub fn at(object: impl Display, operation: &'static str) -> impl FnOnce(Errno) -> Error {
    move |errno| Error::from(HostError::new(object.to_string(), operation, errno))
}

/// Says of an error number of the tree what it was.
pub fn in_tree(path: &[u8], operation: &'static str) -> impl FnOnce(Errno) -> Trouble {
    move |errno| Trouble::Tree(HostError::new(shown(path), operation, errno))
}

/// An error number as the standard library has it, to pass through a compressor.
pub fn io_error(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.0)
}

/// Names what went wrong in a tree by its whole path.
pub fn below(to: &Path, trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Tree(error) => {
            let path = if error.object == "." { to.to_owned() } else { to.join(&error.object) };
            Trouble::Tree(HostError { object: path.display().to_string(), ..error })
        }
        other => other,
    }
}
