//! Applies the configuration target by target, through PID 1 or directly, and completes this after a crash.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::blocking;
use super::claims::{self, Claim};
use super::core::{Core, Mode, Phase};
use super::error::{Error, ErrorKind, Result};
use super::handle::Handle;
use super::setup::Cancel;
use super::systemd::{Systemd, Verb};
use engine::device::control;
use engine::provision::note_whether_it_stays;
use host::linux::log::{self, OPERATION};
use host::linux::ramdisk::Calls;
use host::linux::{LinuxHost, edit, files, unit_files};
use logic::change::{Action, Change};
use logic::config::edit::Edit;
use logic::config::lasting::FILE;
use logic::finding::{Finding, Level, has_errors};
use logic::log::Context;
use logic::outcome::Outcome;
use logic::overlay::section_of_path;
use logic::record::Target;
use logic::unit::MAINTENANCE_TIMER;
use logic::view::{Obsolete, Proposal, View};

/// A requested change. Kept in `/run/zramd/operation` until it is done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Wish {
    /// Limits the change to these targets; `None` is all.
    pub only: Option<BTreeSet<Target>>,
    /// What becomes of the targets.
    pub goal: Goal,
    /// Whether contents may be discarded.
    pub forced: bool,
    /// The edit of a drop-in that is part of the change; taken back on failure.
    pub edit: Option<Edit>,
    /// Level and fields of the log messages about it, for the programs that PID 1 starts meanwhile.
    #[serde(default)]
    pub log: Context,
}

/// What becomes of the targets of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Goal {
    /// As configured. A target that is named has to be configured.
    #[default]
    Apply,
    /// As configured, which may remove a target: its section is changed, or its override removed.
    Follow,
    /// Removed: that they are not configured is expected.
    Remove,
    /// What is missing is added, and nothing that runs is changed.
    Add,
    /// Created by the edit: has to exist afterwards, and is removed on failure.
    Create,
}

impl Wish {
    /// The whole configuration.
    pub fn everything(forced: bool) -> Wish {
        Wish { forced, ..Wish::default() }
    }

    pub fn one(target: Target, forced: bool) -> Wish {
        Wish { only: Some(BTreeSet::from([target])), ..Wish::everything(forced) }
    }

    /// Removal of one target, which is no longer configured or is disabled.
    pub fn gone(target: Target, forced: bool) -> Wish {
        Wish { goal: Goal::Remove, ..Wish::one(target, forced) }
    }
}

fn root() -> &'static Path {
    Path::new("/")
}

/// What a change has done, in words; `None` if there was nothing to do.
pub type Done = Option<String>;

/// The message for a user.
pub fn told(done: Done) -> String {
    done.unwrap_or_else(|| "nothing to change".to_owned())
}

/// The change that a crashed daemon did not complete.
pub fn interrupted() -> Option<Wish> {
    let text = files::read_optional(root(), OPERATION).ok()?;
    serde_json::from_str(&text).ok()
}

pub fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::Failed, format!("write JSON: {error}")))
}

async fn note(wish: Option<&Wish>) -> Result<()> {
    let text = wish.map(|wish| json(&Wish { log: log::context(), ..wish.clone() })).transpose()?;
    blocking::run(move || files::replace(root(), OPERATION, text.as_deref()).map_err(engine::Error::failed))
        .await
}

/// Reads the configuration.
pub async fn view(core: &Core) -> Result<View> {
    core.source.ask(&["view"], &Cancel::default()).await
}

/// Refuses while the configuration has mistakes.
pub fn must_be_valid(view: &View) -> Result<()> {
    if !has_errors(&view.findings) {
        return Ok(());
    }
    let message = format!("{}\nthe old configuration remains active", view.errors().join("\n"));
    Err(Error::new(ErrorKind::Config, message))
}

/// Compares the configuration, after the edit of the wish, with the running system.
pub async fn propose(core: &Core, wish: &Wish) -> Result<Proposal> {
    let edit = wish.edit.as_ref().map(json).transpose()?;
    let words: Vec<&str> = edit.iter().flat_map(|edit| ["--edit", edit]).collect();
    let mut proposal = propose_with(core, wish, &words).await?;
    // As at boot: if only single targets are changed, sections with mistakes disable only themselves.
    if wish.only.is_none() && wish.goal != Goal::Add {
        must_be_valid(&proposal.view)?;
    }
    if wish.goal == Goal::Add {
        proposal.changes.retain(|change| matches!(change.action, Action::Create | Action::Activate));
    }
    Ok(proposal)
}

