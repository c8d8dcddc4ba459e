//! Reasons to refuse a target: it is unsafe, or impossible on this machine.

use std::collections::{BTreeMap, BTreeSet};

use super::backing;
use super::ownership::{Ownership, ownership};
use super::{Decision, Item, refuse};
use crate::config::settings::MEASURED_SIZE;
use crate::config::settings::{
    BackingSettings, DeviceSettings, MountSettings, RamdiskSettings, SizeExpr, SizeRule,
};
use crate::device::attribute::Attribute;
use crate::device::swap_header::{LABEL_BYTES, MOST_SWAPS};
use crate::error::ErrorKind;
use crate::facts::{BackingFacts, Facts, Permissions, Support};
use crate::finding::{Code, Finding};
use crate::human::human;
use crate::origin::Origin;
use crate::path_kind::PathKind;
use crate::ramdisk::hold::Hold;
use crate::ramdisk::place::{at_or_above, is_at_or_below, is_below, ramdisk_at};
use crate::ramdisk_health;
use crate::record::{Target, adopt_or_forget};
use crate::request::{DeviceRequest, MountRequest, Purpose, RamdiskRequest, Request, Store};

/// Pages that the header of a swap area can name: `last_page` has 32 bits (include/linux/swap.h).
const MOST_SWAP_PAGES: u64 = 1 << 32;
/// A smaller device is not worth its metadata, and is refused by mkfs and mkswap.
const MINIMUM_SIZE: u64 = 1 << 20;
/// Memory per entry of the slot table, which the kernel allocates for all pages when the size is set (`struct
/// zram_table_entry` in drivers/block/zram/zram_drv.h).
const SLOT_BYTES: u64 = 16;
/// Maximum share of RAM for the slot table, as a divisor: 50 is 2 %.
const SLOT_TABLE_SHARE: u64 = 50;
/// How many pages of programs fit into the memory of one, if they compress well (packaging/docs/defaults.md).
const PAGES_PER_PAGE: u64 = 4;
/// A mount on one of these would hide the running system; mounts below them are allowed.
const CROSSROADS: [&str; 3] = ["/", "/run", "/run/user"];
/// A mount on or below these would hide parts of the system, or let its owner change programs that root runs.
const SYSTEM_DIRECTORIES: [&str; 23] = [
    "/bin",
    "/boot",
    "/dev",
    "/efi",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/proc",
    "/root",
    "/run/credentials",
    "/run/dbus",
    "/run/initramfs",
    "/run/systemd",
    "/run/udev",
    "/run/zramd",
    "/sbin",
    "/sys",
    "/usr",
    "/var/lib/polkit-1",
    "/var/lib/zramd",
    "/var/spool/cron",
];

/// All reasons to refuse a device, without regard to others.
pub(super) fn device(settings: &DeviceSettings, request: &DeviceRequest, facts: &Facts) -> Vec<Finding> {
    let mut refusals = Vec::new();
    refusals.extend(damaged(&Target::Device(request.number), &settings.origin, facts));
    refusals.extend(size(settings, request, facts));
    refusals.extend(memory_limit(settings, request));
    refusals.extend(support(settings, facts));
    refusals.extend(tools(settings, request, facts));
    refusals.extend(too_small(settings, request));
    refusals.extend(foreign(settings, request, facts));
    refusals.extend(writeback_device(settings, facts));
    if let Some(mount) = request.purpose.mount() {
        refusals.extend(mount_point(mount, settings.mount_origin(), &Target::Device(request.number), facts));
    }
    refusals
}

/// Refuses a target with a damaged record: it is left as it is.
pub(super) fn damaged(target: &Target, origin: &Origin, facts: &Facts) -> Option<Finding> {
    let damaged = facts.damaged_record(target)?;
    let refusal = Finding::refusal(ErrorKind::Unsafe, origin, damaged.to_string()).remedy(damaged.remedy());
    Some(refusal.code(Code::RecordDamaged))
}

