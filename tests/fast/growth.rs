//! No cost grows faster than its work. Calls are counted on the simulated machine; tests/bench/growth counts instructions.

use std::fs;

use engine::sample::{self, Detail, figures};
use logic::config::{self, Loaded};
use logic::device::swap_header::MOST_SWAPS;
use logic::finding::Finding;
use logic::proc::SwapLine;
use logic::render;
use logic::view::View;
use sim::SimMachine;
use sim::kernel::KernelConfig;

use crate::apart::command_for;
use crate::support::{SETUP, texts};

fn loaded(text: &str) -> Loaded {
    config::load(&[("z.toml".into(), text.to_owned())], "")
}

/// A section for a swap device with each of these numbers.
fn swaps(numbers: impl Iterator<Item = u32>) -> String {
    numbers.map(|number| format!("[zram{number}]\nzram-size = 16\n")).collect()
}

fn applied(machine: &SimMachine, text: &str) -> Vec<String> {
    let applied = engine::apply(&mut machine.process(), &loaded(text)).unwrap();
    applied.outcomes.iter().flat_map(|outcome| &outcome.errors).map(ToString::to_string).collect()
}

#[test]
fn lower_devices_are_added_and_removed_once_per_run() {
    for (numbers, text) in [
        (40..50, swaps(40..50)),
        // The highest is set up first, because others are mounted below it.
        (47..50, "[zram49]\nmount-point = \"/srv\"\n[zram48]\nmount-point = \"/srv/a\"\n[zram47]\nmount-point = \"/srv/a/b\"\n".into()),
    ] {
        let machine = SimMachine::new(KernelConfig::newest());
        machine.change().add_directories("/srv");
        let before: Vec<u32> = machine.look().devices.keys().copied().collect();
        machine.take_transcript();
        assert_eq!(applied(&machine, &text), Vec::<String>::new());
        let calls = machine.take_transcript();
        let count = |name: &str| calls.iter().filter(|call| call.contains(name)).count();
        let highest = numbers.end as usize;
        assert_eq!((count("hot_add"), count("hot_remove")), (highest - before.len(), numbers.start as usize - before.len()), "{calls:?}");
        let expected: Vec<u32> = before.iter().copied().chain(numbers).collect();
        assert_eq!(machine.look().devices.keys().copied().collect::<Vec<u32>>(), expected);
        let failed: Vec<_> = engine::revert(&mut machine.process()).unwrap().into_iter().filter(|(_, result)| result.is_err()).collect();
        assert!(failed.is_empty(), "{failed:?}");
        assert_eq!(machine.look().devices.keys().copied().collect::<Vec<u32>>(), before);
    }
}

#[test]
fn a_list_reads_four_attributes_of_each_swap() {
    let reads = |devices: u32| {
        let machine = SimMachine::new(KernelConfig::newest());
        assert_eq!(applied(&machine, &swaps(1..=devices)), Vec::<String>::new());
        machine.change().records.clear();
        machine.look().reads_left.set(Some(1000));
        figures(&machine.process(), &View::default(), Detail::Listed).unwrap();
        1000 - machine.look().reads_left.get().unwrap()
    };
    // Counters, algorithm, size, and the number of streams.
    assert_eq!(reads(12) - reads(2), 10 * 4);
}

#[test]
fn a_sample_of_the_daemon_does_not_look_for_other_programs() {
    let machine = SimMachine::new(KernelConfig::newest());
    sample::snapshot(&machine.process(), &View::default()).unwrap();
    assert!(machine.look().listings.get() > 0);
    machine.look().listings.set(0);
    sample::snapshot_beside(&machine.process(), &View::default(), Vec::new()).unwrap();
    figures(&machine.process(), &View::default(), Detail::Full).unwrap();
    assert_eq!(machine.look().listings.get(), 0);
}