/// The same with changes of the configuration: `--set` or `--edit` of `zramd-setup` with its value.
pub async fn propose_with(core: &Core, wish: &Wish, changes: &[&str]) -> Result<Proposal> {
    let targets: Vec<String> = wish.only.iter().flatten().map(ToString::to_string).collect();
    let mut words = vec!["propose"];
    if core.mode == Mode::Systemd {
        words.push("--managed");
    }
    if wish.forced {
        words.push("--force");
    }
    words.extend(changes);
    words.extend(targets.iter().map(String::as_str));
    // An empty set would be understood as all targets.
    if wish.only.as_ref().is_some_and(BTreeSet::is_empty) {
        return Ok(Proposal { view: view(core).await?, ..Proposal::default() });
    }
    core.source.ask(&words, &Cancel::default()).await
}

/// Applies a change; `proposal` is its plan, if that was made already.
pub async fn reconcile(
    core: &Arc<Core>,
    handle: &Handle,
    wish: Wish,
    proposal: Option<Box<Proposal>>,
) -> Result<Done> {
    super::notify::reloading();
    core.changes.fetch_add(1, Ordering::SeqCst);
    core.enter(Phase::Reloading);
    // Noted before anything is written, so that a crash in between is completed or reverted.
    note(Some(&wish)).await?;
    let done = begin(core, handle, &wish, proposal).await;
    let cleared = if done.is_err() { take_back(core, handle, wish).await } else { note(None).await };
    core.enter(Phase::Running);
    core.publish_changes().await;
    super::notify::ready("Serving");
    cleared.and(done)
}

async fn begin(
    core: &Arc<Core>,
    handle: &Handle,
    wish: &Wish,
    proposal: Option<Box<Proposal>>,
) -> Result<Done> {
    let proposal = match proposal {
        Some(proposal) => proposal,
        None => Box::new(propose(core, wish).await?),
    };
    for change in proposal.changes.iter().filter(|change| change.action != Action::Keep) {
        tracing::debug!("{}: {}: {}", change.target, change.action.word(), change.detail);
    }
    fulfil(core, handle, wish, proposal).await
}

/// Returns whether anything was written.
async fn write(edit: Edit) -> Result<bool> {
    blocking::run(move || edit::write(&Calls::new(), root(), &edit)).await
}

/// Takes the edit of a failed change back, and applies the configuration from before. A failed change is not repeated at the next
/// start, because its error was reported.
async fn take_back(core: &Arc<Core>, handle: &Handle, mut wish: Wish) -> Result<()> {
    if let Some(edit) = wish.edit.take() {
        let is_written = match write(edit.reversed()).await {
            Ok(is_written) => is_written,
            // Another program has changed it since.
            Err(error) if error.kind == ErrorKind::Busy => false,
            Err(error) => return Err(error),
        };
        if is_written && wish.goal != Goal::Remove {
            if wish.goal == Goal::Create {
                (wish.goal, wish.forced) = (Goal::Remove, true);
            }
            // Removed targets are restored, and partial work is undone. If that fails as well, the first error is the one to
            // report.
            begin(core, &handle.quietly(), &wish, None).await.ok();
        }
    }
    note(None).await
}

