//! Reads the machine into `Facts`.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;

use super::error::Error;
use super::verdict;
use host::{Errno, Host, HostError, MachineFile, absent};
use logic::config::settings::{DeviceSettings, MountSettings, Principal, Settings};
use logic::device::algorithm::parse_comp_algorithm;
use logic::device::attribute::Attribute;
use logic::device::signature::{self, Signature};
use logic::device::stat::MmStat;
use logic::facts::{BackingFacts, Best, DeviceFacts, Facts, FileFacts, Seen, Support};
use logic::health;
use logic::neighbours::programs::{self as neighbours, Look, OtherManager};
use logic::neighbours::{Ours, driver, fstab, units};
use logic::path_kind::PathKind;
use logic::plan::diff::ancestors_and_self;
use logic::proc::{self, MountLine, SwapLine};
use logic::psi::Usage;
use logic::ramdisk::place::passthrough;
use logic::ramdisk::status::RamdiskStatus;
use logic::record::{Damaged, Record, Target, Undo};
use logic::request::{Purpose, Request, Store};
use logic::vm::Tunable;
use logic::zram_or_zswap::Conditions;

/// Reads everything needed to plan these settings.
pub fn gather<H: Host>(host: &H, settings: &Settings) -> Result<Facts, Error> {
    read(host, settings, |_| true)
}

/// The same without reading from devices that zramd has set up, or from their backing devices: a disk may not answer.
pub fn gather_patiently<H: Host>(host: &H, settings: &Settings) -> Result<Facts, Error> {
    read(host, settings, |is_ours| !is_ours)
}

/// Reads a device only if `wanted`, which knows whether there is a record of it.
fn read<H: Host>(host: &H, settings: &Settings, wanted: fn(bool) -> bool) -> Result<Facts, Error> {
    let mut facts = machine(host);
    facts.mounts = mounts(host)?;
    facts.mount_namespace = host.mount_namespace();
    facts.swaps = swaps(host)?;
    facts.support = support(host);
    facts.tunables = tunables(host);
    facts.cmdline = host.text(MachineFile::Cmdline).unwrap_or_default();
    facts.other_managers = other_managers(host);
    facts.fstab = lines_of_fstab(host);
    facts.driver = lines_about_driver(host, &facts.cmdline);
    (facts.records, facts.damaged) = all_records(host)?;
    tell_reused(host, &mut facts);
    facts.has_chosen_zswap = has_chosen_zswap(host, &facts.records, Some(&facts.fstab));
    for number in host.device_numbers().or_else(absent)? {
        // All devices have the same attributes, of which those of the first are asked for.
        let found = if facts.devices.is_empty() { device(host, number) } else { state(host, number) };
        let mut found = match found {
            // Another program has removed it.
            Err(error) if error.is(Errno::NOENT) || error.is(Errno::NODEV) => continue,
            found => found?,
        };
        // Devices of other programs are not opened.
        let is_ours = facts.records.contains_key(&Target::Device(number));
        if (is_ours || settings.devices.iter().any(|device| device.number == number)) && wanted(is_ours) {
            // Only root can look.
            found.seen = seen(host, number, &found).unwrap_or_default();
        }
        facts.devices.insert(number, found);
    }
    if settings.vm.as_ref().is_some_and(|vm| vm.protected.is_some()) {
        let controllers = host.text(MachineFile::Controllers).unwrap_or_default();
        facts.lacks_memory_controller = !controllers.split_whitespace().any(|name| name == "memory");
    }
    if settings.vm.is_some() || settings.uses_verdict() {
        let key = verdict::key(host, facts.specimen().map(|device| device.algorithms.as_slice()));
        let profile = settings.benchmark.profile;
        if settings.vm.is_some() {
            facts.advice = verdict::advice(host, &key, profile);
        }
        if settings.uses_verdict() {
            let found = verdict::stored::<H, IgnoredAny>(host, &key, profile);
            facts.best = Some(found.map(|stored| Best {
                provisional: stored.provisional().to_owned(),
                algorithm: stored.algorithm,
            }));
        }
    }
    places(host, settings, &mut facts);
    for disk in &settings.ramdisks {
        if host.path_kind(&passthrough(&disk.name)) != PathKind::Missing {
            facts.passthrough.insert(disk.name.clone());
        }
    }
    accounts(host, settings, &mut facts);
    for device in &settings.devices {
        let is_ours = facts.records.contains_key(&Target::Device(device.number));
        match device.writeback.as_ref().map(|writeback| &writeback.store) {
            Some(Store::Device(path)) if wanted(is_ours) => {
                drop(facts.backing.insert(path.clone(), backing(host, path)));
            }
            Some(Store::File { path, .. }) => {
                let found = file_place(host, path, &facts.mounts);
                facts.files.insert(path.clone(), found);
            }
            Some(Store::Device(_)) | None => {}
        }
    }
    programs(host, settings, &mut facts);
    Ok(facts)
}

