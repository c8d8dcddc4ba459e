//! Stores with damaged or missing files, and stores that other users can change.

use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::support::ramdisk::{ASKED, Trial, change, picture, small};
use crate::support::skip;
use engine::ErrorKind;
use host::linux::ramdisk::Calls;
use logic::ramdisk::OnFailure;
use logic::ramdisk::state::Outcome;
use store::{self, Saved};

/// A disk with two generations of the same contents, without changes.
fn with_two() -> Trial {
    let trial = Trial::with(small);
    trial.save().unwrap();
    trial.save().unwrap();
    trial
}

fn cut(trial: &Trial, number: u64) {
    let archive = trial.disk.store().join(format!("gen-{number}"));
    fs::OpenOptions::new().write(true).open(archive).unwrap().set_len(10).unwrap();
}

/// Snapshots by number, newest first, and whether each is good.
fn good(trial: &Trial) -> Vec<(u64, bool)> {
    let status = store::status(&Calls::new(), &trial.disk).unwrap();
    engine::ramdisk::lines(&status).iter().map(|line| (line.generation, line.good)).collect()
}

#[test]
fn a_truncated_snapshot_is_not_good_and_the_disk_is_saved_again() {
    let trial = with_two();
    assert_eq!(good(&trial), [(2, true), (1, true)]);
    cut(&trial, 2);
    assert_eq!(good(&trial), [(2, false), (1, true)]);
    let saved = trial.save_as(ASKED).unwrap();
    assert!(matches!(saved, Saved::Written { generation: 3, .. }), "{saved:?}");
    trial.verify(3).unwrap();
    assert_eq!(good(&trial), [(3, true), (2, false), (1, true)]);
}

#[test]
fn the_only_snapshot_that_can_be_loaded_is_not_deleted() {
    let delete =
        |trial: &Trial, number| store::delete_spare(&Calls::new(), &trial.disk, number, &mut |_| true);
    let trial = with_two();
    cut(&trial, 2);
    assert_eq!(delete(&trial, 1).unwrap_err().kind, ErrorKind::Unsafe);
    delete(&trial, 2).unwrap();
    assert_eq!(delete(&trial, 1).unwrap_err().kind, ErrorKind::Unsafe);
    assert_eq!(delete(&trial, 7).unwrap_err().kind, ErrorKind::NotFound);
    // Also if the damage of the other one is found only by reading it.
    let trial = with_two();
    let archive = trial.disk.store().join("gen-2");
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[..middle].iter_mut().for_each(|byte| *byte ^= 1);
    fs::write(&archive, bytes).unwrap();
    assert_eq!(delete(&trial, 1).unwrap_err().kind, ErrorKind::Unsafe);
    let trial = with_two();
    delete(&trial, 1).unwrap();
    assert_eq!(trial.generations(), [2]);
}

#[test]
fn snapshots_without_an_end_are_set_aside_and_named_once() {
    let trial = with_two();
    cut(&trial, 2);
    trial.reboot();
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.generation, loaded.refused.len()), (Outcome::Fallback, Some(1), 1));
    assert_eq!(loaded.refused[0].0, 2);

    let mut trial = with_two();
    trial.disk.keep.on_failure = Some(OnFailure::Empty);
    for number in [1, 2] {
        cut(&trial, number);
    }
    trial.reboot();
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.refused.len()), (Outcome::Empty, 2), "{loaded:?}");
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    assert_eq!(trial.names(), ["gen-1.bad", "gen-2.bad", "state.json"]);
    // Later loads do not report them again, but it is still not the first use.
    trial.reboot();
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.warnings.len()), (Outcome::Empty, 1), "{loaded:?}");
}

#[test]
fn snapshots_of_an_earlier_version_stay_and_are_named_with_the_command_that_unpacks_them() {
    let trial = Trial::new();
    fs::create_dir(trial.disk.store()).unwrap();
    let old = ["gen-3.json", "gen-3.pin", "gen-3.tar.zst", "gen-4.json", "gen-4.tar.zst"];
    for name in old {
        fs::write(trial.disk.store().join(name), "old").unwrap();
    }
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.generation), (Outcome::FirstUse, None));
    let warning = loaded.warnings.join("\n");
    let unpack = format!("zstd -dc {}/gen-4.tar.zst | tar -x", trial.disk.store().display());
    assert!(warning.contains(&unpack), "{warning}");
    small(trial.place());
    for _ in 0..4 {
        trial.save().unwrap();
    }
    // Numbers are not given again, so that a pin stays with what it was for.
    assert_eq!(trial.generations(), [8, 7]);
    assert!(old.iter().all(|name| trial.names().contains(&(*name).to_owned())), "{:?}", trial.names());
    let status = store::status(&Calls::new(), &trial.disk).unwrap();
    assert_eq!(status.old, ["gen-3.tar.zst", "gen-4.tar.zst"]);
}

