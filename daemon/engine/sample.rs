//! Reads everything at once: Host → [`Snapshot`]. Changes nothing, needs no privileges.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::error::Error;
use super::gather;
use host::{Errno, Host, HostError, MachineFile, absent};
use logic::device::algorithm::parse_recomp_algorithm;
use logic::device::attribute::Attribute;
use logic::device::derived::{Frame, derive};
use logic::device::stat::{BACKING_BLOCK, BdStat, BlockStat, IoStat, MmStat};
use logic::duration::micros;
use logic::facts::DeviceFacts;
use logic::health::{Surroundings, findings, is_outranked};
use logic::maintain::pressure::noted;
use logic::maintain_report::Report;
use logic::neighbours::Zswap;
use logic::neighbours::programs::OtherManager;
use logic::proc::{self, MountLine, SwapLine};
use logic::psi::Pressure;
use logic::ramdisk::Persist;
use logic::ramdisk::place::ramdisk_mount;
use logic::ramdisk::status::LoadState;
use logic::record::{Progress, Record, Target, Undo};
use logic::request::{Choice, DeviceRequest, Request};
use logic::sample::{
    DeviceView, MemoryView, MountView, RamdiskView, ReasonView, RoleView, SCHEMA_VERSION, Snapshot,
    StateView, Stats, SwapView,
};
use logic::view::View;
use logic::vm::{Tunable, VmView};
use logic::work::Work;
use logic::zswap::{Rejected, Rejection, ZswapView, counter};

/// Reads the machine. The configuration tells which tmpfs is ours; its problems are included.
pub fn snapshot<H: Host>(host: &H, config: &View) -> Result<Snapshot, Error> {
    snapshot_beside(host, config, gather::other_managers(host))
}

/// The same where the other programs are known: to look for them takes longer than all the rest.
pub fn snapshot_beside<H: Host>(
    host: &H,
    config: &View,
    other_managers: Vec<OtherManager>,
) -> Result<Snapshot, Error> {
    let (records, mut damaged) = gather::all_records(host)?;
    damaged.extend(gather::damaged_scratch(host)?);
    let (mut snapshot, swaps) = devices(host, config, &records, Detail::Full)?;
    snapshot.capabilities = capabilities(host, snapshot.devices.first().map(|device| device.number));
    for record in records.values() {
        snapshot.vm.extend(vm_views(host, record)?);
    }
    // A missing or damaged report is not an error.
    let report = host.text(MachineFile::Maintenance).unwrap_or_default();
    let work: Option<Work<Report>> = serde_json::from_str(&report).ok();
    snapshot.maintenance = work.map(|work| work.detail).unwrap_or_default();
    let pressure = host.text(MachineFile::PressureLevel).unwrap_or_default();
    let (level, reason) = noted(&pressure);
    snapshot.pressure = level;
    snapshot.pressure_reason = reason.to_owned();
    let lost = records.keys().filter(|target| is_lost(target, &snapshot)).map(ToString::to_string).collect();
    let zswap = records.get(&Target::Zswap).map(|record| &record.request);
    let zswap_is_ours = matches!(zswap, Some(Request::Vm(request)) if request.zswap() == Some(true));
    let surroundings = Surroundings {
        zswap: if zswap_is_ours {
            Zswap::Wanted
        } else if host.read_tunable(Tunable::Zswap).or_else(absent::<String>)? == "Y" {
            Zswap::On
        } else {
            Zswap::Off
        },
        other_managers,
        cmdline: host.text(MachineFile::Cmdline).or_else(absent)?,
        resume: host.text(MachineFile::Resume).or_else(absent)?,
        lost,
        damaged,
        swaps,
        config: config.findings.clone(),
        configured: !config.sections.is_empty(),
        yields: config.yields,
    };
    snapshot.problems = findings(&snapshot, &surroundings);
    snapshot.is_outranked = is_outranked(&snapshot, &surroundings.swaps);
    Ok(snapshot)
}

/// How much to read about each device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The default columns of a list. The rest stays empty: memory of the machine, transfers, settings of recompression
    /// and write-back.
    Listed,
    /// Everything.
    Full,
}

/// Devices and RAM disks only, for a list: without capabilities and problems.
pub fn figures<H: Host>(host: &H, config: &View, detail: Detail) -> Result<Snapshot, Error> {
    Ok(devices(host, config, &gather::records(host)?, detail)?.0)
}

