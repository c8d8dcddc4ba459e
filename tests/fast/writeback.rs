//! Backing devices on the simulated machine: what is created, in which order it is removed, and when a device is set up
//! without one.

use engine::sample;
use host::BlockProbe;
use logic::config::{self, Loaded};
use logic::finding::Code;
use logic::record::Target;
use logic::view::View;
use sim::SimMachine;
use sim::kernel::KernelConfig;

fn load(keys: &str) -> Loaded {
    let text = format!("[zram0]\nzram-size = 64\ncompression-algorithm = \"lz4\"\n{keys}\n");
    config::load(&[("/etc/zramd/zramd.toml".into(), text)], "")
}

fn machine() -> SimMachine {
    let machine = SimMachine::new(KernelConfig::full());
    let disk = BlockProbe { device: Some((8, 3)), head: Vec::new(), holders: Vec::new() };
    machine.change().blocks.insert("/dev/sda3".to_owned(), disk);
    machine.change().add_directories("/var/lib");
    machine
}

/// Messages, and the calls that concern write-back.
fn apply(machine: &SimMachine, keys: &str) -> (Vec<String>, Vec<String>) {
    machine.take_transcript();
    let loaded = load(keys);
    assert_eq!(loaded.problems, []);
    let applied = engine::apply(&mut machine.process(), &loaded).unwrap();
    let mut said: Vec<String> = applied.plan.problems.iter().map(|problem| problem.message.clone()).collect();
    for outcome in applied.outcomes {
        assert_eq!(outcome.errors, [], "{keys}");
        said.extend(outcome.warnings);
    }
    let again = engine::apply(&mut machine.process(), &loaded).unwrap();
    assert!(again.plan.is_empty(), "{keys}: {:#?}", again.plan.groups);
    assert_eq!(machine.look().swaps.len(), 1, "{keys}: the swap is there in any case");
    (said, concerned(machine))
}

fn concerned(machine: &SimMachine) -> Vec<String> {
    let words = ["attach", "detach", "encrypt", "mapping", "backing_dev", "to reset", "swapoff"];
    let calls = machine.take_transcript();
    calls.into_iter().filter(|call| words.iter().any(|word| call.contains(word))).collect()
}

#[test]
fn a_store_is_made_before_the_device_and_goes_after_it() {
    let file = "attach 157286400 bytes at /var/lib/wb";
    let encrypted = "writeback-encryption = \"random-key\"";
    let plain = "writeback-encryption = \"none\"";
    for (keys, up, down) in [
        (
            "writeback-device = \"/dev/sda3\"".to_owned(),
            vec!["encrypt /dev/sda3", "write `/dev/dm-0` to backing_dev"],
            vec!["remove its mapping"],
        ),
        (
            format!("writeback-device = \"/dev/sda3\"\n{plain}"),
            vec!["write `/dev/sda3` to backing_dev"],
            vec![],
        ),
        (
            format!("writeback-file = \"/var/lib/wb\"\nwriteback-size = \"150MiB\"\n{encrypted}"),
            vec![file, "encrypt /dev/loop0", "write `/dev/dm-0` to backing_dev"],
            vec!["remove its mapping", "detach its file"],
        ),
        (
            format!("writeback-file = \"/var/lib/wb\"\nwriteback-size = \"150MiB\"\n{plain}"),
            vec![file, "write `/dev/loop0` to backing_dev"],
            vec!["detach its file"],
        ),
    ] {
        let machine = machine();
        let before = machine.snapshot();
        let (said, calls) = apply(&machine, &keys);
        assert_eq!(said, [""; 0], "{keys}");
        let named = |calls: &[&str]| calls.iter().map(|call| format!("zram0: {call}")).collect::<Vec<_>>();
        assert_eq!(calls, named(&up), "{keys}");
        assert_eq!(engine::down(&mut machine.process(), &Target::Device(0)), Ok(true));
        let expected = [&["swapoff", "write `1` to reset"], down.as_slice()].concat();
        assert_eq!(concerned(&machine), named(&expected), "{keys}");
        assert_eq!(machine.snapshot(), before, "{keys}");
    }
}

