//! Running `zramd-setup`, which has the planner, the TOML parser, and rights over mounts.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::blocking;
use super::error::Result;
use super::lock::lock;
use host::linux::process::{self, Pidfd};

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
    child: Mutex<Option<Pidfd>>,
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

    /// Sets the running program; `None` when it has ended.
    pub(super) fn watch(&self, child: Option<Pidfd>) {
        *lock(&self.inner.child) = child;
        if self.is_cancelled() {
            self.signal();
        }
    }

    fn signal(&self) {
        if let Some(child) = &*lock(&self.inner.child) {
            child.terminate();
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
        let begun = Instant::now();
        let reply =
            blocking::run(move || process::ask(&mut command, limit, |child| cancel.watch(child))).await;
        tracing::debug!("zramd-setup {}: {} ms", words.join(" "), begun.elapsed().as_millis());
        reply
    }
}
