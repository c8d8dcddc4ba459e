//! Changes that a reload would make, by target: compares the configuration with the machine.
//!
//! The planner works in steps; users, the bus and PID 1 work with targets. For each target, this tells whether it is
//! created, adapted while in use, recreated or removed, and why.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::ErrorKind;
use super::facts::{Facts, Use};
use super::finding::{Code, Finding, Level};
use super::human::{bytes_per, human};
use super::plan::diff::{changed_in_use, round_up};
use super::plan::{Activation, Decision, Item, Plan};
use super::ramdisk::UnitRamdisk;
use super::ramdisk::place::{place, ramdisk_mount};
use super::record::{Progress, Record, Target};
use super::request::{DeviceRequest, Purpose, RamdiskRequest, Request, VmRequest};
use super::text::worded;
use super::unit::ramdisk::place_unit;
use super::unit::{
    VM_UNIT, ZSWAP_UNIT, activating_unit, mount_unit, mounting_unit, options_of_mount, setup_unit, swap_unit,
};
use super::vm::{Tunable, swappiness};
use crate::word::word;

/// The change to one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    Remove,
    /// Remove and create it again; the contents of swap move through memory.
    Recreate,
    /// Deactivate it, and activate it with other options.
    Reactivate,
    Create,
    /// Activate it: it is set up already.
    Activate,
    /// Change it while it is in use.
    Adapt,
    /// Refused, because it is unsafe or impossible.
    Refuse,
    /// No change.
    Keep,
}

impl Action {
    /// Its name on the bus.
    pub fn word(self) -> &'static str {
        word(self)
    }

    /// Whether the present target is stopped first.
    pub const fn stops(self) -> bool {
        matches!(self, Action::Remove | Action::Recreate | Action::Reactivate)
    }

    /// Whether it is started.
    pub const fn starts(self) -> bool {
        matches!(self, Action::Recreate | Action::Reactivate | Action::Create | Action::Activate)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A target and its change, with the units that carry it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub target: Target,
    pub action: Action,
    /// The differences, or the reason.
    pub detail: String,
    /// The kind of error, if refused.
    pub kind: Option<ErrorKind>,
    /// Whether only the verdict of the benchmark requires it.
    #[serde(default)]
    pub by_verdict: bool,
    /// The unit to stop.
    pub stop: Option<String>,
    /// The unit that set it up.
    pub setup: Option<String>,
    /// The unit to start.
    pub start: Option<String>,
    /// The mount unit with changed options.
    pub remount: Option<String>,
}

/// A [`Change`] on the bus: action, target, detail.
pub type OnTheBus = (String, String, String);

impl Change {
    /// A change without units.
    pub fn new(target: &Target, action: Action, detail: impl Into<String>) -> Change {
        Change {
            target: target.clone(),
            action,
            detail: worded(detail),
            kind: None,
            by_verdict: false,
            stop: None,
            setup: None,
            start: None,
            remount: None,
        }
    }

    /// The removal of a RAM disk that has no record.
    pub fn removal(disk: &UnitRamdisk) -> Change {
        Change {
            stop: Some(mount_unit(&disk.mount_point)),
            setup: Some(place_unit(&disk.name)),
            ..Change::new(&Target::Ramdisk(disk.name.clone()), Action::Remove, NOT_WANTED)
        }
    }

    /// Converts it for the bus.
    pub fn on_the_bus(self) -> OnTheBus {
        (self.action.word().to_owned(), self.target.to_string(), self.detail)
    }
}

/// Why a target is removed: its section was removed or disabled, in a file or on request.
const NOT_WANTED: &str = "no longer configured";

/// Compares. `forced` accepts the loss of contents; `activation` tells who can change targets that are in use.
pub fn changes(plan: &Plan, facts: &Facts, activation: Activation, forced: bool) -> Vec<Change> {
    let of_item = |item| of_item(item, plan, facts, activation, forced);
    let mut found: Vec<Change> = plan.items.iter().map(of_item).collect();
    let items = plan.by_target();
    for record in facts.records.values().filter(|record| !items.contains_key(&record.target)) {
        found.push(removal(&record.target, Some(&record.request), facts, forced, NOT_WANTED));
    }
    for disk in &facts.unit_ramdisks {
        let target = Target::Ramdisk(disk.name.clone());
        if !items.contains_key(&target) && !facts.records.contains_key(&target) && is_mounted(disk, facts) {
            let forced = forced || disk.is_kept();
            found.push(ramdisk_removal(&target, &disk.mount_point, facts, forced, NOT_WANTED));
        }
    }
    let disks: BTreeMap<&str, &UnitRamdisk> =
        facts.unit_ramdisks.iter().map(|disk| (disk.name.as_str(), disk)).collect();
    for change in &mut found {
        let present = facts.records.get(&change.target).map(|record| &record.request);
        let planned = items.get(&change.target).filter(|item| item.decision == Decision::Planned);
        name_units(change, present, planned.and_then(|item| item.request.as_ref()), &disks);
    }
    found.sort_by(|a, b| (a.action, &a.target).cmp(&(b.action, &b.target)));
    found
}

