//! The time of day, and processor time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use logic::duration::micros;

/// Seconds since 1970; 0 when the clock is before that.
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Microseconds since 1970; 0 when the clock is before that.
pub fn unix_usec() -> u64 {
    micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Time since boot, including suspend.
pub fn since_boot() -> Duration {
    time(rustix::time::ClockId::Boottime)
}

/// Time since boot without suspend.
pub fn monotonic() -> Duration {
    time(rustix::time::ClockId::Monotonic)
}

/// Processor time of the calling thread, in the kernel too.
pub fn thread_processor_time() -> Duration {
    time(rustix::time::ClockId::ThreadCPUTime)
}

fn time(id: rustix::time::ClockId) -> Duration {
    let now = rustix::time::clock_gettime(id);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Processor time of the calling thread since it had this much: other programs do not lengthen it.
pub fn thread_processor_time_since(before: Duration) -> Duration {
    thread_processor_time().saturating_sub(before)
}

/// Time since 1970 if the kernel considers its clock synchronised.
pub fn synchronised() -> Option<Duration> {
    if !is_synchronised() {
        return None;
    }
    SystemTime::now().duration_since(UNIX_EPOCH).ok()
}

#[allow(unsafe_code)]
fn is_synchronised() -> bool {
    // SAFETY: all fields of `timex` are numbers, for which zeros are valid; with no modes set nothing is changed.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live variable of the right type.
    let answer = unsafe { libc::adjtimex(&raw mut state) };
    answer >= 0 && answer != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0
}
