//! Sizes that follow the machine's memory, on the simulator: offers, resizes, and that each is made once.

use std::time::Duration;

use engine::maintain::{self, Unwatched};
use engine::reload::{Scope, carry_out, survey};
use logic::config::{self, Loaded};
use logic::maintain::Cause;
use logic::order::Maintain;
use logic::plan::Activation;
use logic::record::Target;
use logic::resize::{Resize, Step};
use sim::SimMachine;
use sim::kernel::KernelConfig;

const HALF: &str = "[zram0]\nzram-size = \"ram / 2\"\n";
const APPLY: &str = "[maintenance]\non-memory-change = \"apply\"\n";

fn load(text: &str) -> Loaded {
    let loaded = config::load(&[("zramd.toml".into(), text.to_owned())], "");
    assert_eq!(loaded.problems, []);
    loaded
}

/// A machine with 4 GiB of memory, after set-up and one run.
fn machine(loaded: &Loaded) -> SimMachine {
    let machine = SimMachine::new(KernelConfig::full());
    let applied = engine::apply(&mut machine.process(), loaded).unwrap();
    assert!(applied.outcomes.iter().all(|outcome| outcome.errors.is_empty()), "{:?}", applied.outcomes);
    assert_eq!(resizes(&machine, loaded), []);
    machine
}

/// Resizes found by a run an hour later.
fn resizes(machine: &SimMachine, loaded: &Loaded) -> Vec<Resize> {
    machine.change().clock += Duration::from_secs(3600);
    again(machine, loaded)
}

/// Resizes found by a run immediately after that.
fn again(machine: &SimMachine, loaded: &Loaded) -> Vec<Resize> {
    let (report, done) =
        maintain::run(&mut machine.process(), loaded, &Maintain::all(Cause::Timer), &mut Unwatched);
    assert_eq!(done, Ok(()), "{report:?}");
    report.resizes
}

fn set_memory(machine: &SimMachine, gib: u64) {
    machine.change().ram_kib = gib << 20;
}

/// Applies the configuration to one device, as for the daemon.
fn reconcile(machine: &SimMachine, loaded: &Loaded, number: u32) {
    let scope = Scope { only: Some([Target::Device(number)].into()), ..Scope::default() };
    let survey = survey(&machine.process(), loaded, Activation::Direct, &scope).unwrap();
    let outcomes = carry_out(&mut machine.process(), loaded, &survey).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.errors.is_empty()), "{outcomes:?}");
}

fn sizes(machine: &SimMachine) -> Vec<u64> {
    machine.look().devices.values().map(|device| device.disk_size >> 30).collect()
}

#[test]
fn more_memory_is_noticed_and_offered() {
    let loaded = load(&format!("{HALF}[maintenance]\nrecompress = true"));
    let machine = machine(&loaded);
    set_memory(&machine, 8);
    let found = resizes(&machine, &loaded);
    assert_eq!((found[0].from, found[0].to, found[0].step), (2 << 30, 4 << 30, Step::Offer));
    assert_eq!(resizes(&machine, &loaded), found, "as long as it has not been brought about");
    set_memory(&machine, 4);
    assert_eq!(resizes(&machine, &loaded), []);
    // The user accepts the offer.
    set_memory(&machine, 8);
    assert_eq!(resizes(&machine, &loaded), found);
    reconcile(&machine, &loaded, 0);
    assert_eq!((resizes(&machine, &loaded), sizes(&machine)), (vec![], vec![4]));
}

#[test]
fn an_empty_device_follows_the_memory() {
    let loaded = load(&format!("{HALF}{APPLY}"));
    let machine = machine(&loaded);
    for (ram, size) in [(8, 4), (2, 1), (6, 3)] {
        set_memory(&machine, ram);
        let found = resizes(&machine, &loaded);
        assert_eq!((found[0].number, found[0].step), (0, Step::Recreate));
        reconcile(&machine, &loaded, 0);
        assert_eq!(sizes(&machine), [size]);
        assert_eq!(resizes(&machine, &loaded), [], "once is enough");
    }
    // Memory grows twice between two runs.
    for (ram, size) in [(8, 4), (12, 6)] {
        set_memory(&machine, ram);
        assert_eq!(resizes(&machine, &loaded)[0].to, size << 30);
        reconcile(&machine, &loaded, 0);
    }
    assert_eq!((resizes(&machine, &loaded), sizes(&machine)), (vec![], vec![6]));
}