async fn fulfil(core: &Arc<Core>, handle: &Handle, wish: &Wish, mut proposal: Box<Proposal>) -> Result<Done> {
    if let Some(edit) = &wish.edit {
        if let Some(section) = section_of_path(Path::new(&edit.path)).filter(|_| wish.goal != Goal::Remove) {
            must_be_without_mistakes(section, &edit.path, &proposal.view)?;
        }
        // The values came with the call, and not from a file.
        for change in proposal.changes.iter_mut().filter(|change| change.kind == Some(ErrorKind::Config)) {
            change.kind = Some(ErrorKind::InvalidArgument);
        }
    }
    let _claims = claim_ramdisks(core, handle, &mut proposal.changes);
    match wish.goal {
        // A section with a mistake would be treated as removed.
        Goal::Follow => must_be_valid(&proposal.view)?,
        Goal::Apply | Goal::Create => {
            let mut targets = wish.only.iter().flatten();
            targets.try_for_each(|target| must_be_configured(target, &proposal))?;
        }
        Goal::Remove | Goal::Add => {}
    }
    for change in proposal.changes.iter().filter(|change| change.action.stops()) {
        if let Some(number) = number(change) {
            blocking::run(move || control::memory_can_take(&LinuxHost::new("/"), number)).await?;
        }
    }
    if let Some(edit) = wish.edit.clone() {
        // What cannot be applied is not written.
        let refused = refused(&proposal.changes);
        if let Err(error) = sentence(&refused) {
            handle.outcomes(refused);
            return Err(error);
        }
        write(edit).await?;
    }
    let outcomes = match core.mode {
        Mode::Systemd => through_pid_1(core, handle, &mut proposal).await?,
        Mode::Direct => directly(core, handle, wish, &proposal.changes).await?,
    };
    let sentence = sentence(&outcomes);
    handle.outcomes(outcomes);
    // If a file cannot be read, it is unknown which sections are obsolete.
    let is_known = sentence.is_ok() && wish.goal != Goal::Add && !has_errors(&proposal.view.findings);
    if let Some(Obsolete { edits, view }) = proposal.obsolete.filter(|_| is_known) {
        for edit in edits {
            write(edit).await?;
        }
        proposal.view = view;
    }
    core.set_view(proposal.view);
    super::maintain::follow_configuration(core).await;
    let sentence = sentence?;
    if wish.goal == Goal::Create {
        for target in wish.only.iter().flatten() {
            let Target::Device(number) = *target else { continue };
            let made = blocking::run(move || control::must_be_ours(&LinuxHost::new("/"), number)).await;
            made.map_err(|_: Error| {
                let why = "a device needs a size above 0, must be enabled, and must not be limited to machines with less memory";
                Error::new(ErrorKind::InvalidArgument, format!("[{target}] describes no device: {why}"))
            })?;
        }
    }
    let lasting = wish.edit.as_ref().filter(|edit| edit.path == FILE && edit.before != edit.after);
    Ok(sentence.or(lasting.map(|_| format!("{FILE} is changed; nothing in use changes"))))
}

/// An error if a section has mistakes in this file; unknown keys count, because the caller can correct them.
pub fn must_be_without_mistakes(section: &str, file: &str, view: &View) -> Result<()> {
    let is_own = |found: &&Finding| found.place.as_ref().is_some_and(|place| place.file.ends_with(file));
    // A warning for a file, but an error here.
    let own = view.of_section(section).filter(is_own);
    let messages: Vec<String> = own.map(|found| format!("{}: {}", found.key(), found.text())).collect();
    if messages.is_empty() {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::InvalidArgument, messages.join("; ")))
    }
}

/// Claims the RAM disks that are about to change. The change of a RAM disk that is in use by other work becomes a refusal.
fn claim_ramdisks(core: &Arc<Core>, handle: &Handle, changes: &mut [Change]) -> Vec<Arc<Claim>> {
    let mut claims = Vec::new();
    for change in changes.iter_mut().filter(|change| !matches!(change.action, Action::Keep | Action::Refuse))
    {
        let Target::Ramdisk(name) = &change.target else { continue };
        let name = claims::of_ramdisk(name);
        if handle.claim.as_ref().is_some_and(|claim| claim.is_for(&name)) {
            continue;
        }
        match core.claims.claim(&name) {
            Ok(claim) => claims.push(claim),
            Err(error) => {
                change.detail = format!("{}; try again later", error.0.message);
                change.action = Action::Refuse;
                change.kind = Some(error.kind);
            }
        }
    }
    claims
}

/// An error if a target that was named is not configured, is disabled, or has mistakes.
pub fn must_be_configured(target: &Target, proposal: &Proposal) -> Result<()> {
    let section = target.to_string();
    let errors = proposal.view.of_section(&section).filter(|found| found.level == Level::Error);
    let errors: Vec<String> = errors.map(Finding::one_line).collect();
    if !errors.is_empty() {
        return Err(Error::new(ErrorKind::Config, errors.join("; ")));
    }
    let found = proposal.view.sections.get(&section);
    let change = proposal.changes.iter().find(|change| change.target == *target);
    match (change.map(|change| change.action), found) {
        (Some(Action::Remove) | None, Some(file)) => {
            Err(Error::new(ErrorKind::NotFound, format!("[{section}] is switched off in {file}")))
        }
        (Some(Action::Remove) | None, None) => Err(Error::new(
            ErrorKind::NotFound,
            format!("there is no section [{section}] in the configuration"),
        )),
        _ => Ok(()),
    }
}

/// Refused changes fail at once.
fn refused(changes: &[Change]) -> Vec<Outcome> {
    let refused = changes.iter().filter(|change| change.action == Action::Refuse);
    refused.map(|change| outcome(change, Err(refusal(change)))).collect()
}

fn outcome(change: &Change, result: Result<()>) -> Outcome {
    Outcome::of(change, result.err().map(|error| error.0).into_iter().collect())
}

