//! Each system call of operations on snapshots fails once, in every way: the store is in its old or new state, the error
//! names its object, and the next attempt succeeds and leaves nothing behind.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::support::ramdisk::{
    Picture, Trial, calls_for, change, copy, for_each_fault, is_kill, picture, small,
};
use engine::{Error, ErrorKind};
use host::linux::ramdisk::Calls;
use host::script::Fault;
use store::{self, Ramdisk};

/// Snapshots by number: whether each is good, and why it is pinned.
type View = BTreeMap<u64, (bool, Option<String>)>;

fn view(trial: &Trial) -> View {
    let status = store::status(&Calls::new(), &trial.disk).unwrap();
    let line = |found: store::Generation| (found.number, (found.is_whole(), found.pinned));
    status.generations.into_iter().map(line).collect()
}

/// A disk with three snapshots: the first is pinned, the last differs; and a file that was set aside.
fn prepared() -> Trial {
    let trial = Trial::with(small);
    trial.save().unwrap();
    store::pin(&Calls::new(), &trial.disk, 1, Some("kept by the test")).unwrap();
    trial.save().unwrap();
    change(trial.place());
    trial.save().unwrap();
    fs::write(trial.disk.store().join("gen-4.bad"), "set aside").unwrap();
    assert_eq!(trial.generations(), [3, 2, 1]);
    copy(trial.disk.store(), &trial.path("before"));
    trial
}

/// The error names the file of the store.
#[track_caller]
fn names_its_file(error: &Error, trial: &Trial, call: &str, what: &str) {
    assert!(error.message.contains(trial.disk.store().to_str().unwrap()), "{what}: {error}");
    let word = call.split(' ').nth(1).unwrap_or_default();
    let file = word.strip_suffix(".partial").unwrap_or(word);
    if file.starts_with("gen-") {
        assert!(error.message.contains(file), "{what}: {error}");
    }
}

/// An operation on a store.
type Act = fn(&Calls, &Ramdisk) -> Result<(), Error>;

/// Makes `act` fail at every call. The store has to change in one step.
fn walk_through(act: Act) {
    let [cases, stayed, done] = for_each_fault(|fault| acts_with(act, fault));
    println!("{cases} cases: {stayed} as before, {done} as after");
    assert!(stayed > cases / 4 && done > 0);
}

fn acts_with(act: Act, fault: Fault) -> [usize; 3] {
    let trial = prepared();
    let reset = || copy(&trial.path("before"), trial.disk.store());
    let (before, names_before) = (view(&trial), trial.names());
    let calls = Calls::with_fault(None);
    act(&calls, &trial.disk).unwrap();
    let transcript = calls.transcript();
    let (after, names_after) = (view(&trial), trial.names());
    assert!(before != after && transcript.len() > 10, "{transcript:#?}");
    assert_eq!(transcript.last().unwrap(), "fsync directory", "it is on the disk: {transcript:#?}");
    let (mut stayed, mut done) = (0, 0);
    let cases = calls_for(fault, &transcript);
    for &number in &cases {
        reset();
        let ended = act(&Calls::with_fault(Some((number, fault))), &trial.disk);
        let what = format!("{fault:?} at call {number}, {}", transcript[number - 1]);
        let found = view(&trial);
        assert!(found == before || found == after, "{what}: {found:?}");
        let is_done = found == after;
        *if is_done { &mut done } else { &mut stayed } += 1;
        assert!(ended.is_err() || is_done, "{what}");
        assert!(fault != Fault::Short || ended.is_ok(), "{what}: {ended:?}");
        if let Err(error) = &ended
            && !is_kill(fault)
        {
            names_its_file(error, &trial, &transcript[number - 1], &what);
            assert!(is_done || trial.names() == names_before, "{what}: {:?}", trial.names());
        }
        // The next attempt in the same boot; a completed operation may report that there is nothing to do.
        let kept = trial.path("kept");
        copy(trial.disk.store(), &kept);
        match act(&Calls::new(), &trial.disk) {
            Err(error) if is_done && error.kind == ErrorKind::NotFound => {}
            again => again.unwrap_or_else(|error| panic!("{what}: {error}")),
        }
        // What could not be read may still be needed.
        let without_rest = |names: Vec<String>| -> Vec<String> {
            names.into_iter().filter(|name| !name.starts_with("rest-")).collect()
        };
        assert_eq!(view(&trial), after, "{what}");
        assert_eq!(without_rest(trial.names()), without_rest(names_after.clone()), "{what}");
        // Or a save comes next: it removes partial files, and its snapshot is good.
        copy(&kept, trial.disk.store());
        trial.save().unwrap_or_else(|error| panic!("{what}: {error}"));
        store::verify(&Calls::new(), &trial.disk, None, &mut |_| true)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(!trial.names().iter().any(|name| name.ends_with(".partial")), "{what}: {:?}", trial.names());
    }
    [cases.len(), stayed, done]
}

