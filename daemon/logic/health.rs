//! Findings about a running machine: problems and remarks, with remedies.
//!
//! The daemon returns them as `Problems`; `zramdctl status` and `doctor` print them. Computed from a [`Snapshot`] and a
//! few facts, worst first.

use super::finding::{Code, Finding, Level, is_nearly_full};
use super::hibernation;
use super::human::human;
use super::neighbours::programs::OtherManager;
use super::neighbours::{Neighbours, Zswap};
use super::proc::{SwapLine, zram_number};
use super::ramdisk_health::{ramdisk_findings, ramdisks_findings};
use super::record::{Damaged, Target, adopt_or_forget};
use super::resize;
use super::sample::{DeviceView, RoleView, Snapshot, StateView, SwapView};

/// Facts besides the snapshot.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `/proc/swaps`.
    pub swaps: Vec<SwapLine>,
    /// State of zswap.
    pub zswap: Zswap,
    /// Other programs that set up zram here.
    pub other_managers: Vec<OtherManager>,
    /// The kernel command line.
    pub cmdline: String,
    /// `/sys/power/resume`.
    pub resume: String,
    /// Names of targets that were set up, but whose device is gone or was reset.
    pub lost: Vec<String>,
    /// Damaged records.
    pub damaged: Vec<Damaged>,
    /// Findings about the configuration.
    pub config: Vec<Finding>,
    /// Whether the configuration has a section.
    pub configured: bool,
    /// Whether all its devices yield to other zram managers.
    pub yields: bool,
}

/// Usage of a swap device, in thousandths, from which it counts as full: the kernel reserves the last pages.
const FULL_PERMILLE: u64 = 995;
/// Stored bytes below which the share of incompressible pages is not reported.
const WORTH_JUDGING: u64 = 16 << 20;

/// All findings, worst first; the order is stable.
pub fn findings(snapshot: &Snapshot, around: &Surroundings) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(around.config.iter().map(|mistake| match mistake.remedy.as_str() {
        "" => mistake.clone().remedy("see `zramdctl check`"),
        _ => mistake.clone(),
    }));
    for name in &around.lost {
        found.push(Finding::new(
            Level::Error,
            Code::DeviceLost,
            name,
            format!(
                "{name} was set up by zramd but is gone or empty now: another program removed or reset it"
            ),
            format!("run `zramd-setup down {name}`, then `zramdctl reload`"),
        ));
    }
    for device in snapshot.devices.iter().filter(|device| !device.taken_over.is_empty()) {
        let (name, differs) = (&device.name, &device.taken_over);
        found.push(Finding::new(
            Level::Error,
            Code::DeviceTakenOver,
            name,
            format!("{name}: another program has set it up since zramd did, so it is not changed: {differs}"),
            adopt_or_forget(&Target::Device(device.number)),
        ));
    }
    for damaged in &around.damaged {
        let object = damaged.target.as_ref().map_or_else(|| damaged.file.clone(), Target::to_string);
        found.push(Finding::new(
            Level::Error,
            Code::RecordDamaged,
            &object,
            damaged.to_string(),
            damaged.remedy(),
        ));
    }
    let size = |number| {
        let device = snapshot.devices.iter().find(|device| device.number == number);
        device.map(|device| device.disk_size_bytes)
    };
    found.extend(resize::findings(&snapshot.maintenance.resizes, size));
    for device in snapshot.devices.iter().filter(|device| device.managed) {
        let has_disk = snapshot.ramdisks.iter().any(|disk| disk.device == device.name);
        found.extend(device_findings(device, snapshot.memory.total_bytes, has_disk));
    }
    for disk in &snapshot.ramdisks {
        ramdisk_findings(disk, &mut found);
    }
    ramdisks_findings(snapshot, &mut found);
    machine_findings(snapshot, around, &mut found);
    found.sort_by_key(|finding| finding.level);
    found
}

/// A condition of a device: severity, code, the message if it holds, and what to do. The number is the memory of the machine, in bytes.
type Condition = (Level, Code, fn(&DeviceView, u64) -> Option<String>, fn(&DeviceView, u64) -> String);

