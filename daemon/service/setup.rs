//! Having `zramd-setup` do what takes the planner, the TOML reader or rights over mounts: it is there for moments only.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;

use super::bus::error::Result;
use super::lane;
use host::linux::process;

/// How long `zramd-setup` may take for what it reads, writes and changes in one go; it may wait 50 s for its lock.
const LIMIT: Duration = Duration::from_secs(120);
/// How long it may take to carry out changes: pages of swap are moved, perhaps from a slow disk. The caller can cancel.
const CARRY_OUT_LIMIT: Duration = Duration::from_secs(3600);

/// A switch that ends early what `zramd-setup` waits for, or what `zramd-worker` does.
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
    /// Asks the program that runs to give up.
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
            // It may just have ended, which is as good.
            kill_process(pid, Signal::TERM).ok();
        }
    }
}

/// Where the configuration comes from, as arguments of `zramd-setup`.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// `--config`: this file instead of the roots.
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
