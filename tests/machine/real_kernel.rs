//! Set-up and removal on the running kernel. Needs root and zram; otherwise each test is skipped with the reason.
//!
//! The machine must have no active zram device, and is left as it was.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::example::{apply, assert_success, example, machine, session};
use crate::support::{eventually, has_program, repository, setup, skip, texts};

use host::linux::LinuxHost;
use host::{Host, MountSpec};
use logic::record::MountId;

#[test]
fn the_example_comes_up_with_real_figures_and_leaves_no_trace() {
    let Some(_session) = session() else { return };
    let before = machine();
    let output = apply();
    assert_success(&output);
    let (table, messages) = texts(&output);
    assert_eq!(messages, "");
    for expected in ["zram0", "256.0 MiB", "swap, priority 100", "active", "128.0 MiB", "64.0 MiB", "mounted"]
    {
        assert!(table.contains(expected), "{expected} is missing in\n{table}");
    }
    let swaps = fs::read_to_string("/proc/swaps").unwrap();
    let words: Vec<&str> = swaps.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((words[0], words[4]), ("/dev/zram0", "100"));
    for (path, mode) in [("/mnt/zramd-example/cache", 0o750), ("/mnt/zramd-example/scratch", 0o1777)] {
        let metadata = fs::metadata(path).unwrap();
        assert_eq!((metadata.permissions().mode() & 0o7777, metadata.uid()), (mode, 0), "{path}");
    }
    let blkid = Command::new("blkid").args(["-p", "-o", "export", "/dev/zram0"]).output();
    if let Ok(blkid) = blkid {
        let text = texts(&blkid).0;
        assert!(text.contains("TYPE=swap") && text.contains("LABEL=zram0"), "{text}");
    }
    let again = setup(&["--config", example().to_str().unwrap(), "--json", "plan"]);
    let plan: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(plan["steps"], serde_json::json!([]), "a second run makes no steps");
    assert_success(&setup(&["revert"]));
    assert_eq!(machine(), before);
}

