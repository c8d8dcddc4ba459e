//! Maintenance: observes the machine, runs what the policies (`logic/maintain`) decide, measures the effect, and stores
//! state.

mod mark;
mod observe;
mod recompress;
mod resize;
pub mod state;
mod writeback;

use std::time::Duration;

use super::device::control;
use super::error::Error;
use super::work::{Reporter, Stopped};
use host::{Errno, Host, HostError, MachineFile, Priority};
use logic::config::Loaded;
use logic::config::settings::{MaintenanceSettings, SizeExpr};
use logic::device::attribute::Attribute;
use logic::device::stat::MmStat;
use logic::duration::micros;
use logic::expr::size_in_bytes;
use logic::human::human;
use logic::maintain::idle_marks::{Marking, Marks, Step};
use logic::maintain::pass::{Decision, Pages};
use logic::maintain::pressure::{self, Level};
use logic::maintain::{Cause, gate, span};
use logic::maintain::{recompress as recompression, writeback as write_back};
use logic::maintain_report::{Action, Report, Used};
use logic::order::{Maintain, Only};
use logic::plan::wanted::variables;
use logic::text::worded;
use observe::{Device, Machine};
use state::State;

/// Names of the policies in reports.
const RECOMPRESS: &str = "recompress";
const WRITE_BACK: &str = "write-back";
const COMPACT: &str = "compact";
/// Subject of a reason that applies to all policies.
const MAINTENANCE: &str = "maintenance";

/// The longest time of a run, unless it was asked for.
const LONGEST: Duration = Duration::from_secs(20 * 60);
/// While memory is short, the daemon decides anew after this time.
const LONGEST_WHILE_SHORT: Duration = Duration::from_secs(60);

/// Longest pause between two writes that block reads of statistics.
const PAUSE: Duration = Duration::from_millis(10);

/// Receives the progress, and tells when to stop.
pub trait Watch {
    /// Progress from 0 to 1, and the current operation.
    fn progress(&mut self, share: f64, doing: &str);
    /// An error if the run is to stop.
    fn check(&self) -> Result<(), Stopped>;
}

/// A progress sink that ignores everything.
#[derive(Debug)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn progress(&mut self, _share: f64, _doing: &str) {}

    fn check(&self) -> Result<(), Stopped> {
        Ok(())
    }
}

impl Watch for Reporter {
    fn progress(&mut self, share: f64, doing: &str) {
        self.progress(share, doing);
    }

    fn check(&self) -> Result<(), Stopped> {
        self.check()
    }
}

/// State of one run.
struct Run<'a, H: Host> {
    host: &'a mut H,
    watch: &'a mut dyn Watch,
    machine: Machine,
    state: State,
    cause: Cause,
    begun: Duration,
    /// Memory pressure when it began.
    level: Level,
    /// Numbers of the devices that have a backing device.
    backed: Vec<u32>,
    dry: bool,
    report: Report,
}

/// Runs once. The report is filled in even if the run ends early.
pub fn run<H: Host>(
    host: &mut H,
    loaded: &Loaded,
    order: &Maintain,
    watch: &mut dyn Watch,
) -> (Report, Result<(), Stopped>) {
    if order.cause == Cause::Timer {
        host.set_priority(Priority::Low);
    }
    let mut state = State::read(host);
    let machine = Machine::observe(host, &mut state);
    let report = Report { cause: order.cause.to_string(), ..Report::default() };
    let (begun, cause, dry) = (host.monotonic(), order.cause, order.dry_run);
    let level = cause.level().max(pressure_level(host));
    let backed = Vec::new();
    let mut run = Run { host, watch, machine, state, cause, begun, level, backed, dry, report };
    let done = run.everything(loaded, order);
    run.report.ended_monotonic_usec = micros(run.host.monotonic());
    if run.dry {
        return (run.report, done);
    }
    let remembered = run.state.write(run.host).map_err(|error| Stopped::from(Error::from(error)));
    (run.report, done.and(remembered))
}