#[test]
fn pinning_may_fail_anywhere() {
    walk_through(|calls, disk| store::pin(calls, disk, 2, Some("asked for")));
}

#[test]
fn changing_why_one_is_pinned_may_fail_anywhere() {
    walk_through(|calls, disk| store::pin(calls, disk, 1, Some("for another reason")));
}

#[test]
fn unpinning_may_fail_anywhere() {
    walk_through(|calls, disk| store::pin(calls, disk, 1, None));
}

#[test]
fn deleting_may_fail_anywhere() {
    walk_through(|calls, disk| store::delete_spare(calls, disk, 2, &mut |_| true));
    walk_through(|calls, disk| store::delete_spare(calls, disk, 3, &mut |_| true));
}

/// Destination of exports.
struct Target<'a> {
    trial: &'a Trial,
    /// Whether the directory exists before.
    is_there: bool,
}

impl Target<'_> {
    fn directory(&self) -> std::path::PathBuf {
        self.trial.path("exports").join("to")
    }

    fn reset(&self) {
        let above = self.trial.path("exports");
        fs::remove_dir_all(&above).ok();
        fs::create_dir(&above).unwrap();
        if self.is_there {
            fs::create_dir(self.directory()).unwrap();
            fs::set_permissions(self.directory(), fs::Permissions::from_mode(0o2775)).unwrap();
        }
    }

    /// Contents of the parent directory, with mode and owner of the destination.
    fn found(&self) -> (Picture, Option<(u32, u32, u32)>) {
        let top = fs::symlink_metadata(self.directory()).ok();
        let mut found = picture(&self.trial.path("exports"));
        found.remove(Path::new("to"));
        (found, top.map(|meta| (meta.mode(), meta.uid(), meta.gid())))
    }
}

fn exporting_may_fail_anywhere(is_there: bool) {
    let [cases, failed, done] = for_each_fault(|fault| exports_with(is_there, fault));
    println!("{cases} exports: {failed} failed, {done} did not");
    assert!(failed > cases / 2 && done > 0);
}

fn exports_with(is_there: bool, fault: Fault) -> [usize; 3] {
    let trial = prepared();
    let store = picture(trial.disk.store());
    let target = Target { trial: &trial, is_there };
    let export = |calls: &Calls| store::export(calls, &trial.disk, None, &target.directory(), &mut |_| true);
    target.reset();
    let before = target.found();
    let calls = Calls::with_fault(None);
    export(&calls).unwrap();
    let (transcript, after) = (calls.transcript(), target.found());
    assert!(picture(&target.directory()) == picture(trial.place()));
    let (mut failed, mut done) = (0, 0);
    let cases = calls_for(fault, &transcript);
    for &number in &cases {
        let call = &transcript[number - 1];
        target.reset();
        let ended = export(&Calls::with_fault(Some((number, fault))));
        let what = format!("{fault:?} at call {number}, {call}");
        let found = target.found();
        match &ended {
            Ok(extracted) => {
                done += 1;
                // Missing entries are named.
                assert!(found == after || !extracted.omitted.is_empty(), "{what}: {found:#?}");
            }
            Err(error) => {
                failed += 1;
                let (store, directory) = (trial.disk.store().to_str().unwrap(), target.directory());
                let named =
                    [store, directory.to_str().unwrap()].iter().any(|path| error.message.contains(path));
                assert!(is_kill(fault) || named, "{what}: {error}");
                assert!(is_kill(fault) || found == before, "{what}: {found:#?}");
                // A new directory only appears when it is complete.
                assert!(is_there || found.1.is_none() || found == after, "{what}: {found:#?}");
            }
        }
        assert!(fault != Fault::Short || ended.is_ok(), "{what}: {ended:?}");
        assert!(picture(trial.disk.store()) == store, "{what}");
        if ended.is_err() && found != after {
            match export(&Calls::new()) {
                // Nothing is removed from an existing directory; the message names it.
                Err(error) if is_there && is_kill(fault) && found.0 != before.0 => {
                    assert_eq!(error.kind, ErrorKind::Unsafe, "{what}: {error}");
                    assert!(error.message.contains(target.directory().to_str().unwrap()), "{what}: {error}");
                }
                again => {
                    again.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert!(target.found() == after, "{what}: {:#?}", target.found());
                }
            }
        }
    }
    [cases.len(), failed, done]
}

#[test]
fn exporting_into_a_new_directory_may_fail_anywhere() {
    exporting_may_fail_anywhere(false);
}

#[test]
fn exporting_into_an_empty_directory_may_fail_anywhere() {
    exporting_may_fail_anywhere(true);
}
