//! Reports of maintenance runs, including those of the timer: they are published, and device sizes follow the machine's
//! memory.

use std::path::Path;
use std::sync::Arc;

use zbus::OwnedVariant;

use super::bus::options::Options;
use super::core::Core;
use super::handle::Handle;
use super::journal;
use super::reconcile::{Wish, reconcile, told};
use super::request::Caller;
use super::watch::follow_directory;
use host::linux::work;
use logic::maintain_report::Report;
use logic::order::MAINTENANCE;
use logic::record::Target;
use logic::resize::{Resize, Step};
use logic::work::{Ending, Work};

pub async fn follow(core: Arc<Core>) {
    let mut last = u64::MAX;
    // The last work to end removes the directory, and with it the watch.
    if let Err(error) = follow_directory(work::DIRECTORY, || read_report(&core, &mut last)).await {
        tracing::warn!("cannot follow what maintenance reports: {error}");
    }
}

/// Publishes the report of a run and applies its resizes; those from before the start of the daemon are skipped.
fn read_report(core: &Arc<Core>, last: &mut u64) {
    let text = work::read(Path::new("/"), MAINTENANCE).unwrap_or_default();
    let Ok(work) = serde_json::from_str::<Work<Report>>(&text) else {
        *last = (*last).min(u64::MAX - 1);
        return;
    };
    let ended = work.detail.ended_monotonic_usec;
    let before = std::mem::replace(last, ended);
    if work.result.is_some() && ended != before {
        core.changed.notify_one();
        for resize in work.detail.resizes.into_iter().filter(|_| before != u64::MAX) {
            tokio::spawn(follow_memory(Arc::clone(core), resize));
        }
    }
}

/// Resizes a device to follow the machine's memory, if no pages have to be moved for that.
async fn follow_memory(core: Arc<Core>, resize: Resize) {
    let done = match resize.step {
        Step::Offer => return,
        Step::Recreate => {
            let _guard = core.change_lock.lock().await;
            let wish = Wish::one(Target::Device(resize.number), false);
            reconcile(&core, &Handle::unwatched(), wish, None).await.map(told)
        }
        Step::Add(bytes) => {
            let mut options = Options::default();
            options.insert("zram-size".to_owned(), OwnedVariant::from(bytes));
            let latest = core.latest();
            let first = latest.devices.iter().find(|device| device.number == resize.number);
            if let Some(swap) = first.and_then(|first| first.swap) {
                // The kernel uses swaps of the same priority round-robin.
                options.insert("swap-priority".to_owned(), OwnedVariant::from(swap.priority));
            }
            core.create(&options, Caller::Root).await.map(|name| format!("{name} was added"))
        }
    };
    match done {
        Ok(done) => journal::job_ended("resize", Ending::Done, &format!("{}: {done}", resize.reason)),
        Err(error) => journal::job_ended("resize", Ending::Failed, &error.message),
    }
}
