//! Running `zramd-worker`: through PID 1, because the sandbox of the service is too narrow, or as a child without systemd.
//! Its progress is in a file (`logic/work.rs`), which is read only while it works.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;

use rustix::process::{PidfdFlags, Signal, pidfd_open};
use serde::de::IgnoredAny;
use tokio::io::Interest;

use super::core::{Core, Mode};
use super::error::{Error, ErrorKind, Result};
use super::handle::Handle;
use super::systemd::{DONE, Systemd, Verb};
use super::watch::watched;
use host::Host;
use host::linux::process::{self, Pidfd};
use host::linux::{LinuxHost, work};
use logic::duration::micros;
use logic::order::Order;
use logic::work::{Ending, Work, ending};

/// A call of `zramd-worker`.
#[derive(Debug, Clone)]
pub struct Call {
    pub order: Order,
    /// Unit that runs it; its `ExecStart=` is `zramd-worker order WORK`.
    pub unit: String,
    /// Unit that does about the same without an order, in case that cannot be written.
    pub without_order: Option<String>,
}

/// How often a unit is started until its worker has taken the order: it may also be prevented from starting at all.
const STARTS: u32 = 3;

/// Removes orders that no worker has taken: the next run of the timer would take them.
pub fn forget(names: &[&str]) {
    for name in names {
        if let Err(error) = work::put_order(Path::new("/"), name, None) {
            tracing::warn!("{error}");
        }
    }
}

impl Core {
    /// Runs `zramd-worker`, publishes its progress, and returns its message. Fails if the same work is in progress.
    pub async fn work(self: &Arc<Self>, handle: &Handle, call: Call) -> Result<String> {
        let name = call.order.work();
        let held = handle.claim.as_ref().filter(|claim| claim.is_for(&name));
        let _claim = held.map_or_else(|| self.claims.claim(&name), |claim| Ok(Arc::clone(claim)))?;
        let asked = micros(LinuxHost::new("/").monotonic());
        let done = match self.mode {
            Mode::Systemd => self.by_unit(handle, &call, &name).await,
            Mode::Direct => by_child(handle, &call.order, &name).await,
        };
        let how = done?;
        let file = read(&name);
        if how == DONE
            && !file
                .as_ref()
                .is_some_and(|work| work.started_monotonic_usec >= asked && work.result.is_some())
        {
            // It did the work, but could not write its result.
            return Ok("done, without a report".to_owned());
        }
        let (outcome, message) = ending(file.as_ref(), asked);
        let kind = match outcome {
            // PID 1 and the file disagree only if the worker was killed after it had written the file.
            Ending::Done if how == DONE => return Ok(message),
            Ending::Done => ErrorKind::Failed,
            Ending::Failed => file.and_then(|work| work.error).unwrap_or(ErrorKind::Failed),
            Ending::Cancelled => ErrorKind::Cancelled,
            Ending::Postponed => ErrorKind::Postponed,
        };
        let hint = match self.mode {
            Mode::Systemd if kind == ErrorKind::Failed => format!(": see `journalctl -b -u {}`", call.unit),
            _ => String::new(),
        };
        Err(Error::new(kind, format!("{message}{hint}")))
    }

    async fn by_unit(&self, handle: &Handle, call: &Call, name: &str) -> Result<String> {
        let connection = self.connection().ok_or_else(|| Error::new(ErrorKind::Failed, "there is no bus"))?;
        let put = |order| work::put_order(Path::new("/"), name, order);
        let failed = |message| Error::new(ErrorKind::Failed, message);
        let written = put(Some(&call.order));
        let pid_1 = Systemd::enter(&connection).await?;
        if let (Err(message), Some(unit)) = (&written, &call.without_order) {
            tracing::warn!("{message}");
            let how = handle.watch(pid_1.job(Verb::Start, unit, Some("main"), handle), async || None).await;
            pid_1.leave().await;
            return how;
        }
        if let Err(message) = written {
            pid_1.leave().await;
            return Err(failed(message));
        }
        let mut how;
        let mut starts = 0;
        // A start that is requested while another one is in progress, such as that of the timer, is the same to PID 1: then the order
        // was not taken.
        loop {
            let job = pid_1.job(Verb::Start, &call.unit, Some("main"), handle);
            how = handle.watch(job, async || progress(name)).await;
            starts += 1;
            if how.is_err() || !work::has_order(Path::new("/"), name) {
                break;
            }
            if starts == STARTS {
                how = Err(Error::new(ErrorKind::Busy, format!("{} is busy with other work", call.unit)));
                break;
            }
        }
        pid_1.leave().await;
        // The worker removes the order, unless it was never started.
        if let Err(message) = put(None) {
            tracing::warn!("{message}");
        }
        how
    }
}

/// Without systemd. Waits through a pidfd, because waiting for the child itself would block a thread that others need.
async fn by_child(handle: &Handle, order: &Order, name: &str) -> Result<String> {
    let failed = |error: std::io::Error| Error::new(ErrorKind::Failed, format!("run zramd-worker: {error}"));
    let mut command = process::ours("zramd-worker");
    command.args(order.words().map_err(|error| Error::new(ErrorKind::InvalidArgument, error))?);
    // Its messages are in the file; its standard error is ours.
    command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    handle.cancel.watch(Pidfd::of(&child));
    let ended = async {
        if let Ok(ended) = tokio::time::timeout(process::WORKER_LIMIT, end_of(&child)).await {
            return ended;
        }
        process::end_group(process::group(&child), Signal::KILL);
        // The kernel may still be busy for it.
        end_of(&child).await
    };
    let ended = handle.watch(ended, async || progress(name)).await;
    handle.cancel.watch(None);
    if let Err(error) = ended {
        process::end_group(process::group(&child), Signal::KILL);
        return Err(failed(error));
    }
    let status = child.wait().map_err(failed)?;
    Ok(if status.success() { DONE.to_owned() } else { status.to_string() })
}

/// Waits until a child has ended; it is not reaped.
async fn end_of(child: &Child) -> std::io::Result<()> {
    let pid = process::group(child).ok_or(std::io::ErrorKind::InvalidInput)?;
    let pidfd = watched(pidfd_open(pid, PidfdFlags::empty())?, Interest::READABLE)?;
    pidfd.readable().await?.retain_ready();
    Ok(())
}

/// The state file of a work; `None` if it is missing or cannot be parsed.
pub fn read(name: &str) -> Option<Work<IgnoredAny>> {
    serde_json::from_str(&work::read(Path::new("/"), name)?).ok()
}

/// The progress of a work; `None` for a finished run, which may be a previous one.
fn progress(name: &str) -> Option<f64> {
    read(name).filter(|work| work.result.is_none()).map(|work| work.progress)
}
