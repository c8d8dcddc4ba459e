//! Jobs: work that takes longer than a method call may. Each is an object with progress, and can be cancelled.

use std::fmt::Display;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::MutexGuard;
use tracing::Instrument;
use zbus::OwnedObjectPath;
use zbus::object_server::SignalEmitter;

use super::core::Core;
use super::error::{Error, ErrorKind, Result};
use super::handle::Handle;
use super::job::{Job, JobSignals, Subject};
use super::lock::lock;
use super::request::{self, Request};
use super::work::Call;
use logic::outcome::Outcome;
use logic::text::worded;
use logic::work::Ending;

/// Maximum number of jobs that wait or run.
const MOST: usize = 16;
/// Time that an ended job stays on the bus.
const MEMORY: Duration = Duration::from_secs(30);
/// Maximum number of ended jobs on the bus.
const MOST_ENDED: usize = 64;

/// Time that a method without a job waits for other changes; less than the usual timeout of callers (25 s).
const PATIENCE: Duration = Duration::from_secs(10);

/// The work of a job.
type Doing = Pin<Box<dyn Future<Output = Result<String>> + Send>>;

/// The path of a job.
pub fn path(number: u32) -> String {
    format!("{}/job/{number}", super::ROOT)
}

impl Core {
    /// Starts a job that is serialised with all other changes. Returns its path at once.
    pub async fn start<F>(
        self: &Arc<Self>,
        kind: &'static str,
        subject: impl Into<Subject>,
        work: impl FnOnce(Arc<Core>, Handle) -> F + Send + 'static,
    ) -> Result<OwnedObjectPath>
    where
        F: Future<Output = Result<String>> + Send + 'static,
    {
        self.begin(kind, subject.into(), true, Box::new(|core, handle| Box::pin(work(core, handle)))).await
    }

    /// Starts a job that `zramd-worker` does, in parallel to changes. Fails at once if the same work is in progress.
    pub async fn start_work(
        self: &Arc<Self>,
        kind: &'static str,
        subject: impl Into<Subject>,
        call: Call,
    ) -> Result<OwnedObjectPath> {
        let claim = self.claims.claim(&call.order.work())?;
        let work = async move |core: Arc<Core>, handle: Handle| core.work(&handle.with(claim), call).await;
        self.start_beside(kind, subject, work).await
    }

    /// Starts a job that runs in parallel to changes. It has to claim what it works on ([`Core::claims`]).
    pub async fn start_beside<F>(
        self: &Arc<Self>,
        kind: &'static str,
        subject: impl Into<Subject>,
        work: impl FnOnce(Arc<Core>, Handle) -> F + Send + 'static,
    ) -> Result<OwnedObjectPath>
    where
        F: Future<Output = Result<String>> + Send + 'static,
    {
        self.begin(kind, subject.into(), false, Box::new(|core, handle| Box::pin(work(core, handle)))).await
    }

