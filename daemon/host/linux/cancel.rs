//! A switch by which another thread ends a `swapoff` that takes long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rustix::process::{Pid, Signal, kill_process};

/// Shared between the thread that waits for a child and whoever may lose patience.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    asked: AtomicBool,
    child: AtomicI32,
}

impl Cancel {
    /// Ends the child that is being waited for, and every later one at once.
    ///
    /// `swapoff` looks for signals between pages and then gives up (mm/swapfile.c, `try_to_unuse`): the swap stays
    /// active, with all that was not yet moved.
    pub fn cancel(&self) {
        self.inner.asked.store(true, Ordering::SeqCst);
        self.signal();
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.inner.asked.load(Ordering::SeqCst)
    }

    /// A child is about to be waited for.
    pub(super) fn watch(&self, child: i32) {
        self.inner.child.store(child, Ordering::SeqCst);
        if self.is_cancelled() {
            self.signal();
        }
    }

    /// It was waited for: its number may belong to another process from now on.
    pub(super) fn forget(&self) {
        self.inner.child.store(0, Ordering::SeqCst);
    }

    fn signal(&self) {
        let child = self.inner.child.load(Ordering::SeqCst);
        if let Some(pid) = Pid::from_raw(child).filter(|_| child > 0) {
            // It may just have ended, which is as good.
            kill_process(pid, Signal::TERM).ok();
        }
    }
}