/// Devices, RAM disks and memory of a snapshot, and the active swaps.
fn devices<H: Host>(
    host: &H,
    config: &View,
    records: &BTreeMap<Target, Record>,
    detail: Detail,
) -> Result<(Snapshot, Vec<SwapLine>), Error> {
    let (meminfo, vmstat, pressure) = match detail {
        Detail::Listed => (proc::Memory::default(), String::new(), String::new()),
        Detail::Full => {
            let text = |file| host.text(file).or_else(absent::<String>);
            (
                gather::memory(host)?,
                text(MachineFile::Vmstat)?,
                host.text(MachineFile::MemoryPressure).unwrap_or_default(),
            )
        }
    };
    let swapped = |name| counter(&vmstat, name).saturating_mul(host.page_size());
    let stalled_usec = Pressure::parse(&pressure).map_or(0, |pressure| micros(pressure.some.total));
    let swaps: Vec<SwapLine> = gather::swaps(host)?;
    let mut snapshot = Snapshot {
        schema_version: SCHEMA_VERSION,
        timestamp_monotonic_usec: micros(host.monotonic()),
        memory: MemoryView {
            total_bytes: meminfo.total_kib * 1024,
            available_bytes: meminfo.available_kib * 1024,
            swap_total_bytes: meminfo.swap_total_kib * 1024,
            swap_free_bytes: meminfo.swap_free_kib * 1024,
            swapped_in_bytes: swapped("pswpin"),
            swapped_out_bytes: swapped("pswpout"),
            stalled_usec,
        },
        page_size_bytes: host.page_size(),
        ..Snapshot::default()
    };
    let available = snapshot.memory.available_bytes;
    let around = Around { host, swaps: &swaps, mounts: OnceCell::new(), available, detail };
    for number in host.device_numbers().or_else(absent)? {
        match device(&around, number, records.get(&Target::Device(number))) {
            Ok(view) => snapshot.devices.push(view),
            // The device was removed meanwhile.
            Err(error) if error.is(Errno::NOENT) || error.is(Errno::NODEV) => {}
            Err(error) => return Err(error.into()),
        }
    }
    snapshot.zswap = zswap(&around, records, meminfo, &vmstat)?;
    snapshot.ramdisks = disks(&around, records, config)?;
    for disk in &snapshot.ramdisks {
        let holder = snapshot.devices.iter_mut().find(|device| device.name == disk.device);
        if let Some(device) = holder {
            device.ramdisk.clone_from(&disk.name);
        }
    }
    Ok((snapshot, swaps))
}

/// zswap, if it is enabled or holds pages.
fn zswap<H: Host>(
    around: &Around<'_, H>,
    records: &BTreeMap<Target, Record>,
    meminfo: proc::Memory,
    vmstat: &str,
) -> Result<Option<ZswapView>, HostError> {
    let host = around.host;
    let setting = |tunable| host.read_tunable(tunable).or_else(absent::<String>);
    let enabled = setting(Tunable::Zswap)? == "Y";
    if !enabled && meminfo.zswapped_kib == 0 {
        return Ok(None);
    }
    let memory = match around.detail {
        Detail::Listed => gather::memory(host)?,
        Detail::Full => meminfo,
    };
    let percent: u64 = setting(Tunable::ZswapMaxPool)?.parse().unwrap_or(0);
    let shrinker = setting(Tunable::ZswapShrinker)?;
    let on_disks = around.swaps.iter().filter(|swap| swap.zram_number().is_none());
    let bytes = |of: fn(&SwapLine) -> u64| on_disks.clone().map(of).sum::<u64>().saturating_mul(1024);
    let count = |rejection| host.text(MachineFile::Zswap(rejection)).ok()?.trim().parse().ok();
    let rejected = || {
        let [limit, compress_poor, allocation] = Rejection::ALL.map(count);
        Some(Rejected { limit: limit?, compress_poor: compress_poor?, allocation: allocation? })
    };
    let request = records.get(&Target::Zswap).map(|record| &record.request);
    let mut view = ZswapView {
        enabled,
        managed: matches!(request, Some(Request::Vm(request)) if request.zswap() == Some(true)),
        algorithm: setting(Tunable::ZswapCompressor)?,
        memory_limit_bytes: memory.total_kib.saturating_mul(1024) / 100 * percent,
        shrinker: (!shrinker.is_empty()).then(|| shrinker == "Y"),
        swap_size_bytes: bytes(|swap| swap.size_kib),
        swap_used_bytes: bytes(|swap| swap.used_kib),
        rejected: if around.detail == Detail::Full { rejected() } else { None },
        timestamp_monotonic_usec: micros(host.monotonic()),
        ..ZswapView::default()
    };
    view.count(&memory, vmstat, host.page_size());
    Ok(Some(view))
}

