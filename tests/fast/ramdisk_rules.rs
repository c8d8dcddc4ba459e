//! Rules of snapshots: refusals, sizes, first use, pins, concurrent saves, changes during a save.

use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::apart::outside;
use crate::support::ramdisk::{ASKED, FORCED, Trial, change, noise, picture, small, unchanged};
use crate::support::skip;
use engine::ErrorKind;
use host::Errno;
use host::linux::ramdisk::{Calls, Subject};
use host::script::Fault;
use logic::ramdisk::entry::Attribute;
use logic::ramdisk::manifest::Consistency;
use logic::ramdisk::state::Outcome;
use logic::ramdisk::{Mode, OnFailure, SaveReason};
use store::format::Footer;
use store::{self, Request, Saved};

#[test]
fn a_store_in_memory_is_refused() {
    let mut trial = Trial::new();
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        return skip("needs /dev/shm");
    }
    let store = tempfile::tempdir_in(shm).unwrap();
    trial.set_store(store.path().join("store"));
    trial.disk.trial = false;
    for error in [trial.save().unwrap_err(), trial.load().unwrap_err()] {
        assert_eq!(error.kind, ErrorKind::Unsafe);
        assert!(error.message.contains("tmpfs"), "{error}");
    }
}

#[test]
fn a_store_below_its_own_disk_is_refused_and_so_is_a_place_without_mount() {
    let mut trial = Trial::new();
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let directory = directory.path().canonicalize().unwrap();
    trial.disk.trial = false;
    trial.set_store(directory.join("target/store"));
    trial.disk.mount_point = directory.join("target");
    let error = trial.load().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsafe, "{error}");
    trial.disk.mount_point = trial.path("mount point");
    let error = trial.load().unwrap_err();
    // A container's overlay is refused as a store.
    assert!(error.kind == ErrorKind::NotLoaded || error.message.contains("overlay"), "{error}");
}

#[test]
fn what_was_not_loaded_is_not_saved() {
    let trial = Trial::new();
    small(trial.place());
    let error = trial.save().unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotLoaded, "{error}");
    // Nor are files in the directory where the disk should be mounted.
    let trial = Trial::with(small);
    trial.save().unwrap();
    trial.reboot();
    let error = trial.save().unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotLoaded, "{error}");
    assert_eq!(trial.generations(), [1]);
    // Loading into a disk with files would mix both contents.
    fs::write(trial.place().join("theirs"), "x").unwrap();
    let error = trial.load().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsafe, "{error}");
    assert_eq!(picture(trial.place()).len(), 2);
    // Unless it is adopted.
    store::adopt(&Calls::new(), &trial.disk).unwrap();
    trial.save().unwrap();
    assert_eq!(trial.generations(), [2, 1]);
}

#[test]
fn two_saves_wait_for_each_other() {
    let trial = Trial::with(small);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| trial.save().unwrap());
        }
    });
    assert_eq!(trial.generations(), [4, 3]);
    trial.verify(4).unwrap();
    trial.verify(3).unwrap();
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success());
}

#[test]
fn nothing_is_written_when_nothing_has_changed() {
    let trial = Trial::with(small);
    trial.save().unwrap();
    trial.reboot();
    trial.load().unwrap();
    let before = picture(trial.disk.store());
    for _ in 0..2 {
        assert_eq!(trial.save_as(ASKED), Ok(unchanged(1)));
    }
    assert!(picture(trial.disk.store()) == before);
    // Each kind of change is noticed.
    let place = trial.place().to_owned();
    let changes: [(&str, &dyn Fn()); 5] = [
        ("contents", &|| fs::write(place.join("a/one"), "FIRST").unwrap()),
        ("mode", &|| run(outside("chmod").arg("o+w").arg(place.join("big")))),
        ("name", &|| fs::rename(place.join("big"), place.join("bigger")).unwrap()),
        ("deletion", &|| fs::remove_file(place.join("bigger")).unwrap()),
        ("a time", &|| run(outside("touch").args(["-d", "2001-01-01"]).arg(place.join("a")))),
    ];
    for (number, (what, change)) in (2..).zip(changes) {
        change();
        let saved = trial.save_as(ASKED).unwrap();
        assert!(
            matches!(saved, Saved::Written { generation, .. } if generation == number),
            "{what}: {saved:?}"
        );
    }
}

