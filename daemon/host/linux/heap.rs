//! Freed memory. `zramd.service` sets how much of it glibc keeps.

/// Returns free memory between blocks that are in use to the kernel, which glibc would keep.
pub fn give_back_now() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)]
    // SAFETY: malloc_trim touches free memory only, under the lock of the library.
    unsafe {
        // The result only says whether there was any.
        libc::malloc_trim(0);
    }
}
