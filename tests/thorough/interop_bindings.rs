//! Bindings generated from `packaging/interfaces`, and the examples of the package, with a live daemon.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::example::memory;
use crate::support::private_bus::{PrivateBus, objects, quiet_devices, run};
use crate::support::session::attribute;
use crate::support::{eventually, has_program, repository, skip, texts};
use service::bus::introspection::interfaces;

/// The flags of pkg-config(1); `None`, with the reason printed, where these libraries cannot be compiled against.
fn flags(libraries: &[&str]) -> Option<Vec<String>> {
    let mut look = Command::new("pkg-config");
    look.args(["--cflags", "--libs"]).args(libraries);
    let output = (has_program("cc") && has_program("pkg-config")).then(|| look.output().unwrap());
    let Some(output) = output.filter(|output| output.status.success()) else {
        skip(&format!("needs a C compiler, pkg-config and {libraries:?}"));
        return None;
    };
    Some(texts(&output).0.split_whitespace().map(str::to_owned).collect())
}

fn compiled(directory: &Path, sources: &[&Path], flags: &[String]) -> Command {
    let program = directory.join("program");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg("-I").arg(directory);
    let output = cc.args(sources).args(flags).output().unwrap();
    assert!(output.status.success(), "{}", texts(&output).1);
    Command::new(program)
}

#[track_caller]
fn output(bus: &PrivateBus, mut program: Command) -> String {
    let output = program.env("DBUS_SYSTEM_BUS_ADDRESS", bus.address()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    texts(&output).0
}

#[test]
fn generated_c_bindings_read_every_object() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    if !has_program("gdbus-codegen") {
        return skip("needs gdbus-codegen (libglib2.0-dev-bin)");
    }
    let Some(flags) = flags(&["gio-unix-2.0"]) else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut generate = Command::new("gdbus-codegen");
    generate.args(["--interface-prefix", "org.zramd1.", "--c-namespace", "Zramd"]);
    generate.args(["--c-generate-object-manager", "--generate-c-code", "bindings", "--output-directory"]);
    generate.arg(directory.path());
    generate
        .args(interfaces().iter().map(|(name, _)| repository(&format!("packaging/interfaces/{name}.xml"))));
    let generated = generate.output().unwrap();
    assert!(generated.status.success() && generated.stderr.is_empty(), "{generated:?}");
    let bindings = directory.path().join("bindings.c");
    let client = repository("tests/interop/bindings.c");
    let text = output(&bus, compiled(directory.path(), &[&client, &bindings], &flags));

    let objects = run(async { objects(&bus.client().await).await });
    let expected =
        objects.iter().flat_map(|(path, list)| list.iter().map(move |name| format!("{path} {name}")));
    let lines: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    let read = lines.iter().filter(|line| line.starts_with('/')).cloned().collect::<BTreeSet<_>>();
    assert_eq!(read, expected.collect());
    let devices = objects.keys().filter_map(|path| path.strip_prefix("/org/zramd1/device/"));
    let mut values: BTreeSet<String> =
        devices.map(|name| format!("{name} {}", attribute(name, "disksize"))).collect();
    values.insert(format!("ListDevices {}", values.len()));
    if values.len() > 1 {
        values.insert("StatsUpdated".to_owned());
    }
    values.insert(format!("Version {}", env!("CARGO_PKG_VERSION")));
    assert_eq!(&lines - &read, values);
}

/// The files of the package run as they are, and print the same.
#[test]
fn the_examples_agree() {
    let _quiet = quiet_devices();
    // A number that no device can have is a problem with a remedy.
    let Some(bus) = PrivateBus::start_with("[zram4000]\nzram-size = \"1MiB\"\n") else { return };
    let sorted = |text: String| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    // Problems of the configuration are known a moment after the start.
    let mut expected = BTreeSet::new();
    eventually("the problem", || {
        expected = sorted(run(async { memory(&bus.client().await).await }).unwrap());
        expected.iter().any(|line| line.contains("zram4000"))
    });
    let example = |name: &str| repository(&format!("packaging/examples/{name}"));

    if let Some(flags) = flags(&["libsystemd"]) {
        let directory = tempfile::tempdir().unwrap();
        let program = compiled(directory.path(), &[&example("memory.c")], &flags);
        assert_eq!(sorted(output(&bus, program)), expected, "memory.c");
    }
    // That of the distribution, which has its modules.
    let python = "/usr/bin/python3";
    let with = |program: &str, name| {
        let mut command = Command::new(program);
        command.arg(example(name));
        command
    };
    if Command::new(python)
        .args(["-c", "from gi.repository import Gio"])
        .output()
        .is_ok_and(|found| found.status.success())
    {
        assert_eq!(sorted(output(&bus, with(python, "memory.py"))), expected, "memory.py");
    } else {
        skip("needs python3-gi");
    }
    if has_program("busctl") && has_program("jq") {
        assert_eq!(sorted(output(&bus, with("sh", "memory.sh"))), expected, "memory.sh");
    } else {
        skip("needs busctl and jq");
    }
}
