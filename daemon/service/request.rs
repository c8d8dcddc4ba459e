//! A request for a change: who asks, and by which method. Each leaves one line in the journal: that of its job, or one of its own.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tracing::Instrument;

use super::call_limits::CallLimits;
use super::caller::Identity;
use super::error::Result;
use super::journal;

/// What a caller may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Root, which polkit is not asked about.
    Root,
    /// Another user, with the permission of polkit. An action is no permission to run code as root.
    User,
}

/// A request.
#[derive(Debug)]
pub struct Request {
    pub identity: Identity,
    /// The polkit action of the method.
    pub action: &'static str,
    method: String,
    /// Object path.
    object: String,
    /// Whether a job does it.
    has_job: AtomicBool,
    /// Of lines in the journal.
    limits: CallLimits,
}

/// What a method does, in a box: some are large.
type Change<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

tokio::task_local! {
    /// The request that the current task carries out.
    static CURRENT: Arc<Request>;
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { user, pid, unit } = &self.identity;
        write!(f, "uid {user}")?;
        if *pid > 0 {
            write!(f, ", pid {pid}")?;
        }
        if !unit.is_empty() {
            write!(f, ", {unit}")?;
        }
        write!(f, ", {}", self.action)
    }
}

impl Request {
    pub(crate) fn new(
        identity: Identity,
        action: &'static str,
        method: String,
        object: String,
        limits: CallLimits,
    ) -> Request {
        Request { identity, action, method, object, has_job: AtomicBool::new(false), limits }
    }

    pub(crate) fn caller(&self) -> Caller {
        if self.identity.user == 0 { Caller::Root } else { Caller::User }
    }

    /// The span whose fields all messages about the request have.
    fn span(&self) -> tracing::Span {
        let Identity { user, pid, unit } = &self.identity;
        tracing::error_span!(
            "call",
            ZRAMD_CALLER_UID = user,
            ZRAMD_CALLER_PID = pid,
            ZRAMD_CALLER_UNIT = unit,
            ZRAMD_POLKIT_ACTION = self.action,
            ZRAMD_METHOD = self.method,
        )
    }

    /// Notes that it was refused.
    pub(crate) fn refuse(&self, why: &str) {
        let _span = self.span().entered();
        journal::refused(&self.method, &self.object, self, why);
    }

    /// Carries it out.
    pub(crate) fn run<'a, T: 'a>(
        self,
        change: impl Future<Output = Result<T>> + Send + 'a,
    ) -> impl Future<Output = Result<T>> + Send + 'a {
        self.carry_out(Box::pin(change))
    }

    async fn carry_out<T>(self, change: Change<'_, T>) -> Result<T> {
        let span = self.span();
        let request = Arc::new(self);
        let work = async {
            tracing::debug!("{} of {}: begins", request.method, request.object);
            let done = change.await;
            match &done {
                // The job leaves the line.
                Ok(_) if request.has_job.load(Ordering::Relaxed) => {}
                // Users other than root must not fill the journal.
                _ if !request.limits.notes(request.identity.user, Instant::now()) => {}
                Err(error) => journal::refused(&request.method, &request.object, &*request, &error.message),
                Ok(_) => journal::changed(&request.method, &request.object, &*request),
            }
            done
        };
        CURRENT.scope(Arc::clone(&request), work).instrument(span).await
    }
}

/// The request for which a job begins.
pub(crate) fn of_job() -> Option<Arc<Request>> {
    let request = CURRENT.try_with(Arc::clone).ok()?;
    request.has_job.store(true, Ordering::Relaxed);
    Some(request)
}