/// The settings that were changed according to a record.
pub fn vm_views<H: Host>(host: &H, record: &Record) -> Result<Vec<VmView>, Error> {
    let mut views: Vec<VmView> = Vec::new();
    for undo in &record.undo {
        let Undo::RestoreTunable { tunable, before, ours } = undo else { continue };
        if let Some(view) = views.iter_mut().find(|view| view.name == tunable.name()) {
            // While swapping is stopped.
            if view.value == *ours {
                view.set_to.clone_from(ours);
            }
            continue;
        }
        views.push(VmView {
            name: tunable.name().to_owned(),
            value: host.read_tunable(*tunable).or_else(absent)?,
            set_to: ours.clone(),
            before: before.clone(),
        });
    }
    Ok(views)
}

/// Features of the kernel; most of them are visible only with a device.
fn capabilities<H: Host>(host: &H, specimen: Option<u32>) -> Vec<String> {
    let has = |attribute| specimen.is_some_and(|number| host.has_attribute(number, attribute));
    let all = [
        ("hot-add", host.has_control()),
        ("algorithm-params", has(Attribute::AlgorithmParams)),
        ("recompress", has(Attribute::Recompress)),
        ("writeback", has(Attribute::Writeback)),
        ("idle", has(Attribute::Idle)),
    ];
    all.into_iter().filter(|(_, there)| *there).map(|(name, _)| name.to_owned()).collect()
}

/// Data shared by all devices and RAM disks of a snapshot.
struct Around<'a, H> {
    host: &'a H,
    swaps: &'a [SwapLine],
    mounts: OnceCell<Vec<MountLine>>,
    available: u64,
    detail: Detail,
}

impl<H: Host> Around<'_, H> {
    /// Mounts, read on first use: they are not needed if there is only swap.
    fn mounts(&self) -> Result<&[MountLine], HostError> {
        if self.mounts.get().is_none() {
            self.mounts.set(gather::mounts(self.host)?).ok();
        }
        Ok(self.mounts.get().map_or(&[], Vec::as_slice))
    }

    /// An attribute; empty if the kernel lacks it, or if this level of detail leaves it out.
    fn text(&self, number: u32, attribute: Attribute) -> Result<String, HostError> {
        use Attribute::{BackingDev, BdStat, IoStat, RecompAlgorithm, Stat, WritebackLimitEnable};
        let beyond =
            matches!(attribute, BackingDev | BdStat | IoStat | RecompAlgorithm | Stat | WritebackLimitEnable);
        if beyond && self.detail == Detail::Listed {
            return Ok(String::new());
        }
        self.host.read_attribute(number, attribute).or_else(absent)
    }
}

fn is_lost(target: &Target, snapshot: &Snapshot) -> bool {
    match target {
        Target::Device(_) => !snapshot
            .device(&target.to_string())
            .is_some_and(|device| device.managed || !device.taken_over.is_empty()),
        Target::Ramdisk(name) => !snapshot
            .ramdisk(name)
            .is_some_and(|disk| disk.mounted || disk.status.load_state == LoadState::Passthrough),
        Target::Vm | Target::Zswap => false,
    }
}

