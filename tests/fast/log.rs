//! Log messages of the programs: levels, and what the generator leaves for the journal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::command_for;
use crate::support::{CTL, SETUP};

/// A section with a mistake, one that is set up, and one that is skipped.
const CONFIGURATION: &str =
    "[zram0]\nzram-size = \"ram / 2\"\n[zram1]\nzram-size = \"rma\"\n[zram2]\nzram-size = \"0\"\n";

fn root(cmdline: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("etc/zramd/zramd.toml", CONFIGURATION),
        ("proc/meminfo", "MemTotal: 8013220 kB\n"),
        ("proc/cmdline", cmdline),
    ] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn setup(root: &Path) -> Command {
    let mut command = command_for(SETUP);
    command.arg("--root").arg(root);
    command
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn debug_says_what_was_read_and_decided() {
    let root = root("");
    let quiet = errors(&setup(root.path()).arg("plan").output().unwrap());
    assert!(!quiet.contains("debug: "), "{quiet}");
    for (name, value) in [("SYSTEMD_LOG_LEVEL", "debug"), ("SYSTEMD_LOG_LEVEL", "7")] {
        let output = setup(root.path()).arg("plan").env(name, value).output().unwrap();
        let said = errors(&output);
        let file = root.path().join("etc/zramd/zramd.toml");
        assert!(
            said.contains(&format!("debug: read {}: {} bytes", file.display(), CONFIGURATION.len())),
            "{said}"
        );
        for decided in ["debug: zram0: planned: ", "debug: zram2: skipped: "] {
            assert!(said.contains(decided), "{said}");
        }
        // Results are the same.
        assert_eq!(output.stdout, setup(root.path()).arg("plan").output().unwrap().stdout);
    }
    // The option counts more.
    let output = setup(root.path())
        .args(["--log-level", "warning", "plan"])
        .env("SYSTEMD_LOG_LEVEL", "debug")
        .output();
    assert_eq!(errors(&output.unwrap()), quiet);
}

#[test]
fn an_unknown_level_is_named() {
    let root = root("");
    let output = setup(root.path()).args(["--log-level=debg", "plan"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("unknown log level \"debg\"; did you mean `debug`?"));
    for name in ["SYSTEMD_LOG_LEVEL", "SYSTEMD_LOG_TARGET"] {
        let output = setup(root.path()).arg("plan").env(name, "loud\nerror: x").output().unwrap();
        let said = errors(&output);
        assert!(said.contains(&format!("warning: {name}: unknown log ")), "{said}");
        assert!(!said.contains("\nerror: x"), "{said}");
        assert_eq!(output.status, setup(root.path()).arg("plan").output().unwrap().status);
    }
}

#[test]
fn zramdctl_says_what_it_read() {
    let root = root("");
    let file = root.path().join("etc/zramd/zramd.toml");
    let zramdctl = |level: &[&str]| {
        command_for(CTL).args(level).arg("--config").arg(&file).arg("cat-config").output().unwrap()
    };
    let [quiet, loud] = [zramdctl(&[]), zramdctl(&["--log-level", "debug"])];
    assert_eq!((&quiet.stdout, quiet.status), (&loud.stdout, loud.status));
    let read = format!("debug: read {}: {} bytes\n", file.display(), CONFIGURATION.len());
    assert!(errors(&loud).contains(&read) && !errors(&quiet).contains("debug: "), "{loud:?}");
    let output = zramdctl(&["--log-level", "debg"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("unknown log level \"debg\"; did you mean `debug`?"), "{output:?}");
}

/// Fields of each entry in the file of the generator, by the protocol of the journal.
fn entries(mut bytes: &[u8]) -> Vec<Vec<(String, String)>> {
    let mut entries = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (mut entry, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        bytes = rest;
        let mut fields = Vec::new();
        while let Some(end) = entry.iter().position(|byte| *byte == b'\n') {
            let line = std::str::from_utf8(&entry[..end]).unwrap();
            let (name, value) = line.split_once('=').expect("no value here has a line break");
            fields.push((name.to_owned(), value.to_owned()));
            entry = &entry[end + 1..];
        }
        entries.push(fields);
    }
    entries
}

#[test]
fn the_generator_leaves_its_messages_for_the_journal() {
    let kept = |cmdline: &str| {
        let root = root(cmdline);
        let units = root.path().join("units");
        fs::create_dir(&units).unwrap();
        let generator = root.path().join("zramd-generator");
        std::os::unix::fs::symlink(SETUP, &generator).unwrap();
        let mut command = command_for(&generator);
        command.arg("--root").arg(root.path()).arg(&units);
        assert!(command.output().unwrap().status.success());
        assert!(units.join("dev-zram0.swap").exists());
        let file = root.path().join("run/zramd/generator.log");
        fs::metadata(&file).ok().map(|found| {
            assert_eq!(found.permissions().mode() & 0o777, 0o600);
            entries(&fs::read(&file).unwrap())
        })
    };
    assert_eq!(kept("systemd.zram=1"), None);
    assert_eq!(kept("systemd.zram=1 systemd.log_level=debug zramd.log_level=info"), None);
    let found = kept("systemd.zram=1 systemd.log_level=debug").unwrap();
    let has = |entry: &[(String, String)], name: &str, value: &str| {
        entry.iter().any(|(other, text)| other == name && text.starts_with(value))
    };
    assert!(found.iter().all(|entry| has(entry, "SYSLOG_IDENTIFIER", "zramd-setup")
        && has(entry, "PRIORITY", "7")
        && has(entry, "ZRAMD_MONOTONIC_USEC", "")));
    let chain = [
        ("read ", ""),
        ("zram0: planned", "zram0"),
        ("zram2: skipped", "zram2"),
        ("wrote dev-zram0.swap", ""),
    ];
    for (message, device) in chain {
        let line = found.iter().find(|entry| has(entry, "MESSAGE", message));
        let line = line.unwrap_or_else(|| panic!("{message}: {found:?}"));
        assert!(device.is_empty() || has(line, "ZRAMD_DEVICE", device), "{line:?}");
    }
}
