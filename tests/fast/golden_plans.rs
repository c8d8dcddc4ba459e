//! Golden plans: each directory of `tests/golden/plans` is one machine, one configuration, and its plan.
//!
//! * `settings.toml`: the configuration.
//! * `machine.txt`, optional: differences from a machine with 8 GiB, all kernel features, and the unused zram0 that
//!   the module creates. See [`describe`] for its keys.
//! * `before.toml`, optional: the configuration of an earlier run.
//! * `plan.txt`: the output of `zramd-setup plan`, then all problems. `UPDATE_GOLDEN=1` writes it.

use std::fs;

use crate::support::{golden, repository};

use host::{Host, SwapSpec};
use logic::config::{self, Loaded};
use logic::device::attribute::Attribute;
use logic::device::swap_header;
use logic::expr::{Expr, Variables, size_in_bytes};
use logic::plan::{Activation, Plan, Step, report};
use sim::kernel::KernelConfig;
use sim::{Module, SimMachine, State, survive};

const DIRECTORY: &str = "tests/golden/plans";

/// All cases: the test fails if a directory is missing or has no entry here.
const CASES: [&str; 15] = [
    "algorithm-fallback",
    "already-in-place",
    "driver-not-loaded",
    "file-system-changed",
    "file-system-with-owner",
    "first-swap",
    "foreign-device",
    "interrupted-run",
    "mistake-beside",
    "nested-mounts",
    "old-kernel",
    "priority-changed",
    "ramdisk",
    "recompression",
    "size-changed",
];

/// A file of a case, if it exists.
fn read(case: &str, file: &str) -> Option<String> {
    fs::read_to_string(repository(&format!("{DIRECTORY}/{case}/{file}"))).ok()
}

fn load(file: &str, text: String) -> Loaded {
    config::load(&[(file.into(), text)], "")
}

fn bytes(text: &str) -> u64 {
    let nothing = Variables { ram_mib: 0.0, swap_mib: 0.0, cpus: 0.0 };
    size_in_bytes(Expr::parse(text).unwrap().evaluate(&nothing).unwrap()).unwrap()
}

/// Applies one line of `machine.txt` to the machine.
fn describe(state: &mut State, key: &str, value: &str) {
    let words: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
    match (key, value) {
        ("memory", _) => state.ram_kib = bytes(value) / 1024,
        ("driver", "not loaded") => {
            state.module = Module::Loadable;
            state.devices.clear();
        }
        ("devices", "none") => state.devices.clear(),
        ("algorithms", _) => {
            state.kernel.default_algorithm = words[0].clone();
            state.kernel.algorithms = words;
            // A device has the default algorithm of its kernel.
            state.add(0);
        }
        ("without", "recompression") => state.kernel.multi_comp = false,
        ("without", "write-back") => state.kernel.writeback = false,
        ("without", "algorithm parameters") => state.kernel.algorithm_params = false,
        ("user", _) => state.passwd.push_str(&format!("{}:x:{}:\n", words[0], words[1])),
        ("group", _) => state.group.push_str(&format!("{}:x:{}:\n", words[0], words[1])),
        _ => panic!("machine.txt cannot say `{key}: {value}`"),
    }
}

/// Swap of another program on zram0.
fn foreign_swap(machine: &SimMachine, size: &str, priority: &str) {
    let mut process = machine.process();
    process.write_attribute(0, Attribute::DiskSize, &bytes(size).to_string()).unwrap();
    process.write_pages(0, 0, &swap_header::build(bytes(size), 4096, [1; 16], "theirs").unwrap()).unwrap();
    process.swap_on(0, SwapSpec { priority: priority.parse().unwrap(), discard: false }).unwrap();
}

/// The machine of a case, after the earlier run.
fn machine(case: &str) -> SimMachine {
    let machine = SimMachine::new(KernelConfig::full());
    machine.change().ram_kib = 8 << 20;
    machine.change().available_kib = 7 << 20;
    let text = read(case, "machine.txt").unwrap_or_default();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (key, value) = line.split_once(": ").unwrap_or((line, ""));
        match (key, value.split_once(' ')) {
            ("swap of another program", Some((size, priority))) => foreign_swap(&machine, size, priority),
            ("earlier run killed after calls", None) => machine.kill_after(value.parse().unwrap()),
            _ => describe(&mut machine.change(), key, value),
        }
    }
    if let Some(before) = read(case, "before.toml") {
        let applied = survive(|| engine::apply(&mut machine.process(), &load("before.toml", before)));
        let outcomes = applied.map(|applied| applied.unwrap().outcomes).unwrap_or_default();
        assert!(outcomes.iter().all(|outcome| outcome.errors.is_empty()), "{case}: {outcomes:?}");
    }
    machine.take_transcript();
    machine
}

fn plan(machine: &SimMachine, loaded: &Loaded) -> Plan {
    engine::plan(&machine.process(), loaded, Activation::Direct).unwrap()
}

fn text(plan: &Plan, loaded: &Loaded) -> String {
    let problems: Vec<String> = plan.findings().map(|found| format!("\n{}\n", found.one_line())).collect();
    report::text(plan, loaded) + &problems.concat()
}

#[test]
fn the_plans_are_as_in_the_golden_files() {
    let mut directories: Vec<String> = fs::read_dir(repository(DIRECTORY))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    directories.sort();
    assert_eq!(directories, CASES, "the directories of {DIRECTORY}, and the cases that are known");
    for case in CASES {
        for entry in fs::read_dir(repository(&format!("{DIRECTORY}/{case}"))).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let known = ["settings.toml", "machine.txt", "before.toml", "plan.txt"];
            assert!(known.contains(&name.as_str()), "{case}/{name} is read by nobody");
        }
        let loaded = load("settings.toml", read(case, "settings.toml").unwrap());
        golden(&format!("{DIRECTORY}/{case}/plan.txt"), &text(&plan(&machine(case), &loaded), &loaded));
    }
}

/// The planned steps are the steps that are done, and a second plan is empty.
#[test]
fn what_is_planned_is_what_is_done() {
    for case in CASES {
        let machine = machine(case);
        let loaded = load("settings.toml", read(case, "settings.toml").unwrap());
        let applied = engine::apply(&mut machine.process(), &loaded).unwrap();
        for outcome in &applied.outcomes {
            assert_eq!(outcome.errors, [], "{case}");
            let group = applied.plan.groups.iter().find(|group| group.target == outcome.target).unwrap();
            let planned: Vec<Step> = group.expected_steps().collect();
            let words: Vec<String> = planned.iter().map(ToString::to_string).collect();
            // Features that the kernel lacks are planned, but skipped with a warning.
            assert!(outcome.done == words || !outcome.warnings.is_empty(), "{case}: {outcome:#?}");
            for step in &planned {
                if let Step::ReleaseLock { number } = step {
                    assert!(machine.look().devices[number].seen, "{case}: an old udev has seen zram{number}");
                }
            }
        }
        assert!(plan(&machine, &loaded).is_empty(), "{case}: {}", text(&plan(&machine, &loaded), &loaded));
    }
}
