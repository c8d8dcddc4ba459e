//! A program that does not answer is named after 25 s, as in sd-bus.

use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::private_bus::{Guarded, PrivateBus, ends_within, run};
use crate::support::{copy_program, skip};

/// Longest time of a command: a pause, and the time limits of two programs.
const LONG: Duration = Duration::from_secs(90);

/// `zramdctl reload` as a user without privileges.
fn reload(bus: &PrivateBus, words: &[&str]) -> Guarded {
    let program = bus.bus().directory().join("zramdctl");
    if !program.exists() {
        copy_program(env!("CARGO_BIN_EXE_zramdctl").as_ref(), &program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program).arg("reload").args(words);
    let command = command.env("DBUS_SYSTEM_BUS_ADDRESS", bus.address()).stdin(Stdio::null());
    Guarded(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// The message of a command, which has to fail.
#[track_caller]
fn message(mut command: Guarded) -> String {
    assert!(ends_within(&command.0, LONG), "it waits");
    let mut text = String::new();
    std::io::Read::read_to_string(command.0.stderr.as_mut().unwrap(), &mut text).unwrap();
    assert_eq!(command.0.wait().unwrap().code(), Some(1), "{text}");
    text
}

#[test]
fn a_program_that_does_not_answer_is_named() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root, to be several users");
    }
    let Some(bus) = PrivateBus::start() else { return };
    // A polkit that has its name, and reads no call.
    let _polkit = run(async {
        let silent = bus.client().await;
        let name = ("org.freedesktop.PolicyKit1", 4_u32);
        let to = Some("org.freedesktop.DBus");
        silent.call_method(to, "/org/freedesktop/DBus", to, "RequestName", &name).await.unwrap();
        silent
    });
    let (may_ask, may_not) = (reload(&bus, &[]), reload(&bus, &["--no-ask-password"]));
    let polkit = "org.freedesktop.PolicyKit1 (polkit) does not answer for 25 s; run `systemctl restart polkit.service`";
    for command in [may_ask, may_not] {
        let message = message(command);
        assert!(message.contains(polkit), "{message}");
    }
    let process = Pid::from_child(bus.bus().process());
    let name = "org.freedesktop.DBus (the system bus) does not answer for 25 s";
    kill_process(process, Signal::STOP).unwrap();
    let command = reload(&bus, &[]);
    let is_over = ends_within(&command.0, LONG);
    kill_process(process, Signal::CONT).unwrap();
    assert!(is_over, "it waits: {name}");
    let message = message(command);
    assert!(message.contains(name), "{message}");
}
