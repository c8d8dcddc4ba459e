//! The planner: turns Settings and Facts into ordered steps with their undo. No I/O.
//!
//! [`wanted`] turns settings into requests and refuses unsafe ones; [`diff`] compares a request with the machine and
//! returns the missing steps, none if there is no difference; [`step`] describes each step and its undo.

pub mod adopt;
mod backing;
mod check;
pub mod diff;
mod ownership;
pub mod ramdisk;
pub mod report;
pub mod step;
#[cfg(test)]
pub(crate) mod tests;
mod vm;
pub mod wanted;
mod zswap;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use super::config::Loaded;
use super::config::settings::{PageSource, Settings, When};
use super::config::value::Value;
use super::device::algorithm::Algorithm;
use super::error::ErrorKind;
use super::facts::Facts;
use super::finding::Finding;
use super::neighbours::{Neighbours, Ours, Zswap, driver, fstab, units};
use super::origin::Origin;
use super::overlay::ENABLED;
use super::ramdisk::place::ramdisk_at;
use super::record::{Record, Target, Undo};
use super::request::{Purpose, Request};
pub use backing::{file_size, no_disk};
pub use check::excess;
pub use step::Step;

/// Who mounts file systems and activates swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// zramd: `apply`, without systemd.
    Direct,
    /// PID 1, by units: `up` only prepares the device.
    Systemd,
    /// PID 1, and the daemon has it stop what must be set up again.
    Managed,
}

/// What is between a zram device and its backing store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// Nothing: the store is a block device.
    Itself,
    /// A loop device.
    Loop,
    /// An encrypted mapping, possibly on a loop device.
    Crypt,
}

/// A way to configure a device: an algorithm, or the kernel's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The algorithm; `None` for the kernel's default.
    pub algorithm: Option<Algorithm>,
    /// Why it was selected, for people.
    pub reason: String,
    /// Whether it is the verdict of the benchmark.
    pub measured: bool,
}

/// The decision about a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It is to be set up, or is set up already.
    Planned,
    /// It is not wanted on this machine: a size of 0, or a host memory limit.
    Skipped,
    /// It is unsafe, or impossible here.
    Refused,
}

/// The planner's result for one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub target: Target,
    /// The request; `None` if the settings are invalid, or depend on memory that an image does not tell.
    pub request: Option<Request>,
    /// Ways to configure a device, or compressors of zswap, best first; empty for other targets.
    pub candidates: Vec<Candidate>,
    pub decision: Decision,
    /// The reason, unless it is planned without remarks.
    pub reason: String,
    /// The kind of error, if refused.
    pub kind: Option<ErrorKind>,
}

/// The steps of one target. Later groups continue after a failure, unless they [need](Group::needs) this one.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub target: Target,
    /// The request to record; `None` if the target is to be removed.
    pub request: Option<Request>,
    /// A record to undo first, because it is unfinished or outdated.
    pub retire: Option<Record>,
    /// A record to continue, because only some steps are missing or different.
    pub resume: Option<Record>,
    /// An earlier target required by this one, for example because this one is mounted on it.
    pub needs: Option<Target>,
    /// Steps before the choice of an algorithm.
    pub before: Vec<Step>,
    /// Ways to configure the device, or zswap, best first. If a step fails, its steps are undone and the next one is tried.
    pub ways: Vec<Way>,
    /// Steps after one of the ways has succeeded.
    pub after: Vec<Step>,
}

/// The steps of one way to configure a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// The algorithm to record; `None` for the kernel's default.
    pub algorithm: Option<Algorithm>,
    /// Whether it is the verdict of the benchmark.
    pub measured: bool,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// One per target, in the order of the settings.
    pub items: Vec<Item>,
    /// The groups in the order of execution.
    pub groups: Vec<Group>,
    /// Mistakes of the configuration, refusals, and doubtful settings.
    pub problems: Vec<Finding>,
    /// Other programs and settings of the machine that are in the way.
    pub neighbours: Vec<Finding>,
    /// When the benchmark runs for `auto`.
    pub benchmark: When,
    /// Pages that the benchmark compresses.
    pub sample: PageSource,
    /// Interval of maintenance, if enabled.
    pub maintenance: Option<Duration>,
    /// Bytes of memory that sessions keep; 0 without compressed swap.
    pub protected: u64,
}

impl Group {
    /// A group without steps.
    fn new(target: Target) -> Group {
        Group {
            target,
            request: None,
            retire: None,
            resume: None,
            needs: None,
            before: Vec::new(),
            ways: Vec::new(),
            after: Vec::new(),
        }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.retire.is_none() && self.before.is_empty() && self.ways.is_empty() && self.after.is_empty()
    }

