//! Bringing about what is configured, through PID 1 or directly, target by target; and finishing it after a crash.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bus::error::{BusError, Name, Result};
use super::config::errors;
use super::core::{Core, Mode, Phase};
use super::jobs::Handle;
use super::lane;
use super::systemd::{Systemd, Verb};
use crate::engine::reload::{self, Scope, Survey};
use crate::engine::{self};
use crate::host::linux::{LinuxHost, files, unit_files};
use crate::logic::change::{Action, Change, UnitDisk};
use crate::logic::config::Loaded;
use crate::logic::plan::{Activation, Kind, Request};
use crate::logic::record::Target;
use crate::logic::unit_text::{self, activating_unit, disk_of_unit};

/// What is to be brought about. Kept in `/run/zramd/operation` while it is being done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Wish {
    /// Only these follow the configuration; nothing means all.
    pub only: Option<BTreeSet<Target>>,
    /// They are to be gone: nobody wonders that they are not configured.
    pub gone: bool,
    /// Whether contents may be lost.
    pub forced: bool,
    /// Only what is missing is added: nothing that runs is touched.
    pub gently: bool,
}

impl Wish {
    /// All that is configured.
    pub fn everything(forced: bool) -> Wish {
        Wish { forced, ..Wish::default() }
    }

    /// One target.
    pub fn one(target: Target, forced: bool) -> Wish {
        Wish { only: Some(BTreeSet::from([target])), ..Wish::everything(forced) }
    }

    /// One target, which is not configured any more, or switched off.
    pub fn gone(target: Target, forced: bool) -> Wish {
        Wish { gone: true, ..Wish::one(target, forced) }
    }
}

fn root() -> &'static Path {
    Path::new("/")
}

/// What there is to say when nothing had to be done.
pub const NOTHING: &str = "nothing to change";

/// Where a wish is kept while it is being fulfilled; without `.json`, because it is no record of a target.
const OPERATION: &str = "/run/zramd/operation";

/// What a crashed daemon left unfulfilled.
pub fn interrupted() -> Option<Wish> {
    let text = files::read_optional(root(), OPERATION).ok()?;
    serde_json::from_str(&text).ok()
}

async fn note(wish: Option<&Wish>) -> Result<()> {
    let text = wish.map(serde_json::to_string).transpose();
    let text = text.map_err(|error| BusError::new(Name::Failed, format!("write JSON: {error}")))?;
    lane::run(move || files::replace(root(), OPERATION, text.as_deref()).map_err(engine::Error::failed)).await
}

/// Refuses while the configuration has mistakes.
pub async fn must_be_valid(core: &Arc<Core>) -> Result<Loaded> {
    let source = core.source.clone();
    let loaded = lane::run(move || Ok(source.load())).await?;
    let errors = errors(&loaded.problems);
    if errors.is_empty() {
        return Ok(loaded);
    }
    let message = format!("{}; the old configuration stays in force", errors.join("; "));
    Err(BusError::new(Name::ConfigInvalid, message))
}

/// Compares the configuration with what runs.
pub async fn survey(core: &Arc<Core>, wish: &Wish) -> Result<(Loaded, Survey)> {
    let loaded = match wish.only {
        None => must_be_valid(core).await?,
        // Mistakes elsewhere do not concern these targets.
        Some(_) => {
            let source = core.source.clone();
            lane::run(move || Ok(source.load())).await?
        }
    };
    let activation = match core.mode {
        Mode::Systemd => Activation::Managed,
        Mode::Direct => Activation::Direct,
    };
    let mode = core.mode;
    let wish = wish.clone();
    lane::run(move || {
        let disks = if mode == Mode::Systemd { unit_disks() } else { Vec::new() };
        let scope = Scope { only: wish.only.clone(), forced: wish.forced, disks };
        let mut survey = reload::survey(&LinuxHost::new("/"), &loaded, activation, &scope)?;
        if wish.gently {
            survey.changes.retain(|change| matches!(change.action, Action::Create | Action::Activate));
        }
        Ok((loaded, survey))
    })
    .await
}

