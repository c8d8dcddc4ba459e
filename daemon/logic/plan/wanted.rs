//! Turns Settings and Facts into requests, or reasons against them.

use std::collections::BTreeMap;

use super::check;
use super::{Candidate, Decision, Item, refuse};
use crate::config::settings::{
    Backend, BackingSettings, DeviceSettings, MountSettings, Principal, RamdiskSettings, Settings, SizeExpr,
    SizeRule,
};
use crate::device::algorithm::{Algorithm, with_option};
use crate::error::ErrorKind;
use crate::expr::{UNKNOWN_MEMORY, Variables, size_in_bytes};
use crate::facts::{Best, Facts};
use crate::finding::Finding;
use crate::human::human;
use crate::maintain::tighter;
use crate::neighbours::programs::Does;
use crate::record::Target;
use crate::request::{
    Choice, DeviceRequest, KeepRequest, MountRequest, Purpose, RamdiskRequest, Request, Store, Writeback,
};
use crate::verdict::Unusable;

/// The algorithms that `auto` tries before the kernel's default.
///
/// zstd is what the benchmark chooses on all but slow processors (`tests/bench/choice`). lz4 is the fastest, and lzo-rle the best that
/// every kernel has.
pub const AUTO: [&str; 3] = ["zstd", "lz4", "lzo-rle"];

/// The variables of expressions on this machine.
pub fn variables(facts: &Facts) -> Variables {
    let is_known = facts.memory.total_kib > 0;
    let mib = |kib: u64| if is_known { (kib / 1024) as f64 } else { f64::NAN };
    Variables {
        ram_mib: mib(facts.memory.total_kib),
        swap_mib: mib(facts.memory.swap_total_kib),
        cpus: f64::from(facts.cpus),
    }
}

/// Turns settings into requests: one item per target, devices by number, then RAM disks by name.
pub fn wanted(settings: &Settings, facts: &Facts) -> (Vec<Item>, Vec<Finding>) {
    let mut items = Vec::new();
    let mut problems = Vec::new();
    let mut origins = BTreeMap::new();
    let recompresses = settings.maintenance.as_ref().is_some_and(|asked| asked.recompress.is_some());
    for device in &settings.devices {
        let target = Target::Device(device.number);
        origins.insert(target, device.mount_origin().clone());
        let item = device_item(device, facts, &mut problems);
        problems.extend(device.host_memory_limit.as_ref().and_then(|limit| doubt(limit, facts)));
        if let (Decision::Planned, Some(Request::Device(request))) = (item.decision, &item.request) {
            if matches!(request.purpose, Purpose::Swap { .. }) {
                let (size, max) = match &device.size {
                    SizeRule::Expression { size, max } => (Some(size), max),
                    SizeRule::Fraction { max, .. } => (None, max),
                };
                problems.extend(size.into_iter().chain(max).filter_map(|size| doubt(size, facts)));
            }
            problems.extend(check::ineffective(device, request, facts, recompresses));
            let mount = device.purpose.mount();
            problems.extend(mount.and_then(|mount| check::other_permissions(mount, facts)));
        }
        items.push(item);
    }
    for disk in &settings.ramdisks {
        let target = Target::Ramdisk(disk.name.clone());
        origins.insert(target, disk.mount.origin.clone());
        items.push(ramdisk_item(disk, facts, &mut problems));
    }
    check::between_items(&mut items, &origins, facts, &mut problems);
    problems.extend(check::too_many_swaps(&items, &settings.devices, facts));
    problems.extend(check::overcommitted(&items, &settings.devices, facts));
    problems.extend(check::ramdisks_exceed_memory(&items, &settings.ramdisks, facts));
    // What stands in [defaults] or [maintenance] is found for each device.
    let mut found: Vec<Finding> = Vec::new();
    for problem in problems {
        if !found.contains(&problem) {
            found.push(problem);
        }
    }
    (items, found)
}

