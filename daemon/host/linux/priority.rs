//! CPU and I/O priority.

/// Gives this thread and its later children the highest nice value. Errors are ignored.
#[allow(unsafe_code)]
pub fn low() {
    // SAFETY: the call takes numbers only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
}

/// Gives this thread the lowest real-time priority, or takes it back: with it, the thread gets a CPU at once when it wakes up (sched(7)).
/// Errors are ignored: with `CONFIG_RT_GROUP_SCHED`, a kernel may allow it for no service.
#[allow(unsafe_code)]
pub fn real_time(is_on: bool) {
    let (policy, sched_priority) = if is_on { (libc::SCHED_FIFO, 1) } else { (libc::SCHED_OTHER, 0) };
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: it reads a structure that outlives it.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
}

/// Gives this process and its later children the idle CPU and I/O priority. Errors are ignored.
#[allow(unsafe_code)]
pub fn lowest() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: it reads a structure that outlives it.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
    low();
}
