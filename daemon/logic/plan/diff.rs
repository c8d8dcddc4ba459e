//! Compares the wanted state with the present one, and plans the missing steps.

use std::collections::{BTreeMap, BTreeSet};

use super::backing;
use super::ownership::{Ownership, ownership};
use super::{
    Activation, Candidate, Decision, Group, Item, Plan, Step, Through, Way, mount_depth, ramdisk, vm,
    wants_discard, zswap,
};
use crate::device::attribute::Attribute;
use crate::error::ErrorKind;
use crate::facts::{DeviceFacts, Facts, Support, Use};
use crate::human::human;
use crate::path_kind::PathKind;
use crate::ramdisk::place::{at_or_above, is_below};
use crate::record::{Progress, Record, Target, Undo};
use crate::request::{DeviceRequest, Purpose, Request};

/// Plans the steps for all items. A refusal found here is stored in its item.
pub fn groups(plan: &mut Plan, facts: &Facts, activation: Activation) {
    let mut groups = Vec::new();
    for item in &mut plan.items {
        if item.decision != Decision::Planned {
            continue;
        }
        let group = match &item.request {
            Some(Request::Device(request)) => device_group(item, request, facts, activation),
            Some(Request::Ramdisk(request)) => ramdisk::group(&item.target, request, facts, activation),
            Some(Request::Vm(_)) | None => continue,
        };
        match group {
            Ok(group) => groups.push(group),
            Err(reason) => {
                item.decision = Decision::Refused;
                item.kind = Some(ErrorKind::Unsafe);
                item.reason = reason;
            }
        }
    }
    let planned: BTreeSet<&Target> = groups.iter().map(|group| &group.target).collect();
    let abandoned: Vec<Group> = facts
        .records
        .values()
        .filter(|record| record.progress == Progress::Working)
        .filter(|record| !planned.contains(&record.target))
        .filter(|record| !matches!(record.request, Request::Vm(_)) || plan.item(&record.target).is_none())
        .map(|record| Group { retire: Some(record.clone()), ..Group::new(record.target.clone()) })
        .collect();
    groups.extend(abandoned);
    // Mount points after those that they are below, regardless of numbers.
    groups.sort_by_key(|group| group.request.as_ref().map_or(0, mount_depth));
    create_directories(&mut groups, facts);
    add_settings(&plan.items, &mut groups, facts);
    plan.groups = groups;
}

/// Adds the groups for the settings: zswap is set before any swap is activated, the rest comes last.
fn add_settings(items: &[Item], groups: &mut Vec<Group>, facts: &Facts) {
    let is_any = |group: &Group| group.request.is_some() || group.retire.is_some();
    for item in items {
        let group = match item.target {
            Target::Zswap => zswap::group(item, facts),
            _ => vm::group(item, facts),
        };
        match group.filter(is_any) {
            None => {}
            Some(group) if item.target == Target::Zswap => groups.insert(0, group),
            Some(group) => groups.push(Group { needs: vm::brings_swap(groups), ..group }),
        }
    }
}

