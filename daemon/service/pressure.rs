//! Memory pressure: waits for the kernel to report stalls, then polls until the pressure is over.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use zbus::object_server::SignalEmitter;

use super::bus::manager::Manager;
use super::core::Core;
use super::journal;
use super::lock::lock;
use super::watch::watched;
use host::linux::memory_pressure::FILE;
use host::linux::{LinuxHost, PRESSURE_LEVEL, files};
use host::{Host, MachineFile};
use logic::maintain::Cause;
use logic::maintain::alarm::{Alarms, next_look};
use logic::maintain::filling::Filling;
use logic::maintain::pressure::{Gauge, LOOK, Level, Policy, UNKNOWN_REMEDY, is_due, is_of_machine, noted};
use logic::maintain::taken_in::Totals;
use logic::order::Maintain;
use logic::psi::Pressure;
use logic::sample::Snapshot;

/// Delay of the first poll after a wake-up, and of one that waits for a run to end.
const FIRST: Duration = Duration::from_millis(500);
/// Polls without pressure before waiting for the kernel again.
const QUIET: u32 = 4;

/// Follows pressure; `None` stops it.
pub fn follow(core: &Arc<Core>, policy: Option<Policy>) {
    let mut watch = lock(&core.pressure.task);
    // Also if it has failed: it would fail again.
    if watch.as_ref().map(|(by, _)| *by) == policy && policy.is_some() {
        return;
    }
    if let Some((_, task)) = watch.take() {
        task.abort();
    }
    // Also the level of a daemon that was killed.
    clear(core, "it is looked at anew");
    *watch = policy.map(|policy| {
        let core = Arc::clone(core);
        let task = tokio::spawn(async move {
            if let Err(error) = sleep_and_look(&core, policy).await {
                let hint = hint(&error);
                tracing::warn!("cannot follow memory pressure in {FILE}: {error}; {hint}");
                clear(&core, "it is no longer followed");
            }
        });
        (policy, task)
    });
}

/// A remedy for an error of the pressure file.
fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        // With `psi=0` on the command line the file exists, but cannot be opened.
        ErrorKind::NotFound | ErrorKind::Unsupported => UNKNOWN_REMEDY,
        _ => "this needs Linux 5.13, and without CAP_SYS_RESOURCE 6.5",
    }
}

async fn sleep_and_look(core: &Arc<Core>, policy: Policy) -> std::io::Result<()> {
    let Some(reports) = core.pressure.reports.get() else { return Ok(()) };
    // The original outlives this task.
    let events = watched(reports.as_ref().map_err(|errno| *errno)?.try_clone()?, Interest::PRIORITY)?;
    let mut seen = Seen::default();
    let sample = core.resample().await;
    seen.arrivals.look(&sample);
    loop {
        let mut event = events.ready(Interest::PRIORITY | Interest::ERROR).await?;
        event.clear_ready();
        look(core, policy, &mut seen).await?;
    }
}

