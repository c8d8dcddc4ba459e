//! Plans that are made before their jobs, so that mistakes are errors of the call.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinHandle;
use tracing::Instrument;

use super::blocking;
use super::core::Core;
use super::error::{Error, ErrorKind, Result};
use super::handle::Handle;
use super::reconcile::{Wish, reconcile, told};
use logic::change::Action;
use logic::view::Proposal;

/// How long a call waits for the plan before it returns a job. Linux blocks reads of a device during recompression.
const PLANNING: Duration = Duration::from_secs(2);

/// A plan, and how to make it again.
pub(super) struct Planned<P> {
    plan: P,
    /// The number of changes before; `None` if one was being made.
    changes: Option<usize>,
    made: Made,
}

enum Made {
    Yes(Box<Proposal>),
    /// It takes longer.
    Later(JoinHandle<Result<Proposal>>),
}

impl Core {
    /// Makes a plan. Fails if that fails soon, or if the machine refuses its values.
    pub(super) async fn plan_first<P, F>(self: &Arc<Self>, plan: P) -> Result<Planned<P>>
    where
        P: Fn(Arc<Core>) -> F,
        F: Future<Output = Result<Proposal>> + Send + 'static,
    {
        let changes = self.change_lock.try_lock().ok().map(|_| self.changes.load(Ordering::SeqCst));
        let (core, work) = (Arc::clone(self), plan(Arc::clone(self)));
        let work = async move {
            let _alone = core.planning.lock().await;
            work.await
        };
        let mut planning = tokio::spawn(work.in_current_span());
        let made = match tokio::time::timeout(PLANNING, &mut planning).await {
            Ok(done) => Made::Yes(Box::new(blocking::joined(done)?)),
            Err(_) => Made::Later(planning),
        };
        Ok(Planned { plan, changes, made })
    }
}

impl<P, F> Planned<P>
where
    P: Fn(Arc<Core>) -> F,
    F: Future<Output = Result<Proposal>>,
{
    /// Carries the plan out, in the job. It is made again if there was another change since. The edit is that of the plan.
    pub(super) async fn carry_out(self, core: &Arc<Core>, handle: &Handle, wish: Wish) -> Result<String> {
        let proposal = match self.made {
            _ if self.changes != Some(core.changes.load(Ordering::SeqCst)) => {
                Box::new((self.plan)(Arc::clone(core)).await?)
            }
            Made::Yes(proposal) => proposal,
            Made::Later(planning) => Box::new(blocking::joined(planning.await)?),
        };
        let wish = Wish { edit: proposal.edit.clone(), ..wish };
        reconcile(core, handle, wish, Some(proposal)).await.map(told)
    }
}

/// An error if this machine refuses values of the call, such as a size that cannot be evaluated here.
pub(super) fn must_accept_values(proposal: &Proposal) -> Result<()> {
    let changes = proposal.changes.iter();
    let wrong =
        changes.filter(|change| change.action == Action::Refuse && change.kind == Some(ErrorKind::Config));
    let wrong: Vec<String> = wrong.map(|change| format!("{}: {}", change.target, change.detail)).collect();
    if wrong.is_empty() { Ok(()) } else { Err(Error::new(ErrorKind::InvalidArgument, wrong.join("; "))) }
}