#[test]
fn what_saves_write_is_counted_over_reboots() {
    let mut trial = Trial::with(small);
    let written = |trial: &Trial| {
        let calls = Calls::new();
        let writes = store::status(&calls, &trial.disk).unwrap().state.writes_at(calls.clocks());
        (writes.spent(), writes.total())
    };
    let size = |trial: &Trial, name| fs::metadata(trial.disk.store().join(name)).unwrap().len();
    assert_eq!(written(&trial), (0, 0));
    trial.save().unwrap();
    let first = size(&trial, "gen-1");
    assert_eq!(written(&trial), (first, first));
    trial.reboot();
    trial.load().unwrap();
    change(trial.place());
    trial.save().unwrap();
    let both = first + size(&trial, "gen-2");
    assert_eq!(trial.save_as(ASKED), Ok(unchanged(2)));
    assert_eq!(written(&trial), (both, both));
    // Also what a save writes that fails.
    trial.disk.store_limit = Some(1);
    let new: Vec<u8> = noise(100_000).into_iter().map(|byte| byte ^ 1).collect();
    fs::write(trial.place().join("more"), new).unwrap();
    assert_eq!(trial.save().unwrap_err().kind, ErrorKind::StoreFull);
    let (day, total) = written(&trial);
    assert!(day == total && total > both + 50_000, "{total} {both}");
}

#[test]
fn a_daily_budget_delays_what_is_copied_from_old_files_and_no_save() {
    let names = |daily_budget: Option<u64>, later: Option<u64>| {
        let mut trial = Trial::with(|root| {
            for (number, data) in noise(1 << 20).chunks(64 << 10).enumerate() {
                fs::write(root.join(number.to_string()), data).unwrap();
            }
        });
        trial.disk.keep.generations = 1;
        trial.disk.daily_budget = daily_budget;
        trial.save().unwrap();
        // Little of the first snapshot is needed after this.
        for number in 0..14 {
            let path = trial.place().join(number.to_string());
            let data: Vec<u8> = fs::read(&path).unwrap().into_iter().map(|byte| byte ^ 1).collect();
            fs::write(path, data).unwrap();
        }
        trial.disk.daily_budget = later;
        trial.save().unwrap();
        trial.verify(2).unwrap();
        let names = trial.names();
        names.into_iter().filter(|name| name != "state.json").collect::<Vec<_>>()
    };
    assert_eq!(names(None, None), ["gen-2"]);
    assert_eq!(names(Some(1), Some(1)), ["gen-2", "rest-1"]);
    assert_eq!(names(Some(1), Some(1 << 30)), ["gen-2"]);
}

/// Contents are given up in the order of their age, and each file of a save has some that last.
#[test]
fn a_store_of_rotated_logs_is_little_larger_than_a_fresh_one_after_many_saves() {
    let aged = Trial::with(|_| ());
    let noise = noise(1 << 20);
    let (mut new, mut copied) = (0, 0);
    for save in 0..90 {
        for log in 0..4 {
            let name = |old: usize| aged.place().join(format!("log{log}.{old}"));
            if (save + 4 * log) % 16 == 0 {
                for old in (0..3).filter(|old| name(*old).exists()).rev() {
                    fs::rename(name(old), name(old + 1)).unwrap();
                }
            }
            let mut file = fs::OpenOptions::new().create(true).append(true).open(name(0)).unwrap();
            let start = (save * 4 + log) * 2900 % (1 << 20) / 2;
            file.write_all(&noise[start..start + 5000]).unwrap();
        }
        aged.save().unwrap();
        let file = fs::read(aged.disk.store().join(format!("gen-{}", save + 1))).unwrap();
        let footer = Footer::parse(file.last_chunk().unwrap(), file.len() as u64).unwrap();
        (new, copied) = (new + footer.new_bytes, copied + footer.copied_bytes);
    }
    let fresh = Trial::with(|_| ());
    for entry in fs::read_dir(aged.place()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), fresh.place().join(entry.file_name())).unwrap();
    }
    fresh.save().unwrap();
    let size = |trial: &Trial| store::status(&Calls::new(), &trial.disk).unwrap().bytes;
    let (size, fresh, files) = (size(&aged), size(&fresh), aged.names().len());
    assert!(size * 10 < fresh * 14 && files < 24, "{size} bytes in {files} files, {fresh} in a fresh store");
    assert!(copied * 2 <= new, "{copied} bytes were copied, and {new} added");
}

