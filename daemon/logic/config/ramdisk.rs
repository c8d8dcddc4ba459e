//! `[ramdisk.NAME]` → [`RamDiskSettings`], and the zram devices that hold some of them.

use std::collections::BTreeSet;
use std::time::Duration;

use super::assemble::{algorithms, built_in, mount_settings, origin_of};
use super::fragment::Section;
use super::merge::Merged;
use super::problem::{Origin, Problem};
use super::schema::SectionKind;
use super::section::SectionReader;
use super::settings::{
    AlgorithmChoice, Backend, DeviceSettings, KeepSettings, MountSettings, RamDiskSettings, Role, Settings,
    SizeExpr, SizeRule,
};
use crate::logic::disk::{Mode, OnFailure};
use crate::logic::disk_place::{STORES, is_at_or_below, place};
use crate::logic::proc::{HIGHEST_DEVICE, zram_number};

/// What tmpfs(5) itself does.
const DEFAULT_SIZE: &str = "50%";
/// It becomes part of the name of a file.
const LONGEST_NAME: usize = 64;
/// How many good snapshots are kept.
const GENERATIONS: u32 = 2;
const MOST_GENERATIONS: i64 = 1000;
const SAVE_INTERVAL: Duration = Duration::from_secs(3600);
const HOOK_TIME_LIMIT: Duration = Duration::from_secs(30);
const TIME_LIMIT: Duration = Duration::from_secs(300);
/// Longer ones mean that somebody forgot a unit; a save more often than this only wears the store.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(10);

/// A disk, and what it asks of a zram device if one is to hold it.
pub(super) struct Disk {
    settings: RamDiskSettings,
    zram: Option<Zram>,
}

struct Zram {
    number: Option<(u32, Origin)>,
    device: DeviceSettings,
}

/// Reads one section.
pub(super) fn ramdisk(
    name: &str,
    reader: &mut SectionReader<'_>,
    defaults: Option<&Section>,
) -> Option<Disk> {
    reader.unknown_keys(SectionKind::RamDisk);
    check_name(name, reader);
    let enabled = reader.boolean("enabled", true);
    if reader.own("mount-point").is_none() {
        reader.fail(
            Problem::error(reader.origin(), "a RAM disk needs a mount-point")
                .hint("write for example mount-point = \"/var/cache/scratch\""),
        );
    }
    let size = match reader.own("size") {
        Some(size) => reader.size_of(size, false),
        None => built_in(DEFAULT_SIZE, reader),
    };
    let inodes = reader.integer("inodes", 1, i64::MAX, "100000").and_then(|count| u64::try_from(count).ok());
    let on_zram = reader.word("backend", &["tmpfs", "zram"], "tmpfs") == "zram";
    let misplaced: &[&str] = if on_zram {
        &["huge-pages"]
    } else {
        &["fs-type", "compression-algorithm", "zram-device", "zram-resident-limit", "force-resident-limit"]
    };
    let hint = if on_zram { "leave it out" } else { "write backend = \"zram\", or leave it out" };
    misplace(reader, misplaced, &format!("a RAM disk on {}", if on_zram { "zram" } else { "tmpfs" }), hint);
    let huge = reader.own("huge-pages").is_some().then(|| {
        reader.word("huge-pages", &["never", "always", "within_size", "advise"], "never").to_owned()
    });
    let required = reader.boolean("required", false);
    let (path, origin) = reader.path("mount-point")?;
    let keep = keep(name, &path, reader);
    let watch = reader.boolean("space-watch", keep.is_some());
    let mount = mount_settings(reader, path, origin, "nosuid,nodev", Some(0o755));
    let size = size?;
    let zram = on_zram.then(|| zram(name, reader, defaults, &size, inodes, mount.clone()));
    let settings = RamDiskSettings {
        name: name.to_owned(),
        origin: reader.origin(),
        size,
        inodes,
        mount,
        backend: Backend::Tmpfs { huge },
        watch,
        required,
        keep,
    };
    enabled.then_some(Disk { settings, zram })
}

fn check_name(name: &str, reader: &mut SectionReader<'_>) {
    let mut letters = name.chars();
    let good = name.len() <= LONGEST_NAME
        && letters.next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !good {
        let problem = Problem::error(reader.origin(), format!("`{name}` cannot be the name of a RAM disk"));
        reader
            .fail(problem.hint(format!("use lower-case letters, digits and dashes, at most {LONGEST_NAME}")));
    }
}

