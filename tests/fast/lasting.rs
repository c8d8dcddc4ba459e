//! The drop-in of lasting changes: each system call of a change fails once, in every way, and the file is old or new.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::disk::{FAULTS, calls_for, directory, is_kill};
use engine::ErrorKind;
use host::Errno;
use host::linux::lasting::{read, replace};
use host::linux::ramdisk::Calls;
use host::script::Fault;
use logic::config::lasting::{DIRECTORY, FILE, NAME, Rewrite};

const OLD: &str = "# Old.\n[zram0]\nzram-size = \"64MiB\"\n";
const NEW: &str = "# New.\n[zram0]\nzram-size = \"128MiB\"\n";

fn rewrite(before: Option<&str>, after: Option<&str>) -> Rewrite {
    Rewrite { before: before.map(str::to_owned), after: after.map(str::to_owned) }
}

/// A root with this drop-in.
fn root(text: Option<&str>) -> tempfile::TempDir {
    let root = directory();
    replace(&Calls::new(), root.path(), &rewrite(None, text)).unwrap();
    root
}

fn names(root: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join(&DIRECTORY[1..])) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_change_that_is_interrupted_leaves_the_old_or_the_new_file() {
    let mut cases = 0;
    for (before, after) in [(None, Some(NEW)), (Some(OLD), Some(NEW)), (Some(OLD), None)] {
        let change = rewrite(before, after);
        let counted = Calls::with_fault(None);
        replace(&counted, root(before).path(), &change).unwrap();
        let transcript = counted.transcript();
        assert_eq!(transcript.last().unwrap(), "fsync", "it is on the disk: {transcript:#?}");
        for fault in FAULTS {
            for number in calls_for(fault, &transcript) {
                let root = root(before);
                let ended = replace(&Calls::with_fault(Some((number, fault))), root.path(), &change);
                let what = format!("{fault:?} at call {number}, {}", transcript[number - 1]);
                let found = read(root.path()).unwrap();
                let is_new = found == change.after;
                assert!(is_new || found == change.before, "{what}: {found:?}");
                assert!(is_new || ended.is_err(), "{what}: the file is the old one");
                if let Err(error) = &ended {
                    assert!(error.message.contains(FILE), "{what}: {error}");
                }
                let is_left = names(root.path()).iter().any(|name| name != NAME);
                assert!(!is_left || is_kill(fault), "{what}: {:?}", names(root.path()));
                // The next change removes what a kill left behind.
                replace(&Calls::new(), root.path(), &rewrite(found.as_deref(), Some("[zram0]\n"))).unwrap();
                assert_eq!(names(root.path()), [NAME], "{what}");
                cases += 1;
            }
        }
    }
    assert!(cases > 100, "{cases}");
}

#[test]
fn what_another_program_has_written_is_not_overwritten() {
    let root = root(Some(OLD));
    for change in [rewrite(None, Some(NEW)), rewrite(Some(NEW), None)] {
        let refused = replace(&Calls::new(), root.path(), &change).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Busy);
        assert_eq!(read(root.path()).unwrap().as_deref(), Some(OLD));
    }
    let file = root.path().join(&FILE[1..]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o644);
    fs::rename(&file, root.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../../../elsewhere", &file).unwrap();
    let refused = replace(&Calls::new(), root.path(), &rewrite(Some(OLD), Some(NEW))).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unsupported, "a link is not replaced");
    assert_eq!(fs::read_to_string(&file).unwrap(), OLD);
}

#[test]
fn a_read_only_etc_is_reported_with_a_remedy() {
    let root = root(None);
    let calls = Calls::with_fault(Some((1, Fault::Fail(Errno::ROFS))));
    let refused = replace(&calls, root.path(), &rewrite(None, Some(NEW))).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NotPermitted);
    assert!(refused.message.contains("read-only") && refused.message.contains("--runtime"), "{refused}");
}