    /// Waits for other changes, for methods without a job; fails before the caller would time out.
    pub async fn wait_for_changes(&self) -> Result<MutexGuard<'_, ()>> {
        self.wait_for_changes_within(PATIENCE).await
    }

    async fn wait_for_changes_within(&self, patience: Duration) -> Result<MutexGuard<'_, ()>> {
        tokio::time::timeout(patience, self.change_lock.lock()).await.map_err(|_| {
            let what = lock(&self.jobs).changing.clone();
            let what = if what.is_empty() { "another change" } else { &what };
            Error::new(ErrorKind::Busy, format!("{what} is in progress; try again later"))
        })
    }

    async fn begin(
        self: &Arc<Self>,
        kind: &'static str,
        subject: Subject,
        alone: bool,
        work: Box<dyn FnOnce(Arc<Core>, Handle) -> Doing + Send>,
    ) -> Result<OwnedObjectPath> {
        let number = {
            let mut jobs = lock(&self.jobs);
            if jobs.unfinished >= MOST {
                return Err(Error::new(ErrorKind::LimitExceeded, format!("{MOST} jobs are waiting already")));
            }
            jobs.unfinished += 1;
            jobs.last += 1;
            jobs.last
        };
        let what = format!("{kind} {} ({})", subject.name, path(number)).replace("  ", " ");
        // Its fields are those of the call, too.
        let span = tracing::error_span!(
            "job",
            ZRAMD_JOB = number,
            ZRAMD_JOB_TYPE = kind,
            ZRAMD_OBJECT = subject.name,
            ZRAMD_DEVICE = subject.device(),
            ZRAMD_RAMDISK = subject.ramdisk(),
        );
        let request = request::of_job();
        let owner = request.as_ref().map(|request| request.identity.user);
        let begun = self.publish(number, kind, subject, owner).await;
        let handle = match begun {
            Ok(handle) => handle,
            Err(error) => {
                lock(&self.jobs).unfinished -= 1;
                return Err(error.into());
            }
        };
        let core = Arc::clone(self);
        let job = async move {
            let begins = async {
                if !alone {
                    return None;
                }
                let guard = core.change_lock.lock().await;
                lock(&core.jobs).changing = what;
                Some(guard)
            };
            // A waiting job can be cancelled before it begins.
            let guard = tokio::select! {
                guard = begins => guard,
                () = handle.cancelled.notified() => None,
            };
            tracing::debug!("{kind}: begins");
            let result = if handle.cancel.is_cancelled() {
                Err(Error::new(ErrorKind::Cancelled, "cancelled before it began"))
            } else {
                work(Arc::clone(&core), handle.clone()).await
            };
            if guard.is_some() {
                lock(&core.jobs).changing.clear();
            }
            drop(guard);
            core.finish(kind, request.as_deref(), &handle, result).await;
        };
        tokio::spawn(job.instrument(span));
        path(number).try_into().map_err(|error: zbus::Error| error.into())
    }

    async fn publish(
        &self,
        number: u32,
        kind: &'static str,
        subject: Subject,
        owner: Option<u32>,
    ) -> zbus::Result<Handle> {
        let mut handle = Handle { number, ..Handle::unwatched() };
        lock(&handle.state).owner = owner;
        let Some(connection) = self.connection() else { return Ok(handle) };
        let (state, cancel) = (Arc::clone(&handle.state), handle.cancel.clone());
        let cancelled = Arc::clone(&handle.cancelled);
        let job = Job::new(kind, subject, state, cancel, cancelled, self.call_limits.clone());
        let server = connection.object_server();
        server.at(path(number), job).await?;
        lock(&self.jobs).published.insert(number);
        handle.object = Some(server.interface(path(number)).await?);
        Ok(handle)
    }

    /// Publishes how the job ended, and schedules its removal.
    async fn finish(
        self: &Arc<Self>,
        kind: &'static str,
        request: Option<&Request>,
        handle: &Handle,
        result: Result<String>,
    ) {
        self.changed.notify_one();
        lock(&self.jobs).unfinished -= 1;
        let (result, error, message) = match result {
            Ok(message) => (Ending::Done, None, worded(message)),
            Err(error) if error.kind == ErrorKind::Cancelled || handle.cancel.is_cancelled() => {
                (Ending::Cancelled, Some(ErrorKind::Cancelled), error.0.message)
            }
            Err(error) if error.kind == ErrorKind::Postponed => {
                (Ending::Postponed, Some(error.kind), error.0.message)
            }
            Err(error) => (Ending::Failed, Some(error.kind), error.0.message),
        };
        let who = request.map(|request| request as &dyn Display);
        super::journal::ended(kind, who, result, &message, error.is_some_and(ErrorKind::is_slip));
        let Some(object) = handle.object.clone() else { return };
        let (error, outcomes) = {
            let mut state = lock(&handle.state);
            state.result = Some(result);
            state.message.clone_from(&message);
            state.error = error;
            if error.is_some() && state.outcomes.iter().all(Outcome::is_done) {
                // None of them has the error, so the message is the outcome.
                state.outcomes.clear();
            }
            if result == Ending::Done {
                state.progress = 1.0;
            }
            (state.error(), state.outcomes())
        };
        let emitter: SignalEmitter<'_> = object.signal_emitter().clone();
        {
            let job = object.get().await;
            // Errors are ignored: there may be no receiver.
            job.progress_changed(&emitter).await.ok();
            job.message_changed(&emitter).await.ok();
            job.error_changed(&emitter).await.ok();
            job.outcomes_changed(&emitter).await.ok();
            // Last, so that a client that sees it has the other values.
            job.result_changed(&emitter).await.ok();
        }
        object.finished(result.word(), &message, error, outcomes).await.ok();
        let too_many = {
            let ended = &mut lock(&self.jobs).ended;
            ended.push_back(handle.number);
            (ended.len() > MOST_ENDED).then(|| ended.pop_front()).flatten()
        };
        if let Some(number) = too_many {
            self.forget(number).await;
        }
        let core = Arc::clone(self);
        let number = handle.number;
        tokio::spawn(async move {
            tokio::time::sleep(MEMORY).await;
            lock(&core.jobs).ended.retain(|other| *other != number);
            core.forget(number).await;
        });
    }

    /// Takes a job off the bus.
    async fn forget(&self, number: u32) {
        lock(&self.jobs).published.remove(&number);
        if let Some(connection) = self.connection() {
            // On failure the object stays and costs a few hundred bytes.
            connection.object_server().remove::<Job, _>(path(number)).await.ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Mode;
    use crate::setup::Source;

    #[test]
    fn a_method_waits_for_other_changes_with_a_limit() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let core = Core::new(Source::default(), Mode::Direct);
            let (begun, mut begins) = tokio::sync::mpsc::channel(1);
            let (end, mut ends) = tokio::sync::mpsc::channel::<()>(1);
            let work = async move |_, _| {
                begun.send(()).await.unwrap();
                ends.recv().await;
                Ok(String::new())
            };
            core.start("resize", "zram3".to_owned(), work).await.unwrap();
            begins.recv().await.unwrap();
            let refused = core.wait_for_changes_within(Duration::from_millis(5)).await.unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Busy);
            assert!(refused.message.contains("resize zram3 (/org/zramd1/job/1)"), "{refused:?}");
            drop(end);
            drop(core.wait_for_changes().await.unwrap());
        });
    }
}