/// Bytes of memory that sessions keep, at most a quarter of it: system services and systemd itself keep as much together. 0 without
/// compressed swap.
pub fn protected(settings: &Settings, items: &[Item], facts: &Facts, problems: &mut Vec<Finding>) -> u64 {
    let is_swap = |item: &Item| {
        item.decision == Decision::Planned
            && matches!(&item.request, Some(Request::Device(device)) if matches!(device.purpose, Purpose::Swap { .. }))
    };
    let Some(size) = settings.vm.as_ref().and_then(|vm| vm.protected.as_ref()) else { return 0 };
    if facts.is_image && size.expr.needs_memory() {
        return 0;
    }
    let most = facts.memory.total_kib << 8;
    let bytes = match bytes(size, facts) {
        Ok(bytes) if bytes > most => {
            let message = format!("`{}` is more than a quarter of the memory, {}", size.text, human(most));
            Err((message, "system services and systemd keep as much again, and programs need the rest"))
        }
        Ok(bytes) => Ok(bytes),
        Err(refusal) => Err((refusal.message, "")),
    };
    if facts.lacks_memory_controller && bytes.is_ok() {
        let message = "protect-sessions has no effect: the memory controller of control groups (version 2) is not there";
        let hint =
            "boot with systemd.unified_cgroup_hierarchy=1 cgroup_enable=memory, or write \"none\"".to_owned();
        problems.push(Finding::warning(size.origin.clone(), message).remedy(hint));
    }
    bytes.map_or_else(
        |(message, hint)| {
            problems.push(Finding::error(size.origin.clone(), message).remedy(hint));
            0
        },
        |bytes| if items.iter().any(is_swap) { bytes } else { 0 },
    )
}

fn item(target: Target) -> Item {
    Item {
        target,
        request: None,
        candidates: Vec::new(),
        decision: Decision::Planned,
        reason: String::new(),
        kind: None,
    }
}

/// Why a size is not evaluated for an image.
const SIZE_AT_BOOT: &str = "its size depends on the memory, and is evaluated at boot";
/// What an image does not tell of a device that yields.
const YIELDS_AT_BOOT: &str = "it yields to zswap if the kernel enables it, which is known at boot";

fn waits_for_memory(device: &DeviceSettings) -> bool {
    let (size, max) = match &device.size {
        SizeRule::Expression { size, max } => (Some(size), max),
        SizeRule::Fraction { max, .. } => (None, max),
    };
    let sizes = [size, max.as_ref(), device.resident_limit.as_ref()].into_iter().flatten();
    size.is_none()
        || device.host_memory_limit.is_some()
        || sizes.into_iter().any(|size| size.expr.needs_memory())
}

/// It is wanted, but what is requested is not known yet.
fn at_boot(mut item: Item, yields: bool) -> Item {
    item.reason = if yields { format!("{SIZE_AT_BOOT}; {YIELDS_AT_BOOT}") } else { SIZE_AT_BOOT.to_owned() };
    item
}

fn device_item(device: &DeviceSettings, facts: &Facts, problems: &mut Vec<Finding>) -> Item {
    let mut item = item(Target::Device(device.number));
    if facts.is_image && waits_for_memory(device) {
        let Some(reason) = other_manager(device, facts) else { return at_boot(item, device.yields) };
        (item.decision, item.reason) = (Decision::Skipped, reason);
        return item;
    }
    match over_host_limit(device, facts) {
        Err(refusal) => {
            refuse(&mut item, refusal, problems);
            return item;
        }
        Ok(limit) => {
            if let Some(reason) = limit.or_else(|| other_manager(device, facts)) {
                item.decision = Decision::Skipped;
                item.reason = reason;
                return item;
            }
        }
    }
    let request = match device_request(device, facts) {
        Ok(request) => request,
        Err(refusal) => {
            refuse(&mut item, refusal, problems);
            return item;
        }
    };
    if request.disk_size == 0 {
        item.decision = Decision::Skipped;
        item.reason = "its size is 0".to_owned();
        return item;
    }
    let candidates = candidates(&request.algorithms, facts);
    let request = match candidates.as_ref().map(|candidates| candidates.first()) {
        Ok(Some(Candidate { algorithm: Some(primary), .. })) => {
            tighter_only(device, request, primary, problems)
        }
        _ => request,
    };
    item.request = Some(Request::Device(request.clone()));
    match candidates {
        Ok(candidates) => item.candidates = candidates,
        Err(reason) => {
            let hint = "add \"auto\" to the list to accept another algorithm";
            let refusal =
                Finding::refusal(ErrorKind::Unsupported, &device.algorithms_origin, reason).remedy(hint);
            refuse(&mut item, refusal, problems);
        }
    }
    for refusal in check::device(device, &request, facts) {
        refuse(&mut item, refusal, problems);
    }
    if item.decision == Decision::Planned {
        problems.extend(check::unsupported_features(device, &item, facts));
        if facts.is_image && device.yields {
            YIELDS_AT_BOOT.clone_into(&mut item.reason);
        }
    }
    item
}