#[test]
fn mistakes_disable_only_their_sections() {
    let Some(_session) = session() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("z.toml");
    let broken = fs::read_to_string(repository("tests/golden/diagnostics/five-mistakes.toml")).unwrap();
    // The same five mistakes; valid sections are small enough for any machine.
    let text = broken.replace("[zram5]\nzram-size = \"512MiB\"", "[zram5]\nzram-size = \"16MiB\"");
    fs::write(&file, text.replace("zram-sise = \"1GiB\"", "zram-sise = \"1GiB\"\nzram-size = \"16MiB\""))
        .unwrap();
    let output = setup(&["--config", file.to_str().unwrap(), "apply"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let swaps = fs::read_to_string("/proc/swaps").unwrap();
    assert!(swaps.contains("/dev/zram0") && swaps.contains("/dev/zram5"), "{swaps}");
    assert!(!Path::new("/sys/block/zram4").exists(), "numbers created on the way are removed again");
    let (table, _) = texts(&output);
    for name in ["ramdisk.cache", "zram1", "zram2", "zram3"] {
        let row = table.lines().find(|line| line.split_whitespace().next() == Some(name));
        assert!(row.is_some_and(|row| row.ends_with(" not used")), "{name}: {table}");
        assert!(table.contains(&format!("\n{name}: not usable: it has a mistake")), "{name}: {table}");
    }
}

/// zram-init#37: zram has blocks of 4096 bytes.
#[test]
fn what_mkfs_says_is_in_the_message() {
    let Some(_session) = session() else { return };
    if !has_program("mkfs.ext4") {
        return skip("needs mkfs.ext4");
    }
    let before = machine();
    let directory = tempfile::tempdir().unwrap();
    let (file, place) = (directory.path().join("z.toml"), directory.path().join("place"));
    let section = format!(
        "[zram3]\nzram-size = \"16MiB\"\nmount-point = \"{}\"\nmkfs-options = \"-b 1024\"\n",
        place.display()
    );
    fs::write(&file, section).unwrap();
    let output = setup(&["--config", file.to_str().unwrap(), "apply"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let (table, said) = texts(&output);
    let reason = "error: zram3: format it as ext4: mkfs.ext4 failed (exit status: 1): mkfs.ext4: Invalid argument while setting blocksize";
    assert!(said.contains(reason), "{said}");
    assert!(!table.contains("uses"), "{table}");
    assert_eq!(machine(), before);
}

#[test]
fn an_algorithm_that_the_kernel_lacks_is_named() {
    let Some(_session) = session() else { return };
    let before = machine();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("z.toml");
    fs::write(&file, "[zram3]\nzram-size = \"16MiB\"\ncompression-algorithm = \"snappy\"\n").unwrap();
    let output = setup(&["--config", file.to_str().unwrap(), "apply"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(texts(&output).1.contains("snappy"), "{output:?}");
    assert_eq!(machine(), before);
}

/// A process that holds a device open until dropped.
struct Holder(std::process::Child);

impl Holder {
    fn of(path: &str, seconds: &str) -> Holder {
        let script = format!("exec 9<{path}; exec sleep {seconds}");
        let child = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).spawn().unwrap();
        let target = format!("/proc/{}/fd/9", child.id());
        let is_open = || fs::read_link(&target).is_ok_and(|found| found == Path::new(path));
        eventually(&format!("a process opens {path}"), is_open);
        Holder(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_device_that_is_held_open_is_waited_for_or_left_as_it_is() {
    let Some(_session) = session() else { return };
    let before = machine();
    assert_success(&apply());
    let active = machine();

    let forever = Holder::of("/dev/zram0", "600");
    let output = setup(&["down", "zram0"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = texts(&output).1;
    assert!(message.contains(&format!("sleep (pid {})", forever.0.id())), "{message}");
    assert_eq!(machine(), active, "nothing has changed");
    drop(forever);

    let short = Holder::of("/dev/zram0", "1");
    assert_success(&setup(&["down", "zram0"]));
    drop(short);
    assert_success(&setup(&["revert"]));
    assert_eq!(machine(), before);
}

#[test]
fn a_mount_that_is_in_use_is_left_and_its_user_is_named() {
    let Some(_session) = session() else { return };
    assert_success(&apply());
    let file = "/mnt/zramd-example/cache/file";
    fs::write(file, "precious").unwrap();
    let user = Holder::of(file, "600");
    let output = setup(&["down", "zram1"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(texts(&output).1.contains(&format!("sleep (pid {})", user.0.id())), "{output:?}");
    assert_eq!(fs::read_to_string(file).unwrap(), "precious");
}

#[test]
fn a_device_of_another_program_is_refused_and_not_touched() {
    let Some(_session) = session() else { return };
    let number = fs::read_to_string("/sys/class/zram-control/hot_add").unwrap().trim().to_owned();
    fs::write(format!("/sys/block/zram{number}/disksize"), "16M").unwrap();
    let before = machine();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("z.toml");
    fs::write(&file, format!("[zram{number}]\nzram-size = \"16MiB\"\n")).unwrap();
    let output = setup(&["--config", file.to_str().unwrap(), "apply"]);
    let plan = setup(&["--config", file.to_str().unwrap(), "--json", "plan"]);
    let after = machine();
    fs::write("/sys/class/zram-control/hot_remove", &number).unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let plan: serde_json::Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert_eq!(plan["problems"][0]["code"], "device-unmanaged", "{plan}");
    assert_eq!(after, before);
}

/// Operations below a directory that is a link take place neither at the link nor at its target.
#[test]
fn a_link_in_a_path_is_not_followed() {
    let Some(_session) = session() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (victim, own) = (directory.path().join("victim"), directory.path().join("own"));
    for directory in [&victim, &victim.join("m"), &victim.join("empty"), &own] {
        fs::create_dir(directory).unwrap();
    }
    // A user has put the link in the place of an expected directory.
    std::os::unix::fs::symlink(&victim, own.join("link")).unwrap();
    std::os::unix::fs::chown(&own, Some(1000), Some(1000)).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let spec = |path: &Path| MountSpec {
        source: "tmpfs".to_owned(),
        mount_point: text(path),
        fs_type: "tmpfs".to_owned(),
        options: "size=64k".to_owned(),
    };
    let mounted = || {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        mounts.lines().filter(|line| line.contains(directory.path().to_str().unwrap())).count()
    };
    let mut host = LinuxHost::new("/");
    assert_eq!(host.link(&text(&own.join("link/m"))), Some(text(&victim.join("m"))));
    assert_eq!(host.link(&text(&own.join("new/m"))), None);
    host.mount(&spec(&victim.join("m"))).unwrap();
    let before = mounted();
    for path in ["link", "link/m", "link/empty"] {
        let path = own.join(path);
        assert!(host.mount(&spec(&path)).is_err(), "{path:?}");
        assert!(host.bind("/proc", &text(&path)).is_err(), "{path:?}");
        assert!(host.bind(&text(&path), &text(&own)).is_err(), "{path:?}");
    }
    assert!(host.remount(&spec(&own.join("link/m"))).is_err());
    let any = MountId::default();
    assert!(host.unmount(text(&own.join("link/m")).as_bytes(), &any).is_err());
    assert!(host.make_directory(&text(&own.join("link/new"))).is_err());
    assert!(host.remove_directory(&text(&own.join("link/empty"))).is_err());
    assert_eq!(mounted(), before);
    assert!(victim.join("empty").is_dir() && !victim.join("new").exists());
    // Without a link all of it succeeds.
    let (made, path) = (text(&own.join("made")), text(&victim.join("m")));
    host.make_directory(&made).unwrap();
    host.bind(&path, &made).unwrap();
    host.remount(&spec(&victim.join("m"))).unwrap();
    assert_eq!(mounted(), before + 1);
    host.unmount(made.as_bytes(), &any).unwrap();
    host.remove_directory(&made).unwrap();
    host.unmount(path.as_bytes(), &any).unwrap();

    let file = directory.path().join("z.toml");
    let section =
        format!("[ramdisk.led]\nmount-point = \"{}\"\nsize = \"1MiB\"\n", text(&own.join("link/disk")));
    fs::write(&file, section).unwrap();
    let output = setup(&["--config", file.to_str().unwrap(), "apply"]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert!(!victim.join("disk").exists());
}

/// The number of a device that does not exist.
const UNUSED_NUMBER: u32 = 4_000_000;

#[test]
fn a_write_back_file_has_no_name_and_ends_with_its_loop_device() {
    use host::linux::LinuxHost;
    use host::{Errno, Host};
    let Some(_session) = session() else { return };
    // Not below /tmp, which may be a tmpfs.
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = directory.path().join("store");
    let path = path.to_str().unwrap();
    let mut host = LinuxHost::new("/");
    assert_eq!(host.loop_device(UNUSED_NUMBER).unwrap(), None);
    if let Err(error) = host.attach_file(UNUSED_NUMBER, path, 16 << 20) {
        return skip(&format!("needs loop devices: {error}"));
    }
    let device = host.loop_device(UNUSED_NUMBER).unwrap().unwrap();
    let sysfs = |file: &str| {
        let path = format!("/sys/block/{}/{file}", device.trim_start_matches("/dev/"));
        fs::read_to_string(path).unwrap().trim().to_owned()
    };
    assert_eq!(sysfs("size"), (16 * 2048).to_string());
    assert_eq!(sysfs("loop/dio"), "1");
    // It never had a name, so a power cut leaves no file behind.
    let backing = sysfs("loop/backing_file");
    assert!(backing.starts_with(&format!("{}/#", directory.path().display())), "{backing}");
    assert!(backing.ends_with(" (deleted)"), "{backing}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    host.detach_file(UNUSED_NUMBER).unwrap();
    eventually("the loop device is detached", || host.loop_device(UNUSED_NUMBER).unwrap().is_none());
    host.detach_file(UNUSED_NUMBER).unwrap();

    fs::write(path, "precious").unwrap();
    assert!(host.attach_file(UNUSED_NUMBER, path, 16 << 20).unwrap_err().is(Errno::EXIST));
    assert_eq!(fs::read_to_string(path).unwrap(), "precious");
    let space = host.space(b"/var/tmp").unwrap();
    let missing = directory.path().join("other");
    let too_large = space.total_bytes * 2;
    assert!(host.attach_file(UNUSED_NUMBER, missing.to_str().unwrap(), too_large).is_err());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "what failed leaves nothing");
    assert_eq!(host.loop_device(UNUSED_NUMBER).unwrap(), None);
    assert_eq!(host.crypt_device(UNUSED_NUMBER).unwrap(), None);
    assert!(host.close_crypt(UNUSED_NUMBER).is_ok(), "what is not there need not be removed");
}
