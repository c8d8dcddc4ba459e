//! `[vm]` on the simulated machine: which settings are changed, and when.

use crate::support::{golden, mistake};
use engine::reload::{Scope, survey};
use engine::sample;
use logic::change::Action;
use logic::config::{self, Loaded};
use logic::device::algorithm::Algorithm;
use logic::finding::Code;
use logic::plan::{Activation, Decision};
use logic::record::Target;
use logic::verdict::Profile;
use logic::verdict::{Key, SCHEMA_VERSION, Stored};
use logic::view::View;
use logic::vm::Tunable;
use sim::kernel::KernelConfig;
use sim::{SimMachine, State, Swap};

fn load(text: &str) -> Loaded {
    config::load(&[("/etc/zramd/zramd.toml".into(), text.to_owned())], "")
}

const SWAP: &str = "[zram0]\nzram-size = 64\n";

fn machine() -> SimMachine {
    let machine = SimMachine::new(KernelConfig::full());
    machine.change().tunables.insert(Tunable::Zswap, "Y".to_owned());
    machine
}

/// Swappiness, page-cluster, boost, scale, zswap.
fn values(machine: &SimMachine) -> String {
    let state = machine.look();
    Tunable::ALL[..5].iter().map(|tunable| state.tunables[tunable].clone()).collect::<Vec<_>>().join(" ")
}

const BEFORE: &str = "60 3 15000 10 Y";

/// Failed targets, and the code and line of each finding.
#[derive(Debug, Default, PartialEq)]
struct Told {
    failed: Vec<Target>,
    found: Vec<(Code, u32)>,
}

fn apply(machine: &SimMachine, text: &str) -> Told {
    let applied = engine::apply(&mut machine.process(), &load(text)).unwrap();
    let failed = applied.outcomes.into_iter().filter(|outcome| !outcome.errors.is_empty());
    let found = applied.plan.findings().map(|found| (found.code, found.line())).collect();
    Told { failed: failed.map(|outcome| outcome.target).collect(), found }
}

fn revert(machine: &SimMachine) {
    for (target, result) in engine::revert(&mut machine.process()).unwrap() {
        assert_eq!(result, Ok(()), "{target}");
    }
}

#[test]
fn each_key_says_what_is_set() {
    for (section, expected) in [
        ("", BEFORE),
        ("[vm]\n", BEFORE),
        ("[vm]\ntune = false\n", BEFORE),
        ("[zswap]\nenabled = false\n", "60 3 15000 10 N"),
        ("[zswap]\n", BEFORE),
        ("[vm]\ntune = true\n[zswap]\nenabled = true\n", "150 0 0 125 Y"),
        ("[vm]\ntune = true\n", "150 0 0 125 N"),
        ("[vm]\ntune = true\nswappiness = 120\npage-cluster = \"keep\"\n", "120 3 0 125 N"),
        (
            "[vm]\ntune = true\nswappiness = \"keep\"\nwatermark-boost-factor = 0\nwatermark-scale-factor = \"auto\"\n",
            "60 0 0 125 N",
        ),
        ("[vm]\ntune = true\nwatermark-scale-factor = 40\n", "150 0 0 40 N"),
    ] {
        let machine = machine();
        let said = apply(&machine, &format!("{SWAP}{section}"));
        let code =
            if section.contains("[zswap]\nenabled") { Code::ZswapWithoutSwap } else { Code::ZswapActive };
        let zswap_stays = expected.ends_with('Y').then_some((code, 0));
        let expected_found = Told { found: zswap_stays.into_iter().collect(), ..Told::default() };
        assert_eq!(said, expected_found, "{section}");
        assert_eq!(values(&machine), expected, "{section}");
        let again = engine::apply(&mut machine.process(), &load(&format!("{SWAP}{section}"))).unwrap();
        assert!(again.plan.is_empty(), "{section}: {:#?}", again.plan.groups);
        revert(&machine);
        assert_eq!(values(&machine), BEFORE, "{section}");
        assert!(machine.look().records.is_empty());
    }
}

#[test]
fn sessions_that_cannot_keep_memory_are_reported() {
    let text = format!("{SWAP}[vm]\ntune = true\nprotect-sessions = 64\n");
    let machine = machine();
    assert_eq!(apply(&machine, &text), Told::default());
    machine.change().controllers = "cpu io pids\n".to_owned();
    assert_eq!(apply(&machine, &text), Told { found: vec![(Code::ConfigDoubtful, 5)], ..Told::default() });
}

#[test]
fn mistakes_are_found() {
    let mut told = String::new();
    for section in [
        "swappiness = 120",
        "tune = true\nswappiness = 201",
        "tune = true\nswappiness = \"high\"",
        "tune = true\npage-cluster = \"auto\"",
        "zswap = \"off\"",
        "tune = 1",
        "protect-sessions = \"256 mib of ram\"",
        "protect-sessions = true",
        "incompressible = \"drop\"",
        "incompressible = \"stop\"",
        "tune = true\nswappiness = \"keep\"\nincompressible = \"stop\"",
        "swapiness = 1",
    ] {
        let loaded = load(&format!("[vm]\n{section}\n"));
        let last = u32::try_from(section.lines().count()).unwrap() + 1;
        assert_eq!(loaded.problems.iter().map(logic::finding::Finding::line).collect::<Vec<_>>(), [last]);
        told += &mistake(section, &loaded.problems);
    }
    golden("tests/golden/diagnostics/vm.txt", &told);
}

