//! Being asked to end early: SIGTERM and SIGINT are noted, and whoever works looks now and then.

use std::sync::atomic::{AtomicBool, Ordering};

/// A signal handler can only reach what is global.
static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on SIGTERM and SIGINT are noted instead of ending this program. System calls that wait are interrupted.
#[allow(unsafe_code)]
pub fn watch() {
    let handler = note as extern "C" fn(libc::c_int);
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: all fields of `sigaction` are numbers, sets or pointers, for which zeros are valid.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as libc::sighandler_t;
        // SAFETY: the handler only stores an atomic value, which signal-safety(7) allows, and `action` lives long enough.
        unsafe {
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Whether we were asked to end.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// Asks another program, which has not been waited for, to end.
pub fn ask(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
    }
}

extern "C" fn note(_signal: libc::c_int) {
    ASKED.store(true, Ordering::SeqCst);
}
