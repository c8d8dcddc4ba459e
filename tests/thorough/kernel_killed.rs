//! SIGKILL before each step of set-up and removal, on the running kernel.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::example::{apply, assert_success, example, machine, session};
use crate::support::killer::Killer;
use crate::support::setup;
use engine::gather;
use host::Host;
use host::linux::LinuxHost;
use logic::config;
use logic::record::Undo;

/// Not a test: the process that the next test kills.
#[test]
fn child_that_applies() {
    let Some(verbs) = std::env::var("ZRAMD_TEST_KILL_AFTER").ok().and_then(|text| text.parse().ok()) else {
        return;
    };
    let text = fs::read_to_string(example()).unwrap();
    let loaded = config::load(&[(example(), text)], "");
    let mut host = Killer::after(verbs);
    match std::env::var("ZRAMD_TEST_KILL_IN").as_deref() {
        Ok("revert") => drop(engine::revert(&mut host)),
        _ => drop(engine::apply(&mut host, &loaded)),
    }
}

/// Runs the child; true if it was killed before its end.
fn killed_after(verbs: u32, during: &str) -> bool {
    use std::os::unix::process::ExitStatusExt;
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kernel_killed::child_that_applies", "--quiet"])
        .env("ZRAMD_TEST_KILL_AFTER", verbs.to_string())
        .env("ZRAMD_TEST_KILL_IN", during)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success() || status.signal() == Some(9), "{status:?}");
    !status.success()
}

/// Removes the device that a killed process has created and not recorded. zramd keeps it: it may belong to another program.
fn remove_unrecorded(before: &[u32]) {
    let mut host = LinuxHost::new("/");
    let records = gather::records(&host).unwrap();
    let undo: Vec<&Undo> = records.values().flat_map(|record| &record.undo).collect();
    for number in host.device_numbers().unwrap() {
        let is_recorded = undo.iter().any(|undo| match undo {
            Undo::RemoveDevice { number: own } | Undo::RemoveSpare { number: own, .. } => *own == number,
            _ => false,
        });
        if !before.contains(&number) && !is_recorded {
            host.hot_remove(number).unwrap();
        }
    }
}

#[test]
fn after_a_kill_at_any_step_the_next_run_converges() {
    let Some(_session) = session() else { return };
    let before = machine();
    let numbers = LinuxHost::new("/").device_numbers().unwrap();
    assert_success(&apply());
    let complete = machine();
    assert_success(&setup(&["revert"]));
    assert_eq!(machine(), before);
    let mut kills = 0;
    for during in ["apply", "revert"] {
        for verbs in 0.. {
            if during == "revert" {
                assert_success(&apply());
            }
            if !killed_after(verbs, during) {
                assert!(verbs > 10, "{during} ended after {verbs} steps");
                break;
            }
            kills += 1;
            remove_unrecorded(&numbers);
            assert_success(&apply());
            assert_eq!(machine(), complete, "apply after a kill in {during} before step {verbs}");
            assert_success(&setup(&["revert"]));
            assert_eq!(machine(), before, "revert after a kill in {during} before step {verbs}");
            if during == "apply" && killed_after(verbs, during) {
                remove_unrecorded(&numbers);
                assert_success(&setup(&["revert"]));
                assert_eq!(machine(), before, "revert straight after a kill in {during} before step {verbs}");
            }
        }
        assert_success(&setup(&["revert"]));
    }
    eprintln!("killed {kills} times");
}
