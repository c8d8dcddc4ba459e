//! Errors of the verbs of [`Host`](crate::Host).

use std::fmt;

use super::Holder;
use logic::error::{Error, ErrorKind};
use logic::text::{shown, worded};

/// An error number, with names for those that decisions depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// Operation not permitted.
    pub const PERM: Errno = Errno(libc::EPERM);
    /// No such file or directory.
    pub const NOENT: Errno = Errno(libc::ENOENT);
    /// I/O error.
    pub const IO: Errno = Errno(libc::EIO);
    /// Out of memory.
    pub const NOMEM: Errno = Errno(libc::ENOMEM);
    /// Permission denied.
    pub const ACCES: Errno = Errno(libc::EACCES);
    /// Block device required.
    pub const NOTBLK: Errno = Errno(libc::ENOTBLK);
    pub const BUSY: Errno = Errno(libc::EBUSY);
    pub const EXIST: Errno = Errno(libc::EEXIST);
    /// No such device.
    pub const NODEV: Errno = Errno(libc::ENODEV);
    /// Invalid argument.
    pub const INVAL: Errno = Errno(libc::EINVAL);
    /// No space.
    pub const NOSPC: Errno = Errno(libc::ENOSPC);
    /// Read-only file system.
    pub const ROFS: Errno = Errno(libc::EROFS);
    /// Directory not empty.
    pub const NOTEMPTY: Errno = Errno(libc::ENOTEMPTY);
    /// No such device or address.
    pub const NXIO: Errno = Errno(libc::ENXIO);
    /// A component of a path is not a directory.
    pub const NOTDIR: Errno = Errno(libc::ENOTDIR);
    /// A component of a path is a symbolic link, and links are not followed.
    pub const LOOP: Errno = Errno(libc::ELOOP);
    /// What is at a path is not what is meant.
    pub const STALE: Errno = Errno(libc::ESTALE);
    /// Try again.
    pub const AGAIN: Errno = Errno(libc::EAGAIN);
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == libc::ETIMEDOUT {
            return f.write_str("it does not answer");
        }
        let text = std::io::Error::from_raw_os_error(self.0).to_string();
        let text = text.split(" (os error").next().unwrap_or(&text);
        let mut letters = text.chars();
        match letters.next() {
            // "Input/output error" becomes lower case; "I/O error" and other abbreviations stay.
            Some(first) if letters.clone().next().is_some_and(char::is_lowercase) => {
                write!(f, "{}{}", first.to_lowercase(), letters.as_str())
            }
            _ => f.write_str(text),
        }
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Errno {
        Errno(errno.raw_os_error())
    }
}

/// A verb that failed: `zram0: write disksize: device or resource busy`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {operation}: {cause}", shown(object.as_str()))]
pub struct HostError {
    /// What it was done to: a device, a path, a program.
    pub object: String,
    /// What was done.
    pub operation: String,
    /// Why it failed.
    pub cause: Cause,
}

/// Why a verb failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The kernel returned an error number.
    #[error("{0}")]
    Errno(Errno),
    /// Another process holds the lock.
    #[error("{} holds the lock, and has not released it within {seconds} seconds; try again later", name(.holder.as_ref()))]
    Locked {
        /// How long the lock was waited for.
        seconds: u64,
        /// The process, if `/proc` shows it.
        holder: Option<Holder>,
    },
    /// A description, from a program that was run or of our own.
    #[error("{0}")]
    Text(String),
}

fn name(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), Holder::to_string)
}

impl HostError {
    /// An error of the kernel.
    pub fn new(
        object: impl Into<String>,
        operation: impl Into<String>,
        errno: impl Into<Errno>,
    ) -> HostError {
        HostError { object: object.into(), operation: operation.into(), cause: Cause::Errno(errno.into()) }
    }

    /// An error with a text as its cause.
    pub fn text(
        object: impl Into<String>,
        operation: impl Into<String>,
        text: impl Into<String>,
    ) -> HostError {
        HostError { object: object.into(), operation: operation.into(), cause: Cause::Text(worded(text)) }
    }

    /// An error of the standard library.
    pub fn io(object: impl Into<String>, operation: impl Into<String>, error: &std::io::Error) -> HostError {
        match error.raw_os_error() {
            Some(number) => HostError::new(object, operation, Errno(number)),
            None => HostError::text(object, operation, error.to_string()),
        }
    }

    /// The error number, when the kernel gave one.
    pub fn errno(&self) -> Option<Errno> {
        match self.cause {
            Cause::Errno(errno) => Some(errno),
            Cause::Locked { .. } | Cause::Text(_) => None,
        }
    }

    /// Whether this is the given error number.
    pub fn is(&self, errno: Errno) -> bool {
        self.errno() == Some(errno)
    }
}

impl From<HostError> for Error {
    fn from(error: HostError) -> Error {
        let kind = match &error.cause {
            Cause::Errno(Errno::PERM | Errno::ACCES | Errno::ROFS) => ErrorKind::NotPermitted,
            Cause::Locked { .. } => ErrorKind::InUse,
            _ => ErrorKind::Failed,
        };
        Error::new(kind, error.to_string())
    }
}

/// Reads a file or directory that the kernel lacks as empty.
pub fn absent<T: Default>(error: HostError) -> Result<T, HostError> {
    if error.is(Errno::NOENT) { Ok(T::default()) } else { Err(error) }
}