fn unit_disks() -> Vec<UnitDisk> {
    let mounts = unit_files::mounts(root());
    let disks = mounts.iter().filter_map(|(_, text)| disk_of_unit(text));
    disks.map(|(name, mount_point)| UnitDisk { name, mount_point }).collect()
}

/// Fulfils a wish, and says in one sentence what was done.
pub async fn reconcile(core: &Arc<Core>, handle: &Handle, wish: Wish) -> Result<String> {
    super::notify::reloading();
    core.enter(Phase::Reloading);
    note(Some(&wish)).await?;
    let done = fulfil(core, handle, &wish).await;
    // A wish that failed is not tried again at the next start: its error has been told.
    let cleared = note(None).await;
    core.resample().await;
    core.enter(Phase::Running);
    super::notify::ready("Serving");
    cleared.and(done)
}

async fn fulfil(core: &Arc<Core>, handle: &Handle, wish: &Wish) -> Result<String> {
    let (loaded, survey) = survey(core, wish).await?;
    if let Some(problem) = unknown(wish, &loaded, &survey).filter(|_| !wish.gone) {
        return Err(problem);
    }
    let report = match core.mode {
        Mode::Systemd => through_pid_1(core, handle, &loaded, &survey).await?,
        Mode::Direct => directly(handle, &loaded, survey).await?,
    };
    if wish.only.is_none() {
        core.set_config(loaded);
    } else {
        let source = core.source.clone();
        let now = lane::run(move || Ok(source.load())).await?;
        // The mistakes of other sections stay what they are known as.
        core.set_config(now);
    }
    report.sentence()
}

/// An error when a target that was asked for by name is not in the configuration, or its section has mistakes.
fn unknown(wish: &Wish, loaded: &Loaded, survey: &Survey) -> Option<BusError> {
    for target in wish.only.iter().flatten() {
        if survey.plan.item(target).is_some() {
            continue;
        }
        let section = target.to_string();
        let own = loaded
            .problems
            .iter()
            .filter(|problem| problem.origin.key.split('.').next() == Some(section.as_str()));
        let errors = errors(&own.cloned().collect::<Vec<_>>());
        if !errors.is_empty() {
            return Some(BusError::new(Name::ConfigInvalid, errors.join("; ")));
        }
        return Some(BusError::new(
            Name::NotFound,
            format!("there is no usable section [{section}] in the configuration"),
        ));
    }
    None
}

/// What became of each target.
#[derive(Debug, Default)]
struct Report {
    done: Vec<String>,
    failed: Vec<BusError>,
}

impl Report {
    fn add(&mut self, change: &Change, result: Result<()>) {
        match result {
            Ok(()) if change.detail.is_empty() => {
                self.done.push(format!("{}: {}", change.target, change.action));
            }
            Ok(()) => self.done.push(format!("{}: {} ({})", change.target, change.action, change.detail)),
            Err(error) => self.failed.push(error),
        }
    }

    fn sentence(self) -> Result<String> {
        let done = if self.done.is_empty() { NOTHING.to_owned() } else { self.done.join("; ") };
        let Some(first) = self.failed.first() else { return Ok(done) };
        let name = first.name;
        let mut sentences: Vec<String> = self.failed.into_iter().map(|error| error.message).collect();
        if !self.done.is_empty() {
            sentences.push(format!("done: {}", self.done.join("; ")));
        }
        Err(BusError::new(name, sentences.join("; ")))
    }
}

fn refusal(change: &Change) -> BusError {
    let name = match change.kind {
        Some(Kind::Config) => Name::ConfigInvalid,
        Some(Kind::Unsupported) => Name::NotSupported,
        Some(Kind::Unsafe) | None => Name::Unsafe,
    };
    BusError::new(name, format!("{}: {}", change.target, change.detail))
}