    /// The steps if none fails, as shown by `plan`.
    pub fn expected_steps(&self) -> impl Iterator<Item = Step> + '_ {
        let retire = self.retire.iter().flat_map(|record| record.undo.iter().rev().cloned().map(Step::Undo));
        let first_way = self.ways.first().map(|way| way.steps.as_slice()).unwrap_or_default();
        retire.chain(self.before.iter().chain(first_way).chain(&self.after).cloned())
    }
}

impl Plan {
    /// Whether applying it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(Group::is_empty)
    }

    /// All findings: problems, then what is in the way.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.problems.iter().chain(&self.neighbours)
    }

    /// Sections of devices and RAM disks without an item, and whether they are switched off; the others have mistakes.
    pub fn left_out<'a>(&'a self, loaded: &'a Loaded) -> impl Iterator<Item = (&'a str, bool)> {
        let merged = &loaded.merged;
        let names = merged.sections.keys().chain(&merged.broken);
        let planned: BTreeSet<&Target> = self.items.iter().map(|item| &item.target).collect();
        let left = names.filter(move |name| {
            let target = Target::of_section(name).filter(|_| !loaded.disabled_by_cmdline);
            target.is_some_and(|target| {
                matches!(target, Target::Device(_) | Target::Ramdisk(_)) && !planned.contains(&target)
            })
        });
        left.map(|name| {
            let enabled = merged.sections.get(name).and_then(|section| section.keys.get(ENABLED));
            (name.as_str(), enabled.is_some_and(|assigned| assigned.value == Value::Boolean(false)))
        })
    }

    /// The same, with the reason in words.
    pub fn unused<'a>(&'a self, loaded: &'a Loaded) -> impl Iterator<Item = (&'a str, &'static str)> {
        let words = |is_off| if is_off { "switched off" } else { "not usable: it has a mistake" };
        self.left_out(loaded).map(move |(name, is_off)| (name, words(is_off)))
    }

    /// The item of `target`. For many targets, see [`Plan::by_target`].
    pub fn item(&self, target: &Target) -> Option<&Item> {
        self.items.iter().find(|item| item.target == *target)
    }

    /// All items.
    pub fn by_target(&self) -> BTreeMap<&Target, &Item> {
        self.items.iter().map(|item| (&item.target, item)).collect()
    }
}

impl Plan {
    /// Adds a finding for each refused target without one: a conflict with what is set up. That of a RAM disk without its device is
    /// reported for the device.
    fn report_refusals(&mut self, settings: &Settings) {
        let devices = settings.devices.iter().map(|it| (Target::Device(it.number), &it.origin));
        let disks = settings.ramdisks.iter().map(|it| (Target::Ramdisk(it.name.clone()), &it.origin));
        let origins: BTreeMap<Target, &Origin> = devices.chain(disks).collect();
        let mut reported: BTreeSet<String> = self.problems.iter().map(|found| found.object.clone()).collect();
        for item in self.items.iter().filter(|item| item.decision == Decision::Refused) {
            let name = item.target.to_string();
            let device = match &item.request {
                Some(Request::Ramdisk(disk)) => disk.number.map(|number| Target::Device(number).to_string()),
                _ => None,
            };
            let is_reported =
                [Some(&name), device.as_ref()].into_iter().flatten().any(|it| reported.contains(it));
            if !is_reported && let Some(origin) = origins.get(&item.target) {
                let kind = item.kind.unwrap_or(ErrorKind::Unsafe);
                self.problems.push(Finding::refusal(kind, origin, &item.reason).about(name.clone()));
                reported.insert(name);
            }
        }
    }
}

impl Item {
    /// Its priority, if it is planned as swap.
    fn swap_priority(&self) -> Option<i32> {
        match &self.request {
            Some(Request::Device(device)) if self.decision == Decision::Planned => match &device.purpose {
                Purpose::Swap { priority, .. } => Some(*priority),
                _ => None,
            },
            _ => None,
        }
    }

    /// What another program may not set up as well.
    fn claimed(&self) -> Option<Ours<'_>> {
        let request = self.request.as_ref().filter(|_| self.decision == Decision::Planned)?;
        let device = match self.target {
            Target::Device(number) => Some(number),
            Target::Ramdisk(_) => None,
            Target::Vm | Target::Zswap => return None,
        };
        Some(Ours { device, place: request.mount().map(|mount| mount.mount_point.as_str()) })
    }

    /// The algorithm that is tried first.
    pub fn algorithm(&self) -> Option<&Candidate> {
        self.candidates.first()
    }
}

/// How a step is undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    By(Undo),
    /// By the undo of an earlier step of the same group: `reset` discards the whole configuration.
    WithEarlier,
    /// Not at all, for this reason.
    Never(&'static str),
}