fn device_group(
    item: &Item,
    request: &DeviceRequest,
    facts: &Facts,
    activation: Activation,
) -> Result<Group, String> {
    let mut group = Group { request: item.request.clone(), ..Group::new(item.target.clone()) };
    let number = request.number;
    let stale = facts.records.get(&item.target);
    match ownership(number, facts) {
        Ownership::Ours(record)
            if record.progress == Progress::Done && facts.devices[&number].initialised =>
        {
            let Request::Device(present) = &record.request else {
                return Err(format!(
                    "its record in /run/zramd is for another target; remove {}",
                    item.target.file_name()
                ));
            };
            if let Some(steps) = steps_in_use(present, request, record, facts, activation)? {
                let altered = !steps.is_empty() || present != request;
                group.resume = altered.then(|| record.clone());
                group.after = steps;
                return Ok(group);
            }
            group.retire = Some(record.clone());
        }
        // It was reset to be set up again, and may have the algorithm from before.
        Ownership::Ours(record)
            if record.stays
                && record.progress == Progress::Working
                && !facts.devices[&number].initialised
                && (item.candidates.first().is_some_and(|first| first.algorithm.is_some())
                    || record.request.device().is_some_and(|before| before.algorithms.is_empty())) =>
        {
            group.resume = Some(record.clone());
        }
        _ => group.retire = stale.cloned(),
    }
    let removed = group.retire.as_ref().is_some_and(Record::owns_device)
        || facts.records.values().any(|record| may_remove(record, number));
    if facts.support == Support::NotLoaded {
        group.before.push(Step::LoadModule);
    }
    let can = facts.specimen().is_none_or(|device| device.attributes.contains(&Attribute::BackingDev));
    let backing = backing::steps(request, facts).ok().filter(|_| can);
    let through = backing.as_ref().and_then(|_| backing::through(request));
    // Before the device is claimed: on removal, the device must release the store before that is removed.
    group.before.extend(backing.into_iter().flatten());
    if removed || !facts.devices.contains_key(&number) {
        group.before.push(Step::CreateDevice { number });
    }
    group.before.push(Step::ClaimDevice { number });
    group.ways =
        item.candidates.iter().map(|candidate| way(request, candidate, through.as_ref(), facts)).collect();
    group.after = format_steps(request);
    group.after.push(Step::ReleaseLock { number });
    if activation == Activation::Direct {
        group.after.extend(activation_steps(request));
    }
    Ok(group)
}

/// Whether rolling back an unfinished record may remove device `number`, because it may have been created as a spare.
fn may_remove(record: &Record, number: u32) -> bool {
    record.undo.iter().any(|undo| matches!(undo, Undo::RemoveSpare { number: spare, .. } if *spare == number))
}

/// `present` with those values of `wanted` that can change in use. The device must be set up again if it still differs.
pub fn changed_in_use(
    present: &DeviceRequest,
    wanted: &DeviceRequest,
    activation: Activation,
) -> DeviceRequest {
    let mut changed = DeviceRequest { memory_limit: wanted.memory_limit, ..present.clone() };
    match (&mut changed.purpose, &wanted.purpose) {
        // By deactivating and activating the swap.
        (Purpose::Swap { priority, options }, Purpose::Swap { priority: p, options: o }) => {
            *priority = *p;
            options.clone_from(o);
        }
        // PID 1 can remount it with other options; zramd does not.
        (Purpose::Filesystem { mount, .. }, Purpose::Filesystem { mount: m, .. })
            if activation != Activation::Direct =>
        {
            mount.options.clone_from(&m.options);
            // PID 1 mounts the device after it is prepared, at the mount point of the unit.
            if activation == Activation::Systemd {
                mount.mount_point.clone_from(&m.mount_point);
            }
        }
        _ => {}
    }
    changed
}

/// The steps that apply a changed configuration to an existing device; empty if nothing has changed. `None` if the device is set up
/// again, without loss: the contents of swap move to memory. An error if that would lose contents.
fn steps_in_use(
    present: &DeviceRequest,
    wanted: &DeviceRequest,
    record: &Record,
    facts: &Facts,
    activation: Activation,
) -> Result<Option<Vec<Step>>, String> {
    let number = wanted.number;
    let usage = facts.device_use(number);
    if changed_in_use(present, wanted, activation) != *wanted {
        let ours_to_stop = match activation {
            Activation::Direct => record.undo.iter().any(|undo| matches!(undo, Undo::SwapOff { .. })),
            Activation::Systemd | Activation::Managed => false,
        };
        return match (&present.purpose, &usage) {
            // Loss of contents was ruled out before (logic/change.rs).
            _ if activation == Activation::Managed => Ok(None),
            (Purpose::Swap { .. }, None) => Ok(None),
            (Purpose::Swap { .. }, Some(Use::Swap { .. })) if ours_to_stop => Ok(None),
            (Purpose::Swap { .. }, Some(_)) => Err(format!(
                "its settings have changed but /dev/zram{number} is in use as swap: run `systemctl stop dev-zram{number}.swap` first"
            )),
            _ => Err(format!(
                "its settings have changed, and setting it up again would lose its contents: save them, then run `zramd-setup down zram{number}`"
            )),
        };
    }
    let mut steps = Vec::new();
    let device = &facts.devices[&number];
    if device.memory_limit != round_up(wanted.memory_limit, facts.page_size) {
        if (1..device.memory_used).contains(&wanted.memory_limit) {
            return Err(format!(
                "with a memory limit of {}, everything written to it would fail, because it uses {}",
                human(wanted.memory_limit),
                human(device.memory_used)
            ));
        }
        steps.push(Step::SetMemoryLimit { number, bytes: wanted.memory_limit });
    }
    if activation == Activation::Direct {
        steps.extend(live_activation(present, wanted, usage.as_ref()));
    }
    Ok(Some(steps))
}

