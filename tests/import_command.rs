//! `zramdctl import`, as it is used on a machine that had another program.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use support::texts;

fn import(root: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zramdctl"));
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
    let written = import(root, &["zram-generator", "--write"]);
    assert!(written.status.success());
    assert_eq!(fs::read_to_string(root.join("etc/zramd/zramd.toml")).unwrap(), toml);
    write(root, "etc/zramd/zramd.toml", "# mine\n");
    let again = import(root, &["zram-generator", "--write"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(texts(&again).1.contains("is there already"));
    assert_eq!(fs::read_to_string(root.join("etc/zramd/zramd.toml")).unwrap(), "# mine\n");
}

#[test]
fn links_hide_what_is_below_them_and_programs_are_never_run() {
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
fn what_is_not_configured_is_said_so() {
    let root = tempfile::tempdir().unwrap();
    for (peer, file) in [
        ("zram-tools", "/etc/default/zramswap"),
        ("zramd-go", "/etc/default/zramd"),
        ("log2ram", "/etc/log2ram.conf"),
    ] {
        let output = import(root.path(), &[peer]);
        assert_eq!(output.status.code(), Some(4), "{peer}");
        assert!(texts(&output).1.contains(file), "{peer}");
    }
    write(root.path(), "etc/default/zramswap", "ALGO=lz4\nPERCENT=25\nPRIORITY=42\n");
    let (toml, _) = texts(&import(root.path(), &["zram-tools"]));
    assert!(toml.contains("swap-priority = 42"), "{toml}");
}
