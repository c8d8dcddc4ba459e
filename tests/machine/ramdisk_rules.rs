//! Rules of snapshots on mounted file systems: a disk that is too small, a full store, a snapshot of btrfs.

use std::fs::{self, File};
use std::process::Command;

use crate::support::mounted::Mounted;
use crate::support::ramdisk::{FORCED, Trial, noise, picture, small};
use crate::support::{alone, may_mount};
use engine::ErrorKind;
use host::linux::ramdisk::Calls;
use logic::ramdisk::hold::Hold;
use logic::ramdisk::manifest::Consistency;
use logic::ramdisk::state::{Outcome, SaveOutcome};
use logic::ramdisk::{OnFailure, SaveReason};
use store::{self, Request, Saved};

#[test]
fn a_disk_that_is_too_small_is_refused_with_its_largest_files() {
    if !may_mount() {
        return;
    }
    let mut trial = Trial::with(small);
    fs::write(trial.place().join("journal"), noise(3 << 20)).unwrap();
    trial.save().unwrap();
    trial.disk.place = trial.path("smaller");
    let _mounted = Mounted::tmpfs(trial.place(), "size=2m");
    let error = trial.load().unwrap_err();
    assert_eq!(error.kind, ErrorKind::DiskFull);
    assert!(!error.message.contains("journal") && error.private.contains("journal"), "{error:?}");
    assert!(picture(trial.place()).len() == 1);
    // With any policy that generation is kept.
    trial.disk.keep.on_failure = Some(OnFailure::Empty);
    let loaded = trial.load().unwrap();
    assert_eq!(loaded.outcome, Outcome::Empty);
    assert!(loaded.warnings[0].contains("journal (3.0 MiB)"), "{:?}", loaded.warnings);
    for number in 0..5 {
        fs::write(trial.place().join(number.to_string()), "x").unwrap();
        trial.save().unwrap();
    }
    assert_eq!(trial.generations(), [6, 5, 1]);
}

#[test]
fn a_disk_with_too_few_inodes_is_refused() {
    if !may_mount() {
        return;
    }
    let mut trial = Trial::with(small);
    trial.save().unwrap();
    trial.disk.place = trial.path("smaller");
    let _mounted = Mounted::tmpfs(trial.place(), "nr_inodes=4");
    let error = trial.load().unwrap_err();
    assert_eq!(error.kind, ErrorKind::DiskFull, "{error}");
}

#[test]
fn a_full_store_keeps_what_it_has() {
    if !may_mount() {
        return;
    }
    let mut trial = Trial::new();
    trial.set_store(trial.path("small store"));
    let _mounted = Mounted::tmpfs(trial.disk.store(), "size=1m,mode=700");
    trial.load().unwrap();
    small(trial.place());
    trial.save().unwrap();
    let old = picture(trial.place());
    // Refused during the save: how much is new is not known before.
    fs::write(trial.place().join("large"), noise(2 << 20)).unwrap();
    let error = trial.save().unwrap_err();
    assert_eq!(error.kind, ErrorKind::StoreFull, "{error}");
    let status = store::status(&Calls::new(), &trial.disk).unwrap();
    let save = status.state.save.unwrap();
    assert_eq!((save.outcome, save.message), (SaveOutcome::Failed, Some(error.message)));
    trial.verify(1).unwrap();
    trial.reboot();
    assert_eq!(trial.load().unwrap().generation, Some(1));
    assert!(picture(trial.place()) == old);
}

#[test]
fn a_save_of_btrfs_is_consistent() {
    let Some(_alone) = alone() else { return };
    let trial = Trial::new();
    let image = trial.path("image");
    let Some(_mounted) = Mounted::image(&image, "btrfs", 128 << 20, trial.place()) else { return };
    trial.load().unwrap();
    let (early, late) = (trial.place().join("early"), trial.place().join("late"));
    fs::write(&early, "old").unwrap();
    fs::write(&late, "old").unwrap();
    let mut changed = false;
    // Called after the first file was read; the others change before they are read.
    let saved = store::save(&Calls::new(), &trial.disk, FORCED, &mut |progress| {
        if progress.done_bytes > 0 && !changed {
            changed = true;
            fs::write(&late, "something new").unwrap();
            fs::remove_file(&early).unwrap();
            fs::write(trial.place().join("later"), "more").unwrap();
        }
        true
    });
    let Saved::Written { manifest, .. } = saved.unwrap() else { panic!("nothing was written") };
    assert!(changed && manifest.consistency == Consistency::Exact, "{manifest:?}");
    assert!(!trial.place().join(".zramd-snapshot").exists(), "the snapshot goes when it was read");
    let to = trial.path("exported");
    store::export(&Calls::new(), &trial.disk, None, &to, &mut |_| true).unwrap();
    let read = |name: &str| fs::read_to_string(to.join(name)).unwrap();
    assert_eq!((read("early"), read("late"), to.join("later").exists()), ("old".into(), "old".into(), false));
}

