//! Standing back: the CPU, and the disk, for everybody else first.

/// Makes this process, and what it starts from now on, run only where nothing else wants to. What the kernel refuses is left.
#[allow(unsafe_code)]
pub fn lowest() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the first call reads a structure that outlives it, the others take numbers only.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters);
        libc::setpriority(libc::PRIO_PROCESS, 0, 19);
    }
}
