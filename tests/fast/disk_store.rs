//! Stores that are full or read-only, that lie in memory, and in which something is broken or missing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::disk::{ASKED, Trial, picture, small};
use crate::support::{has_program, skip, texts};
use zramd::engine::ErrorKind;
use zramd::engine::disk::{self, Saved};
use zramd::host::linux::disk::Calls;
use zramd::logic::disk::OnFailure;
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
    assert!(mount(&["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs"], &trial.disk.store));
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

/// A disk with two generations of the same contents, with nothing to save.
fn with_two() -> Trial {
    let trial = Trial::with(small);
    trial.save().unwrap();
    trial.save().unwrap();
    trial
}

fn cut(trial: &Trial, number: u64) {
    let archive = trial.disk.store.join(format!("gen-{number}.tar.zst"));
    fs::OpenOptions::new().write(true).open(archive).unwrap().set_len(10).unwrap();
}

/// Which snapshots are said to be good, newest first.
fn good(trial: &Trial) -> Vec<(u64, bool)> {
    let status = disk::status(&Calls::new(), &trial.disk).unwrap();
    zramd::engine::keep::lines(&status).iter().map(|line| (line.generation, line.good)).collect()
}

#[test]
fn an_archive_that_was_cut_off_is_neither_good_nor_all_that_has_to_be_saved() {
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
        |trial: &Trial, number| disk::delete_spare(&Calls::new(), &trial.disk, number, &mut |_| true);
    let trial = with_two();
    cut(&trial, 2);
    assert_eq!(delete(&trial, 1).unwrap_err().kind, ErrorKind::Unsafe);
    delete(&trial, 2).unwrap();
    assert_eq!(delete(&trial, 1).unwrap_err().kind, ErrorKind::Unsafe);
    assert_eq!(delete(&trial, 7).unwrap_err().kind, ErrorKind::NotFound);
    // Nor when only reading shows what is wrong with the other one.
    let trial = with_two();
    let archive = trial.disk.store.join("gen-2.tar.zst");
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&archive, bytes).unwrap();
    let error = delete(&trial, 1).unwrap_err();
    assert!(error.kind == ErrorKind::Unsafe && error.message.contains("only good one"), "{error}");
    let trial = with_two();
    delete(&trial, 1).unwrap();
    assert_eq!(trial.generations(), [2]);
}

#[test]
fn archives_without_manifest_are_broken_snapshots_and_not_nothing() {
    let trial = with_two();
    fs::remove_file(trial.disk.store.join("gen-2.json")).unwrap();
    assert_eq!(good(&trial), [(2, false), (1, true)]);
    trial.reboot();
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.generation, loaded.refused.len()), (Outcome::Fallback, Some(1), 1));
    assert!(loaded.refused[0].1.contains("manifest"), "{loaded:?}");

    let mut trial = with_two();
    trial.disk.on_failure = OnFailure::Empty;
    for number in [1, 2] {
        fs::remove_file(trial.disk.store.join(format!("gen-{number}.json"))).unwrap();
    }
    trial.reboot();
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.refused.len()), (Outcome::Empty, 2), "{loaded:?}");
    assert!(loaded.warnings[0].contains("manifest"), "{:?}", loaded.warnings);
    assert_eq!(trial.names(), ["gen-1.tar.zst.bad", "gen-2.tar.zst.bad", "state.json"]);
    // From then on it is no longer news which ones they were, but still no first use.
    trial.reboot();
    let loaded = trial.load().unwrap();
    assert!(loaded.outcome == Outcome::Empty && loaded.warnings[0].contains("set aside"), "{loaded:?}");
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

#[test]
fn what_is_larger_than_the_folder_is_not_exported_and_not_restored() {
    let Some((mut trial, _mounted)) = with_own_store() else { return };
    let (calls, to) = (Calls::new(), trial.path("to"));
    fs::create_dir(&to).unwrap();
    assert!(mount(&["-t", "tmpfs", "-o", "size=256k", "tmpfs"], &to));
    let _small = Mounted(to.clone());
    let mut steps = 0;
    let error = disk::export(&calls, &trial.disk, None, &to, &mut |_| {
        steps += 1;
        true
    });
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::DiskFull);
    assert!(!error.message.contains("296.0") && error.full().contains("big (296.0 KiB)"), "{error:?}");
    assert_eq!(steps, 0, "before anything is written");
    assert_eq!(disk::check_size(&calls, &trial.disk, 1), Ok(()));
    trial.disk.place = to;
    trial.disk.trial = false;
    // What is in it now goes with it.
    fs::write(trial.place().join("filler"), vec![0; 100 << 10]).unwrap();
    assert_eq!(disk::check_size(&calls, &trial.disk, 1).unwrap_err().kind, ErrorKind::DiskFull);
    assert!(mount(&["-o", "remount,size=700k"], trial.place()));
    assert_eq!(disk::check_size(&calls, &trial.disk, 1), Ok(()));
}

