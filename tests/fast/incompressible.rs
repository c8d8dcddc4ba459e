//! Swapping that stops, on the simulated machine: what is set, and that everything puts it back.

use engine::incompressible::{end, prepare, swap_numbers};
use engine::sample::vm_views;
use host::BlockProbe;
use logic::config::{self, Loaded};
use logic::proc::SwapLine;
use logic::record::Target;
use logic::view::View;
use logic::vm::Tunable;
use sim::{SimMachine, survive};

use sim::kernel::KernelConfig;

const TUNED: &str = "[zram0]\nzram-size = 64\n[vm]\ntune = true\n";

fn load(text: &str) -> Loaded {
    config::load(&[("/etc/zramd/zramd.toml".into(), text.to_owned())], "")
}

/// A machine with this configuration.
fn machine(text: &str) -> SimMachine {
    let machine = SimMachine::new(KernelConfig::full());
    apply(&machine, text);
    machine
}

fn apply(machine: &SimMachine, text: &str) {
    let applied = engine::apply(&mut machine.process(), &load(text)).unwrap();
    assert!(applied.outcomes.iter().all(|outcome| outcome.errors.is_empty()), "{:#?}", applied.outcomes);
}

fn revert(machine: &SimMachine) {
    for (target, result) in engine::revert(&mut machine.process()).unwrap() {
        assert_eq!(result, Ok(()), "{target}");
    }
}

fn swappiness(machine: &SimMachine) -> String {
    machine.look().tunables[&Tunable::Swappiness].clone()
}

/// As the daemon does; whether it may.
fn stop(machine: &SimMachine) -> bool {
    let value = prepare(&mut machine.process()).unwrap();
    if let Some(value) = &value {
        let before = machine.change().tunables.insert(Tunable::Swappiness, "0".to_owned());
        assert_eq!(before.as_ref(), Some(value));
    }
    value.is_some()
}

fn resume(machine: &SimMachine) -> bool {
    end(&mut machine.process(), true).unwrap()
}

#[test]
fn it_stops_and_is_resumed() {
    let machine = machine(TUNED);
    assert!(!resume(&machine));
    // Prepared, and then there was no reason to stop.
    assert_eq!(prepare(&mut machine.process()), Ok(Some("150".to_owned())));
    assert!(shown(&machine).contains(&("vm.swappiness".to_owned(), "60".to_owned(), false)));
    assert_eq!(prepare(&mut machine.process()), Ok(Some("150".to_owned())));
    assert!(!resume(&machine));
    assert!(stop(&machine));
    assert_eq!(swappiness(&machine), "0");
    assert!(!stop(&machine));
    // A start of the unit, and a reload, leave it as it is; no other program is said to have changed it.
    assert!(engine::apply(&mut machine.process(), &load(TUNED)).unwrap().plan.is_empty());
    assert!(shown(&machine).contains(&("vm.swappiness".to_owned(), "60".to_owned(), false)));
    assert!(resume(&machine));
    assert_eq!(swappiness(&machine), "150");
    assert!(!resume(&machine));
    revert(&machine);
    assert_eq!(swappiness(&machine), "60");
}

/// The settings as people see them: name, value before, and whether another program is said to have changed it.
fn shown(machine: &SimMachine) -> Vec<(String, String, bool)> {
    let record = engine::gather::record_of(&machine.process(), &Target::Vm).unwrap().unwrap();
    let views = vm_views(&machine.process(), &record).unwrap();
    let names: std::collections::BTreeSet<&str> = views.iter().map(|view| view.name.as_str()).collect();
    assert_eq!(names.len(), views.len(), "each once");
    views.iter().map(|view| (view.name.clone(), view.before.clone(), view.is_changed())).collect()
}

#[test]
fn everything_that_ends_the_settings_ends_it() {
    let machine = machine(TUNED);
    assert!(stop(&machine));
    apply(&machine, &TUNED.replace("tune = true", "tune = true\nswappiness = 120"));
    assert_eq!(swappiness(&machine), "120");
    assert!(stop(&machine));
    assert_eq!(engine::down(&mut machine.process(), &Target::Vm), Ok(true));
    assert_eq!(swappiness(&machine), "60");
    assert!(!resume(&machine));
}

