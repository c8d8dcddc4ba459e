//! Edits of drop-ins: each system call of an edit fails once, in every way, and the file is old or new.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::ramdisk::{FAULTS, calls_for, directory, is_kill};
use engine::ErrorKind;
use host::Errno;
use host::linux::edit::write;
use host::linux::ramdisk::Calls;
use host::script::Fault;
use logic::config::edit::Edit;
use logic::config::lasting::{FILE, NAME};
use logic::overlay;

const OLD: &str = "# Old.\n[zram0]\nzram-size = \"64MiB\"\n";
const NEW: &str = "# New.\n[zram0]\nzram-size = \"128MiB\"\n";

fn edit(before: Option<&str>, after: Option<&str>) -> Edit {
    let text = |text: Option<&str>| text.map(str::to_owned);
    Edit { path: FILE.to_owned(), before: text(before), after: text(after) }
}

fn read(root: &Path) -> Option<String> {
    host::linux::edit::read(root, FILE).unwrap()
}

/// A root with this drop-in.
fn root(text: Option<&str>) -> tempfile::TempDir {
    let root = directory();
    write(&Calls::new(), root.path(), &edit(None, text)).unwrap();
    root
}

fn names(root: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join(&FILE[1..]).parent().unwrap()) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_change_that_is_interrupted_leaves_the_old_or_the_new_file() {
    let mut cases = 0;
    for (before, after) in [(None, Some(NEW)), (Some(OLD), Some(NEW)), (Some(OLD), None)] {
        let change = edit(before, after);
        let counted = Calls::with_fault(None);
        write(&counted, root(before).path(), &change).unwrap();
        let transcript = counted.transcript();
        assert_eq!(transcript.last().unwrap(), "fsync directory", "it is on the disk: {transcript:#?}");
        for fault in FAULTS {
            for number in calls_for(fault, &transcript) {
                let root = root(before);
                let ended = write(&Calls::with_fault(Some((number, fault))), root.path(), &change);
                let what = format!("{fault:?} at call {number}, {}", transcript[number - 1]);
                let found = read(root.path());
                let is_new = found == change.after;
                assert!(is_new || found == change.before, "{what}: {found:?}");
                assert!(is_new || ended.is_err(), "{what}: the file is the old one");
                if let Err(error) = &ended {
                    assert!(error.message.contains(FILE), "{what}: {error}");
                }
                let is_left = names(root.path()).iter().any(|name| name != NAME);
                assert!(!is_left || is_kill(fault), "{what}: {:?}", names(root.path()));
                // The next change removes what a kill left behind.
                write(&Calls::new(), root.path(), &edit(found.as_deref(), Some("[zram0]\n"))).unwrap();
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
    for change in [edit(None, Some(NEW)), edit(Some(NEW), None)] {
        let refused = write(&Calls::new(), root.path(), &change).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Busy);
        assert_eq!(read(root.path()).as_deref(), Some(OLD));
    }
    let file = root.path().join(&FILE[1..]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o644);
    fs::rename(&file, root.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../../../elsewhere", &file).unwrap();
    let refused = write(&Calls::new(), root.path(), &edit(Some(OLD), Some(NEW))).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unsupported, "a link is not replaced");
    assert_eq!(fs::read_to_string(&file).unwrap(), OLD);
}

#[test]
fn a_read_only_etc_is_reported_with_a_remedy() {
    let root = root(None);
    let calls = Calls::with_fault(Some((1, Fault::Fail(Errno::ROFS))));
    let refused = write(&calls, root.path(), &edit(None, Some(NEW))).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NotPermitted);
    assert!(refused.message.contains("read-only") && refused.message.contains("--runtime"), "{refused}");
}

#[test]
fn an_edit_is_written_once_and_taken_back() {
    let root = directory();
    let edit = Edit { path: overlay::path("zram0"), before: None, after: Some(NEW.to_owned()) };
    let write = |edit: &Edit| write(&Calls::new(), root.path(), edit).unwrap();
    assert!(write(&edit));
    assert!(!write(&edit), "it is written already");
    let back = edit.reversed();
    assert!(write(&back));
    assert!(!write(&back));
    assert!(!root.path().join(overlay::DIRECTORY).exists(), "nothing is left in /run");
}
