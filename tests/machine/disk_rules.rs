//! Rules of snapshots on mounted file systems: a disk that is too small, a full store, a snapshot of btrfs.

use std::fs;

use crate::support::alone;
use crate::support::disk::{FORCED, Trial, noise, picture, small};
use crate::support::mounted::Mounted;
use engine::ErrorKind;
use engine::ramdisk::{self, Saved};
use host::linux::ramdisk::Calls;
use logic::ramdisk::OnFailure;
use logic::ramdisk::manifest::Consistency;
use logic::ramdisk::state::{Outcome, SaveOutcome};

#[test]
fn a_disk_that_is_too_small_is_refused_with_its_largest_files() {
    let Some(_alone) = alone() else { return };
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
    let Some(_alone) = alone() else { return };
    let mut trial = Trial::with(small);
    trial.save().unwrap();
    trial.disk.place = trial.path("smaller");
    let _mounted = Mounted::tmpfs(trial.place(), "nr_inodes=4");
    let error = trial.load().unwrap_err();
    assert_eq!(error.kind, ErrorKind::DiskFull, "{error}");
}

#[test]
fn a_full_store_keeps_what_it_has() {
    let Some(_alone) = alone() else { return };
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