/// Creates empty files of 64 KiB each.
fn holes(trial: &Trial, count: usize) {
    for number in 0..count {
        File::create(trial.place().join(format!("s{number}"))).unwrap().set_len(64 << 10).unwrap();
    }
}

#[test]
fn small_files_of_holes_need_no_space_on_the_disk() {
    if !may_mount() {
        return;
    }
    let trial = Trial::new();
    let options = "size=1m,nr_inodes=0";
    let mounted = Mounted::tmpfs(trial.place(), options);
    trial.load().unwrap();
    fs::write(trial.place().join("precious"), "x").unwrap();
    holes(&trial, 40);
    let Saved::Written { manifest, warnings, .. } = trial.save().unwrap() else { panic!("not written") };
    assert_eq!((manifest.contents.occupied_bytes, warnings.len()), (4096, 0), "{warnings:?}");
    let before = picture(trial.place());
    drop(mounted);
    let _mounted = Mounted::tmpfs(trial.place(), options);
    assert_eq!(trial.load().unwrap().outcome, Outcome::Loaded);
    assert!(picture(trial.place()) == before);
}

#[test]
fn small_files_of_holes_need_no_space_in_the_store() {
    if !may_mount() {
        return;
    }
    let mut trial = Trial::new();
    trial.set_store(trial.path("small store"));
    let _store = Mounted::tmpfs(trial.disk.store(), "size=4m,mode=700");
    let _mounted = Mounted::tmpfs(trial.place(), "size=8m,nr_inodes=0");
    trial.load().unwrap();
    fs::write(trial.place().join("precious"), noise(512 << 10)).unwrap();
    trial.save().unwrap();
    fs::write(trial.place().join("more"), "x").unwrap();
    trial.save().unwrap();
    holes(&trial, 400);
    trial.save().unwrap();
    assert_eq!(trial.generations(), [3, 2]);
}

#[test]
fn a_snapshot_that_shared_its_blocks_does_not_replace_the_one_that_fits() {
    let Some(_alone) = alone() else { return };
    let trial = Trial::new();
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let image = directory.path().join("image");
    let Some(mounted) = Mounted::image(&image, "xfs", 320 << 20, trial.place()) else { return };
    trial.load().unwrap();
    let one = trial.place().join("one");
    fs::write(&one, vec![1; 1 << 20]).unwrap();
    trial.save().unwrap();
    for number in 0..400 {
        let copy = trial.place().join(format!("c{number}"));
        assert!(Command::new("cp").arg("--reflink=always").args([&one, &copy]).status().unwrap().success());
    }
    for number in 2..=4 {
        fs::write(trial.place().join("number"), number.to_string()).unwrap();
        let Saved::Written { warnings, .. } = trial.save().unwrap() else { panic!("not written") };
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }
    assert_eq!(trial.generations(), [4, 3, 1]);
    drop(mounted);
    let Some(_mounted) = Mounted::image(&image, "xfs", 320 << 20, trial.place()) else { return };
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.generation), (Outcome::Fallback, Some(1)));
    assert_eq!(loaded.refused.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [4, 3]);
    assert_eq!(picture(trial.place()).len(), 2, "nothing of the others stays");
    // The newest one is kept for a larger disk.
    let held: Vec<String> = trial.names().into_iter().filter(|name| name.ends_with(".held")).collect();
    assert_eq!(held, ["gen-4.held"]);
    assert!(!trial.names().iter().any(|name| name.ends_with(".bad")));
}

/// A disk with a store in which four snapshots leave no room for another: 1 and 2 are pinned, 3 is held, 4 is not.
fn in_a_full_store() -> (Trial, Mounted, Mounted) {
    let mut trial = Trial::new();
    trial.disk.keep.generations = 9;
    trial.set_store(trial.path("small store"));
    let store = Mounted::tmpfs(trial.disk.store(), "size=4500k,mode=700");
    let place = Mounted::tmpfs(trial.place(), "size=16m");
    trial.load().unwrap();
    for number in 1..=4 {
        write(&trial, number);
        trial.save().unwrap();
        match number {
            1 | 2 => store::pin(&Calls::new(), &trial.disk, number, Some("asked for")).unwrap(),
            3 => {
                let hold = Hold::Size { needed: 2, size: 1 };
                store::hold(&Calls::new(), &trial.disk, number, hold).unwrap();
            }
            _ => {}
        }
    }
    (trial, store, place)
}