fn device<H: Host>(
    around: &Around<'_, H>,
    number: u32,
    record: Option<&Record>,
) -> Result<DeviceView, HostError> {
    let host = around.host;
    let mm_stat = gather::mm_stat(host, number)?;
    let swap = around.swaps.iter().find(|swap| swap.zram_number() == Some(number));
    // What a list shows of a device depends on its number only where it is mounted, or set up by zramd.
    let without: &[Attribute] = match around.detail {
        Detail::Listed if record.is_none() && swap.is_some() => &[Attribute::Dev, Attribute::DiskSeq],
        Detail::Listed if record.is_none() => &[Attribute::DiskSeq],
        _ => &[],
    };
    let facts = gather::device_state(host, number, &mm_stat, without)?;
    // What it carries is not read here: that would count as a transfer of the device.
    let taken_over = record.and_then(|record| record.taken_over(&facts)).unwrap_or_default();
    // A finished record is outdated if the device is uninitialised or has been replaced since.
    let record = record.filter(|record| {
        record.is_about(&facts) && (facts.initialised || record.progress == Progress::Working)
    });
    let request = record.and_then(|record| record.request.device());
    let text = |attribute| around.text(number, attribute);
    let swap = swap.map(|swap| SwapView {
        priority: swap.priority,
        size_bytes: swap.size_kib * 1024,
        used_bytes: swap.used_kib * 1024,
    });
    let mounts = if facts.initialised && swap.is_none() { around.mounts()? } else { &[] };
    let mount = proc::mount_of(mounts, number, facts.device).map(|mount| mount_view(host, mounts, mount));
    let backing = text(Attribute::BackingDev)?;
    let backing = backing.trim();
    let name = format!("zram{number}");
    let (algorithm_reason, algorithm_parameters) =
        record.zip(request).map_or_else(Default::default, |(record, request)| chosen(record, request));
    let mut view = DeviceView {
        number,
        device_number: facts.device.map_or(0, device_number),
        managed: record.is_some(),
        taken_over,
        role: role(&facts, request, swap.is_some(), mount.is_some()),
        config_section: record.map_or_else(String::new, |record| record.target.to_string()),
        disk_size_bytes: facts.disk_size,
        memory_limit_bytes: facts.memory_limit,
        algorithm: facts.algorithm.clone().unwrap_or_default(),
        algorithm_reason,
        algorithm_parameters,
        available_algorithms: facts.algorithms.clone(),
        recompression_algorithms: parse_recomp_algorithm(&text(Attribute::RecompAlgorithm)?)
            .into_iter()
            .map(|(priority, name)| (u32::from(priority), name))
            .collect(),
        writeback_missing: request.is_some_and(|request| request.writeback.is_some())
            && facts.initialised
            && ["none", ""].contains(&backing),
        backing_device: if backing == "none" { String::new() } else { backing.to_owned() },
        writeback_limit_bytes: writeback_limit(around, number)?,
        streams: text(Attribute::MaxCompStreams)?.trim().parse().ok(),
        swap,
        mount,
        name,
        ..DeviceView::default()
    };
    view.state = state(&facts, record, &view);
    view.stats = stats(around, &view, &mm_stat)?;
    Ok(view)
}

fn writeback_limit<H: Host>(around: &Around<'_, H>, number: u32) -> Result<Option<u64>, HostError> {
    let text = |attribute| around.text(number, attribute);
    if text(Attribute::WritebackLimitEnable)?.trim() != "1" {
        return Ok(None);
    }
    let blocks: Option<u64> = text(Attribute::WritebackLimit)?.trim().parse().ok();
    Ok(blocks.map(|blocks| blocks.saturating_mul(BACKING_BLOCK)))
}

fn role(facts: &DeviceFacts, request: Option<&DeviceRequest>, swap: bool, mount: bool) -> RoleView {
    use logic::request::Purpose;
    match request.map(|request| &request.purpose) {
        _ if swap => RoleView::Swap,
        _ if mount => RoleView::Filesystem,
        Some(Purpose::Swap { .. }) => RoleView::Swap,
        Some(Purpose::Filesystem { .. }) => RoleView::Filesystem,
        Some(Purpose::Raw { .. }) => RoleView::Raw,
        None if facts.initialised => RoleView::Raw,
        None => RoleView::Unused,
    }
}

fn state(facts: &DeviceFacts, record: Option<&Record>, view: &DeviceView) -> StateView {
    match record {
        Some(record) if record.progress == Progress::Working => StateView::Unfinished,
        _ if view.swap.is_some() => StateView::Active,
        _ if view.mount.is_some() => StateView::Mounted,
        _ if facts.initialised => StateView::Ready,
        _ => StateView::Unused,
    }
}

/// Why the device has its algorithm, and the parameters of that.
fn chosen(record: &Record, request: &DeviceRequest) -> (ReasonView, BTreeMap<String, String>) {
    let Some(used) = &record.algorithm else { return (ReasonView::KernelDefault, BTreeMap::new()) };
    let is_used = |choice: &Choice| matches!(choice, Choice::Named(algorithm) if algorithm == used);
    let reason = match request.algorithms.iter().position(is_used) {
        Some(0) => ReasonView::Config,
        None if record.measured => ReasonView::Benchmark,
        None if request.algorithms.first() == Some(&Choice::Auto) => ReasonView::Auto,
        _ => ReasonView::Fallback,
    };
    (reason, used.parameters.iter().cloned().collect())
}

