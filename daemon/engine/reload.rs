//! Applies a changed configuration to the running machine.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::error::Error;
use super::gather::{gather, gather_patiently};
use super::span;
use super::{provision, verdict};
use host::Host;
use logic::change::{Action, Change, changes};
use logic::config::Loaded;
use logic::config::edit::Edit;
use logic::config::settings::Settings;
use logic::facts::{BackingFacts, Facts};
use logic::finding::Finding;
use logic::following::{Follower, followers};
use logic::outcome::Outcome;
use logic::overlay::{self, Overlay, Override, Standing, section_of_path};
use logic::path_kind::PathKind;
use logic::plan as planner;
use logic::plan::{Activation, Decision, Item, Plan};
use logic::proc;
use logic::ramdisk::UnitRamdisk;
use logic::raw_path::RawPath;
use logic::record::{Record, Target};
use serde::de::IgnoredAny;

/// What a reload would change.
#[derive(Debug)]
pub struct Survey {
    /// The plan for everything that is configured.
    pub plan: Plan,
    /// One change per target, in the order in which to make them.
    pub changes: Vec<Change>,
    /// The facts on which the plan is based.
    pub facts: Facts,
}

impl Survey {
    /// What the planned devices have to do with the verdict of the benchmark; empty if there is none.
    pub fn followers<H: Host>(&self, host: &H, loaded: &Loaded) -> Vec<Follower> {
        let profile = loaded.settings.benchmark.profile;
        let read = || verdict::stored_now::<H, IgnoredAny>(host, profile).ok().map(|stored| stored.algorithm);
        let best = match &self.facts.best {
            Some(found) => found.as_ref().ok().map(|best| best.algorithm.clone()),
            // The plan did not need it.
            None => read(),
        };
        best.map_or_else(Vec::new, |best| followers(&self.plan, &self.changes, &self.facts, &best))
    }
}

/// Which targets to reload, and how.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Only these; `None` for all.
    pub only: Option<BTreeSet<Target>>,
    /// Whether contents may be lost.
    pub forced: bool,
    /// RAM disks on tmpfs that PID 1 mounted for us.
    pub ramdisks: Vec<UnitRamdisk>,
    /// Whether to read nothing from devices of zramd, which may not answer.
    pub patient: bool,
}

/// Compares the configuration with the machine; changes nothing. Planned as by the daemon even where zramd activates
/// the devices itself: what has to be replaced is removed first, so the planner need not refuse it.
pub fn survey<H: Host>(
    host: &H,
    loaded: &Loaded,
    activation: Activation,
    scope: &Scope,
) -> Result<Survey, Error> {
    let mut facts = if scope.patient {
        gather_patiently(host, &loaded.settings)?
    } else {
        gather(host, &loaded.settings)?
    };
    facts.unit_ramdisks.clone_from(&scope.ramdisks);
    measure_ramdisks(host, &mut facts);
    let planned = |settings| planner::plan(settings, loaded.problems.clone(), &facts, Activation::Managed);
    let compare = |plan| changes(plan, &facts, activation, scope.forced);
    let plan = span::planned(planned(&loaded.settings));
    let only_vm = scope.only.as_ref().is_some_and(|only| only.iter().all(|target| *target == Target::Vm));
    let mut changes = if only_vm {
        // A change of `[vm]` alone does not start a swap.
        compare(&planned(&Settings { devices: Vec::new(), ..loaded.settings.clone() }))
    } else {
        compare(&plan)
    };
    if let Some(only) = &scope.only {
        changes.retain(|change| only.contains(&change.target));
    }
    Ok(Survey { plan, changes, facts })
}

/// Checks the configuration for this machine: finds what a plan refuses. `disks` are RAM disks on tmpfs that PID 1 mounted for us.
/// What this user cannot look at counts as usable.
pub fn check<H: Host>(host: &H, loaded: &Loaded, disks: Vec<UnitRamdisk>) -> Plan {
    let settings = &loaded.settings;
    // A container is not the machine that is configured.
    let found = if host.container().is_some() { None } else { gather(host, settings).ok() };
    let Some(mut facts) = found else { return provision::check_elsewhere(host, loaded) };
    facts.unit_ramdisks = disks;
    measure_ramdisks(host, &mut facts);
    if !host.is_privileged() {
        facts.backing.retain(|_, found| !matches!(found, BackingFacts::Unreadable(_)));
        facts.files.retain(|_, found| ![found.directory, found.kind].contains(&PathKind::Hidden));
    }
    let mut plan = planner::plan(settings, loaded.problems.clone(), &facts, Activation::Managed);
    let changes = changes(&plan, &facts, Activation::Managed, false);
    // What is not configured here is no mistake of this file.
    let items = plan.by_target();
    let is_refused = |change: &&Change| change.action == Action::Refuse && items.contains_key(&change.target);
    let refused = changes.iter().filter(is_refused);
    // A refusal of the planner has a finding already.
    let reported: BTreeSet<&str> = plan.problems.iter().map(|problem| problem.object.as_str()).collect();
    let is_new = |found: &Finding| !reported.contains(found.object.as_str());
    let found: Vec<Finding> = refused.filter_map(Change::finding).filter(is_new).collect();
    plan.problems.extend(found);
    plan
}

