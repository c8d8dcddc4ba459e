//! Log messages of the daemon: the level on the bus, who asked for a change, and what is passed to other programs.

use std::collections::HashMap;
use std::io::Read;
use std::process::{Command, Stdio};

use logic::log::{Context, Level};
use service::ROOT;
use zbus::{OwnedObjectPath, OwnedVariant, Variant};

use crate::support::polkit::Authority;
use crate::support::private_bus::{
    Bus, PrivateBus, USER, as_user, call, client, property, quiet_devices, run,
};
use crate::support::{eventually, has_program, skip};

const LOG_CONTROL: &str = "/org/freedesktop/LogControl1";
const INTERFACE: &str = "org.freedesktop.LogControl1";
const SET: &str = "org.freedesktop.DBus.Properties.Set";
const INVALID: &str = "org.freedesktop.DBus.Error.InvalidArgs";
const DENIED: &str = "org.freedesktop.DBus.Error.AccessDenied";

type Options = HashMap<String, OwnedVariant>;

async fn set(client: &zbus::Connection, name: &str, value: &str) -> Result<(), String> {
    call(client, LOG_CONTROL, SET, &(INTERFACE, name, Variant::from(value))).await
}

#[test]
fn level_and_target_change_on_the_bus() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root to set a property");
    }
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    run(async {
        let client = bus.client().await;
        let read = async |name: &str| property::<String>(&client, LOG_CONTROL, INTERFACE, name).await;
        assert_eq!(read("LogLevel").await, "info");
        assert_eq!(read("LogTarget").await, "auto");
        assert_eq!(read("SyslogIdentifier").await, "zramd");
        for (name, wrong) in
            [("LogLevel", "loud"), ("LogLevel", ""), ("LogLevel", "debug\n"), ("LogTarget", "printer")]
        {
            assert_eq!(set(&client, name, wrong).await, Err(INVALID.to_owned()), "{name} {wrong:?}");
        }
        assert_eq!(read("LogLevel").await, "info");
        let plan = async || {
            let reply: Result<Vec<(String, String, String)>, String> =
                call(&client, ROOT, "org.zramd1.Manager.Plan", &Options::new()).await;
            reply.unwrap();
        };
        plan().await;
        let quiet = bus.bus().said();
        assert!(!quiet.contains("debug: ") && quiet.contains("info: zramd "), "{quiet}");
        set(&client, "LogLevel", "debug").await.unwrap();
        assert_eq!(read("LogLevel").await, "debug");
        plan().await;
        let said = bus.bus().said();
        assert!(said.contains("info: the log level is now debug\n"), "{said}");
        assert_eq!(read("LogLevel").await, "debug");
        let said = bus.bus().said();
        let called = said.lines().rev().find_map(|line| {
            let (call, what) = line.strip_prefix("debug: ")?.split_once(": ")?;
            (what
                == format!("org.freedesktop.DBus.Properties.Get of {LOG_CONTROL}: \"{INTERFACE}.LogLevel\""))
            .then_some(call)
        });
        // The variant of a text of five letters.
        let answer =
            format!("debug: {}: answered with 14 bytes\n", called.unwrap_or_else(|| panic!("{said}")));
        assert!(said.contains(&answer), "{said}");
        // The second line is of zramd-setup, which has the same level.
        for line in ["debug: zramd-setup propose: ", "debug: configuration: "] {
            assert!(said.contains(line), "{said}");
        }
        set(&client, "LogTarget", "null").await.unwrap();
        assert_eq!(read("LogTarget").await, "null");
        let before = bus.bus().said();
        set(&client, "LogLevel", "err").await.unwrap();
        set(&client, "LogTarget", "console").await.unwrap();
        plan().await;
        assert_eq!(bus.bus().said(), before);
    });
}

#[test]
fn busctl_changes_the_level_and_a_user_does_not() {
    if !has_program("busctl") {
        return skip("needs busctl");
    }
    if !rustix::process::geteuid().is_root() {
        return skip("needs root to be another user");
    }
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    let busctl = |words: &[&str]| {
        let mut command = Command::new("busctl");
        command.arg(format!("--address={}", bus.address())).args(words);
        let output = command.args(["org.zramd1", LOG_CONTROL, INTERFACE, "LogLevel"]);
        output.output().unwrap()
    };
    let set = Command::new("busctl")
        .arg(format!("--address={}", bus.address()))
        .args(["set-property", "org.zramd1", LOG_CONTROL, INTERFACE, "LogLevel", "s", "notice"])
        .status();
    assert!(set.unwrap().success());
    assert_eq!(String::from_utf8(busctl(&["get-property"]).stdout).unwrap(), "s \"notice\"\n");
    as_user(USER, &bus, async |client| {
        assert_eq!(property::<String>(&client, LOG_CONTROL, INTERFACE, "LogLevel").await, "notice");
        let refused: Result<(), String> =
            call(&client, LOG_CONTROL, SET, &(INTERFACE, "LogLevel", Variant::from("debug"))).await;
        assert_eq!(refused, Err(DENIED.to_owned()));
    });
}