fn name_units(
    change: &mut Change,
    present: Option<&Request>,
    wanted: Option<&Request>,
    disks: &BTreeMap<&str, &UnitRamdisk>,
) {
    change.stop = present.map(activating_unit).or_else(|| match &change.target {
        Target::Device(number) => Some(swap_unit(*number)),
        Target::Ramdisk(name) => disks.get(name.as_str()).map(|disk| mount_unit(&disk.mount_point)),
        Target::Vm => Some(VM_UNIT.to_owned()),
        Target::Zswap => Some(ZSWAP_UNIT.to_owned()),
    });
    change.setup = match &change.target {
        Target::Device(number) => Some(setup_unit(*number)),
        // The private mount, stopped after the bind mount; the contents are saved in between.
        Target::Ramdisk(name) => Some(place_unit(name)),
        Target::Vm | Target::Zswap => None,
    };
    change.start = wanted.map(activating_unit);
    let options = wanted.and_then(options_of_mount);
    let differs = options.is_some() && present.and_then(options_of_mount) != options;
    change.remount = wanted.filter(|_| differs).map(mounting_unit);
}

impl Change {
    /// The finding about a difference between the configuration and the machine; `None` without one.
    pub fn finding(&self) -> Option<Finding> {
        let (name, detail) = (self.target.to_string(), &self.detail);
        let reload = "run `zramdctl reload`";
        let (code, message, remedy) = match self.action {
            Action::Keep => return None,
            Action::Refuse => (
                Code::Refused,
                format!("{name} is not as configured, and a reload does not change it: {detail}"),
                "change its section to match the device, or run `zramdctl reload --force`, which discards its contents",
            ),
            Action::Create => {
                (Code::NotSetUp, format!("{name} is configured but not set up ({detail})"), reload)
            }
            action => (
                Code::NotInLine,
                format!("{name} is not as configured; a reload would {action} it ({detail})"),
                reload,
            ),
        };
        let level = if self.action == Action::Refuse { Level::Error } else { Level::Warning };
        Some(Finding { kind: self.kind, ..Finding::new(level, code, &name, message, remedy) })
    }
}

fn refused(target: &Target, kind: ErrorKind, why: impl Into<String>) -> Change {
    Change { kind: Some(kind), ..Change::new(target, Action::Refuse, why) }
}

fn of_item(item: &Item, plan: &Plan, facts: &Facts, activation: Activation, forced: bool) -> Change {
    let record = facts.records.get(&item.target);
    let present = record.map(|record| &record.request);
    match item.decision {
        Decision::Skipped => match present {
            Some(_) => removal(&item.target, present, facts, forced, &item.reason),
            None => Change::new(&item.target, Action::Keep, item.reason.clone()),
        },
        Decision::Refused => {
            refused(&item.target, item.kind.unwrap_or(ErrorKind::Unsafe), item.reason.clone())
        }
        Decision::Planned => match (&item.target, &item.request) {
            (Target::Device(number), Some(Request::Device(wanted))) => {
                let running = record.filter(|record| record.progress == Progress::Done);
                let running = running.and_then(|record| match &record.request {
                    Request::Device(request) if is_there(*number, record, facts) => Some(request),
                    _ => None,
                });
                let found = device(&item.target, *number, running, wanted, facts, activation, forced);
                match record.and_then(|record| better(item, record, wanted, facts)) {
                    Some(detail) if found.action == Action::Keep => {
                        Change { by_verdict: true, ..Change::new(&item.target, Action::Recreate, detail) }
                    }
                    _ => found,
                }
            }
            (_, Some(Request::Ramdisk(wanted))) => disk(&item.target, wanted, facts, forced),
            (_, Some(Request::Vm(wanted))) => {
                let found = settings(&item.target, wanted, plan, activation);
                let by_verdict = present.is_some_and(|present| follows_verdict(present, wanted, facts));
                Change { by_verdict, ..found }
            }
            _ => refused(&item.target, ErrorKind::Config, "the plan could not be made"),
        },
    }
}

/// Settings follow the plan. Their unit may be active without having changed them, so it is stopped first.
fn settings(target: &Target, wanted: &VmRequest, plan: &Plan, activation: Activation) -> Change {
    let group = plan.groups.iter().find(|group| group.target == *target);
    let action = match group {
        None => Action::Keep,
        Some(group) if group.is_empty() => Action::Keep,
        Some(group) if group.retire.is_some() || activation != Activation::Direct => Action::Reactivate,
        Some(_) => Action::Create,
    };
    let detail = if action == Action::Keep { String::new() } else { wanted.to_string() };
    Change::new(target, action, detail)
}