#[test]
fn only_what_the_settings_have_set_is_changed() {
    for text in [
        "[zram0]\nzram-size = 64\n",
        &TUNED.replace("tune = true", "tune = true\nswappiness = 0"),
        &TUNED.replace("tune = true", "tune = true\nswappiness = \"keep\""),
    ] {
        let machine = machine(text);
        let before = swappiness(&machine);
        assert!(!stop(&machine), "{text}");
        assert!(!resume(&machine), "{text}");
        assert_eq!(swappiness(&machine), before, "{text}");
    }
    let machine = machine(TUNED);
    machine.change().tunables.insert(Tunable::Swappiness, "77".to_owned());
    assert!(!stop(&machine));
    machine.change().tunables.insert(Tunable::Swappiness, "150".to_owned());
    // By an administrator, while it is stopped.
    assert!(stop(&machine));
    machine.change().tunables.insert(Tunable::Swappiness, "10".to_owned());
    assert!(!resume(&machine));
    assert_eq!(swappiness(&machine), "10");
    // The same value as ours, while it is not stopped.
    machine.change().tunables.insert(Tunable::Swappiness, "150".to_owned());
    assert!(prepare(&mut machine.process()).unwrap().is_some());
    machine.change().tunables.insert(Tunable::Swappiness, "0".to_owned());
    assert_eq!(end(&mut machine.process(), false), Ok(false));
    assert_eq!(swappiness(&machine), "0");
    assert!(!resume(&machine));
    assert_eq!(swappiness(&machine), "0");
}

/// Calls that change something while swapping of incompressible pages is stopped or resumed.
fn calls(begins: bool) -> usize {
    let machine = machine(TUNED);
    if !begins {
        assert!(stop(&machine));
    }
    machine.take_transcript();
    let mut process = machine.process();
    if begins { prepare(&mut process).map(drop) } else { end(&mut process, true).map(drop) }.unwrap();
    let count = machine.take_transcript().len();
    assert!(count > 0);
    count
}

/// A failure or a kill at any call, also of what ends it.
#[test]
fn whatever_happens_the_settings_come_back() {
    for begins in [true, false] {
        // One more than there are: nothing fails.
        for call in 1..=calls(begins) + 1 {
            for kill in [None, Some(false), Some(true)] {
                let machine = machine(TUNED);
                if !begins {
                    assert!(stop(&machine));
                }
                machine.take_transcript();
                match kill {
                    None => machine.fail_at(call, host::Errno::IO),
                    Some(false) => machine.kill_before(call),
                    Some(true) => machine.kill_after(call),
                }
                let mut process = machine.process();
                survive(|| {
                    if begins { prepare(&mut process).map(drop) } else { end(&mut process, true).map(drop) }
                });
                drop(process);
                machine.change().release_all();
                machine.take_transcript();
                let then = machine.look().clone();
                resume(&machine);
                assert_eq!(swappiness(&machine), "150", "{begins} {call} {kill:?}");
                // Without another start of the daemon.
                *machine.change() = then;
                revert(&machine);
                assert_eq!(swappiness(&machine), "60", "{begins} {call} {kill:?}");
            }
        }
    }
}

#[test]
fn it_stops_only_where_all_swap_is_ours_and_groups_have_no_value_of_their_own() {
    let numbers = |machine: &SimMachine| swap_numbers(&machine.process()).unwrap();
    let plain =
        machine(&format!("{TUNED}[zram1]\nzram-size = 64\n[zram2]\nzram-size = 64\nmount-point = \"/m\"\n"));
    let mut found = numbers(&plain).unwrap();
    found.sort_unstable();
    assert_eq!(found, [0, 1]);
    plain.change().disk_swaps.push(SwapLine {
        path: "/dev/sda2".into(),
        size_kib: 1024,
        used_kib: 0,
        priority: -2,
    });
    assert_eq!(numbers(&plain), None);
    plain.change().disk_swaps.clear();
    assert!(numbers(&plain).is_some());
    plain.change().add_directories("/sys/fs/cgroup/memory/memory.swappiness");
    assert_eq!(numbers(&plain), None, "groups of version 1 would keep the value");

    // What is written to a disk is considered by its figures, because a disk may be full, broken or slow.
    let written = SimMachine::new(KernelConfig::full());
    let disk = BlockProbe { device: Some((8, 3)), head: Vec::new(), holders: Vec::new() };
    written.change().blocks.insert("/dev/sdb1".to_owned(), disk);
    let store = "zram-size = 64\nwriteback-device = \"/dev/sdb1\"\nwriteback-encryption = \"none\"";
    apply(&written, &TUNED.replace("zram-size = 64", store));
    assert_eq!(numbers(&written), Some(vec![0]));
}

#[test]
fn it_follows_the_configuration() {
    for (text, stops) in [
        ("[vm]\ntune = true\n", true),
        ("[vm]\ntune = true\nincompressible = \"swap\"\n", false),
        ("[vm]\ntune = true\nswappiness = \"keep\"\n", false),
        ("[vm]\n", false),
        ("", false),
    ] {
        assert_eq!(View::of(&load(text)).stops_swapping, stops, "{text}");
    }
}
