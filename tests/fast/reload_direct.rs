//! Reloads without systemd on the simulator: changes, refusals, and the effect of `force`.

use engine::ErrorKind;
use engine::reload::{Scope, Survey, carry_out, survey};
use host::Errno;
use logic::change::Action;
use logic::config::{self, Loaded};
use logic::plan::Activation;
use sim::kernel::KernelConfig;
use sim::{Fault, SimMachine, survive};

const MIB: u64 = 1 << 20;

fn configured(text: &str) -> Loaded {
    let loaded = config::load(&[("/etc/zramd/zramd.toml".into(), text.to_owned())], "");
    assert_eq!(loaded.problems, []);
    loaded
}

/// A machine with a swap and a file system.
fn machine() -> SimMachine {
    let machine = SimMachine::new(KernelConfig::full());
    machine.change().add_directories("/srv");
    let loaded = configured(&text(64, 32, "nosuid"));
    let applied = engine::apply(&mut machine.process(), &loaded).unwrap();
    for outcome in applied.outcomes {
        assert_eq!(outcome.errors, []);
    }
    machine
}

fn text(swap: u32, disk: u32, options: &str) -> String {
    format!(
        "[zram0]\nzram-size = {swap}\n[zram1]\nzram-size = {disk}\nmount-point = \"/srv\"\noptions = \"{options}\"\n"
    )
}

fn look(machine: &SimMachine, loaded: &Loaded, forced: bool) -> Survey {
    let scope = Scope { forced, ..Scope::default() };
    survey(&machine.process(), loaded, Activation::Direct, &scope).unwrap()
}

fn actions(survey: &Survey) -> Vec<(String, Action)> {
    let changes = survey.changes.iter().filter(|change| change.action != Action::Keep);
    changes.map(|change| (change.target.to_string(), change.action)).collect()
}

fn sizes(machine: &SimMachine) -> Vec<u64> {
    machine.look().devices.values().map(|device| device.disk_size).collect()
}

#[test]
fn contents_are_only_lost_when_that_is_forced() {
    let machine = machine();
    for changed in
        [text(64, 48, "nosuid"), text(64, 32, "nosuid,nodev"), "[zram0]\nzram-size = 64\n".to_owned()]
    {
        let survey = look(&machine, &configured(&changed), false);
        assert_eq!(actions(&survey), [("zram1".to_owned(), Action::Refuse)], "{changed}");
        let before = sizes(&machine);
        carry_out(&mut machine.process(), &configured(&changed), &survey).unwrap();
        assert_eq!(sizes(&machine), before);
    }
    let changed = configured(&text(64, 48, "nosuid,nodev"));
    let survey = look(&machine, &changed, true);
    assert_eq!(actions(&survey), [("zram1".to_owned(), Action::Recreate)]);
    for outcome in carry_out(&mut machine.process(), &changed, &survey).unwrap() {
        assert_eq!(outcome.errors, []);
    }
    assert_eq!(sizes(&machine), [64 * MIB, 48 * MIB]);
    assert_eq!(actions(&look(&machine, &changed, false)), []);
}

#[test]
fn a_swap_moves_without_being_forced() {
    let machine = machine();
    let changed = configured(&text(80, 32, "nosuid"));
    let survey = look(&machine, &changed, false);
    assert_eq!(actions(&survey), [("zram0".to_owned(), Action::Recreate)]);
    carry_out(&mut machine.process(), &changed, &survey).unwrap();
    assert_eq!(sizes(&machine), [80 * MIB, 32 * MIB]);
}

#[test]
fn a_swap_that_is_resized_stays_the_same_device() {
    for algorithm in ["compression-algorithm = \"zstd\"\n", "compression-algorithm = \"auto\"\n", ""] {
        is_resized_in_place(algorithm);
    }
}

fn is_resized_in_place(algorithm: &str) {
    let text = |mib: u32| configured(&format!("[zram5]\nzram-size = {mib}\n{algorithm}"));
    let prepared = || {
        let machine = SimMachine::new(KernelConfig::full());
        let initial = machine.snapshot();
        let applied = engine::apply(&mut machine.process(), &text(64)).unwrap();
        assert!(applied.outcomes.iter().all(|outcome| outcome.errors.is_empty()));
        let survey = look(&machine, &text(80), false);
        machine.take_transcript();
        (machine, initial, survey)
    };
    let diskseq = |machine: &SimMachine| machine.look().devices[&5].diskseq;
    let (machine, _, survey) = prepared();
    let before = diskseq(&machine);
    for outcome in carry_out(&mut machine.process(), &text(80), &survey).unwrap() {
        assert_eq!(outcome.errors, []);
    }
    assert_eq!((diskseq(&machine), machine.look().devices[&5].disk_size), (before, 80 * MIB));
    let calls = machine.take_transcript();
    assert!(!calls.iter().any(|call| call.contains("hot_")), "{calls:?}");
    for fault in [Fault::KillBefore, Fault::KillAfter, Fault::Fail(Errno::IO)] {
        for index in 1..=calls.len() {
            let (machine, initial, survey) = prepared();
            machine.script(index, fault);
            survive(|| carry_out(&mut machine.process(), &text(80), &survey).ok());
            let applied = engine::apply(&mut machine.process(), &text(80)).unwrap();
            let errors: Vec<_> = applied.outcomes.iter().flat_map(|outcome| &outcome.errors).collect();
            assert!(errors.is_empty(), "{fault:?} {index}: {errors:?}");
            assert_eq!(machine.look().devices[&5].disk_size, 80 * MIB, "{fault:?} {index}");
            let removed = engine::revert(&mut machine.process()).unwrap();
            assert!(removed.iter().all(|(_, result)| result.is_ok()), "{fault:?} {index}: {removed:?}");
            assert_eq!(machine.snapshot(), initial, "{fault:?} {index}");
        }
    }
}

/// The machine may change between survey and execution.
#[test]
fn a_refusal_of_the_planner_is_not_success() {
    let machine = machine();
    let changed = configured(&text(64, 48, "nosuid"));
    let mut survey = look(&machine, &changed, true);
    for change in &mut survey.changes {
        // Treats it as something that can be changed while it is in use.
        change.action = Action::Adapt;
    }
    let outcomes = carry_out(&mut machine.process(), &changed, &survey).unwrap();
    let errors: Vec<ErrorKind> =
        outcomes.iter().flat_map(|outcome| &outcome.errors).map(|error| error.kind).collect();
    assert_eq!(errors, [ErrorKind::Unsafe]);
}

#[test]
fn a_ram_disk_is_removed_before_the_device_that_holds_it() {
    let machine = SimMachine::new(KernelConfig::full());
    let disk = "[ramdisk.held]\nmount-point = \"/held\"\nsize = \"32MiB\"\nbackend = \"zram\"\n";
    let applied = engine::apply(&mut machine.process(), &configured(disk)).unwrap();
    for outcome in applied.outcomes {
        assert_eq!(outcome.errors, []);
    }
    let survey = look(&machine, &configured(""), true);
    let removed = [("zram0".to_owned(), Action::Remove), ("ramdisk.held".to_owned(), Action::Remove)];
    assert_eq!(actions(&survey), removed);
    for outcome in carry_out(&mut machine.process(), &configured(""), &survey).unwrap() {
        assert_eq!(outcome.errors, []);
    }
    assert_eq!(sizes(&machine), [0]);
}