/// All reasons to refuse a RAM disk, without regard to others.
pub(super) fn ramdisk(settings: &RamdiskSettings, request: &RamdiskRequest, facts: &Facts) -> Vec<Finding> {
    let mut refusals = Vec::new();
    if request.size < MINIMUM_SIZE {
        let reason =
            format!("a size of {} is below the minimum of {}", human(request.size), human(MINIMUM_SIZE));
        refusals.push(Finding::refusal(ErrorKind::Config, &settings.size.origin, reason));
    }
    if let Support::Container(kind) = &facts.support {
        refusals.push(Finding::refusal(ErrorKind::Unsupported, &settings.origin, in_container(kind)));
    }
    let target = Target::Ramdisk(request.name.clone());
    refusals.extend(damaged(&target, &settings.origin, facts));
    refusals.extend(mount_point(&request.mount, &settings.mount.origin, &target, facts));
    refusals
}

fn in_container(kind: &str) -> String {
    format!("this is a {kind} container; swap and mounts belong to its host")
}

fn size_origin(settings: &DeviceSettings) -> &Origin {
    match &settings.size {
        SizeRule::Expression { size, .. } => &size.origin,
        SizeRule::Fraction { origin, .. } => origin,
    }
}

fn size(settings: &DeviceSettings, request: &DeviceRequest, facts: &Facts) -> Option<Finding> {
    let origin = size_origin(settings);
    let share = "zram-fraction is a share of the RAM: 0.5 is half of it";
    if request.disk_size < MINIMUM_SIZE {
        let reason =
            format!("a size of {} is below the minimum of {}", human(request.disk_size), human(MINIMUM_SIZE));
        let by_fraction = matches!(settings.size, SizeRule::Fraction { max: None, .. });
        let hint = if by_fraction { share } else { WRITE_A_UNIT };
        return Some(Finding::refusal(ErrorKind::Config, origin, reason).remedy(hint));
    }
    let storable = storable(facts)?;
    let largest = largest_size(facts);
    if request.disk_size <= largest {
        return None;
    }
    let table = (request.disk_size / facts.page_size.max(1)).saturating_mul(SLOT_BYTES);
    let reason = format!(
        "a device of {} needs a table of {} before the first page is stored, more than 2 % of this machine's RAM; choose at most {}MiB",
        human(request.disk_size),
        human(table),
        largest.min(storable) >> 20
    );
    let by_fraction = matches!(settings.size, SizeRule::Fraction { .. });
    let hint = if by_fraction { share.to_owned() } else { usual_size(1) };
    Some(Finding::refusal(ErrorKind::Unsafe, origin, reason).remedy(hint))
}

fn memory_limit(settings: &DeviceSettings, request: &DeviceRequest) -> Option<Finding> {
    let mounted = matches!(request.purpose, Purpose::Filesystem { .. });
    if request.memory_limit == 0 || !mounted || settings.force_resident_limit {
        return None;
    }
    let origin = settings.resident_limit.as_ref().map_or(&settings.origin, |limit| &limit.origin);
    let reason = "a memory limit on a mounted file system loses data without an error when it is reached";
    let hint = "leave zram-resident-limit out, or write force-resident-limit = true to accept that";
    Some(Finding::refusal(ErrorKind::Unsafe, origin, reason).remedy(hint))
}

fn support(settings: &DeviceSettings, facts: &Facts) -> Option<Finding> {
    match &facts.support {
        Support::Container(kind) => {
            Some(Finding::refusal(ErrorKind::Unsupported, &settings.origin, in_container(kind)))
        }
        Support::Ready | Support::NotLoaded => None,
    }
}

