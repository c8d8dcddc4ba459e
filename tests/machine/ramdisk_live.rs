//! Saves of disks in use: writes through mappings, and concurrent changes of names.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::mounted::Mounted;
use crate::support::ramdisk::{ASKED, FORCED, Trial, picture, small, unchanged};
use crate::support::{PYTHON, alone, has_program, may_mount, skip};
use host::linux::ramdisk::Calls;
use logic::ramdisk::SaveReason;
use logic::ramdisk::manifest::Consistency;
use logic::ramdisk::state::Outcome;
use store::{self, Request, Saved};

const LAST: Request = Request { reason: SaveReason::Stop, force: false, last: true, gives_up: true };

/// A process that has mapped a file and read a byte of it; it writes that byte for every line it receives.
struct Mapper(Child, BufReader<std::process::ChildStdout>);

const MAPPER: &str = "
import mmap, sys
with open(sys.argv[1], 'r+b') as file:
    pages = mmap.mmap(file.fileno(), 0)
print(pages[0], flush=True)
for line in sys.stdin:
    pages[0] = ord(line[0])
    print(pages[0], flush=True)
";

impl Mapper {
    fn new(file: &Path) -> Mapper {
        let mut command = Command::new(PYTHON);
        command.args(["-c", MAPPER]).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut mapper = Mapper(child, answers);
        mapper.answer();
        mapper
    }

    fn answer(&mut self) {
        let mut line = String::new();
        assert!(self.1.read_line(&mut line).unwrap() > 0);
    }

    fn write(&mut self, letter: char) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{letter}").unwrap();
        self.answer();
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// Mounts a new ext4 at the place of the disk.
fn on_ext4(trial: &Trial) -> Option<Mounted> {
    Mounted::image(&trial.path("image"), "ext4", 32 << 20, trial.place())
}

/// A save includes what a process wrote through its mapping, and writes nothing without such writes.
fn mapped_writes_are_saved(trial: &Trial) {
    let file = trial.place().join("database");
    fs::write(&file, vec![b'-'; 10_000]).unwrap();
    // Files with a recent change are saved again anyway.
    Calls::new().wait_for_tick();
    let mut mapper = Mapper::new(&file);
    mapper.write('0');
    Calls::new().wait_for_tick();
    trial.save().unwrap();
    let requests = [('a', LAST), ('b', ASKED), ('c', Request { reason: SaveReason::Timer, ..ASKED })];
    for (number, (letter, request)) in (2..).zip(requests) {
        let store = picture(trial.disk.store());
        assert_eq!(trial.save_as(ASKED), Ok(unchanged(number - 1)));
        assert!(picture(trial.disk.store()) == store, "nothing is written");
        mapper.write(letter);
        Calls::new().wait_for_tick();
        let saved = trial.save_as(request).unwrap();
        assert!(matches!(saved, Saved::Written { generation, .. } if generation == number), "{saved:?}");
        let to = trial.path(&format!("exported-{number}"));
        store::export(&Calls::new(), &trial.disk, None, &to, &mut |_| true).unwrap();
        assert!(fs::read(to.join("database")).unwrap() == fs::read(&file).unwrap());
    }
}

#[test]
fn what_is_written_through_a_mapping_of_a_tmpfs_is_saved() {
    if !has_program(PYTHON) {
        return skip("needs python3");
    }
    let trial = Trial::new();
    trial.load().unwrap();
    mapped_writes_are_saved(&trial);
}

#[test]
fn what_is_written_through_a_mapping_of_an_ext4_is_saved() {
    if !has_program(PYTHON) {
        return skip("needs python3");
    }
    let Some(_alone) = alone() else { return };
    let trial = Trial::new();
    let Some(_mounted) = on_ext4(&trial) else { return };
    trial.load().unwrap();
    mapped_writes_are_saved(&trial);
}

/// A concurrent change of a disk.
type Change = fn(&Path);

/// Runs `change` during a save, after the first file was read. The snapshot has to be good, and equal to the disk after the
/// next load.
fn saved_while(tree: Change, change: Change) -> Trial {
    let trial = Trial::with(tree);
    fs::write(trial.place().join("0"), "first").unwrap();
    let mut changed = false;
    let saved = store::save(&Calls::new(), &trial.disk, FORCED, &mut |progress| {
        if progress.done_bytes > 0 && !std::mem::replace(&mut changed, true) {
            change(trial.place());
        }
        true
    });
    let Ok(Saved::Written { manifest, .. }) = saved else { panic!("{saved:?}") };
    assert_eq!(manifest.consistency, Consistency::Fuzzy);
    trial.verify(1).unwrap();
    trial.reboot();
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.generation), (Outcome::Loaded, Some(1)), "{:?}", loaded.refused);
    assert_eq!(fs::read_to_string(trial.place().join("0")).unwrap(), "first");
    trial
}

