//! Memory that was freed. How much of it the GNU library keeps is set in `zramd.service`.

/// Gives back what was freed between pieces that are in use, which the library keeps otherwise.
pub fn give_back_now() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)]
    // SAFETY: it touches free memory only, under the lock of the library.
    unsafe {
        // Whether there was any does not matter.
        libc::malloc_trim(0);
    }
}