fn tools(settings: &DeviceSettings, request: &DeviceRequest, facts: &Facts) -> Option<Finding> {
    let fs_type = match &request.purpose {
        Purpose::Swap { .. } => {
            let too_long = request.label.len() >= LABEL_BYTES;
            let reason = format!("the label `{}` is longer than the 15 bytes of a swap label", request.label);
            return too_long.then(|| Finding::refusal(ErrorKind::Config, &settings.origin, reason));
        }
        Purpose::Filesystem { fs_type, .. } => fs_type,
        Purpose::Raw { fs_type, .. } => fs_type.as_ref()?,
    };
    if facts.mkfs.get(fs_type) != Some(&false) {
        return None;
    }
    let reason = format!("mkfs.{fs_type} is not installed");
    Some(Finding::refusal(ErrorKind::Unsupported, &settings.origin, reason).remedy(mkfs_package(fs_type)))
}

/// Minimum sizes for mkfs of the types where they are large: mkfs.xfs(8), "size"; the error message of mkfs.btrfs with
/// a single copy of its metadata.
const SMALLEST: [(&str, u64); 2] = [("xfs", 300 << 20), ("btrfs", 45 << 20)];

fn too_small(settings: &DeviceSettings, request: &DeviceRequest) -> Option<Finding> {
    // With options of the user, a smaller one may be possible.
    let (Purpose::Filesystem { fs_type, mkfs_options, .. }
    | Purpose::Raw { fs_type: Some(fs_type), mkfs_options }) = &request.purpose
    else {
        return None;
    };
    let (_, smallest) = SMALLEST.iter().find(|(known, _)| known == fs_type)?;
    if !mkfs_options.is_empty() || request.disk_size >= *smallest {
        return None;
    }
    let (found, smallest) = (human(request.disk_size), human(*smallest));
    let reason = format!("{found} is too small for {fs_type}, which takes at least {smallest}");
    let hint = "choose a larger size, or fs-type = \"ext4\"";
    Some(Finding::refusal(ErrorKind::Config, &settings.origin, reason).remedy(hint))
}

fn mkfs_package(fs_type: &str) -> String {
    let package = match fs_type {
        "ext2" | "ext3" | "ext4" => "e2fsprogs",
        "xfs" => "xfsprogs",
        "btrfs" => "btrfs-progs",
        "f2fs" => "f2fs-tools",
        "vfat" => "dosfstools",
        _ => return format!("install the package that has mkfs.{fs_type}, or choose another fs-type"),
    };
    format!("install {package}, or choose another fs-type")
}

fn foreign(settings: &DeviceSettings, request: &DeviceRequest, facts: &Facts) -> Option<Finding> {
    let user = match ownership(request.number, facts) {
        Ownership::Foreign { user } => user,
        Ownership::TakenOver(differs) => {
            let reason = format!(
                "another program has set up /dev/zram{} since zramd did, so it is not changed: {differs}; {}",
                request.number,
                adopt_or_forget(&Target::Device(request.number))
            );
            let refusal = Finding::refusal(ErrorKind::Unmanaged, &settings.origin, reason);
            return Some(refusal.code(Code::DeviceTakenOver));
        }
        _ => return None,
    };
    let reason = format!("/dev/zram{} is already set up by another program: {user}", request.number);
    let hint = format!(
        "choose another number, or release it first (swapoff or umount, then `zramctl --reset /dev/zram{0}`, which empties it); if zramd set it up and \
         its record is lost, run `zramdctl adopt zram{0}`",
        request.number
    );
    Some(
        Finding::refusal(ErrorKind::Unsafe, &settings.origin, reason)
            .remedy(hint)
            .code(Code::DeviceUnmanaged),
    )
}