#[test]
fn processes_are_searched_for_holders_only_of_a_busy_device() {
    let machine = SimMachine::new(KernelConfig::newest());
    machine.change().add_directories("/srv");
    assert_eq!(
        applied(&machine, "[zram1]\nzram-size = 16\n[zram2]\nmount-point = \"/srv\"\n"),
        Vec::<String>::new()
    );
    let active = |machine: &SimMachine| (machine.look().swaps.clone(), machine.snapshot().mounts);
    let before = active(&machine);
    for number in [1, 2] {
        machine.hold(number, 77, "dd", None);
    }
    let results = engine::revert(&mut machine.process()).unwrap();
    assert!(
        results.iter().all(|(_, result)| result.as_ref().unwrap_err().to_string().contains("dd")),
        "{results:?}"
    );
    assert_eq!(active(&machine), before);
    assert_eq!(machine.look().searches.get(), 2);
    machine.change().release_all();
    machine.look().searches.set(0);
    let results = engine::revert(&mut machine.process()).unwrap();
    assert!(results.iter().all(|(_, result)| result.is_ok()), "{results:?}");
    assert_eq!(machine.look().searches.get(), 0);
}

#[test]
fn more_swap_than_some_kernels_allow_is_found_before_and_named_after() {
    let most = u32::try_from(MOST_SWAPS).unwrap();
    let machine = SimMachine::new(KernelConfig::newest());
    let found = |machine: &SimMachine, numbers| {
        let problems = engine::check(&machine.process(), &loaded(&swaps(numbers)), Vec::new()).problems;
        problems
            .into_iter()
            .filter(|found| found.message.contains("swap areas"))
            .map(|found| found.key().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&machine, 1..most + 1), Vec::<String>::new());
    assert_eq!(found(&machine, 1..most + 3), [format!("zram{}", most + 1)]);
    let errors = applied(&machine, &swaps(1..most + 2));
    assert_eq!(errors, [format!("zram{}: swapon: this kernel allows {MOST_SWAPS} swap areas", most + 1)]);
    let disk = SwapLine { path: "/swapfile".into(), size_kib: 1024, used_kib: 0, priority: -2 };
    machine.change().disk_swaps.push(disk);
    assert_eq!(found(&machine, 1..most + 1), [format!("zram{most}")]);
}

#[test]
fn twenty_findings_are_printed_and_the_rest_is_counted() {
    let keys: String = (0..30).map(|number| format!("key-{number} = 1\n")).collect();
    let problems = loaded(&format!("[zram0]\n{keys}swap-priority = 99999\n")).problems;
    let text = render::render(&problems, false);
    // The error is the last of them.
    assert_eq!(text.matches("--> z.toml:").count(), 20, "{text}");
    assert!(
        text.contains("zram0.swap-priority") && text.ends_with("\n\n11 more, which are not shown\n"),
        "{text}"
    );
    let all: Vec<Finding> = problems.into_iter().take(20).collect();
    assert!(!render::render(&all, false).contains("not shown"));
}

/// Each of these took more than the memory or the time of a machine at boot.
#[test]
fn large_files_take_memory_in_proportion() {
    let directory = tempfile::tempdir().unwrap();
    let many = |number: u32, text: &dyn Fn(u32) -> String| (0..number).map(text).collect::<String>();
    let cases = [
        format!("[zram0]\ncompression-algorithm = [{}]\n", many(16_000, &|number| format!("\"a{number}\","))),
        format!("zram0 = {{ swap-priority = 5{} }}\n", many(20_000, &|number| format!(", key{number} = 1"))),
        format!("[zram0]\n{}", many(20_000, &|number| format!("key{number} = x\n"))),
        many(10_000, &|number| format!("[zram0.a{number}]\nb = 1\n")),
    ];
    for text in cases {
        let file = directory.path().join("zramd.toml");
        fs::write(&file, &text).unwrap();
        let mut limited = command_for("sh");
        limited.args(["-c", "ulimit -v 300000; exec \"$0\" check \"$1\"", SETUP]).arg(&file);
        let output = limited.output().unwrap();
        let (result, problems) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(problems.len() < 20_000 && result.len() < 2000, "{} {}", problems.len(), result.len());
    }
}