#[test]
fn files_that_change_during_a_save_are_read_again_and_marked() {
    let trial = Trial::with(small);
    fs::write(trial.place().join("z"), "before").unwrap();
    let late = trial.place().join("z");
    let mut packed = 0;
    let saved = store::save(&Calls::new(), &trial.disk, FORCED, &mut |progress| {
        packed += u32::from(progress.total_bytes > 0);
        if packed == 1 {
            fs::write(&late, "after, and longer").unwrap();
        }
        true
    });
    let Ok(Saved::Written { manifest, .. }) = saved else { panic!("{saved:?}") };
    // Each file is consistent, but the files are from different moments.
    assert_eq!(
        (manifest.consistency, manifest.changed.len()),
        (Consistency::Fuzzy, 0),
        "{:?}",
        manifest.changed
    );
    trial.reboot();
    trial.load().unwrap();
    assert_eq!(fs::read_to_string(&late).unwrap(), "after, and longer");

    // Too large to be read twice: the part that was read is kept, and the file is named.
    fs::write(&late, noise(20 << 20)).unwrap();
    let saved = store::save(&Calls::new(), &trial.disk, FORCED, &mut |progress| {
        if progress.done_bytes > 10 << 20 {
            fs::OpenOptions::new().write(true).open(&late).unwrap().set_len(5 << 20).unwrap();
        }
        true
    });
    let Ok(Saved::Written { manifest, .. }) = saved else { panic!("{saved:?}") };
    assert_eq!((manifest.consistency, manifest.changed), (Consistency::Fuzzy, vec!["z".to_owned()]));
    trial.reboot();
    assert_eq!(trial.load().unwrap().outcome, Outcome::Loaded);
    assert_eq!(fs::metadata(&late).unwrap().len(), 20 << 20);
}

/// Runs `change` when the file `a` has been read, which is the first one; returns what was saved.
fn saved_with_a_change(change: fn(&Path)) -> (Consistency, Vec<Vec<u8>>) {
    let trial = Trial::with(|root| {
        for name in ["a", "b", "c/d", "c/e"] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "before").unwrap();
        }
        std::os::unix::fs::symlink("before", root.join("link")).unwrap();
    });
    let (calls, mut is_changed) = (Calls::new(), false);
    calls.wait_for_tick();
    let saved = store::save(&calls, &trial.disk, FORCED, &mut |progress| {
        if progress.done_bytes > 0 && !std::mem::replace(&mut is_changed, true) {
            change(trial.place());
        }
        true
    });
    let Ok(Saved::Written { manifest, .. }) = saved else { panic!("{saved:?}") };
    trial.reboot();
    trial.load().unwrap();
    let read = |name: &str| fs::read(trial.place().join(name)).unwrap_or_default();
    (manifest.consistency, ["a", "c/d", "later"].map(read).to_vec())
}

#[test]
fn a_snapshot_is_exact_if_what_was_read_had_not_changed_since_the_walk() {
    let before = || [&b"before"[..], b"before", b""].map(<[u8]>::to_vec).to_vec();
    let harmless: [fn(&Path); 2] = [
        |root| fs::write(root.join("a"), "after").unwrap(),
        |root| fs::write(root.join("later"), "after").unwrap(),
    ];
    for change in harmless {
        assert_eq!(saved_with_a_change(change), (Consistency::Exact, before()));
    }
    let noticed: [fn(&Path); 5] = [
        |root| fs::write(root.join("b"), "after").unwrap(),
        |root| fs::rename(root.join("c/d"), root.join("b")).unwrap(),
        |root| fs::write(root.join("c/new"), "after").unwrap(),
        |root| fs::set_permissions(root.join("c/e"), fs::Permissions::from_mode(0o600)).unwrap(),
        |root| {
            fs::remove_file(root.join("link")).unwrap();
            std::os::unix::fs::symlink("after", root.join("link")).unwrap();
        },
    ];
    for (number, change) in noticed.into_iter().enumerate() {
        assert_eq!(saved_with_a_change(change).0, Consistency::Fuzzy, "{number}");
    }
}

