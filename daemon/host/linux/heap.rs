//! What the C library does with memory that was freed.

/// Has freed memory given back to the machine.
///
/// The GNU library learns from the largest piece that was ever freed how much it keeps for later. Whoever sends one message
/// of 30 MiB, which takes no rights, has it keep 60 MiB for good. Saying how much it may keep ends the learning.
pub fn give_back_freed() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)]
    // SAFETY: it sets a number of the library, which has a lock for that.
    unsafe {
        // Its own default. If it is refused, only memory is lost.
        libc::mallopt(libc::M_TRIM_THRESHOLD, 128 * 1024);
    }
}
