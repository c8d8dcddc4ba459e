//! Each system call of a save and of a load fails once, in every way: the last good generation is kept, the error names the
//! cause, and the next attempt succeeds.

use std::fs;
use std::path::Path;

use crate::support::ramdisk::{
    FORCED, Picture, Trial, calls_for, change, copy, for_each_fault, is_kill, noise, picture, small,
};
use host::Errno;
use host::linux::ramdisk::Calls;
use host::script::Fault;
use logic::ramdisk::omitted::Omitted;
use logic::ramdisk::state::Outcome;
use store::{self, Saved};

/// Loads what the next boot would load.
fn after_reboot(trial: &Trial) -> (u64, Picture) {
    trial.reboot();
    let loaded = trial.load().unwrap();
    assert!(loaded.refused.is_empty(), "{:?}", loaded.refused);
    (loaded.generation.unwrap(), picture(trial.place()))
}

/// A disk with two generations of the same contents and a further change, and the state of its store.
fn prepared() -> (Trial, Picture, Picture) {
    let mut trial = Trial::with(small);
    trial.disk.notes = Some(trial.path("run"));
    trial.save().unwrap();
    trial.save().unwrap();
    let old = picture(trial.place());
    change(trial.place());
    let new = picture(trial.place());
    copy(trial.disk.store(), &trial.path("before"));
    (trial, old, new)
}

/// Calls of a save without a fault.
fn calls_of_a_save(trial: &Trial) -> Vec<String> {
    let calls = Calls::with_fault(None);
    store::save(&calls, &trial.disk, FORCED, &mut |_| true).unwrap();
    copy(&trial.path("before"), trial.disk.store());
    calls.transcript()
}

/// A directory that is removed during the listing, or cannot be read, does not affect the others.
#[test]
fn a_directory_that_cannot_be_listed_does_not_affect_others() {
    let saved = |fault| {
        let trial = Trial::new();
        trial.load().unwrap();
        for name in ["a", "b", "c/deep", "d"] {
            fs::create_dir_all(trial.place().join(name)).unwrap();
            fs::write(trial.place().join(name).join("file"), name).unwrap();
        }
        let whole = picture(trial.place());
        let calls = Calls::with_fault(fault);
        let saved = store::save(&calls, &trial.disk, FORCED, &mut |_| true).ok()?;
        let Saved::Written { manifest, .. } = saved else { panic!("nothing was written") };
        trial.reboot();
        trial.load().unwrap();
        Some((calls.transcript(), whole, picture(trial.place()), manifest))
    };
    let transcript = saved(None).unwrap().0;
    let mut cases = 0;
    for call in (1..=transcript.len()).filter(|call| transcript[call - 1].starts_with("getdents")) {
        for errno in [Errno::NOENT, Errno::IO] {
            // If the disk itself or the store cannot be listed, nothing is saved.
            let Some((_, whole, found, manifest)) = saved(Some((call, Fault::Fail(errno)))) else { continue };
            if manifest.omitted.is_empty() && found == whole {
                continue;
            }
            cases += 1;
            let mut missing = whole.keys().filter(|path| !found.contains_key(*path));
            let lost = missing.next().unwrap();
            assert!(missing.all(|path| path.starts_with(lost)), "{errno} at call {call}: {found:?}");
            assert!(
                found.iter().all(|(path, text)| whole[path] == *text),
                "{errno} at call {call}: {found:?}"
            );
            assert_eq!(manifest.omitted.count(), u64::from(errno == Errno::IO), "{errno} at call {call}");
        }
    }
    assert_eq!(cases, 10, "five directories, in two ways");
}

/// Missing entries are named, or are below a named one; all others are unchanged.
#[track_caller]
fn assert_left_out(found: &Picture, expected: &Picture, omitted: &Omitted, what: &str) {
    let is_named = |path: &Path| omitted.named.iter().any(|named| path.starts_with(&named.path));
    // A file has fewer names if one of them is not saved.
    let plain = |text: &String| {
        text.split(' ')
            .enumerate()
            .filter(|(at, _)| *at != 3)
            .map(|(_, word)| word.to_owned())
            .collect::<Vec<_>>()
    };
    for (path, text) in expected {
        let shown = path.display();
        let is_right = match found.get(path) {
            Some(other) if omitted.is_empty() => other == text,
            Some(other) => is_named(path) || plain(other) == plain(text),
            None => is_named(path),
        };
        assert!(is_right, "{what}: {shown}: {:?}, {omitted:?}", found.get(path));
    }
    assert!(found.keys().all(|path| expected.contains_key(path)), "{what}: {found:?}");
}

#[test]
fn a_save_may_fail_anywhere() {
    let [cases, failed, done, skipped] = for_each_fault(saves_with);
    println!("{cases} saves: {failed} failed, {done} did not, {skipped} files were skipped");
    assert!(failed > cases / 4 && skipped > 0);
}

