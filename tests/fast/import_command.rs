//! `zramdctl import` on a machine that had another program.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::apart::command_for;
use crate::support::{CTL, texts};

fn import(root: &Path, words: &[&str]) -> Output {
    let mut command = command_for(CTL);
    command.arg("import").args(words).arg("--root").arg(root).output().unwrap()
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_configuration_is_printed_and_written_once() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "etc/systemd/zram-generator.conf", "[zram0]\nzram-size = ram / 4\nswap-priority = 60\n");
    write(root, "etc/systemd/zram-generator.conf.d/10-more.conf", "[zram0]\ncompression-algorithm = zstd\n");
    let printed = import(root, &["zram-generator"]);
    let (toml, said) = texts(&printed);
    assert!(printed.status.success(), "{said}");
    for line in
        ["zram-size = \"ram / 4\"", "swap-priority = 60", "compression-algorithm = [\"zstd\", \"auto\"]"]
    {
        assert!(toml.lines().any(|found| found == line), "{line} is missing:\n{toml}");
    }
    assert!(said.contains("WAS") && said.contains("[zram0] swap-priority = 60"), "{said}");
    let table = said.lines().skip_while(|line| !line.starts_with("WAS"));
    assert!(table.clone().count() > 5 && table.clone().all(|line| line.chars().count() <= 100), "{said}");
    let written = import(root, &["zram-generator", "--write"]);
    assert!(written.status.success());
    assert_eq!(fs::read_to_string(root.join("etc/zramd/zramd.toml")).unwrap(), toml);
    write(root, "etc/zramd/zramd.toml", "# mine\n");
    let again = import(root, &["zram-generator", "--write"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(texts(&again).1.contains("/etc/zramd/zramd.toml"));
    assert_eq!(fs::read_to_string(root.join("etc/zramd/zramd.toml")).unwrap(), "# mine\n");
}

#[test]
fn links_hide_lower_files_and_programs_are_run_only_on_request() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "usr/lib/systemd/zram-generator.conf", "[zram7]\nzram-size = 1\n");
    write(
        root,
        "etc/systemd/zram-generator.conf",
        &format!("set!x = touch {}/ran\n[zram0]\nzram-size = x\n", root.display()),
    );
    let printed = import(root, &["zram-generator"]);
    let (toml, said) = texts(&printed);
    assert!(!toml.contains("[zram7]"), "the highest main file hides the others:\n{toml}");
    assert!(!root.join("ran").exists() && said.contains("warning:"), "{said}");
    let given = import(root, &["zram-generator", "--set", "x=512"]);
    assert!(texts(&given).0.contains("512"), "{}", texts(&given).0);
    assert_eq!(import(root, &["zram-generator", "--set", "x"]).status.code(), Some(1));
    fs::remove_file(root.join("etc/systemd/zram-generator.conf")).unwrap();
    std::os::unix::fs::symlink("/dev/null", root.join("etc/systemd/zram-generator.conf")).unwrap();
    assert!(!texts(&import(root, &["zram-generator"])).0.contains("[zram7]"));
}

#[test]
fn a_program_without_configuration_is_reported() {
    let root = tempfile::tempdir().unwrap();
    for (peer, file) in [("zram-tools", "/etc/default/zramswap"), ("log2ram", "/etc/log2ram.conf")] {
        let output = import(root.path(), &[peer]);
        assert_eq!(output.status.code(), Some(4), "{peer}");
        assert!(texts(&output).1.contains(file), "{peer}");
    }
    write(root.path(), "etc/default/zramswap", "ALGO=lz4\nPERCENT=25\nPRIORITY=42\n");
    let (toml, _) = texts(&import(root.path(), &["zram-tools"]));
    assert!(toml.contains("swap-priority = 42"), "{toml}");
}

