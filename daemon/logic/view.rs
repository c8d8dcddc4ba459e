//! What the daemon knows about the configuration, and what it is asked to do: plain data, made by `zramd-setup`.
//!
//! Reading TOML, planning and carrying out take most of the program text of zramd and are needed for moments only. The
//! resident daemon has them done by `zramd-setup`, which it starts when there is something to do, and reads these as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::benchmark::score::Profile;
use super::change::{Action, Change, UnitDisk};
use super::config::Loaded;
use super::config::problem::{Problem, Severity};
use super::config::render::one_line;
use super::error::{Error, ErrorKind};
use super::finding::Finding;
use super::health::config_finding;
use super::maintain::pressure::Thresholds;
use super::overlay::Override;
use super::record::Target;
use super::text::worded;
use super::unit::ramdisk::place_unit;
use super::unit::{
    VM_UNIT, ZSWAP_UNIT, activating_unit, mounting_unit, options_of_mount, setup_unit, swap_unit,
};

/// The configuration, as far as others than the planner need it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct View {
    /// Files that it was read from, lowest precedence first.
    pub files: Vec<String>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
    /// The errors among that, one line each.
    pub errors: Vec<String>,
    /// Every section, by name.
    pub sections: BTreeMap<String, SectionView>,
    /// What holds until the next boot instead.
    #[serde(default)]
    pub overrides: Vec<Override>,
    /// The RAM disks that it asks for.
    pub disks: Vec<UnitDisk>,
    /// What of `[maintenance]` concerns the daemon.
    #[serde(default)]
    pub maintenance: MaintenanceView,
    /// What `[benchmark]` wants.
    #[serde(default)]
    pub profile: Profile,
}

/// What of `[maintenance]` concerns the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MaintenanceView {
    /// Seconds between two runs; nothing when there are none.
    pub every_seconds: Option<u64>,
    /// Follow how short memory is.
    pub pressure: Option<Thresholds>,
    /// Whether pages are written back, within a budget.
    #[serde(default)]
    pub writeback: bool,
}

/// One section.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SectionView {
    /// The file that it begins in.
    pub file: String,
    /// Its own errors and warnings, one line each, with the file in which each is.
    pub problems: Vec<(String, String)>,
    /// The errors among them.
    pub errors: Vec<String>,
}

impl View {
    /// The view of a configuration that was read.
    pub fn of(loaded: &Loaded, files: Vec<String>) -> View {
        let is_error = |problem: &&Problem| problem.severity == Severity::Error;
        let mut sections: BTreeMap<String, SectionView> = BTreeMap::new();
        for (name, section) in &loaded.merged.sections {
            let file = section.origin.file.display().to_string();
            sections.insert(name.clone(), SectionView { file, ..SectionView::default() });
        }
        for problem in &loaded.problems {
            let Some(section) = section_of(&problem.origin.key) else { continue };
            let view = sections.entry(section).or_default();
            let file = problem.origin.file.display().to_string();
            let hint = problem.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
            view.problems.push((file, format!("{}: {}{hint}", problem.origin.key, problem.message)));
            if is_error(&problem) {
                view.errors.push(one_line(problem));
            }
        }
        let disks = loaded.settings.ramdisks.iter();
        View {
            files,
            findings: loaded.problems.iter().map(config_finding).collect(),
            errors: loaded.problems.iter().filter(is_error).map(one_line).collect(),
            sections,
            overrides: loaded.merged.overrides.clone(),
            disks: disks
                .map(|disk| UnitDisk {
                    name: disk.name.clone(),
                    mount_point: disk.mount.mount_point.clone(),
                    persist: disk.keep.as_ref().map(|keep| keep.mode).into(),
                    store: disk.keep.as_ref().map(|keep| keep.store.clone()).unwrap_or_default(),
                    watch: disk.watch,
                })
                .collect(),
            maintenance: loaded.settings.maintenance.as_ref().map_or_else(
                MaintenanceView::default,
                |asked| MaintenanceView {
                    every_seconds: asked.needs_timer().then_some(asked.interval.as_secs()),
                    pressure: asked.pressure,
                    writeback: asked.writeback.is_some(),
                },
            ),
            profile: loaded.settings.benchmark.profile,
        }
    }
}

