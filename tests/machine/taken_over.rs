//! A device that another program has reset and set up since zramd did, on the running kernel; and a user who moves a mount
//! point while it is removed.
//!
//! Needs root and zram; otherwise each test is skipped with the reason.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::example::{assert_success, session};
use crate::support::{setup, texts};

/// The device of the tests; the numbers below are in use or are created and removed again.
const DEVICE: &str = "zram9";

/// Runs programs that zramd knows nothing of.
fn shell(script: &str) {
    let output = Command::new("sh").args(["-euc", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
}

fn free() -> String {
    format!(
        "swapoff /dev/{DEVICE} 2>/dev/null || umount /dev/{DEVICE} 2>/dev/null || true; echo 1 >/sys/block/{DEVICE}/reset; "
    )
}

/// What must not change.
fn theirs() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap();
    let lines = |path: &str| -> Vec<String> {
        let text = read(path);
        let lines = text.lines().filter(|line| line.contains(DEVICE));
        // Without the used amount, which varies.
        lines.map(|line| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ")).collect()
    };
    let size = read(&format!("/sys/block/{DEVICE}/disksize"));
    let identity =
        Command::new("blkid").args(["-p", "-o", "export", &format!("/dev/{DEVICE}")]).output().unwrap();
    format!("{size} {:?} {:?} {}", lines("/proc/swaps"), lines("/proc/mounts"), texts(&identity).0)
}

#[test]
fn what_another_program_set_up_on_our_device_is_not_touched() {
    let Some(_session) = session() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("z.toml");
    let mount_point = directory.path().join("m");
    let config = file.to_str().unwrap();
    let point = mount_point.display();
    let swap = format!("[{DEVICE}]\nzram-size = \"32MiB\"\n");
    let files = format!("{swap}mount-point = \"{point}\"\n");
    let raw = format!("{swap}fs-type = \"none\"\n");
    let size = |mib: u32| format!("echo {mib}M >/sys/block/{DEVICE}/disksize; ");
    let make_swap = format!("mkswap -q /dev/{DEVICE}; swapon /dev/{DEVICE}");
    let mkfs = format!("mkfs.ext4 -q -L {DEVICE} /dev/{DEVICE}");
    for (case, ours, takes) in [
        ("larger swap", &swap, size(48) + &make_swap),
        ("swap of the same size", &swap, size(32) + &make_swap),
        (
            "a file system of the same size and label",
            &files,
            format!("{}{mkfs}; mount /dev/{DEVICE} {point}", size(32)),
        ),
        ("a file system on a raw device", &raw, size(32) + &mkfs),
    ] {
        fs::write(&file, ours).unwrap();
        assert_success(&setup(&["--config", config, "apply"]));
        assert_success(&setup(&["--config", config, "apply"]));
        shell(&(free() + &takes));
        let before = theirs();
        for words in [
            &["--config", config, "apply"][..],
            &["revert"],
            &["down", DEVICE],
            &["--config", config, "up", DEVICE],
        ] {
            let output = setup(words);
            let (text, errors) = texts(&output);
            if *ours == raw && words.contains(&config) {
                // It is there for that, and stays as it is.
                assert!(output.status.success(), "{case}: {words:?}: {text}{errors}");
                assert_eq!(theirs(), before, "{case}: {words:?}");
                continue;
            }
            assert!(!output.status.success(), "{case}: {words:?}: {text}{errors}");
            assert!(
                errors.contains(DEVICE) && errors.contains("another program"),
                "{case}: {words:?}: {errors}"
            );
            assert!(errors.contains("zramdctl adopt zram9"), "{case}: {words:?}: {errors}");
            assert_eq!(theirs(), before, "{case}: {words:?}");
        }
        let doctor = Command::new(env!("CARGO_BIN_EXE_zramdctl"))
            .args(["--config", config, "doctor"])
            .output()
            .unwrap();
        let (said, _) = texts(&doctor);
        assert_eq!(said.contains("zram9: another program has set"), *ours != raw, "{case}: {said}");
        // The other program has freed it: what is left is ours again, and is removed.
        shell(&free());
        assert_success(&setup(&["revert"]));
        assert!(!fs::exists(format!("/sys/block/{DEVICE}")).unwrap(), "{case}");
    }
}

/// The owner of a directory above the mount points renames it all the time.
#[test]
fn a_mount_point_that_moves_during_its_removal_is_unmounted_all_the_same() {
    let Some(_session) = session() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (here, there) = (directory.path().join("here"), directory.path().join("there"));
    let file = directory.path().join("z.toml");
    let sections = ["a", "b", "c"].map(|name| {
        format!("[ramdisk.{name}]\nmount-point = \"{}/{name}\"\nsize = \"4MiB\"\n", here.display())
    });
    fs::write(&file, sections.concat()).unwrap();
    let mounted = || {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        mounts.lines().filter(|line| line.contains(directory.path().to_str().unwrap())).count()
    };
    for _ in 0..10 {
        fs::create_dir_all(&here).unwrap();
        assert_success(&setup(&["--config", file.to_str().unwrap(), "apply"]));
        assert_eq!(mounted(), 3);
        let stop = AtomicBool::new(false);
        let output = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    fs::rename(&here, &there).unwrap();
                    fs::rename(&there, &here).unwrap();
                }
            });
            let output = setup(&["revert"]);
            stop.store(true, Ordering::Relaxed);
            output
        });
        // With an error, the mount and its record are still there.
        let records = fs::read_dir("/run/zramd").unwrap();
        let left = records
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("ramdisk-"));
        assert_eq!(mounted(), left.count(), "{output:?}");
        assert_success(&setup(&["revert"]));
        assert_eq!(mounted(), 0);
    }
}