#[test]
fn a_snapshot_that_is_about_to_be_restored_is_not_pruned() {
    let mut trial = Trial::with(small);
    trial.save().unwrap();
    trial.disk.spared = Some(1);
    for _ in 0..4 {
        trial.save().unwrap();
    }
    assert_eq!(trial.generations(), [5, 4, 1]);
    trial.disk.spared = None;
    trial.save().unwrap();
    assert_eq!(trial.generations(), [6, 5]);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// A disk with a snapshot in a nested store directory, after a reboot.
fn with_deep_store() -> Trial {
    let mut trial = Trial::new();
    trial.set_store(trial.path("above/store"));
    fs::create_dir(trial.path("above")).unwrap();
    trial.load().unwrap();
    small(trial.place());
    trial.save().unwrap();
    trial
}

/// While `spoil` is in effect, the store is neither loaded from, read nor written.
fn refused_while(case: &str, spoil: impl Fn(&Trial), mend: impl Fn(&Trial)) {
    let trial = with_deep_store();
    spoil(&trial);
    let names = trial.names();
    let to = trial.path("to");
    let kinds = [
        trial.save().unwrap_err().kind,
        trial.verify(1).unwrap_err().kind,
        store::export(&Calls::new(), &trial.disk, None, &to, &mut |_| true).unwrap_err().kind,
        store::pin(&Calls::new(), &trial.disk, 1, Some("no")).unwrap_err().kind,
        store::delete(&Calls::new(), &trial.disk, 1).unwrap_err().kind,
    ];
    assert_eq!(kinds, [ErrorKind::Unsafe; 5], "{case}");
    trial.reboot();
    assert_eq!(trial.load().unwrap_err().kind, ErrorKind::Unsafe, "{case}");
    assert_eq!((trial.names(), picture(trial.place()).len(), to.exists()), (names, 1, false), "{case}");
    mend(&trial);
    assert_eq!(trial.load().unwrap().outcome, Outcome::Loaded, "{case}");
}

#[test]
fn a_store_that_others_can_write_to_or_replace_is_refused() {
    let at = |path: &'static str, mode| move |trial: &Trial| set_mode(&trial.path(path), mode);
    refused_while("everyone", at("above/store", 0o707), at("above/store", 0o700));
    refused_while("everyone, sticky", at("above/store", 0o1777), at("above/store", 0o700));
    refused_while("a group", at("above/store", 0o770), at("above/store", 0o700));
    refused_while("everyone, above it", at("above", 0o777), at("above", 0o1777));
    if !rustix::process::geteuid().is_root() {
        return skip("needs root");
    }
    let own =
        |path: &'static str, uid| move |trial: &Trial| lchown(trial.path(path), Some(uid), None).unwrap();
    refused_while("another owner", own("above/store", 1234), own("above/store", 0));
    refused_while("another owner, above it", own("above", 1234), own("above", 0));
    let link = |trial: &Trial| {
        fs::rename(trial.path("above/store"), trial.path("above/real")).unwrap();
        symlink("./../above/real", trial.path("above/store")).unwrap();
    };
    let foreign_link = |trial: &Trial| {
        link(trial);
        own("above/store", 1234)(trial);
    };
    refused_while("another owner of a link", foreign_link, own("above/store", 0));
    let elsewhere = |trial: &Trial| {
        link(trial);
        own("above/real", 1234)(trial);
    };
    refused_while("a link to the store of another owner", elsewhere, own("above/real", 0));
}

#[test]
fn a_store_that_others_could_read_is_closed() {
    let trial = with_deep_store();
    assert_eq!(mode(trial.disk.store()), 0o700);
    set_mode(trial.disk.store(), 0o755);
    trial.save().unwrap();
    assert_eq!(mode(trial.disk.store()), 0o700);
    set_mode(trial.disk.store(), 0o755);
    trial.verify(1).unwrap();
    assert_eq!(mode(trial.disk.store()), 0o700);
}

#[test]
fn a_file_that_others_can_change_is_not_loaded() {
    let trial = with_two();
    let archive = trial.disk.store().join("gen-2");
    set_mode(&archive, 0o620);
    trial.verify(2).unwrap_err();
    trial.reboot();
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.generation), (Outcome::Fallback, Some(1)));
    // It was not treated as damaged.
    set_mode(&archive, 0o600);
    trial.verify(2).unwrap();
    if !rustix::process::geteuid().is_root() {
        return skip("needs root");
    }
    std::os::unix::fs::chown(&archive, Some(1234), None).unwrap();
    trial.verify(2).unwrap_err();
}

/// The new time would be written to the disk.
#[test]
fn reading_a_store_leaves_its_access_time() {
    let trial = with_two();
    let directory = fs::File::open(trial.disk.store()).unwrap();
    directory.set_times(fs::FileTimes::new().set_accessed(UNIX_EPOCH)).unwrap();
    assert_eq!(store::status(&Calls::new(), &trial.disk).unwrap().generations.len(), 2);
    assert_eq!(directory.metadata().unwrap().accessed().unwrap(), UNIX_EPOCH);
}

/// Each opening of a file may wake a disk, or wait for a card.
#[test]
fn a_store_is_listed_again_only_after_it_was_changed() {
    let opened = |calls: &Calls| calls.transcript().iter().filter(|call| *call == "openat gen-1").count();
    let mut trial = with_two();
    trial.disk.keep.generations = 9;
    change(trial.place());
    let calls = [(); 3].map(|()| Calls::with_fault(None));
    store::save(&calls[0], &trial.disk, ASKED, &mut |_| true).unwrap();
    store::status_and_room(&calls[1], &trial.disk).unwrap();
    store::delete(&calls[2], &trial.disk, 2).unwrap();
    // A listing opens it twice, for its footer and its manifest. The save lists the store before it and after it.
    assert_eq!(calls.each_ref().map(opened), [6, 2, 4]);
    assert_eq!(trial.generations(), [3, 1]);
}