#[test]
fn pages_are_written_as_they_are_stored_and_some_at_once_where_the_kernel_can() {
    let renamed = KernelConfig { other_name: true, ..KernelConfig::newest() };
    for (kernel, expected) in
        [(KernelConfig::full(), (false, 32)), (KernelConfig::newest(), (true, 8)), (renamed, (true, 8))]
    {
        let machine = SimMachine::new(kernel);
        let disk = BlockProbe { device: Some((8, 3)), head: Vec::new(), holders: Vec::new() };
        machine.change().blocks.insert("/dev/sda3".to_owned(), disk);
        apply(&machine, "writeback-device = \"/dev/sda3\"");
        let device = &machine.look().devices[&0];
        assert_eq!((device.compressed, device.batch), expected);
    }
}

#[test]
fn what_cannot_be_encrypted_is_not_written_at_all() {
    for keys in ["writeback-device = \"/dev/sda3\"", "writeback-file = \"/var/lib/wb\""] {
        let machine = machine();
        machine.change().dm_crypt = false;
        let (said, calls) = apply(&machine, keys);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(calls.iter().all(|call| !call.contains("backing_dev")), "{calls:?}");
        let state = machine.look();
        assert!(state.devices[&0].backing.is_none() && state.loops.is_empty() && state.mappings.is_empty());
        drop(state);
        let snapshot = sample::snapshot(&machine.process(), &View::default()).unwrap();
        let codes: Vec<Code> = snapshot.problems.iter().map(|found| found.code).collect();
        assert_eq!(codes, [Code::WritebackMissing]);
    }
}

#[test]
fn an_unsuitable_store_is_named_and_not_changed() {
    for (keys, expected) in [
        ("writeback-file = \"/nowhere/wb\"", " /nowhere/wb "),
        ("writeback-file = \"/var/lib\"", "/var/lib "),
        ("writeback-file = \"/var/lib/wb\"\nwriteback-size = \"5GiB\"", "5.0 GiB"),
    ] {
        let machine = machine();
        let (said, calls) = apply(&machine, keys);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains(expected), "{said:?}");
        assert!(machine.look().devices[&0].backing.is_none());
        assert_eq!(calls, [""; 0]);
    }
}

#[test]
fn a_change_of_the_store_makes_the_device_anew() {
    let machine = machine();
    apply(&machine, "writeback-device = \"/dev/sda3\"");
    let (said, calls) = apply(&machine, "writeback-device = \"/dev/sda3\"\nwriteback-encryption = \"none\"");
    assert_eq!(said, [""; 0]);
    assert_eq!(calls.last().unwrap(), "zram0: write `/dev/sda3` to backing_dev");
    assert!(calls.contains(&"zram0: remove its mapping".to_owned()), "{calls:?}");
    assert!(machine.look().mappings.is_empty());
}

#[test]
fn mistakes_are_found() {
    for (keys, expected) in [
        ("writeback-device = \"/dev/a\"\nwriteback-file = \"/b\"", "writeback-file"),
        ("writeback-size = \"1GiB\"", "writeback-size"),
        ("writeback-device = \"/dev/a\"\nwriteback-size = \"1GiB\"", "writeback-size"),
        ("writeback-encryption = \"none\"", "writeback-encryption"),
        ("writeback-file = \"/b\"\nwriteback-encryption = \"luks\"", "writeback-encryption"),
        ("writeback-file = \"b\"", "writeback-file"),
    ] {
        let problems = load(keys).problems;
        assert_eq!(problems.len(), 1, "{keys}: {problems:?}");
        assert_eq!(problems[0].key(), format!("zram0.{expected}"), "{keys}: {problems:?}");
    }
}