/// Complains about keys that belong to something else.
fn misplace(reader: &mut SectionReader<'_>, keys: &[&str], what: &str, hint: &str) {
    for key in keys {
        if let Some(assignment) = reader.own(key) {
            let problem =
                Problem::error(assignment.key_origin.clone(), format!("`{key}` means nothing for {what}"));
            reader.fail(problem.hint(hint));
        }
    }
}

/// The device that is to hold the disk; its number may come later.
fn zram(
    name: &str,
    reader: &mut SectionReader<'_>,
    defaults: Option<&Section>,
    size: &SizeExpr,
    inodes: Option<u64>,
    mount: MountSettings,
) -> Zram {
    let fs_type = reader.word("fs-type", &["ext4", "btrfs", "xfs"], "ext4").to_owned();
    let number =
        reader.integer("zram-device", 0, HIGHEST_DEVICE.into(), "7").and_then(|n| u32::try_from(n).ok());
    let number = number.map(|number| (number, origin_of(reader, "zram-device")));
    let key = "compression-algorithm";
    let (algorithms, algorithms_origin) = match defaults.filter(|_| reader.own(key).is_none()) {
        Some(defaults) => {
            // What is wrong with the defaults is told for every device already.
            let mut reader = SectionReader::new(defaults, None);
            (algorithms(&mut reader, key, true), origin_of(&reader, key))
        }
        None => (algorithms(reader, key, true), origin_of(reader, key)),
    };
    let mut mkfs_options = Vec::new();
    if let Some(inodes) = inodes {
        if fs_type == "ext4" {
            mkfs_options = vec!["-N".to_owned(), inodes.to_string()];
        } else {
            let origin = origin_of(reader, "inodes");
            let problem = Problem::error(origin, format!("{fs_type} has no fixed number of inodes"));
            reader.fail(problem.hint("leave inodes out, or use fs-type = \"ext4\""));
        }
    }
    let limit = reader.size("zram-resident-limit", true);
    let forced = reader.boolean("force-resident-limit", false);
    let options = match mount.options.as_str() {
        "" => "discard".to_owned(),
        other => format!("discard,{other}"),
    };
    let device = DeviceSettings {
        number: 0,
        origin: reader.origin(),
        size: SizeRule::Expression { size: size.clone(), max: None },
        host_memory_limit: None,
        resident_limit: limit,
        force_resident_limit: forced,
        algorithms: if algorithms.is_empty() { vec![AlgorithmChoice::Auto] } else { algorithms },
        algorithms_origin,
        recompression: Vec::new(),
        recompression_origin: reader.origin(),
        writeback: None,
        role: Role::Filesystem {
            fs_type,
            mount: MountSettings { mount_point: place(name), options, ..mount },
            mkfs_options,
        },
        label: None,
    };
    Zram { number, device }
}

/// How the contents are kept, if they are.
fn keep(name: &str, mount_point: &str, reader: &mut SectionReader<'_>) -> Option<KeepSettings> {
    let mode = match reader.word("persist", &["none", "skeleton", "snapshot"], "none") {
        "skeleton" => Mode::Skeleton,
        "snapshot" => Mode::Snapshot,
        _ => {
            let keys = [
                "save-interval",
                "keep",
                "store",
                "store-limit",
                "on-failure",
                "seed",
                "pre-save",
                "post-restore",
                "hook-time-limit",
                "time-limit",
            ];
            let hint = "write persist = \"snapshot\", or leave it out";
            misplace(reader, &keys, "a RAM disk whose contents are not kept", hint);
            return None;
        }
    };
    let interval = match reader.own("save-interval") {
        None if mode == Mode::Snapshot => Some(SAVE_INTERVAL),
        None => None,
        Some(_) => save_interval(reader),
    };
    let generations = reader.integer("keep", 1, MOST_GENERATIONS, "2").and_then(|n| u32::try_from(n).ok());
    let (store, store_origin) = match reader.own("store") {
        Some(_) => reader.path("store").unwrap_or_default(),
        None => (format!("{STORES}/{name}"), reader.origin()),
    };
    if is_at_or_below(&store, mount_point) || is_at_or_below(&store, &place(name)) {
        let message = format!("the store {store} lies on the RAM disk itself, where it would be lost");
        let problem = Problem::error(store_origin.clone(), message);
        reader.fail(problem.hint("name a folder on a disk"));
    }
    let on_failure = reader.own("on-failure").is_some().then(|| {
        match reader.word("on-failure", &["empty", "passthrough", "fail"], "empty") {
            "passthrough" => OnFailure::Passthrough,
            "fail" => OnFailure::Fail,
            _ => OnFailure::Empty,
        }
    });
    let time_limit = reader.duration("time-limit", TIME_LIMIT);
    let hook_time_limit = reader.duration("hook-time-limit", HOOK_TIME_LIMIT);
    for (key, limit) in [("time-limit", time_limit), ("hook-time-limit", hook_time_limit)] {
        if limit.is_zero() {
            let problem = Problem::error(origin_of(reader, key), "nothing is done in no time");
            reader.fail(problem.hint("write for example \"5min\""));
        }
    }
    Some(KeepSettings {
        mode,
        store,
        store_origin,
        store_limit: reader.size("store-limit", true),
        generations: generations.unwrap_or(GENERATIONS),
        save_interval: interval,
        on_failure,
        seed: reader.boolean("seed", true),
        pre_save: command("pre-save", reader),
        post_restore: command("post-restore", reader),
        hook_time_limit,
        time_limit,
    })
}