/// Polls every [`LOOK`], or more often while swap fills, until memory is no longer short.
async fn look(core: &Arc<Core>, policy: Policy, seen: &mut Seen) -> std::io::Result<()> {
    let mut gauge = Gauge::default();
    let (mut quiet, mut due, mut interval) = (0, Duration::ZERO, FIRST);
    loop {
        // Before the gauge: a swap can be full while no level is known yet.
        let sample = core.resample().await;
        let arrived = seen.arrivals.look(&sample);
        for found in seen.alarms.news(&sample) {
            journal::alarm(found);
            core.changed.notify_one();
        }
        let now = LinuxHost::new("/").monotonic();
        if now >= due {
            // The kernel does not update averages more often.
            due = now + std::mem::replace(&mut interval, LOOK);
            let text = File::open(FILE).and_then(std::io::read_to_string).unwrap_or_default();
            let found = Pressure::parse(&text);
            if let Some(change) = found.and_then(|found| gauge.look(policy.thresholds, now, found)) {
                let reason = format!("{}; {}", change.reason, arrived.sentence(&sample));
                journal::pressure(change.to.word(), change.from.word(), &reason);
                note(core, change.to, &reason);
                announce(core, change.to, &reason).await;
            }
            // What cannot be read for a while says nothing any more.
            quiet = if gauge.level == Level::None || found.is_none() { quiet + 1 } else { 0 };
            if quiet == QUIET {
                clear(core, "it cannot be read any more");
                seen.alarms.calm(&sample);
                seen.arrivals.calm();
                return Ok(());
            }
        }
        let (available, total) = (sample.memory.available_bytes, sample.memory.total_bytes);
        let level = if is_of_machine(available, total) { gauge.level } else { Level::None };
        let is_filling = policy.writes_back && seen.filling.is_due(&sample, level, now);
        let cause = if policy.runs && level > Level::None && is_due(seen.last_run, level, now)
            || is_filling && level == Level::Critical
        {
            Some(Cause::Pressure(level))
        } else {
            is_filling.then_some(Cause::Filling)
        };
        // A run in progress ends early if it is for a lower level. If there are too many jobs, the next poll is soon enough.
        let waits = cause.is_some() && core.is_maintaining();
        if let Some(cause) = cause.filter(|_| !waits)
            && core.maintain(Maintain::all(cause)).await.is_ok()
        {
            seen.filling.begins(cause, &sample, now);
            if let Cause::Pressure(level) = cause {
                seen.last_run = Some((level, now));
            }
        }
        let pause = if waits { FIRST } else { next_look(&sample) };
        tokio::time::sleep(pause.min(due.saturating_sub(now))).await;
    }
}

/// What is kept from one shortage of memory to the next.
#[derive(Debug, Default)]
struct Seen {
    alarms: Alarms,
    arrivals: Arrivals,
    filling: Filling,
    /// Level and time, of a clock that is never set, of the last run.
    last_run: Option<(Level, Duration)>,
}

/// What arrives in compressed swap.
#[derive(Debug, Default)]
struct Arrivals {
    /// Since when, in microseconds since boot, and the totals at that time.
    before: Option<(u64, Totals)>,
    /// What arrived last that was enough to judge by.
    last: Totals,
    has_warned: bool,
}

impl Arrivals {
    /// The shortage is over: the next one is judged by what arrives then.
    fn calm(&mut self) {
        *self = Arrivals { before: self.before, ..Arrivals::default() };
    }

    /// What arrived last that was enough to judge by. Warns once per shortage if most of it does not compress.
    fn look(&mut self, sample: &Snapshot) -> Totals {
        let (now, totals) = (sample.timestamp_monotonic_usec, Totals::of(sample));
        let (then, before) = *self.before.get_or_insert((now, totals));
        let arrived = totals.since(before);
        if arrived.is_enough() {
            self.before = Some((now, totals));
            self.last = arrived;
            let time = Duration::from_micros(now.saturating_sub(then));
            if let Some(found) = arrived.warning(sample, time).filter(|_| !self.has_warned) {
                journal::alarm(&found);
                self.has_warned = true;
            }
        }
        self.last
    }
}

/// Ends a level that was noted.
fn clear(core: &Arc<Core>, reason: &'static str) {
    let level = noted(&LinuxHost::new("/").text(MachineFile::PressureLevel).unwrap_or_default()).0;
    if level == Level::None {
        return;
    }
    journal::pressure(Level::None.word(), level.word(), reason);
    note(core, Level::None, "");
    let core = Arc::clone(core);
    tokio::spawn(async move { announce(&core, Level::None, reason).await });
}

/// Writes the level and its reason to their file, and publishes them.
fn note(core: &Core, level: Level, reason: &str) {
    let text = (level != Level::None).then(|| format!("{}\n{reason}", level.word()));
    if let Err(error) = files::replace(Path::new("/"), PRESSURE_LEVEL, text.as_deref()) {
        tracing::warn!("{error}");
    }
    core.changed.notify_one();
}

async fn announce(core: &Core, level: Level, reason: &str) {
    let Some(connection) = core.connection() else { return };
    if let Ok(emitter) = SignalEmitter::new(&connection, super::ROOT) {
        // There may be no receiver.
        Manager::pressure_changed(&emitter, level.word(), reason).await.ok();
    }
}
