//! Stores that are full or read-only, that lie in memory, and in which something is broken or missing.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;
#[path = "support/disk.rs"]
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::skip;
use trial::{ASKED, Trial, picture, small};
use zramd::engine::ErrorKind;
use zramd::engine::disk::{self, Saved};
use zramd::host::linux::disk::Calls;
use zramd::logic::disk::state::Outcome;

/// A mount for as long as it lives.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        Command::new("umount").arg(&self.0).status().unwrap();
    }
}

fn mount(words: &[&str], at: &Path) -> bool {
    Command::new("mount").args(words).arg(at).status().unwrap().success()
}

/// A disk whose store is a tmpfs of its own with one generation in it; nothing without privileges.
fn with_own_store() -> Option<(Trial, Mounted)> {
    if !rustix::process::geteuid().is_root() {
        skip("needs root");
        return None;
    }
    let mut trial = Trial::new();
    trial.disk.notes = Some(trial.path("run"));
    fs::create_dir(&trial.disk.store).unwrap();
    assert!(mount(&["-t", "tmpfs", "-o", "size=1m", "tmpfs"], &trial.disk.store));
    let mounted = Mounted(trial.disk.store.clone());
    trial.load().unwrap();
    small(trial.place());
    trial.save().unwrap();
    trial.reboot();
    Some((trial, mounted))
}

/// What is loaded while the store cannot be written to is saved once it can be.
fn loaded_without_writing(trial: &Trial, spoil: impl Fn(), mend: impl Fn()) {
    spoil();
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.generation), (Outcome::Loaded, Some(1)));
    assert!(loaded.store_problem.is_some(), "{loaded:?}");
    // Once more it is found loaded, and what is in it stays.
    fs::write(trial.place().join("later"), "written in this boot").unwrap();
    assert!(trial.load().unwrap().already);
    trial.save().unwrap_err();
    mend();
    let saved = trial.save_as(ASKED).unwrap();
    assert!(matches!(saved, Saved::Written { generation: 2, .. }), "{saved:?}");
    let kept = picture(trial.place());
    trial.reboot();
    assert_eq!(trial.load().unwrap().store_problem, None);
    assert!(picture(trial.place()) == kept);
}

#[test]
fn what_was_loaded_from_a_full_store_is_saved_once_there_is_room() {
    let Some((trial, _mounted)) = with_own_store() else { return };
    let filler = trial.disk.store.join("filler");
    let spoil = || drop(fs::write(&filler, vec![0; 2 << 20]).unwrap_err());
    loaded_without_writing(&trial, spoil, || fs::remove_file(&filler).unwrap());
}

#[test]
fn what_was_loaded_from_a_store_that_is_read_only_is_saved_once_it_is_not() {
    let Some((trial, _mounted)) = with_own_store() else { return };
    let spoil = || assert!(mount(&["-o", "remount,ro"], &trial.disk.store));
    loaded_without_writing(&trial, spoil, || assert!(mount(&["-o", "remount,rw"], &trial.disk.store)));
}

#[test]
fn a_disk_whose_load_nobody_could_note_is_never_emptied() {
    let Some((mut trial, _mounted)) = with_own_store() else { return };
    trial.disk.notes = None;
    // The store becomes full while the disk is filled: the first note of it is the last.
    let filler = trial.disk.store.join("filler");
    let loaded = disk::load(&Calls::new(), &trial.disk, &mut |_| {
        fs::write(&filler, vec![0; 2 << 20]).ok();
        true
    });
    assert!(loaded.unwrap().store_problem.is_some());
    fs::write(trial.place().join("later"), "written in this boot").unwrap();
    let before = picture(trial.place());
    fs::remove_file(&filler).unwrap();
    let error = trial.load().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsafe);
    assert!(picture(trial.place()) == before);
}
