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
        // What large replies and files need is not taken from the heap, where later small pieces would keep its pages in use.
        libc::mallopt(libc::M_MMAP_THRESHOLD, 16 * 1024);
        // Threads of a moment would leave heaps of their own behind.
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Gives back at once what was freed between pieces that are in use, which the threshold does not reach.
pub fn give_back_now() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)]
    // SAFETY: it touches free memory only, under the lock of the library.
    unsafe {
        // Whether there was any does not matter.
        libc::malloc_trim(0);
    }
}
