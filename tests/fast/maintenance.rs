//! Maintenance on the simulator: its effects on pages, and what it never does.

use std::time::Duration;

use crate::support::maintenance::*;
use engine::maintain::state::State;

use engine::work::Stopped;
use host::{Host, StateFile};
use logic::config::Loaded;
use logic::maintain::Cause;
use logic::maintain::pass::Pages;
use logic::maintain::pressure::Level;
use logic::order::{Maintain, Only};
use sim::kernel::KernelConfig;
use sim::{Busy, SimMachine};

#[test]
fn idle_pages_shrink_and_fresh_ones_stay() {
    for kernel in KERNELS {
        idle_pages_shrink_and_fresh_ones_stay_on(kernel());
    }
}

fn idle_pages_shrink_and_fresh_ones_stay_on(kernel: KernelConfig) {
    let loaded = load(&format!("{SWAP}[maintenance]\nrecompress = true"));
    let machine = machine(kernel, &loaded);
    store(&machine, false, 0..1000);
    pass_time(&machine, 5 * HOUR);
    store(&machine, false, 1000..1100);
    let before = used(&machine);
    let report = timer(&machine, &loaded);
    // The page with the header does not compress.
    let passes = ["huge_idle", "idle", "huge"].map(|pages| ("recompress", pages));
    assert_eq!(done(&report), [&passes[..], &[("compact", "")]].concat());
    // The header is a page too.
    let freed = before - used(&machine);
    assert!((1000 * PAGE / 2..=1001 * PAGE / 2).contains(&freed), "{freed}");
    assert_eq!(report.freed_bytes(), i64::try_from(freed).unwrap());
    assert_ne!(report.actions[1].reason, "", "{report:?}");
    let fresh = |number: &u64| machine.look().devices[&0].slots.all[number].priority == 0;
    assert!((1016..1116).all(|number| fresh(&number)));
    // The algorithm is always stated, and a pass is never longer than statistics may be blocked.
    for call in machine.take_transcript().iter().filter(|call| call.contains("to recompress")) {
        assert!(call.contains("priority=1") && call.contains("max_pages="), "{call}");
    }
    let soon = timer(&machine, &loaded);
    skipped(&soon, "recompress");
    assert_eq!(done(&soon), [], "an hour apart");
}

#[test]
fn incompressible_pages_are_tried_once() {
    for kernel in KERNELS {
        incompressible_pages_are_tried_once_on(kernel());
    }
}

fn incompressible_pages_are_tried_once_on(kernel: KernelConfig) {
    let loaded = load(&format!("{SWAP}[maintenance]\nrecompress = true"));
    let machine = machine(kernel, &loaded);
    store(&machine, true, 0..300);
    pass_time(&machine, HOUR);
    let first = timer(&machine, &loaded);
    assert!(done(&first).contains(&("recompress", "huge")));
    assert_eq!(machine.look().devices[&0].slots.all.values().filter(|slot| slot.incompressible).count(), 301);
    pass_time(&machine, HOUR);
    assert!(!done(&timer(&machine, &loaded)).contains(&("recompress", "huge")));
    store(&machine, true, 300..310);
    pass_time(&machine, HOUR);
    assert!(done(&timer(&machine, &loaded)).contains(&("recompress", "huge")), "there are new ones");
}

