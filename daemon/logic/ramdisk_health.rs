//! Findings about RAM disks; see also [`crate::health`].

use std::time::Duration;

use crate::duration;
use crate::finding::{Code, Finding, Level, is_nearly_full};
use crate::human::human;
use crate::ramdisk::status::{LoadState, RamdiskStatus, SaveResult};
use crate::sample::{RamdiskView, Snapshot};

/// Findings about one RAM disk.
pub(crate) fn ramdisk_findings(disk: &RamdiskView, found: &mut Vec<Finding>) {
    let name = disk.name.as_str();
    let status = &disk.status;
    let mut add = |level, code, message, remedy: String| {
        found.push(Finding::new(level, code, name, message, remedy));
    };
    if disk.mounted && is_nearly_full(disk.used_bytes, disk.size_bytes) {
        add(
            Level::Warning,
            Code::RamdiskNearlyFull,
            format!(
                "{} of the {} of {name} ({}) are in use",
                human(disk.used_bytes),
                human(disk.size_bytes),
                disk.mount_point
            ),
            if disk.device.is_empty() {
                format!("run `zramdctl ramdisk resize {name} SIZE`, and raise size of [ramdisk.{name}]")
            } else {
                format!("remove what is not needed, or raise size of [ramdisk.{name}] and reboot")
            },
        );
    }
    let log = format!("see `journalctl -b -u zramd-ramdisk@{name}`");
    let refuses =
        matches!(status.load_state, LoadState::Fallback | LoadState::Empty) && !status.refused.is_empty();
    // Those that the load passed over are part of its finding, the others have their own.
    let was_tried = |generation: u64| {
        (refuses || status.load_state == LoadState::Passthrough) && generation > status.generation
    };
    let broken = status.snapshots.iter().filter(|line| !line.good).map(|line| line.generation);
    let (tried, broken): (Vec<u64>, Vec<u64>) = broken.partition(|generation| was_tried(*generation));
    let [tried, broken] =
        [tried, broken].map(|numbers| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", "));
    let delete = |numbers: &str| match numbers {
        "" => String::new(),
        _ => format!(
            "; `zramdctl ramdisk delete {name} SNAPSHOT` deletes one that cannot be loaded ({numbers})"
        ),
    };
    let newer = status.held().find(|(number, _)| refuses && *number > status.generation);
    // The newest one is part of a finding below.
    for (number, hold) in status.held().filter(|held| Some(*held) != newer) {
        let (why, remedy) = hold.report(&disk.name, disk.room(), number);
        add(
            Level::Warning,
            Code::SnapshotHeld,
            format!("snapshot {number} of {name} was not loaded, or not completely, and is pinned: {why}"),
            remedy,
        );
    }
    match status.load_state {
        LoadState::Failed => {
            add(
                Level::Error,
                Code::RamdiskNotLoaded,
                format!("{name} could not be loaded: {}", status.load_message),
                log.clone(),
            );
        }
        LoadState::Passthrough => add(
            Level::Error,
            Code::RamdiskPassthrough,
            format!(
                "{name} is not in use: {}; writes to {} go to the disk below",
                status.load_message, disk.mount_point
            ),
            format!("check `zramdctl ramdisk snapshots {name}`; {log}{}", delete(&tried)),
        ),
        LoadState::Fallback => {
            let why = if status.refused.is_empty() { String::new() } else { format!(": {}", status.refused) };
            add(
                Level::Warning,
                Code::RamdiskFallback,
                format!(
                    "{name} was filled from snapshot {}, because newer ones cannot be loaded{why}",
                    status.generation
                ),
                match newer {
                    Some((number, hold)) => hold.report(&disk.name, disk.room(), number).1,
                    None => format!("check its store, which may be failing: {log}{}", delete(&tried)),
                },
            );
        }
        LoadState::Empty if !status.refused.is_empty() => add(
            Level::Error,
            Code::RamdiskBeganEmpty,
            format!(
                "{name} started empty, because its newest snapshot could not be loaded: {}",
                status.refused
            ),
            match newer {
                Some((number, hold)) => hold.report(&disk.name, disk.room(), number).1,
                None => format!(
                    "check `zramdctl ramdisk snapshots {name}`, fix the cause, then run `zramdctl ramdisk restore {name} SNAPSHOT`{}",
                    delete(&tried)
                ),
            },
        ),
        LoadState::Empty | LoadState::Loading | LoadState::Loaded => {}
    }
    if status.unclean {
        let age = match status.made_age_usec {
            0 => String::new(),
            usec => {
                format!(": its contents were {} old", duration::text(Duration::from_secs(usec / 1_000_000)))
            }
        };
        add(
            Level::Warning,
            Code::RamdiskUnclean,
            format!("the last boot ended without saving {name}{age}"),
            format!("if that happens often, shorten save-interval of [ramdisk.{name}]"),
        );
    }
    if !status.store_problem.is_empty() {
        add(
            Level::Error,
            Code::StoreNotWritable,
            format!("{name}: {}", status.store_problem),
            format!(
                "fix the cause, then run `zramdctl ramdisk save {name}`; otherwise the contents of {name} are lost"
            ),
        );
    }
    if status.last_save_result == SaveResult::Failed {
        add(
            Level::Error,
            Code::SaveFailed,
            format!("the last save of {name} failed: {}", status.last_save_message),
            format!("fix the cause, then run `zramdctl ramdisk save {name}`"),
        );
    }
    if !broken.is_empty() {
        add(
            Level::Warning,
            Code::SnapshotBroken,
            format!("snapshots of {name} that cannot be loaded: {broken}"),
            format!(
                "check the disk that holds the store; `zramdctl ramdisk delete {name} SNAPSHOT` deletes one"
            ),
        );
    }
    if !status.damage.is_empty() {
        add(
            Level::Error,
            Code::SnapshotDamaged,
            format!("the newest snapshot is damaged: {}", status.damage),
            format!(
                "run `zramdctl ramdisk save {name}`, which writes it again, and check the disk that holds the store"
            ),
        );
    }
    if !status.set_aside.is_empty() {
        add(
            Level::Warning,
            Code::SnapshotCorrupt,
            format!("damaged snapshots of {name} were set aside: {}", status.set_aside.join(", ")),
            format!(
                "check the disk that holds the store; `zramdctl ramdisk delete {name} SNAPSHOT` removes a set-aside snapshot"
            ),
        );
    }
    if !status.old_snapshots.is_empty() {
        add(
            Level::Warning,
            Code::SnapshotOld,
            format!("snapshots of {name} in an earlier format are not loaded"),
            status.old_snapshots.clone(),
        );
    }
    if status.daily_budget_bytes > 0 && status.written_day_bytes > status.daily_budget_bytes {
        add(
            Level::Warning,
            Code::RamdiskOverBudget,
            format!(
                "saves of {name} wrote {} in 24 hours, and daily-budget is {}",
                human(status.written_day_bytes),
                human(status.daily_budget_bytes)
            ),
            format!("set a longer save-interval in [ramdisk.{name}], or a larger daily-budget"),
        );
    }
    found.extend(store_nearly_full(name, status, status.store_free_bytes));
}

