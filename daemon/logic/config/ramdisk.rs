//! Parses `[ramdisk.NAME]` into [`RamdiskSettings`], and into the zram devices of RAM disks on zram.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::device::{algorithms, mount_settings};
use super::fragment::Section;
use super::key::Key;
use super::keys::device;
use super::keys::ramdisk as keys;
use super::merge::Merged;
use super::schema::SectionKind;
use super::section::SectionReader;
use super::settings::{
    Backend, DeviceSettings, MountSettings, RamdiskSettings, Settings, SizeExpr, SizeRule,
};
use crate::finding::Finding;
use crate::origin::Origin;
use crate::proc::{HIGHEST_DEVICE, zram_number};
use crate::ramdisk::place::{STORES, at_or_above, is_at_or_below, place};
use crate::ramdisk::{KeepSettings, Mode};
use crate::request::Purpose;

/// The name is part of file names.
const LONGEST_NAME: usize = 64;
/// Default interval between saves with `persist = "snapshot"`.
const SAVE_INTERVAL: Duration = Duration::from_secs(3600);

/// Keys for RAM disks on zram only.
const ZRAM_KEYS: &[&Key] = &[
    &keys::FS_TYPE,
    &keys::COMPRESSION_ALGORITHM,
    &keys::ZRAM_DEVICE,
    &keys::ZRAM_RESIDENT_LIMIT,
    &keys::FORCE_RESIDENT_LIMIT,
];

/// Keys for RAM disks that are kept only.
const KEEP_KEYS: &[&Key] = &[
    &keys::SAVE_INTERVAL,
    &keys::KEEP,
    &keys::STORE,
    &keys::STORE_LIMIT,
    &keys::DAILY_BUDGET,
    &keys::ON_FAILURE,
    &keys::SEED,
    &keys::PRE_SAVE,
    &keys::POST_RESTORE,
    &keys::HOOK_TIME_LIMIT,
    &keys::TIME_LIMIT,
];

/// A RAM disk, and the zram device for it, if it is on zram.
pub(super) struct Ramdisk {
    settings: RamdiskSettings,
    /// Position of the store, or of the section.
    store_origin: Option<Origin>,
    zram: Option<Zram>,
}

struct Zram {
    number: Option<(u32, Origin)>,
    device: DeviceSettings,
}

/// Parses one section.
pub(super) fn ramdisk(
    section: &str,
    reader: &mut SectionReader<'_>,
    defaults: Option<&Section>,
) -> Option<Ramdisk> {
    let name = section.strip_prefix("ramdisk.")?;
    let enabled = reader.boolean(&keys::ENABLED);
    match wrong_name(name) {
        Some((message, hint)) => reader.fail(Finding::error(reader.origin(), message).remedy(hint)),
        None if reader.own(&keys::MOUNT_POINT).is_none() && !reader.is_misspelt(&keys::MOUNT_POINT) => {
            reader.fail(
                Finding::error(reader.origin(), "a RAM disk needs a mount-point")
                    .remedy(format!("write for example mount-point = {}", keys::MOUNT_POINT.example)),
            );
        }
        None => {}
    }
    let size = reader.size(&keys::SIZE);
    let inodes = reader.integer(&keys::INODES);
    let on_zram = reader.word(&keys::BACKEND).as_deref() == Some("zram");
    if on_zram {
        reader.misplaced(&[&keys::HUGE_PAGES], "a RAM disk on zram", "leave it out");
    } else {
        let hint = "write backend = \"zram\", or leave it out";
        reader.misplaced(ZRAM_KEYS, "a RAM disk on tmpfs", hint);
    }
    let huge = reader.word(&keys::HUGE_PAGES);
    let required = reader.boolean(&keys::REQUIRED);
    let (path, origin) = reader.path(&keys::MOUNT_POINT)?;
    let (keep, store_origin) = keep(name, &path, reader).unzip();
    let store_limit = reader.size(&keys::STORE_LIMIT);
    let daily_budget = reader.size(&keys::DAILY_BUDGET);
    let watch = match reader.own(&keys::SPACE_WATCH) {
        Some(_) => reader.boolean(&keys::SPACE_WATCH),
        None => keep.is_some(),
    };
    // The three file systems on zram do not differ in this.
    let fs_type = if on_zram { "ext4" } else { "tmpfs" };
    let mount = mount_settings(reader, fs_type, path, origin, &keys::OPTIONS, &keys::MODE);
    let size = size?;
    let zram = on_zram.then(|| zram(name, reader, defaults, &size, inodes, mount.clone()));
    let settings = RamdiskSettings {
        name: name.to_owned(),
        origin: reader.origin(),
        size,
        inodes,
        mount,
        backend: Backend::Tmpfs { huge },
        watch,
        required,
        keep,
        store_limit,
        daily_budget,
    };
    enabled.then_some(Ramdisk { settings, store_origin, zram })
}