/// Leaves out secondary algorithms that would save nothing; returns why.
fn tighter_only(
    device: &DeviceSettings,
    mut request: DeviceRequest,
    primary: &Algorithm,
    problems: &mut Vec<Finding>,
) -> DeviceRequest {
    request.recompression.retain(|secondary| match tighter::refusal(primary, secondary) {
        None => true,
        Some(why) => {
            let hint = "write a denser one, such as \"zstd\", or leave it out";
            let message = format!("{why}; it is left out");
            problems.push(Finding::warning(device.recompression_origin.clone(), message).remedy(hint));
            false
        }
    });
    request
}

/// Why the device is not wanted on a machine with this much memory, if so.
fn over_host_limit(device: &DeviceSettings, facts: &Facts) -> Result<Option<String>, Finding> {
    let Some(limit) = &device.host_memory_limit else { return Ok(None) };
    let ram = facts.memory.total_kib / 1024;
    if facts.memory.total_kib == 0 {
        return Err(Finding::refusal(ErrorKind::Unsupported, &limit.origin, UNKNOWN_MEMORY));
    }
    let mib = evaluate(limit, facts)?;
    // Exact: sizes in MiB are far below 2^53.
    if mib >= ram as f64 {
        return Ok(None);
    }
    let (ram, limit) = (human(ram << 20), human(size_in_bytes(mib).unwrap_or(0)));
    Ok(Some(format!("this machine has {ram} of RAM, more than its host-memory-limit of {limit}")))
}

/// The program to which the device yields, if there is one. A device that exists stays, so that the machine always has swap.
fn other_manager(device: &DeviceSettings, facts: &Facts) -> Option<String> {
    if !device.yields || facts.records.contains_key(&Target::Device(device.number)) {
        return None;
    }
    if facts.has_chosen_zswap {
        return Some("it yields to zswap, which this system enables, with swap on a disk".to_owned());
    }
    let other = facts.other_managers.iter().find(|other| other.does == Does::Devices)?;
    Some(format!("it yields to {}, which sets up zram on this machine ({})", other.name, other.file))
}

fn evaluate(size: &SizeExpr, facts: &Facts) -> Result<f64, Finding> {
    size.expr.evaluate(&variables(facts)).map_err(|error| {
        Finding::refusal(
            ErrorKind::Config,
            &size.origin,
            format!("`{}` cannot be evaluated: {}", size.text, error.message),
        )
    })
}

fn doubt(size: &SizeExpr, facts: &Facts) -> Option<Finding> {
    check::doubtful(size, bytes(size, facts).ok()?, facts)
}

pub(super) fn bytes(size: &SizeExpr, facts: &Facts) -> Result<u64, Finding> {
    size_in_bytes(evaluate(size, facts)?).map_err(|error| {
        Finding::refusal(
            ErrorKind::Config,
            &size.origin,
            format!("`{}` is no size: {}", size.text, error.message),
        )
        .remedy("write for example \"4GiB\", \"50%\" or \"ram / 2\"")
    })
}