/// A finding if the next save has too little space in the store, with `free_bytes` free.
pub fn store_nearly_full(name: &str, status: &RamdiskStatus, free_bytes: u64) -> Option<Finding> {
    let room = free_bytes.saturating_add(status.next_spare_bytes);
    (status.next_save_bytes > room).then(|| {
        let message = format!(
            "the store of {name} has {} for the next save, which needs about {}",
            human(room),
            human(status.next_save_bytes)
        );
        let remedy = format!(
            "make room there, for example with `zramdctl ramdisk delete {name} SNAPSHOT`, or set a smaller keep or another store in [ramdisk.{name}]"
        );
        Finding::new(Level::Warning, Code::StoreNearlyFull, name, message, remedy)
    })
}

/// Findings about all RAM disks together.
pub(crate) fn ramdisks_findings(snapshot: &Snapshot, found: &mut Vec<Finding>) {
    let on_tmpfs = snapshot.ramdisks.iter().filter(|disk| disk.device.is_empty());
    let sizes = on_tmpfs.map(|disk| disk.size_bytes);
    if let Some((message, remedy)) = excess(sizes, snapshot.memory.total_bytes) {
        found.push(Finding::new(Level::Warning, Code::RamdisksExceedMemory, "", message, remedy));
    }
}

/// Message and remedy, if RAM disks on tmpfs of these sizes can hold more than the memory (0: unknown).
pub(crate) fn excess(sizes: impl Iterator<Item = u64> + Clone, memory: u64) -> Option<(String, String)> {
    let sum = sizes.clone().fold(0, u64::saturating_add);
    if memory == 0 || sum <= memory {
        return None;
    }
    let (sum, memory) = (human(sum), human(memory));
    Some(if sizes.count() == 1 {
        (
            format!("the RAM disk can hold {sum}, more than the {memory} of memory of this machine"),
            "lower its size, so that a full RAM disk cannot leave programs without memory".to_owned(),
        )
    } else {
        (
            format!(
                "the RAM disks can hold {sum} together, more than the {memory} of memory of this machine"
            ),
            "lower size of some of them, so that full RAM disks cannot leave programs without memory"
                .to_owned(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::{Surroundings, findings};
    use crate::ramdisk::hold::Hold;
    use crate::ramdisk::status::SnapshotLine;
    use crate::sample::MemoryView;

    #[test]
    fn each_fault_of_a_disk_is_found() {
        let disk = |change: fn(&mut RamdiskView)| {
            let mut disk = RamdiskView {
                name: "logs".to_owned(),
                mounted: true,
                size_bytes: 1 << 30,
                ..RamdiskView::default()
            };
            change(&mut disk);
            let memory = MemoryView { total_bytes: 4 << 30, ..Default::default() };
            let snapshot = Snapshot { ramdisks: vec![disk], memory, ..Snapshot::default() };
            findings(&snapshot, &Surroundings::default())
                .into_iter()
                .map(|found| found.code.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(disk(|_| {}), [""; 0]);
        assert_eq!(disk(|disk| disk.used_bytes = 1 << 30), ["ramdisk-nearly-full"]);
        assert_eq!(disk(|disk| disk.size_bytes = 5 << 30), ["ramdisks-exceed-memory"]);
        assert_eq!(disk(|disk| disk.status.load_state = LoadState::Failed), ["ramdisk-not-loaded"]);
        assert_eq!(disk(|disk| disk.status.load_state = LoadState::Passthrough), ["ramdisk-passthrough"]);
        assert_eq!(disk(|disk| disk.status.load_state = LoadState::Fallback), ["ramdisk-fallback"]);
        assert_eq!(disk(|disk| disk.status.refused = "it is too small".to_owned()), ["ramdisk-began-empty"]);
        assert_eq!(disk(|disk| disk.status.unclean = true), ["ramdisk-unclean"]);
        let held = |disk: &mut RamdiskView| {
            let hold = Some(Hold::Size { needed: 6 << 20, size: 4 << 20 });
            disk.status.snapshots.push(SnapshotLine {
                generation: 2,
                good: true,
                held: hold,
                ..SnapshotLine::default()
            });
        };
        assert_eq!(disk(held), ["snapshot-held"]);
        assert_eq!(disk(|disk| disk.status.next_save_bytes = 1), ["store-nearly-full"]);
        let written =
            |disk: &mut RamdiskView| (disk.status.written_day_bytes, disk.status.daily_budget_bytes) = (2, 1);
        assert_eq!(disk(written), ["ramdisk-over-budget"]);
        assert_eq!(disk(|disk| disk.status.written_day_bytes = 2), [""; 0], "without a budget");
        let all =
            |disk: &mut RamdiskView| (disk.status.written_day_bytes, disk.status.daily_budget_bytes) = (2, 2);
        assert_eq!(disk(all), [""; 0], "a budget may be used up");
        let broken = |disk: &mut RamdiskView| disk.status.snapshots.push(SnapshotLine::default());
        assert_eq!(disk(broken), ["snapshot-broken"]);
        assert_eq!(disk(|disk| disk.status.store_problem = "it is full".to_owned()), ["store-not-writable"]);
        assert_eq!(disk(|disk| disk.status.last_save_result = SaveResult::Failed), ["save-failed"]);
        assert_eq!(disk(|disk| disk.status.damage = "a file".to_owned()), ["snapshot-damaged"]);
        assert_eq!(disk(|disk| disk.status.set_aside.push("gen-1.bad".to_owned())), ["snapshot-corrupt"]);
        assert_eq!(disk(|disk| disk.status.old_snapshots = "unpack them".to_owned()), ["snapshot-old"]);
    }

    #[test]
    fn a_snapshot_that_cannot_be_loaded_has_one_finding() {
        let found = |state, generation| {
            let mut disk = RamdiskView { name: "logs".to_owned(), ..RamdiskView::default() };
            let line =
                |generation, good, held| SnapshotLine { generation, good, held, ..SnapshotLine::default() };
            let hold = Some(Hold::Size { needed: 6 << 20, size: 4 << 20 });
            disk.status.load_state = state;
            disk.status.generation = generation;
            disk.status.refused = "its end is missing".to_owned();
            disk.status.snapshots = vec![line(4, false, hold), line(3, true, None), line(2, false, None)];
            let mut found = Vec::new();
            ramdisk_findings(&disk, &mut found);
            found
                .into_iter()
                .map(|found| (found.code.to_string(), found.message, found.remedy))
                .collect::<Vec<_>>()
        };
        let passed_over = found(LoadState::Fallback, 3);
        let codes: Vec<&str> = passed_over.iter().map(|(code, ..)| code.as_str()).collect();
        assert_eq!(codes, ["ramdisk-fallback", "snapshot-broken"]);
        assert!(passed_over[0].2.ends_with("deletes one that cannot be loaded (4)"), "{passed_over:?}");
        assert_eq!(passed_over[1].1, "snapshots of logs that cannot be loaded: 2");
        let broken_since = found(LoadState::Fallback, 2);
        assert!(broken_since[0].2.ends_with("(4)"), "{broken_since:?}");
        assert_eq!(broken_since[1].1, "snapshots of logs that cannot be loaded: 2");
        for (state, code) in
            [(LoadState::Empty, "ramdisk-began-empty"), (LoadState::Passthrough, "ramdisk-passthrough")]
        {
            let found = found(state, 0);
            assert_eq!((found.len(), found[0].0.as_str()), (1, code), "{found:?}");
            assert!(found[0].2.ends_with("(4, 2)"), "{found:?}");
        }
        let later = found(LoadState::Loaded, 3);
        assert_eq!(later[0].1, "snapshots of logs that cannot be loaded: 4, 2");
    }

    #[test]
    fn the_remedy_for_a_fallback_names_its_cause() {
        let remedies = |loaded, held| {
            let mut disk = RamdiskView { name: "logs".to_owned(), ..RamdiskView::default() };
            disk.status.load_state = LoadState::Fallback;
            disk.status.generation = loaded;
            disk.status.refused = "it is too large".to_owned();
            disk.status.snapshots =
                vec![SnapshotLine { generation: 2, good: true, held, ..SnapshotLine::default() }];
            let mut found = Vec::new();
            ramdisk_findings(&disk, &mut found);
            found.into_iter().map(|found| found.remedy).collect::<Vec<_>>().join("\n")
        };
        let size = remedies(1, Some(Hold::Size { needed: 13 << 19, size: 4 << 20 }));
        assert!(size.contains("at least 7MiB") && !size.contains("failing"), "{size}");
        let unknown = remedies(1, None);
        assert!(unknown.contains("store, which may be failing"), "{unknown}");
        assert!(
            unknown.ends_with("`journalctl -b -u zramd-ramdisk@logs`"),
            "nothing can be deleted: {unknown}"
        );
        // The one that was loaded lacks files; those that were passed over are gone.
        let partly = remedies(2, Some(Hold::Other { why: "a file could not be created".to_owned() }));
        assert!(
            partly.contains("restore logs 2") && partly.contains("store, which may be failing"),
            "{partly}"
        );
    }
}
