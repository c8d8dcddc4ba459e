//! Bringing what runs in line with a configuration that has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::apply::Outcome;
use super::error::Error;
use super::gather::gather;
use super::provision;
use host::Host;
use logic::change::{Action, Change, UnitDisk, changes};
use logic::config::Loaded;
use logic::config::settings::Settings;
use logic::facts::Facts;
use logic::overlay::{Overlay, Override, Standing, section_of_path};
use logic::plan as planner;
use logic::plan::{Activation, Decision, Item, Plan};
use logic::raw_path::RawPath;
use logic::record::Target;

/// What a reload would do.
#[derive(Debug)]
pub struct Survey {
    /// The plan for everything that is configured.
    pub plan: Plan,
    /// Target by target, in the order in which it is to be done.
    pub changes: Vec<Change>,
    /// What was known.
    pub facts: Facts,
}

/// What to reload, and how.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Only these; nothing means everything.
    pub only: Option<BTreeSet<Target>>,
    /// Whether contents may be lost.
    pub forced: bool,
    /// tmpfs disks that PID 1 mounted for us.
    pub disks: Vec<UnitDisk>,
}

/// Compares the configuration with what runs. Changes nothing. Planned as for the daemon, whoever activates in the end:
/// what has to be made anew is taken away first, so the planner need not refuse it.
pub fn survey<H: Host>(
    host: &H,
    loaded: &Loaded,
    activation: Activation,
    scope: &Scope,
) -> Result<Survey, Error> {
    let mut facts = gather(host, &loaded.settings)?;
    measure_disks(host, &mut facts, &scope.disks);
    facts.unit_mounts = scope.disks.iter().map(|disk| disk.mount_point.clone()).collect();
    let planned = |settings| planner::plan(settings, loaded.problems.clone(), &facts, Activation::Managed);
    let compare = |plan| changes(plan, &facts, activation, &scope.disks, scope.forced);
    let plan = planned(&loaded.settings);
    let only_vm = scope.only.as_ref().is_some_and(|only| only.iter().all(|target| *target == Target::Vm));
    let mut changes = if only_vm {
        // Settings alone do not bring the swap that they are for.
        compare(&planned(&Settings { devices: Vec::new(), ..loaded.settings.clone() }))
    } else {
        compare(&plan)
    };
    if let Some(only) = &scope.only {
        changes.retain(|change| only.contains(&change.target));
    }
    Ok(Survey { plan, changes, facts })
}

fn measure_disks<H: Host>(host: &H, facts: &mut Facts, disks: &[UnitDisk]) {
    let shown = |path: &RawPath| disks.iter().any(|disk| *path == disk.mount_point);
    for mount in facts.mounts.iter().filter(|mount| mount.fs_type == "tmpfs" || shown(&mount.mount_point)) {
        if let Ok(space) = host.space(mount.mount_point.as_bytes()) {
            facts.disk_used.insert(mount.mount_point.clone(), space.used_bytes);
        }
    }
}

/// Sections of whose overrides some change nothing, with what remains of the drop-in: the section is no longer in the
/// configuration, or the configuration says the same now. `files` are those of `loaded`. With `targets`, only those are looked at.
pub fn obsolete_overrides(
    files: &[(PathBuf, String)],
    loaded: &Loaded,
    survey: &Survey,
    targets: &[Target],
) -> BTreeMap<String, Option<String>> {
    let overrides = &loaded.merged.overrides;
    let mut obsolete = BTreeMap::new();
    for (path, text) in files {
        let Some(section) = section_of_path(path) else { continue };
        let Some(target) = Target::of_section(section) else { continue };
        let written = Overlay::parse(text);
        if written.transient || !(targets.is_empty() || targets.contains(&target)) {
            continue;
        }
        if overrides.iter().any(|found| found.object == section && found.standing == Standing::Orphaned) {
            obsolete.insert(section.to_owned(), None);
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
            let text = (!rest.values.is_empty()).then(|| rest.text(section));
            obsolete.insert(section.to_owned(), text);
        }
    }
    obsolete
}

/// Whether the same is planned for a target. Of one that is skipped or refused that is not known.
fn is_same(one: Option<&Item>, other: Option<&Item>) -> bool {
    let planned = |item: &Item| item.request.clone().filter(|_| item.decision == Decision::Planned);
    one.and_then(planned).is_some_and(|request| other.and_then(planned) == Some(request))
}

/// Carries the changes out without systemd.
pub fn carry_out<H: Host>(host: &mut H, loaded: &Loaded, survey: &Survey) -> Result<Vec<Outcome>, Error> {
    let mut outcomes = Vec::new();
    for change in survey.changes.iter().filter(|change| change.action.stops()) {
        if change.action == Action::Reactivate {
            // The planner deactivates and activates it in one go, which keeps the device.
            continue;
        }
        if let Err(error) = provision::down(host, &change.target) {
            outcomes.push(failed(change, error));
        }
    }
    let stuck: Vec<Target> = outcomes.iter().map(|outcome| outcome.target.clone()).collect();
    let wanted: BTreeSet<&Target> = survey
        .changes
        .iter()
        .filter(|change| change.action.starts() || change.action == Action::Adapt)
        .map(|change| &change.target)
        .filter(|target| !stuck.contains(target))
        .collect();
    if !wanted.is_empty() {
        let some = Loaded { settings: only(&loaded.settings, &wanted), ..loaded.clone() };
        let applied = provision::apply_some(host, &some)?;
        outcomes.extend(applied.outcomes);
        outcomes.extend(applied.plan.items.iter().filter_map(refused));
    }
    Ok(outcomes)
}

/// What the planner refused although the survey had nothing against it.
fn refused(item: &Item) -> Option<Outcome> {
    let kind = item.kind.filter(|_| item.decision == Decision::Refused)?;
    let error = Error::new(kind, format!("{}: {}", item.target, item.reason));
    Some(Outcome { target: item.target.clone(), done: Vec::new(), warnings: Vec::new(), errors: vec![error] })
}

fn failed(change: &Change, error: Error) -> Outcome {
    Outcome { target: change.target.clone(), done: Vec::new(), warnings: Vec::new(), errors: vec![error] }
}

fn only(settings: &Settings, wanted: &BTreeSet<&Target>) -> Settings {
    let devices = settings.devices.iter().filter(|device| wanted.contains(&Target::Device(device.number)));
    let ramdisks =
        settings.ramdisks.iter().filter(|disk| wanted.contains(&Target::RamDisk(disk.name.clone())));
    let mut vm = settings.vm.clone();
    if let Some(vm) = &mut vm {
        vm.zswap_off &= wanted.contains(&Target::Zswap);
        if !wanted.contains(&Target::Vm) {
            vm.levels.clear();
        }
    }
    Settings {
        devices: devices.cloned().collect(),
        ramdisks: ramdisks.cloned().collect(),
        vm,
        maintenance: None,
        benchmark: settings.benchmark,
    }
}