/// What is wrong with the name of a RAM disk, and what it can consist of.
pub(super) fn wrong_name(name: &str) -> Option<(String, String)> {
    let mut letters = name.chars();
    let good = name.len() <= LONGEST_NAME
        && letters.next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (!good).then(|| {
        let hint = format!("use lower-case letters, digits and dashes, at most {LONGEST_NAME}");
        (format!("`{name}` cannot be the name of a RAM disk"), hint)
    })
}

/// The zram device of the RAM disk; its number may be assigned later.
fn zram(
    name: &str,
    reader: &mut SectionReader<'_>,
    defaults: Option<&Section>,
    size: &SizeExpr,
    inodes: Option<u64>,
    mount: MountSettings,
) -> Zram {
    let fs_type = reader.word(&keys::FS_TYPE).unwrap_or_default();
    let number = reader.integer(&keys::ZRAM_DEVICE);
    let number = number.map(|number| (number, reader.origin_of(&keys::ZRAM_DEVICE)));
    let key = &keys::COMPRESSION_ALGORITHM;
    let (algorithms, algorithms_origin) = match defaults.filter(|_| reader.own(key).is_none()) {
        Some(defaults) => {
            // Problems of `[defaults]` are reported with each device already.
            let mut reader = SectionReader::new(defaults, SectionKind::Defaults, None);
            let key = &device::COMPRESSION_ALGORITHM;
            (algorithms(&mut reader, key), reader.origin_of(key))
        }
        None => (algorithms(reader, key), reader.origin_of(key)),
    };
    let mut mkfs_options = Vec::new();
    if let Some(inodes) = inodes {
        if fs_type == "ext4" {
            mkfs_options = vec!["-N".to_owned(), inodes.to_string()];
        } else {
            let origin = reader.origin_of(&keys::INODES);
            let problem = Finding::error(origin, format!("{fs_type} has no fixed number of inodes"));
            reader.fail(problem.remedy("leave inodes out, or use fs-type = \"ext4\""));
        }
    }
    let limit = reader.size(&keys::ZRAM_RESIDENT_LIMIT);
    let forced = reader.boolean(&keys::FORCE_RESIDENT_LIMIT);
    let options = match mount.options.as_str() {
        "" => "discard".to_owned(),
        other => format!("discard,{other}"),
    };
    let device = DeviceSettings {
        number: 0,
        origin: reader.origin(),
        size: SizeRule::Expression { size: size.clone(), max: None },
        host_memory_limit: None,
        yields: false,
        resident_limit: limit,
        force_resident_limit: forced,
        algorithms,
        algorithms_origin,
        recompression: Vec::new(),
        recompression_origin: reader.origin(),
        writeback: None,
        purpose: Purpose::Filesystem {
            fs_type,
            mount: MountSettings { mount_point: place(name), options, unset: false, ..mount },
            mkfs_options,
        },
        label: None,
    };
    Zram { number, device }
}