/// Whether the settings differ from those in use in the swappiness only, and that is the one that the verdict of the benchmark suggests.
fn follows_verdict(present: &Request, wanted: &VmRequest, facts: &Facts) -> bool {
    let Request::Vm(present) = present else { return false };
    let suggested = (Tunable::Swappiness, swappiness(facts.advice).to_string());
    let rest = |request: &VmRequest| -> Vec<(Tunable, String)> {
        request.values.iter().filter(|(tunable, _)| *tunable != Tunable::Swappiness).cloned().collect()
    };
    facts.advice.is_some()
        && wanted.values.contains(&suggested)
        && !present.values.contains(&suggested)
        && rest(present) == rest(wanted)
}

/// Swap counts as nearly empty if less than one part in this number is in use.
const NEARLY_EMPTY: u64 = 64;

/// The change for another verdict of the benchmark. Only for swap that is nearly empty, and with room in memory for what it holds twice
/// over: recreating it would move all its pages through memory.
fn better(item: &Item, record: &Record, wanted: &DeviceRequest, facts: &Facts) -> Option<String> {
    let best = item.candidates.first().filter(|candidate| candidate.measured)?.algorithm.as_ref()?;
    let Use::Swap { used_kib, .. } = facts.device_use(wanted.number)? else { return None };
    let used = record.algorithm.as_ref()?;
    let is_light =
        used_kib * 1024 <= wanted.disk_size / NEARLY_EMPTY && 2 * used_kib <= facts.memory.available_kib;
    if used == best || !is_light {
        return None;
    }
    Some(format!("the benchmark prefers {best} to {used}, and it is nearly empty"))
}

fn is_there(number: u32, record: &Record, facts: &Facts) -> bool {
    facts.devices.get(&number).is_some_and(|device| device.initialised && record.is_about(device))
}

fn device(
    target: &Target,
    number: u32,
    present: Option<&DeviceRequest>,
    wanted: &DeviceRequest,
    facts: &Facts,
    activation: Activation,
    forced: bool,
) -> Change {
    let Some(present) = present else { return Change::new(target, Action::Create, describe(wanted)) };
    let detail = differences(present, wanted).join(", ");
    if changed_in_use(present, wanted, activation) != *wanted {
        return match &present.purpose {
            Purpose::Swap { .. } => Change::new(target, Action::Recreate, detail),
            _ if forced => Change::new(target, Action::Recreate, detail),
            _ => refused(
                target,
                ErrorKind::LosesContents,
                format!("{detail}: setting it up again would lose its contents"),
            ),
        };
    }
    let used = facts.device_use(number);
    match (&present.purpose, &wanted.purpose) {
        (Purpose::Swap { .. }, Purpose::Swap { .. })
        | (Purpose::Filesystem { .. }, Purpose::Filesystem { .. })
            if used.is_none() =>
        {
            Change::new(target, Action::Activate, describe(wanted))
        }
        (Purpose::Swap { .. }, Purpose::Swap { .. }) if present.purpose != wanted.purpose => {
            Change::new(target, Action::Reactivate, detail)
        }
        _ if detail.is_empty() => Change::new(target, Action::Keep, ""),
        _ => Change::new(target, Action::Adapt, detail),
    }
}

fn describe(request: &DeviceRequest) -> String {
    let size = human(request.disk_size);
    match &request.purpose {
        Purpose::Swap { priority: -1, .. } => format!("{size} of swap"),
        Purpose::Swap { priority, .. } => format!("{size} of swap with priority {priority}"),
        Purpose::Filesystem { fs_type, mount, .. } => format!("{size} of {fs_type} on {}", mount.mount_point),
        Purpose::Raw { .. } => format!("{size}, not used by zramd"),
    }
}

/// The differences, in words.
fn differences(present: &DeviceRequest, wanted: &DeviceRequest) -> Vec<String> {
    let mut words = Vec::new();
    let mut note = |what: &str, from: String, to: String| {
        if from != to {
            words.push(format!("{what} {from} → {to}"));
        }
    };
    let list = |request: &DeviceRequest| {
        let names: Vec<String> = request.algorithms.iter().map(ToString::to_string).collect();
        if names.is_empty() { "the kernel's".to_owned() } else { names.join(" or ") }
    };
    let limit = |bytes: u64| if bytes == 0 { "none".to_owned() } else { human(bytes) };
    let secondary = |request: &DeviceRequest| {
        let names: Vec<String> = request.recompression.iter().map(ToString::to_string).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let path = |request: &DeviceRequest| {
        request.writeback.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)
    };
    note("size", exact(present.disk_size, wanted.disk_size), exact(wanted.disk_size, present.disk_size));
    note("memory limit", limit(present.memory_limit), limit(wanted.memory_limit));
    note("algorithm", list(present), list(wanted));
    note("recompression", secondary(present), secondary(wanted));
    note("write-back", path(present), path(wanted));
    note("label", present.label.clone(), wanted.label.clone());
    match (&present.purpose, &wanted.purpose) {
        (Purpose::Swap { priority, options }, Purpose::Swap { priority: p, options: o }) => {
            note("priority", priority.to_string(), p.to_string());
            note("options", options.clone(), o.clone());
        }
        (
            Purpose::Filesystem { fs_type, mkfs_options, mount },
            Purpose::Filesystem { fs_type: f, mkfs_options: k, mount: m },
        ) => {
            note("file system", fs_type.clone(), f.clone());
            note("mkfs options", mkfs_options.join(" "), k.join(" "));
            note("mount point", mount.mount_point.clone(), m.mount_point.clone());
            note("options", mount.options.clone(), m.options.clone());
            note("owner and mode", owner(mount), owner(m));
        }
        (present, wanted) => note("use", present.role().to_owned(), wanted.role().to_owned()),
    }
    words
}

