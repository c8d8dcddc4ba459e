//! Maintenance in the daemon: jobs and timers. `zramd-worker maintain` does the work.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::de::IgnoredAny;
use zbus::OwnedObjectPath;

use super::bus::options::{Options, invalid};
use super::core::{Core, Mode};
use super::error::{Error, Result};
use super::handle::Handle;
use super::journal;
use super::lock::lock;
use super::systemd::{Systemd, Verb};
use super::work::Call;
use host::Host;
use host::linux::{LinuxHost, unit_files};
use logic::duration::micros;
use logic::maintain::Cause;
use logic::maintain::pass::Pages;
use logic::maintain::pressure::Policy;
use logic::order::{MAINTENANCE, Maintain, Only, Order};
use logic::unit::MAINTENANCE_TIMER;
use logic::work::{Ending, Work};

/// The unit that does it.
const UNIT: &str = "zramd-maintenance.service";
/// Longer than a run may take, unless it was asked for: after that, its PID may belong to another process.
const LONGEST: Duration = Duration::from_secs(31 * 60);

impl Core {
    /// Starts a run of maintenance, and returns its job. Fails if one is in progress.
    pub async fn maintain(self: &Arc<Self>, order: Maintain) -> Result<OwnedObjectPath> {
        self.start_work("maintain", String::new(), self.call(order)).await
    }

    fn call(&self, mut order: Maintain) -> Call {
        if self.mode == Mode::Direct {
            order.config.clone_from(&self.source.file);
        }
        Call { order: Order::Maintain(order), unit: UNIT.to_owned(), without_order: None }
    }

    /// A run that was asked for begins after the one in progress, which the daemon or the timer may have started.
    async fn asked(self: &Arc<Self>, object: &str, order: Maintain) -> Result<OwnedObjectPath> {
        let call = self.call(order);
        self.start_beside("maintain", object.to_owned(), async move |core: Arc<Core>, handle: Handle| {
            core.work(&handle.after_others(&core.claims, MAINTENANCE).await?, call).await
        })
        .await
    }

    /// Whether a run is in progress, including those of the timer.
    pub fn is_maintaining(&self) -> bool {
        let now = micros(LinuxHost::new("/").monotonic());
        let exists = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
        let goes_on = |work: Work<IgnoredAny>| goes_on(&work, now, exists);
        self.claims.has(MAINTENANCE) || super::work::read(MAINTENANCE).is_some_and(goes_on)
    }

    /// Runs the configured policies, for all devices or the named ones.
    pub async fn maintain_now(self: &Arc<Self>, options: &Options) -> Result<OwnedObjectPath> {
        let mut order = Maintain::all(Cause::Request);
        for (key, value) in options.iter() {
            let ("devices", zbus::Variant::Array(names)) = (key.as_str(), &**value) else {
                return Err(not_devices());
            };
            for name in names.iter() {
                let zbus::Variant::Str(name) = name else { return Err(not_devices()) };
                order.devices.push(self.ours(name).await?);
            }
        }
        self.asked("", order).await
    }

    /// Runs one action on one device.
    pub async fn maintain_device(
        self: &Arc<Self>,
        name: &str,
        mut only: Only,
        options: &Options,
    ) -> Result<OwnedObjectPath> {
        let number = self.ours(name).await?;
        for (key, value) in options.iter() {
            match (key.as_str(), &**value, &mut only) {
                ("pages", zbus::Variant::Str(word), Only::Recompress(pages) | Only::WriteBack(pages)) => {
                    let found = Pages::of_word(word.as_str());
                    *pages =
                        Some(found.ok_or_else(|| invalid("the option `pages` is idle, huge or huge-idle"))?);
                }
                ("age-seconds", zbus::Variant::U32(seconds), Only::MarkIdle(age)) => {
                    *age = Some(u64::from(*seconds));
                }
                _ => return Err(invalid(format!("there is no such option `{key}` here"))),
            }
        }
        self.asked(
            name,
            Maintain { devices: vec![number], only: Some(only), ..Maintain::all(Cause::Request) },
        )
        .await
    }
}

/// Whether work is in progress, according to its file.
fn goes_on(work: &Work<IgnoredAny>, now_usec: u64, exists: impl Fn(u32) -> bool) -> bool {
    let may_run = now_usec.saturating_sub(work.started_monotonic_usec) < micros(LONGEST);
    work.result.is_none() && may_run && exists(work.pid)
}

fn not_devices() -> Error {
    invalid("the only option is `devices` (as)")
}

/// Applies the timers of the configuration.
pub async fn follow_configuration(core: &Arc<Core>) {
    let asked = core.view().maintenance;
    let policy = asked.pressure.map(|thresholds| Policy {
        thresholds,
        writes_back: asked.writeback,
        runs: asked.writeback || asked.recompress,
    });
    super::pressure::follow(core, policy);
    super::incompressible::follow(core);
    if asked.writeback && core.latest().maintenance.budget.is_none() && !core.is_maintaining() {
        // The budget is kept over reboots in a file that only a run reads. A run in progress reads it as well.
        let order = Maintain { only: Some(Only::Budget), ..Maintain::all(Cause::Request) };
        core.maintain(order).await.ok();
    }
    match core.mode {
        Mode::Systemd => {
            if let Err(error) = timer(core, asked.every_seconds.is_some()).await {
                tracing::warn!("{MAINTENANCE_TIMER}: {}", error.message);
            }
        }
        Mode::Direct => {
            let task = asked
                .every_seconds
                .map(|every| tokio::spawn(now_and_then(Arc::clone(core), Duration::from_secs(every.max(1)))));
            if let Some(before) = std::mem::replace(&mut *lock(&core.timer), task) {
                before.abort();
            }
        }
    }
}

async fn timer(core: &Core, wanted: bool) -> Result<()> {
    let Some(connection) = core.connection() else { return Ok(()) };
    if !wanted && !unit_files::exists(Path::new("/"), MAINTENANCE_TIMER) {
        return Ok(());
    }
    let pid_1 = Systemd::enter(&connection).await?;
    let verb = if wanted { Verb::Start } else { Verb::Stop };
    let handle = Handle::unwatched();
    let done = pid_1.job(verb, MAINTENANCE_TIMER, None, &handle).await;
    pid_1.leave().await;
    done.map(drop)
}

/// The timer without systemd.
async fn now_and_then(core: Arc<Core>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        if let Err(error) = core.maintain(Maintain::default()).await {
            journal::job_ended("maintain", Ending::Failed, &error.message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_until_it_has_a_result_or_its_process_has_gone() {
        let text = r#"{"schema_version": 1, "verb": "maintain", "pid": 7, "started_monotonic_usec": 5000000,
            "progress": 0.5, "doing": "", "result": null, "message": ""}"#;
        let work: Work<IgnoredAny> = serde_json::from_str(text).unwrap();
        let last = work.started_monotonic_usec + micros(LONGEST) - 1;
        let is_7 = |pid| pid == 7;
        assert!(goes_on(&work, 5_000_000, is_7) && goes_on(&work, last, is_7));
        assert!(!goes_on(&work, last + 1, is_7), "the process may be another");
        assert!(!goes_on(&work, last, |_| false));
        let done = Work { result: Some(Ending::Done), ..work };
        assert!(!goes_on(&done, last, is_7));
    }
}