/// Pages that do not shrink, before and after those that do: the kernels begin at different ends.
#[test]
fn pages_without_gain_do_not_block_others() {
    let shrunk = |machine: &SimMachine| {
        let state = machine.look();
        let slots = &state.devices[&0].slots.all;
        (1516..1716).filter(|number| slots[number].priority > 0).count()
    };
    for kernel in KERNELS {
        for algorithms in ["[\"zstd\"]", "[\"zstd\", \"deflate\"]"] {
            for (keys, others, whole) in [
                // Idle pages that the secondary algorithm does not shrink.
                ("", &b"\xA5\x5A"[..], false),
                // Incompressible pages that the secondary algorithm shrinks slightly or not at all.
                ("", b"\xA5\x5A", true),
                (", threshold = 3072", b"a+", true),
            ] {
                let recompress = format!("recompress = {{ enabled = true, algorithm = {algorithms}{keys} }}");
                let loaded = load(&format!("{SWAP}[maintenance]\n{recompress}"));
                let kernel = KernelConfig { recompress_time: Duration::from_micros(10), ..kernel() };
                let machine = machine(kernel, &loaded);
                for pages in [0..1500, 1700..3200] {
                    store_each(&machine, pages, |number| content(others, whole, number));
                }
                store_each(&machine, 1500..1700, |number| content(b"ab", whole, number));
                // If they are not idle, incompressible pages are tried in one run.
                if !whole {
                    pass_time(&machine, 5 * HOUR);
                }
                timer(&machine, &loaded);
                assert_eq!(shrunk(&machine), 200, "{recompress}");
                for call in machine.take_transcript().iter().filter(|call| call.contains("to recompress")) {
                    let pages: u64 = call
                        .split("max_pages=")
                        .nth(1)
                        .unwrap()
                        .split(['`', ' '])
                        .next()
                        .unwrap()
                        .parse()
                        .unwrap();
                    assert!(pages <= 16384, "{call}");
                }
            }
        }
    }
}

#[test]
fn a_night_in_suspend_ages_nothing() {
    for kernel in KERNELS {
        a_night_in_suspend_ages_nothing_on(kernel());
    }
}

fn a_night_in_suspend_ages_nothing_on(kernel: KernelConfig) {
    let loaded = load(&format!("{SWAP}[maintenance]\nrecompress = true"));
    let machine = machine(kernel, &loaded);
    pass_time(&machine, 10 * HOUR);
    timer(&machine, &loaded);
    store(&machine, false, 0..100);
    suspend(&machine, 9 * HOUR);
    // The next run does nothing.
    let (report, ended) = maintain(&machine, &loaded, &Maintain::all(Cause::Timer));
    assert!(matches!(ended, Err(Stopped::Postponed(_))), "{ended:?}");
    assert_eq!(report.actions, []);
    pass_time(&machine, HOUR);
    let before = used(&machine);
    timer(&machine, &loaded);
    assert_eq!(used(&machine), before, "they were idle for an hour of waking time");
    pass_time(&machine, 4 * HOUR);
    timer(&machine, &loaded);
    assert!(used(&machine) < before);
}

#[test]
fn with_a_suspend_between_runs_every_second_run_recompresses() {
    let loaded = load(&format!("{SWAP}[maintenance]\nrecompress = true"));
    let machine = machine(KernelConfig::full(), &loaded);
    let mut turns = Vec::new();
    for _ in 0..6 {
        pass_time(&machine, HOUR);
        suspend(&machine, HOUR);
        turns.push(maintain(&machine, &loaded, &Maintain::all(Cause::Timer)).1.is_ok());
    }
    assert_eq!(turns, [false, true, false, true, false, true]);
}

#[test]
fn a_kernel_without_access_times_waits_for_the_whole_age() {
    let loaded = load(&format!("{SWAP}[maintenance]\nrecompress = true"));
    let machine = machine(KernelConfig { entry_times: false, ..KernelConfig::full() }, &loaded);
    store(&machine, false, 0..200);
    pass_time(&machine, 30 * HOUR);
    let before = used(&machine);
    let report = timer(&machine, &loaded);
    skipped(&report, "recompress");
    assert!(machine.take_transcript().iter().any(|call| call.contains("write `all` to idle")));
    pass_time(&machine, HOUR);
    machine.process().read_pages(0, 16 * PAGE, 4096).unwrap();
    let waiting = timer(&machine, &loaded);
    skipped(&waiting, "recompress");
    assert_eq!((done(&waiting), used(&machine)), (vec![], before));
    pass_time(&machine, 4 * HOUR);
    timer(&machine, &loaded);
    let freed = (before - used(&machine)) / (PAGE / 2);
    assert!((199..=200).contains(&freed), "all but the page that was read: {freed}");
}