/// The configured sizes, evaluated for this machine.
fn write_back_settings(
    settings: &MaintenanceSettings,
    machine: &Machine,
) -> Result<Option<write_back::Settings>, Error> {
    let Some(asked) = &settings.writeback else { return Ok(None) };
    let bytes = |size: &SizeExpr| {
        let value = size.expr.evaluate(&variables(&machine.facts)).and_then(size_in_bytes);
        value.map_err(|error| Error::failed(format!("`{}`: {}", size.text, error.message)))
    };
    Ok(Some(write_back::Settings {
        age: asked.age,
        daily: bytes(&asked.daily)?,
        per_run: bytes(&asked.per_run)?,
        huge: asked.huge,
    }))
}

const DEFAULT_RECOMPRESS: recompression::Settings =
    recompression::Settings { age: recompression::AGE, threshold: None };
const DEFAULT_WRITE_BACK: write_back::Settings = write_back::Settings {
    age: write_back::AGE,
    daily: write_back::DAILY,
    per_run: write_back::PER_RUN,
    huge: false,
};

impl<H: Host> Run<'_, H> {
    fn everything(&mut self, loaded: &Loaded, order: &Maintain) -> Result<(), Stopped> {
        let settings = loaded.settings.maintenance.as_ref();
        let write_back = match settings {
            Some(settings) => write_back_settings(settings, &self.machine)?,
            None => None,
        };
        let recompress = settings.and_then(|settings| settings.recompress);
        for number in &order.devices {
            control::must_be_ours(self.host, *number)?;
        }
        if let Some(settings) = &write_back {
            let (ledger, unknown) = self.ledger(settings);
            // If the record cannot be read, leave it for the first real run to report.
            if order.only == Some(Only::Budget) && unknown.is_none() {
                self.keep(&ledger)?;
            }
        }
        if order.only == Some(Only::Budget) {
            return Ok(());
        }
        if order.only.is_none() {
            self.resizes(loaded)?;
            let compacts = self.cause.is_short();
            let follows_memory = settings.is_some_and(|settings| settings.on_memory_change.is_some());
            if recompress.is_none() && write_back.is_none() && !follows_memory && !compacts {
                self.skip("", MAINTENANCE, "[maintenance] has neither recompress nor writeback".to_owned());
            }
            if let Some(why) = gate::gate(&self.machine.conditions, self.cause) {
                let asked = [(RECOMPRESS, recompress.is_some()), (WRITE_BACK, write_back.is_some())];
                for (policy, _) in asked.into_iter().filter(|(_, asked)| *asked) {
                    self.count(policy, 0, "postponed");
                }
                return Err(Stopped::Postponed(format!("not now: {why}")));
            }
        }
        let mut devices = observe::devices(self.host, &mut self.state, &order.devices)?;
        let is_backed = |device: &&Device| matches!(device.backing, Ok(Some(_)));
        self.backed = devices.iter().filter(is_backed).map(|device| device.number).collect();
        // A run may end before the last one.
        devices.sort_by_key(|device| device.state.written_back.max(device.state.recompressed));
        if devices.is_empty() && order.devices.is_empty() {
            self.skip("", MAINTENANCE, "zramd has set up no device".to_owned());
        }
        for number in &order.devices {
            if devices.iter().all(|device| device.number != *number) {
                self.skip(&format!("zram{number}"), MAINTENANCE, "it is not set up at the moment".to_owned());
            }
        }
        let share = 1.0 / devices.len().max(1) as f64;
        let mut ended = Ok(());
        for (index, mut device) in devices.into_iter().enumerate() {
            self.watch.progress(index as f64 * share, &device.name);
            let done = self.device(&mut device, order.only, recompress, write_back);
            let is_unfinished = matches!(done, Err(Stopped::Cancelled(_) | Stopped::Postponed(_)));
            if device.marks_used && device.state.marking == Some(Marking::Untracked) && !is_unfinished {
                // Without access times, the next round begins once both policies have processed the pages.
                device.state.marks.idle_since = None;
            }
            self.state.devices.insert(device.number, device.state);
            // The device may be gone by now.
            let after_bytes = self.mm(device.number).unwrap_or_default().mem_used_total;
            let used = Used { device: device.name, before_bytes: device.memory_used, after_bytes };
            self.report.memory.push(used);
            go_on(&mut ended, done)?;
        }
        ended
    }

    /// Runs the enabled policies, or the requested operation, on one device.
    fn device(
        &mut self,
        device: &mut Device,
        only: Option<Only>,
        recompress: Option<recompression::Settings>,
        write_back: Option<write_back::Settings>,
    ) -> Result<(), Stopped> {
        match only {
            None => {
                let mut ended = Ok(());
                // The kernel decompresses pages to write them back: recompressing them before would be wasted.
                if let Some(settings) = &write_back {
                    ended = self.counted(WRITE_BACK, |run| run.write_back(device, settings, None));
                }
                if let Some(settings) = &recompress
                    && self.cause != Cause::Filling
                    && matches!(ended, Ok(()) | Err(Stopped::Failed(_)))
                {
                    if self.cause.is_short() {
                        // It needs much time of a CPU. Write-back, which programs wait for, has come first.
                        self.host.set_priority(Priority::Low);
                    }
                    let other = write_back.filter(|_| matches!(device.backing, Ok(Some(_))));
                    let other = other.map(|other| other.age);
                    let done = self.counted(RECOMPRESS, |run| run.recompress(device, settings, None, other));
                    ended = ended.and(done);
                }
                // Also after a run that ends early.
                if self.cause.is_short() && !matches!(ended, Err(Stopped::Cancelled(_))) {
                    let reason = match self.cause {
                        Cause::Pressure(level) => format!("{} pressure", level.word()),
                        _ => "pages were written back".to_owned(),
                    };
                    let done = self.counted(COMPACT, |run| run.compact(device, &reason));
                    ended = ended.and(done);
                }
                ended
            }
            Some(Only::MarkIdle(age)) => self.mark_as_asked(device, age.map(Duration::from_secs)),
            Some(Only::Recompress(pages)) => {
                let settings = recompress.unwrap_or(DEFAULT_RECOMPRESS);
                self.counted(RECOMPRESS, |run| run.recompress(device, &settings, pages, None))
            }
            Some(Only::WriteBack(pages)) => {
                let settings = write_back.unwrap_or(DEFAULT_WRITE_BACK);
                self.counted(WRITE_BACK, |run| run.write_back(device, &settings, pages))
            }
            // Concerns no device.
            Some(Only::Budget) => Ok(()),
        }
    }

    /// Runs an operation of a policy, and adds it to the policy's totals since boot.
    fn counted(
        &mut self,
        policy: &str,
        work: impl FnOnce(&mut Self) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        let before = self.report.actions.len();
        let done = work(self);
        let result = match &done {
            Ok(()) if self.report.actions.len() == before => "skipped",
            Ok(()) => "done",
            Err(Stopped::Cancelled(_)) => "cancelled",
            Err(Stopped::Postponed(_)) => "postponed",
            Err(Stopped::Failed(_)) => "failed",
        };
        self.count(policy, before, result);
        done
    }

    /// Adds the actions from index `first` on to the policy's totals since boot.
    fn count(&mut self, policy: &str, first: usize, result: &str) {
        let actions = self.report.actions.get(first..).unwrap_or_default();
        let now = micros(self.host.monotonic());
        self.state.totals.entry(policy.to_owned()).or_default().add(actions, result, now);
    }

    /// Why to leave the rest to another run, if so. Unless it was asked for, a run makes way after a while, and at once when memory has
    /// become shorter: the daemon starts one for that level then.
    fn makes_way(&self) -> Option<String> {
        if self.cause == Cause::Request {
            return None;
        }
        if pressure_level(self.host) > self.level {
            return Some("ended early: memory has become shorter".to_owned());
        }
        let longest = if self.cause.is_short() { LONGEST_WHILE_SHORT } else { LONGEST };
        let is_over = self.host.monotonic().saturating_sub(self.begun) >= longest;
        is_over.then(|| format!("ended after {}; the next run continues", span(longest)))
    }

    /// Whether to continue, between two passes.
    fn check(&self) -> Result<(), Stopped> {
        self.watch.check()?;
        self.makes_way().map_or(Ok(()), |why| Err(Stopped::Postponed(why)))
    }

    fn skip(&mut self, device: &str, policy: &str, reason: String) {
        self.report.skipped.push((device.to_owned(), policy.to_owned(), worded(reason)));
    }

    fn mm(&self, number: u32) -> Result<MmStat, HostError> {
        let text = self.host.read_attribute(number, Attribute::MmStat)?;
        Ok(MmStat::parse(&text).unwrap_or_default())
    }

    /// Runs an operation on a device, and reports the change in memory used.
    fn measured(
        &mut self,
        device: &Device,
        action: &str,
        pages: &str,
        reason: &str,
        work: impl FnOnce(&mut Self) -> Result<Done, Stopped>,
    ) -> Result<i64, Stopped> {
        if self.dry {
            self.report.actions.push(Action {
                device: device.name.clone(),
                action: action.to_owned(),
                pages: pages.to_owned(),
                reason: reason.to_owned(),
                result: "would be done".to_owned(),
                ..Action::default()
            });
            return Ok(0);
        }
        let (before, begin) = (self.mm(device.number)?, self.host.monotonic());
        let done = work(self)?;
        if let Some(why) = done.skipped {
            self.skip(&device.name, action, why);
            return Ok(0);
        }
        let (after, end) = (self.mm(device.number)?, self.host.monotonic());
        let freed = signed(before.mem_used_total).saturating_sub(signed(after.mem_used_total));
        let bytes = human(freed.unsigned_abs());
        let change = match freed {
            0 => "no memory freed".to_owned(),
            1.. => format!("{bytes} freed"),
            _ if after.orig_data_size > before.orig_data_size => {
                format!("{bytes} more in use, because of writes in the meantime")
            }
            _ => format!("{bytes} more in use"),
        };
        let took = end.saturating_sub(begin);
        let mut note = if done.note.is_empty() { String::new() } else { format!("{}, ", done.note) };
        if done.saved > 0 {
            note += &format!("{} less data, ", human(done.saved));
        }
        self.report.actions.push(Action {
            device: device.name.clone(),
            action: action.to_owned(),
            pages: pages.to_owned(),
            reason: worded(reason),
            result: worded(format!("{note}{change} in {:.1} s", took.as_secs_f64())),
            freed_bytes: freed,
            written_bytes: done.written,
            took_usec: micros(took),
        });
        Ok(freed)
    }

    fn compact(&mut self, device: &Device, reason: &str) -> Result<(), Stopped> {
        if device.stored_pages == 0 {
            return Ok(());
        }
        let number = device.number;
        self.measured(device, COMPACT, "", reason, |run| {
            run.host.write_attribute(number, Attribute::Compact, "1")?;
            Ok(Done::default())
        })?;
        Ok(())
    }
}

