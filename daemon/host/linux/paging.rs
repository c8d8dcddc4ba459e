//! Moving our own memory to swap, and counting page faults.

use std::ffi::c_void;

use rustix::mm::Advice;

use crate::HostError;

/// Disables transparent huge pages for this process.
pub fn single_pages() -> Result<(), HostError> {
    rustix::thread::disable_transparent_huge_pages(true)
        .map_err(|errno| HostError::new("process", "refuse huge pages", errno))
}

/// Moves the whole pages in `memory` to swap (`MADV_PAGEOUT`, Linux 5.4). Pages that do not fit stay in memory.
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

/// Which pages are in memory, also those on their way to swap (mincore(2)). `memory` begins at the start of a page, or what is before
/// the first one is left out.
#[allow(unsafe_code)]
pub fn in_memory(memory: &mut [u8]) -> Result<Vec<bool>, HostError> {
    let page = rustix::param::page_size();
    let skipped = memory.as_ptr().align_offset(page).min(memory.len());
    let inside = &mut memory[skipped..];
    let mut found = vec![0; inside.len() / page];
    // SAFETY: the range is borrowed, and `found` has a byte for each of its pages.
    if unsafe { libc::mincore(inside.as_mut_ptr().cast(), found.len() * page, found.as_mut_ptr()) } == 0 {
        return Ok(found.into_iter().map(|byte: u8| byte & 1 == 1).collect());
    }
    Err(HostError::io("memory", "mincore", &std::io::Error::last_os_error()))
}

/// Major page faults of this thread.
#[allow(unsafe_code)]
pub fn major_faults() -> u64 {
    // SAFETY: all fields of `rusage` are numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writes to a local variable.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    u64::try_from(usage.ru_majflt).unwrap_or(0)
}