fn writeback_device(settings: &DeviceSettings, facts: &Facts) -> Option<Finding> {
    let BackingSettings { store: Store::Device(path), origin, .. } = settings.writeback.as_ref()? else {
        return None;
    };
    let ours = matches!(ownership(settings.number, facts), Ownership::Ours(_));
    match facts.backing.get(path) {
        // Not examined, as when units are generated: that is done at set-up.
        None => None,
        Some(BackingFacts::Missing) => {
            let reason = format!("the write-back device {path} does not exist");
            Some(Finding::refusal(ErrorKind::Config, origin, reason))
        }
        Some(BackingFacts::NotABlockDevice) => {
            let reason = format!("{path} is not a block device");
            let hint = "name a partition or logical volume; for a file, write writeback-file";
            Some(Finding::refusal(ErrorKind::Config, origin, reason).remedy(hint))
        }
        Some(BackingFacts::Unreadable(why)) => {
            Some(Finding::refusal(ErrorKind::Unsupported, origin, format!("the write-back device: {why}")))
        }
        Some(BackingFacts::Block { device, signature, holders }) => {
            if let Some(mount) = facts.mounts.iter().find(|mount| mount.device == *device) {
                let reason = format!("{path} is mounted on {}", mount.mount_point);
                return Some(Finding::refusal(ErrorKind::Unsafe, origin, reason));
            }
            // On our own device, the holder is our mapping.
            if let Some(holder) = holders.first().filter(|_| !ours) {
                let reason = format!("{path} is in use by {holder}");
                return Some(Finding::refusal(ErrorKind::Unsafe, origin, reason));
            }
            // Written-back pages may look like any signature, so it is not checked on our own device.
            let signature = signature.as_ref().filter(|_| !ours)?;
            let reason = format!("{path} holds data ({signature}), which write-back would overwrite");
            let hint = format!("if that data is not needed, run `wipefs --all {path}` first");
            Some(Finding::refusal(ErrorKind::Unsafe, origin, reason).remedy(hint))
        }
    }
}

/// Why a mount point, or a directory above it, could not be looked at, if so.
fn unreadable(path: &str, facts: &Facts) -> Option<String> {
    let highest = at_or_above(path).filter_map(|above| match facts.mount_points.get(above)? {
        PathKind::Unreadable(why) => Some(format!("{above} cannot be looked at: {why}")),
        _ => None,
    });
    highest.last()
}

fn mount_point(mount: &MountRequest, origin: &Origin, target: &Target, facts: &Facts) -> Option<Finding> {
    let path = mount.mount_point.as_str();
    let above = SYSTEM_DIRECTORIES.iter().find(|directory| is_at_or_below(path, directory));
    let below = SYSTEM_DIRECTORIES.iter().find(|directory| is_at_or_below(directory, path));
    let reason = match (above, below) {
        (Some(directory), _) if path != *directory => {
            Some(format!("{path} is below {directory}, a directory of the system"))
        }
        (None, Some(directory)) if !CROSSROADS.contains(&path) => {
            Some(format!("mounting on {path} would hide {directory}"))
        }
        (None, None) if !CROSSROADS.contains(&path) => None,
        _ => Some(format!("mounting on {path} would hide the running system")),
    };
    // The private places of RAM disks are below such a directory.
    if let Some(reason) = reason.filter(|_| ramdisk_at(path).is_none()) {
        let hint = "choose a directory below /srv, /mnt, /var or /run";
        return Some(Finding::refusal(ErrorKind::Unsafe, origin, reason).remedy(hint));
    }
    if let Some(real) = facts.links.get(path) {
        let reason = format!("{path} contains a symbolic link; it is {real}");
        let hint = format!("write mount-point = \"{real}\"");
        return Some(Finding::refusal(ErrorKind::Unsafe, origin, reason).remedy(hint));
    }
    if matches!(facts.mount_points.get(path), Some(PathKind::Other | PathKind::Empty)) {
        return Some(Finding::refusal(ErrorKind::Config, origin, format!("{path} is not a directory")));
    }
    let ours = facts.records.get(target).and_then(|record| record.request.mount());
    if ours.is_some_and(|ours| ours.mount_point == path) || facts.is_mounted_by_unit(path) {
        return None;
    }
    if let Some(why) = unreadable(path, facts) {
        return Some(Finding::refusal(ErrorKind::Failed, origin, why));
    }
    let mounted = facts.mount_at(path)?;
    let reason = format!("{path} is already a mount point ({} on {})", mounted.fs_type, mounted.source);
    Some(
        Finding::refusal(ErrorKind::Unsafe, origin, reason)
            .remedy("unmount it first, or choose another mount-point"),
    )
}

