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
use super::work::Order;
use host::Host;
use host::linux::LinuxHost;
use logic::duration::micros;
use logic::maintain::pass::Pages;
use logic::maintain::pressure::Policy;
use logic::unit::MAINTENANCE_TIMER;
use logic::work::{Outcome, Work};

/// Name of the work.
pub const NAME: &str = "maintenance";
/// The unit that does it.
const UNIT: &str = "zramd-maintenance.service";
/// Longer than a run may take, unless it was asked for: after that, its PID may belong to another process.
const LONGEST: Duration = Duration::from_secs(31 * 60);

impl Core {
    /// Starts a run of maintenance, and returns its job. Fails if one is in progress.
    pub async fn maintain(self: &Arc<Self>, words: Vec<String>) -> Result<OwnedObjectPath> {
        self.start_work("maintain", String::new(), self.order(words)).await
    }

    fn order(&self, words: Vec<String>) -> Order {
        let mut verb = vec!["maintain".to_owned()];
        if let (Mode::Direct, Some(file)) = (self.mode, &self.source.file) {
            verb.extend(["--config".to_owned(), file.display().to_string()]);
        }
        Order { name: NAME.to_owned(), unit: UNIT.to_owned(), verb, words, without_words: None }
    }

    /// A run that was asked for begins after the one in progress, which the daemon or the timer may have started.
    async fn asked(self: &Arc<Self>, object: &str, words: Vec<String>) -> Result<OwnedObjectPath> {
        let order = self.order(words);
        self.start_beside("maintain", object.to_owned(), async move |core: Arc<Core>, handle: Handle| {
            core.work(&handle.after_others(&core.claims, NAME).await?, order).await
        })
        .await
    }

    /// Whether a run is in progress, including those of the timer.
    pub fn is_maintaining(&self) -> bool {
        let now = micros(LinuxHost::new("/").monotonic());
        let exists = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
        let goes_on = |work: Work<IgnoredAny>| goes_on(&work, now, exists);
        self.claims.has(NAME) || super::work::read(NAME).is_some_and(goes_on)
    }

    /// Runs the configured policies, for all devices or the named ones.
    pub async fn maintain_now(self: &Arc<Self>, options: &Options) -> Result<OwnedObjectPath> {
        let mut words = ["--reason", "request"].map(str::to_owned).to_vec();
        for (key, value) in options.iter() {
            let ("devices", zbus::Variant::Array(names)) = (key.as_str(), &**value) else {
                return Err(not_devices());
            };
            for name in names.iter() {
                let zbus::Variant::Str(name) = name else { return Err(not_devices()) };
                let number = self.ours(name).await?;
                words.extend(["--device".to_owned(), format!("zram{number}")]);
            }
        }
        self.asked("", words).await
    }

    /// Runs one action on one device.
    pub async fn maintain_device(
        self: &Arc<Self>,
        name: &str,
        only: &str,
        options: &Options,
    ) -> Result<OwnedObjectPath> {
        self.ours(name).await?;
        let mut words: Vec<String> = ["--device", name, "--only", only].map(str::to_owned).to_vec();
        for (key, value) in options.iter() {
            match (key.as_str(), &**value) {
                ("pages", zbus::Variant::Str(pages)) if only != "mark-idle" => {
                    let pages = Pages::of_word(pages.as_str())
                        .ok_or_else(|| invalid("the option `pages` is idle, huge or huge-idle"))?;
                    words.extend(["--pages".to_owned(), pages.word().to_owned()]);
                }
                ("age-seconds", zbus::Variant::U32(age)) if only == "mark-idle" => {
                    words.extend(["--age".to_owned(), age.to_string()]);
                }
                _ => return Err(invalid(format!("there is no such option `{key}` here"))),
            }
        }
        self.asked(name, words).await
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
        let words = ["--only", "budget"].map(str::to_owned).to_vec();
        core.maintain(words).await.ok();
    }
    match core.mode {
        Mode::Systemd => {
            if let Err(error) = timer(core, asked.every_seconds.is_some()).await {
                log::warn!("{MAINTENANCE_TIMER}: {}", error.message);
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
        if let Err(error) = core.maintain(Vec::new()).await {
            journal::job_ended("maintain", Outcome::Failed, &error.message);
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
        let done = Work { result: Some(Outcome::Done), ..work };
        assert!(!goes_on(&done, last, is_7));
    }
}
