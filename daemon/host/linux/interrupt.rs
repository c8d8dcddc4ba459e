//! Early end on request: SIGTERM and SIGINT set a flag, which long work polls.

use std::sync::atomic::{AtomicBool, Ordering};

/// Static, because a signal handler can reach nothing else.
static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on SIGTERM and SIGINT set the flag instead of ending this program. Blocking system calls return EINTR.
#[allow(unsafe_code)]
pub fn watch() {
    let handler = note as extern "C" fn(libc::c_int);
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: all fields of `sigaction` are numbers, sets or pointers, for which zeros are valid.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as libc::sighandler_t;
        // SAFETY: the handler only stores an atomic value, which signal-safety(7) allows; `action` outlives the call.
        unsafe {
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Whether SIGTERM or SIGINT was received.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

extern "C" fn note(_signal: libc::c_int) {
    ASKED.store(true, Ordering::SeqCst);
}