/// Killed at any time: at the end, no device is left that was not there before.
#[test]
fn killed_runs_leave_no_devices_behind() {
    let Some(_session) = session() else { return };
    let devices = || -> Vec<String> {
        let names = fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
        names.retain(|name| name.starts_with("zram"));
        names.sort();
        names
    };
    let before = devices();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("z.toml");
    fs::write(&file, "[zram12]\nzram-size = \"16MiB\"\n").unwrap();
    let config = file.to_str().unwrap();
    for round in 0..30_u64 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_zramd-setup"))
            .args(["--config", config, "apply"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5 + round * 7));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_success(&setup(&["--config", config, "apply"]));
    assert_success(&setup(&["revert"]));
    assert_eq!(devices(), before);
}

/// The real kernel's IDs of mounts: covered, replaced, and in another mount namespace.
#[test]
fn mounts_of_other_programs_and_namespaces_are_told_from_ours() {
    let Some(_session) = session() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (file, point) = (directory.path().join("z.toml"), directory.path().join("m"));
    fs::create_dir(&point).unwrap();
    let (config, point) = (file.to_str().unwrap(), point.to_str().unwrap());
    fs::write(&file, format!("[ramdisk.test-mounts]\nmount-point = \"{point}\"\nsize = \"4MiB\"\n")).unwrap();
    let mounted = || {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        mounts.lines().filter(|line| line.contains(point)).count()
    };
    let refused = |output: &std::process::Output, why: &str, mounts: usize| {
        let (text, errors) = texts(output);
        let is_named = text.contains(why) || errors.contains(why);
        assert!(!output.status.success() && is_named, "{why}: {text}{errors}");
        assert_eq!(mounted(), mounts, "{why}");
    };

    assert_success(&setup(&["--config", config, "apply"]));
    let away = Command::new("unshare")
        .args(["--mount", "--propagation", "private", env!("CARGO_BIN_EXE_zramd-setup"), "revert"])
        .output()
        .unwrap();
    refused(&away, "another mount namespace", 1);
    shell(&format!("mount -t tmpfs theirs {point}"));
    refused(&setup(&["revert"]), "covered by another mount", 2);
    refused(&setup(&["--config", config, "apply"]), "another program has mounted", 2);
    shell(&format!("umount {point}"));
    assert_success(&setup(&["revert"]));
    assert_eq!(mounted(), 0);

    // The kernel gives the tmpfs of the other program our ID and our device number.
    assert_success(&setup(&["--config", config, "apply"]));
    shell(&format!("umount {point}; mount -t tmpfs theirs {point}"));
    refused(&setup(&["--config", config, "apply"]), "another program has mounted", 1);
    assert_success(&setup(&["revert"]));
    assert_eq!(mounted(), 1);
    shell(&format!("umount {point}"));
}