fn write(trial: &Trial, number: u64) {
    let mut noise = noise((1200 << 10) + 8 * usize::try_from(number).unwrap());
    fs::write(trial.place().join("noise"), noise.split_off(8 * usize::try_from(number).unwrap())).unwrap();
    fs::write(trial.place().join("number"), number.to_string()).unwrap();
}

const LAST: Request = Request { reason: SaveReason::Stop, force: false, last: true, gives_up: true };
const TIMER: Request = Request { reason: SaveReason::Timer, last: false, gives_up: false, ..LAST };

#[test]
fn a_full_store_refuses_a_save_by_timer_and_gives_up_snapshots_in_order_for_the_last() {
    if !may_mount() {
        return;
    }
    let (trial, _store, _place) = in_a_full_store();
    let (_, room) = store::status_and_room(&Calls::new(), &trial.disk).unwrap();
    let room = room.unwrap();
    assert!(room.needed_bytes > room.free_bytes + room.spare_bytes, "`doctor` warns: {room:?}");
    write(&trial, 5);
    // Nor does the last save of a disk, if it can be repeated: that stays mounted.
    for request in
        [TIMER, Request { reason: SaveReason::Asked, ..TIMER }, Request { gives_up: false, ..LAST }]
    {
        let error = trial.save_as(request).unwrap_err();
        assert_eq!(error.kind, ErrorKind::StoreFull, "{error}");
        assert!(error.message.contains("zramdctl ramdisk delete trial"), "{error}");
    }
    assert_eq!(trial.generations(), [4, 3, 2, 1]);
    // 4 stays because it is the newest; of the others, the held one goes before the pinned ones.
    for (number, left) in [(5, vec![5, 4, 2, 1]), (6, vec![6, 5, 2, 1]), (7, vec![7, 6, 2, 1])] {
        write(&trial, number);
        let Saved::Written { warnings, generation, .. } = trial.save_as(LAST).unwrap() else { panic!() };
        assert_eq!((generation, trial.generations()), (number, left));
        assert_eq!(
            warnings.iter().any(|warning| warning.contains("was pinned")),
            number == 5,
            "{warnings:?}"
        );
        trial.verify(number).unwrap();
    }
    // A larger one takes the space of pins, the oldest first.
    fs::write(trial.place().join("more"), noise(3 << 20).split_off(3 << 19)).unwrap();
    write(&trial, 8);
    let Saved::Written { warnings, .. } = trial.save_as(LAST).unwrap() else { panic!() };
    assert_eq!(trial.generations(), [8, 7, 2]);
    assert!(warnings.iter().any(|warning| warning.contains("snapshot 1 was pinned")), "{warnings:?}");
    // Nothing is deleted for one that would not fit without all others either.
    fs::write(trial.place().join("more"), noise(8 << 20)).unwrap();
    let error = trial.save_as(LAST).unwrap_err();
    assert_eq!(error.kind, ErrorKind::StoreFull, "{error}");
    assert_eq!(trial.generations(), [8, 7, 2]);
}

#[test]
fn a_save_cancelled_after_it_has_deleted_snapshots_names_them() {
    if !may_mount() {
        return;
    }
    let (trial, _store, _place) = in_a_full_store();
    write(&trial, 5);
    // The newest one is verified before others are deleted.
    let mut is_verified = false;
    let error = store::save(&Calls::new(), &trial.disk, LAST, &mut |progress| {
        is_verified |= progress.doing == "verifying";
        !is_verified || progress.doing == "verifying"
    })
    .unwrap_err();
    assert_eq!(trial.generations(), [4, 2, 1]);
    assert_eq!(error.message, "deleted for its space: snapshot 3; the others are unchanged");
}

#[test]
fn a_save_whose_size_was_not_foreseen_deletes_nothing_in_vain() {
    if !may_mount() {
        return;
    }
    let (mut trial, _store, _place) = in_a_full_store();
    // One of two that are not pinned is pruned after a save.
    trial.disk.keep.generations = 2;
    // Zeros shrink to nothing. The estimate is too high for them, and far too low for what replaces them.
    fs::write(trial.place().join("noise"), vec![0; 12 << 20]).unwrap();
    let again = Request { gives_up: false, ..LAST };
    trial.save_as(again).unwrap();
    let before = trial.generations();
    fs::write(trial.place().join("noise"), noise(12 << 20)).unwrap();
    assert_eq!(before, [5, 4, 3, 2, 1]);
    for request in [TIMER, again, LAST] {
        let error = trial.save_as(request).unwrap_err();
        assert_eq!(error.kind, ErrorKind::StoreFull, "{error}");
        assert!(!error.message.contains("deleted"), "{error}");
        assert_eq!(trial.generations(), before, "{request:?}");
    }
}