/// Whether another program has mounted its own where this record has a tmpfs of ours. A RAM disk that is layered is known by the
/// device number of its private place.
pub(super) fn is_replaced<H: Host>(host: &H, record: &Record, mounts: &[MountLine]) -> bool {
    let Request::Ramdisk(request) = &record.request else { return false };
    let path = &request.mount.mount_point;
    let top = proc::top(mounts, path);
    let (Some(top), Some(ours)) = (top.filter(|_| !request.is_layered()), record.mounted(path)) else {
        return false;
    };
    // The kernel may have given it the ID of ours.
    let has_another = || host.mount_id(path).ok().flatten().is_some_and(|found| !ours.is(&found));
    ours.is_not(top, host.mount_namespace()) || has_another()
}

/// Takes the ID from a mount that has got that of one of ours, which is gone: the kernel reuses it.
fn tell_reused<H: Host>(host: &H, facts: &mut Facts) {
    for undo in facts.records.values().flat_map(|record| &record.undo) {
        let (Undo::Unmount { mount_point, mounted, .. } | Undo::HideRamdisk { mount_point, mounted, .. }) =
            undo
        else {
            continue;
        };
        let found = mounted.zip(host.mount_id(mount_point).ok().flatten());
        if let Some((_, found)) = found.filter(|(ours, found)| ours.id == found.id && !ours.is(found)) {
            facts.mounts.iter_mut().filter(|mount| mount.id == found.id).for_each(|mount| mount.id = 0);
        }
    }
}

/// Looks at the mount points and the directories above them, and at the newest snapshots.
pub fn places<H: Host>(host: &H, settings: &Settings, facts: &mut Facts) {
    for mount in mounts_of(settings) {
        for path in ancestors_and_self(&mount.mount_point) {
            let kind = host.path_kind(&path);
            facts.mount_points.insert(path, kind);
        }
        if mount.unset && facts.mount_at(&mount.mount_point).is_none() {
            let found = host.permissions(&mount.mount_point);
            facts.directories.extend(found.map(|found| (mount.mount_point.clone(), found)));
        }
        facts.links.extend(host.link(&mount.mount_point).map(|real| (mount.mount_point.clone(), real)));
    }
    let is_swap = |device: &&DeviceSettings| matches!(device.purpose, Purpose::Swap { .. });
    let swaps = settings.devices.iter().filter(is_swap);
    let swaps = swaps.map(|device| Ours { device: Some(device.number), place: None });
    let mounts = mounts_of(settings).map(|mount| Ours { device: None, place: Some(&mount.mount_point) });
    for path in swaps.chain(mounts).flat_map(units::paths) {
        let kind = host.path_kind(&path);
        if matches!(kind, PathKind::Empty | PathKind::Other) {
            facts.units.insert(path, kind);
        }
    }
    for disk in settings.ramdisks.iter().filter(|disk| disk.keep.is_some()) {
        let status: RamdiskStatus =
            serde_json::from_str(&host.ramdisk_status(&disk.name)).unwrap_or_default();
        let newest = status.snapshots.into_iter().find(|line| line.good);
        facts.snapshots.extend(newest.map(|line| (disk.name.clone(), line)));
    }
}

/// What the kernel offers, as any device shows it, in use or not.
pub fn offered<H: Host>(host: &H, facts: &mut Facts) -> Result<(), HostError> {
    if let Some(number) = host.device_numbers().or_else(absent)?.into_iter().next() {
        let DeviceFacts { attributes, algorithms, .. } = device(host, number)?;
        facts.devices.insert(number, DeviceFacts { attributes, algorithms, ..DeviceFacts::default() });
    }
    Ok(())
}

/// Looks for the `mkfs` programs of the file systems in the settings.
pub fn programs<H: Host>(host: &H, settings: &Settings, facts: &mut Facts) {
    for device in &settings.devices {
        if let Some(fs_type) = device.purpose.fs_type() {
            facts.mkfs.insert(fs_type.to_owned(), host.find_mkfs(fs_type).is_some());
        }
    }
}