/// The kernel rounds `mem_limit` and `disksize` up to whole pages.
pub fn round_up(bytes: u64, page_size: u64) -> u64 {
    bytes.checked_next_multiple_of(page_size).unwrap_or(bytes)
}

fn live_activation(present: &DeviceRequest, wanted: &DeviceRequest, usage: Option<&Use>) -> Vec<Step> {
    match (usage, &wanted.purpose) {
        (None, _) => activation_steps(wanted),
        (Some(Use::Swap { .. }), Purpose::Swap { .. }) if present.purpose != wanted.purpose => {
            let mut steps = vec![Step::SwapOff { number: wanted.number }];
            steps.extend(activation_steps(wanted));
            steps
        }
        _ => Vec::new(),
    }
}

/// The steps that configure the device with one algorithm, in an order that all kernel versions accept.
fn way(
    request: &DeviceRequest,
    candidate: &Candidate,
    backing: Option<&(String, Through)>,
    facts: &Facts,
) -> Way {
    let number = request.number;
    let known: Option<&DeviceFacts> = facts.specimen();
    let supports = |attribute| known.is_none_or(|device| device.attributes.contains(&attribute));
    let mut steps = Vec::new();
    if let Some(algorithm) = &candidate.algorithm {
        steps.push(Step::SetAlgorithm { number, algorithm: algorithm.name.clone() });
        if !algorithm.parameters.is_empty() && supports(Attribute::AlgorithmParams) {
            steps.push(Step::SetParameters { number, priority: 0, algorithm: algorithm.clone() });
        }
    }
    if supports(Attribute::RecompAlgorithm) {
        for (priority, algorithm) in (1u8..).zip(&request.recompression) {
            steps.push(Step::SetRecompression { number, priority, algorithm: algorithm.name.clone() });
            if !algorithm.parameters.is_empty() && supports(Attribute::AlgorithmParams) {
                steps.push(Step::SetParameters { number, priority, algorithm: algorithm.clone() });
            }
        }
    }
    if let Some((path, through)) = backing {
        steps.push(Step::SetBackingDevice { number, path: path.clone(), through: *through });
    }
    steps.push(Step::SetDiskSize { number, bytes: request.disk_size });
    if request.memory_limit > 0 {
        steps.push(Step::SetMemoryLimit { number, bytes: request.memory_limit });
    }
    steps.push(Step::SelfTest { number, bytes: round_up(request.disk_size, facts.page_size) });
    Way { algorithm: candidate.algorithm.clone(), measured: candidate.measured, steps }
}

fn format_steps(request: &DeviceRequest) -> Vec<Step> {
    let number = request.number;
    let filesystem = |fs_type: &String, options: &[String]| Step::MakeFilesystem {
        number,
        fs_type: fs_type.clone(),
        arguments: mkfs_arguments(fs_type, &request.label, options),
    };
    match &request.purpose {
        Purpose::Swap { .. } => vec![Step::MakeSwap { number, label: request.label.clone() }],
        Purpose::Filesystem { fs_type, mkfs_options, mount } => {
            let mut steps = vec![filesystem(fs_type, mkfs_options)];
            if mount.mode.is_some() || mount.uid.is_some() || mount.gid.is_some() {
                steps.push(Step::SetRoot { number, fs_type: fs_type.clone(), mount: mount.clone() });
            }
            steps
        }
        Purpose::Raw { fs_type: Some(fs_type), mkfs_options } => vec![filesystem(fs_type, mkfs_options)],
        Purpose::Raw { fs_type: None, .. } => Vec::new(),
    }
}

