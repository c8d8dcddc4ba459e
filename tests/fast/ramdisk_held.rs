//! Snapshots that are intact but were not loaded: they are named and not pruned. Snapshots of which a part is damaged.

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::{lchown, symlink};
use std::path::Path;

use crate::support::ramdisk::{FORCED, Trial, change, picture, small};
use crate::support::skip;
use engine::ErrorKind;
use engine::ramdisk;
use host::Errno;
use host::linux::ramdisk::Calls;
use host::script::Fault;
use logic::ramdisk::OnFailure;
use logic::ramdisk::hold::Hold;
use logic::ramdisk::state::Outcome;
use store::format::Footer;
use store::{self, Generation};

/// A disk after a reboot, with two snapshots. The second one has a named pipe and, if supported, an attribute.
fn with_two() -> Trial {
    let mut trial = Trial::with(small);
    trial.disk.keep.on_failure = Some(OnFailure::Empty);
    trial.save().unwrap();
    change(trial.place());
    let pipe = CString::new(trial.place().join("pipe").to_str().unwrap()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let one = trial.place().join("a/one");
    rustix::fs::setxattr(&one, "user.note", b"x", rustix::fs::XattrFlags::empty()).ok();
    trial.save().unwrap();
    trial.reboot();
    trial
}

fn generation(trial: &Trial, number: u64) -> Option<Generation> {
    let status = store::status(&Calls::new(), &trial.disk).unwrap();
    status.generations.into_iter().find(|generation| generation.number == number)
}

/// Three saves of a disk that changes, which prune all that is pruned.
fn three_saves(trial: &Trial) {
    for number in 0..3 {
        fs::write(trial.place().join("later"), number.to_string()).unwrap();
        trial.save().unwrap();
    }
}

/// Numbers of the first call of this kind in a load of the newest snapshot, and of all others of its kind.
fn calls_of_a_load(kind: &str) -> Vec<usize> {
    let calls = Calls::with_fault(None);
    store::load(&calls, &with_two().disk, &mut |_| true).unwrap();
    let transcript = calls.transcript().into_iter().enumerate();
    transcript.filter(|(_, call)| call.starts_with(kind)).map(|(at, _)| at + 1).collect()
}

#[test]
fn what_was_not_loaded_for_a_reason_of_the_machine_survives_three_saves() {
    // ENOSPC is the answer for bytes and for inodes; the others are missing features, and a lack of memory.
    let reasons = [
        ("create", Errno::NOSPC),
        ("create", Errno(libc::EDQUOT)),
        ("pwrite", Errno::NOSPC),
        ("write", Errno::NOSPC),
        ("mkdirat", Errno::NOSPC),
        ("mkdirat", Errno::NOMEM),
        ("mknodat", Errno(libc::EPERM)),
        ("symlinkat", Errno(libc::EPERM)),
        ("linkat", Errno(libc::EOPNOTSUPP)),
        ("setxattr user", Errno(libc::EOPNOTSUPP)),
        ("openat gen-2", Errno(libc::ELOOP)),
    ];
    let mut cases = 0;
    for (kind, errno) in reasons {
        // The store and the mark are written with calls of the same kinds.
        for call in calls_of_a_load(kind) {
            let trial = with_two();
            let calls = Calls::with_fault(Some((call, Fault::Fail(errno))));
            let what = format!("{errno} at call {call}, {kind}");
            let Ok(loaded) = store::load(&calls, &trial.disk, &mut |_| true) else { continue };
            let is_whole = loaded.generation == Some(2) && loaded.extracted.lost().is_none();
            if is_whole || loaded.outcome == Outcome::FirstUse {
                continue;
            }
            cases += 1;
            let held = generation(&trial, 2).unwrap().held;
            let why = held.unwrap_or_else(|| panic!("{what}: {:?}", trial.names())).text();
            assert!(why.len() > 5 && !why.contains("one"), "{what}: {why}");
            three_saves(&trial);
            trial.verify(2).unwrap_or_else(|error| panic!("{what}: {error}"));
            let line = ramdisk::lines(&store::status(&Calls::new(), &trial.disk).unwrap());
            let line = line.into_iter().find(|line| line.generation == 2).unwrap();
            assert!(line.good && line.pinned.contains(&why), "{what}: {line:?}");
            // The newest is loaded as usual; the held one stays until it is given up.
            trial.reboot();
            assert_eq!(trial.load().unwrap().generation, Some(5), "{what}");
            three_saves(&trial);
            assert!(generation(&trial, 2).is_some(), "{what}");
            store::pin(&Calls::new(), &trial.disk, 2, None).unwrap();
            three_saves(&trial);
            assert_eq!(generation(&trial, 2), None, "{what}");
        }
    }
    assert!(cases >= 9, "{cases} cases");
}

#[test]
fn what_was_held_is_loaded_once_its_reason_is_gone_and_then_held_no_more() {
    let trial = with_two();
    fall_back(&trial);
    let held = generation(&trial, 2).unwrap().held;
    assert!(matches!(held, Some(Hold::Size { .. })), "{held:?}");
    assert_eq!(store::delete(&Calls::new(), &trial.disk, 2).unwrap_err().kind, ErrorKind::Unsafe);
    trial.reboot();
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.generation), (Outcome::Loaded, Some(2)));
    assert_eq!(generation(&trial, 2).unwrap().held, None);
}