const OF_DEVICES: [Condition; 11] = [
    (
        Level::Error,
        Code::Unfinished,
        |DeviceView { name, state, .. }, _| {
            let is_unfinished = *state == StateView::Unfinished;
            is_unfinished.then(|| format!("the set-up of {name} was interrupted, or is still running"))
        },
        |DeviceView { name, .. }, _| {
            format!("if this persists, run `zramd-setup down {name}`, then `zramdctl reload`")
        },
    ),
    (
        Level::Warning,
        Code::SwapOff,
        |DeviceView { name, state, role, .. }, _| {
            let is_off = *state == StateView::Ready && *role == RoleView::Swap;
            is_off.then(|| format!("{name} is set up as swap but not switched on"))
        },
        |DeviceView { name, .. }, _| format!("run `zramdctl swap on {name}`"),
    ),
    (
        Level::Warning,
        Code::WritebackMissing,
        |DeviceView { name, writeback_missing, .. }, _| {
            writeback_missing.then(|| format!("{name} has write-back configured, but it is inactive"))
        },
        |DeviceView { name, .. }, _| {
            format!(
                "`journalctl -b -u zramd-setup@{name}` says why; then `zramdctl swap off {name}` and `swap on`"
            )
        },
    ),
    (
        Level::Error,
        Code::ReadsFailed,
        |DeviceView { name, stats, .. }, _| {
            let failed = stats.io.failed_reads;
            (failed > 0)
                .then(|| format!("{failed} reads of {name} failed: pages of programs or files were lost"))
        },
        |_, _| "check the kernel's log, save your data and reboot".to_owned(),
    ),
    (
        Level::Error,
        Code::WritesFailed,
        |DeviceView { name, stats, .. }, _| {
            let failed = stats.io.failed_writes;
            (failed > 0).then(|| format!("{failed} writes to {name} failed for lack of memory"))
        },
        |device, _| {
            match device.stats.memory.mem_limit {
            0 if writes_back(device) => format!("end programs, or {SOONER}"),
            0 => "end programs, or write pages back to a disk (writeback-file, with writeback in [maintenance])".to_owned(),
            limit => format!("raise or remove zram-resident-limit (now {})", human(limit)),
        }
        },
    ),
    (Level::Error, Code::SwapFull, |device, _| in_use(device, is_full), enlarge),
    (Level::Warning, Code::SwapNearlyFull, |device, _| in_use(device, |swap| !is_full(swap)), enlarge),
    (
        Level::Note,
        Code::SizeDoubtful,
        |device, memory| {
            let Some(Fit::Large { takes, .. }) = fit(device, memory) else { return None };
            Some(format!(
                "at the present ratio, the {} of swap on {} would take {}, more than twice the memory of this machine",
                human(device.disk_size_bytes),
                device.name,
                human(takes)
            ))
        },
        |device, memory| match fit(device, memory) {
            Some(Fit::Large { size, .. }) => {
                let (name, size) = (&device.name, human(size));
                format!("lower zram-size of [{name}] to about {size}{}", or_write_back(device))
            }
            _ => String::new(),
        },
    ),
    (
        Level::Warning,
        Code::MemoryLimitNear,
        |DeviceView { name, stats, .. }, _| {
            let (used, limit) = (stats.memory.mem_used_total, stats.memory.mem_limit);
            is_nearly_full(used, limit)
                .then(|| format!("{name} uses {} of its limit of {}", human(used), human(limit)))
        },
        |_, _| "raise or remove zram-resident-limit: at the limit, writes fail".to_owned(),
    ),
    (
        Level::Warning,
        Code::Incompressible,
        |DeviceView { name, stats, .. }, _| {
            let is_huge = stats.derived.huge_share > 0.5 && stats.memory.orig_data_size >= WORTH_JUDGING;
            is_huge.then(|| {
                format!("more than half of the data on {name} is incompressible, so it saves little memory")
            })
        },
        |device, _| match device.role {
            RoleView::Filesystem => {
                "a tmpfs or a directory on a disk suits files better that do not compress".to_owned()
            }
            _ if writes_back(device) => SOONER.to_owned(),
            _ => "add a writeback-device or writeback-file for such pages".to_owned(),
        },
    ),
    (
        // Its size cannot change while it has contents.
        Level::Warning,
        Code::FilesystemNearlyFull,
        |DeviceView { name, mount, .. }, _| {
            let mount = mount.as_ref().filter(|mount| is_nearly_full(mount.used_bytes, mount.size_bytes))?;
            Some(format!(
                "{} of the {} of {} on {} ({name}) are in use",
                human(mount.used_bytes),
                human(mount.size_bytes),
                mount.fs_type,
                mount.mount_point
            ))
        },
        |DeviceView { name, .. }, _| {
            format!(
                "remove what is not needed, or raise zram-size of [{name}], which takes effect at the next boot"
            )
        },
    ),
];