#[test]
fn with_accumulating_marks_no_young_page_is_written() {
    let kernel = KernelConfig { exact_marks: false, algorithm_params: false, ..KernelConfig::full() };
    let (machine, loaded) = short_of_memory(kernel);
    for hour in 0..40 {
        store(&machine, true, hour * 50..hour * 50 + 50);
        timer(&machine, &loaded);
        let state = machine.look();
        let slots = &state.devices[&0].slots;
        let young =
            |slot: &&sim::slots::Slot| slot.written && slots.clock.saturating_sub(slot.accessed) < 20 * HOUR;
        assert_eq!(slots.all.values().filter(young).count(), 0, "hour {hour}");
        drop(state);
        pass_time(&machine, HOUR);
    }
    assert!(written(&machine) > 0);
}

/// How many of these pages were written back.
fn written_of(machine: &SimMachine, pages: std::ops::Range<u64>) -> usize {
    let state = machine.look();
    let slots = &state.devices[&0].slots.all;
    pages.filter(|page| slots[&(16 + page)].written).count()
}

/// Under pressure, younger pages follow until the limit of the run is reached.
#[test]
fn under_pressure_the_oldest_pages_are_written_first() {
    for kernel in KERNELS {
        let loaded = load(&format!(
            "{SWAP}[maintenance]\nwriteback = {{ device = \"/dev/wb\", daily-budget = \"1GiB\", run-budget = \"8MiB\" }}"
        ));
        let machine = machine(kernel(), &loaded);
        make_short(&machine);
        let minute = HOUR / 60;
        // Number of the first page, and of the page after the last one.
        let groups = [(0..1500, 7 * HOUR), (1500..3000, 10 * minute), (3000..3500, minute)];
        for (pages, age) in groups.clone() {
            store(&machine, false, pages);
            pass_time(&machine, age);
        }
        let share = |pages| written_of(&machine, pages);
        let run = || maintain(&machine, &loaded, &Maintain::all(Cause::Pressure(Level::Severe)));
        let (report, done) = run();
        assert_eq!(done, Ok(()));
        // 2048 with the header.
        assert_eq!(groups.clone().map(|(pages, _)| share(pages)), [1500, 547, 0], "{report:?}");
        // Passes that found nothing are not reported beside others.
        assert!(
            report
                .actions
                .iter()
                .filter(|action| action.pages == "idle")
                .all(|action| action.written_bytes > 0)
        );
        pass_time(&machine, 2 * minute);
        store(&machine, false, 3000..3500);
        run().1.unwrap();
        assert_eq!(groups.map(|(pages, _)| share(pages)), [1500, 1500, 0], "young pages stay");
    }
}

/// Their memory is freed in full.
#[test]
fn of_the_same_age_incompressible_pages_are_written_first() {
    for kernel in KERNELS {
        let (machine, loaded) = short_of_memory(kernel());
        store(&machine, false, 0..4000);
        store(&machine, true, 4000..8000);
        pass_time(&machine, 26 * HOUR);
        maintain(&machine, &loaded, &Maintain::all(Cause::Pressure(Level::Moderate))).1.unwrap();
        // A budget of 5120 pages, one of them for the header.
        let written = [0..4000, 4000..8000].map(|pages| written_of(&machine, pages));
        assert_eq!(written, [1119, 4000]);
    }
}

/// Two devices with 31 MiB each to write back, on the simulated machine of 8 GiB.
fn two_devices(run_budget: &str) -> (SimMachine, Loaded) {
    let sections: String = (0..2)
        .map(|number| {
            let swap = SWAP.replace("zram0", &format!("zram{number}")).replace("256MiB", "2GiB");
            format!("{swap}writeback-device = \"/dev/wb{number}\"\n")
        })
        .collect();
    let writeback = format!("[maintenance]\nwriteback = {{ enabled = true, run-budget = \"{run_budget}\" }}");
    let loaded = load(&format!("{sections}{writeback}"));
    let machine = machine(KernelConfig::full(), &load(""));
    for number in 0..2 {
        let (path, probe) = (format!("/dev/wb{number}"), machine.look().blocks["/dev/wb"].clone());
        machine.change().blocks.insert(path.clone(), probe);
        machine.change().block_bytes.insert(path, 100 * MIB);
    }
    provision(&machine, &loaded);
    for number in 0..8000 {
        for device in 0..2 {
            machine.process().write_pages(device, (16 + number) * PAGE, &page(true, number)).unwrap();
        }
    }
    pass_time(&machine, 26 * HOUR);
    (machine, loaded)
}

