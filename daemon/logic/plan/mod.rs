//! The planner: Settings and Facts in, ordered steps with their undo out. Pure.
//!
//! [`wanted`] turns settings into concrete requests and refuses what would hurt; [`diff`] compares a request with what
//! is there and yields the steps that are missing, none when nothing is; [`step`] says what each step is, how it is taken
//! back, and explains it in one sentence.

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
pub use step::Step;

/// Who mounts and activates swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// We do: `apply`, where there is no systemd.
    Direct,
    /// PID 1 does, through units: `up` only prepares the device.
    Systemd,
    /// PID 1 does, and the daemon has it stop what must be made anew.
    Managed,
}

/// How a zram device gets at what takes its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Through {
    /// It is a block device.
    Itself,
    /// A loop device on a file.
    Loop,
    /// An encrypting mapping, below which may be a loop device.
    Crypt,
}

/// One way to configure a device: an algorithm, or the kernel's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The algorithm; nothing leaves what the kernel selects.
    pub algorithm: Option<Algorithm>,
    /// Why this one: shown to people.
    pub reason: String,
    /// Whether it is the verdict of the benchmark.
    pub measured: bool,
}

/// What has been decided about one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It will be, or already is, in place.
    Planned,
    /// It is not wanted on this machine: a size of 0, or a host memory limit.
    Skipped,
    /// It would hurt, or it cannot work here.
    Refused,
}

/// What the planner has to say about one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What it is about.
    pub target: Target,
    /// What is asked for; absent when not even that could be worked out.
    pub request: Option<Request>,
    /// Ways to configure a device, best first; empty for a tmpfs.
    pub candidates: Vec<Candidate>,
    /// What was decided.
    pub decision: Decision,
    /// Why, when it was not simply planned.
    pub reason: String,
    /// The kind of a refusal.
    pub kind: Option<ErrorKind>,
}

/// The steps of one target. One may fail and the next is done all the same, unless it [needs](Group::needs) the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What it is about.
    pub target: Target,
    /// What is recorded as asked for; nothing for a target that goes away.
    pub request: Option<Request>,
    /// An existing record to take back first, because it was left unfinished or no longer fits.
    pub retire: Option<Record>,
    /// Continue this record instead of beginning one: only something small is missing or different.
    pub resume: Option<Record>,
    /// An earlier target on whose file system this one is mounted: without it, this one is not done either.
    pub needs: Option<Target>,
    /// Steps before an algorithm is chosen.
    pub before: Vec<Step>,
    /// Ways to configure the device, best first. When a step of one fails, the device is reset and the next is tried.
    pub ways: Vec<Way>,
    /// Steps after a way has worked.
    pub after: Vec<Step>,
}

/// One way to configure a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// The algorithm, for the record; nothing when the kernel chooses.
    pub algorithm: Option<Algorithm>,
    /// Whether it is the verdict of the benchmark.
    pub measured: bool,
    /// What to do.
    pub steps: Vec<Step>,
}

/// Everything that was decided.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// One per target, in the order of the settings.
    pub items: Vec<Item>,
    /// What is to be done, in this order.
    pub groups: Vec<Group>,
    /// Problems found while planning, and those of the configuration.
    pub problems: Vec<Problem>,
    /// When the algorithm of `auto` is measured.
    pub benchmark: When,
    /// Which pages it compresses.
    pub sample: PageSource,
    /// How often maintenance runs, if it is asked for.
    pub maintenance: Option<Duration>,
}

impl Group {
    /// One without steps.
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

    /// The steps if nothing fails: what `plan` shows.
    pub fn expected_steps(&self) -> impl Iterator<Item = Step> + '_ {
        let retire = self.retire.iter().flat_map(|record| record.undo.iter().rev().cloned().map(Step::Undo));
        let first_way = self.ways.first().map(|way| way.steps.as_slice()).unwrap_or_default();
        retire.chain(self.before.iter().chain(first_way).chain(&self.after).cloned())
    }
}

impl Plan {
    /// Whether applying it would change nothing.
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(Group::is_empty)
    }

    /// The item about `target`.
    pub fn item(&self, target: &Target) -> Option<&Item> {
        self.items.iter().find(|item| item.target == *target)
    }
}

impl Item {
    /// The algorithm that will be tried first.
    pub fn algorithm(&self) -> Option<&Candidate> {
        self.candidates.first()
    }
}

/// How one step is taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// By this.
    By(Undo),
    /// By the undo of an earlier step of the same group: `reset` forgets all that was configured.
    WithEarlier,
    /// Not at all, for this reason.
    Never(&'static str),
}

/// Makes the plan: what is wanted, what is refused, and the steps that are missing.
pub fn plan(
    settings: &super::config::settings::Settings,
    problems: Vec<Problem>,
    facts: &super::facts::Facts,
    activation: Activation,
) -> Plan {
    let (items, found) = wanted::wanted(settings, facts, activation);
    let (benchmark, sample) = (settings.benchmark.when, settings.benchmark.sample);
    let maintenance = settings.maintenance.as_ref().filter(|asked| asked.needs_timer());
    let maintenance = maintenance.map(|asked| asked.interval);
    let mut plan = Plan { items, groups: Vec::new(), problems, benchmark, sample, maintenance };
    plan.problems.extend(found);
    diff::groups(&mut plan, facts, activation);
    plan
}

/// Whether swap options in the spelling of fstab ask for discard.
pub fn wants_discard(options: &str) -> bool {
    options.split(',').any(|option| option.trim().split('=').next() == Some("discard"))
}

/// How deep the mount point of a request is; 0 when it has none, or is a place that only other mounts show.
pub fn mount_depth(request: &Request) -> usize {
    let parts = |path: &str| path.split('/').filter(|part| !part.is_empty()).count();
    let mount = request.mount().filter(|mount| disk_at(&mount.mount_point).is_none());
    mount.map_or(0, |mount| parts(&mount.mount_point))
}