/// The findings about a device; `has_disk` if a RAM disk is on it, which has its own about its space.
fn device_findings(device: &DeviceView, memory: u64, has_disk: bool) -> impl Iterator<Item = Finding> {
    let rows =
        OF_DEVICES.iter().filter(move |(_, code, ..)| !(has_disk && *code == Code::FilesystemNearlyFull));
    rows.filter_map(move |(level, code, message, remedy)| {
        let message = message(device, memory)?;
        Some(Finding::new(*level, *code, &device.name, message, remedy(device, memory)))
    })
}

fn is_nearly_used(swap: &SwapView) -> bool {
    is_nearly_full(swap.used_bytes, swap.size_bytes)
}

fn is_full(swap: &SwapView) -> bool {
    swap.used_bytes / 1000 * 1000 >= swap.size_bytes / 1000 * FULL_PERMILLE
}

/// The usage of swap that is nearly full, if it is of this degree.
fn in_use(device: &DeviceView, degree: fn(&SwapView) -> bool) -> Option<String> {
    let swap = device.swap.filter(is_nearly_used).filter(degree)?;
    let (used, size) = (human(swap.used_bytes), human(swap.size_bytes));
    Some(format!("{used} of the {size} of swap on {} are in use", device.name))
}

fn enlarge(device: &DeviceView, memory: u64) -> String {
    let name = &device.name;
    match fit(device, memory) {
        Some(Fit::Small { size }) => format!(
            "raise zram-size of [{name}] to about {}: at the present ratio, even that takes only half of the memory when full",
            human(size)
        ),
        _ => format!("raise zram-size of [{name}]{}", or_write_back(device)),
    }
}

/// What helps where pages are written back, and too few or too late.
const SOONER: &str =
    "have more pages written back, sooner: writeback.idle-age, run-budget and daily-budget in [maintenance]";

const fn writes_back(device: &DeviceView) -> bool {
    !device.backing_device.is_empty()
}

fn or_write_back(device: &DeviceView) -> &'static str {
    if writes_back(device) { "" } else { ", or write a writeback-file into it" }
}

/// A size in bytes that is clearly wrong for what a swap device stores, and a better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// A full device would take more than twice the memory, namely `takes` bytes.
    Large { size: u64, takes: u64 },
    /// It is nearly full, and takes less than a third of the memory.
    Small { size: u64 },
}

/// Compares the size of a swap device with the memory of the machine, at the ratio of what it stores now.
fn fit(device: &DeviceView, memory_bytes: u64) -> Option<Fit> {
    let memory = &device.stats.memory;
    let swap = device.swap?;
    let stored = memory.orig_data_size.saturating_sub(device.stats.backing.used_bytes);
    let enough = WORTH_JUDGING.max(memory_bytes / 20);
    if stored < enough || memory.mem_used_total == 0 || memory_bytes == 0 {
        return None;
    }
    // The size whose contents would take `bytes` of memory, in whole 256 MiB, or 16 MiB on a small machine.
    let size = |bytes: u64| {
        let size = u128::from(bytes) * u128::from(stored) / u128::from(memory.mem_used_total);
        let step = if size < 1 << 30 { 1 << 24 } else { 1 << 28 };
        u64::try_from(size / step * step).unwrap_or(u64::MAX)
    };
    let takes = u128::from(device.disk_size_bytes) * u128::from(memory.mem_used_total) / u128::from(stored);
    let takes = u64::try_from(takes).unwrap_or(u64::MAX);
    if memory.mem_limit == 0 && takes / 2 > memory_bytes {
        Some(Fit::Large { size: size(memory_bytes / 4 * 3), takes })
    } else if is_nearly_used(&swap) && takes < memory_bytes / 3 {
        Some(Fit::Small { size: size(memory_bytes / 2) })
    } else {
        None
    }
}