/// Makes the plan: requests, refusals, and missing steps.
pub fn plan(settings: &Settings, problems: Vec<Finding>, facts: &Facts, activation: Activation) -> Plan {
    let (mut items, mut found) = wanted::wanted(settings, facts);
    add_settings(settings, &mut items, facts, activation, &mut found);
    let protected = wanted::protected(settings, &items, facts, &mut found);
    let (benchmark, sample) = (settings.benchmark.when, settings.benchmark.sample);
    let maintenance = settings.maintenance.as_ref().filter(|asked| asked.needs_timer());
    let maintenance = maintenance.map(|asked| asked.interval);
    let mut neighbours = neighbours(settings, &items, facts, activation);
    let ours: Vec<Ours<'_>> = items.iter().filter_map(Item::claimed).collect();
    neighbours.extend(fstab::findings(&facts.fstab, &ours));
    neighbours.extend(units::findings(&facts.units, &ours));
    neighbours.extend(driver::findings(&facts.driver, &ours));
    let vm = settings.vm.as_ref();
    neighbours.extend(vm.and_then(|vm| vm::outranked(vm, &items, facts, activation)));
    let groups = Vec::new();
    let mut plan = Plan { items, groups, problems, neighbours, benchmark, sample, maintenance, protected };
    plan.problems.extend(found);
    diff::groups(&mut plan, facts, activation);
    plan.report_refusals(settings);
    plan
}

/// Adds the items of `[zswap]` and `[vm]`.
fn add_settings(
    settings: &Settings,
    items: &mut Vec<Item>,
    facts: &Facts,
    activation: Activation,
    problems: &mut Vec<Finding>,
) {
    let zswap = settings.zswap.as_ref();
    let zswap = zswap.map(|zswap| (zswap::item(zswap, items, facts, problems), &zswap.origin));
    let vm = settings.vm.as_ref();
    let vm = vm.and_then(|vm| Some((vm::planned(vm, items, facts, activation)?, &vm.origin)));
    for (mut item, origin) in zswap.into_iter().chain(vm) {
        if let Some(refusal) = check::damaged(&item.target, origin, facts) {
            refuse(&mut item, refusal, problems);
        }
        items.push(item);
    }
}

/// What is in the way of the swap that is planned.
fn neighbours(settings: &Settings, items: &[Item], facts: &Facts, activation: Activation) -> Vec<Finding> {
    let priorities = items.iter().filter_map(Item::swap_priority);
    let is_ours = |number| {
        let target = Target::Device(number);
        facts.records.contains_key(&target) || facts.damaged_record(&target).is_some()
    };
    let zswap = items.iter().find(|item| item.target == Target::Zswap);
    let zswap =
        zswap.filter(|item| item.decision == Decision::Planned).and_then(|item| item.request.as_ref());
    let zswap = zswap.and_then(|request| match request {
        Request::Vm(request) => request.zswap(),
        _ => None,
    });
    Neighbours {
        // The kernel chooses a negative one when the swap is activated.
        lowest: priorities.map(|priority| if priority < 0 { i32::MAX } else { priority }).min(),
        swaps: facts.swaps.iter().filter(|swap| !swap.zram_number().is_some_and(is_ours)).collect(),
        zswap: match zswap {
            Some(true) => Zswap::Wanted,
            None if facts.zswap_is_on() => Zswap::On,
            _ => Zswap::Off,
        },
        // At boot, PID 1 activates swap on disks after that.
        swaps_known: !facts.tunables.is_empty() && activation != Activation::Systemd,
        managers: if items.is_empty() { &[] } else { &facts.other_managers },
        configured: true,
        yields: settings.all_yield(),
    }
    .findings()
}

/// Marks an item as refused, and adds the reason, which is a finding about it.
fn refuse(item: &mut Item, reason: Finding, problems: &mut Vec<Finding>) {
    if item.decision != Decision::Planned {
        return;
    }
    item.decision = Decision::Refused;
    item.kind = reason.kind;
    item.reason.clone_from(&reason.message);
    problems.push(reason.about(item.target.to_string()));
}

/// Whether swap options in the form of fstab include discard.
pub fn wants_discard(options: &str) -> bool {
    options.split(',').any(|option| option.trim().split('=').next() == Some("discard"))
}

/// Depth of the mount point of a request; 0 without one, and for the private place of a RAM disk.
pub fn mount_depth(request: &Request) -> usize {
    let parts = |path: &str| path.split('/').filter(|part| !part.is_empty()).count();
    let mount = request.mount().filter(|mount| ramdisk_at(&mount.mount_point).is_none());
    mount.map_or(0, |mount| parts(&mount.mount_point))
}
