//! Every property on the bus compared with the kernel, by a script that shares no code with zramd.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use crate::support::holder::Holder;
use crate::support::introspection;
use crate::support::session::Session;
use crate::support::verdict::Verdict;
use crate::support::{PYTHON, has_program, repository, skip, texts};
use service::bus::introspection::interfaces;

fn script(words: &[&str]) -> Command {
    let mut command = Command::new(PYTHON);
    command.arg(repository("tests/lab/guest/bus-check")).args(words);
    command
}

/// A new property has to be added to the comparison.
#[test]
fn every_property_is_compared_or_has_a_reason_why_not() {
    if !has_program(PYTHON) {
        return skip("needs python3");
    }
    let said: serde_json::Value =
        serde_json::from_slice(&script(&["properties"]).output().unwrap().stdout).unwrap();
    let compared: BTreeMap<String, BTreeSet<String>> =
        serde_json::from_value(said["compared"].clone()).unwrap();
    let others: BTreeMap<String, BTreeMap<String, String>> =
        serde_json::from_value(said["not compared"].clone()).unwrap();
    for (name, interface) in interfaces().iter().flat_map(|(_, xml)| introspection::read(xml)) {
        let mut known = compared.get(&name).cloned().unwrap_or_default();
        for (property, reason) in others.get(&name).into_iter().flatten() {
            assert!(reason.len() > 5, "{name}.{property}: why?");
            assert!(known.insert(property.clone()), "{name}.{property} is compared");
        }
        assert_eq!(known, interface.properties.into_keys().collect(), "{name}");
    }
}

#[test]
fn every_figure_is_what_the_kernel_shows() {
    if !has_program("busctl") || !has_program(PYTHON) || !has_program("mkfs.ext4") {
        return skip("needs busctl, python3 and mkfs.ext4");
    }
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name).display().to_string();
    // The headroom of the first is limited by its memory limit, that of the second by its size.
    let config = format!(
        "[zram6]\nzram-size = \"24MiB\"\nswap-priority = 5\ncompression-algorithm = \"lzo-rle\"\nzram-resident-limit = \"2MiB\"\n\
         [zram7]\nzram-size = \"8MiB\"\nswap-priority = 4\ncompression-algorithm = \"lz4\"\n\
         [zram8]\nzram-size = \"16MiB\"\ncompression-algorithm = \"lz4\"\nfs-type = \"ext4\"\nmount-point = {:?}\n\
         [ramdisk.figures]\nmount-point = {:?}\nsize = \"8MiB\"\nstore = {:?}\npersist = \"snapshot\"\n",
        place("ext4"),
        place("disk"),
        place("store"),
    );
    let Some(session) = Session::begin(&config) else { return };
    let _verdict = Verdict::none();
    session.ok(&["reload"]);
    let mut holder = Holder::start();
    holder.fill("zram6");
    for directory in ["ext4", "disk"] {
        fs::write(format!("{}/file", place(directory)), b"some bytes ".repeat(20_000)).unwrap();
    }
    session.ok(&["ramdisk", "save", "figures"]);
    session.ok(&["maintain"]);
    Verdict::prefer("lz4");
    let mut compare = script(&["compare"]);
    let output = compare.env("DBUS_SYSTEM_BUS_ADDRESS", session.bus().address()).output().unwrap();
    assert!(output.status.success(), "{}", texts(&output).1);
    println!("{}", texts(&output).0);
}
