//! The settings of `[vm]` apply while compressed swap is used first: they are reverted when other swap has a higher
//! priority, and applied again afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::Instrument;

use super::core::Core;
use super::handle::Handle;
use super::journal;
use super::reconcile::{Wish, reconcile};
use logic::record::Target;
use logic::sample::Snapshot;
use logic::work::Ending;

/// The state that the settings were last adjusted to.
#[derive(Debug, Default)]
pub struct Adjusted {
    is_outranked: bool,
    work: Arc<Work>,
}

#[derive(Debug, Default)]
struct Work {
    is_running: AtomicBool,
    /// Reverting failed. Not retried until something else changes.
    is_stuck: AtomicBool,
}

impl Adjusted {
    /// Adjusts the settings to the latest sample.
    pub fn follow(&mut self, core: &Arc<Core>) {
        let now = core.latest();
        if !self.call_for_change(&now) || self.work.is_running.swap(true, Ordering::SeqCst) {
            return;
        }
        self.is_outranked = now.is_outranked;
        let (core, work) = (Arc::clone(core), Arc::clone(&self.work));
        tokio::spawn(async move {
            let is_done = bring_in_line(&core).await;
            work.is_stuck.store(!is_done, Ordering::SeqCst);
            work.is_running.store(false, Ordering::SeqCst);
            // There may have been changes meanwhile.
            core.changed.notify_one();
        });
    }

    /// True if the rank has changed. Also if other swap is still first although the settings are applied: between two
    /// samples our swap may have been activated with the settings, and then other swap with a higher priority.
    fn call_for_change(&self, now: &Snapshot) -> bool {
        let are_made = now.vm.iter().any(|setting| setting.name.starts_with("vm."));
        now.is_outranked != self.is_outranked
            || now.is_outranked && are_made && !self.work.is_stuck.load(Ordering::SeqCst)
    }
}

/// Returns whether anything was changed.
async fn bring_in_line(core: &Arc<Core>) -> bool {
    if !core.view().sections.contains_key(&Target::Vm.to_string()) {
        return false;
    }
    let _guard = core.change_lock.lock().await;
    // The settings are configured although they are not applied, which is intended here.
    let wish = Wish::gone(Target::Vm, false);
    let span = tracing::error_span!("operation", ZRAMD_JOB_TYPE = "vm");
    match reconcile(core, &Handle::unwatched(), wish, None).instrument(span).await {
        Ok(None) => false,
        Ok(Some(done)) => {
            journal::job_ended("vm", Ending::Done, &done);
            true
        }
        Err(error) => {
            journal::job_ended("vm", Ending::Failed, &error.message);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logic::vm::VmView;

    #[test]
    fn settings_follow_what_outranks_our_swap() {
        let setting = |name: &str| VmView {
            name: name.to_owned(),
            value: "1".to_owned(),
            set_to: "1".to_owned(),
            before: "0".to_owned(),
        };
        for (before, stuck, now, made, expected) in [
            (false, false, false, "vm.swappiness", false),
            (false, false, true, "vm.swappiness", true),
            (true, false, true, "zswap.enabled", false),
            (true, false, true, "vm.swappiness", true),
            (true, true, true, "vm.swappiness", false),
            (true, true, false, "vm.swappiness", true),
            (true, false, false, "zswap.enabled", true),
        ] {
            let adjusted = Adjusted { is_outranked: before, ..Adjusted::default() };
            adjusted.work.is_stuck.store(stuck, Ordering::SeqCst);
            let snapshot = Snapshot { is_outranked: now, vm: vec![setting(made)], ..Snapshot::default() };
            assert_eq!(adjusted.call_for_change(&snapshot), expected, "{before} {stuck} {now} {made}");
        }
    }
}
