//! Ending a long `swapoff` without ending the program that waits for it.
//!
//! The daemon sends SIGTERM to `zramd-setup carry-out`, which forwards it to its child. `swapoff` checks for signals after
//! each page and then gives up (mm/swapfile.c, `try_to_unuse`): the swap stays active with the pages that were not moved
//! yet, and `zramd-setup` undoes the steps before it.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A pidfd of the child that is being waited for; -1 for none. Static, because a signal handler can reach nothing else.
static CHILD: AtomicI32 = AtomicI32::new(-1);

/// Whether SIGTERM was received. A child that is started afterwards is ended as well.
static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on SIGTERM ends the child that is being waited for, not this program.
#[allow(unsafe_code)]
pub fn hand_termination_on() {
    let handler = hand_on as extern "C" fn(libc::c_int);
    // SAFETY: the handler loads an atomic number and makes a system call.
    unsafe {
        libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
    }
}

#[allow(unsafe_code)]
extern "C" fn hand_on(_signal: libc::c_int) {
    ASKED.store(true, Ordering::SeqCst);
    end_child();
}

/// Whether SIGTERM was received.
pub(super) fn is_asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

#[allow(unsafe_code)]
fn end_child() {
    let child = CHILD.load(Ordering::SeqCst);
    if child >= 0 {
        // SAFETY: pidfd_send_signal(2) takes numbers and a null pointer here. A descriptor that was closed just now is an error.
        unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, child, libc::SIGTERM, std::ptr::null::<u8>(), 0);
        }
    }
}

/// A child that SIGTERM ends, until this is dropped.
pub(super) struct Watched(Option<OwnedFd>);

/// Registers a child before waiting for it.
pub(super) fn watch(child: i32) -> Watched {
    let pidfd = Pid::from_raw(child).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    CHILD.store(pidfd.as_ref().map_or(-1, AsRawFd::as_raw_fd), Ordering::SeqCst);
    if is_asked() {
        // SIGTERM was received before the child was registered.
        end_child();
    }
    Watched(pidfd)
}

impl Drop for Watched {
    fn drop(&mut self) {
        CHILD.store(-1, Ordering::SeqCst);
        // Closed after that.
        self.0.take();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Runs `work` as if SIGTERM had been received before it starts a child.
    pub fn after_termination<T>(work: impl FnOnce() -> T) -> T {
        hand_on(libc::SIGTERM);
        let done = work();
        ASKED.store(false, Ordering::SeqCst);
        done
    }
}
