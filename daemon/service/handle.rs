//! A job, as seen by the code that runs it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use zbus::object_server::InterfaceRef;

use super::claims::{Claim, Claims};
use super::error::{Error, ErrorKind, Result};
use super::job::{Job, State};
use super::lock::lock;
use super::setup::Cancel;
use logic::outcome::Outcome;

/// Interval of progress updates.
const LOOK: Duration = Duration::from_millis(250);

/// The running side of a job.
#[derive(Clone)]
pub struct Handle {
    pub number: u32,
    /// Cancels the job.
    pub cancel: Cancel,
    /// Notified when the job is cancelled, for code that waits for other changes or for PID 1.
    pub cancelled: Arc<tokio::sync::Notify>,
    /// The claim that the job holds.
    pub claim: Option<Arc<Claim>>,
    pub state: Arc<Mutex<State>>,
    /// Its object on the bus.
    pub object: Option<InterfaceRef<Job>>,
}

impl Handle {
    /// A handle without a job, for internal work: no progress is published.
    pub fn unwatched() -> Handle {
        Handle {
            number: 0,
            cancel: Cancel::default(),
            cancelled: Arc::default(),
            claim: None,
            state: Arc::default(),
            object: None,
        }
    }

    /// The same with a claim on a name, after the work in progress.
    pub async fn after_others(&self, claims: &Claims, name: &str) -> Result<Handle> {
        tokio::select! {
            claim = claims.wait(name) => Ok(self.clone().with(claim)),
            () = self.cancelled.notified() => Err(Error::new(ErrorKind::Cancelled, "cancelled before it began")),
        }
    }

    /// The same with a claim.
    pub fn with(self, claim: Arc<Claim>) -> Handle {
        Handle { claim: Some(claim), ..self }
    }

    /// A handle for cleaning up after the job: it keeps the claim, but publishes no progress and cannot be cancelled.
    pub fn quietly(&self) -> Handle {
        Handle { claim: self.claim.clone(), ..Handle::unwatched() }
    }

    /// Sets the outcome of each target, published when the job ends. Without any, the message of the job is the outcome.
    pub fn outcomes(&self, outcomes: Vec<Outcome>) {
        lock(&self.state).outcomes = outcomes;
    }

    /// Publishes the progress that `look` returns (0 to 1) until `work` ends. Both wait for the bus, so both are always polled: either
    /// may be the next in turn to send a message.
    pub async fn watch<T, F>(&self, work: impl Future<Output = T>, look: impl Fn() -> F) -> T
    where
        F: Future<Output = Option<f64>>,
    {
        let report = async {
            let mut ticks = tokio::time::interval(LOOK);
            loop {
                ticks.tick().await;
                if let Some(share) = look().await {
                    self.progress(share).await;
                }
            }
        };
        tokio::select! {
            done = work => done,
            never = report => never,
        }
    }

    /// Publishes the progress, 0 to 1; limited to a few times a second.
    pub async fn progress(&self, share: f64) {
        let Some(object) = &self.object else { return };
        lock(&self.state).progress = share.clamp(0.0, 1.0);
        let job = object.get().await;
        // Errors are ignored: the signal is optional.
        job.progress_changed(object.signal_emitter()).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_its_progress_take_turns() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            // As that of zbus for messages.
            let turn = Arc::new(tokio::sync::Mutex::new(()));
            let first = Arc::clone(&turn).lock_owned().await;
            tokio::spawn(async move {
                tokio::time::sleep(LOOK * 3 / 2).await;
                drop(first);
            });
            let work = async { drop(turn.lock().await) };
            let look = async || {
                drop(turn.lock().await);
                None
            };
            let done = tokio::time::timeout(LOOK * 100, Handle::unwatched().watch(work, look)).await;
            assert!(done.is_ok(), "the work waits for its turn, and is not asked to take it");
        });
    }
}