/// Whether zswap is on and not by zramd, and swap on a disk is active or in fstab: at boot, it is activated later. `lines` are those
/// of fstab, if they have been read.
pub fn has_chosen_zswap<H: Host>(
    host: &H,
    records: &BTreeMap<Target, Record>,
    lines: Option<&[fstab::Line]>,
) -> bool {
    let active = || swaps(host).unwrap_or_default().iter().any(|swap| swap.zram_number().is_none());
    let is_on_disk = |line: &fstab::Line| line.fs_type == "swap" && line.device.is_none();
    let in_fstab = || match lines {
        Some(lines) => lines.iter().any(is_on_disk),
        None => lines_of_fstab(host).iter().any(is_on_disk),
    };
    host.read_tunable(Tunable::Zswap).is_ok_and(|value| value == "Y")
        && !records.contains_key(&Target::Zswap)
        && (active() || in_fstab())
}

/// The lines of fstab; none if it cannot be read.
pub fn lines_of_fstab<H: Host>(host: &H) -> Vec<fstab::Line> {
    fstab::lines(&host.text(MachineFile::Fstab).unwrap_or_default(), |path| host.link(path))
}

/// The kernel settings that exist and are readable.
fn tunables<H: Host>(host: &H) -> BTreeMap<Tunable, String> {
    let read = |tunable| Some((tunable, host.read_tunable(tunable).ok()?));
    Tunable::ALL.into_iter().filter_map(read).collect()
}

/// Other zram managers found on this machine.
pub fn other_managers<H: Host>(host: &H) -> Vec<OtherManager> {
    looking(host, neighbours::at_work)
}

/// Options for the zram driver.
pub fn lines_about_driver<H: Host>(host: &H, cmdline: &str) -> Vec<driver::Line> {
    looking(host, |look| driver::lines(look, cmdline))
}

/// Looks for files of other programs.
pub fn looking<H: Host, T>(host: &H, look_for: impl FnOnce(&Look) -> T) -> T {
    let kind = |path: &str| host.path_kind(path);
    let names = |path: &str| host.names(path);
    let text = |path: &str| host.other_text(path);
    look_for(&Look { kind: &kind, names: &names, text: &text })
}

/// What the choice between zram and zswap depends on, without the kinds of disks, which only the kernel that runs tells.
pub fn conditions<H: Host>(
    host: &H,
    configured: &Settings,
    memory: &proc::Memory,
    swaps: &[SwapLine],
) -> Conditions {
    let text = |file| host.text(file).unwrap_or_default();
    let zswap = host.read_tunable(Tunable::Zswap);
    let on_disks = swaps.iter().filter(|swap| swap.zram_number().is_none());
    Conditions {
        memory_bytes: memory.total_kib.saturating_mul(1024),
        disk_swap_bytes: on_disks.map(|swap| swap.size_kib).sum::<u64>().saturating_mul(1024),
        rotates: None,
        in_the_clear: false,
        hibernates: health::hibernates(&text(MachineFile::Cmdline), &text(MachineFile::Resume)),
        has_zswap: zswap.is_ok(),
        has_shrinker: host.read_tunable(Tunable::ZswapShrinker).is_ok(),
        writes_back: configured.devices.iter().any(|device| device.writeback.is_some()),
        zswap_is_on: zswap.is_ok_and(|value| value == "Y"),
        zram_is_on: swaps.iter().any(|swap| swap.zram_number().is_some()),
    }
}

/// `/proc/meminfo`.
pub fn memory<H: Host>(host: &H) -> Result<proc::Memory, HostError> {
    Ok(proc::parse_meminfo(&host.text(MachineFile::Meminfo)?))
}

/// The facts that sizes depend on: all that the generator needs. Unreadable memory figures are left at 0.
pub fn machine<H: Host>(host: &H) -> Facts {
    let memory = memory(host).unwrap_or_default();
    Facts { memory, cpus: host.cpus(), page_size: host.page_size(), ..Facts::default() }
}

/// How busy the machine is. Files that cannot be read count as those that the kernel lacks.
pub fn usage<H: Host>(host: &H) -> Usage {
    let text = |file| host.text(file).ok();
    let [memory, cpu, load] =
        [MachineFile::MemoryPressure, MachineFile::CpuPressure, MachineFile::Loadavg].map(text);
    Usage::parse(memory.as_deref(), cpu.as_deref(), load.as_deref(), host.cpus())
}

/// Active swap; empty on a kernel without swap.
pub fn swaps<H: Host>(host: &H) -> Result<Vec<SwapLine>, HostError> {
    Ok(proc::parse_swaps(&host.bytes(MachineFile::Swaps).or_else(absent)?))
}