fn owner(mount: &super::request::MountRequest) -> String {
    let id = |id: Option<u32>| id.map_or_else(|| "-".to_owned(), |id| id.to_string());
    let mode = mount.mode.map_or_else(|| "-".to_owned(), |mode| format!("{mode:04o}"));
    format!("{}:{} {mode}", id(mount.uid), id(mount.gid))
}

/// An amount for people; in bytes if both amounts would be rounded to the same text.
fn exact(bytes: u64, other: u64) -> String {
    if bytes != other && human(bytes) == human(other) { format!("{bytes} B") } else { human(bytes) }
}

fn removal(target: &Target, present: Option<&Request>, facts: &Facts, forced: bool, why: &str) -> Change {
    let taken_over = match target {
        Target::Device(number) => {
            let device = facts.devices.get(number);
            facts.records.get(target).zip(device).and_then(|(record, device)| record.not_ours(device))
        }
        _ => None,
    };
    if let Some(differs) = taken_over {
        let why = format!("{why}, but another program has set it up since zramd did: {differs}");
        return refused(target, ErrorKind::Unmanaged, why);
    }
    match (target, present) {
        (Target::Ramdisk(_), Some(Request::Ramdisk(request))) => {
            let forced = forced || request.keep.is_some();
            ramdisk_removal(target, &request.mount.mount_point, facts, forced, why)
        }
        (Target::Device(number), Some(Request::Device(request)))
            if matches!(facts.device_use(*number), Some(Use::Mounted { .. })) && !forced =>
        {
            refused(
                target,
                ErrorKind::LosesContents,
                format!("{why}, but {} would lose its contents", describe(request)),
            )
        }
        _ => Change::new(target, Action::Remove, why),
    }
}

fn ramdisk_removal(target: &Target, mount_point: &str, facts: &Facts, forced: bool, why: &str) -> Change {
    let full = facts.ramdisk_used.get(mount_point.as_bytes()).copied().unwrap_or(0);
    if full > 0 && !forced {
        let message = format!("{why}, but {mount_point} holds {}, which would be lost", human(full));
        return refused(target, ErrorKind::LosesContents, message);
    }
    Change::new(target, Action::Remove, format!("{why}: {mount_point}"))
}

/// Whether the RAM disk of these units is mounted.
fn is_mounted(disk: &UnitRamdisk, facts: &Facts) -> bool {
    ramdisk_mount(&facts.mounts, &disk.name, &disk.mount_point).is_some()
}