/// Result of an action.
#[derive(Debug, Default)]
struct Done {
    note: String,
    written: u64,
    /// Bytes by which the data shrank. Memory follows when the pool is compacted.
    saved: u64,
    /// Why nothing was done, if so.
    skipped: Option<String>,
}

/// The level that the daemon has noted.
fn pressure_level<H: Host>(host: &H) -> Level {
    pressure::noted(&host.text(MachineFile::PressureLevel).unwrap_or_default()).0
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Continues with independent work after a failure and keeps the first one in `ended`. Cancellation ends the run at
/// once.
fn go_on(ended: &mut Result<(), Stopped>, done: Result<(), Stopped>) -> Result<(), Stopped> {
    match done {
        Err(Stopped::Failed(_)) => {
            if ended.is_ok() {
                *ended = done;
            }
            Ok(())
        }
        other => other,
    }
}

/// Maps the kernel's refusal of a pass: another pass is running, no memory to move a page, or else an error.
fn refused(error: HostError) -> Result<String, Stopped> {
    if error.is(Errno::AGAIN) || error.is(Errno::BUSY) {
        return Ok("another pass is running".to_owned());
    }
    if error.is(Errno::NOMEM) {
        return Ok("ended early: out of memory".to_owned());
    }
    Err(Error::from(error).into())
}