#[test]
fn a_run_keeps_to_its_limit_on_all_devices_together() {
    let (machine, loaded) = two_devices("40MiB");
    let (report, ended) = maintain(&machine, &loaded, &Maintain::all(Cause::Request));
    assert_eq!(ended, Ok(()));
    let written: u64 = report.actions.iter().map(|action| action.written_bytes).sum();
    assert_eq!(written, 40 * MIB, "{report:?}");
    let devices: std::collections::BTreeSet<&str> =
        report.actions.iter().map(|action| action.device.as_str()).collect();
    assert_eq!(devices, ["zram0", "zram1"].into());
}

#[test]
fn swap_on_two_devices_is_too_much_as_soon_as_both_together_are() {
    // 10 and 5 % of these are 52 MiB, more than each of them takes.
    let cases = [
        (Cause::Filling, 520),
        (Cause::Pressure(Level::Severe), 520),
        (Cause::Pressure(Level::Critical), 1040),
    ];
    for (cause, ram_mib) in cases {
        let (machine, loaded) = two_devices("40MiB");
        machine.change().ram_kib = ram_mib << 10;
        let (report, ended) = maintain(&machine, &loaded, &Maintain::all(cause));
        assert_eq!(ended, Ok(()));
        let written: u64 = report.actions.iter().map(|action| action.written_bytes).sum();
        assert!((10 * MIB..12 * MIB).contains(&written), "{cause}: {written}: {report:?}");
    }
}

#[test]
fn a_requested_action_is_done() {
    let loaded = load(SWAP.trim_end());
    let text = format!("{SWAP}recompression-algorithm = \"zstd\"\n");
    let loaded = Loaded { settings: load(&text).settings, ..loaded };
    let machine = machine(KernelConfig::full(), &loaded);
    store(&machine, false, 0..100);
    let before = used(&machine);
    let one = |only| Maintain { devices: vec![0], only: Some(only), ..Maintain::all(Cause::Request) };
    maintain(&machine, &loaded, &one(Only::MarkIdle(None))).1.unwrap();
    let (report, ended) = maintain(&machine, &loaded, &one(Only::Recompress(Some(Pages::Idle))));
    assert_eq!(ended, Ok(()));
    assert_eq!(report.actions[0].reason, "asked for");
    assert!(used(&machine) < before);
    let strange = Maintain { devices: vec![7], ..one(Only::MarkIdle(None)) };
    assert!(matches!(maintain(&machine, &loaded, &strange).1, Err(Stopped::Failed(_))));
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let (machine, loaded) = short_of_memory(KernelConfig::full());
    store(&machine, true, 0..3000);
    pass_time(&machine, 26 * HOUR);
    machine.take_transcript();
    let states = machine.look().states.clone();
    let dry = Maintain { dry_run: true, ..Maintain::all(Cause::Request) };
    let (report, ended) = maintain(&machine, &loaded, &dry);
    assert_eq!((ended, machine.take_transcript()), (Ok(()), Vec::<String>::new()));
    assert_eq!(machine.look().states, states);
    assert!(report.actions.iter().all(|action| action.took_usec == 0), "{report:?}");
    // A following run does the same, except for pages that write-back has taken.
    let (real, _) = maintain(&machine, &loaded, &Maintain::all(Cause::Request));
    assert_eq!(done(&report)[..4], done(&real)[..4]);
    let used = &real.memory[0];
    assert!(used.device == "zram0" && used.after_bytes < used.before_bytes, "{used:?}");
    assert_eq!(report.memory[0].before_bytes, report.memory[0].after_bytes);
}

