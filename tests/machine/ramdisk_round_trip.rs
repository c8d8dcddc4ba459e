//! A disk after saving and loading, compared by a program that shares no code with zramd.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::support::mounted::Mounted;
use crate::support::ramdisk::{Trial, picture, small};
use crate::support::{PYTHON, has_program, may_mount, repository, skip};
use host::linux::ramdisk::Calls;
use logic::ramdisk::manifest::Consistency;
use logic::ramdisk::state::Outcome;
use store::{self, Saved};

fn python(script: &str, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(PYTHON).arg(repository(script)).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Both have to have the same lines.
#[track_caller]
fn compare(found: &Path, expected: &[u8]) {
    let found = python("tests/support/tree.py", &[found.to_str().unwrap()]);
    let (found, expected) =
        (String::from_utf8(found).unwrap(), String::from_utf8_lossy(expected).into_owned());
    let short = |line: &str| line.chars().take(300).collect::<String>();
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert!(found == expected, "found {}\nexpected {}", short(found), short(expected));
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

fn nasty_round_trip(trial: &Trial, mount: impl Fn(&Path) -> Option<Mounted>, count: usize) {
    let mounted = mount(trial.place());
    trial.load().unwrap();
    python("tests/support/nasty.py", &[trial.place().to_str().unwrap(), &count.to_string()]);
    let expected = python("tests/support/tree.py", &[trial.place().to_str().unwrap()]);

    let began = Instant::now();
    let Saved::Written { manifest, .. } = trial.save().unwrap() else { panic!() };
    let saved = began.elapsed();
    assert_eq!(manifest.consistency, Consistency::Exact, "{:?}", manifest.changed);
    // Reading it does not change it.
    compare(trial.place(), &expected);
    assert_eq!(trial.verify(1).unwrap().entries, manifest.contents.entries());

    drop(mounted);
    trial.reboot();
    let mounted = mount(trial.place());
    let began = Instant::now();
    let loaded = trial.load().unwrap();
    println!("{} entries: saved in {saved:?}, loaded in {:?}", loaded.extracted.entries, began.elapsed());
    assert_eq!(
        (loaded.outcome, loaded.extracted.unsupported),
        (Outcome::Loaded, 0),
        "{:?}",
        loaded.extracted
    );
    assert_eq!(loaded.extracted.entries, manifest.contents.entries());
    assert_eq!(loaded.extracted.bytes, manifest.contents.bytes);
    compare(trial.place(), &expected);

    if count > 0 {
        // With many files, one round is enough.
        return;
    }
    let exported = trial.path("exported");
    let to = mount(&exported);
    store::export(&Calls::new(), &trial.disk, None, &exported, &mut |_| true).unwrap();
    compare(&exported, &expected);
    drop((to, mounted));
}

#[test]
fn a_nasty_tree_is_restored() {
    if !has_program(PYTHON) {
        return skip("needs python3");
    }
    // In a plain directory, also without root.
    nasty_round_trip(&Trial::new(), |_| None, 0);
}

#[test]
fn a_nasty_tree_with_many_files_is_restored_on_a_tmpfs() {
    many_files(10_000);
}

#[test]
#[ignore = "takes a minute: tests/long/trees"]
fn a_nasty_tree_with_100_000_files_is_restored_on_a_tmpfs() {
    many_files(100_000);
}

fn many_files(count: usize) {
    if !has_program(PYTHON) {
        return skip("needs python3");
    }
    if !may_mount() {
        return;
    }
    let mut trial = Trial::new();
    // On a persistent store, as in production.
    let store = tempfile::tempdir().unwrap();
    trial.set_store(store.path().join("store"));
    nasty_round_trip(&trial, |path| Some(Mounted::tmpfs(path, "size=512m,nr_inodes=200k")), count);
}

#[test]
fn a_seeded_disk_is_a_copy_and_the_original_is_not_touched() {
    if !has_program(PYTHON) {
        return skip("needs python3");
    }
    let mut trial = Trial::new();
    let seed = trial.path("seed");
    fs::create_dir(&seed).unwrap();
    python("tests/support/nasty.py", &[seed.to_str().unwrap(), "1000"]);
    let expected = python("tests/support/tree.py", &[seed.to_str().unwrap()]);
    trial.seed(seed.clone());
    let loaded = trial.load().unwrap();
    assert_eq!(loaded.outcome, Outcome::FirstUse);
    compare(trial.place(), &expected);
    compare(&seed, &expected);
    // From now on there is a generation.
    trial.save().unwrap();
    fs::write(seed.join("later"), "is not seen").unwrap();
    trial.reboot();
    assert_eq!(trial.load().unwrap().generation, Some(1));
    compare(trial.place(), &expected);
}

/// The store is aged, so that contents and base are in several files.
#[test]
fn a_script_unpacks_a_store_without_zramd() {
    if !["zstd", PYTHON].iter().all(|name| has_program(name)) {
        return skip("needs zstd and python3");
    }
    let trial = Trial::with(small);
    for number in 0..500 {
        fs::write(trial.place().join(format!("a/{number}")), number.to_string()).unwrap();
    }
    for number in 0..5 {
        fs::write(trial.place().join("number"), number.to_string()).unwrap();
        trial.save().unwrap();
    }
    let to = trial.path("unpacked");
    fs::create_dir(&to).unwrap();
    let script = repository("packaging/docs/unpack-store");
    let output = Command::new(PYTHON).arg(script).arg(trial.disk.store()).arg(&to).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(trial.names().iter().any(|name| name.starts_with("rest-")), "{:?}", trial.names());
    assert!(picture(&to) == picture(trial.place()));
}