/// Without systemd: the engine does it all, on the blocking lane; progress is read beside it.
async fn directly(handle: &Handle, loaded: &Loaded, survey: Survey) -> Result<Report> {
    let mut report = Report::default();
    let (refused, changes): (Vec<Change>, Vec<Change>) =
        survey.changes.into_iter().partition(|change| change.action == Action::Refuse);
    report.failed.extend(refused.iter().map(refusal));
    let busy: Vec<u32> = changes.iter().filter(|change| change.action.stops()).filter_map(number).collect();
    let begun = used(&busy).await;
    let survey = Survey { changes: changes.clone(), plan: survey.plan };
    let (loaded, cancel) = (loaded.clone(), handle.cancel.clone());
    let mut work = tokio::task::spawn_blocking(move || {
        reload::carry_out(&mut LinuxHost::cancellable("/", cancel), &loaded, &survey)
    });
    let mut ticks = tokio::time::interval(Duration::from_millis(250));
    let outcomes = loop {
        tokio::select! {
            done = &mut work => {
                let done = done.map_err(|error| BusError::new(Name::Failed, format!("the work ended early: {error}")))?;
                break done?;
            }
            _ = ticks.tick(), if begun > 0 => handle.progress(share(begun, used(&busy).await)).await,
        }
    };
    for change in changes.iter().filter(|change| change.action != Action::Keep) {
        let errors = outcomes.iter().filter(|outcome| outcome.target == change.target);
        let error = errors.flat_map(|outcome| outcome.errors.clone()).reduce(engine::Error::join);
        report.add(change, error.map_or(Ok(()), |error| Err(error.into())));
    }
    Ok(report)
}

fn number(change: &Change) -> Option<u32> {
    match change.target {
        Target::Device(number) => Some(number),
        Target::RamDisk(_) => None,
    }
}

/// Bytes of swap in use on these devices.
async fn used(numbers: &[u32]) -> u64 {
    let numbers = numbers.to_vec();
    let sum = lane::run(move || {
        let host = LinuxHost::new("/");
        Ok(numbers.iter().map(|number| reload::swap_used(&host, *number)).sum())
    });
    sum.await.unwrap_or(0)
}

fn share(begun: u64, left: u64) -> f64 {
    if begun == 0 { 0.0 } else { begun.saturating_sub(left) as f64 / begun as f64 }
}

/// With systemd: what goes is stopped, the units are brought up to date, what comes is started.
async fn through_pid_1(
    core: &Arc<Core>,
    handle: &Handle,
    loaded: &Loaded,
    survey: &Survey,
) -> Result<Report> {
    let connection = core.connection().ok_or_else(|| BusError::new(Name::Failed, "there is no bus"))?;
    let pid_1 = Systemd::enter(&connection).await?;
    let result = with_pid_1(&pid_1, handle, loaded, survey).await;
    pid_1.leave().await;
    result
}

async fn with_pid_1(pid_1: &Systemd, handle: &Handle, loaded: &Loaded, survey: &Survey) -> Result<Report> {
    let mut report = Report::default();
    let mut stuck: Vec<Target> = Vec::new();
    report.failed.extend(survey.changes.iter().filter(|change| change.action == Action::Refuse).map(refusal));
    for change in survey.changes.iter().filter(|change| change.action.stops()) {
        if let Err(error) = stop(pid_1, handle, change).await {
            stuck.push(change.target.clone());
            report.failed.push(error);
        } else if change.action == Action::Remove {
            report.add(change, Ok(()));
        }
    }
    bring_units_up_to_date(pid_1, survey).await?;
    for change in survey.changes.iter().filter(|change| !stuck.contains(&change.target)) {
        let result = match change.action {
            action if action.starts() => start(pid_1, handle, change).await,
            Action::Adapt => adapt(pid_1, handle, loaded, change).await,
            _ => continue,
        };
        report.add(change, result);
    }
    Ok(report)
}