#[test]
fn what_cannot_be_read_is_an_error_and_nothing_is_written() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let main = root.join("etc/systemd/zram-generator.conf");
    let refused = |is_text: bool| {
        for words in [&["zram-generator"][..], &["zram-generator", "--write"]] {
            let output = import(root, words);
            let (toml, said) = texts(&output);
            assert_eq!((output.status.code(), toml.as_str()), (Some(1), ""), "{said}");
            let file = "/etc/systemd/zram-generator.conf";
            assert!(said.contains(file) && !said.contains("os error"), "{said}");
            assert_eq!(said.contains("UTF-8"), !is_text, "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
        assert!(!root.join("etc/zramd").exists());
    };
    write(root, "etc/systemd/zram-generator.conf", "");
    fs::write(&main, b"[zram0]\nzram-size = 512\n# \xff\n").unwrap();
    refused(false);
    fs::remove_file(&main).unwrap();
    fs::create_dir(&main).unwrap();
    refused(true);
    fs::remove_dir(&main).unwrap();
    // Also through a link.
    fs::create_dir(root.join("etc/directory")).unwrap();
    std::os::unix::fs::symlink("../directory", &main).unwrap();
    refused(true);
}

#[test]
fn a_configuration_without_devices_is_not_there_and_nothing_is_written() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "etc/systemd/zram-generator.conf", "# [zram0]\n");
    let output = import(root, &["zram-generator", "--write"]);
    let (_, said) = texts(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("/etc/systemd/zram-generator.conf"), "{said}");
    assert!(!root.join("etc/zramd").exists());
}

#[test]
fn the_reason_is_given_if_there_is_nothing_to_import() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "etc/rpi/swap.conf", "[Main]\nMechanism=swapfile\n");
    write(root, "etc/fstab", "# a\n\n/dev/sda1 / ext4\nUUID=5\n");
    for (peer, why) in [("rpi-swap", "Mechanism"), ("fstab", "warning: /etc/fstab:4: ")] {
        let output = import(root, &[peer]);
        let (_, said) = texts(&output);
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains(why) && !said.contains("there is no device"), "{said}");
        assert_eq!(said.matches("warning: ").count(), usize::from(peer == "fstab"), "{said}");
    }
}

#[test]
fn sizes_beyond_the_memory_are_reported() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("zram-generator.conf");
    // Without --root, the machine is this one.
    fs::write(&file, "[zram0]\nzram-size = ram * 4\n[zram1]\nzram-size = ram * 4\n").unwrap();
    let mut command = command_for(CTL);
    let output = command.args(["import", "zram-generator"]).arg(&file).output().unwrap();
    let (toml, said) = texts(&output);
    let warnings: Vec<&str> = said.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert_eq!(warnings.len(), 1, "{said}");
    // As `check` does.
    fs::write(root.path().join("z.toml"), toml).unwrap();
    let mut command = command_for(CTL);
    let checked = texts(&command.arg("check").arg(root.path().join("z.toml")).output().unwrap()).1;
    let message = checked.lines().next().unwrap().split(": ").last().unwrap();
    assert!(warnings[0].contains(message), "{message}: {said}");
}

#[test]
fn links_are_followed_inside_the_root() {
    let root = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let root = root.path();
    let link = |target: &str, path: &str| {
        fs::remove_file(root.join(path)).ok();
        std::os::unix::fs::symlink(target, root.join(path)).unwrap();
    };
    write(outside.path(), "secret.conf", "[zram0]\nzram-size = 1\n");
    write(root, "opt/x.conf", "[zram0]\nzram-size = 512\n");
    fs::create_dir_all(root.join("private/etc/systemd")).unwrap();
    // The configuration directory itself is a link.
    link("/private/etc", "etc");
    link("/opt/x.conf", "private/etc/systemd/zram-generator.conf");
    let written = import(root, &["zram-generator", "--write"]);
    let (_, said) = texts(&written);
    assert!(written.status.success(), "{said}");
    let file = root.join("etc/zramd/zramd.toml");
    assert!(said.contains(file.to_str().unwrap()), "{said}");
    assert!(
        fs::read_to_string(root.join("private/etc/zramd/zramd.toml")).unwrap().contains("zram-size = 512")
    );
    let secret = outside.path().join("secret.conf");
    link(secret.to_str().unwrap(), "private/etc/systemd/zram-generator.conf");
    assert_eq!(import(root, &["zram-generator"]).status.code(), Some(4), "a file of the host is not read");
    link("/dev/null", "private/etc/systemd/zram-generator.conf");
    write(root, "usr/lib/systemd/zram-generator.conf", "[zram7]\n");
    assert_eq!(import(root, &["zram-generator"]).status.code(), Some(4), "switched off");
}

