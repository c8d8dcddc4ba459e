//! `zramdctl init` below a directory.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::apart::command_for;
use crate::support::{CTL, SETUP, repository, texts};

fn init(root: &Path, words: &[&str], answer: &str) -> Output {
    let mut command = command_for(CTL);
    command.arg("init").args(words).arg("--root").arg(root);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that does not ask may have ended already.
    child.stdin.take().unwrap().write_all(answer.as_bytes()).ok();
    child.wait_with_output().unwrap()
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_proposal_is_written_only_after_a_yes() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let file = root.join("etc/zramd/zramd.toml");
    let shown = init(root, &["--dry-run"], "");
    assert!(shown.status.success(), "{shown:?}");
    for answer in ["", "\n", "n\n", "yesterday\n"] {
        let refused = init(root, &[], answer);
        assert_eq!((refused.status.code(), file.exists()), (Some(1), false), "{answer:?}");
    }
    assert!(init(root, &[], "Yes\n").status.success());
    assert_eq!(fs::read(&file).unwrap(), shown.stdout);
    let again = init(root, &["--yes"], "");
    assert_eq!(again.status.code(), Some(1));
    assert!(texts(&again).1.contains("etc/zramd/zramd.toml"), "{again:?}");
    assert_eq!(fs::read(&file).unwrap(), shown.stdout);
}

#[test]
fn the_machine_decides_unless_a_profile_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let size = |words: &[&str]| {
        let words = [words, &["--dry-run"]].concat();
        let toml = texts(&init(root, &words, "")).0;
        toml.lines().find_map(|line| Some(line.strip_prefix("zram-size = ")?.to_owned())).unwrap()
    };
    let said = || texts(&init(root, &["-n"], "")).1;
    // One size measured best, whatever the machine is for.
    assert_eq!(size(&[]), r#""min(3 * ram, 32GiB)""#);
    assert_eq!(size(&["--profile", "desktop"]), r#""min(3 * ram, 32GiB)""#, "the name of an earlier version");
    let offers_logs = |words: &[&str]| {
        let toml = texts(&init(root, &[words, &["-n"]].concat(), "")).0;
        toml.contains("\n# [ramdisk.logs]\n")
    };
    assert!(!offers_logs(&[]) && offers_logs(&["--profile", "board"]));
    write(root, "proc/self/mountinfo", "22 1 179:2 / / rw - ext4 /dev/mmcblk0p2 rw\n");
    assert!(said().contains("on an SD card or eMMC: logs in RAM"), "{}", said());
    assert!(offers_logs(&[]) && !offers_logs(&["--profile", "standard"]));
}

/// What `init` writes has no mistake for the program that reads it at boot.
#[test]
fn a_proposal_for_an_image_is_accepted_there() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let said = texts(&init(root, &["--yes"], "")).1;
    assert!(said.contains("sizes are evaluated when it boots") && !said.contains("error: "), "{said}");
    let mut check = command_for(SETUP);
    let checked = check.arg("--root").arg(root).arg("check").output().unwrap();
    let why = "its size depends on the memory, and is evaluated at boot";
    let verdict =
        format!("no mistakes found: 1 zram device, 0 RAM disks; 1 decided at boot: zram0 ({why})\n");
    assert_eq!(texts(&checked).0, verdict, "{checked:?}");
    let mut plan = command_for(SETUP);
    let planned = plan.arg("--root").arg(root).arg("plan").output().unwrap();
    assert!(texts(&planned).0.contains(&format!("zram0: {why}")), "{planned:?}");
}

#[test]
fn sizes_that_depend_on_the_memory_are_known_at_boot() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let devices = ["zram-fraction = 0.5", "zram-size = 512\nhost-memory-limit = 2048", "zram-size = 512"];
    let sections = devices.iter().enumerate().map(|(number, lines)| format!("[zram{number}]\n{lines}\n"));
    write(root, "etc/zramd/zramd.toml", &sections.collect::<String>());
    let checked = command_for(SETUP).arg("--root").arg(root).arg("check").output().unwrap();
    let why = "its size depends on the memory, and is evaluated at boot";
    let verdict = format!(
        "no mistakes found: 3 zram devices, 0 RAM disks; 2 decided at boot: zram0 ({why}), zram1 ({why})\n"
    );
    assert_eq!(texts(&checked).0, verdict, "{checked:?}");
}