/// Makes a file in the store unwritable, until the returned directory is removed.
fn obstruct(trial: &Trial, name: &str) -> std::path::PathBuf {
    let obstacle = trial.disk.store().join(format!("{name}.partial"));
    fs::create_dir_all(obstacle.join("x")).unwrap();
    obstacle
}

/// A load that falls back to snapshot 1, because the disk is too small for snapshot 2.
fn fall_back(trial: &Trial) -> store::Loaded {
    let call = *calls_of_a_load("mkdirat").first().unwrap();
    let calls = Calls::with_fault(Some((call, Fault::Fail(Errno::NOSPC))));
    let loaded = store::load(&calls, &trial.disk, &mut |_| true).unwrap();
    assert_eq!((loaded.outcome, loaded.generation), (Outcome::Fallback, Some(1)));
    loaded
}

#[test]
fn a_hold_that_cannot_be_written_counts_and_is_written_later() {
    let trial = with_two();
    let obstacle = obstruct(&trial, "gen-2.held");
    assert!(fall_back(&trial).warnings.iter().any(|warning| warning.contains("gen-2.held")));
    assert!(generation(&trial, 2).unwrap().held.is_some());
    assert_eq!(store::delete(&Calls::new(), &trial.disk, 2).unwrap_err().kind, ErrorKind::Unsafe);
    three_saves(&trial);
    trial.verify(2).unwrap();
    // Also in the next boot, which loads a newer one.
    trial.reboot();
    trial.load().unwrap();
    three_saves(&trial);
    trial.verify(2).unwrap();
    fs::remove_dir_all(obstacle).unwrap();
    three_saves(&trial);
    assert!(trial.names().contains(&"gen-2.held".to_owned()), "{:?}", trial.names());
    store::pin(&Calls::new(), &trial.disk, 2, None).unwrap();
    three_saves(&trial);
    assert_eq!(generation(&trial, 2), None);
}

#[test]
fn a_hold_that_was_never_written_can_be_given_up() {
    let trial = with_two();
    obstruct(&trial, "gen-2.held");
    fall_back(&trial);
    store::pin(&Calls::new(), &trial.disk, 2, None).unwrap();
    three_saves(&trial);
    assert_eq!(generation(&trial, 2), None);
}

#[test]
fn nothing_is_pruned_while_nothing_about_the_load_can_be_written() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root, for attributes in the name space `trusted`");
    }
    let trial = with_two();
    let obstacles = ["gen-2.held", "state.json"].map(|name| obstruct(&trial, name));
    assert!(fall_back(&trial).store_problem.is_some());
    three_saves(&trial);
    trial.verify(2).unwrap();
    for obstacle in &obstacles {
        fs::remove_dir_all(obstacle).unwrap();
    }
}

/// Changes one bit of the manifest of the newest snapshot.
fn with_damaged_manifest(at: usize) -> Trial {
    let trial = Trial::with(small);
    trial.save().unwrap();
    change(trial.place());
    trial.save().unwrap();
    let path = trial.disk.store().join("gen-2");
    let mut bytes = fs::read(&path).unwrap();
    let footer = Footer::parse(bytes.last_chunk().unwrap(), bytes.len() as u64).unwrap();
    let length = usize::try_from(footer.manifest.length).unwrap();
    bytes[usize::try_from(footer.manifest.offset).unwrap() + at % length] ^= 1 << (at % 8);
    fs::write(&path, &bytes).unwrap();
    trial
}