/// The size of a device in bytes, by the rule of zram-generator: a fraction is applied to whole MiB.
fn disk_size(device: &DeviceSettings, facts: &Facts) -> Result<u64, Finding> {
    let (size, max) = match &device.size {
        SizeRule::Expression { size, max } => (bytes(size, facts)?, max),
        SizeRule::Fraction { origin, .. } if facts.memory.total_kib == 0 => {
            return Err(Finding::refusal(ErrorKind::Unsupported, origin, UNKNOWN_MEMORY));
        }
        SizeRule::Fraction { fraction, max, .. } => {
            let mib = (fraction * variables(facts).ram_mib).floor();
            (size_in_bytes(mib).unwrap_or(u64::MAX), max)
        }
    };
    Ok(match max {
        Some(max) => size.min(bytes(max, facts)?),
        None => size,
    })
}

fn device_request(device: &DeviceSettings, facts: &Facts) -> Result<DeviceRequest, Finding> {
    let purpose = match &device.purpose {
        Purpose::Swap { priority, options } => {
            Purpose::Swap { priority: *priority, options: options.clone() }
        }
        Purpose::Filesystem { fs_type, mount, mkfs_options } => Purpose::Filesystem {
            fs_type: fs_type.clone(),
            mkfs_options: mkfs_options.clone(),
            mount: mount_request(mount, facts)?,
        },
        Purpose::Raw { fs_type, mkfs_options } => {
            Purpose::Raw { fs_type: fs_type.clone(), mkfs_options: mkfs_options.clone() }
        }
    };
    Ok(DeviceRequest {
        number: device.number,
        disk_size: disk_size(device, facts)?,
        memory_limit: match &device.resident_limit {
            Some(limit) => bytes(limit, facts)?,
            None => 0,
        },
        algorithms: device.algorithms.clone(),
        recompression: device.recompression.clone(),
        writeback: device
            .writeback
            .as_ref()
            .map(|writeback| writeback_request(writeback, facts))
            .transpose()?,
        purpose,
        label: device.label.clone().unwrap_or_else(|| format!("zram{}", device.number)),
    })
}

fn writeback_request(settings: &BackingSettings, facts: &Facts) -> Result<Writeback, Finding> {
    let store = match &settings.store {
        Store::Device(path) => Store::Device(path.clone()),
        Store::File { path, size } => {
            let size = size.as_ref().map(|size| bytes(size, facts)).transpose()?;
            Store::File { path: path.clone(), size }
        }
    };
    Ok(Writeback { store, encrypted: settings.encrypted })
}

fn mount_request(mount: &MountSettings, facts: &Facts) -> Result<MountRequest, Finding> {
    let id = |principal: &Option<Principal>, known: &BTreeMap<String, u32>, kind: &str| match principal {
        None => Ok(None),
        Some(Principal::Id(id)) => Ok(Some(*id)),
        Some(Principal::Name(name, origin)) => match (known.get(name), &facts.accounts_unread) {
            (Some(id), _) => Ok(Some(*id)),
            (None, Some(why)) => {
                let reason = format!("the {kind} `{name}` cannot be looked up: {why}");
                Err(Finding::refusal(ErrorKind::Unsupported, origin, reason).remedy("write its number"))
            }
            (None, None) => {
                let reason = format!("there is no {kind} `{name}` on this machine");
                // As for chown(1).
                let hint = match name.split_once(':') {
                    Some((user, group)) => format!("write owner = \"{user}\" and group = \"{group}\""),
                    None => "create it first, or write its number".to_owned(),
                };
                Err(Finding::refusal(ErrorKind::Config, origin, reason).remedy(hint))
            }
        },
    };
    Ok(MountRequest {
        mount_point: mount.mount_point.clone(),
        options: mount.options.clone(),
        mode: mount.mode,
        uid: id(&mount.owner, &facts.users, "user")?,
        gid: id(&mount.group, &facts.groups, "group")?,
    })
}

fn ramdisk_request(disk: &RamdiskSettings, facts: &Facts) -> Result<RamdiskRequest, Finding> {
    let limit = |limit: &Option<SizeExpr>| limit.as_ref().map(|limit| bytes(limit, facts)).transpose();
    let (store_limit, daily_budget) = (limit(&disk.store_limit)?, limit(&disk.daily_budget)?);
    let (huge, number) = match &disk.backend {
        Backend::Tmpfs { huge } => (huge.clone(), None),
        Backend::Zram { number } => (None, Some(*number)),
    };
    Ok(RamdiskRequest {
        name: disk.name.clone(),
        size: bytes(&disk.size, facts)?,
        inodes: disk.inodes,
        mount: mount_request(&disk.mount, facts)?,
        huge,
        number,
        required: disk.required,
        keep: disk.keep.clone().map(|settings| KeepRequest { settings, store_limit, daily_budget }),
    })
}