/// Whether a device yields to zswap is known of a running kernel only; to another program, from the files of the image.
#[test]
fn what_an_image_does_not_tell_of_a_device_that_yields_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let zswap = "it yields to zswap if the kernel enables it, which is known at boot";
    write(
        root,
        "etc/zramd/zramd.toml",
        "[zram0]\nzram-size = \"ram / 2\"\nyield = true\n[zram1]\nzram-size = 512\nyield = true\n",
    );
    let setup = |verb| texts(&command_for(SETUP).arg("--root").arg(root).arg(verb).output().unwrap()).0;
    let open = [
        format!("zram0 (its size depends on the memory, and is evaluated at boot; {zswap})"),
        format!("zram1 ({zswap})"),
    ];
    let verdict =
        format!("no mistakes found: 2 zram devices, 0 RAM disks; 2 decided at boot: {}\n", open.join(", "));
    assert_eq!(setup("check"), verdict);
    let planned = setup("plan");
    let first = format!("(the kernel's default); {zswap}\n");
    assert!(
        planned.contains(&first) && planned.contains(&format!("evaluated at boot; {zswap}\n")),
        "{planned}"
    );

    write(root, "usr/lib/systemd/system-generators/zram-generator", "x");
    write(root, "etc/systemd/zram-generator.conf", "[zram0]\n");
    let other =
        "it yields to zram-generator, which sets up zram on this machine (/etc/systemd/zram-generator.conf)";
    let verdict = format!(
        "no mistakes found: 0 zram devices, 0 RAM disks; 2 skipped: zram0 ({other}), zram1 ({other})\n"
    );
    assert_eq!(setup("check"), verdict);
}

#[test]
fn what_the_kernel_of_a_machine_lacks_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, "proc/meminfo", "MemTotal: 4194304 kB\n");
    write(root, "proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
    let proposed = || texts(&init(root, &["-n"], ""));
    let has = |toml: &str| [toml.contains("protect-sessions"), toml.contains("pressure.enabled")];
    assert_eq!(has(&proposed().0), [true, true]);
    write(root, "sys/fs/cgroup/cgroup.controllers", "cpu io\n");
    fs::remove_file(root.join("proc/pressure/memory")).unwrap();
    let (toml, said) = proposed();
    assert_eq!(has(&toml), [false, false]);
    assert!(
        said.contains("protect-sessions is left out: ")
            && said.contains("[maintenance] with pressure.enabled is left out: "),
        "{said}"
    );
    write(root, "sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
    assert_eq!(has(&proposed().0), [true, false]);
}

#[test]
fn an_imported_section_that_the_machine_refuses_is_switched_off_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, "proc/meminfo", "MemTotal: 4194304 kB\n");
    write(root, "usr/lib/systemd/system-generators/zram-generator", "x");
    let text =
        "[zram0]\nzram-size = ram / 4\n[zram1]\nzram-size = ram / 8\nmount-point = /srv\nfs-type = xfs\n";
    write(root, "etc/systemd/zram-generator.conf", text);
    let (toml, said) = texts(&init(root, &["-n"], ""));
    assert!(said.contains("[zram1] is switched off: ") && said.contains("xfs"), "{said}");
    assert!(
        toml.contains("\n[zram1]\n# This machine refuses it: ") && toml.contains("enabled = false\n"),
        "{toml}"
    );
    assert!(!said.contains("error: ") && !toml.contains("[zram0]\n# This machine"), "{said}");
}

#[test]
fn the_administrators_own_configuration_is_taken_over_and_a_shipped_one_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let text = "[zram0]\nzram-size = ram / 4\n";
    write(root, "usr/lib/systemd/system-generators/zram-generator", "x");
    write(root, "usr/lib/systemd/zram-generator.conf", text);
    let (toml, said) = texts(&init(root, &["-n"], ""));
    assert!(!toml.contains("ram / 4") && said.contains("/usr/lib/systemd/zram-generator.conf"), "{said}");
    write(root, "etc/systemd/zram-generator.conf", text);
    assert!(init(root, &["--yes"], "").status.success());
    let toml = fs::read_to_string(root.join("etc/zramd/zramd.toml")).unwrap();
    assert!(toml.contains("zram-size = \"ram / 4\"") && toml.contains("\n[vm]\n"), "{toml}");
}

#[test]
fn a_program_that_is_configured_to_set_up_nothing_is_left_alone() {
    for (paths, text) in [
        (
            ["usr/lib/systemd/system-generators/zram-generator", "etc/systemd/zram-generator.conf"],
            "[zram0]\nzram-size = 0\n",
        ),
        (
            ["usr/lib/systemd/system-generators/rpi-swap-generator", "etc/rpi/swap.conf"],
            "[Main]\nMechanism=swapfile\n",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        write(root, paths[0], "x");
        write(root, paths[1], text);
        let (toml, said) = texts(&init(root, &["-n"], ""));
        assert!(toml.contains(r#"zram-size = "min(3 * ram, 32GiB)""#), "{text}: {toml}");
        let remark = said.lines().find(|line| line.contains(paths[1])).unwrap_or_else(|| panic!("{said}"));
        assert!(remark.contains("left alone"), "{remark}");
    }
}

#[test]
fn swap_that_is_used_before_compressed_swap_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let remark = |priority: i32| {
        let line =
            format!("Filename\tType\tSize\tUsed\tPriority\n/dev/sda3 partition 1048576 0 {priority}\n");
        write(root, "proc/swaps", &line);
        let said = texts(&init(root, &["-n"], "")).1;
        said.lines().find(|line| line.contains("/dev/sda3")).unwrap().to_owned()
    };
    assert!(!remark(99).contains("pri="));
    assert!(remark(100).contains("pri="));
}

#[test]
fn a_configuration_of_a_package_does_not_count_as_existing() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, "usr/lib/zramd/zramd.toml", "[zram0]\nyield = true\n");
    assert!(init(root, &["--yes"], "").status.success());
    let toml = fs::read_to_string(root.join("etc/zramd/zramd.toml")).unwrap();
    assert!(toml.contains("[zram0]\nyield = false\n"), "{toml}");
    fs::remove_file(root.join("etc/zramd/zramd.toml")).unwrap();
    write(root, "etc/zramd/zramd.toml.d/10-more.toml", "[zram1]\n");
    assert_eq!(init(root, &["--yes"], "").status.code(), Some(1));
}

