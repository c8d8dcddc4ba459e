//! CPU and I/O priority.

/// Gives this thread and its later children the highest nice value. Errors are ignored.
#[allow(unsafe_code)]
pub fn low() {
    // SAFETY: the call takes numbers only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
}

/// Gives this thread the lowest real-time priority, or takes it back: with it, the thread gets a CPU at once when it wakes up (sched(7)).
/// Errors are ignored: with `CONFIG_RT_GROUP_SCHED`, a kernel may allow it for no service.
pub fn real_time(is_on: bool) {
    if is_on { schedule(libc::SCHED_FIFO, 1) } else { schedule(libc::SCHED_OTHER, 0) }
}

/// Gives this process and its later children the idle CPU and I/O priority. Errors are ignored.
pub fn lowest() {
    schedule(libc::SCHED_IDLE, 0);
    low();
}

#[allow(unsafe_code)]
fn schedule(policy: i32, sched_priority: i32) {
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: it reads a structure that outlives it.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
}