fn ramdisk_item(disk: &RamdiskSettings, facts: &Facts, problems: &mut Vec<Finding>) -> Item {
    let mut item = item(Target::Ramdisk(disk.name.clone()));
    if facts.is_image && disk.size.expr.needs_memory() {
        return at_boot(item, false);
    }
    let request = ramdisk_request(disk, facts);
    match request {
        Ok(request) => {
            item.request = Some(Request::Ramdisk(request.clone()));
            problems.extend(doubt(&disk.size, facts));
            problems.extend(check::snapshot_does_not_fit(disk, &request, facts));
            if disk.keep.is_none() {
                problems.extend(check::other_permissions(&disk.mount, facts));
            }
            for refusal in check::ramdisk(disk, &request, facts) {
                refuse(&mut item, refusal, problems);
            }
        }
        Err(refusal) => refuse(&mut item, refusal, problems),
    }
    item
}

/// The ways to configure a device, best first, or why there is none.
pub fn candidates(choices: &[Choice], facts: &Facts) -> Result<Vec<Candidate>, String> {
    let specimen = facts.specimen();
    let offered = specimen.map(|device| device.algorithms.as_slice());
    // Kernels without algorithm_params (up to 6.11) list only some of the algorithms that they can load.
    let list_is_complete = specimen.is_some_and(|device| {
        device.attributes.contains(&crate::device::attribute::Attribute::AlgorithmParams)
    });
    let has = |name: &str| offered.is_none_or(|offered| offered.iter().any(|other| other == name));
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut missing = Vec::new();
    let mut add = |algorithm: Option<Algorithm>, reason: String, measured: bool| {
        if !candidates.iter().any(|known| known.algorithm == algorithm) {
            candidates.push(Candidate { algorithm, reason, measured });
        }
    };
    if choices.is_empty() {
        add(None, "the kernel's default".to_owned(), false);
    }
    for (index, choice) in choices.iter().enumerate() {
        match choice {
            Choice::Auto => {
                if let Some(Ok(Best { algorithm, provisional })) = &facts.best
                    && has(&algorithm.name)
                {
                    let mut reason = "auto: the verdict of the benchmark".to_owned();
                    if !provisional.is_empty() {
                        reason.push_str(&format!(", which is provisional: {provisional}"));
                    }
                    add(Some(algorithm.clone()), reason, true);
                }
                // A missing measurement is not reported.
                let why = match &facts.best {
                    Some(Err(why)) if *why != Unusable::Absent => format!("; {why}"),
                    _ => String::new(),
                };
                for name in AUTO.iter().filter(|name| has(name)) {
                    let algorithm = Algorithm::plain(*name);
                    add(
                        Some(algorithm),
                        format!("auto: the first of {} that this kernel offers{why}", AUTO.join(", ")),
                        false,
                    );
                }
                add(None, format!("auto: the kernel's default{why}"), false);
            }
            Choice::Named(algorithm) if has(&algorithm.name) || !list_is_complete => {
                let reason = match (index, missing.last()) {
                    (0, _) => "as configured".to_owned(),
                    (_, Some(missing)) => format!("this kernel does not offer {missing}"),
                    (_, None) => "next in the configured list".to_owned(),
                };
                add(Some(algorithm.clone()), reason, false);
            }
            Choice::Named(algorithm) => missing.push(algorithm.name.clone()),
        }
    }
    if candidates.is_empty() {
        let offered = offered.unwrap_or_default().join(", ");
        let missing: Vec<String> = missing.iter().map(|name| with_option(name, true)).collect();
        return Err(format!("this kernel does not offer {}; it has {offered}", missing.join(" or ")));
    }
    Ok(candidates)
}