#[test]
fn a_store_in_a_file_in_memory_is_refused() {
    if !rustix::process::geteuid().is_root() || !has_program("mkfs.ext4") {
        return skip("needs root and mkfs.ext4");
    }
    let mut trial = Trial::new();
    trial.disk.trial = false;
    let on_disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for (folder, words) in
        [(trial.path(""), "which is on a tmpfs"), (on_disk.path().to_owned(), "nothing is mounted")]
    {
        let (image, store) = (folder.join("image"), folder.join("mounted"));
        fs::create_dir(&store).unwrap();
        fs::File::create(&image).unwrap().set_len(8 << 20).unwrap();
        assert!(Command::new("mkfs.ext4").arg("-q").arg(&image).status().unwrap().success());
        if !mount(&["-o", "loop", image.to_str().unwrap()], &store) {
            return skip("this kernel mounts nothing from a file");
        }
        let _mounted = Mounted(store.clone());
        trial.disk.store = store.join("store");
        let error = trial.load().unwrap_err();
        // A container's overlay is refused as well.
        assert!(error.message.contains(words) || error.message.contains("overlay"), "{error}");
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// A disk with a snapshot in a store two directories down, after a reboot.
fn with_deep_store() -> Trial {
    let mut trial = Trial::new();
    trial.disk.store = trial.path("above/store");
    fs::create_dir(trial.path("above")).unwrap();
    trial.load().unwrap();
    small(trial.place());
    trial.save().unwrap();
    trial
}

/// Nothing is loaded from, read from or written to a store while `spoil` is in force.
fn refused_while(case: &str, spoil: impl Fn(&Trial), mend: impl Fn(&Trial)) {
    let trial = with_deep_store();
    spoil(&trial);
    let names = trial.names();
    let to = trial.path("to");
    let kinds = [
        trial.save().unwrap_err().kind,
        trial.verify(1).unwrap_err().kind,
        disk::export(&Calls::new(), &trial.disk, None, &to, &mut |_| true).unwrap_err().kind,
        disk::pin(&Calls::new(), &trial.disk, 1, Some("no")).unwrap_err().kind,
        disk::delete(&Calls::new(), &trial.disk, 1).unwrap_err().kind,
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
    assert_eq!(mode(&trial.disk.store), 0o700);
    set_mode(&trial.disk.store, 0o755);
    trial.save().unwrap();
    assert_eq!(mode(&trial.disk.store), 0o700);
    set_mode(&trial.disk.store, 0o755);
    trial.verify(1).unwrap();
    assert_eq!(mode(&trial.disk.store), 0o700);
}

#[test]
fn an_archive_that_others_can_change_is_not_loaded() {
    let trial = with_two();
    let archive = trial.disk.store.join("gen-2.tar.zst");
    set_mode(&archive, 0o620);
    trial.verify(2).unwrap_err();
    trial.reboot();
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.generation), (Outcome::Fallback, Some(1)));
    // It is not broken: nothing was set aside.
    set_mode(&archive, 0o600);
    trial.verify(2).unwrap();
    if !rustix::process::geteuid().is_root() {
        return skip("needs root");
    }
    std::os::unix::fs::chown(&archive, Some(1234), None).unwrap();
    trial.verify(2).unwrap_err();
}

#[test]
fn an_export_follows_the_configuration_that_is_named() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root");
    }
    let trial = Trial::with(small);
    trial.save().unwrap();
    let (file, to) = (trial.path("zramd.toml"), trial.path("exported"));
    let mount_point = trial.path("mounted");
    let text = format!(
        "[ramdisk.test-named]\nmount-point = {mount_point:?}\nstore = {:?}\nsize = \"1MiB\"\npersist = \"snapshot\"\n",
        trial.disk.store
    );
    fs::write(&file, text).unwrap();
    let exported = Command::new(env!("CARGO_BIN_EXE_zramdctl"))
        .arg("--config")
        .arg(&file)
        .args(["disk", "export", "test-named"])
        .arg(&to)
        .output()
        .unwrap();
    fs::remove_file("/run/zramd/work/disk-test-named.json").ok();
    assert!(exported.status.success(), "{exported:?}");
    assert!(picture(&to) == picture(trial.place()));
}

/// What is left of a disk goes with it.
struct Left(PathBuf);

impl Drop for Left {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
        fs::remove_file("/run/zramd/work/disk-test-orphan.json").ok();
    }
}

#[test]
fn snapshots_of_a_disk_whose_section_is_gone_can_be_exported() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root");
    }
    let store = Left(PathBuf::from("/var/lib/zramd/disks/test-orphan"));
    let mut trial = Trial::new();
    trial.disk.store.clone_from(&store.0);
    trial.load().unwrap();
    fs::write(trial.place().join("file"), "still there").unwrap();
    trial.save().unwrap();
    let kept = |words: &[&str]| {
        let worker =
            Command::new(env!("CARGO_BIN_EXE_zramd-worker")).arg("kept").args(words).output().unwrap();
        (worker.status.success(), texts(&worker))
    };
    let to = trial.path("exported");
    let (done, (said, messages)) = kept(&["export", "test-orphan", to.to_str().unwrap()]);
    assert!(done && said.starts_with("test-orphan: 2 entries, "), "{said}{messages}");
    assert_eq!(fs::read_to_string(to.join("file")).unwrap(), "still there");
    // Nothing else is done with it.
    let (done, (_, messages)) = kept(&["delete", "test-orphan", "1"]);
    assert!(!done && messages.contains("its snapshots are still there"), "{messages}");
    assert!(!kept(&["export", "test-orphan/../..", "/nowhere"]).0);
}