#[test]
fn an_intact_snapshot_is_loaded_and_exported_although_its_manifest_is_damaged() {
    for at in (0..1000).step_by(97) {
        let trial = with_damaged_manifest(at);
        assert_eq!(trial.verify(2).unwrap_err().kind, ErrorKind::SnapshotCorrupt, "{at}");
        let new = picture(trial.place());
        let to = trial.path("to");
        store::export(&Calls::new(), &trial.disk, None, &to, &mut |_| true).unwrap();
        assert!(picture(&to) == new, "{at}");
        trial.reboot();
        let loaded = trial.load().unwrap();
        assert_eq!((loaded.outcome, loaded.generation), (Outcome::Loaded, Some(2)), "{at}");
        assert!(picture(trial.place()) == new, "{at}");
        assert!(!trial.names().iter().any(|name| name.ends_with(".bad")), "{at}: {:?}", trial.names());
    }
}

/// A disk with a snapshot, a directory of another user, and one of root that this user wants to change.
fn with_foreign_directory() -> Option<Trial> {
    if !rustix::process::geteuid().is_root() {
        skip("needs root");
        return None;
    }
    let trial = Trial::with(small);
    trial.save().unwrap();
    for name in ["theirs", "victim", "own"] {
        fs::create_dir(trial.path(name)).unwrap();
    }
    std::os::unix::fs::chown(trial.path("theirs"), Some(65534), Some(65534)).unwrap();
    Some(trial)
}

fn export(trial: &Trial, to: &Path) -> Result<(), engine::Error> {
    store::export(&Calls::new(), &trial.disk, None, to, &mut |_| true).map(drop)
}

#[test]
fn an_export_follows_no_link_of_another_user() {
    let Some(trial) = with_foreign_directory() else { return };
    let (theirs, victim) = (trial.path("theirs"), trial.path("victim"));
    let link = theirs.join("link");
    symlink(&victim, &link).unwrap();
    lchown(&link, Some(65534), Some(65534)).unwrap();
    for to in [link.clone(), link.join("new"), link.join("further/new")] {
        let error = export(&trial, &to).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsafe, "{error}");
        assert!(error.message.contains(link.to_str().unwrap()), "{error}");
        assert_eq!(picture(&victim).len(), 1);
    }
    // A directory of theirs without links is fine, and so is a link of root.
    export(&trial, &theirs.join("new/directory")).unwrap();
    let link = trial.path("own/link");
    symlink(&victim, &link).unwrap();
    export(&trial, &link).unwrap();
    assert!(picture(&victim) == picture(trial.place()));
    // What they have put at the temporary name is not used.
    let partial = theirs.join(".next.zramd-partial");
    fs::create_dir(&partial).unwrap();
    std::os::unix::fs::chown(&partial, Some(65534), Some(65534)).unwrap();
    export(&trial, &theirs.join("next")).unwrap_err();
}

#[test]
fn an_export_beside_a_user_who_exchanges_the_destination_writes_nowhere_else() {
    let Some(trial) = with_foreign_directory() else { return };
    let (theirs, victim, to) = (trial.path("theirs"), trial.path("victim"), trial.path("theirs/to"));
    let link = theirs.join("link");
    symlink(&victim, &link).unwrap();
    lchown(&link, Some(65534), Some(65534)).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                renameat_with(CWD, &to, CWD, &link, RenameFlags::EXCHANGE).ok();
            }
        });
        for _ in 0..30 {
            fs::create_dir(&to).ok();
            export(&trial, &to).ok();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(picture(&victim).len(), 1);
}

#[test]
fn a_disk_is_saved_by_its_mark_if_all_notes_about_it_are_lost() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root, for attributes in the name space `trusted`");
    }
    let trial = Trial::with(small);
    trial.save().unwrap();
    let state = trial.disk.store().join("state.json");
    fs::remove_file(&state).unwrap();
    fs::write(trial.place().join("later"), "x").unwrap();
    trial.save().unwrap();
    // A second load finds it loaded.
    fs::remove_file(&state).unwrap();
    assert!(trial.load().unwrap().already);
    // One that is only half loaded is not saved.
    trial.reboot();
    let mut steps = 0;
    let calls = Calls::with_fault(Some((60, Fault::KillBefore)));
    store::load(&calls, &trial.disk, &mut |_| {
        steps += 1;
        true
    })
    .unwrap_err();
    fs::remove_file(&state).unwrap();
    let error = store::save(&Calls::new(), &trial.disk, FORCED, &mut |_| true).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotLoaded, "{error}");
}