fn disk(target: &Target, wanted: &RamdiskRequest, facts: &Facts, forced: bool) -> Change {
    let path = wanted.mount.mount_point.as_str();
    let of_record = facts.records.get(target).and_then(|record| match &record.request {
        Request::Ramdisk(request) => Some(UnitRamdisk {
            name: request.name.clone(),
            mount_point: request.mount.mount_point.clone(),
            persist: request.persist(),
            ..UnitRamdisk::default()
        }),
        Request::Device(_) | Request::Vm(_) => None,
    });
    let of_unit = || facts.unit_ramdisks.iter().find(|disk| disk.name == wanted.name).cloned();
    let before = of_record.or_else(of_unit).filter(|before| is_mounted(before, facts));
    let Some(before) = before else {
        let what = format!("{} of {} on {path}", human(wanted.size), wanted.backend());
        return Change::new(target, Action::Create, what);
    };
    let differs = if before.mount_point != path {
        Some((
            format!("its mount point has changed to {path}"),
            format!("mount point {} → {path}", before.mount_point),
        ))
    } else if is_layered(&before, facts) != wanted.is_layered() {
        Some(("whether it is kept has changed".to_owned(), "whether it is kept".to_owned()))
    } else {
        None
    };
    if let Some((why, detail)) = differs {
        let removal = ramdisk_removal(target, &before.mount_point, facts, forced || before.is_kept(), &why);
        return match removal.action {
            Action::Remove => Change::new(target, Action::Recreate, detail),
            _ => removal,
        };
    }
    let mounted = ramdisk_mount(&facts.mounts, &wanted.name, path);
    // A file system on zram has the size of its device, whose own entry covers that.
    let Some(mounted) = mounted.filter(|_| wanted.number.is_none()) else {
        return Change::new(target, Action::Keep, "");
    };
    let size = option(&mounted.super_options, "size=").unwrap_or(wanted.size);
    let rounded = round_up(wanted.size, facts.page_size.max(1));
    // The kernel shows the number of inodes unless it is its default.
    let inodes = option(&mounted.super_options, "nr_inodes=");
    let inodes = wanted.inodes.filter(|wanted| inodes != Some(*wanted)).map(|wanted| {
        let before = inodes.map_or_else(|| "default".to_owned(), |inodes| inodes.to_string());
        format!("inodes {before} → {wanted}")
    });
    let used = facts.ramdisk_used.get(&mounted.mount_point).copied().unwrap_or(0);
    if rounded < used {
        let why =
            format!("{} are in use, and a size of {} is less", exact(used, rounded), exact(rounded, used));
        return refused(target, ErrorKind::Unsafe, why);
    }
    let size = (size != rounded).then(|| format!("size {} → {}", exact(size, rounded), exact(rounded, size)));
    let detail: Vec<String> = size.into_iter().chain(inodes).collect();
    Change::new(target, if detail.is_empty() { Action::Keep } else { Action::Adapt }, detail.join(", "))
}

/// Whether the RAM disk is also mounted at its private place.
fn is_layered(disk: &UnitRamdisk, facts: &Facts) -> bool {
    facts.mount_at(&place(&disk.name)).is_some()
}