/// How the contents are kept, if they are.
fn keep(name: &str, mount_point: &str, reader: &mut SectionReader<'_>) -> Option<(KeepSettings, Origin)> {
    let Some(mode) = reader.choice(&keys::PERSIST) else {
        let hint = "write persist = \"snapshot\", or leave it out";
        reader.misplaced(KEEP_KEYS, "a RAM disk whose contents are not kept", hint);
        return None;
    };
    let save_interval = match reader.own(&keys::SAVE_INTERVAL) {
        Some(_) => reader.span(&keys::SAVE_INTERVAL),
        None => (mode == Mode::Snapshot).then_some(SAVE_INTERVAL),
    };
    let (store, store_origin) = match reader.own(&keys::STORE) {
        Some(_) => reader.path(&keys::STORE).unwrap_or_default(),
        None => (format!("{STORES}/{name}"), reader.origin()),
    };
    if is_at_or_below(&store, mount_point) || is_at_or_below(&store, &place(name)) {
        let message = format!("the store {store} lies on the RAM disk itself, where it would be lost");
        let problem = Finding::error(store_origin.clone(), message);
        reader.fail(problem.remedy("name a directory on a disk"));
    }
    let keep = KeepSettings {
        mode,
        store,
        generations: reader.integer(&keys::KEEP)?,
        save_interval: save_interval.map(|span| span.as_secs()),
        on_failure: reader.choice(&keys::ON_FAILURE),
        seed: reader.boolean(&keys::SEED),
        pre_save: command(&keys::PRE_SAVE, reader),
        post_restore: command(&keys::POST_RESTORE, reader),
        hook_time_limit: reader.span(&keys::HOOK_TIME_LIMIT)?.as_secs(),
        time_limit: reader.span(&keys::TIME_LIMIT)?.as_secs(),
    };
    Some((keep, store_origin))
}

/// A program with arguments; run without a shell.
fn command(key: &Key, reader: &mut SectionReader<'_>) -> Vec<String> {
    let words = reader.words(key);
    if let Some((program, origin)) = words.first()
        && !program.starts_with('/')
    {
        let problem = Finding::error(origin.clone(), format!("`{program}` is not an absolute path"));
        reader.fail(problem.remedy("write the whole path of the program; there is no shell"));
    } else if let Some((program, origin)) = words.first()
        && words.len() == 1
        && program.contains(' ')
    {
        let list: Vec<String> = program.split_whitespace().map(|word| format!("\"{word}\"")).collect();
        let problem = Finding::error(
            origin.clone(),
            format!("`{program}` is not split into words, because there is no shell"),
        );
        reader.fail(problem.remedy(format!("write a list: {} = [{}]", key.name, list.join(", "))));
    }
    words.into_iter().map(|(word, _)| word).collect()
}

/// Names of the RAM disks whose store is that of another one, or in memory.
fn badly_stored(disks: &[Ramdisk], settings: &Settings, problems: &mut Vec<Finding>) -> BTreeSet<String> {
    let mut rejected = BTreeSet::new();
    let on_device = settings.devices.iter().filter_map(|device| match &device.purpose {
        Purpose::Filesystem { mount, .. } => Some(&mount.mount_point),
        _ => None,
    });
    let on_disk = disks.iter().map(|disk| &disk.settings.mount.mount_point);
    let mounts: BTreeSet<&str> = on_disk.chain(on_device).map(String::as_str).collect();
    let mut stores: BTreeMap<&str, &str> = BTreeMap::new();
    for disk in disks {
        let Ramdisk { settings: RamdiskSettings { name, keep: Some(keep), .. }, .. } = disk else { continue };
        // A store on its own RAM disk was refused before.
        let in_memory = at_or_above(&keep.store).find(|directory| mounts.contains(directory));
        let shared = *stores.entry(&keep.store).or_insert(name);
        let (message, hint) = match (in_memory, Some(shared).filter(|first| first != name)) {
            (Some(mount), _) => (
                format!("the store {} lies in memory, on {mount}, and would be lost", keep.store),
                "name a directory on a disk",
            ),
            (None, Some(other)) => (
                format!("the store {} is also that of [ramdisk.{other}]", keep.store),
                "give each RAM disk a directory of its own, or leave store out",
            ),
            (None, None) => continue,
        };
        let origin = disk.store_origin.clone().unwrap_or_default();
        problems.push(Finding::error(origin, message).remedy(hint));
        rejected.insert(name.clone());
    }
    rejected
}

