//! Stores that are full, read-only or in memory, and exports by commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::mounted::Mounted;
use crate::support::ramdisk::{ASKED, Trial, picture, small};
use crate::support::{alone, may_mount};
use engine::ErrorKind;
use host::linux::ramdisk::Calls;
use logic::ramdisk::hold::Hold;
use logic::ramdisk::state::Outcome;
use store::{self, Saved};

/// A disk whose store is a separate tmpfs with one generation; `None` without privileges.
fn with_own_store() -> Option<(Trial, Mounted)> {
    if !may_mount() {
        return None;
    }
    let mut trial = Trial::new();
    trial.disk.notes = Some(trial.path("run"));
    let mounted = Mounted::tmpfs(trial.disk.store(), "size=1m,mode=700");
    trial.load().unwrap();
    small(trial.place());
    trial.save().unwrap();
    trial.reboot();
    Some((trial, mounted))
}

/// A disk that was loaded while its store was not writable is saved once it is.
fn loaded_without_writing(trial: &Trial, spoil: impl Fn(), mend: impl Fn()) {
    spoil();
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.generation), (Outcome::Loaded, Some(1)));
    assert!(loaded.store_problem.is_some(), "{loaded:?}");
    // A second load finds it loaded, and changes nothing.
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
    let filler = trial.disk.store().join("filler");
    let spoil = || drop(fs::write(&filler, vec![0; 2 << 20]).unwrap_err());
    loaded_without_writing(&trial, spoil, || fs::remove_file(&filler).unwrap());
}

#[test]
fn what_was_loaded_from_a_store_that_is_read_only_is_saved_once_it_is_not() {
    let Some((trial, mounted)) = with_own_store() else { return };
    loaded_without_writing(&trial, || mounted.remount("ro"), || mounted.remount("rw"));
}

#[test]
fn a_disk_whose_load_could_not_be_recorded_is_never_emptied() {
    let Some((mut trial, _mounted)) = with_own_store() else { return };
    trial.disk.notes = None;
    // The store becomes full during the load, so no later state can be written.
    let filler = trial.disk.store().join("filler");
    let loaded = store::load(&Calls::new(), &trial.disk, &mut |_| {
        fs::write(&filler, vec![0; 2 << 20]).ok();
        true
    });
    assert!(loaded.unwrap().store_problem.is_some());
    fs::write(trial.place().join("later"), "written in this boot").unwrap();
    let before = picture(trial.place());
    fs::remove_file(&filler).unwrap();
    // The mark says that it is loaded.
    assert!(trial.load().unwrap().already);
    assert!(picture(trial.place()) == before);
    trial.save().unwrap();
    assert_eq!(trial.generations(), [2, 1]);
}

#[test]
fn what_is_larger_than_the_directory_is_not_exported_and_not_restored() {
    let Some((mut trial, _mounted)) = with_own_store() else { return };
    let (calls, to) = (Calls::new(), trial.path("to"));
    let small = Mounted::tmpfs(&to, "size=256k");
    let mut steps = 0;
    let error = store::export(&calls, &trial.disk, None, &to, &mut |_| {
        steps += 1;
        true
    });
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::DiskFull);
    assert!(!error.message.contains("296.0") && error.full().contains("big (296.0 KiB)"), "{error:?}");
    assert_eq!(steps, 0, "before anything is written");
    assert_eq!(store::check_size(&calls, &trial.disk, 1), Ok(None));
    trial.disk.place = to;
    trial.disk.trial = false;
    // The file is removed with the store.
    fs::write(trial.place().join("filler"), vec![0; 100 << 10]).unwrap();
    let hold = store::check_size(&calls, &trial.disk, 1).unwrap();
    assert!(matches!(hold, Some(Hold::Size { needed, size }) if needed > size), "{hold:?}");
    small.remount("size=700k");
    assert_eq!(store::check_size(&calls, &trial.disk, 1), Ok(None));
}

#[test]
fn a_store_in_a_file_in_memory_is_refused() {
    let Some(_alone) = alone() else { return };
    let mut trial = Trial::new();
    trial.disk.trial = false;
    let on_disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let on_tmpfs = (trial.path(""), ErrorKind::Unsafe);
    // There, the store is accepted, but no disk is mounted.
    for (directory, kind) in [on_tmpfs, (on_disk.path().to_owned(), ErrorKind::NotLoaded)] {
        let (image, store) = (directory.join("image"), directory.join("mounted"));
        fs::create_dir(&store).unwrap();
        let Some(_mounted) = Mounted::image(&image, "ext4", 8 << 20, &store) else { return };
        trial.set_store(store.join("store"));
        let error = trial.load().unwrap_err();
        // In a container, overlayfs is refused as well.
        assert!(error.kind == kind || error.message.contains("overlay"), "{error}");
        let named = error.message.contains(image.to_str().unwrap());
        assert_eq!(named, error.kind == ErrorKind::Unsafe, "{error}");
    }
}

#[test]
fn an_export_follows_the_configuration_that_is_named() {
    let Some(_alone) = alone() else { return };
    let trial = Trial::with(small);
    trial.save().unwrap();
    let (file, to) = (trial.path("zramd.toml"), trial.path("exported"));
    let mount_point = trial.path("mounted");
    let text = format!(
        "[ramdisk.test-named]\nmount-point = {mount_point:?}\nstore = {:?}\nsize = \"1MiB\"\npersist = \"snapshot\"\n",
        trial.disk.store()
    );
    fs::write(&file, text).unwrap();
    let exported = Command::new(env!("CARGO_BIN_EXE_zramdctl"))
        .arg("--config")
        .arg(&file)
        .args(["ramdisk", "export", "test-named"])
        .arg(&to)
        .output()
        .unwrap();
    fs::remove_file("/run/zramd/work/ramdisk-test-named.json").ok();
    assert!(exported.status.success(), "{exported:?}");
    assert!(picture(&to) == picture(trial.place()));
}

/// Removes the files of a disk.
struct Left(PathBuf);

impl Drop for Left {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
        fs::remove_file("/run/zramd/work/ramdisk-test-orphan.json").ok();
    }
}

#[test]
fn snapshots_of_a_disk_whose_section_is_gone_can_be_exported() {
    let Some(_alone) = alone() else { return };
    let store = Left(PathBuf::from("/var/lib/zramd/disks/test-orphan"));
    let mut trial = Trial::new();
    trial.set_store(store.0.clone());
    trial.load().unwrap();
    fs::write(trial.place().join("file"), "still there").unwrap();
    trial.save().unwrap();
    let kept = |words: &[&str]| {
        let worker = Command::new(env!("CARGO_BIN_EXE_zramd-worker")).args(words).output().unwrap();
        worker.status.code()
    };
    let to = trial.path("exported");
    let into = |to: &Path| format!("{{\"to\":\"{}\"}}", to.display());
    assert_eq!(kept(&["export", "test-orphan", &into(&to)]), Some(0));
    assert_eq!(fs::read_to_string(to.join("file")).unwrap(), "still there");
    // Other operations are refused.
    assert_eq!(kept(&["delete", "test-orphan", r#"{"snapshot":1}"#]), Some(4));
    assert_eq!(trial.generations(), [1]);
    assert_eq!(kept(&["export", "test-orphan/../..", &into(Path::new("/nowhere"))]), Some(4));
}