fn save_interval(reader: &mut SectionReader<'_>) -> Option<Duration> {
    let origin = origin_of(reader, "save-interval");
    if reader.is_text("save-interval", "never") {
        return None;
    }
    let interval = reader.duration("save-interval", SAVE_INTERVAL);
    if interval < SHORTEST_INTERVAL {
        let problem = Problem::error(origin, "an interval of less than 10 s would do nothing but save");
        reader.fail(problem.hint("write for example \"15min\", or \"never\""));
    }
    Some(interval)
}

/// A program with its words; no shell is between.
fn command(key: &str, reader: &mut SectionReader<'_>) -> Vec<String> {
    let words = reader.words(key, "[\"/usr/local/bin/checkpoint\", \"--all\"]").unwrap_or_default();
    if let Some((program, origin)) = words.first()
        && !program.starts_with('/')
    {
        let problem = Problem::error(origin.clone(), format!("`{program}` is not an absolute path"));
        reader.fail(problem.hint("write the whole path of the program; there is no shell"));
    } else if let Some((program, origin)) = words.first()
        && words.len() == 1
        && program.contains(' ')
    {
        let list: Vec<String> = program.split_whitespace().map(|word| format!("\"{word}\"")).collect();
        let problem = Problem::error(origin.clone(), format!("there is no shell to take `{program}` apart"));
        reader.fail(problem.hint(format!("write a list: {key} = [{}]", list.join(", "))));
    }
    words.into_iter().map(|(word, _)| word).collect()
}

/// Gives the disks that are on zram a device each: the one that is asked for, or the next after the last that is named
/// anywhere, in the order of the disks' names.
pub(super) fn number_devices(
    disks: Vec<Disk>,
    merged: &Merged,
    settings: &mut Settings,
    problems: &mut Vec<Problem>,
) {
    let mut taken: BTreeSet<u32> = merged.sections.keys().filter_map(|name| zram_number(name)).collect();
    taken.retain(|number| *number <= HIGHEST_DEVICE);
    let mut rejected = Vec::new();
    for disk in &disks {
        let Some((number, origin)) = disk.zram.as_ref().and_then(|zram| zram.number.as_ref()) else {
            continue;
        };
        if !taken.insert(*number) {
            let problem = Problem::error(origin.clone(), format!("zram{number} is used by another section"));
            problems.push(problem.hint("choose another number, or leave zram-device out"));
            rejected.push(disk.settings.name.clone());
        }
    }
    // Above what is taken as long as there is something, so that another section does not move a disk to another device.
    let above = taken.last().map_or(0, |last| last + 1);
    let mut free = (above..=HIGHEST_DEVICE).chain((0..above).filter(|number| !taken.contains(number)));
    for Disk { settings: mut disk, zram } in disks {
        if rejected.contains(&disk.name) {
            continue;
        }
        if let Some(Zram { number, device }) = zram {
            let Some(number) = number.map_or_else(|| free.next(), |(number, _)| Some(number)) else {
                problems
                    .push(Problem::error(disk.origin.clone(), "there is no number left for its zram device"));
                continue;
            };
            disk.backend = Backend::Zram { number };
            settings.devices.push(DeviceSettings { number, ..device });
        }
        settings.ramdisks.push(disk);
    }
}
