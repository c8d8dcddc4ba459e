//! Persistent RAM disks on the running kernel without systemd: file systems on zram, restores of disks in use, sizes.
//!
//! Needs root, zram and `dbus-daemon`; otherwise each test is skipped with the reason.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::kept::Kept;
use crate::support::private_bus::Guarded;
use crate::support::session::{Session, swaps};
use crate::support::{PYTHON, eventually, has_program, repository, setup, skip, texts};

const MIB: u64 = 1 << 20;

/// All names with their metadata, by a program that shares no code with zramd.
fn tree(directory: &Path, fs_type: &str) -> String {
    // Only on xfs holes are not exact.
    let how: &[&str] = if fs_type == "xfs" { &["zeros"] } else { &[] };
    let lines = python("tests/support/tree.py", &[&[directory.to_str().unwrap()], how].concat());
    // Part of an ext4, not of its contents.
    let lines = lines.lines().filter(|line| !line.starts_with("b'lost+found'"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn python(script: &str, arguments: &[&str]) -> String {
    let output = Command::new(PYTHON).arg(repository(script)).args(arguments).output().unwrap();
    let (text, messages) = texts(&output);
    assert!(output.status.success(), "{messages}");
    text
}

#[track_caller]
fn same(found: &str, expected: &str, when: &str) {
    let different = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    assert_eq!((different, found.lines().count()), (None, expected.lines().count()), "{when}");
}

/// Number and reason of each snapshot, newest first.
fn snapshots(session: &Session, name: &str) -> Vec<(u64, String)> {
    let listed = session.json(&["ramdisk", "snapshots", name]);
    let lines = listed["snapshots"].as_array().unwrap().iter();
    lines
        .map(|line| (line["generation"].as_u64().unwrap(), line["reason"].as_str().unwrap().to_owned()))
        .collect()
}

/// Whether this machine supports a file system; prints the reason if not.
fn has_file_system(fs_type: &str) -> bool {
    let program = format!("mkfs.{fs_type}");
    let known =
        || fs::read_to_string("/proc/filesystems").unwrap().lines().any(|line| line.trim() == fs_type);
    let can_load = || Command::new("modprobe").arg(fs_type).status().is_ok_and(|status| status.success());
    if !has_program(&program) {
        skip(&format!("needs {program}"));
        return false;
    }
    if !(known() || can_load() && known()) {
        skip(&format!("needs a kernel with {fs_type}"));
        return false;
    }
    true
}

/// Saves, restores, and loads a disk into a new file system. A disk of `too_small` MiB is refused, with the smallest size.
fn round_trip(fs_type: &str, mib: u32, too_small: Option<(u32, &str)>) {
    if !has_program(PYTHON) {
        return skip("needs python3");
    }
    if !has_file_system(fs_type) {
        return;
    }
    let kept = Kept::new("on-zram");
    let section =
        |mib: u32| kept.section(&format!("backend = \"zram\"\nfs-type = \"{fs_type}\"\nsize = \"{mib}MiB\""));
    let Some(session) = Session::begin("") else { return };
    if let Some((mib, smallest)) = too_small {
        session.write(&section(mib));
        let messages = session.fails(&["reload"], 1);
        assert!(messages.contains(fs_type) && messages.contains(smallest), "{messages}");
        assert_eq!(kept.fs_type(), None);
    }
    session.write(&section(mib));
    session.ok(&["reload"]);
    assert_eq!(kept.fs_type().as_deref(), Some(fs_type));

    let place = kept.mount_point();
    python("tests/support/nasty.py", &[place.to_str().unwrap(), "1000"]);
    let expected = tree(&place, fs_type);
    session.ok(&["ramdisk", "save", kept.name]);
    assert_eq!(snapshots(&session, kept.name), [(1, "asked".to_owned())]);
    session.ok(&["ramdisk", "verify", kept.name]);
    let (top, rest) =
        tree(&place, fs_type).split_once('\n').map(|(top, rest)| (top.to_owned(), rest.to_owned())).unwrap();
    let (top_before, rest_before) = expected.split_once('\n').unwrap();
    same(&rest, rest_before, "saving changes nothing");
    // The snapshot of btrfs is made in the root directory, whose time changes.
    assert_eq!(top == top_before, fs_type != "btrfs", "{top}");
    session.ok(&["ramdisk", "save", kept.name]);
    assert_eq!(snapshots(&session, kept.name).len(), 1, "nothing has changed");

    fs::write(place.join("later"), "not in the snapshot").unwrap();
    session.ok(&["ramdisk", "restore", kept.name, "1"]);
    same(&tree(&place, fs_type), &expected, "restored");
    session.fails(&["ramdisk", "resize", kept.name, "500MiB"], 5);

    let reverted = setup(&["revert"]);
    assert!(reverted.status.success(), "{reverted:?}");
    assert_eq!(kept.fs_type(), None);
    session.ok(&["reload"]);
    assert_eq!(kept.fs_type().as_deref(), Some(fs_type));
    same(&tree(&place, fs_type), &expected, "after it was gone");
    println!("{fs_type}: {} entries came back twice", expected.lines().count());
}

#[test]
fn an_ext4_on_zram_keeps_what_is_in_it() {
    round_trip("ext4", 256, None);
}

#[test]
fn a_btrfs_on_zram_keeps_what_is_in_it() {
    round_trip("btrfs", 256, Some((44, "45.0 MiB")));
}

#[test]
fn an_xfs_on_zram_keeps_what_is_in_it() {
    round_trip("xfs", 320, Some((299, "300.0 MiB")));
}

#[test]
fn the_user_of_a_disk_is_named_and_nothing_is_lost() {
    let kept = Kept::new("in-use");
    let Some(session) = Session::begin(&kept.section("size = \"16MiB\"")) else { return };
    session.ok(&["reload"]);
    let file = kept.mount_point().join("file");
    fs::write(&file, "first").unwrap();
    session.ok(&["ramdisk", "save", kept.name]);
    fs::write(&file, "second").unwrap();

    let script = format!("exec 9<{}; exec sleep 300", file.display());
    let holder = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).spawn().unwrap();
    let holder = Guarded(holder);
    let descriptor = format!("/proc/{}/fd/9", holder.0.id());
    eventually("the file is open", || Path::new(&descriptor).exists());
    let messages = session.fails(&["ramdisk", "restore", kept.name, "1"], 1);
    assert!(messages.contains(&format!("(pid {})", holder.0.id())), "{messages}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "second");
    assert_eq!(snapshots(&session, kept.name)[0], (2, "restore".to_owned()), "saved before");

    drop(holder);
    session.ok(&["ramdisk", "restore", kept.name, "1"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "first");
    session.ok(&["ramdisk", "restore", kept.name, "2"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "second", "what was there before is in a snapshot");
}

#[test]
fn only_root_looks_below_the_directory_where_disks_are_filled() {
    let kept = Kept::new("private");
    let places = Path::new("/run/zramd/ramdisk");
    let mode = || fs::metadata(places).unwrap().mode() & 0o7777;
    let Some(session) = Session::begin(&kept.section("size = \"16MiB\"\nmode = \"1777\"")) else { return };
    session.ok(&["reload"]);
    assert_eq!(mode(), 0o700);
    fs::write(kept.mount_point().join("file"), "secret").unwrap();
    let look = "! cat /run/zramd/ramdisk/private/file && ! touch /run/zramd/ramdisk/private/more";
    let user = Command::new("sh").args(["-c", look]).uid(65534).gid(65534).output().unwrap();
    assert!(user.status.success(), "{user:?}");
    // With the mode of an earlier version.
    fs::set_permissions(places, fs::Permissions::from_mode(0o755)).unwrap();
    session.ok(&["ramdisk", "save", kept.name]);
    assert_eq!(mode(), 0o700);
}

#[test]
fn an_export_follows_the_configuration_of_the_daemon() {
    let kept = Kept::new("exported");
    let Some(session) = Session::begin(&kept.section("size = \"16MiB\"")) else { return };
    session.ok(&["reload"]);
    fs::write(kept.mount_point().join("file"), "stays").unwrap();
    session.ok(&["ramdisk", "save", kept.name]);
    let reverted = setup(&["revert"]);
    assert!(reverted.status.success(), "{reverted:?}");
    fs::remove_file("/run/zramd/ramdisks/exported.request").ok();
    let to = kept.mount_point().with_file_name("to");
    let exported = session.command(&["ramdisk", "export", kept.name, to.to_str().unwrap()]).output().unwrap();
    assert!(exported.status.success(), "{exported:?}");
    assert_eq!(fs::read_to_string(to.join("file")).unwrap(), "stays");
}

#[test]
fn what_was_asked_for_until_the_next_boot_ends_with_revert() {
    let kept = Kept::new("resized");
    let Some(session) = Session::begin(&kept.section("size = \"16MiB\"")) else { return };
    session.ok(&["reload"]);
    fs::write(kept.mount_point().join("file"), "stays").unwrap();
    session.ok(&["ramdisk", "resize", kept.name, "32MiB"]);
    assert_eq!(kept.size(), 32 * MIB);
    fs::write(kept.mount_point().join("filler"), vec![0; 20 << 20]).unwrap();
    let messages = session.fails(&["ramdisk", "resize", kept.name, "16MiB"], 7);
    assert!(messages.contains("20.0 MiB"), "{messages}");
    assert_eq!(kept.size(), 32 * MIB);
    fs::remove_file(kept.mount_point().join("filler")).unwrap();
    let created = session.ok(&["create", "--size", "16MiB"]);
    let created = created.strip_prefix("/dev/").unwrap();

    let reverted = setup(&["revert"]);
    assert!(reverted.status.success(), "{reverted:?}");
    assert_eq!((swaps(), kept.fs_type()), (vec![], None));
    assert_eq!(session.json(&["overrides"])["overrides"], serde_json::json!([]));
    let done = session.ok(&["reload"]);
    assert!(!done.contains(created), "{done}");
    assert_eq!(kept.size(), 16 * MIB);
    assert_eq!(fs::read_to_string(kept.mount_point().join("file")).unwrap(), "stays");
}

#[test]
fn a_disk_that_cannot_be_saved_stays_and_says_why_in_one_sentence() {
    let kept = Kept::new("unsaved");
    let Some(session) = Session::begin(&kept.section("size = \"16MiB\"\nstore-limit = \"64KiB\"")) else {
        return;
    };
    session.ok(&["reload"]);
    let file = kept.mount_point().join("file");
    fs::write(&file, "x".repeat(1 << 20)).unwrap();
    Command::new("sh").args(["-c", "head -c 1M /dev/urandom >\"$1\"", "sh"]).arg(&file).status().unwrap();
    let reverted = setup(&["revert"]);
    let messages = texts(&reverted).1;
    assert_eq!(reverted.status.code(), Some(7), "{reverted:?}");
    assert_eq!(messages.lines().count(), 1, "{messages}");
    assert!(messages.contains("unsaved") && kept.fs_type().is_some(), "{messages}");
    fs::remove_file(&file).unwrap();
}

#[test]
fn a_snapshot_that_does_not_fit_is_refused_before_the_unmount_and_a_pin_is_kept() {
    let kept = Kept::new("pinned");
    let Some(session) = Session::begin(&kept.section("size = \"16MiB\"")) else { return };
    session.ok(&["reload"]);
    let (large, file) = (kept.mount_point().join("large"), kept.mount_point().join("file"));
    fs::write(&large, vec![1; 10 << 20]).unwrap();
    session.ok(&["ramdisk", "save", kept.name]);
    session.ok(&["ramdisk", "pin", kept.name, "1"]);
    fs::remove_file(&large).unwrap();
    fs::write(&file, "stays").unwrap();
    session.ok(&["ramdisk", "resize", kept.name, "8MiB"]);
    let device = || fs::metadata(kept.mount_point()).unwrap().dev();
    let before = device();
    let refused = session.command(&["ramdisk", "restore", kept.name, "1"]).output().unwrap();
    let messages = texts(&refused).1;
    assert!(!refused.status.success() && !messages.contains("large"), "{refused:?}");
    assert!(!kept.published().contains("large"), "{}", kept.published());
    assert_eq!((device(), fs::read_to_string(&file).unwrap().as_str()), (before, "stays"));

    session.ok(&["ramdisk", "resize", kept.name, "16MiB"]);
    session.ok(&["ramdisk", "restore", kept.name, "1"]);
    assert_eq!((fs::metadata(&large).unwrap().len(), file.exists()), (10 << 20, false));
    let listed = session.json(&["ramdisk", "snapshots", kept.name]);
    let first = listed["snapshots"].as_array().unwrap().iter().find(|line| line["generation"] == 1).unwrap();
    assert_ne!(first["pinned"], "", "{listed}");
    assert!(!Path::new("/run/zramd/ramdisks/pinned.restore").exists());
}

#[test]
fn names_of_files_are_for_root_only() {
    let kept = Kept::new("too-small");
    let Some(session) = Session::begin(&kept.section("size = \"16MiB\"")) else { return };
    session.ok(&["reload"]);
    fs::write(kept.mount_point().join("wages"), vec![1; 10 << 20]).unwrap();
    session.ok(&["ramdisk", "save", kept.name]);
    assert!(setup(&["revert"]).status.success());
    session.write(&kept.section("size = \"8MiB\"\non-failure = \"fail\""));
    let job = session.fails(&["reload"], 7);
    let public = [job, kept.published()].concat();
    assert!(public.contains("10.0 MiB") && !public.contains("wages"), "{public}");
    let config = session.bus().bus().config();
    let applied = setup(&["--config", config.to_str().unwrap(), "apply"]);
    assert!(!applied.status.success() && texts(&applied).1.contains("wages"), "{applied:?}");
}