/// Assigns a zram device to each RAM disk on zram: the configured one, or the next number after the highest in the
/// configuration, in the order of the RAM disks' names.
pub(super) fn number_devices(
    disks: Vec<Ramdisk>,
    merged: &Merged,
    settings: &mut Settings,
    problems: &mut Vec<Finding>,
) {
    // A section with a syntax error keeps its number: once it is corrected, its device must not be that of a RAM disk.
    let sections = merged.sections.keys().chain(&merged.broken);
    let mut taken: BTreeSet<u32> = sections.filter_map(|name| zram_number(name)).collect();
    taken.retain(|number| *number <= HIGHEST_DEVICE);
    let mut rejected = BTreeSet::new();
    for disk in &disks {
        let Some((number, origin)) = disk.zram.as_ref().and_then(|zram| zram.number.as_ref()) else {
            continue;
        };
        if !taken.insert(*number) {
            let problem = Finding::error(origin.clone(), format!("zram{number} is used by another section"));
            problems.push(problem.remedy("choose another number, or leave zram-device out"));
            rejected.insert(disk.settings.name.clone());
        }
    }
    rejected.extend(badly_stored(&disks, settings, problems));
    // Prefer numbers above all others, so that adding a section does not change the device of a RAM disk.
    let above = taken.last().map_or(0, |last| last + 1);
    let mut free = (above..=HIGHEST_DEVICE).chain((0..above).filter(|number| !taken.contains(number)));
    for Ramdisk { settings: mut disk, zram, .. } in disks {
        if rejected.contains(&disk.name) {
            continue;
        }
        if let Some(Zram { number, device }) = zram {
            let Some(number) = number.map_or_else(|| free.next(), |(number, _)| Some(number)) else {
                problems
                    .push(Finding::error(disk.origin.clone(), "there is no number left for its zram device"));
                continue;
            };
            disk.backend = Backend::Zram { number };
            settings.devices.push(DeviceSettings { number, ..device });
        }
        settings.ramdisks.push(disk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    #[test]
    fn a_name_has_lower_case_letters_digits_and_dashes() {
        for name in ["a", "0", "var-log-2", "a-"] {
            assert_eq!(wrong_name(name), None, "{name}");
        }
        for name in ["", "-a", "A", "aB", "a_b", "a b", "../x", "ż"] {
            assert!(wrong_name(name).is_some(), "{name}");
        }
    }

    /// The directory there is ours, so no permissions of it are missing in the configuration.
    #[test]
    fn a_ram_disk_on_zram_is_a_file_system_with_discard_that_is_mounted_below_run() {
        let section = "[ramdisk.a]\nmount-point = \"/srv/a\"\nbackend = \"zram\"\ninodes = 5\n";
        for (options, expected) in [
            ("", "discard,nosuid,nodev"),
            ("options = \"\"\n", "discard"),
            ("options = \"ro\"\n", "discard,ro"),
        ] {
            let settings = load(&[("f".into(), format!("{section}{options}"))], "").settings;
            let Purpose::Filesystem { fs_type, mount, mkfs_options } = &settings.devices[0].purpose else {
                panic!("{settings:?}")
            };
            assert_eq!((fs_type.as_str(), mkfs_options.join(" ").as_str()), ("ext4", "-N 5"));
            assert_eq!((mount.mount_point.as_str(), mount.options.as_str()), (place("a").as_str(), expected));
            assert!(!mount.unset && settings.ramdisks[0].mount.unset, "{mount:?}");
        }
    }
}