/// A verdict for the simulated machine.
pub fn verdict(kernel: &str, profile: Profile, swappiness: Option<u32>) -> String {
    let stored = Stored {
        schema_version: SCHEMA_VERSION,
        measured_unix: 0,
        key: Key::new(kernel, "model name : simulated\n", "0-3\n", 0, None),
        profile,
        algorithm: Algorithm::plain("lz4"),
        better_runs: 0,
        page_in_ns: 45_000,
        provisional: String::new(),
        outdated: String::new(),
        report: serde_json::json!({ "verdict": { "reason": "", "page_cluster": 0, "swappiness": swappiness } }),
    };
    serde_json::to_string(&stored).unwrap()
}

#[test]
fn a_measured_latency_decides_swappiness_where_the_verdict_holds() {
    let here = "6.12.2-simulated";
    for (text, swappiness) in [
        (verdict(here, Profile::Balanced, None), 133),
        (verdict(here, Profile::Balanced, Some(111)), 111),
        // As for the algorithm: a verdict for another machine or profile, or a damaged one, has no effect.
        (verdict("1.2.3", Profile::Balanced, Some(111)), 150),
        (verdict(here, Profile::Latency, Some(111)), 150),
        (r#"{"page_in_ns": 90000}"#.to_owned(), 150),
    ] {
        let machine = machine();
        machine.change().cpus = 4;
        machine.change().verdict.clone_from(&text);
        apply(&machine, &format!("{SWAP}[vm]\ntune = true\n"));
        assert_eq!(values(&machine), format!("{swappiness} 0 0 125 N"), "{text}");
    }
}

const TUNED: &str = "[zram0]\nzram-size = 64\n[vm]\ntune = true\n";

#[test]
fn what_another_program_has_changed_is_left_alone() {
    let machine = machine();
    apply(&machine, TUNED);
    machine.change().tunables.insert(Tunable::Swappiness, "77".to_owned());
    assert!(engine::apply(&mut machine.process(), &load(TUNED)).unwrap().plan.is_empty(), "nobody fights");
    let snapshot = sample::snapshot(&machine.process(), &View::default()).unwrap();
    let codes: Vec<(Code, &str)> =
        snapshot.problems.iter().map(|found| (found.code, found.object.as_str())).collect();
    assert_eq!(codes, [(Code::SettingChanged, "vm.swappiness")]);
    revert(&machine);
    assert_eq!(values(&machine), "77 3 15000 10 Y");
}

#[test]
fn changed_keys_revert_the_old_settings_first() {
    let machine = machine();
    apply(&machine, TUNED);
    apply(
        &machine,
        "[zram0]\nzram-size = 64\n[vm]\ntune = true\nswappiness = 100\npage-cluster = \"keep\"\n",
    );
    assert_eq!(values(&machine), "100 3 0 125 N");
    revert(&machine);
    assert_eq!(values(&machine), BEFORE);
}

fn disk_swap(state: &mut State, priority: i32) {
    state.devices.get_mut(&0).unwrap().disk_size = 1 << 20;
    state.swaps.push(Swap { number: 0, priority, discard: false, used_kib: 0 });
}

#[test]
fn settings_apply_only_while_our_swap_is_used_first() {
    let tuned = "[zram1]\nzram-size = 64\nswap-priority = 10\n[vm]\ntune = true\n";
    let vm_line = 4;
    // Swap of another program on zram0, as an example of any other swap.
    for (priority, expected) in [(9, "150 0 0 125 N"), (10, "60 3 15000 10 N"), (11, "60 3 15000 10 N")] {
        let machine = machine();
        disk_swap(&mut machine.change(), priority);
        let said = apply(&machine, tuned);
        assert_eq!(values(&machine), expected, "{priority}: {said:?}");
        let left_out = said.found.iter().any(|(_, line)| *line == vm_line);
        assert_eq!(left_out, priority >= 10, "{said:?}");
        // Other swap with a higher priority is added: the next run reverts the settings.
        machine.change().swaps.iter_mut().find(|swap| swap.number == 0).unwrap().priority = 20;
        apply(&machine, tuned);
        assert_eq!(values(&machine), "60 3 15000 10 N");
    }
}

/// A stopped swap of ours is started by a complete reload, but not when only the settings are adjusted.
#[test]
fn a_swap_that_has_stopped_does_not_hold_the_settings() {
    let machine = machine();
    let text = "[zram1]\nzram-size = 64\n[zram2]\nzram-size = 64\nswap-priority = 5\n[vm]\ntune = true\n";
    apply(&machine, text);
    disk_swap(&mut machine.change(), 50);
    let action = |scope: &Scope| {
        let survey = survey(&machine.process(), &load(text), Activation::Managed, scope).unwrap();
        survey.changes.into_iter().find(|change| change.target == Target::Vm).unwrap().action
    };
    let alone = Scope { only: Some([Target::Vm].into()), ..Scope::default() };
    assert_eq!(action(&alone), Action::Keep);
    machine.change().swaps.retain(|swap| swap.number != 1);
    assert_eq!(action(&alone), Action::Remove);
    assert_eq!(action(&Scope::default()), Action::Keep);
}

#[test]
fn without_compressed_swap_nothing_is_set() {
    let machine = machine();
    apply(&machine, "[zram0]\nzram-size = 64\nmount-point = \"/mnt/z\"\n[vm]\ntune = true\n");
    assert_eq!(values(&machine), BEFORE);
    apply(&machine, "[zram1]\nzram-size = 0\n[vm]\ntune = true\n");
    assert_eq!(values(&machine), BEFORE);
}

#[test]
fn settings_go_with_the_last_swap() {
    let machine = machine();
    apply(&machine, &format!("{TUNED}[zram1]\nzram-size = 64\nswap-priority = 5\n"));
    for (number, expected) in [(1, "150 0 0 125 N"), (0, BEFORE)] {
        assert_eq!(engine::down(&mut machine.process(), &Target::Device(number)), Ok(true));
        assert_eq!(values(&machine), expected, "zram{number}");
    }
    assert!(machine.look().records.is_empty());
}

#[test]
fn a_swap_that_fails_brings_no_settings() {
    let machine = machine();
    apply(&machine, TUNED);
    let at = machine.take_transcript().iter().position(|call| call.contains("swapon")).unwrap() + 1;
    revert(&machine);
    machine.take_transcript();
    machine.fail_at(at, host::Errno::INVAL);
    let said = apply(&machine, TUNED);
    assert_eq!(said.failed, [Target::Device(0), Target::Vm]);
    assert_eq!(values(&machine), BEFORE);
    assert!(machine.look().records.is_empty());
}

/// It is not absent, so its unit fails.
#[test]
fn a_section_with_a_mistake_is_an_error_of_its_unit() {
    for text in ["[vm]\nswappiness = \"oops\"\n", "[vm]\nswappiness =\n"] {
        let error = engine::up_vm(&mut machine().process(), &load(text), &Target::Vm).unwrap_err();
        assert_eq!(error.message, "vm: no usable section [vm] in the configuration", "{text}");
    }
}

/// As the units do: zswap before the swap, the other settings after it.
#[test]
fn through_units_the_settings_wait_for_the_swap() {
    let machine = machine();
    let loaded = load(TUNED);
    let up = |target: Target| engine::up_vm(&mut machine.process(), &loaded, &target).unwrap();
    assert_eq!(up(Target::Zswap).outcomes.len(), 1);
    assert_eq!(values(&machine), "60 3 15000 10 N");
    let early = up(Target::Vm);
    assert_eq!(early.plan.item(&Target::Vm).unwrap().decision, Decision::Skipped);
    assert_eq!(values(&machine), "60 3 15000 10 N");
    engine::up(&mut machine.process(), &loaded, 0).unwrap();
    machine.change().swaps.push(Swap { number: 0, priority: 100, discard: true, used_kib: 0 });
    assert_eq!(up(Target::Vm).outcomes[0].errors, []);
    assert_eq!(values(&machine), "150 0 0 125 N");
    // Stopping the swap removes its device; the units of the settings stop separately.
    machine.change().swaps.clear();
    engine::down(&mut machine.process(), &Target::Device(0)).unwrap();
    assert_eq!(values(&machine), "150 0 0 125 N");
    for target in [Target::Vm, Target::Zswap] {
        assert_eq!(engine::down(&mut machine.process(), &target), Ok(true));
    }
    assert_eq!(values(&machine), BEFORE);
    assert!(engine::plan(&machine.process(), &loaded, Activation::Systemd).is_ok());
}

/// A setting of a module goes with it.
#[test]
fn a_setting_that_has_gone_is_left_out_when_settings_are_restored() {
    for gone in [Tunable::Zswap, Tunable::PageCluster] {
        let machine = machine();
        apply(&machine, TUNED);
        machine.change().tunables.remove(&gone);
        revert(&machine);
        assert_eq!(machine.look().tunables[&Tunable::Swappiness], "60");
        assert_eq!(machine.look().records.len(), 0);
    }
}

#[test]
fn settings_that_the_kernel_lacks_are_skipped() {
    let machine = machine();
    machine.change().tunables.remove(&Tunable::Zswap);
    machine.change().tunables.remove(&Tunable::PageCluster);
    assert_eq!(apply(&machine, TUNED), Told::default());
    assert_eq!(machine.look().tunables[&Tunable::Swappiness], "150");
    revert(&machine);
}