/// A number among the options of a tmpfs as the kernel shows it: `size=65536k`.
fn option(options: &str, key: &str) -> Option<u64> {
    let value = options.split(',').find_map(|option| option.strip_prefix(key))?;
    let digits = value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = value[digits.len()..].to_ascii_uppercase();
    let factor = if unit.is_empty() { 1 } else { bytes_per(&unit)? };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::algorithm::Algorithm;
    use crate::device::attribute::Attribute;
    use crate::facts::{Best, DeviceFacts};
    use crate::plan::tests::plan_of;
    use crate::proc::{Memory, SwapLine, parse_mountinfo};
    use crate::record::Carried;

    fn planned(text: &str, facts: &Facts) -> Plan {
        plan_of(text, facts, Activation::Managed)
    }

    fn settings_before() -> BTreeMap<Tunable, String> {
        [
            (Tunable::Swappiness, "60"),
            (Tunable::PageCluster, "3"),
            (Tunable::WatermarkBoostFactor, "15000"),
            (Tunable::WatermarkScaleFactor, "10"),
        ]
        .map(|(tunable, value)| (tunable, value.to_owned()))
        .into()
    }

    /// A machine on which this configuration is applied; RAM disks have these further options.
    fn machine(text: &str, options: &str) -> Facts {
        let mut facts = Facts {
            memory: Memory { total_kib: 8 << 20, available_kib: 8 << 20, ..Memory::default() },
            cpus: 1,
            page_size: 4096,
            tunables: settings_before(),
            mkfs: [("ext4".to_owned(), true)].into(),
            ..Facts::default()
        };
        let mut mounts = String::new();
        for item in planned(text, &facts).items {
            let request = item.request.unwrap();
            let mut record =
                Record { progress: Progress::Done, ..Record::begin(item.target, request.clone()) };
            match request {
                Request::Device(request) => {
                    let DeviceRequest { number, disk_size, .. } = request;
                    record.diskseq = Some(7);
                    record.carries = Some(Carried { disk_size, algorithm: None, signature: None });
                    record.algorithm = Some(Algorithm::plain("zstd"));
                    let device = DeviceFacts {
                        device: Some((252, number)),
                        diskseq: record.diskseq,
                        initialised: true,
                        disk_size,
                        attributes: Attribute::ALL.into(),
                        algorithms: ["lz4", "zstd"].map(str::to_owned).into(),
                        ..DeviceFacts::default()
                    };
                    facts.devices.insert(number, device);
                    let path = format!("/dev/zram{number}");
                    match request.purpose {
                        Purpose::Swap { priority, .. } => {
                            let (path, size_kib) = (path.as_str().into(), disk_size / 1024);
                            facts.swaps.push(SwapLine { path, size_kib, used_kib: 0, priority });
                        }
                        Purpose::Filesystem { mount, .. } => {
                            mounts +=
                                &format!("30 1 252:{number} / {} rw - ext4 {path} rw\n", mount.mount_point);
                        }
                        Purpose::Raw { .. } => {}
                    }
                }
                Request::Ramdisk(request) => {
                    let size = request.size / 1024;
                    for path in [request.place(), request.mount.mount_point] {
                        mounts += &format!("31 1 0:40 / {path} rw - tmpfs a rw,size={size}k{options}\n");
                    }
                }
                Request::Vm(request) => facts.tunables.extend(request.values),
            }
            facts.records.insert(record.target.clone(), record);
        }
        facts.mounts = parse_mountinfo(mounts.as_bytes());
        facts
    }

    /// The change to a target if the configuration becomes `text`.
    fn change(target: &Target, text: &str, facts: &Facts, activation: Activation) -> Change {
        let found = changes(&planned(text, facts), facts, activation, false);
        found.into_iter().find(|change| change.target == *target).unwrap()
    }

    const SWAP: &str = "[zram0]\nzram-size = \"64MiB\"\nswap-priority = 100\n";
    const FILES: &str = "[zram1]\nzram-size = \"64MiB\"\nmount-point = \"/srv/data\"\nfs-type = \"ext4\"\noptions = \"nosuid\"\n";
    const DISK: &str = "[ramdisk.a]\nmount-point = \"/srv/a\"\nsize = \"16MiB\"\n";
    const KEPT: &str = "[ramdisk.a]\nmount-point = \"/srv/a\"\nsize = \"16MiB\"\npersist = \"snapshot\"\n";

    fn disk_target() -> Target {
        Target::Ramdisk("a".to_owned())
    }

    #[test]
    fn a_device_is_created_unless_it_is_there_and_activated_unless_it_is_in_use() {
        for (text, number) in [(SWAP, 0), (FILES, 1)] {
            let target = Target::Device(number);
            let action = |facts: &Facts| change(&target, text, facts, Activation::Managed).action;
            let mut facts = machine(text, "");
            assert_eq!(action(&facts), Action::Keep, "{text}");
            (facts.swaps, facts.mounts) = (Vec::new(), Vec::new());
            assert_eq!(action(&facts), Action::Activate, "{text}");
            facts.devices.get_mut(&number).unwrap().initialised = false;
            assert_eq!(action(&facts), Action::Create, "{text}");
            facts.devices.clear();
            assert_eq!(action(&facts), Action::Create, "{text}");
        }
    }

    #[test]
    fn a_change_says_what_is_lost_or_differs() {
        let both = format!("{SWAP}{FILES}");
        let facts = machine(&both, "");
        let found = |text: &str, number, facts: &Facts| {
            let found = change(&Target::Device(number), text, facts, Activation::Managed);
            (found.action, found.detail)
        };
        let limited = both.replace("= 100", "= 100\nzram-resident-limit = \"32MiB\"");
        let mode = format!("{both}mode = \"0750\"\n");
        let unset =
            Facts { devices: BTreeMap::new(), swaps: Vec::new(), mounts: Vec::new(), ..facts.clone() };
        for (text, number, facts, action, detail) in [
            (&limited, 0, &facts, Action::Adapt, "memory limit none → 32.0 MiB"),
            (
                &mode,
                1,
                &facts,
                Action::Refuse,
                "owner and mode -:- - → -:- 0750: setting it up again would lose its contents",
            ),
            (&both, 0, &unset, Action::Create, "64.0 MiB of swap with priority 100"),
            (&both, 1, &unset, Action::Create, "64.0 MiB of ext4 on /srv/data"),
            (&String::new(), 0, &facts, Action::Remove, "no longer configured"),
            (
                &String::new(),
                1,
                &facts,
                Action::Refuse,
                "no longer configured, but 64.0 MiB of ext4 on /srv/data would lose its contents",
            ),
        ] {
            assert_eq!(found(text, number, facts), (action, detail.to_owned()), "{text}");
        }
    }

    #[test]
    fn another_verdict_recreates_what_is_as_configured_otherwise() {
        let text = format!("{SWAP}compression-algorithm = \"auto\"\n");
        let best = Best { algorithm: Algorithm::plain("lz4"), provisional: String::new() };
        let facts = Facts { best: Some(Ok(best)), ..machine(&text, "") };
        for (text, action, by_verdict) in
            [(text.clone(), Action::Recreate, true), (text.replace("100", "50"), Action::Reactivate, false)]
        {
            let found = change(&Target::Device(0), &text, &facts, Activation::Managed);
            assert_eq!((found.action, found.by_verdict), (action, by_verdict), "{found:?}");
        }
    }

    #[test]
    fn settings_are_stopped_first_where_they_are_set_or_pid_1_starts_them() {
        let text = format!("{SWAP}[vm]\ntune = true\n");
        let other = text.replace("true", "true\nswappiness = 100");
        let set = machine(&text, "");
        let mut by_another = set.clone();
        by_another.records.remove(&Target::Vm);
        let not_set = Facts { tunables: settings_before(), ..by_another.clone() };
        for (what, facts, text, direct, managed) in [
            ("as configured", &set, &text, Action::Keep, Action::Keep),
            ("set by another program", &by_another, &text, Action::Keep, Action::Keep),
            ("not set", &not_set, &text, Action::Create, Action::Reactivate),
            ("set differently", &set, &other, Action::Reactivate, Action::Reactivate),
        ] {
            for (activation, action) in [(Activation::Direct, direct), (Activation::Managed, managed)] {
                let found = change(&Target::Vm, text, facts, activation);
                assert_eq!((found.action, found.by_verdict), (action, false), "{what}: {found:?}");
                assert_eq!(found.detail.contains("vm.swappiness 1"), action != Action::Keep, "{found:?}");
            }
        }
        let advice = Some(crate::vm::Advice { swappiness: Some(180), page_in_ns: 0 });
        let found = change(&Target::Vm, &text, &Facts { advice, ..set }, Activation::Managed);
        assert_eq!((found.action, found.by_verdict), (Action::Reactivate, true), "{found:?}");
    }

    /// The same disk, mounted by PID 1.
    fn by_unit(facts: &Facts) -> Facts {
        let Request::Ramdisk(request) = &facts.records[&disk_target()].request else { panic!() };
        let disk = UnitRamdisk {
            name: request.name.clone(),
            mount_point: request.mount.mount_point.clone(),
            persist: request.persist(),
            ..UnitRamdisk::default()
        };
        Facts { records: BTreeMap::new(), unit_ramdisks: vec![disk], ..facts.clone() }
    }

    /// What `text` wants for the disk.
    fn wanted_disk(text: &str) -> RamdiskRequest {
        let item = planned(text, &machine("", "")).items.remove(0);
        let Some(Request::Ramdisk(request)) = item.request else { panic!("{text}") };
        request
    }

    #[test]
    fn a_ram_disk_with_files_is_removed_only_if_they_are_kept_or_that_is_forced() {
        let moved = wanted_disk(&DISK.replace("/srv/a", "/srv/b"));
        for (text, used, forced, is_removed) in
            [(DISK, 0, false, true), (DISK, 1, false, false), (DISK, 1, true, true), (KEPT, 1, false, true)]
        {
            let (expected, kind) = if is_removed {
                ([Action::Remove, Action::Recreate], None)
            } else {
                ([Action::Refuse; 2], Some(ErrorKind::LosesContents))
            };
            let mut facts = machine(text, "");
            facts.ramdisk_used.insert("/srv/a".into(), used);
            for facts in [by_unit(&facts), facts] {
                let removed = &changes(&Plan::default(), &facts, Activation::Managed, forced)[0];
                let recreated = disk(&disk_target(), &moved, &facts, forced);
                assert_eq!([removed.action, recreated.action], expected, "{text}: {removed:?} {recreated:?}");
                assert_eq!([removed.kind, recreated.kind], [kind; 2]);
                assert!(removed.detail.contains("/srv/a"), "{removed:?}");
            }
        }
    }

    #[test]
    fn a_ram_disk_is_adapted_to_a_size_that_its_files_fit_in() {
        const MIB: u64 = 1 << 20;
        let small = DISK.replace("16MiB", "8MiB");
        let inodes = format!("{DISK}inodes = 500\n");
        let too_small = "8388609 B are in use, and a size of 8388608 B is less";
        for (before, options, used, text, action, detail) in [
            (DISK, "", 9 * MIB, DISK, Action::Keep, ""),
            (KEPT, "", 9 * MIB, KEPT, Action::Keep, ""),
            (DISK, ",nr_inodes=500", 0, &inodes, Action::Keep, ""),
            (DISK, ",nr_inodes=400", 0, &inodes, Action::Adapt, "inodes 400 → 500"),
            (DISK, "", 8 * MIB, &small, Action::Adapt, "size 16.0 MiB → 8.0 MiB"),
            (DISK, "", 8 * MIB + 1, &small, Action::Refuse, too_small),
            (DISK, "", 0, KEPT, Action::Recreate, "whether it is kept"),
            (KEPT, "", 9 * MIB, DISK, Action::Recreate, "whether it is kept"),
        ] {
            let mut facts = machine(before, options);
            facts.ramdisk_used.insert("/srv/a".into(), used);
            for facts in [by_unit(&facts), facts] {
                let found = disk(&disk_target(), &wanted_disk(text), &facts, false);
                assert_eq!((found.action, found.detail.as_str()), (action, detail), "{before} → {text}");
            }
        }
        let unmounted = Facts { mounts: Vec::new(), ..machine(DISK, "") };
        for facts in [by_unit(&unmounted), unmounted] {
            let found = disk(&disk_target(), &wanted_disk(DISK), &facts, false);
            assert_eq!(found.action, Action::Create);
            assert_eq!(found.detail, "16.0 MiB of tmpfs on /srv/a");
        }
    }

    #[test]
    fn only_what_is_mounted_with_other_options_is_mounted_again() {
        let text = format!("{SWAP}{FILES}{KEPT}");
        let facts = machine(&text, "");
        for (from, to, expected) in [
            ("100", "100", &[][..]),
            ("100", "50", &[]),
            ("nosuid", "nosuid,nodev", &["srv-data.mount"]),
            ("16MiB", "24MiB", &["run-zramd-ramdisk-a.mount"]),
        ] {
            let text = text.replace(from, to);
            let found = changes(&planned(&text, &facts), &facts, Activation::Managed, false);
            let remounted: Vec<String> = found.into_iter().filter_map(|change| change.remount).collect();
            assert_eq!(remounted, expected, "{from} → {to}");
        }
    }

    #[test]
    fn a_disk_without_a_record_is_removed_by_its_units() {
        let (name, mount_point) = ("logs".to_owned(), "/var/log".to_owned());
        let change = Change::removal(&UnitRamdisk { name, mount_point, ..UnitRamdisk::default() });
        assert_eq!(
            (change.stop.as_deref(), change.setup.as_deref(), change.start.as_deref()),
            (Some("var-log.mount"), Some("run-zramd-ramdisk-logs.mount"), None)
        );
        let (action, target, detail) = change.on_the_bus();
        assert_eq!([action, target, detail], ["remove", "ramdisk.logs", "no longer configured"]);
    }

    #[test]
    fn what_differs_from_the_configuration_is_a_finding() {
        let lost = Some(ErrorKind::LosesContents);
        for (action, kind, expected) in [
            (Action::Keep, None, None),
            (
                Action::Refuse,
                lost,
                Some((
                    Level::Error,
                    Code::Refused,
                    "zram0 is not as configured, and a reload does not change it: why",
                )),
            ),
            (
                Action::Create,
                None,
                Some((Level::Warning, Code::NotSetUp, "zram0 is configured but not set up (why)")),
            ),
            (
                Action::Adapt,
                None,
                Some((
                    Level::Warning,
                    Code::NotInLine,
                    "zram0 is not as configured; a reload would adapt it (why)",
                )),
            ),
        ] {
            let change = Change { kind, ..Change::new(&Target::Device(0), action, "why") };
            let found = change.finding();
            assert_eq!(found.as_ref().and_then(|found| found.kind), kind, "{action}");
            let found = found.as_ref().map(|found| (found.level, found.code, found.message.as_str()));
            assert_eq!(found, expected, "{action}");
        }
    }

    #[test]
    fn what_is_changed_in_place_is_neither_stopped_nor_started() {
        for (action, stops, starts) in [
            (Action::Keep, false, false),
            (Action::Refuse, false, false),
            (Action::Adapt, false, false),
            (Action::Remove, true, false),
            (Action::Recreate, true, true),
            (Action::Reactivate, true, true),
            (Action::Create, false, true),
            (Action::Activate, false, true),
        ] {
            assert_eq!((action.stops(), action.starts()), (stops, starts), "{action}");
        }
    }

    #[test]
    fn the_swappiness_that_a_verdict_suggests_is_told_from_other_changes() {
        let request = |swappiness: &str, cluster: &str| {
            let values = [(Tunable::Swappiness, swappiness), (Tunable::PageCluster, cluster)];
            let values = values.map(|(tunable, value)| (tunable, value.to_owned())).to_vec();
            VmRequest { values, compressors: Vec::new() }
        };
        let advice = crate::vm::Advice { swappiness: Some(180), page_in_ns: 0 };
        let facts = Facts { advice: Some(advice), ..Facts::default() };
        let follows = |present: &VmRequest, wanted: &VmRequest, facts: &Facts| {
            follows_verdict(&Request::Vm(present.clone()), wanted, facts)
        };
        let (before, after) = (request("150", "0"), request("180", "0"));
        assert!(follows(&before, &after, &facts));
        for (present, wanted) in
            [(&after, &after), (&before, &request("170", "0")), (&before, &request("180", "3"))]
        {
            assert!(!follows(present, wanted, &facts), "{present:?} {wanted:?}");
        }
        assert!(!follows(&before, &after, &Facts::default()), "there is no verdict");
    }

    #[test]
    fn sizes_are_read_as_the_kernel_shows_them() {
        for (options, size) in [
            ("rw,size=65536k,mode=755", Some(64 << 20)),
            ("rw,size=4096", Some(4096)),
            ("rw,size=2m", Some(2 << 20)),
            ("rw,nosuid", None),
            ("size=x", None),
        ] {
            assert_eq!(option(options, "size="), size, "{options}");
        }
    }

    #[test]
    fn different_sizes_never_look_equal() {
        assert_eq!(exact(1 << 30, (1 << 30) + 4096), "1073741824 B");
        assert_eq!(exact(1 << 30, 2 << 30), "1.0 GiB");
    }
}