#[test]
fn sections_that_zramd_refuses_are_reported() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(
        root,
        "etc/systemd/zram-generator.conf",
        "[zram0]\nmount-point = /\n[zram1]\nmount-point = /tmp\n[zram2]\nmount-point = /tmp\n\
         [zram3]\nzram-size = 100\nmount-point = /a\nfs-type = xfs\n[zram4000000000]\n[zram5]\nzram-size = ram / 2\n",
    );
    let output = import(root, &["zram-generator"]);
    let (toml, said) = texts(&output);
    let warnings: Vec<&str> = said.lines().filter(|line| line.starts_with("warning: ")).collect();
    for (name, why) in [("zram0", " / "), ("zram2", "[zram1]"), ("zram3", "xfs"), ("zram4000000000", "255")] {
        let found = |line: &&&str| line.contains(&format!("[{name}]")) && line.contains(why);
        assert!(warnings.iter().any(|line| found(&line)), "{name}: {said}");
    }
    assert_eq!(warnings.len(), 4, "{said}");
    assert!(toml.contains("\n# [zram4000000000]\n") && toml.contains("\n[zram5]\n"), "{toml}");
    for (peer, file, text) in
        [("zram-tools", "etc/default/zramswap", "PERCENT=0\n"), ("pop-zram", "etc/pop-zram", "MAX_SIZE=0\n")]
    {
        write(root, file, text);
        let said = texts(&import(root, &[peer])).1;
        let warned = |line: &&str| line.starts_with("warning: ") && line.contains("[zram0]");
        assert_eq!(said.lines().filter(warned).count(), 1, "{said}");
    }
}

#[test]
fn impossible_values_become_the_default_and_unsupported_ones_a_comment() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "etc/pop-zram", "SWAPPINESS=lots\nPAGE_CLUSTERS=500\n");
    let (toml, said) = texts(&import(root, &["pop-zram"]));
    assert!(toml.contains("swappiness = 180") && toml.contains("page-cluster = 0"), "{toml}");
    assert!(said.contains("/etc/pop-zram:1: ") && said.contains("/etc/pop-zram:2: "), "{said}");
    // `enabled = false` alone would be an error: a RAM disk needs a mount point.
    write(root, "etc/log2ram.conf", "PATH_DISK='/a\\'\n");
    let (toml, said) = texts(&import(root, &["log2ram"]));
    assert!(toml.contains("\n# [ramdisk.a]\n") && !toml.contains("enabled"), "{toml}");
    assert!(!said.contains("[ramdisk.a] mount-point"), "{said}");
    let file = root.join("z.toml");
    fs::write(&file, toml).unwrap();
    let check = command_for(CTL).arg("-c").arg(&file).arg("check").output().unwrap();
    assert!(check.status.success(), "{:?}", texts(&check));
}

#[test]
fn ineffective_options_are_reported() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "etc/systemd/zram-generator.conf", "set!x = nproc\n[zram0]\nzram-size = ram / x\n");
    write(root, "etc/default/zramswap", "PERCENT=50\n");
    let said = texts(&import(root, &["zram-generator", "--set", "nope=4", "--set", "x=2"])).1;
    assert!(said.contains("--set nope: ") && !said.contains("--set x: "), "{said}");
    assert!(texts(&import(root, &["zram-tools", "--set", "a=b"])).1.contains("--set a: "));
    let said = texts(&import(root, &["zram-tools", "--config", "/gone"])).1;
    assert!(said.contains("--config"), "{said}");
    let output = import(root, &["zram-generator", "--run-programs"]);
    assert_eq!(output.status.code(), Some(2), "programs of another root are not run on this machine");
}

/// Imports from a directory that is mounted over /etc/systemd in a mount namespace.
const OVER_ETC: &str = r#"mount --bind "$1" /etc/systemd && shift && exec "$@""#;

