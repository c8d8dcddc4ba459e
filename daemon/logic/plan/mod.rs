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
mod refusal;
pub mod report;
pub mod step;
mod vm;
pub mod wanted;

use std::time::Duration;

use serde::Serialize;

use super::config::problem::Problem;
use super::config::settings::{PageSource, When};
use super::device::algorithm::Algorithm;
use super::error::ErrorKind;
use super::ramdisk::place::disk_at;
use super::record::{Record, Target, Undo};
use super::request::Request;
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
    /// The request; `None` if the settings are invalid.
    pub request: Option<Request>,
    /// Ways to configure a device, best first; empty for other targets.
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
    /// Ways to configure the device, best first. If a step fails, the device is reset and the next one is tried.
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
    /// Problems of the configuration and of planning.
    pub problems: Vec<Problem>,
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

    /// The item of `target`.
    pub fn item(&self, target: &Target) -> Option<&Item> {
        self.items.iter().find(|item| item.target == *target)
    }
}

impl Item {
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
pub fn plan(
    settings: &super::config::settings::Settings,
    problems: Vec<Problem>,
    facts: &super::facts::Facts,
    activation: Activation,
) -> Plan {
    let (items, mut found) = wanted::wanted(settings, facts, activation);
    let protected = wanted::protected(settings, &items, facts, &mut found);
    let (benchmark, sample) = (settings.benchmark.when, settings.benchmark.sample);
    let maintenance = settings.maintenance.as_ref().filter(|asked| asked.needs_timer());
    let maintenance = maintenance.map(|asked| asked.interval);
    let mut plan = Plan { items, groups: Vec::new(), problems, benchmark, sample, maintenance, protected };
    plan.problems.extend(found);
    diff::groups(&mut plan, facts, activation);
    plan
}

/// Whether swap options in the form of fstab include discard.
pub fn wants_discard(options: &str) -> bool {
    options.split(',').any(|option| option.trim().split('=').next() == Some("discard"))
}

/// Depth of the mount point of a request; 0 without one, and for the private place of a RAM disk.
pub fn mount_depth(request: &Request) -> usize {
    let parts = |path: &str| path.split('/').filter(|part| !part.is_empty()).count();
    let mount = request.mount().filter(|mount| disk_at(&mount.mount_point).is_none());
    mount.map_or(0, |mount| parts(&mount.mount_point))
}