/// Mounted file systems.
pub fn mounts<H: Host>(host: &H) -> Result<Vec<MountLine>, HostError> {
    Ok(proc::parse_mountinfo(&host.bytes(MachineFile::Mountinfo)?))
}

fn support<H: Host>(host: &H) -> Support {
    match host.container() {
        Some(kind) => Support::Container(kind),
        None if host.has_control() => Support::Ready,
        None => Support::NotLoaded,
    }
}

/// What the kernel shows of one device.
pub fn device<H: Host>(host: &H, number: u32) -> Result<DeviceFacts, HostError> {
    let attributes = Attribute::ALL.into_iter().filter(|name| host.has_attribute(number, *name)).collect();
    Ok(DeviceFacts { attributes, ..state(host, number)? })
}

fn state<H: Host>(host: &H, number: u32) -> Result<DeviceFacts, HostError> {
    device_state(host, number, &mm_stat(host, number)?, &[])
}

/// All that tells whether a device is as we set it up.
///
/// # Errors
///
/// Also if its contents cannot be read: then nothing tells whose they are.
pub fn identify<H: Host>(host: &H, number: u32) -> Result<DeviceFacts, HostError> {
    let found = state(host, number)?;
    Ok(DeviceFacts { seen: seen(host, number, &found)?, ..found })
}

/// What a device carries; unknown if its backing device fails.
fn seen<H: Host>(host: &H, number: u32, device: &DeviceFacts) -> Result<Seen, HostError> {
    if !device.initialised {
        return Ok(Seen::Nothing);
    }
    let page = usize::try_from(host.page_size()).unwrap_or(4096);
    // Most signatures are in the first page; further pages may be data of programs, which reading marks as used.
    for length in [page, signature::PROBE_BYTES.next_multiple_of(page)] {
        match host.head(number, length) {
            Err(error) if error.is(Errno::IO) => return Ok(Seen::Unknown),
            head => {
                if let Some(found) = signature::read(&head?) {
                    return Ok(Seen::Signature(found));
                }
            }
        }
    }
    Ok(if device.pages == 0 { Seen::Nothing } else { Seen::Signature(Signature::unknown()) })
}

/// The kernel's ID of this boot; empty if unknown.
pub fn boot_id<H: Host>(host: &H) -> String {
    host.text(MachineFile::BootId).unwrap_or_default().trim().to_owned()
}

/// `mm_stat` of a device; empty when it has none.
pub(super) fn mm_stat<H: Host>(host: &H, number: u32) -> Result<String, HostError> {
    host.read_attribute(number, Attribute::MmStat).or_else(absent)
}

/// As [`device`], without checking for the attributes that only planning needs, and without those that are left out. The memory
/// limit is taken from `mm_stat`.
pub(super) fn device_state<H: Host>(
    host: &H,
    number: u32,
    mm_stat: &str,
    without: &[Attribute],
) -> Result<DeviceFacts, HostError> {
    let is_wanted = |attribute| !without.contains(&attribute);
    let text = |attribute| {
        if is_wanted(attribute) {
            host.read_attribute(number, attribute).or_else(absent)
        } else {
            Ok(String::new())
        }
    };
    let disk_size = text(Attribute::DiskSize)?.trim().parse().unwrap_or(0);
    let (algorithms, algorithm) = parse_comp_algorithm(&text(Attribute::CompAlgorithm)?);
    let memory = MmStat::parse(mm_stat).unwrap_or_default();
    Ok(DeviceFacts {
        device: proc::parse_device_number(&text(Attribute::Dev)?),
        diskseq: if is_wanted(Attribute::DiskSeq) { diskseq(host, number)? } else { None },
        // As `initstate` has it (`init_done` in drivers/block/zram/zram_drv.c).
        initialised: disk_size > 0,
        disk_size,
        memory_limit: memory.mem_limit,
        memory_used: memory.mem_used_total,
        pages: (memory.orig_data_size / host.page_size().max(1)).max(memory.same_pages),
        algorithms,
        algorithm,
        ..DeviceFacts::default()
    })
}

/// Tells a device from an earlier one with the same number: its `diskseq`, or on kernels before 5.15 the inode of its
/// directory in sysfs, which is not reused either (`idr_alloc_cyclic` in fs/kernfs/dir.c).
pub fn diskseq<H: Host>(host: &H, number: u32) -> Result<Option<u64>, HostError> {
    match host.read_attribute(number, Attribute::DiskSeq) {
        Ok(text) => Ok(text.trim().parse().ok()),
        Err(error) if error.is(host::Errno::NOENT) => host.device_inode(number).map(Some).or_else(absent),
        Err(error) => Err(error),
    }
}