/// Arguments for `mkfs`: quiet, no questions, no journal where it is useless in RAM, no discard of an empty device.
/// Arguments for `mkfs` that set the UUID, unless `options` of the user do.
pub fn uuid_arguments(fs_type: &str, uuid: &str, options: &[String]) -> Option<[String; 2]> {
    let (flag, value, given) = match fs_type {
        "ext2" | "ext3" | "ext4" | "btrfs" => ("-U", uuid.to_owned(), "-U"),
        "xfs" => ("-m", format!("uuid={uuid}"), "uuid="),
        _ => return None,
    };
    let is_given = options.iter().any(|option| option.contains(given) || option.starts_with("--uuid"));
    (!is_given).then(|| [flag.to_owned(), value])
}

fn mkfs_arguments(fs_type: &str, label: &str, options: &[String]) -> Vec<String> {
    let fixed: &[&str] = match fs_type {
        "ext2" => &["-q", "-F", "-m", "0", "-L"],
        "ext3" => &["-q", "-F", "-m", "0", "-E", "nodiscard", "-L"],
        "ext4" => &["-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "nodiscard", "-L"],
        "xfs" => &["-q", "-f", "-K", "-L"],
        "btrfs" => &["-q", "-f", "-K", "-m", "single", "-L"],
        "f2fs" => &["-q", "-f", "-t", "0", "-l"],
        "vfat" => &["-n"],
        _ => &[],
    };
    let mut words: Vec<String> = fixed.iter().map(|word| (*word).to_owned()).collect();
    if !fixed.is_empty() {
        words.push(label.to_owned());
    }
    words.extend(options.iter().cloned());
    words
}

fn activation_steps(request: &DeviceRequest) -> Vec<Step> {
    let number = request.number;
    match &request.purpose {
        Purpose::Swap { priority, options } => {
            vec![Step::SwapOn { number, priority: *priority, discard: wants_discard(options) }]
        }
        Purpose::Filesystem { fs_type, mount, .. } => {
            vec![Step::MountDevice { number, fs_type: fs_type.clone(), mount: mount.clone() }]
        }
        Purpose::Raw { .. } => Vec::new(),
    }
}

/// `/a`, `/a/b`, `/a/b/c` for `/a/b/c`.
pub fn ancestors_and_self(path: &str) -> Vec<String> {
    let mut all: Vec<String> = at_or_above(path).filter(|path| *path != "/").map(str::to_owned).collect();
    all.reverse();
    all
}

/// Creates the directories of mount points: those that are missing, those that an undo removes, and those hidden by a
/// file system that this plan mounts before. In the last case the group needs the one that mounts that.
fn create_directories(groups: &mut [Group], facts: &Facts) {
    // If another of our targets created the directory, this one creates it as well: the last one to go removes it.
    let mut creators: BTreeMap<&str, Vec<&Target>> = BTreeMap::new();
    for record in facts.records.values() {
        for undo in &record.undo {
            if let Undo::RemoveDirectory { path } = undo {
                creators.entry(path).or_default().push(&record.target);
            }
        }
    }
    let created = |path: &str, group: &Group| {
        let goes = |target: &&Target| **target != group.target || group.retire.is_some();
        creators.get(path).is_some_and(|creators| creators.iter().any(goes))
    };
    // Except for the parent directories of another mount point of ours: they are removed with that mount.
    let mounts = facts.records.values().filter_map(|record| record.request.mount());
    let mounted: BTreeSet<&str> = mounts.map(|mount| mount.mount_point.as_str()).collect();
    let mounts_now = |group: &Group| {
        let mounts = |step: &Step| {
            matches!(step, Step::MountDevice { .. } | Step::MountTmpfs { .. } | Step::ShowRamdisk { .. })
        };
        group.after.iter().any(mounts)
    };
    let mount_point = |group: &Group| {
        let mount = group.request.as_ref().and_then(Request::mount).filter(|_| mounts_now(group));
        mount.map(|mount| mount.mount_point.clone())
    };
    // The mounts of the groups before.
    let mut covering: BTreeMap<String, Target> = BTreeMap::new();
    for group in groups {
        let Some(path) = mount_point(group) else { continue };
        let covered = at_or_above(&path).skip(1).find_map(|above| covering.get_key_value(above));
        let above = at_or_above(&path).skip(1).find(|above| mounted.contains(above));
        let is_ours = |path: &String| above.is_none_or(|above| is_below(path, above));
        let is_wanted = |path: &String| match &covered {
            Some((directory, _)) => is_below(path, directory),
            None => {
                facts.mount_points.get(path) == Some(&PathKind::Missing)
                    || (created(path, group) && is_ours(path))
            }
        };
        let steps: Vec<Step> = ancestors_and_self(&path)
            .into_iter()
            .filter(is_wanted)
            .map(|path| Step::CreateDirectory { path })
            .collect();
        // The mount is the last step.
        let at = group.after.len() - 1;
        group.after.splice(at..at, steps);
        group.needs = covered.map(|(_, target)| target.clone()).or(group.needs.take());
        covering.insert(path, group.target.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::{facts, plan_of, set_up, words};
    use crate::request::MountRequest;
    use crate::request::tests::device;

    fn swap(priority: i32, options: &str) -> DeviceRequest {
        device(0, Purpose::Swap { priority, options: options.to_owned() })
    }

    fn filesystem(mount_point: &str, options: &str) -> DeviceRequest {
        let (mount_point, options) = (mount_point.to_owned(), options.to_owned());
        let mount = MountRequest { mount_point, options, mode: None, uid: None, gid: None };
        device(0, Purpose::Filesystem { fs_type: "ext4".to_owned(), mkfs_options: Vec::new(), mount })
    }

    #[test]
    fn what_can_change_in_use() {
        use Activation::{Direct, Managed, Systemd};
        let all = [Direct, Systemd, Managed];
        let (swapped, mounted) = (swap(5, ""), filesystem("/srv", "nosuid"));
        for (present, wanted, expected) in [
            (&swapped, DeviceRequest { memory_limit: 4096, ..swapped.clone() }, &all[..]),
            (&swapped, swap(7, "discard"), &all),
            (&swapped, DeviceRequest { disk_size: 2 << 20, ..swapped.clone() }, &[]),
            (&swapped, mounted.clone(), &[]),
            (&mounted, DeviceRequest { memory_limit: 4096, ..mounted.clone() }, &all),
            (&mounted, filesystem("/srv", "nodev"), &[Systemd, Managed]),
            (&mounted, filesystem("/mnt", "nosuid"), &[Systemd]),
            (&mounted, DeviceRequest { label: "other".to_owned(), ..mounted.clone() }, &[]),
        ] {
            let can = |activation: &Activation| changed_in_use(present, &wanted, *activation) == wanted;
            let found: Vec<Activation> = all.into_iter().filter(can).collect();
            assert_eq!(found, expected, "{present:?} {wanted:?}");
        }
    }

    /// Without systemd, zramd activates the swap itself.
    #[test]
    fn a_swap_in_place_is_only_activated_where_that_is_missing() {
        use Activation::{Direct, Systemd};
        let (off, on) =
            ("deactivate swap on /dev/zram0 temporarily", "activate swap on /dev/zram0 with priority");
        let (five, seven) = (format!("{on} 5"), format!("{on} 7"));
        for (activation, is_active, priority, expected, is_noted) in [
            (Direct, true, 5, &[][..], false),
            (Direct, false, 5, &[five.as_str()], true),
            (Direct, true, 7, &[off, seven.as_str()], true),
            // PID 1 activates it, and the record says how.
            (Systemd, true, 7, &[], true),
            (Systemd, false, 5, &[], false),
        ] {
            let text = |priority| format!("[zram0]\nzram-size = 64\nswap-priority = {priority}");
            let mut facts = set_up(&text(5));
            facts.swaps.retain(|_| is_active);
            let plan = plan_of(&text(priority), &facts, activation);
            let group = &plan.groups[0];
            let found = (words(group.expected_steps()), group.resume.is_some());
            assert_eq!(found, (expected.iter().map(|&step| step.to_owned()).collect(), is_noted));
            assert_eq!(plan.is_empty(), expected.is_empty());
        }
    }

    #[test]
    fn a_device_in_use_is_set_up_again_only_by_the_one_that_can_free_it() {
        use Activation::{Direct, Managed, Systemd};
        let (swap, files) = ("", "mount-point = \"/srv\"");
        let stop = "run `systemctl stop dev-zram0.swap` first";
        for (purpose, activation, is_used, is_started_by_us, refused) in [
            (swap, Direct, true, true, ""),
            (swap, Direct, true, false, stop),
            (swap, Direct, false, true, ""),
            (swap, Systemd, true, false, stop),
            (swap, Systemd, true, true, stop),
            (swap, Systemd, false, false, ""),
            (swap, Managed, true, false, ""),
            (files, Direct, true, true, "would lose its contents"),
            (files, Systemd, false, false, "would lose its contents"),
            (files, Managed, true, false, ""),
        ] {
            let text = |mib: u32| format!("[zram0]\nzram-size = {mib}\n{purpose}");
            let mut facts = set_up(&text(64));
            facts.swaps.retain(|_| is_used);
            facts.mounts.retain(|_| is_used);
            let record = facts.records.get_mut(&Target::Device(0)).unwrap();
            record.undo.retain(|undo| is_started_by_us || !matches!(undo, Undo::SwapOff { .. }));
            let plan = plan_of(&text(80), &facts, activation);
            let (item, case) = (&plan.items[0], format!("{purpose} {activation:?} {is_used}"));
            assert!(item.reason.contains(refused), "{case}: {}", item.reason);
            assert_eq!(item.decision == Decision::Refused, !refused.is_empty(), "{case}: {}", item.reason);
            let is_retired = plan.groups.iter().any(|group| group.retire.is_some());
            assert_eq!(is_retired, refused.is_empty(), "{case}");
        }
    }

    /// Kernels before 6.12 keep the algorithm over a reset: it is set again, or none was set.
    #[test]
    fn a_device_that_was_reset_to_be_set_up_again_stays() {
        use Progress::{Done, Working};
        let lz4 = "compression-algorithm = \"lz4\"";
        for (stays, progress, initialised, before, now, expected) in [
            (true, Working, false, lz4, lz4, true),
            (true, Working, false, "", "", true),
            (true, Working, false, "", lz4, true),
            (true, Working, false, lz4, "", false),
            (true, Working, true, lz4, lz4, false),
            (true, Done, false, lz4, lz4, false),
            (false, Working, false, lz4, lz4, false),
        ] {
            let text = |algorithm: &str| format!("[zram0]\nzram-size = 64\n{algorithm}");
            let mut facts = set_up(&text(before));
            facts.swaps.clear();
            facts.devices.get_mut(&0).unwrap().initialised = initialised;
            let record = facts.records.get_mut(&Target::Device(0)).unwrap();
            (record.stays, record.progress) = (stays, progress);
            let group = &plan_of(&text(now), &facts, Activation::Direct).groups[0];
            assert_eq!(
                (group.resume.is_some(), group.retire.is_some()),
                (expected, !expected),
                "{stays} {progress:?} {initialised} {before} {now}"
            );
        }
    }

    #[test]
    fn a_device_that_an_interrupted_run_may_still_remove_is_created_again() {
        let mut facts = facts();
        facts.devices.insert(1, DeviceFacts { diskseq: Some(8), ..facts.devices[&0].clone() });
        let undo = vec![Undo::RemoveSpare { number: 1, diskseq: Some(8) }];
        let target = Target::Device(9);
        let request = Request::Device(DeviceRequest { number: 9, ..swap(5, "") });
        facts.records.insert(target.clone(), Record { undo, ..Record::begin(target, request) });
        let groups = plan_of("[zram0]\n[zram1]", &facts, Activation::Direct).groups;
        let creates = |number: &u32| {
            groups.iter().any(|group| group.before.contains(&Step::CreateDevice { number: *number }))
        };
        assert_eq!([0, 1, 2].into_iter().filter(creates).collect::<Vec<u32>>(), [1]);
    }

    #[test]
    fn each_of_mode_owner_and_group_is_set_before_the_mount() {
        for (keys, expected) in [
            ("", None),
            ("mode = \"0700\"", Some("mode to 0700")),
            ("owner = 7", Some("owner to 7")),
            ("group = 7", Some("group to 7")),
        ] {
            let text = format!("[zram0]\nzram-size = 64\nmount-point = \"/srv\"\n{keys}");
            let groups = plan_of(&text, &facts(), Activation::Direct).groups;
            let steps = words(groups[0].expected_steps());
            let found = steps.iter().find_map(|step| step.strip_prefix("set the root directory's "));
            assert_eq!(found, expected, "{keys}");
        }
    }

    /// The last of our targets that is removed also removes the directory.
    #[test]
    fn a_directory_that_one_target_has_created_is_created_by_each_other_one() {
        let files = "[zram0]\nzram-size = 64\nmount-point = \"/srv/b\"\n";
        let mut facts = set_up(files);
        facts.mounts.clear();
        let undo = Undo::RemoveDirectory { path: "/srv".to_owned() };
        facts.records.get_mut(&Target::Device(0)).unwrap().undo.push(undo);
        let kinds =
            [("/srv", PathKind::Directory), ("/srv/a", PathKind::Missing), ("/srv/b", PathKind::Directory)];
        facts.mount_points = kinds.map(|(path, kind)| (path.to_owned(), kind)).into();
        let text = format!("{files}[ramdisk.a]\nmount-point = \"/srv/a\"\nsize = \"64MiB\"\n");
        let groups = plan_of(&text, &facts, Activation::Direct).groups;
        let steps: Vec<String> = groups.iter().flat_map(|group| words(group.expected_steps())).collect();
        assert_eq!(
            steps,
            [
                "mount /dev/zram0 on /srv/b",
                "create the directory /srv",
                "create the directory /srv/a",
                "mount a tmpfs on /srv/a",
            ]
        );
    }

    /// As in the manual pages of mkfs.
    #[test]
    fn file_systems_get_their_label_and_the_options_of_the_user_last() {
        for (fs_type, flag) in [
            ("ext2", "-L"),
            ("ext3", "-L"),
            ("ext4", "-L"),
            ("xfs", "-L"),
            ("btrfs", "-L"),
            ("f2fs", "-l"),
            ("vfat", "-n"),
        ] {
            let words = mkfs_arguments(fs_type, "mine", &["-v".to_owned()]);
            assert_eq!(words[words.len() - 3..], [flag, "mine", "-v"], "{fs_type}");
        }
        assert_eq!(mkfs_arguments("minix", "mine", &["-v".to_owned()]), ["-v"], "unknown options");
    }

    #[test]
    fn a_uuid_is_set_where_mkfs_can_and_the_user_has_set_none() {
        for (fs_type, options, expected) in [
            ("ext2", &[][..], Some(["-U", "1-2"])),
            ("ext4", &["-v"], Some(["-U", "1-2"])),
            ("btrfs", &[], Some(["-U", "1-2"])),
            ("xfs", &["-m", "crc=1"], Some(["-m", "uuid=1-2"])),
            ("vfat", &[], None),
            ("ext4", &["-U", "random"], None),
            ("btrfs", &["--uuid", "3-4"], None),
            ("xfs", &["-m", "crc=1,uuid=3-4"], None),
        ] {
            let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
            let found = uuid_arguments(fs_type, "1-2", &options);
            assert_eq!(found, expected.map(|words| words.map(str::to_owned)), "{fs_type} {options:?}");
        }
    }
}