/// One message for all: failures first, then what was done.
fn sentence(outcomes: &[Outcome]) -> Result<Done> {
    let of = |done: bool| {
        let texts = outcomes.iter().filter(|outcome| outcome.is_done() == done);
        texts.map(Outcome::text).collect::<Vec<String>>().join("; ")
    };
    let (failed, done) = (of(false), of(true));
    match outcomes.iter().find_map(|outcome| outcome.errors.first()) {
        None => Ok(Some(done).filter(|done| !done.is_empty())),
        Some(error) if done.is_empty() => Err(Error::new(error.kind, failed)),
        Some(error) => Err(Error::new(error.kind, format!("{failed}; done: {done}"))),
    }
}

fn refusal(change: &Change) -> Error {
    let kind = change.kind.unwrap_or(ErrorKind::Unsafe);
    Error::new(kind, format!("{}: {}", change.target, change.detail))
}

fn number(change: &Change) -> Option<u32> {
    match change.target {
        Target::Device(number) => Some(number),
        Target::Ramdisk(_) | Target::Vm | Target::Zswap => None,
    }
}

/// Bytes of swap in use on these devices.
async fn used(numbers: &[u32]) -> u64 {
    let numbers = numbers.to_vec();
    let sum = blocking::run(move || {
        let host = LinuxHost::new("/");
        Ok::<u64, Error>(numbers.iter().map(|number| control::swap_used(&host, *number)).sum())
    });
    sum.await.unwrap_or(0)
}

/// Publishes the progress of moving pages off these devices until `work` ends.
async fn while_pages_move<T>(handle: &Handle, numbers: &[u32], work: impl Future<Output = T>) -> T {
    let begun = used(numbers).await;
    let look = async || match begun {
        0 => None,
        _ => Some(begun.saturating_sub(used(numbers).await) as f64 / begun as f64),
    };
    handle.watch(work, look).await
}

/// Without systemd: `zramd-setup` does everything; progress is read in parallel.
async fn directly(core: &Core, handle: &Handle, wish: &Wish, changes: &[Change]) -> Result<Vec<Outcome>> {
    let mut outcomes = refused(changes);
    let todo: Vec<&Change> =
        changes.iter().filter(|change| !matches!(change.action, Action::Refuse | Action::Keep)).collect();
    if todo.is_empty() {
        return Ok(outcomes);
    }
    let busy: Vec<u32> =
        todo.iter().filter(|change| change.action.stops()).filter_map(|change| number(change)).collect();
    let targets: Vec<String> = todo.iter().map(|change| change.target.to_string()).collect();
    let mut words = vec!["carry-out"];
    if wish.forced {
        words.push("--force");
    }
    words.extend(targets.iter().map(String::as_str));
    let work = core.source.ask::<Vec<Outcome>>(&words, &handle.cancel);
    let ended = while_pages_move(handle, &busy, work).await?;
    for change in todo {
        let own = ended.iter().filter(|ended| ended.target == change.target);
        let mut errors: Vec<logic::error::Error> = own.flat_map(|ended| ended.errors.clone()).collect();
        if !errors.is_empty() && handle.cancel.is_cancelled() {
            let message = format!("{}: cancelled; it remains in use", change.target);
            errors = vec![logic::error::Error::new(ErrorKind::Cancelled, message)];
        }
        outcomes.push(Outcome::of(change, errors));
    }
    Ok(outcomes)
}

/// With systemd: stop units, update them, start units.
async fn through_pid_1(core: &Arc<Core>, handle: &Handle, proposal: &mut Proposal) -> Result<Vec<Outcome>> {
    let connection = core.connection().ok_or_else(|| Error::new(ErrorKind::Failed, "there is no bus"))?;
    let pid_1 = Systemd::enter(&connection).await?;
    let result = with_pid_1(core, &pid_1, handle, proposal).await;
    pid_1.leave().await;
    result
}