/// Whether other swap has at least the priority of the best managed one: then the settings of `[vm]` do not fit.
pub fn is_outranked(snapshot: &Snapshot, swaps: &[SwapLine]) -> bool {
    let is_ours = |swap: &&SwapLine| {
        let number = swap.zram_number();
        snapshot.devices.iter().any(|device| device.managed && Some(device.number) == number)
    };
    let best = swaps.iter().filter(is_ours).map(|swap| swap.priority).max();
    best.is_some_and(|best| swaps.iter().any(|swap| !is_ours(&swap) && swap.priority >= best))
}

fn machine_findings(snapshot: &Snapshot, around: &Surroundings, found: &mut Vec<Finding>) {
    let is_ours = |number| {
        let is_damaged = |damaged: &Damaged| damaged.target == Some(Target::Device(number));
        snapshot.devices.iter().any(|device| device.managed && device.number == number)
            || around.damaged.iter().any(is_damaged)
    };
    let managed = snapshot.devices.iter().filter(|device| device.managed);
    let neighbours = Neighbours {
        lowest: managed.filter_map(|device| device.swap.map(|swap| swap.priority)).min(),
        swaps: around.swaps.iter().filter(|swap| !swap.zram_number().is_some_and(is_ours)).collect(),
        zswap: around.zswap,
        swaps_known: true,
        managers: &around.other_managers,
        configured: around.configured,
        yields: around.yields,
    };
    found.extend(neighbours.findings());
    for setting in snapshot.vm.iter().filter(|setting| setting.is_changed()) {
        found.push(Finding::new(
            Level::Warning,
            Code::SettingChanged,
            &setting.name,
            format!(
                "{} was set to {} by zramd, and is {} now: another program has changed it",
                setting.name, setting.set_to, setting.value
            ),
            if setting.name.starts_with("zswap.") {
                "remove it from [zswap] to accept this, or find what sets it"
            } else {
                "write \"keep\" for it into [vm] to accept this, or find what sets it (sysctl.d, udev, tuned)"
            },
        ));
    }
    if resumes_without_disk(around) {
        found.push(Finding::new(
            Level::Warning,
            Code::NoDiskSwapForHibernation,
            "",
            "the kernel has a disk to resume from, but all active swap is compressed memory, which cannot hold a hibernation image",
            "switch on swap on a disk, with a lower priority than that of compressed swap",
        ));
    }
    if let Some(device) = resume_device(&around.cmdline) {
        found.push(Finding::new(
            Level::Error,
            Code::ResumeOnZram,
            device,
            format!("resume= names {device}, whose contents do not survive power-off"),
            "remove resume= from the kernel command line, or name a swap partition on a disk",
        ));
    }
}

/// Whether hibernation to a disk is configured: on the kernel command line, or by the initramfs in `/sys/power/resume`.
pub fn hibernates(cmdline: &str, resume: &str) -> bool {
    let mut words = cmdline.split_whitespace();
    (hibernation::is_set(resume) || words.clone().any(|word| word.starts_with("resume=")))
        && words.all(|word| word != "noresume")
        && resume_device(cmdline).is_none()
}

/// Whether hibernation to a disk is configured, and all active swap is on zram.
fn resumes_without_disk(around: &Surroundings) -> bool {
    let is_memory = |swap: &SwapLine| swap.zram_number().is_some();
    hibernates(&around.cmdline, &around.resume)
        && !around.swaps.is_empty()
        && around.swaps.iter().all(is_memory)
}