#[test]
fn a_file_is_saved_under_the_names_that_it_keeps() {
    let linked = |root: &Path| {
        fs::write(root.join("b1"), "old").unwrap();
        fs::hard_link(root.join("b1"), root.join("b2")).unwrap();
        fs::create_dir(root.join("c")).unwrap();
        fs::hard_link(root.join("b1"), root.join("c/b3")).unwrap();
    };
    let read = |trial: &Trial, name: &str| fs::read_to_string(trial.place().join(name)).ok();
    let inode = |trial: &Trial, name: &str| fs::metadata(trial.place().join(name)).unwrap().ino();

    let trial = saved_while(linked, |root| fs::remove_file(root.join("b1")).unwrap());
    assert_eq!((read(&trial, "b1"), read(&trial, "b2")), (None, Some("old".to_owned())));
    assert_eq!(inode(&trial, "b2"), inode(&trial, "c/b3"));

    // The first name leads to another file than the other names.
    let trial = saved_while(linked, |root| {
        fs::write(root.join("new"), "new").unwrap();
        fs::rename(root.join("new"), root.join("b1")).unwrap();
    });
    assert_eq!((read(&trial, "b1"), read(&trial, "b2")), (Some("new".to_owned()), Some("old".to_owned())));
    assert_eq!(inode(&trial, "b2"), inode(&trial, "c/b3"));

    let trial = saved_while(linked, |root| {
        fs::remove_file(root.join("b1")).unwrap();
        fs::remove_file(root.join("b2")).unwrap();
        fs::remove_dir_all(root.join("c")).unwrap();
    });
    assert_eq!(picture(trial.place()).len(), 2);
}

#[test]
fn names_that_change_their_type_do_not_end_a_save() {
    let tree = |root: &Path| {
        small(root);
        fs::write(root.join("b"), "old").unwrap();
        fs::create_dir_all(root.join("d/sub")).unwrap();
        fs::write(root.join("d/sub/file"), "old").unwrap();
        fs::write(root.join("z"), "last").unwrap();
    };
    let changes: [(&str, Change); 9] = [
        ("a file goes", |root| fs::remove_file(root.join("b")).unwrap()),
        ("a file becomes a directory", |root| {
            fs::remove_file(root.join("b")).unwrap();
            fs::create_dir(root.join("b")).unwrap();
        }),
        ("a file becomes a link", |root| {
            fs::remove_file(root.join("b")).unwrap();
            symlink("z", root.join("b")).unwrap();
        }),
        ("a file becomes a pipe", |root| {
            fs::remove_file(root.join("b")).unwrap();
            assert!(Command::new("mkfifo").arg(root.join("b")).status().unwrap().success());
        }),
        ("a file becomes a socket", |root| {
            fs::remove_file(root.join("b")).unwrap();
            UnixListener::bind(root.join("b")).unwrap();
        }),
        ("a directory goes", |root| fs::remove_dir_all(root.join("d")).unwrap()),
        ("a directory becomes a file", |root| {
            fs::remove_dir_all(root.join("d")).unwrap();
            fs::write(root.join("d"), "file").unwrap();
        }),
        ("a directory becomes a link", |root| {
            fs::rename(root.join("d"), root.join("e")).unwrap();
            symlink("e", root.join("d")).unwrap();
        }),
        ("a link becomes a file", |root| {
            fs::remove_file(root.join("a/b/link")).unwrap();
            fs::write(root.join("a/b/link"), "file").unwrap();
        }),
    ];
    for (what, change) in changes {
        println!("{what}");
        let trial = saved_while(tree, change);
        assert_eq!(fs::read_to_string(trial.place().join("z")).unwrap(), "last", "{what}");
    }
}

