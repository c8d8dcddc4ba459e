//! The command line as a user meets it: output, messages, exit statuses. Nothing here changes the machine.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::format_collect)]

mod support;

use std::fs;

use support::{repository, setup, texts};

#[test]
fn check_names_every_mistake_and_ends_with_1() {
    let file = repository("tests/golden/diagnostics/five-mistakes.toml");
    let output = setup(&["check", file.to_str().unwrap()]);
    let (result, messages) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        messages.matches("\n  = help").count() + messages.matches("\n   = help").count(),
        5,
        "{messages}"
    );
    assert_eq!(result, "still usable: 2 zram devices, 0 RAM disks\n");
    let good = setup(&["check", repository("config/example.toml").to_str().unwrap()]);
    assert_eq!(
        (good.status.code(), texts(&good).0.as_str()),
        (Some(0), "no mistakes found: 2 zram devices, 1 RAM disk\n")
    );
}

#[test]
fn a_missing_file_is_named() {
    let output = setup(&["check", "/nonexistent/zramd.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(texts(&output).1.contains("/nonexistent/zramd.toml"), "{output:?}");
}

#[test]
fn wrong_usage_ends_with_2() {
    for words in [&["frobnicate"][..], &[], &["up"], &["--json", "apply"], &["start"]] {
        assert_eq!(setup(words).status.code(), Some(2), "{words:?}");
    }
    assert_eq!(setup(&["--help"]).status.code(), Some(0));
}

#[test]
fn plan_json_has_the_promised_shape() {
    let output = setup(&["--config", repository("config/example.toml").to_str().unwrap(), "--json", "plan"]);
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["schema_version"], 1);
    let device = &plan["devices"][0];
    for key in [
        "name",
        "role",
        "disk_size_bytes",
        "memory_limit_bytes",
        "algorithm",
        "algorithm_reason",
        "algorithm_parameters",
        "recompression",
        "swap_priority",
        "mount_point",
        "fs_type",
        "options",
        "state",
        "reason",
    ] {
        assert!(device.get(key).is_some(), "{key} is missing in {device}");
    }
    assert_eq!(
        (device["name"].as_str(), device["disk_size_bytes"].as_u64()),
        (Some("zram0"), Some(256 << 20))
    );
    assert_eq!(plan["ramdisks"][0]["size_bytes"], 64 << 20);
    assert!(plan["steps"].is_array() && plan["problems"].is_array());
}

#[test]
fn problems_in_json_have_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("z.toml");
    fs::write(&file, "[zram0]\nzram-size = \"4Ki\"\n").unwrap();
    let output = setup(&["-c", file.to_str().unwrap(), "--json", "plan"]);
    assert_eq!(output.status.code(), Some(1));
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let problem = &plan["problems"][0];
    assert_eq!((problem["line"].as_u64(), problem["column"].as_u64()), (Some(2), Some(14)));
    assert_eq!(problem["key"], "zram0.zram-size");
    assert!(problem["hint"].as_str().unwrap().contains("4KiB"));
}

/// `--root` takes configuration and memory from below a folder, so that a plan can be made for another machine.
#[test]
fn a_plan_can_be_made_for_another_machine() {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/meminfo", "MemTotal: 801322 kB\n"),
        ("proc/cmdline", ""),
        ("usr/lib/zramd/zramd.toml", "[zram0]\nswap-priority = 5\n"),
        ("etc/zramd/zramd.toml.d/50-a.toml", "[zram0]\nswap-priority = 7\n"),
    ] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let output = setup(&["--root", root.path().to_str().unwrap(), "--json", "plan"]);
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["devices"][0]["disk_size_bytes"], 409_993_216, "F01");
    assert_eq!(plan["devices"][0]["swap_priority"], 7);
}

#[test]
fn changing_the_machine_without_rights_is_refused_in_one_sentence() {
    if rustix::process::geteuid().is_root() {
        // Covered on the simulator; here only a user without rights can see it.
        return;
    }
    let output = setup(&["--config", repository("config/example.toml").to_str().unwrap(), "apply"]);
    assert_eq!(output.status.code(), Some(77));
    assert_eq!(texts(&output).1.lines().count(), 1, "{output:?}");
}