#[test]
fn a_device_in_use_gets_a_second_one_and_only_one() {
    let loaded = load(&format!("{HALF}{APPLY}"));
    let machine = machine(&loaded);
    machine.change().swaps[0].used_kib = 1 << 20;
    set_memory(&machine, 8);
    let found = resizes(&machine, &loaded);
    assert_eq!(found[0].step, Step::Add(2 << 30));
    assert_eq!(again(&machine, &loaded), [], "it is on its way");
    // The resize was not done: it has to be requested again.
    assert_eq!(resizes(&machine, &loaded)[0].step, Step::Add(2 << 30));
    let with = |more: &str| load(&format!("{HALF}{more}{APPLY}"));
    let both = with("[zram1]\nzram-size = \"2GiB\"\n");
    reconcile(&machine, &both, 1);
    for _ in 0..3 {
        assert_eq!((resizes(&machine, &both), sizes(&machine)), (vec![], vec![2, 2]));
    }
    // Memory grows again, then shrinks: used swap is not moved without a request.
    set_memory(&machine, 12);
    assert_eq!(resizes(&machine, &both)[0].step, Step::Add(2 << 30));
    let three = with("[zram1]\nzram-size = \"2GiB\"\n[zram2]\nzram-size = \"2GiB\"\n");
    reconcile(&machine, &three, 2);
    assert_eq!((resizes(&machine, &three), sizes(&machine)), (vec![], vec![2, 2, 2]));
    set_memory(&machine, 4);
    let less = &resizes(&machine, &three)[0];
    assert_eq!((less.step, less.from, less.to), (Step::Offer, 6 << 30, 2 << 30));
    // The user removes the added devices.
    reconcile(&machine, &both, 2);
    reconcile(&machine, &loaded, 1);
    assert_eq!((resizes(&machine, &loaded), sizes(&machine)), (vec![], vec![2]));
}

/// Also before the first run, which is an hour after boot. A failed read has no effect.
#[test]
fn resizes_are_relative_to_the_memory_at_set_up() {
    let loaded = load(&format!("{HALF}[maintenance]\non-memory-change = \"report\""));
    let machine = SimMachine::new(KernelConfig::full());
    engine::apply(&mut machine.process(), &loaded).unwrap();
    set_memory(&machine, 8);
    let found = resizes(&machine, &loaded);
    assert_eq!((found[0].to, found[0].step), (4 << 30, Step::Offer));
    set_memory(&machine, 0);
    assert_eq!(resizes(&machine, &loaded), []);
    set_memory(&machine, 8);
    assert_eq!(resizes(&machine, &loaded), found);
    // Devices set up by an older version are compared with the first run.
    let mut state = machine.change();
    let record = state.records.get_mut("zram0.json").unwrap();
    let mut value: serde_json::Value = serde_json::from_str(record).unwrap();
    assert!(value.as_object_mut().unwrap().remove("memory_kib").is_some());
    *record = value.to_string();
    state.states.clear();
    drop(state);
    assert_eq!(resizes(&machine, &loaded), []);
    set_memory(&machine, 16);
    for _ in 0..2 {
        assert_eq!(resizes(&machine, &loaded), [], "2 GiB is no half of 8, so it has another reason");
    }
    machine.change().states.clear();
    set_memory(&machine, 4);
    assert_eq!(resizes(&machine, &loaded), []);
    set_memory(&machine, 0);
    assert_eq!(resizes(&machine, &loaded), []);
    set_memory(&machine, 8);
    assert_eq!(resizes(&machine, &loaded)[0].to, 4 << 30);
}

#[test]
fn a_file_system_is_not_resized_automatically() {
    let loaded = load(&format!("[zram0]\nzram-size = \"ram / 2\"\nmount-point = \"/run/scratch\"\n{APPLY}"));
    let machine = machine(&loaded);
    set_memory(&machine, 8);
    let found = resizes(&machine, &loaded);
    assert_eq!((found[0].step, found[0].keeps), (Step::Offer, true));
}
