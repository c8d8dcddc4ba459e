//! A job, from the point of view of the code that does it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use zbus::object_server::InterfaceRef;

use super::bus::job::{Job, State};
use super::claims::Claim;
use super::lock::lock;
use super::setup::Cancel;
use logic::outcome::Outcome;

/// How often progress is looked at.
pub(super) const LOOK: Duration = Duration::from_millis(250);

/// One job, from the point of view of whoever does it.
#[derive(Clone)]
pub struct Handle {
    /// Its number.
    pub number: u32,
    /// Ends it early.
    pub cancel: Cancel,
    /// Wakes whoever waits for something else than the kernel.
    pub cancelled: Arc<tokio::sync::Notify>,
    /// What it has to itself already.
    pub claim: Option<Arc<Claim>>,
    /// What is published about it.
    pub state: Arc<Mutex<State>>,
    /// Its object on the bus.
    pub object: Option<InterfaceRef<Job>>,
}

impl Handle {
    /// A handle for work that nobody watches.
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

    /// The same with something to itself.
    pub fn with(self, claim: Arc<Claim>) -> Handle {
        Handle { claim: Some(claim), ..self }
    }

    /// A handle for what is to be put right after the job: nobody watches it, and what the job has to itself stays so.
    pub fn quietly(&self) -> Handle {
        Handle { claim: self.claim.clone(), ..Handle::unwatched() }
    }

    /// Notes what became of each target, for the end of the job. With none, its sentence is the outcome.
    pub fn outcomes(&self, outcomes: Vec<Outcome>) {
        lock(&self.state).outcomes = outcomes;
    }

    /// Publishes what `look` finds now and then until `work` ends: how far it is, 0 to 1, or nothing.
    pub async fn watch<T, F>(&self, work: impl Future<Output = T>, look: impl Fn() -> F) -> T
    where
        F: Future<Output = Option<f64>>,
    {
        let mut work = std::pin::pin!(work);
        let mut ticks = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                done = &mut work => return done,
                _ = ticks.tick() => if let Some(share) = look().await {
                    self.progress(share).await;
                }
            }
        }
    }

    /// Publishes how far it is, 0 to 1; at most a few times a second.
    pub async fn progress(&self, share: f64) {
        let Some(object) = &self.object else { return };
        lock(&self.state).progress = share.clamp(0.0, 1.0);
        let job = object.get().await;
        // Nobody has to listen.
        job.progress_changed(object.signal_emitter()).await.ok();
    }
}