#[test]
fn a_mask_is_found_before_the_question_and_the_kernel_command_line_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, "etc/zramd/zramd.toml", "");
    let refused = init(root, &[], "yes\n");
    assert_eq!((refused.status.code(), texts(&refused).0), (Some(1), String::new()));
    assert!(init(root, &["-n"], "").status.success());
    fs::remove_file(root.join("etc/zramd/zramd.toml")).unwrap();
    let said = || texts(&init(root, &["-n"], "")).1;
    assert!(!said().contains("systemd.zram=0"));
    write(root, "proc/cmdline", "quiet systemd.zram=0\n");
    assert!(said().contains("systemd.zram=0"), "{}", said());
}

#[test]
fn a_program_is_taken_over_where_the_administrator_configured_it() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let size = || {
        let toml = texts(&init(root, &["-n"], "")).0;
        toml.lines().find(|line| line.starts_with("zram-size = ")).unwrap_or_default().to_owned()
    };
    write(root, "usr/lib/systemd/system-generators/zram-generator", "x");
    write(root, "usr/lib/systemd/zram-generator.conf", "[zram0]\n");
    let measured = size();
    // A drop-in in /etc is no decision of the distribution.
    write(root, "etc/systemd/zram-generator.conf.d/10.conf", "[zram0]\nzram-size = ram / 7\n");
    assert_eq!(size(), "zram-size = \"ram / 7\"");
    write(
        root,
        "etc/systemd/zram-generator.conf.d/10.conf",
        "[zram0]\noptions = pri=5,discard=all,nodiscard\n",
    );
    assert_eq!(size(), "zram-size = \"min(ram / 2, 4096)\"");
    write(root, "etc/systemd/zram-generator.conf.d/10.conf", "[zram0]\nmount-point = /a\noptions = uid=5\n");
    let refused = init(root, &["-n"], "");
    assert_eq!((refused.status.code(), texts(&refused).0), (Some(1), String::new()), "not left alone");
    write(root, "etc/systemd/zram-generator.conf.d/10.conf", "set!x = cat /a\n[zram0]\nzram-size = x * 2\n");
    let refused = init(root, &["-n"], "");
    assert_eq!((refused.status.code(), texts(&refused).0), (Some(1), String::new()), "it runs programs");
    fs::remove_dir_all(root.join("etc/systemd")).unwrap();
    fs::remove_dir_all(root.join("usr/lib/systemd")).unwrap();
    write(root, "usr/lib/systemd/system/pop-default-settings-zram.service", "[Service]\n");
    assert_eq!(size(), measured);
    write(root, "etc/default/pop-zram", "MAX_SIZE=4096\n");
    assert_eq!(size(), "zram-size = \"min(ram, 4096)\"");
}

#[test]
fn the_proposal_says_what_was_found_and_what_it_amounts_to() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let said = || texts(&init(root, &["-n"], "")).1;
    let before = said();
    for word in ["Swap on", "Hibernation", "Here, zram0 can store"] {
        assert!(!before.contains(word), "{before}");
    }
    write(root, "proc/meminfo", "MemTotal: 4194304 kB\n");
    write(root, "proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
    write(root, "sys/power/resume", "8:2\n");
    write(root, "proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/dev/zram0 partition 1048576 0 100\n");
    let found = said();
    for words in [
        "Swap on /dev/zram0 (1.0 GiB) was set up by hand or by a program unknown to zramd",
        "Hibernation is configured",
        "\nHere, zram0 can store 12.0 GiB, with zstd until this machine is measured.\n",
    ] {
        assert!(found.contains(words), "{words}: {found}");
    }
}

/// `check`, `doctor` and `status` have tests of their own for this.
#[test]
fn packages_name_it_after_their_installation() {
    for file in ["packaging/debian/README.Debian", "packaging/arch/zramd-daemon.install"] {
        let text = fs::read_to_string(repository(file)).unwrap();
        assert!(text.contains("zramdctl init --now"), "{file}");
    }
}