/// The zram device in `resume=`, if it is one.
fn resume_device(cmdline: &str) -> Option<&str> {
    let path = cmdline.split_whitespace().rev().find_map(|word| word.strip_prefix("resume="))?;
    zram_number(path.strip_prefix("/dev/")?).map(|_| path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::stat::MmStat;
    use crate::maintain_report::Report;
    use crate::neighbours::programs::Does;
    use crate::sample::{MountView, RamdiskView};
    use crate::vm::VmView;

    fn swap_device() -> DeviceView {
        DeviceView {
            name: "zram0".to_owned(),
            managed: true,
            role: RoleView::Swap,
            state: StateView::Active,
            swap: Some(SwapView { priority: 100, size_bytes: 1 << 30, used_bytes: 0 }),
            ..DeviceView::default()
        }
    }

    fn codes(device: DeviceView, around: &Surroundings) -> Vec<String> {
        let snapshot = Snapshot { devices: vec![device], ..Snapshot::default() };
        findings(&snapshot, around).into_iter().map(|finding| finding.code.to_string()).collect()
    }

    #[test]
    fn a_healthy_machine_has_none() {
        assert_eq!(codes(swap_device(), &Surroundings::default()), [""; 0]);
    }

    #[test]
    fn each_fault_of_a_device_is_found() {
        let check = |change: fn(&mut DeviceView), expected: &str| {
            let mut device = swap_device();
            change(&mut device);
            assert_eq!(codes(device.clone(), &Surroundings::default()), [expected]);
            device.managed = false;
            assert_eq!(
                codes(device, &Surroundings::default()),
                [""; 0],
                "a stranger's device is his business"
            );
        };
        check(|device| device.state = StateView::Unfinished, "unfinished");
        check(
            |device| {
                device.state = StateView::Ready;
                device.swap = None;
            },
            "swap-off",
        );
        check(|device| device.writeback_missing = true, "writeback-missing");
        check(|device| device.stats.io.failed_reads = 1, "reads-failed");
        check(|device| device.stats.io.failed_writes = 1, "writes-failed");
        check(
            |device| {
                device.swap =
                    Some(SwapView { priority: 1, size_bytes: 1 << 30, used_bytes: (1 << 30) / 100 * 97 });
            },
            "swap-nearly-full",
        );
        check(
            |device| {
                device.swap =
                    Some(SwapView { priority: 1, size_bytes: 1 << 30, used_bytes: (1 << 30) - 4096 });
            },
            "swap-full",
        );
        check(
            |device| {
                device.stats.memory =
                    MmStat { mem_limit: 1 << 20, mem_used_total: 1 << 20, ..MmStat::default() };
            },
            "memory-limit-near",
        );
        check(
            |device| {
                device.stats.memory.orig_data_size = 1 << 30;
                device.stats.derived.huge_share = 0.51;
            },
            "incompressible",
        );
        check(|device| *device = filesystem(96), "filesystem-nearly-full");
    }

    #[test]
    fn data_counts_as_incompressible_if_more_than_half_of_enough_of_it_is() {
        for (huge_share, stored, expected) in [
            (0.5, 1 << 30, false),
            (0.51, 1 << 30, true),
            (0.51, 16 << 20, true),
            (0.51, (16 << 20) - 1, false),
            (0.0, 0, false),
        ] {
            let mut device = swap_device();
            device.stats.memory.orig_data_size = stored;
            device.stats.derived.huge_share = huge_share;
            let found = codes(device, &Surroundings::default());
            assert_eq!(found == ["incompressible"], expected, "{huge_share} of {stored}: {found:?}");
        }
    }

    #[test]
    fn a_larger_size_is_proposed_for_full_swap_that_takes_little_memory() {
        let remedy = |takes: u64| {
            let mut device = swap_device();
            device.disk_size_bytes = 4 << 30;
            device.swap = Some(SwapView { priority: 100, size_bytes: 4 << 30, used_bytes: 4 << 30 });
            device.stats.memory =
                MmStat { orig_data_size: 4 << 30, mem_used_total: takes, ..MmStat::default() };
            device_findings(&device, 8 << 30, false).next().unwrap().remedy
        };
        assert_eq!(
            remedy(1 << 30),
            "raise zram-size of [zram0] to about 16.0 GiB: at the present ratio, even that takes only half of the memory when full"
        );
        assert_eq!(remedy(3 << 30), "raise zram-size of [zram0], or write a writeback-file into it");
    }

    #[test]
    fn a_size_that_no_longer_matches_the_memory_is_compared_with_its_own_device() {
        let found = |number, from| {
            let resize = resize::Resize {
                number,
                from,
                added: 0,
                to: 4 << 30,
                step: resize::Step::Offer,
                keeps: false,
                reason: "it has changed".to_owned(),
            };
            let device = DeviceView { number: 1, disk_size_bytes: 2 << 30, ..DeviceView::default() };
            let maintenance = Report { resizes: vec![resize], ..Report::default() };
            let snapshot = Snapshot { devices: vec![device], maintenance, ..Snapshot::default() };
            let found = findings(&snapshot, &Surroundings::default());
            found.into_iter().map(|found| (found.code, found.object)).collect::<Vec<_>>()
        };
        assert_eq!(found(1, 2 << 30), [(Code::MemoryChanged, "zram1".to_owned())]);
        assert_eq!(found(1, 3 << 30), [], "it has been changed since");
        assert_eq!(found(0, 2 << 30), [], "it has gone");
    }

    #[test]
    fn a_mistake_of_the_configuration_without_a_remedy_refers_to_check() {
        let mistake =
            Finding::new(Level::Error, Code::ConfigInvalid, "/etc/zramd/zramd.toml", "it is wrong", "");
        let corrected = mistake.clone().remedy("write it in another way");
        let around = Surroundings { config: vec![mistake, corrected], ..Surroundings::default() };
        let found = findings(&Snapshot::default(), &around);
        let remedies: Vec<&str> = found.iter().map(|found| found.remedy.as_str()).collect();
        assert_eq!(remedies, ["see `zramdctl check`", "write it in another way"]);
    }

    #[test]
    fn swap_of_zramd_is_not_in_its_own_way() {
        let line = |path: &str| SwapLine { path: path.into(), size_kib: 4, used_kib: 0, priority: 200 };
        let damaged = |number| Damaged {
            file: format!("zram{number}.json"),
            target: Some(Target::Device(number)),
            why: "it is empty".to_owned(),
        };
        for (path, record, expected) in [
            ("/dev/zram0", None, &[][..]),
            ("/dev/zram7", None, &["priority-inverted"]),
            ("/dev/zram7", Some(damaged(7)), &["record-damaged"]),
            ("/dev/zram7", Some(damaged(8)), &["record-damaged", "priority-inverted"]),
            ("/dev/zram1", None, &["priority-inverted"]),
        ] {
            let stranger = DeviceView { number: 1, name: "zram1".to_owned(), ..DeviceView::default() };
            let snapshot = Snapshot { devices: vec![swap_device(), stranger], ..Snapshot::default() };
            let around = Surroundings {
                swaps: vec![line(path)],
                damaged: record.into_iter().collect(),
                ..Surroundings::default()
            };
            let found: Vec<String> =
                findings(&snapshot, &around).into_iter().map(|found| found.code.to_string()).collect();
            assert_eq!(found, expected, "{path}");
        }
    }

    fn filesystem(percent: u64) -> DeviceView {
        let mount = MountView {
            mount_point: "/var/cache/build".to_owned(),
            fs_type: "ext4".to_owned(),
            options: String::new(),
            size_bytes: 100 << 20,
            used_bytes: percent << 20,
        };
        DeviceView {
            role: RoleView::Filesystem,
            state: StateView::Mounted,
            swap: None,
            mount: Some(mount),
            ..swap_device()
        }
    }

    #[test]
    fn a_full_file_system_is_found_and_swap_is_no_remedy_for_one() {
        let found = |device: DeviceView, disk: &str| {
            let ramdisks = vec![RamdiskView { device: disk.to_owned(), ..RamdiskView::default() }];
            findings(
                &Snapshot { devices: vec![device], ramdisks, ..Snapshot::default() },
                &Surroundings::default(),
            )
        };
        let full = found(filesystem(96), "");
        assert_eq!(
            full[0].message,
            "96.0 MiB of the 100.0 MiB of ext4 on /var/cache/build (zram0) are in use"
        );
        assert_eq!(found(filesystem(94), ""), []);
        assert_eq!(found(filesystem(96), "zram0"), [], "the RAM disk has a finding of its own");
        let mut device = filesystem(50);
        device.stats.memory.orig_data_size = 1 << 30;
        device.stats.derived.huge_share = 0.51;
        let found = found(device, "");
        assert!(found[0].remedy.contains("tmpfs") && !found[0].remedy.contains("swap"), "{found:?}");
    }

    #[test]
    fn a_size_is_recommended_when_it_is_clearly_wrong() {
        const GIB: u64 = 1 << 30;
        let on = |memory: u64, size: u64, stored: u64, takes: u64| {
            let mut device = swap_device();
            device.disk_size_bytes = size;
            device.swap = Some(SwapView { priority: 100, size_bytes: size, used_bytes: stored });
            device.stats.memory =
                MmStat { orig_data_size: stored, mem_used_total: takes, ..MmStat::default() };
            fit(&device, memory)
        };
        let found = |size, stored, takes| on(8 * GIB, size, stored, takes);
        assert_eq!(found(16 * GIB, 3 * GIB, GIB), None, "full, it would take two thirds");
        assert_eq!(found(16 * GIB, GIB, GIB), None, "full, it would take exactly twice the memory");
        assert_eq!(found(24 * GIB, GIB, GIB), Some(Fit::Large { size: 6 * GIB, takes: 24 * GIB }));
        let small = on(240 << 20, 512 << 20, 64 << 20, 64 << 20);
        assert_eq!(small, Some(Fit::Large { size: 176 << 20, takes: 512 << 20 }));
        assert_eq!(
            found(24 * GIB, 2 * GIB, GIB),
            None,
            "programs are ended before it is full, but most of it fits"
        );
        assert_eq!(found(16 * GIB, GIB / 8, GIB / 8), None, "too little to judge by");
        assert_eq!(found(GIB / 4, GIB / 4, GIB / 16), None, "likewise, though it is full");
        assert_eq!(found(4 * GIB, 4 * GIB, GIB), Some(Fit::Small { size: 16 * GIB }));
        assert_eq!(found(4 * GIB, 3 * GIB, GIB), None, "not full");
        assert_eq!(found(4 * GIB, 4 * GIB, 3 * GIB), None, "it takes too much already");
        assert_eq!(on(9 * GIB, 3 * GIB, 3 * GIB, 3 * GIB), None, "it takes a third of the memory");
        // A twentieth of the memory is enough to judge by, and at least 16 MiB.
        let tiny = |memory: u64, stored: u64| on(memory, 48 * memory, stored, stored).is_some();
        for (memory, least) in [(20 * GIB, GIB), (20 << 20, 16 << 20)] {
            assert_eq!((tiny(memory, least - 1), tiny(memory, least)), (false, true), "{memory}");
        }
        assert_eq!(found(16 * GIB, GIB, 0), None);
        assert_eq!(found(4 * GIB, 4 * GIB, 0), None, "pages of one repeated word take no memory");
        let mut limited = swap_device();
        limited.disk_size_bytes = 24 * GIB;
        limited.stats.memory =
            MmStat { orig_data_size: GIB, mem_used_total: GIB, mem_limit: 2 * GIB, ..MmStat::default() };
        assert_eq!(fit(&limited, 8 * GIB), None, "its limit bounds it");
    }

    #[test]
    fn no_second_backing_device_is_recommended() {
        let remedies = |backing: &str| {
            let mut device = swap_device();
            device.backing_device = backing.to_owned();
            device.disk_size_bytes = 4 << 30;
            device.swap = Some(SwapView { priority: 100, size_bytes: 4 << 30, used_bytes: 4 << 30 });
            device.stats.memory =
                MmStat { orig_data_size: 1 << 30, mem_used_total: 1 << 30, ..MmStat::default() };
            device.stats.derived.huge_share = 0.9;
            device.stats.io.failed_writes = 1;
            let found = device_findings(&device, 1 << 30, false);
            found.map(|finding| finding.remedy).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(remedies("").matches("writeback-file").count(), 4, "{}", remedies(""));
        let with = remedies("/dev/sda9");
        assert_eq!((with.matches("writeback-file").count(), with.matches(SOONER).count()), (0, 2), "{with}");
    }

    #[test]
    fn each_fault_of_the_machine_is_found() {
        let disk = SwapLine { path: "/dev/sda2".into(), size_kib: 4, used_kib: 0, priority: 100 };
        let around = Surroundings {
            swaps: vec![disk.clone()],
            zswap: Zswap::On,
            other_managers: vec![OtherManager {
                name: "zram-generator",
                does: Does::Devices,
                file: "/a".to_owned(),
                import: Some("zram-generator"),
                enabled: true,
                off: "stop it".to_owned(),
            }],
            cmdline: "quiet resume=/dev/zram0".to_owned(),
            resume: "0:0\n".to_owned(),
            lost: vec!["zram3".to_owned()],
            damaged: vec![Damaged {
                file: "zram9.json".to_owned(),
                target: None,
                why: "it is empty".to_owned(),
            }],
            config: Vec::new(),
            configured: true,
            yields: false,
        };
        let zram = SwapLine { path: "/dev/zram0".into(), size_kib: 4, used_kib: 0, priority: 100 };
        let resuming = |cmdline: &str, resume: &str, swaps: &[&SwapLine]| {
            let swaps = swaps.iter().map(|swap| (*swap).clone()).collect();
            let (cmdline, resume) = (cmdline.to_owned(), resume.to_owned());
            let around = Surroundings { swaps, cmdline, resume, ..Surroundings::default() };
            codes(swap_device(), &around).contains(&"no-disk-swap-for-hibernation".to_owned())
        };
        let hibernating = |cmdline: &str, swaps: &[&SwapLine]| resuming(cmdline, "0:0\n", swaps);
        assert!(resuming("quiet", "254:16\n", &[&zram]), "the initramfs has set it");
        assert!(!resuming("noresume", "254:16\n", &[&zram]));
        assert!(hibernating("resume=UUID=1", &[&zram]));
        assert!(!hibernating("resume=UUID=1", &[&zram, &disk]));
        assert!(!hibernating("resume=UUID=1 noresume", &[&zram]));
        assert!(!hibernating("quiet", &[&zram]));
        assert!(!hibernating("resume=/dev/zram0", &[&zram]), "said with other words");
        let expected = [
            "device-lost",
            "record-damaged",
            "resume-on-zram",
            "zswap-active",
            "priority-inverted",
            "foreign-manager",
        ];
        assert_eq!(codes(swap_device(), &around), expected);
        let yielding = Surroundings { yields: true, ..around.clone() };
        assert_eq!(codes(swap_device(), &yielding), expected[..5], "nothing is claimed twice");
        let around = Surroundings { other_managers: around.other_managers, ..Surroundings::default() };
        assert_eq!(codes(swap_device(), &around), ["import-offered"]);
        assert_eq!(resume_device("resume=/dev/sda2 resume=UUID=1"), None);
    }

    #[test]
    fn a_setting_that_another_program_has_changed_is_found() {
        let setting = |value: &str| VmView {
            name: "vm.swappiness".to_owned(),
            value: value.to_owned(),
            set_to: "150".to_owned(),
            before: "60".to_owned(),
        };
        let found = |value| {
            let snapshot = Snapshot { vm: vec![setting(value)], ..Snapshot::default() };
            findings(&snapshot, &Surroundings::default())
        };
        assert_eq!(found("150"), []);
        assert_eq!(
            (found("60")[0].code, found("60")[0].object.as_str()),
            (Code::SettingChanged, "vm.swappiness")
        );
    }

    #[test]
    fn the_best_of_ours_is_compared_with_all_swap_of_others() {
        let line = |path: &str, priority| SwapLine { priority, path: path.into(), size_kib: 1, used_kib: 0 };
        let device = |number, managed| DeviceView { number, managed, ..DeviceView::default() };
        let devices = vec![device(0, true), device(1, true), device(2, false)];
        let snapshot = Snapshot { devices, ..Snapshot::default() };
        for (swaps, expected) in [
            (vec![("/dev/zram0", 100), ("/dev/zram1", 5), ("/dev/sda2", 50)], false),
            (vec![("/dev/zram1", 5), ("/dev/sda2", 50)], true),
            (vec![("/dev/zram0", 100), ("/dev/sda2", 100)], true),
            (vec![("/dev/zram0", 100), ("/dev/zram2", 200)], true),
            (vec![("/dev/zram0", 100), ("/dev/zram2", 99)], false),
            (vec![("/dev/sda2", 50)], false),
        ] {
            let lines: Vec<SwapLine> = swaps.iter().map(|(path, priority)| line(path, *priority)).collect();
            assert_eq!(is_outranked(&snapshot, &lines), expected, "{swaps:?}");
        }
    }
}