async fn with_pid_1(
    core: &Core,
    pid_1: &Systemd,
    handle: &Handle,
    proposal: &mut Proposal,
) -> Result<Vec<Outcome>> {
    let units = proposal.units.take();
    let changes = &proposal.changes;
    let mut outcomes = refused(changes);
    let mut stuck: Vec<&Target> = Vec::new();
    let stops = |disks: bool| {
        let wanted = move |change: &&Change| matches!(change.target, Target::Ramdisk(_)) == disks;
        changes.iter().filter(|change| change.action.stops()).filter(wanted)
    };
    // Devices are stopped last: saving a RAM disk starts a unit, and then PID 1 also starts again what `swap.target` wants.
    for change in stops(true).chain(stops(false)) {
        if let Err(error) = stop(pid_1, handle, change).await {
            stuck.push(&change.target);
            outcomes.push(outcome(change, Err(error)));
        } else if change.action == Action::Remove {
            outcomes.push(outcome(change, Ok(())));
        }
    }
    if let Some(units) = units {
        if proposal.view.maintenance.every_seconds.is_none() && unit_files::exists(root(), MAINTENANCE_TIMER)
        {
            // A timer whose unit is gone fails when PID 1 reloads.
            pid_1.job(Verb::Stop, MAINTENANCE_TIMER, None, handle).await?;
        }
        blocking::run(move || unit_files::apply(root(), &units).map_err(engine::Error::failed)).await?;
        pid_1.reload().await?;
    }
    for change in changes.iter().filter(|change| !stuck.contains(&&change.target)) {
        let result = match (change.action, &change.start) {
            (action, Some(unit)) if action.starts() => {
                pid_1.unit(Verb::Start, unit, &change.target, handle).await
            }
            (Action::Adapt, _) => adapt(core, pid_1, handle, change).await,
            _ => continue,
        };
        outcomes.push(outcome(change, result));
    }
    Ok(outcomes)
}

/// Stops the unit that uses a target, and the one that set it up.
async fn stop(pid_1: &Systemd, handle: &Handle, change: &Change) -> Result<()> {
    let numbers: Vec<u32> = number(change).into_iter().collect();
    // Memory was checked for all targets before, and is checked again for each, because previous ones have used some.
    if let Some(number) = number(change) {
        let again = change.action == Action::Recreate;
        let note = move || {
            let mut host = LinuxHost::new("/");
            control::memory_can_take(&host, number)?;
            // Without the note it is removed and added.
            note_whether_it_stays(&mut host, number, again).ok();
            Ok::<(), Error>(())
        };
        blocking::run(note).await?;
    }
    if let Some(unit) = &change.stop {
        let stopping = pid_1.unit(Verb::Stop, unit, &change.target, handle);
        while_pages_move(handle, &numbers, stopping).await?;
        if let Err(error) = pid_1.save_before_stop(&change.target, handle).await {
            // Best effort: restores the previous state. The first error is the one to report.
            pid_1.unit(Verb::Start, unit, &change.target, handle).await.ok();
            return Err(error);
        }
    }
    match &change.setup {
        // PID 1 has stopped it with the unit if that was active; otherwise nothing else does.
        Some(unit) => pid_1.unit(Verb::Stop, unit, &change.target, handle).await,
        None => Ok(()),
    }
}

/// Changes of targets in use: a limit through the kernel, mount options through PID 1.
async fn adapt(core: &Core, pid_1: &Systemd, handle: &Handle, change: &Change) -> Result<()> {
    if let Target::Device(_) = change.target {
        core.source.ask::<()>(&["adapt", &change.target.to_string()], &Cancel::default()).await?;
    }
    match &change.remount {
        Some(unit) => pid_1.unit(Verb::Reload, unit, &change.target, handle).await,
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::Source;

    #[test]
    fn a_claimed_disk_is_not_changed() {
        let core = Core::new(Source::default(), Mode::Direct);
        let (busy, idle) = (Target::Ramdisk("busy".to_owned()), Target::Ramdisk("idle".to_owned()));
        let changes = || {
            vec![
                Change::new(&busy, Action::Recreate, ""),
                Change::new(&idle, Action::Recreate, ""),
                Change::new(&Target::Device(0), Action::Recreate, ""),
            ]
        };
        let actions =
            |changes: &[Change]| changes.iter().map(|change| change.action).collect::<Vec<Action>>();
        let handle = {
            let claim = core.claims.claim("ramdisk-busy").unwrap();
            Handle::unwatched().with(claim)
        };

        let mut todo = changes();
        let claims = claim_ramdisks(&core, &Handle::unwatched(), &mut todo);
        assert_eq!(actions(&todo), [Action::Refuse, Action::Recreate, Action::Recreate]);
        let refused = refusal(&todo[0]);
        assert!(refused.kind == ErrorKind::Busy && refused.message.contains("ramdisk.busy"), "{refused:?}");
        // The claim is exclusive in both directions.
        assert_eq!(core.claims.claim("ramdisk-idle").unwrap_err().kind, ErrorKind::Busy);
        drop(claims);

        // The holder of the claim may change it.
        let mut todo = changes();
        let claims = claim_ramdisks(&core, &handle, &mut todo);
        assert_eq!(actions(&todo), [Action::Recreate; 3]);
        drop((claims, handle));
        assert!(core.claims.claim("ramdisk-busy").is_ok() && core.claims.claim("ramdisk-idle").is_ok());
    }
}