fn saves_with(fault: Fault) -> [usize; 4] {
    let (mut trial, old, new) = prepared();
    let transcript = calls_of_a_save(&trial);
    assert!(transcript.len() > 80, "{transcript:#?}");
    let place = trial.disk.place.clone();
    let (mut failed, mut done, mut skipped) = (0, 0, 0);
    let cases = calls_for(fault, &transcript);
    for &number in &cases {
        copy(&trial.path("before"), trial.disk.store());
        trial.disk.place.clone_from(&place);
        let calls = Calls::with_fault(Some((number, fault)));
        let saved = store::save(&calls, &trial.disk, FORCED, &mut |_| true);
        let what = format!("{fault:?} at call {number}, {}", transcript[number - 1]);
        match &saved {
            Ok(_) => done += 1,
            Err(error) => {
                failed += 1;
                assert!(is_kill(fault) || error.message.len() > 10, "{what}: {error}");
            }
        }
        assert!(fault != Fault::Short || saved.is_ok(), "{what}: {saved:?}");
        let is_left = |names: Vec<String>| names.iter().any(|name| name.ends_with(".partial"));
        assert!(is_kill(fault) || !is_left(trial.names()), "{what}: {:?}", trial.names());
        // Also one that was pruned already.
        assert!(
            saved.is_ok() || is_kill(fault) || trial.generations() == [2, 1],
            "{what}: {:?}",
            trial.names()
        );
        // Loads elsewhere what the next boot would load.
        trial.disk.place = trial.path("elsewhere");
        fs::create_dir_all(&trial.disk.place).unwrap();
        let kept = trial.path("kept");
        copy(trial.disk.store(), &kept);
        let (generation, found) = after_reboot(&trial);
        match &saved {
            Ok(Saved::Written { manifest, .. }) if generation == 3 => {
                skipped += usize::try_from(manifest.omitted.count()).unwrap();
                assert_left_out(&found, &new, &manifest.omitted, &what);
            }
            _ => assert!(
                if generation == 3 { found == new } else { found == old },
                "{what}: generation {generation}"
            ),
        }
        assert!(saved.is_err() || generation == 3, "{what}");
        // Second attempt in the same boot.
        copy(&kept, trial.disk.store());
        trial.disk.place.clone_from(&place);
        let again = store::save(&Calls::new(), &trial.disk, FORCED, &mut |_| true);
        let again = again.unwrap_or_else(|error| panic!("{what}: {error}"));
        let Saved::Written { generation, .. } = again else { panic!("{what}: {again:?}") };
        trial.verify(generation).unwrap_or_else(|error| panic!("{what}: {error}"));
        let names = trial.names();
        assert!(
            !names.iter().any(|name| name.ends_with(".partial") || name.ends_with(".bad")),
            "{what}: {names:?}"
        );
    }
    [cases.len(), failed, done, skipped]
}

#[test]
fn a_load_may_fail_anywhere() {
    let [cases, failed, fell_back, done] = for_each_fault(loads_with);
    println!("{cases} loads: {failed} failed, {fell_back} fell back, {done} did not");
    assert!(failed > cases / 4 && fell_back > 0);
}

fn loads_with(fault: Fault) -> [usize; 4] {
    let (mut trial, old, new) = prepared();
    trial.save().unwrap();
    trial.disk.place = trial.path("elsewhere");
    fs::create_dir(&trial.disk.place).unwrap();
    copy(trial.disk.store(), &trial.path("before"));
    let calls = Calls::with_fault(None);
    store::load(&calls, &trial.disk, &mut |_| true).unwrap();
    let transcript = calls.transcript();
    assert!(transcript.len() > 80, "{transcript:#?}");
    let (mut failed, mut fell_back, mut done) = (0, 0, 0);
    let cases = calls_for(fault, &transcript);
    for &number in &cases {
        copy(&trial.path("before"), trial.disk.store());
        trial.reboot();
        let calls = Calls::with_fault(Some((number, fault)));
        let loaded = store::load(&calls, &trial.disk, &mut |_| true);
        let what = format!("{fault:?} at call {number}, {}", transcript[number - 1]);
        let found = picture(trial.place());
        match &loaded {
            Ok(loaded) if loaded.outcome == Outcome::Loaded => {
                done += 1;
                assert_left_out(&found, &new, &loaded.extracted.omitted, &what);
            }
            Ok(loaded) => {
                fell_back += 1;
                assert_eq!((loaded.outcome, loaded.generation), (Outcome::Fallback, Some(2)), "{what}");
                assert!(found == old, "{what}");
            }
            Err(error) => {
                failed += 1;
                assert!(is_kill(fault) || found.len() == 1, "{what}: {found:#?}");
                assert!(is_kill(fault) || error.message.len() > 10, "{what}: {error}");
            }
        }
        assert!(fault != Fault::Short || loaded.is_ok(), "{what}: {loaded:?}");
        // No good snapshot was set aside, and the next attempt, also into a half-filled directory, loads the newest.
        assert!(!trial.names().iter().any(|name| name.ends_with(".bad")), "{what}");
        if loaded.is_err() {
            let again = trial.load().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(again.generation, Some(3), "{what}");
            assert!(picture(trial.place()) == new, "{what}");
        }
    }
    [cases.len(), failed, fell_back, done]
}