fn stats<H: Host>(around: &Around<'_, H>, view: &DeviceView, mm_stat: &str) -> Result<Stats, HostError> {
    let text = |attribute| around.text(view.number, attribute);
    let memory = MmStat::parse(mm_stat).unwrap_or_default();
    let backing = BdStat::parse(&text(Attribute::BdStat)?).unwrap_or_default();
    let free_bytes = match view.swap {
        Some(swap) => swap.size_bytes.saturating_sub(swap.used_bytes),
        None => view.disk_size_bytes.saturating_sub(memory.orig_data_size),
    };
    let frame = Frame { page_size: around.host.page_size(), free_bytes, available_bytes: around.available };
    Ok(Stats {
        timestamp_monotonic_usec: micros(around.host.monotonic()),
        memory,
        io: IoStat::parse(&text(Attribute::IoStat)?).unwrap_or_default(),
        backing,
        block: BlockStat::parse(&text(Attribute::Stat)?).unwrap_or_default(),
        derived: derive(&memory, &backing, frame),
    })
}

fn mount_view<H: Host>(host: &H, mounts: &[MountLine], mount: &MountLine) -> MountView {
    // What is mounted over it may not answer.
    let space = proc::is_top(mounts, mount).then(|| host.space(mount.mount_point.as_bytes()).ok()).flatten();
    let space = space.unwrap_or_default();
    MountView {
        mount_point: mount.mount_point.lossy(),
        fs_type: mount.fs_type.clone(),
        options: mount.super_options.clone(),
        size_bytes: space.total_bytes,
        used_bytes: space.used_bytes,
    }
}

/// RAM disks that we mounted, those that PID 1 mounted from our units, and those that could not be loaded.
fn disks<H: Host>(
    around: &Around<'_, H>,
    records: &BTreeMap<Target, Record>,
    config: &View,
) -> Result<Vec<RamdiskView>, Error> {
    let mut found: BTreeMap<String, RamdiskView> = BTreeMap::new();
    for disk in &config.ramdisks {
        let view = ramdisk_view(around.host, &disk.name, &disk.mount_point, disk.persist, around.mounts()?);
        if view.mounted || view.status.schema_version > 0 {
            found.insert(disk.name.clone(), view);
        }
    }
    for record in records.values() {
        if let (Target::Ramdisk(name), Request::Ramdisk(request)) = (&record.target, &record.request) {
            let path = &request.mount.mount_point;
            let mounts = around.mounts()?;
            let mut view = ramdisk_view(around.host, name, path, request.persist(), mounts);
            if gather::is_replaced(around.host, record, mounts) {
                // Another program has mounted its own there.
                view = RamdiskView { mounted: false, size_bytes: 0, used_bytes: 0, free_bytes: 0, ..view };
            }
            if let Some(number) = request.number {
                // Also while it is not mounted.
                view.device = format!("zram{number}");
                if !view.mounted {
                    let device =
                        records.get(&Target::Device(number)).and_then(|record| record.request.device());
                    view.fs_type =
                        device.and_then(|device| device.purpose.fs_type()).unwrap_or_default().to_owned();
                }
            }
            found.insert(name.clone(), view);
        }
    }
    Ok(found.into_values().collect())
}

fn ramdisk_view<H: Host>(
    host: &H,
    name: &str,
    path: &str,
    persist: Persist,
    mounts: &[MountLine],
) -> RamdiskView {
    let mount = ramdisk_mount(mounts, name, path);
    let space = mount.and_then(|_| host.space(path.as_bytes()).ok()).unwrap_or_default();
    let device = mount.and_then(|mount| mount.source.strip_prefix("/dev/"));
    let status = if persist == Persist::None { String::new() } else { host.ramdisk_status(name) };
    RamdiskView {
        name: name.to_owned(),
        mount_point: path.to_owned(),
        fs_type: mount.map_or("tmpfs", |mount| mount.fs_type.as_str()).to_owned(),
        options: mount.map_or_else(String::new, |mount| mount.super_options.clone()),
        mounted: mount.is_some(),
        size_bytes: space.total_bytes,
        used_bytes: space.used_bytes,
        free_bytes: space.total_bytes.saturating_sub(space.used_bytes),
        free_inodes: space.free_inodes,
        total_inodes: space.total_inodes,
        device: device.filter(|name| proc::zram_number(name).is_some()).unwrap_or_default().to_owned(),
        persistence: persist,
        // A RAM disk that was never loaded has no status.
        status: serde_json::from_str(&status).unwrap_or_default(),
        next_save_usec: 0,
    }
}

/// The device number as in `st_rdev` of stat(2), encoded as by makedev(3).
fn device_number((major, minor): (u32, u32)) -> u64 {
    let (major, minor) = (u64::from(major), u64::from(minor));
    (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & !0xff) << 12) | ((major & !0xfff) << 32)
}