/// Refuses targets that conflict with others: the same mount point, or one that would hide an existing mount below it.
pub(super) fn between_items(
    items: &mut [Item],
    origins: &BTreeMap<Target, Origin>,
    facts: &Facts,
    problems: &mut Vec<Finding>,
) {
    let mut seen: BTreeMap<String, Target> = BTreeMap::new();
    for item in items.iter_mut().filter(|item| item.decision == Decision::Planned) {
        let Some(path) =
            item.request.as_ref().and_then(Request::mount).map(|mount| mount.mount_point.clone())
        else {
            continue;
        };
        let origin = origins.get(&item.target).cloned().unwrap_or_default();
        if let Some(first) = seen.get(&path) {
            let reason = format!("{path} is the mount point of [{first}] already");
            refuse(
                item,
                Finding::refusal(ErrorKind::Config, &origin, reason).remedy("give each its own mount-point"),
                problems,
            );
            continue;
        }
        // Mounts below an active RAM disk were made on top of it, possibly by users with FUSE: they do not count.
        let mounted = facts.mount_at(&path).is_some();
        let below = facts.mounts.iter().find(|mount| is_below(mount.mount_point.as_bytes(), path.as_bytes()));
        if let Some(below) = below.filter(|_| !mounted) {
            let reason = format!("{path} would hide what is already mounted on {}", below.mount_point);
            refuse(
                item,
                Finding::refusal(ErrorKind::Unsafe, &origin, reason).remedy("unmount that first"),
                problems,
            );
            continue;
        }
        seen.insert(path, item.target.clone());
    }
    without_device(items, facts);
}

/// A warning if there are more swap areas than every kernel allows, at the first section beyond.
pub(super) fn too_many_swaps(items: &[Item], settings: &[DeviceSettings], facts: &Facts) -> Option<Finding> {
    let is_swap = |item: &&Item| item.swap_priority().is_some();
    let planned: BTreeSet<&Target> = items.iter().filter(is_swap).map(|item| &item.target).collect();
    let is_planned = |number| planned.contains(&Target::Device(number));
    let others = facts.swaps.iter().filter(|swap| !swap.zram_number().is_some_and(is_planned)).count();
    let beyond = planned.iter().nth(MOST_SWAPS.saturating_sub(others))?;
    let origin = settings.iter().find(|device| Target::Device(device.number) == **beyond)?;
    let elsewhere = if others > 0 { format!(" and {others} others that are active") } else { String::new() };
    let message = format!(
        "there are {} swap devices{elsewhere}, and some kernels allow {MOST_SWAPS} swap areas",
        planned.len()
    );
    let hint = "configure fewer and larger ones";
    Some(Finding::warning(origin.origin.clone(), message).remedy(hint))
}

/// A warning if all devices together can take in more than fits into the memory: the sizes cannot be meant.
pub(super) fn overcommitted(items: &[Item], settings: &[DeviceSettings], facts: &Facts) -> Option<Finding> {
    let (target, message) = excess(items, facts)?;
    let last = settings.iter().find(|device| Target::Device(device.number) == *target)?;
    let hint = usual_size(sizes(items).count());
    Some(Finding::warning(size_origin(last).clone(), message).remedy(hint))
}

fn sizes(items: &[Item]) -> impl DoubleEndedIterator<Item = (&Target, u64)> + Clone {
    items.iter().filter(|item| item.decision == Decision::Planned).filter_map(|item| match &item.request {
        Some(Request::Device(device)) => Some((&item.target, device.disk_size)),
        _ => None,
    })
}