/// Stops the unit that uses a target, and the one that set it up; memory is asked first.
async fn stop(pid_1: &Systemd, handle: &Handle, change: &Change) -> Result<()> {
    let target = &change.target;
    let numbers: Vec<u32> = number(change).into_iter().collect();
    if let Some(number) = number(change) {
        lane::run(move || reload::memory_can_take(&LinuxHost::new("/"), number)).await?;
    }
    let begun = used(&numbers).await;
    let look = || async {
        if begun > 0 {
            handle.progress(share(begun, used(&numbers).await)).await;
        }
    };
    let unit = match (&change.present, target) {
        (Some(present), _) => activating_unit(present),
        (None, Target::Device(number)) => format!("dev-zram{number}.swap"),
        (None, Target::RamDisk(name)) => match unit_of_disk(name).await {
            Some(unit) => unit,
            None => return Ok(()),
        },
    };
    pid_1.unit(Verb::Stop, &unit, target, handle, look).await?;
    match number(change) {
        // Stopped already if the unit was active; if it was not, nobody else stops it.
        Some(number) => {
            pid_1.unit(Verb::Stop, &unit_text::setup_unit(number), target, handle, || async {}).await
        }
        None => Ok(()),
    }
}

async fn unit_of_disk(name: &str) -> Option<String> {
    let name = name.to_owned();
    let found = lane::run(move || {
        let mounts = unit_files::mounts(root());
        let of = |text: &str| disk_of_unit(text).is_some_and(|(found, _)| found == name);
        Ok(mounts.into_iter().find(|(_, text)| of(text)).map(|(unit, _)| unit))
    });
    found.await.ok().flatten()
}

/// Has PID 1 know the units of everything that is planned: the generator writes them where zramd is enabled, and the
/// daemon itself where it is not.
async fn bring_units_up_to_date(pid_1: &Systemd, survey: &Survey) -> Result<()> {
    let wanted = unit_text::unit_files(&survey.plan);
    let removes =
        survey.changes.iter().any(|change| change.action == Action::Remove && change.present.is_some());
    let files = wanted.clone();
    let in_place = lane::run(move || Ok(unit_files::are_in_place(root(), &files))).await?;
    if in_place && !removes {
        return Ok(());
    }
    pid_1.reload().await?;
    let written = lane::run(move || {
        if unit_files::are_generated(root(), &wanted) {
            // What we wrote earlier would hide what the generator writes from now on.
            return unit_files::write_runtime(root(), &[]).map_err(engine::Error::failed);
        }
        unit_files::write_runtime(root(), &wanted).map_err(engine::Error::failed)
    });
    if written.await? { pid_1.reload().await } else { Ok(()) }
}

async fn start(pid_1: &Systemd, handle: &Handle, change: &Change) -> Result<()> {
    let Some(wanted) = &change.wanted else { return Ok(()) };
    pid_1.unit(Verb::Start, &activating_unit(wanted), &change.target, handle, || async {}).await
}

/// What can change while it is in use: a limit through the kernel, options of a mount through PID 1.
async fn adapt(pid_1: &Systemd, handle: &Handle, loaded: &Loaded, change: &Change) -> Result<()> {
    if let Target::Device(number) = change.target {
        let loaded = loaded.clone();
        lane::run(move || engine::provision::adapt(&mut LinuxHost::new("/"), &loaded, number)).await?;
    }
    let mounted = |request: &Request| unit_text::options_of_mount(request);
    let (before, after) =
        (change.present.as_ref().and_then(mounted), change.wanted.as_ref().and_then(mounted));
    match (after, &change.wanted) {
        (Some(after), Some(wanted)) if before.as_ref() != Some(&after) => {
            pid_1.unit(Verb::Reload, &activating_unit(wanted), &change.target, handle, || async {}).await
        }
        _ => Ok(()),
    }
}
