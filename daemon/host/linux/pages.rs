//! Memory for pages of other processes: page-aligned, locked, excluded from core dumps, and wiped when dropped.

use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::HostError;

/// Whole pages, all zero at first.
#[derive(Debug)]
pub struct Pages {
    start: NonNull<u8>,
    count: usize,
    page: usize,
    mapped: usize,
}

// SAFETY: the memory belongs to this value alone, and is reached through references with the usual rules.
#[allow(unsafe_code)]
unsafe impl Send for Pages {}
// SAFETY: as above; shared references only read.
#[allow(unsafe_code)]
unsafe impl Sync for Pages {}

impl Pages {
    /// `count` pages, locked as far as `RLIMIT_MEMLOCK` allows.
    #[allow(unsafe_code)]
    pub fn new(count: usize) -> Result<Pages, HostError> {
        let page = rustix::param::page_size();
        let length = count.max(1) * page;
        let failed = |errno| HostError::new("memory", "map", errno);
        // SAFETY: a new private mapping at an address that the kernel chooses touches no memory of ours.
        let mapped = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }
        .map_err(failed)?;
        let start = NonNull::new(mapped.cast::<u8>()).ok_or_else(|| failed(rustix::io::Errno::NOMEM))?;
        // SAFETY: the range is the mapping from above. Neither call changes its contents; if they fail, the contents are as
        // protected as in the process that they came from.
        unsafe {
            rustix::mm::madvise(mapped, length, Advice::LinuxDontDump).ok();
            rustix::mm::mlock(mapped, length).ok();
        }
        Ok(Pages { start, count, page, mapped: length })
    }

    /// Number of pages.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Page size in bytes.
    pub fn page_size(&self) -> usize {
        self.page
    }

    #[allow(unsafe_code)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has this length, is readable, initialised by the kernel, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count * self.page) }
    }

    #[allow(unsafe_code)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.count * self.page) }
    }

    pub fn page(&self, index: usize) -> &[u8] {
        &self.bytes()[index * self.page..][..self.page]
    }

    pub fn page_mut(&mut self, index: usize) -> &mut [u8] {
        let page = self.page;
        &mut self.bytes_mut()[index * page..][..page]
    }

    /// Keeps the first `count` pages, and wipes the others.
    pub fn truncate(&mut self, count: usize) {
        if count < self.count {
            let from = count * self.page;
            wipe(&mut self.bytes_mut()[from..]);
            self.count = count;
        }
    }
}

impl Drop for Pages {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        wipe(self.bytes_mut());
        // SAFETY: no reference into the mapping outlives the value that is dropped.
        unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.mapped).ok() };
    }
}

/// Overwrites with zeros, in a way that the compiler does not remove.
#[allow(unsafe_code)]
fn wipe(bytes: &mut [u8]) {
    // SAFETY: the pointer and the length are those of a slice that is borrowed exclusively.
    unsafe { libc::explicit_bzero(bytes.as_mut_ptr().cast(), bytes.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_aligned_and_what_is_cut_off_is_wiped() {
        let mut pages = Pages::new(3).unwrap();
        assert_eq!(pages.bytes().as_ptr().align_offset(pages.page_size()), 0);
        pages.page_mut(1).fill(7);
        pages.page_mut(2).fill(9);
        let last = pages.page(2).as_ptr();
        pages.truncate(2);
        assert_eq!((pages.count(), pages.page(1)[0]), (2, 7));
        assert_eq!(pages.bytes().len(), 2 * pages.page_size());
        #[allow(unsafe_code)]
        // SAFETY: the page is still mapped until `pages` is dropped.
        let seen = unsafe { *last };
        assert_eq!(seen, 0);
    }
}