#[test]
fn everything_that_is_skipped_has_a_reason() {
    let loaded = load(&format!("{SWAP}{BOTH}"));
    let machine = machine(KernelConfig::full(), &loaded);
    store(&machine, false, 0..100);
    pass_time(&machine, 30 * HOUR);
    // The node of the backing device is gone, for example because the mapping was renamed.
    machine.change().block_bytes.clear();
    machine.change().blocks.remove("/dev/wb");
    let report = timer(&machine, &loaded);
    assert!(skipped(&report, "write-back").contains("/dev/dm-0"), "{report:?}");
    assert!(done(&report).contains(&("recompress", "idle")), "the rest continues: {report:?}");
    let nothing = load(SWAP);
    assert!(skipped(&timer(&machine, &nothing), "maintenance").contains("[maintenance]"));
    let empty = SimMachine::new(KernelConfig::full());
    skipped(&timer(&empty, &loaded), "maintenance");
}

#[test]
fn what_policies_have_done_adds_up_until_the_next_boot() {
    let (machine, loaded) = short_of_memory(KernelConfig::full());
    timer(&machine, &loaded);
    let totals = || {
        let text = machine.look().states[&StateFile::Boot].clone();
        serde_json::from_str::<State>(&text).unwrap().totals
    };
    let before = totals();
    assert_eq!(before["write-back"].last_result, "skipped");
    let mut freed = before["recompress"].freed_bytes;
    for round in 0..2 {
        store(&machine, false, round * 500..round * 500 + 500);
        pass_time(&machine, 5 * HOUR);
        let mut report = timer(&machine, &loaded);
        report.actions.retain(|action| action.action != "write-back");
        freed += u64::try_from(report.freed_bytes()).unwrap();
    }
    let recompress = &totals()["recompress"];
    assert_eq!((recompress.last_result.as_str(), recompress.runs), ("done", before["recompress"].runs + 2));
    assert_eq!(recompress.freed_bytes, freed);
    store(&machine, true, 2000..6000);
    pass_time(&machine, 26 * HOUR);
    timer(&machine, &loaded);
    assert_eq!(totals()["write-back"].written_bytes, written(&machine));
    suspend(&machine, 9 * HOUR);
    maintain(&machine, &loaded, &Maintain::all(Cause::Timer)).1.unwrap_err();
    assert_eq!(totals()["recompress"].last_result, "postponed");
}

#[test]
fn a_machine_that_is_busy_is_left_alone() {
    let (machine, loaded) = short_of_memory(KernelConfig::full());
    store(&machine, false, 0..100);
    pass_time(&machine, 26 * HOUR);
    // The load does not count where the kernel says whether tasks wait.
    let quiet = Busy { load: 5.0, cpu: Some(20.0), memory: Some(15.0), battery: Some(40) };
    // Conditions, and whether they also apply when memory is short. There are four CPUs.
    for (busy, figure, always) in [
        (Busy { load: 3.7, cpu: None, ..quiet }, "0.9", false),
        (Busy { cpu: Some(26.0), ..quiet }, "26 %", false),
        (Busy { memory: Some(21.0), ..quiet }, "21 %", false),
        (Busy { battery: Some(29), ..quiet }, "29 %", true),
    ] {
        machine.change().busy = busy;
        machine.take_transcript();
        let (report, ended) = maintain(&machine, &loaded, &Maintain::all(Cause::Timer));
        assert!(matches!(&ended, Err(Stopped::Postponed(said)) if said.contains(figure)), "{ended:?}");
        assert_eq!(report.actions, []);
        let calls = machine.take_transcript();
        assert!(calls.iter().all(|call| !call.contains("zram0")), "{calls:?}");
        let states = machine.look().states.clone();
        let short = Maintain { dry_run: true, ..Maintain::all(Cause::Pressure(Level::Severe)) };
        let (report, ended) = maintain(&machine, &loaded, &short);
        assert_eq!((ended.is_err(), report.actions.is_empty()), (always, always), "{busy:?}: {ended:?}");
        let asked = Maintain { dry_run: true, ..Maintain::all(Cause::Request) };
        assert!(!maintain(&machine, &loaded, &asked).0.actions.is_empty(), "{busy:?}");
        machine.change().states = states;
    }
    machine.change().busy = quiet;
    assert!(done(&timer(&machine, &loaded)).contains(&("recompress", "idle")));
}
