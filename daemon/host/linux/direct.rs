//! Block devices and files with direct I/O: a request returns when the device has completed it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::HostError;

/// An open device. Offsets, lengths and buffers are whole pages.
#[derive(Debug)]
pub struct Direct {
    file: File,
    path: PathBuf,
}

impl Direct {
    /// Opens a device node for reading, and for writing if `writable`. Closing a writable descriptor makes udev probe the
    /// device.
    pub fn open(path: &Path, writable: bool) -> Result<Direct, HostError> {
        let file = OpenOptions::new()
            .read(true)
            .write(writable)
            .custom_flags(libc::O_DIRECT | libc::O_CLOEXEC)
            .open(path)
            .map_err(|error| HostError::io(path.display().to_string(), "open", &error))?;
        Ok(Direct { file, path: path.to_owned() })
    }

    /// Reads all of `buffer`.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), HostError> {
        self.file.read_exact_at(buffer, offset).map_err(|error| self.failed("read", &error))
    }

    /// Writes all of `data`.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), HostError> {
        self.file.write_all_at(data, offset).map_err(|error| self.failed("write", &error))
    }

    fn failed(&self, operation: &'static str, error: &std::io::Error) -> HostError {
        HostError::io(self.path.display().to_string(), operation, error)
    }
}