/// The section of a key: `zram0` for `zram0.zram-size`, `ramdisk.logs` for `ramdisk.logs.size`.
pub fn section_of(key: &str) -> Option<String> {
    let mut parts = key.split('.');
    let first = parts.next().filter(|first| !first.is_empty())?;
    match (first, parts.next()) {
        ("ramdisk", Some(name)) => Some(format!("ramdisk.{name}")),
        _ => Some(first.to_owned()),
    }
}

/// What is to happen to one target, with the units that it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// What it is about.
    pub target: Target,
    /// What happens.
    pub action: Action,
    /// What differs, or why.
    pub detail: String,
    /// The kind of a refusal.
    pub kind: Option<ErrorKind>,
    /// Whether only the verdict of the benchmark asks for it.
    #[serde(default)]
    pub by_verdict: bool,
    /// The unit that uses what is there now.
    pub stop: Option<String>,
    /// The unit that prepared it.
    pub setup: Option<String>,
    /// The unit that is to use what is wanted.
    pub start: Option<String>,
    /// The mount unit whose options change.
    pub remount: Option<String>,
}

impl Task {
    /// The task for a change; `unit_of` knows the mount units of disks that have no record.
    pub fn of(change: &Change, unit_of: impl Fn(&str) -> Option<String>) -> Task {
        let options = |request| options_of_mount(request);
        let (present, wanted) = (change.present.as_ref(), change.wanted.as_ref());
        let stop = present.map(activating_unit).or_else(|| match &change.target {
            Target::Device(number) => Some(swap_unit(*number)),
            Target::RamDisk(name) => unit_of(name),
            Target::Vm => Some(VM_UNIT.to_owned()),
            Target::Zswap => Some(ZSWAP_UNIT.to_owned()),
        });
        let setup = match change.target {
            Target::Device(number) => Some(setup_unit(number)),
            // Once nobody sees it any more, it is saved, and then goes.
            Target::RamDisk(ref name) => Some(place_unit(name)),
            Target::Vm | Target::Zswap => None,
        };
        let after = wanted.and_then(options);
        Task {
            target: change.target.clone(),
            action: change.action,
            detail: worded(change.detail.as_str()),
            kind: change.kind,
            by_verdict: change.by_verdict,
            stop,
            setup,
            start: wanted.map(activating_unit),
            remount: wanted
                .filter(|_| after.is_some() && present.and_then(options) != after)
                .map(mounting_unit),
        }
    }
}

/// What a reload would do, in the order in which it is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Proposal {
    /// The configuration.
    pub view: View,
    /// Target by target.
    pub tasks: Vec<Task>,
    /// Overrides that change nothing any more, if there are any.
    pub obsolete: Option<Obsolete>,
    /// How the units have to change; nothing when PID 1 knows the right ones.
    pub units: Option<UnitChange>,
}

/// Overrides that change nothing any more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Obsolete {
    /// What remains of the drop-in of each section.
    pub sections: BTreeMap<String, Option<String>>,
    /// The configuration without them.
    pub view: View,
}

/// Units that are written and removed before PID 1 reloads, by their paths below its directory; `None` removes. Empty where the
/// generator writes them all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UnitChange {
    /// Texts of files.
    pub files: BTreeMap<String, Option<String>>,
    /// Targets of symbolic links.
    pub links: BTreeMap<String, Option<String>>,
}

impl Proposal {
    /// The proposal for these changes.
    pub fn of(view: View, changes: &[Change], unit_of: impl Fn(&str) -> Option<String>) -> Proposal {
        let tasks = changes.iter().map(|change| Task::of(change, &unit_of)).collect();
        Proposal { view, tasks, ..Proposal::default() }
    }
}

/// What became of one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// What it is about.
    pub target: Target,
    /// What went wrong; nothing when all is well.
    pub errors: Vec<Error>,
}