/// Otherwise a user could have files of a closed directory saved below an open one.
#[test]
fn a_directory_that_becomes_a_link_during_a_save_is_not_followed() {
    let trial = Trial::with(|root| {
        fs::write(root.join("a"), "first").unwrap();
        for name in ["open", "closed"] {
            fs::create_dir(root.join(name)).unwrap();
            fs::write(root.join(name).join("file"), name).unwrap();
        }
    });
    let (open, mut is_changed) = (trial.place().join("open"), false);
    let saved = store::save(&Calls::new(), &trial.disk, FORCED, &mut |progress| {
        if progress.done_bytes > 0 && !std::mem::replace(&mut is_changed, true) {
            fs::rename(&open, trial.place().join("aside")).unwrap();
            std::os::unix::fs::symlink("closed", &open).unwrap();
        }
        true
    });
    let Ok(Saved::Written { manifest, .. }) = saved else { panic!("{saved:?}") };
    assert_eq!(manifest.changed, ["open"]);
    trial.reboot();
    trial.load().unwrap();
    assert!(!open.exists(), "{:?}", picture(trial.place()));
    assert_eq!(fs::read_to_string(trial.place().join("closed/file")).unwrap(), "closed");
}

#[test]
fn a_save_that_is_ended_leaves_everything_as_it_was() {
    let trial = Trial::with(small);
    trial.save().unwrap();
    let before = trial.names();
    let saved = store::save(&Calls::new(), &trial.disk, FORCED, &mut |_| false);
    assert_eq!(saved.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(trial.names(), before);
    trial.reboot();
    let loaded = store::load(&Calls::new(), &trial.disk, &mut |_| false);
    assert_eq!(loaded.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!((trial.names(), picture(trial.place()).len()), (before, 1));
    assert_eq!(trial.load().unwrap().generation, Some(1));
}

#[test]
fn pinned_generations_stay_until_they_are_deleted() {
    let trial = Trial::with(small);
    let calls = Calls::new();
    trial.save().unwrap();
    store::pin(&calls, &trial.disk, 1, Some("before the upgrade")).unwrap();
    for _ in 0..4 {
        trial.save().unwrap();
    }
    assert_eq!(trial.generations(), [5, 4, 1]);
    assert_eq!(store::pin(&calls, &trial.disk, 3, Some("x")).unwrap_err().kind, ErrorKind::NotFound);
    store::pin(&calls, &trial.disk, 1, None).unwrap();
    trial.save().unwrap();
    assert_eq!(trial.generations(), [6, 5]);
    store::delete(&calls, &trial.disk, 6).unwrap();
    assert_eq!(trial.generations(), [5]);
    assert_eq!(store::delete(&calls, &trial.disk, 6).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn a_pinned_generation_is_deleted_only_after_it_was_unpinned() {
    let trial = Trial::with(small);
    let calls = Calls::new();
    trial.save().unwrap();
    store::pin(&calls, &trial.disk, 1, Some("before the upgrade")).unwrap();
    trial.save().unwrap();
    let spare = || store::delete_spare(&calls, &trial.disk, 1, &mut |_| true);
    for refused in [spare(), store::delete(&calls, &trial.disk, 1)] {
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Unsafe);
    }
    assert_eq!(trial.generations(), [2, 1]);
    store::pin(&calls, &trial.disk, 1, None).unwrap();
    spare().unwrap();
    assert_eq!(trial.generations(), [2]);
}

const BY_USER: Request = Request { reason: SaveReason::User, force: false, last: false, gives_up: false };

#[test]
fn saves_of_users_replace_only_saves_of_users() {
    let trial = Trial::with(small);
    let write = |text: &str| fs::write(trial.place().join("file"), text).unwrap();
    let timer = Request { reason: SaveReason::Timer, ..BY_USER };
    for text in ["one", "two"] {
        write(text);
        trial.save_as(timer).unwrap();
    }
    for text in ["three", "four", "five"] {
        write(text);
        trial.save_as(BY_USER).unwrap();
    }
    assert_eq!(trial.generations(), [5, 2, 1]);
    // What the timer finds unchanged is saved for it as well, which costs no contents.
    let saved = trial.save_as(timer).unwrap();
    assert!(matches!(saved, Saved::Written { generation: 6, written_bytes: ..3000, .. }), "{saved:?}");
    assert_eq!(trial.save_as(timer), Ok(unchanged(6)));
    write("six");
    trial.save_as(BY_USER).unwrap();
    write("seven");
    trial.save_as(BY_USER).unwrap();
    assert_eq!(trial.generations(), [8, 6, 2]);
    write("eight");
    trial.save_as(timer).unwrap();
    assert_eq!(trial.generations(), [9, 8, 6]);
}

#[test]
fn a_save_of_a_user_that_needs_space_of_others_is_refused() {
    let mut trial = Trial::with(small);
    trial.disk.keep.generations = 10;
    let Saved::Written { written_bytes, .. } = trial.save().unwrap() else { panic!() };
    trial.disk.store_limit = Some(written_bytes + 12_000);
    change(trial.place());
    fs::write(trial.place().join("a/new"), noise(9000)).unwrap();
    trial.save().unwrap();
    fs::write(trial.place().join("a/new"), noise(9001)).unwrap();
    assert_eq!(trial.save_as(BY_USER).unwrap_err().kind, ErrorKind::StoreFull);
    assert_eq!(trial.generations(), [2, 1]);
    trial.save_as(ASKED).unwrap();
    assert_eq!(trial.generations()[0], 3);
}

#[test]
fn a_save_that_would_write_the_same_tree_writes_none() {
    let trial = Trial::with(small);
    fs::set_permissions(trial.place().join("big"), fs::Permissions::from_mode(0o644)).unwrap();
    trial.save().unwrap();
    // The change has another ctime, but ctime is not saved.
    for mode in [0o600, 0o644] {
        fs::set_permissions(trial.place().join("big"), fs::Permissions::from_mode(mode)).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(trial.save_as(ASKED), Ok(unchanged(1)));
    }
}

#[test]
fn what_was_loaded_in_this_boot_is_not_pruned() {
    let trial = Trial::with(small);
    trial.save().unwrap();
    trial.reboot();
    trial.load().unwrap();
    for number in 0..4 {
        fs::write(trial.place().join("n"), number.to_string()).unwrap();
        trial.save().unwrap();
    }
    assert_eq!(trial.generations(), [5, 4, 1]);
}

#[test]
fn a_store_limit_is_kept_and_one_that_is_too_small_refused() {
    let mut trial = Trial::with(small);
    trial.disk.keep.generations = 10;
    let Saved::Written { written_bytes, .. } = trial.save().unwrap() else { panic!() };
    trial.disk.store_limit = Some(written_bytes + 30_000);
    for number in 0..12_u8 {
        let file: Vec<u8> = noise(9000).iter().map(|byte| byte ^ number).collect();
        fs::write(trial.place().join("a/new"), file).unwrap();
        trial.save().unwrap();
    }
    let left = trial.generations();
    assert!(left[0] == 13 && left.len() > 1 && left.len() < 8, "{left:?}");
    let used: u64 =
        fs::read_dir(trial.disk.store()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(used < written_bytes + 40_000, "{used}");
    trial.disk.store_limit = Some(written_bytes / 2);
    let error = trial.save().unwrap_err();
    assert!(error.kind == ErrorKind::StoreFull && error.message.contains("store-limit"), "{error}");
    assert_eq!(trial.generations(), left);
}

#[test]
fn a_boot_that_ended_without_its_last_save_is_reported_until_the_next_one() {
    let trial = Trial::with(small);
    let last = Request { last: true, reason: SaveReason::Stop, force: false, gives_up: false };
    trial.save_as(last).unwrap();
    let state = trial.disk.store().join("state.json");
    let other_boot = |dirty: bool| {
        let text = fs::read_to_string(&state).unwrap();
        let boot = Calls::new().boot_id().unwrap();
        assert!(text.contains(&format!("\"dirty\":{dirty}")), "{text}");
        fs::write(&state, text.replace(&boot, "another")).unwrap();
        trial.reboot();
    };
    other_boot(false);
    assert!(!trial.load().unwrap().unclean);
    other_boot(true);
    assert!(trial.load().unwrap().unclean);
    // Also after a second load.
    trial.reboot();
    assert!(trial.load().unwrap().unclean);
    change(trial.place());
    trial.save().unwrap();
    trial.reboot();
    assert!(!trial.load().unwrap().unclean);
}

#[test]
fn without_a_good_generation_the_configured_policy_applies() {
    let broken = || {
        let trial = Trial::with(small);
        trial.save().unwrap();
        fs::write(trial.disk.store().join("gen-1"), "broken").unwrap();
        trial.reboot();
        trial
    };
    let error = broken().load().unwrap_err();
    assert!(error.kind == ErrorKind::SnapshotCorrupt && error.message.contains("snapshot 1"), "{error}");

    let mut trial = broken();
    trial.disk.keep.on_failure = Some(OnFailure::Passthrough);
    assert_eq!(trial.load().unwrap().outcome, Outcome::Passthrough);
    assert_eq!(trial.save().unwrap_err().kind, ErrorKind::NotLoaded);

    // By default, the contents of the directory below decide.
    let mut trial = broken();
    trial.disk.keep.on_failure = None;
    trial.disk.mount_point = trial.path("store");
    assert_eq!(trial.load().unwrap().outcome, Outcome::Passthrough);
    let mut trial = broken();
    trial.disk.keep.on_failure = None;
    assert_eq!(trial.load().unwrap().outcome, Outcome::Empty);

    let mut trial = broken();
    trial.disk.keep.on_failure = Some(OnFailure::Empty);
    // A seed directory is for the first use only.
    trial.seed(trial.path("store"));
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, picture(trial.place()).len()), (Outcome::Empty, 1));
    trial.save().unwrap();
    assert_eq!(trial.names(), ["gen-1.bad", "gen-2", "state.json"]);
    // With all snapshots set aside, the next load is still not the first use.
    store::delete(&Calls::new(), &trial.disk, 2).unwrap();
    trial.reboot();
    assert_eq!(trial.load().unwrap().outcome, Outcome::Empty);
}

/// Mode, owner, time and attributes of a directory.
type Root = (u32, u32, u32, i64, Vec<Attribute>);

fn root(path: &Path) -> Root {
    let (meta, opened) = (fs::metadata(path).unwrap(), fs::File::open(path).unwrap());
    let (attributes, _) = Calls::new().attributes(Subject::Open(opened.as_fd())).unwrap();
    (meta.mode(), meta.uid(), meta.gid(), meta.mtime(), attributes)
}

/// Sets what a configuration can set on the root of an empty disk: mode, owner (as root), and ACLs if supported.
fn configure(place: &Path) {
    fs::set_permissions(place, fs::Permissions::from_mode(0o3771)).unwrap();
    let opened = fs::File::open(place).unwrap();
    // Version 2; owner rwx, user 7 r-x, group r-x, mask rwx, others --x.
    let entries = [(1, 7, u32::MAX), (2, 5, 7), (4, 5, u32::MAX), (16, 7, u32::MAX), (32, 1, u32::MAX)];
    let mut acl = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        acl.extend([u16::to_le_bytes(tag), u16::to_le_bytes(permissions)].concat());
        acl.extend(u32::to_le_bytes(id));
    }
    for name in ["system.posix_acl_default", "system.posix_acl_access"] {
        let set = rustix::fs::fsetxattr(&opened, name, &acl, rustix::fs::XattrFlags::empty());
        if let Err(errno) = set {
            skip(&format!("needs a file system with ACLs: {errno}"));
        }
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(place, Some(1234), Some(4321)).unwrap();
        fs::set_permissions(place, fs::Permissions::from_mode(0o3771)).unwrap();
    }
}

/// An empty disk after a load of a truncated snapshot, the only one.
fn with_a_damaged_snapshot() -> Trial {
    let trial = Trial::with(small);
    trial.save().unwrap();
    let file = trial.disk.store().join("gen-1");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    trial.reboot();
    configure(trial.place());
    trial
}

#[test]
fn a_disk_that_starts_empty_has_its_owner_mode_and_acl() {
    for on_failure in [OnFailure::Empty, OnFailure::Passthrough, OnFailure::Fail] {
        let mut trial = with_a_damaged_snapshot();
        trial.disk.keep.on_failure = Some(on_failure);
        let before = root(trial.place());
        assert_eq!(trial.load().is_ok(), on_failure != OnFailure::Fail);
        assert_eq!((root(trial.place()), picture(trial.place()).len()), (before, 1), "{on_failure:?}");
    }
    // The first load is interrupted.
    let mut trial = Trial::new();
    trial.seed(trial.path("seed"));
    fs::create_dir(trial.path("seed")).unwrap();
    small(&trial.path("seed"));
    configure(trial.place());
    let before = root(trial.place());
    store::load(&Calls::new(), &trial.disk, &mut |_| false).unwrap_err();
    assert_eq!((root(trial.place()), picture(trial.place()).len()), (before, 1));
}

#[test]
fn a_disk_has_its_owner_mode_and_acl_after_a_load_that_was_killed() {
    let damaged = || {
        let mut trial = with_a_damaged_snapshot();
        trial.disk.keep.on_failure = Some(OnFailure::Empty);
        let (mode, uid, gid, _, attributes) = root(trial.place());
        (trial, (mode, uid, gid, attributes))
    };
    let load = |trial: &Trial, calls: &Calls| store::load(calls, &trial.disk, &mut |_| true);
    let counted = Calls::with_fault(None);
    load(&damaged().0, &counted).unwrap();
    for number in 1..=counted.transcript().len() {
        let (trial, before) = damaged();
        // The result of a killed process does not matter.
        load(&trial, &Calls::with_fault(Some((number, Fault::KillBefore)))).ok();
        trial.load().unwrap();
        let (mode, uid, gid, _, attributes) = root(trial.place());
        assert_eq!((mode, uid, gid, attributes), before, "killed before call {number}");
        assert_eq!(picture(trial.place()).len(), 1, "killed before call {number}");
    }
}

/// Number of the first call of this kind in `work`.
fn first(call: &str, work: impl FnOnce(&Calls)) -> usize {
    let counted = Calls::with_fault(None);
    work(&counted);
    counted.transcript().iter().position(|line| line.starts_with(call)).unwrap() + 1
}

#[test]
fn a_kernel_without_openat2_is_refused_before_anything_is_filled() {
    let mut trial = Trial::with(small);
    trial.save().unwrap();
    trial.disk.keep.on_failure = Some(OnFailure::Empty);
    let without = |number| Calls::with_fault(Some((number, Fault::Fail(Errno(libc::ENOSYS)))));
    let to = trial.path("to");
    let export = |calls: &Calls| store::export(calls, &trial.disk, None, &to, &mut |_| true).map(drop);
    let number = first("openat2", |calls| export(calls).unwrap());
    fs::remove_dir_all(&to).unwrap();
    assert_eq!(export(&without(number)).unwrap_err().kind, ErrorKind::Unsupported);

    trial.reboot();
    let load = |calls: &Calls| store::load(calls, &trial.disk, &mut |_| true).map(drop);
    let number = first("openat2", |calls| load(calls).unwrap());
    trial.reboot();
    assert_eq!(load(&without(number)).unwrap_err().kind, ErrorKind::Unsupported);
    assert_eq!((picture(trial.place()).len(), trial.generations()), (1, vec![1]));
}

#[test]
fn a_directory_into_which_an_export_failed_is_as_it_was() {
    let trial = with_a_damaged_snapshot();
    let to = trial.path("to");
    fs::create_dir(&to).unwrap();
    configure(&to);
    let before = root(&to);
    store::export(&Calls::new(), &trial.disk, None, &to, &mut |_| true).unwrap_err();
    assert_eq!((root(&to), picture(&to).len()), (before, 1));
}

#[test]
fn a_skeleton_has_everything_but_contents() {
    let mut trial = Trial::with(small);
    trial.save().unwrap();
    trial.disk.keep.mode = Mode::Skeleton;
    let Saved::Written { manifest, written_bytes, .. } = trial.save().unwrap() else { panic!() };
    assert!(written_bytes < 3000 && manifest.contents.bytes == 0, "{manifest:?}");
    // Contents may change, names may not.
    Calls::new().wait_for_tick();
    trial.save().unwrap();
    fs::write(trial.place().join("big"), "other contents").unwrap();
    assert!(matches!(trial.save_as(ASKED), Ok(Saved::Unchanged { .. })));
    fs::write(trial.place().join("a/new"), "").unwrap();
    assert!(matches!(trial.save_as(ASKED), Ok(Saved::Written { .. })));
    // The last snapshot with contents is kept.
    assert!(trial.generations().contains(&1), "{:?}", trial.generations());
    let expected: Vec<_> = picture(trial.place()).into_keys().collect();
    trial.reboot();
    trial.load().unwrap();
    let found: Vec<_> = picture(trial.place()).into_keys().collect();
    assert_eq!(found, expected);
    assert_eq!(fs::metadata(trial.place().join("big")).unwrap().len(), 0);
    assert_eq!(fs::read_link(trial.place().join("a/b/link")).unwrap(), Path::new("../one"));
}

/// Directories each in the one before, below `above`; returns the last.
fn chain(above: &Path) -> PathBuf {
    let last = above.join(["d"; 150].join("/"));
    fs::create_dir_all(&last).unwrap();
    last
}

/// Number of directories opened by a load of this tree.
fn opened_by_a_load(make: impl FnOnce(&Path)) -> usize {
    let trial = Trial::new();
    trial.load().unwrap();
    make(trial.place());
    trial.save().unwrap();
    let before = picture(trial.place());
    trial.reboot();
    let calls = Calls::with_fault(None);
    store::load(&calls, &trial.disk, &mut |_| true).unwrap();
    assert!(picture(trial.place()) == before);
    calls.transcript().iter().filter(|line| line.starts_with("openat2")).count()
}

#[test]
fn hard_links_between_deep_directories_are_created_without_opening_the_way_for_each() {
    // Links in one directory to files in two, then links in two to files in many.
    let to_two = |links: usize| {
        opened_by_a_load(|place| {
            let deep = ["a", "b"].map(|name| chain(&place.join(name)).join("file"));
            for file in &deep {
                fs::write(file, "x").unwrap();
            }
            fs::create_dir(place.join("z")).unwrap();
            (0..links).for_each(|at| fs::hard_link(&deep[at % 2], place.join(format!("z/{at}"))).unwrap());
        })
    };
    let in_two = |links: usize| {
        opened_by_a_load(|place| {
            let deep = ["x", "y"].map(|name| chain(&place.join(name)));
            for at in 0..links / 2 {
                let above = place.join(format!("t{at}"));
                fs::create_dir(&above).unwrap();
                fs::write(above.join("file"), "x").unwrap();
                for deep in &deep {
                    fs::hard_link(above.join("file"), deep.join(format!("l{at}"))).unwrap();
                }
            }
        })
    };
    for opened in [&to_two as &dyn Fn(usize) -> usize, &in_two] {
        let (few, many) = (opened(100), opened(200));
        assert!(many - few <= 4 * 100, "{few} directories are opened for 100 links, {many} for 200");
    }
}

#[test]
fn every_phase_reports_entries_without_contents() {
    const ENTRIES: usize = 150;
    /// No phase has fewer calls per 100 entries.
    const CALLS: usize = 100;
    let trial = Trial::with(|place| {
        fs::write(place.join("file"), "").unwrap();
        for at in 0..ENTRIES {
            fs::create_dir(place.join(format!("d{at}"))).unwrap();
            fs::hard_link(place.join("file"), place.join(format!("l{at}"))).unwrap();
            std::os::unix::fs::symlink("x", place.join(format!("s{at}"))).unwrap();
        }
    });
    let watched = |what: &str, work: &dyn Fn(&Calls, store::Watcher<'_>)| {
        let calls = Calls::with_fault(None);
        let (mut last, mut widest) = (0, 0);
        work(&calls, &mut |_| {
            let now = calls.transcript().len();
            widest = widest.max(now - last);
            last = now;
            true
        });
        widest = widest.max(calls.transcript().len() - last);
        assert!(widest <= CALLS, "{what}: {widest} calls without a report");
    };
    let save =
        || watched("save", &|calls, watcher| drop(store::save(calls, &trial.disk, FORCED, watcher).unwrap()));
    save();
    watched("verify", &|calls, watcher| {
        store::verify(calls, &trial.disk, None, watcher).unwrap();
    });
    trial.reboot();
    watched("load", &|calls, watcher| drop(store::load(calls, &trial.disk, watcher).unwrap()));
    let export = trial.path("export");
    watched("export", &|calls, watcher| {
        drop(store::export(calls, &trial.disk, None, &export, watcher).unwrap());
    });
}

#[test]
fn a_load_that_is_cancelled_while_links_are_created_leaves_nothing() {
    let trial = Trial::with(|place| {
        fs::write(place.join("file"), "x").unwrap();
        (0..3).for_each(|at| fs::hard_link(place.join("file"), place.join(format!("l{at}"))).unwrap());
    });
    trial.save().unwrap();
    trial.reboot();
    let before = picture(trial.place());
    let calls = Calls::with_fault(None);
    let is_linking = || calls.transcript().iter().any(|line| line.starts_with("linkat l"));
    assert!(store::load(&calls, &trial.disk, &mut |_| !is_linking()).is_err());
    assert_eq!(picture(trial.place()).len(), before.len());
}