fn usual_size(devices: usize) -> String {
    let together = if devices > 1 { " for all devices together" } else { "" };
    format!("numbers without a unit are MiB; \"{MEASURED_SIZE}\"{together} suits most data")
}

/// The last device and a message, if the sizes of all devices together are too large.
pub fn excess<'i>(items: &'i [Item], facts: &Facts) -> Option<(&'i Target, String)> {
    let sizes = sizes(items);
    let total: u64 = sizes.clone().map(|(_, size)| size).fold(0, u64::saturating_add);
    let most = storable(facts)?;
    let what = if sizes.clone().count() == 1 { "the device" } else { "all devices together" };
    let (target, _) = sizes.last().filter(|_| total > most)?;
    let message = format!(
        "{what} can take in {}, more than the {} that this machine's RAM{} can hold even if the data compresses well",
        human(total),
        human(most),
        without_huge_pages(facts)
    );
    Some((target, message))
}

/// A warning if all RAM disks on tmpfs together can hold more than there is memory, at the size of the last.
pub(super) fn ramdisks_exceed_memory(
    items: &[Item],
    settings: &[RamdiskSettings],
    facts: &Facts,
) -> Option<Finding> {
    let planned = items.iter().filter(|item| item.decision == Decision::Planned);
    let mut disks = planned.filter_map(|item| match &item.request {
        Some(Request::Ramdisk(disk)) if disk.number.is_none() => Some(disk),
        _ => None,
    });
    let (message, remedy) = ramdisk_health::excess(
        disks.clone().map(|disk| disk.size),
        facts.memory.ordinary_kib().saturating_mul(1024),
    )?;
    let message = message + &without_huge_pages(facts);
    let last = disks.next_back()?;
    let origin = settings.iter().find(|disk| disk.name == last.name).map(|disk| &disk.size.origin)?;
    Some(Finding::warning(origin.clone(), message).remedy(remedy).code(Code::RamdisksExceedMemory))
}

/// A warning if the newest snapshot of a RAM disk does not fit into it, so that it would not be loaded.
pub(super) fn snapshot_does_not_fit(
    settings: &RamdiskSettings,
    request: &RamdiskRequest,
    facts: &Facts,
) -> Option<Finding> {
    let newest = facts.snapshots.get(&request.name)?;
    let hold = Hold::of_sizes(
        (newest.occupied_bytes, newest.inodes),
        (request.size, request.inodes.unwrap_or(u64::MAX)),
    )?;
    let message = format!(
        "the newest snapshot of {} ({}) cannot be loaded: {}",
        request.name,
        newest.generation,
        hold.text()
    );
    let found = Finding::warning(settings.size.origin.clone(), message).remedy(hold.cure(&request.name));
    Some(found.code(Code::SnapshotHeld))
}

/// What fits into the RAM if the data compresses well; `None` if the amount of RAM is unknown.
fn storable(facts: &Facts) -> Option<u64> {
    let ram = facts.memory.ordinary_kib().saturating_mul(1024);
    (ram > 0).then(|| ram.saturating_mul(PAGES_PER_PAGE))
}

/// Huge pages are reserved, and neither swapped nor compressed.
fn without_huge_pages(facts: &Facts) -> String {
    match facts.memory.hugetlb_kib {
        0 => String::new(),
        kib => format!(" (without {} reserved as huge pages)", human(kib.saturating_mul(1024))),
    }
}

/// The size whose slot table takes the allowed share of RAM.
fn largest_size(facts: &Facts) -> u64 {
    let ram = facts.memory.total_kib.saturating_mul(1024);
    (ram / SLOT_TABLE_SHARE / SLOT_BYTES).saturating_mul(facts.page_size)
}