#[test]
fn a_file_that_is_replaced_all_the_time_is_in_every_listing() {
    const FILES: usize = 6000;
    let trial = Trial::new();
    let name = |number: usize| format!("file-{:04}", number % FILES);
    (0..FILES).for_each(|number| fs::write(trial.place().join(name(number)), "").unwrap());
    let calls = Calls::new();
    let directory = calls.open_directory(trial.place()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let replacing = scope.spawn(|| {
            let new = trial.place().join("new");
            for number in 0.. {
                fs::write(&new, "").unwrap();
                fs::rename(&new, trial.place().join(name(number))).unwrap();
                if done.load(Ordering::Relaxed) {
                    return number;
                }
            }
            0
        });
        for _ in 0..50 {
            let names = calls.list(directory.as_fd()).unwrap();
            let found = names.iter().filter(|name| name.starts_with(b"file-")).count();
            if found != FILES {
                done.store(true, Ordering::Relaxed);
                panic!("{found} of {FILES}");
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(replacing.join().unwrap() > FILES / 100);
    });
}

#[test]
fn what_fsck_has_found_is_kept() {
    let Some(_alone) = alone() else { return };
    let trial = Trial::new();
    let Some(mounted) = on_ext4(&trial) else { return };
    trial.load().unwrap();
    let directory = trial.place().join("lost+found");
    let is_in_snapshot = |number: u64| {
        let to = trial.path(&format!("exported-{number}"));
        store::export(&Calls::new(), &trial.disk, Some(number), &to, &mut |_| true).unwrap();
        to.join("lost+found").exists()
    };
    fs::write(trial.place().join("file"), "x").unwrap();
    trial.save().unwrap();
    assert!(directory.is_dir() && !is_in_snapshot(1), "empty it is the file system's own");
    fs::create_dir(directory.join("#11")).unwrap();
    fs::write(directory.join("#11/#12"), "found").unwrap();
    trial.save().unwrap();
    assert!(is_in_snapshot(2));
    // Also on a new file system that has such a directory.
    drop(mounted);
    fs::remove_file(trial.path("image")).unwrap();
    let _mounted = on_ext4(&trial).unwrap();
    assert!(directory.is_dir());
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.generation), (Outcome::Loaded, Some(2)), "{:?}", loaded.refused);
    assert_eq!(fs::read_to_string(directory.join("#11/#12")).unwrap(), "found");
}

#[test]
fn names_that_only_look_like_ours_are_kept() {
    let trial = Trial::with(small);
    fs::create_dir(trial.place().join(".zramd-snapshot")).unwrap();
    fs::write(trial.place().join(".zramd-snapshot/file"), "theirs").unwrap();
    fs::create_dir(trial.place().join("lost+found")).unwrap();
    let expected = picture(trial.place());
    trial.save().unwrap();
    trial.reboot();
    // A partially loaded disk is cleared of them, too.
    let mut calls = 0;
    let interrupted = store::load(&Calls::new(), &trial.disk, &mut |_| {
        calls += 1;
        calls < 5
    });
    assert!(interrupted.is_err() && picture(trial.place()).len() == 1, "{:?}", picture(trial.place()));
    trial.load().unwrap();
    assert!(picture(trial.place()) == expected);
}

#[test]
fn omissions_are_reported() {
    let trial = Trial::with(small);
    UnixListener::bind(trial.place().join("socket")).unwrap();
    let saved = trial.save().unwrap();
    let Saved::Written { manifest, warnings, .. } = saved else { panic!("{saved:?}") };
    // The program that uses it creates it again.
    assert_eq!((manifest.skipped, warnings), (1, Vec::new()));
    if !may_mount() {
        return;
    }
    let mounted = Mounted::tmpfs(&trial.place().join("a/b"), "size=1m");
    let saved = trial.save().unwrap();
    drop(mounted);
    let Saved::Written { manifest, warnings, .. } = saved else { panic!("{saved:?}") };
    assert_eq!(manifest.skipped, 2);
    assert!(warnings.len() == 1 && warnings[0].contains("a/b"), "{warnings:?}");
}
