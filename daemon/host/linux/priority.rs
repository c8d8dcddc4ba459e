//! Idle CPU and I/O priority.

/// Gives this process and its later children the idle CPU and I/O priority. Errors are ignored.
#[allow(unsafe_code)]
pub fn lowest() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the first call reads a structure that outlives it, the others take numbers only.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters);
        libc::setpriority(libc::PRIO_PROCESS, 0, 19);
    }
}
