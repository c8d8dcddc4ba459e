//! Ending a `swapoff` that takes long, without ending the program that waits for it.
//!
//! The daemon sends SIGTERM to `zramd-setup carry-out`, which hands it on to its child. `swapoff` looks for signals between
//! two pages and then gives up (mm/swapfile.c, `try_to_unuse`): the swap stays active with all that was not yet moved, and
//! whoever waited takes back what it had begun.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The child that is being waited for; 0 is none. A signal handler can only reach what is global.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// Whether SIGTERM has come: a child that is started afterwards has to be ended, too.
static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on SIGTERM ends the child that is being waited for instead of this program.
#[allow(unsafe_code)]
pub fn hand_termination_on() {
    let handler = hand_on as extern "C" fn(libc::c_int);
    // SAFETY: the handler loads an atomic number and calls kill(2), both of which signal-safety(7) allows.
    unsafe {
        libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
    }
}

#[allow(unsafe_code)]
extern "C" fn hand_on(_signal: libc::c_int) {
    ASKED.store(true, Ordering::SeqCst);
    end_child();
}

/// Whether it has come.
pub(super) fn is_asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

#[allow(unsafe_code)]
fn end_child() {
    let child = CHILD.load(Ordering::SeqCst);
    if child > 0 {
        // SAFETY: kill(2) touches no memory of ours; the child has not been waited for, so its number is still its own.
        unsafe {
            libc::kill(child, libc::SIGTERM);
        }
    }
}

/// A child is about to be waited for.
pub(super) fn watch(child: i32) {
    CHILD.store(child, Ordering::SeqCst);
    if is_asked() {
        // It came before there was a child that it could be handed on to.
        end_child();
    }
}

/// It was waited for: its number may belong to another process from now on.
pub(super) fn forget() {
    CHILD.store(0, Ordering::SeqCst);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// As if SIGTERM came while `work` is not yet waiting for a child.
    pub fn after_termination<T>(work: impl FnOnce() -> T) -> T {
        hand_on(libc::SIGTERM);
        let done = work();
        ASKED.store(false, Ordering::SeqCst);
        done
    }
}