#[test]
fn programs_are_run_on_request_and_what_they_print_is_put_in() {
    let directory = tempfile::tempdir().unwrap();
    let text = "set!a = ! echo $((2 + 2)); exit 1\nset!b = printf 'a * 2'\nset!b = printf 'b + 1'\nset!c = true\nset!d = echo $0 >&2; cat\n\
                [zram0]\nzram-size = ram / b\n[zram1]\nzram-size = ram / c\n";
    write(directory.path(), "zram-generator.conf", text);
    let output = command_for("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", OVER_ETC, "sh"])
        .arg(directory.path())
        .args([CTL, "import", "zram-generator", "--run-programs"])
        .output()
        .unwrap();
    let (toml, said) = texts(&output);
    assert!(output.status.success(), "{said}");
    assert!(toml.contains("zram-size = \"ram / ((4 * 2) + 1)\""), "{toml}\n{said}");
    for line in ["a -> 4", "b -> a * 2", "b -> b + 1", "/bin/sh"] {
        assert!(said.lines().any(|found| found == line), "{line}: {said}");
    }
    // Their programs print nothing: the section that needs one is off.
    for name in ["c -> ", "d -> "] {
        assert_eq!(said.lines().filter(|line| line.starts_with(name)).count(), 1, "{name}: {said}");
    }
    let (_, section) = toml.split_once("\n[zram1]\n").unwrap();
    assert!(section.lines().any(|line| line == "enabled = false"), "{toml}");
    assert!(said.contains("exit status: 1") && said.contains("zram1"), "{said}");
}

/// A program that fails when its messages cannot be written.
#[test]
fn programs_print_their_values_although_messages_cannot_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let text = "set!a = echo why >&2 && echo 4\n[zram0]\nzram-size = ram / a\n";
    write(directory.path(), "zram-generator.conf", text);
    let output = command_for("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", OVER_ETC, "sh"])
        .arg(directory.path())
        .args([CTL, "import", "zram-generator", "--run-programs"])
        .stderr(fs::File::options().write(true).open("/dev/full").unwrap())
        .output()
        .unwrap();
    let (toml, _) = texts(&output);
    assert!(toml.contains("zram-size = \"ram / 4\""), "{toml}");
}

#[test]
fn a_named_file_is_read_alone() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "etc/systemd/zram-generator.conf", "[zram0]\n");
    write(root, "etc/systemd/zram-generator.conf.d/10-more.conf", "[zram1]\n");
    write(root, "other", "[zram7]\nzram-size = 64\n");
    let file = root.join("other");
    let file = file.to_str().unwrap();
    let printed = import(root, &["zram-generator", file]);
    let (toml, said) = texts(&printed);
    assert!(printed.status.success(), "{said}");
    assert!(toml.contains("[zram7]") && !toml.contains("[zram0]") && !toml.contains("[zram1]"), "{toml}");
    let missing = import(root, &["fstab", "/nonexistent/fstab"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(texts(&missing).1.contains("/nonexistent/fstab"), "{missing:?}");
    // A pipe would block.
    assert_eq!(import(root, &["fstab", "/dev/zero"]).status.code(), Some(1));
}

#[test]
fn fstab_is_read_and_left_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let lines = "/dev/zram0 none swap defaults 0 0\n";
    write(root, "etc/fstab", lines);
    let nothing = import(root, &["fstab", "--write"]);
    assert_eq!(nothing.status.code(), Some(4));
    assert!(texts(&nothing).1.contains("/etc/fstab:1: "), "{nothing:?}");
    let lines = format!("{lines}tmpfs /mnt/a tmpfs size=1G 0 0\n");
    write(root, "etc/fstab", &lines);
    assert!(import(root, &["fstab", "--write"]).status.success());
    let written = fs::read_to_string(root.join("etc/zramd/zramd.toml")).unwrap();
    assert!(written.contains("[ramdisk.mnt-a]\nmount-point = \"/mnt/a\"\n"), "{written}");
    assert_eq!(fs::read_to_string(root.join("etc/fstab")).unwrap(), lines);
}