/// The newest generation needs a part of the file of the one that is deleted: its tree, and some contents.
#[test]
fn a_deletion_may_fail_anywhere() {
    let [cases, failed, done] = for_each_fault(deletions_with);
    println!("{cases} deletions: {failed} failed, {done} did not");
    assert!(failed > cases / 4 && done > 0);
}

fn deletions_with(fault: Fault) -> [usize; 3] {
    let mut trial = Trial::new();
    trial.disk.keep.generations = 9;
    trial.load().unwrap();
    for from in [0_u64, 100] {
        for number in from..from + 150 {
            let (mut bytes, file) = (vec![0; 1024], trial.place().join(number.to_string()));
            blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut bytes);
            fs::write(file, bytes).unwrap();
        }
        for number in 0..from {
            fs::remove_file(trial.place().join(number.to_string())).unwrap();
        }
        trial.save().unwrap();
    }
    let whole = picture(trial.place());
    copy(trial.disk.store(), &trial.path("before"));
    let size = |trial: &Trial| fs::metadata(trial.disk.store().join("rest-1")).unwrap().len();
    let calls = Calls::with_fault(None);
    store::delete(&calls, &trial.disk, 1).unwrap();
    let (transcript, small) = (calls.transcript(), size(&trial));
    assert!(small < fs::metadata(trial.path("before").join("gen-1")).unwrap().len() * 3 / 4);
    let (mut failed, mut done) = (0, 0);
    let cases = calls_for(fault, &transcript);
    for &number in &cases {
        copy(&trial.path("before"), trial.disk.store());
        let what = format!("{fault:?} at call {number}, {}", transcript[number - 1]);
        match store::delete(&Calls::with_fault(Some((number, fault))), &trial.disk, 1) {
            Ok(()) => done += 1,
            Err(_) => failed += 1,
        }
        trial.verify(2).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(after_reboot(&trial), (2, whole.clone()), "{what}");
        // Its name is gone at once or not at all, and again it can be deleted.
        if trial.generations() == [2, 1] {
            trial.verify(1).unwrap_or_else(|error| panic!("{what}: {error}"));
            store::delete(&Calls::new(), &trial.disk, 1).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(size(&trial), small, "{what}");
        }
        trial.save().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(!trial.names().iter().any(|name| name.ends_with(".partial")), "{what}: {:?}", trial.names());
    }
    [cases.len(), failed, done]
}

#[test]
fn a_file_is_read_back_before_it_gets_its_name_and_others_are_removed_last() {
    let (trial, _, _) = prepared();
    let transcript = calls_of_a_save(&trial);
    let at = |call: &str| {
        let found = transcript.iter().position(|line| line.starts_with(call));
        found.unwrap_or_else(|| panic!("{call} is not in {transcript:#?}"))
    };
    let named = at("renameat gen-3.partial -> gen-3");
    let last_write = transcript.iter().take(named).rposition(|line| line.starts_with("write"));
    let read_back = transcript.iter().take(named).rposition(|line| line.starts_with("pread"));
    let pruned = at("renameat gen-1 -> rest-1");
    assert!(last_write.unwrap() < read_back.unwrap() && read_back.unwrap() < named, "{transcript:#?}");
    // The file with its name, then the directory: one transaction of a journal.
    let synced = at("fsync");
    assert!(named < pruned && pruned < synced, "{transcript:#?}");
    assert_eq!(transcript[synced + 1], "fsync directory", "{transcript:#?}");
    assert!(!transcript[synced..].iter().any(|line| line.starts_with("renameat gen")), "{transcript:#?}");
}

/// Otherwise a power cut could leave a generation without a part of its contents.
#[test]
fn contents_are_removed_when_the_generations_that_need_them_are_gone_from_the_disk() {
    let trial = Trial::new();
    trial.load().unwrap();
    let mut removals = 0;
    for turn in 0..16 {
        let other: Vec<u8> = noise(64 << 10).into_iter().map(|byte| byte.wrapping_add(turn)).collect();
        fs::write(trial.place().join("changes"), &other).unwrap();
        if turn % 4 == 0 {
            fs::write(trial.place().join("stays longer"), [&other[1..], &[turn]].concat()).unwrap();
        }
        let calls = Calls::with_fault(None);
        store::save(&calls, &trial.disk, FORCED, &mut |_| true).unwrap();
        let transcript = calls.transcript();
        let Some(removed) = transcript.iter().position(|line| line.starts_with("unlinkat rest-")) else {
            continue;
        };
        let is_gone = |line: &String| {
            line.starts_with("unlinkat gen-") && !line.contains('.') || line.contains(" -> rest-")
        };
        let gone = transcript.iter().rposition(is_gone).expect("a generation is pruned");
        let synced = transcript[gone..removed].iter().any(|line| line == "fsync directory");
        assert!(gone < removed && synced, "{transcript:#?}");
        removals += 1;
    }
    assert!(removals > 0);
}