/// A RAM disk is refused with its zram device, unless it is set up already. The reason is reported for the device.
fn without_device(items: &mut [Item], facts: &Facts) {
    let refused: BTreeMap<Target, Option<ErrorKind>> = items
        .iter()
        .filter(|item| item.decision == Decision::Refused)
        .map(|item| (item.target.clone(), item.kind))
        .collect();
    for item in items.iter_mut().filter(|item| item.decision == Decision::Planned) {
        let Some(Request::Ramdisk(disk)) = &item.request else { continue };
        let Some(device) = disk.number.map(Target::Device) else { continue };
        let is_there =
            facts.records.contains_key(&item.target) || facts.is_mounted_by_unit(&disk.mount.mount_point);
        if let Some(kind) = refused.get(&device).filter(|_| !is_there) {
            item.decision = Decision::Refused;
            item.kind = *kind;
            item.reason = format!("its device {device} cannot be set up");
        }
    }
}

/// Size in bytes below which a number without a unit may be meant in GiB. An import is checked with more memory than any machine has.
const SMALL: u64 = 64 << 20;

/// A limit of compressed data in bytes that is hardly meant.
const SMALL_LIMIT: u64 = 4 << 20;
const WRITE_A_UNIT: &str = "numbers without a unit are MiB; write a unit: \"512MiB\", \"4GiB\"";

/// Whether the value is one of the numbers in the text, in MiB, and thus not a product or a share.
fn is_plain_number(text: &str, bytes: u64) -> bool {
    let numbers = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    bytes > 0
        && numbers
            .filter_map(|word| word.parse::<u64>().ok())
            .any(|mib| mib.checked_mul(1 << 20) == Some(bytes))
}

/// A warning about a small size without a unit; `bytes` is what it is here.
pub(super) fn doubtful(size: &SizeExpr, bytes: u64, facts: &Facts) -> Option<Finding> {
    if !is_plain_number(&size.text, bytes) || bytes >= SMALL || bytes / 1024 >= facts.memory.total_kib / 100 {
        return None;
    }
    let number = &size.text;
    let (message, hint) = match number.parse::<u64>() {
        Ok(_) => (
            format!("{number} without a unit means {}", human(bytes)),
            format!("write a unit: \"{number}GiB\", or \"{number}MiB\" if that is meant"),
        ),
        Err(_) => (format!("`{number}` is {}", human(bytes)), WRITE_A_UNIT.to_owned()),
    };
    let message = format!("{message}, less than 1 % of this machine's RAM");
    Some(Finding::warning(size.origin.clone(), message).remedy(hint))
}

/// Warnings about settings without the effect that they seem to have.
pub(super) fn ineffective(
    settings: &DeviceSettings,
    request: &DeviceRequest,
    facts: &Facts,
    recompresses: bool,
) -> Vec<Finding> {
    let mut problems = Vec::new();
    let mut warn = |origin: &Origin, message: String, hint: &str| {
        problems.push(Finding::warning(origin.clone(), message).remedy(hint));
    };
    let can = facts.specimen().is_none_or(|device| device.attributes.contains(&Attribute::RecompAlgorithm));
    if !request.recompression.is_empty() && can && !recompresses {
        let message = "no page is recompressed without recompress in [maintenance]";
        let hint = "add a section [maintenance] with recompress = true, or leave recompression-algorithm out";
        warn(&settings.recompression_origin, message.to_owned(), hint);
    }
    let limit = request.memory_limit;
    let is_swap = matches!(request.purpose, Purpose::Swap { .. });
    if let Some(SizeExpr { origin, text, .. }) = settings.resident_limit.as_ref().filter(|_| limit > 0) {
        if limit < SMALL_LIMIT {
            let message = format!("writes fail as soon as the compressed data takes {}", human(limit));
            let hint = if is_plain_number(text, limit) {
                WRITE_A_UNIT
            } else {
                "write a higher one, or leave zram-resident-limit out"
            };
            warn(origin, message, hint);
        } else if limit > request.disk_size {
            let message = format!(
                "the limit of {} has no effect: the device can take in {}",
                human(limit),
                human(request.disk_size)
            );
            warn(origin, message, "write a lower one, or leave zram-resident-limit out");
        } else if is_swap && limit < request.disk_size {
            let message = "when the limit is reached, each page that is swapped out fails, and the machine may hang for minutes";
            let hint = "leave zram-resident-limit out, and write a smaller zram-size to bound the memory";
            warn(origin, message.to_owned(), hint);
        }
    }
    let most = MOST_SWAP_PAGES.saturating_mul(facts.page_size);
    if is_swap && request.disk_size > most {
        let message = format!(
            "the kernel uses the first {} of swap on a device, and this one has {}",
            human(most),
            human(request.disk_size)
        );
        warn(size_origin(settings), message, "write a smaller size, and further devices for the rest");
    }
    problems
}

