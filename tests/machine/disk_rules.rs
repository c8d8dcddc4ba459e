//! Rules of snapshots on mounted file systems: a disk that is too small, a full store, a snapshot of btrfs.

use std::fs::{self, File};
use std::process::Command;

use crate::support::disk::{FORCED, Trial, noise, picture, small};
use crate::support::mounted::Mounted;
use crate::support::{alone, may_mount};
use engine::ErrorKind;
use engine::ramdisk::{self, Saved};
use host::linux::ramdisk::Calls;
use logic::ramdisk::OnFailure;
use logic::ramdisk::manifest::Consistency;
use logic::ramdisk::state::{Outcome, SaveOutcome};

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
    // Refused before anything is written, if the estimate shows it.
    fs::write(trial.place().join("large"), noise(4 << 20)).unwrap();
    let error = trial.save().unwrap_err();
    assert_eq!(error.kind, ErrorKind::StoreFull, "{error}");
    // Refused during the save, because the estimate was too low.
    fs::write(trial.place().join("large"), noise(2 << 20)).unwrap();
    let manifest = trial.disk.store().join("gen-1.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"occupied_bytes\": ", "\"occupied_bytes\": 1000")).unwrap();
    let error = trial.save().unwrap_err();
    assert_eq!(error.kind, ErrorKind::StoreFull, "{error}");
    let status = ramdisk::status(&Calls::new(), &trial.disk).unwrap();
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
    let saved = ramdisk::save(&Calls::new(), &trial.disk, FORCED, &mut |progress| {
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
    ramdisk::export(&Calls::new(), &trial.disk, None, &to, &mut |_| true).unwrap();
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
    assert!(!trial.names().iter().any(|name| name.ends_with(".bad") || name.contains("pin")));
}
