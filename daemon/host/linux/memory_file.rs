//! A file in memory for the kernel to read: without a name, and never in swap.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::mm::{MapFlags, MlockAllFlags, ProtFlags};

use crate::host::HostError;

/// Contents that are there until this value goes, or the process ends.
#[derive(Debug)]
pub struct MemoryFile {
    file: OwnedFd,
    mapped: NonNull<u8>,
    length: usize,
}

fn failed(operation: &'static str) -> impl Fn(rustix::io::Errno) -> HostError {
    move |errno| HostError::new("memfd", operation, errno)
}

/// Keeps all memory of this process out of swap from now on, and out of core dumps.
pub fn keep_all_in_memory() -> Result<(), HostError> {
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(failed("refuse core dumps"))?;
    match rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT) {
        // Only root measures real pages, and root may lock as much as it likes.
        Err(rustix::io::Errno::NOMEM | rustix::io::Errno::PERM) if !rustix::process::geteuid().is_root() => {
            Ok(())
        }
        done => done.map_err(failed("lock")),
    }
}

impl MemoryFile {
    /// A file with these contents.
    #[allow(unsafe_code)]
    pub fn new(contents: &[u8]) -> Result<MemoryFile, HostError> {
        let writable = rustix::fs::memfd_create("zramd", MemfdFlags::CLOEXEC).map_err(failed("create"))?;
        let length = contents.len().max(1);
        rustix::fs::ftruncate(&writable, length as u64).map_err(failed("size"))?;
        // kernel_read_file (fs/kernel_read_file.c) refuses a file that somebody has open for writing.
        let path = format!("/proc/self/fd/{}", writable.as_raw_fd());
        let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(failed("open for reading"))?;
        // SAFETY: a new shared mapping at an address that the kernel chooses touches no memory of ours, and nobody reads it.
        let mapped = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, &file, 0)
        }
        .map_err(failed("map"))?;
        let mapped =
            NonNull::new(mapped.cast::<u8>()).ok_or_else(|| failed("map")(rustix::io::Errno::NOMEM))?;
        let memory = MemoryFile { file, mapped, length };
        // SAFETY: the range is the mapping from above; locking changes nothing in it. Where it is refused, the contents are as safe as
        // the memory they came from.
        unsafe { rustix::mm::mlock(memory.mapped.as_ptr().cast(), length).ok() };
        let mut writable = File::from(writable);
        writable.write_all(contents).map_err(|error| HostError::io("memfd", "write", &error))?;
        Ok(memory)
    }

    /// Where this process, and the kernel on its behalf, find it.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }
}

impl Drop for MemoryFile {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it was ever made.
        unsafe { rustix::mm::munmap(self.mapped.as_ptr().cast(), self.length).ok() };
    }
}