/// A warning that a file system hides a directory with other permissions. RAM disks with snapshots take them over.
pub(super) fn other_permissions(settings: &MountSettings, facts: &Facts) -> Option<Finding> {
    let Permissions { mode, uid, gid } = *facts.directories.get(&settings.mount_point)?;
    let own = settings.mode.unwrap_or(0o755);
    let keys = [
        (mode != own).then(|| format!("mode = \"{mode:04o}\"")),
        (uid != 0).then(|| format!("owner = {uid}")),
        (gid != 0).then(|| format!("group = {gid}")),
    ];
    let keys: Vec<String> = keys.into_iter().flatten().collect();
    if keys.is_empty() {
        return None;
    }
    let message = format!(
        "{} has mode {mode:04o}, owner {uid} and group {gid}, and gets mode {own:04o}, owner 0 and group 0, because none is set",
        settings.mount_point
    );
    let remedy = format!("write {}, or mode = \"{own:04o}\" to keep this", keys.join(", "));
    Some(Finding::warning(settings.origin.clone(), message).remedy(remedy))
}

/// Warnings about configured features that this kernel lacks: the device works without them.
pub(super) fn unsupported_features(settings: &DeviceSettings, item: &Item, facts: &Facts) -> Vec<Finding> {
    let warn = |origin: &Origin, message: String| {
        Finding::warning(origin.clone(), message).kind(ErrorKind::Unsupported)
    };
    let mut problems = Vec::new();
    if let (Some(writeback), Some(Request::Device(request))) = (&settings.writeback, &item.request)
        && let Some(why) = backing::left_out(request, &ownership(settings.number, facts), facts)
    {
        problems.push(warn(&writeback.origin, format!("no pages will be written back: {why}")));
    }
    let Some(specimen) = facts.specimen() else { return problems };
    let lacks = |attribute: Attribute| !specimen.attributes.contains(&attribute);
    if !settings.recompression.is_empty() && lacks(Attribute::RecompAlgorithm) {
        let message = "this kernel cannot recompress (that needs Linux 6.2 with CONFIG_ZRAM_MULTI_COMP); the secondary algorithms are left out";
        problems.push(warn(&settings.recompression_origin, message.to_owned()));
    }
    if let Some(BackingSettings { store, origin, .. }) = &settings.writeback
        && lacks(Attribute::BackingDev)
    {
        let path = store.path();
        let message = format!(
            "this kernel cannot write pages back (that needs CONFIG_ZRAM_WRITEBACK); {path} is not used"
        );
        problems.push(warn(origin, message));
    }
    let parameters = item.algorithm().and_then(|candidate| candidate.algorithm.as_ref());
    if let Some(algorithm) = parameters.filter(|algorithm| !algorithm.parameters.is_empty())
        && lacks(Attribute::AlgorithmParams)
    {
        let message = format!(
            "this kernel takes no algorithm parameters (that needs Linux 6.12); {} runs with its defaults",
            algorithm.name
        );
        problems.push(warn(&settings.algorithms_origin, message));
    }
    problems
}
