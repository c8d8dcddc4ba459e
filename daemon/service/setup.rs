//! Running `zramd-setup`, which has the planner, the TOML parser, and rights over mounts.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;

use super::bus::error::Result;
use super::lane;
use host::linux::process;

/// Time limit for reading, writing and planning; `zramd-setup` may wait 50 s for its lock.
const LIMIT: Duration = Duration::from_secs(120);
/// Time limit for changes: pages of swap are moved, perhaps to a slow disk. The caller can cancel.
const CARRY_OUT_LIMIT: Duration = Duration::from_secs(3600);

/// Cancels a running `zramd-setup` or `zramd-worker`.
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
    /// Sends SIGTERM to the running program.
    pub fn cancel(&self) {
        self.inner.asked.store(true, Ordering::SeqCst);
        self.signal();
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.inner.asked.load(Ordering::SeqCst)
    }

    pub(super) fn watch(&self, child: u32) {
        self.inner.child.store(i32::try_from(child).unwrap_or(0), Ordering::SeqCst);
        if self.is_cancelled() {
            self.signal();
        }
    }

    pub(super) fn forget(&self) {
        self.inner.child.store(0, Ordering::SeqCst);
    }

    fn signal(&self) {
        let child = self.inner.child.load(Ordering::SeqCst);
        if let Some(pid) = Pid::from_raw(child).filter(|_| child > 0) {
            // It may just have ended, which is not an error.
            kill_process(pid, Signal::TERM).ok();
        }
    }
}

/// The source of the configuration, as arguments of `zramd-setup`.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// `--config`: this file instead of the usual ones.
    pub file: Option<PathBuf>,
}

impl Source {
    /// Runs a command of `zramd-setup` on a blocking thread, and returns its reply.
    pub async fn ask<T: DeserializeOwned + Send + 'static>(
        &self,
        words: &[&str],
        cancel: &Cancel,
    ) -> Result<T> {
        let mut command = process::ours("zramd-setup");
        if let Some(file) = &self.file {
            command.arg("--config").arg(file);
        }
        command.args(words);
        let limit = if words.first() == Some(&"carry-out") { CARRY_OUT_LIMIT } else { LIMIT };
        let cancel = cancel.clone();
        lane::run(move || process::ask(&mut command, limit, |child| cancel.watch(child))).await
    }
}