fn measure_ramdisks<H: Host>(host: &H, facts: &mut Facts) {
    let by_unit = |path: &RawPath| facts.unit_ramdisks.iter().any(|disk| *path == disk.mount_point);
    let is_ours = |record: &Record, path: &RawPath| {
        matches!(record.target, Target::Ramdisk(_))
            && record.request.mount().is_some_and(|mount| *path == mount.mount_point)
    };
    let shown = |path: &RawPath| by_unit(path) || facts.records.values().any(|record| is_ours(record, path));
    // What is mounted over a RAM disk may not answer.
    let top = facts.mounts.iter().filter(|mount| proc::is_top(&facts.mounts, mount));
    for mount in top.filter(|mount| mount.fs_type == "tmpfs" || shown(&mount.mount_point)) {
        if let Ok(space) = host.space(mount.mount_point.as_bytes()) {
            facts.ramdisk_used.insert(mount.mount_point.clone(), space.used_bytes);
        }
    }
}

/// The edits that remove overrides without effect: their section was removed, or the configuration now says the same.
/// `files` are those of `loaded`. `targets` limits the check; empty for all.
pub fn obsolete_overrides(
    files: &[(PathBuf, String)],
    loaded: &Loaded,
    survey: &Survey,
    targets: &[Target],
) -> Vec<Edit> {
    let overrides = &loaded.merged.overrides;
    let mut edits = Vec::new();
    for (path, text) in files {
        let Some(section) = section_of_path(path) else { continue };
        let Some(target) = Target::of_section(section) else { continue };
        let written = Overlay::parse(text);
        if written.transient || !(targets.is_empty() || targets.contains(&target)) {
            continue;
        }
        let mut edit = |after| {
            edits.push(Edit { path: overlay::path(section), before: Some(text.clone()), after });
        };
        if overrides.iter().any(|found| found.object == section && found.standing == Standing::Orphaned) {
            edit(None);
            continue;
        }
        let mut rest = written.clone();
        for command in written.by() {
            let fewer = rest.without(command);
            let is_literal = |found: &Override| Some(&found.value) == found.configured.as_ref();
            let mut own =
                overrides.iter().filter(|found| found.object == section && found.command == command);
            let is_planned_anyway = || {
                let gone = written.values.keys().filter(|key| !fewer.values.contains_key(*key));
                let settings = loaded.without(section, gone);
                let plan = planner::plan(&settings, Vec::new(), &survey.facts, Activation::Managed);
                is_same(survey.plan.item(&target), plan.item(&target))
            };
            if own.all(is_literal) || is_planned_anyway() {
                rest = fewer;
            }
        }
        if rest != written {
            edit((!rest.values.is_empty()).then(|| rest.text(section)));
        }
    }
    edits
}

/// Whether the same is planned for both. False if either is skipped or refused, because its request is not known.
fn is_same(one: Option<&Item>, other: Option<&Item>) -> bool {
    let planned = |item: &Item| item.request.clone().filter(|_| item.decision == Decision::Planned);
    one.and_then(planned).is_some_and(|request| other.and_then(planned) == Some(request))
}

/// Applies the changes without systemd.
pub fn carry_out<H: Host>(host: &mut H, loaded: &Loaded, survey: &Survey) -> Result<Vec<Outcome>, Error> {
    let mut outcomes = Vec::new();
    let stops = |disks: bool| {
        let wanted = move |change: &&Change| matches!(change.target, Target::Ramdisk(_)) == disks;
        survey.changes.iter().filter(|change| change.action.stops()).filter(wanted)
    };
    // RAM disks before the devices that hold them.
    for change in stops(true).chain(stops(false)) {
        if change.action == Action::Reactivate {
            // The planner handles it in one step, which keeps the device.
            continue;
        }
        if let Target::Device(number) = change.target {
            // Without the note it is removed and added.
            provision::note_whether_it_stays(host, number, change.action == Action::Recreate).ok();
        }
        if let Err(error) = provision::down(host, &change.target) {
            outcomes.push(Outcome::failed(&change.target, error));
        }
    }
    let stuck: Vec<Target> = outcomes.iter().map(|outcome| outcome.target.clone()).collect();
    let wanted: BTreeSet<Target> = survey
        .changes
        .iter()
        .filter(|change| change.action.starts() || change.action == Action::Adapt)
        .map(|change| change.target.clone())
        .filter(|target| !stuck.contains(target))
        .collect();
    if !wanted.is_empty() {
        let applied = provision::apply_some(host, loaded, &wanted)?;
        outcomes.extend(applied.outcomes);
        outcomes.extend(applied.plan.items.iter().filter_map(refused));
    }
    Ok(outcomes)
}

/// The error of a target that the survey accepted but the planner refused.
fn refused(item: &Item) -> Option<Outcome> {
    let kind = item.kind.filter(|_| item.decision == Decision::Refused)?;
    let error = Error::new(kind, format!("{}: {}", item.target, item.reason));
    Some(Outcome::failed(&item.target, error))
}
