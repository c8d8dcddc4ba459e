//! Sending memory of our own to swap, and telling when it comes back.

use std::ffi::c_void;

use rustix::mm::Advice;

use crate::HostError;

/// Has the kernel give this process single pages only, no huge ones.
pub fn single_pages() -> Result<(), HostError> {
    rustix::thread::disable_transparent_huge_pages(true)
        .map_err(|errno| HostError::new("process", "refuse huge pages", errno))
}

/// Sends the whole pages in `memory` to swap (`MADV_PAGEOUT`, Linux 5.4). The kernel keeps those that find no room there.
#[allow(unsafe_code)]
pub fn page_out(memory: &mut [u8]) -> Result<(), HostError> {
    let page = rustix::param::page_size();
    let skipped = memory.as_ptr().align_offset(page).min(memory.len());
    let inside = &mut memory[skipped..];
    let start: *mut c_void = inside.as_mut_ptr().cast();
    // SAFETY: the range is borrowed exclusively, and its contents stay the same.
    unsafe { rustix::mm::madvise(start, inside.len() / page * page, Advice::LinuxPageOut) }
        .map_err(|errno| HostError::new("memory", "page out", errno))
}

/// Page faults of this thread that had to wait for a device so far.
#[allow(unsafe_code)]
pub fn major_faults() -> u64 {
    // SAFETY: all fields of `rusage` are numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writes to a local variable.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    u64::try_from(usage.ru_majflt).unwrap_or(0)
}