/// Each worker notes what is passed to it, and ends.
const NOTING_WORKER: &str = "echo \"$ZRAMD_LOG_CONTEXT\" > $HERE/context\n";

#[test]
fn each_change_names_its_caller_also_to_the_worker() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root to be another user");
    }
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_with_worker("", NOTING_WORKER) else { return };
    let authority = Authority::start(bus.address());
    authority.allow(&["org.zramd1.benchmark"]);
    let pid = std::process::id();
    let (refused, job) = as_user(USER, &bus, async |client| {
        set(&client, "LogLevel", "debug").await.unwrap_err();
        let refused: Result<OwnedObjectPath, String> =
            call(&client, ROOT, "org.zramd1.Manager.Reload", &Options::new()).await;
        let job: OwnedObjectPath =
            call(&client, "/org/zramd1/benchmark", "org.zramd1.Benchmark.Run", &Options::new())
                .await
                .unwrap();
        (refused, job)
    });
    assert_eq!(refused, Err(DENIED.to_owned()));
    let who = |action: &str| format!("(for uid {USER}, pid {pid}, org.zramd1.{action})\n");
    eventually("the job has ended", || bus.bus().said().contains(&who("benchmark")));
    let said = bus.bus().said();
    let line = said.lines().find(|line| line.contains("Reload of /org/zramd1 refused: ")).unwrap();
    assert!(line.starts_with("note: ") && format!("{line}\n").ends_with(&who("manage")), "{said}");
    let passed = std::fs::read_to_string(bus.bus().directory().join("context")).unwrap();
    let context = Context::parse(&passed);
    let number = job.as_str().rsplit('/').next().unwrap();
    for (name, value) in [
        ("ZRAMD_JOB", number),
        ("ZRAMD_JOB_TYPE", "benchmark"),
        ("ZRAMD_CALLER_UID", &USER.to_string()),
        ("ZRAMD_CALLER_PID", &pid.to_string()),
        ("ZRAMD_POLKIT_ACTION", "org.zramd1.benchmark"),
        ("ZRAMD_METHOD", "Run"),
    ] {
        assert_eq!(context.fields.get(name).map(String::as_str), Some(value), "{passed}");
    }
    assert_eq!(context.level, None::<Level>);
}

/// The messages of the daemon go to a pipe that is not read.
#[test]
fn messages_that_are_not_read_are_lost_and_stop_nothing() {
    let _quiet = quiet_devices();
    let Some(bus) = Bus::start() else { return };
    let mut command = bus.daemon();
    command.arg("--log-level=debug").stderr(Stdio::piped());
    let mut daemon = bus.ready(command);
    let mut messages = daemon.0.stderr.take().unwrap();
    run(async {
        let client = client(bus.address()).await;
        let ask = async || property::<String>(&client, LOG_CONTROL, INTERFACE, "LogLevel").await;
        // Each call is at least two lines of 100 bytes, and the pipe takes 64 KiB.
        for _ in 0..1000 {
            assert_eq!(ask().await, "debug");
        }
        let mut said = vec![0; 32 * 1024];
        messages.read_exact(&mut said).unwrap();
        ask().await;
        drop(daemon);
        said.clear();
        messages.read_to_end(&mut said).unwrap();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("messages are lost, because they were not read\ndebug: "), "{said}");
    });
}

/// A user who is refused again and again does not fill the journal.
#[test]
fn refusals_of_a_user_are_few_lines() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root to be another user");
    }
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    let _authority = Authority::start(bus.address());
    as_user(USER, &bus, async |client| {
        for _ in 0..60 {
            let refused: Result<OwnedObjectPath, String> =
                call(&client, ROOT, "org.zramd1.Manager.Reload", &Options::new()).await;
            assert_eq!(refused, Err(DENIED.to_owned()));
        }
    });
    let lines = bus.bus().said().lines().filter(|line| line.contains(" refused: ")).count();
    // A burst of 12, and one in five seconds after that.
    assert!((12..40).contains(&lines), "{lines}");
}
