//! Maintenance from the daemon's side: `zramd-worker maintain` does it, a unit of systemd's lets it run now and then, and what it
//! says in its file is shown here.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::inotify;
use serde::de::IgnoredAny;
use tokio::io::Interest;
use zbus::{OwnedObjectPath, OwnedVariant};

use super::bus::error::{Error, ErrorKind, Result};
use super::core::{Core, Mode, lock};
use super::jobs::Handle;
use super::journal;
use super::operations::Options;
use super::reconcile::{Wish, With, reconcile};
use super::systemd::{Systemd, Verb};
use super::watch::watched;
use super::work::Order;
use host::linux::work;
use logic::maintain::pass::Pages;
use logic::maintain::report::Report;
use logic::maintain::resize::{Resize, Step};
use logic::record::Target;
use logic::unit::MAINTENANCE_TIMER;
use logic::work::{Outcome, Work};

/// Name of the work.
const NAME: &str = "maintenance";
/// The unit that does it.
const UNIT: &str = "zramd-maintenance.service";

impl Core {
    /// Has a run made, and returns its job.
    pub async fn maintain(self: &Arc<Self>, object: &str, words: Vec<String>) -> Result<OwnedObjectPath> {
        let mut verb = vec!["maintain".to_owned()];
        if let (Mode::Direct, Some(file)) = (self.mode, &self.source.file) {
            verb.extend(["--config".to_owned(), file.display().to_string()]);
        }
        let order = Order { name: NAME.to_owned(), unit: UNIT.to_owned(), verb, words };
        self.start_work("maintain", object.to_owned(), order).await
    }

    /// Whether a run goes on, whoever started it.
    pub fn is_maintaining(&self) -> bool {
        let goes_on = |work: Work<IgnoredAny>| {
            work.result.is_none() && Path::new(&format!("/proc/{}", work.pid)).exists()
        };
        self.is_at_work(NAME) || super::work::read(NAME).is_some_and(goes_on)
    }

    /// What the configuration asks for, for all devices or for some.
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
        self.maintain("", words).await
    }

    /// One thing for one device.
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
        self.maintain(name, words).await
    }
}

fn not_devices() -> Error {
    invalid("the only option is `devices` (as)")
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidArgument, message)
}

/// Follows what runs report, whoever started them.
pub async fn follow_reports(core: Arc<Core>) {
    if let Err(error) = reports(&core).await {
        log::warn!("cannot follow what maintenance reports: {error}");
    }
}

async fn reports(core: &Arc<Core>) -> std::io::Result<()> {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    let watch = watched(watch, Interest::READABLE)?;
    let mut last = u64::MAX;
    loop {
        // Whoever ends last takes the folder away, and the watch with it.
        std::fs::create_dir_all(work::FOLDER)?;
        inotify::add_watch(&watch, work::FOLDER, inotify::WatchFlags::MOVED_TO)?;
        read_report(core, &mut last);
        let mut ready = watch.readable().await?;
        let mut buffer = [0; 4096];
        // Which file it was does not matter.
        while rustix::io::read(&watch, &mut buffer).is_ok() {}
        ready.clear_ready();
    }
}

/// Has what a run says at its end published, and brings about what it found. What was said before we began is not news.
fn read_report(core: &Arc<Core>, last: &mut u64) {
    let text = work::read(Path::new("/"), NAME).unwrap_or_default();
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

/// Brings about a size that follows the machine's memory, where nothing has to be moved for that.
async fn follow_memory(core: Arc<Core>, resize: Resize) {
    let done = match resize.step {
        Step::Offer => return,
        Step::Recreate => {
            let _guard = core.lane.lock().await;
            let wish = Wish::one(Target::Device(resize.number), false);
            reconcile(&core, &Handle::unwatched(), wish, With::Nothing).await
        }
        Step::Add(bytes) => {
            let mut options = Options::default();
            options.insert("zram-size".to_owned(), OwnedVariant::from(bytes));
            let latest = core.latest();
            let first = latest.devices.iter().find(|device| device.number == resize.number);
            if let Some(swap) = first.and_then(|first| first.swap) {
                // The kernel fills swaps of the same priority in turns.
                options.insert("swap-priority".to_owned(), OwnedVariant::from(swap.priority));
            }
            core.create(&options).await.map(|name| format!("{name} was added"))
        }
    };
    match done {
        Ok(done) => journal::job_ended("resize", Outcome::Done, &format!("{}: {done}", resize.reason)),
        Err(error) => journal::job_ended("resize", Outcome::Failed, &error.message),
    }
}

/// Brings timers in line with the configuration.
pub async fn follow_configuration(core: &Arc<Core>) {
    let asked = core.view().maintenance;
    super::pressure::follow(core, asked.pressure);
    if asked.writeback && core.latest().maintenance.budget.is_none() && !core.is_maintaining() {
        // It outlives boots in a file that only a run reads. One that goes on reads it, too.
        let words = ["--only", "budget"].map(str::to_owned).to_vec();
        core.maintain("", words).await.ok();
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

/// Without systemd.
async fn now_and_then(core: Arc<Core>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        if let Err(error) = core.maintain("", Vec::new()).await {
            journal::job_ended("maintain", Outcome::Failed, &error.message);
        }
    }
}