/// All valid records.
pub fn records<H: Host>(host: &H) -> Result<BTreeMap<Target, Record>, HostError> {
    Ok(all_records(host)?.0)
}

/// All valid records of this boot, and the damaged ones.
pub fn all_records<H: Host>(host: &H) -> Result<(BTreeMap<Target, Record>, Vec<Damaged>), HostError> {
    let (mut records, mut damaged) = (BTreeMap::new(), Vec::new());
    let boot_id = boot_id(host);
    for (name, text) in host.records()? {
        match record(&name, &text) {
            Ok(record) if record.boot_id != boot_id => {}
            Ok(record) => drop(records.insert(record.target.clone(), record)),
            Err(found) => damaged.push(found),
        }
    }
    Ok((records, damaged))
}

/// Parses the record in a file.
pub(super) fn record(name: &str, text: &Result<String, HostError>) -> Result<Record, Damaged> {
    Record::parse(name, text.as_deref().map_err(|error| error.cause.to_string()))
}

/// Damaged records of scratch devices.
pub(super) fn damaged_scratch<H: Host>(host: &H) -> Result<Vec<Damaged>, HostError> {
    let files = host.scratch_records()?;
    Ok(files.iter().filter_map(|(name, text)| record(name, text).err()).collect())
}

/// The record of a target, if there is one. A damaged record is an error.
pub fn record_of<H: Host>(host: &H, target: &Target) -> Result<Option<Record>, Error> {
    let (mut records, damaged) = all_records(host)?;
    match damaged.iter().find(|damaged| damaged.target.as_ref() == Some(target)) {
        Some(damaged) => Err(damaged.refusal()),
        None => Ok(records.remove(target)),
    }
}

fn mounts_of(settings: &Settings) -> impl Iterator<Item = &MountSettings> {
    let of_devices = settings.devices.iter().filter_map(|device| device.purpose.mount());
    of_devices.chain(settings.ramdisks.iter().map(|disk| &disk.mount))
}

/// Looks up the users and groups that the settings name.
pub fn accounts<H: Host>(host: &H, settings: &Settings, facts: &mut Facts) {
    let name = |principal: &Option<Principal>| match principal {
        Some(Principal::Name(name, _)) => Some(name.clone()),
        _ => None,
    };
    let users: Vec<String> = mounts_of(settings).filter_map(|mount| name(&mount.owner)).collect();
    let groups: Vec<String> = mounts_of(settings).filter_map(|mount| name(&mount.group)).collect();
    for (names, file, ids) in
        [(users, MachineFile::Passwd, &mut facts.users), (groups, MachineFile::Group, &mut facts.groups)]
    {
        if names.is_empty() {
            continue;
        }
        match host.bytes(file) {
            Ok(text) => {
                let find = |name: String| Some((name.clone(), proc::parse_account(&text, &name)?));
                ids.extend(names.into_iter().filter_map(find));
            }
            Err(error) => facts.accounts_unread = Some(error.to_string()),
        }
    }
}

/// What exists at the path of a file on a disk. A directory that cannot be examined counts as without free space.
pub fn file_place<H: Host>(host: &H, path: &str, mounts: &[MountLine]) -> FileFacts {
    let directory = path
        .rsplit_once('/')
        .map_or("/", |(directory, _)| if directory.is_empty() { "/" } else { directory });
    let mount = proc::mount_of_path(mounts, directory.as_bytes());
    let space = host.space(directory.as_bytes()).unwrap_or_default();
    FileFacts {
        directory: host.path_kind(directory),
        kind: host.path_kind(path),
        fs_type: mount.map_or_else(String::new, |mount| mount.fs_type.clone()),
        on_zram: mount.is_some_and(|mount| mount.source.starts_with("/dev/zram")),
        free_bytes: space.total_bytes.saturating_sub(space.used_bytes),
        total_bytes: space.total_bytes,
    }
}

fn backing<H: Host>(host: &H, path: &str) -> BackingFacts {
    match host.probe_block(path) {
        Err(error) => BackingFacts::Unreadable(error.to_string()),
        Ok(None) => BackingFacts::Missing,
        Ok(Some(probe)) => match probe.device {
            None => BackingFacts::NotABlockDevice,
            Some(device) => BackingFacts::Block {
                device,
                signature: signature::find(&probe.head).map(str::to_owned),
                holders: probe.holders,
            },
        },
    }
}
