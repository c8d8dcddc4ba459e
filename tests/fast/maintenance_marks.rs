//! Idle marks on the simulator: no page is treated as older than it is, with any kernel and after a kill at any point.

use std::time::Duration;

use crate::support::maintenance::*;

use logic::maintain::Cause;
use logic::maintain::pressure::Level;
use logic::order::{Maintain, Only};
use proptest::prelude::*;
use sim::kernel::KernelConfig;
use sim::{SimMachine, survive};

fn marked(machine: &SimMachine) -> usize {
    machine.look().devices[&0].slots.all.values().filter(|slot| slot.idle).count()
}

/// Linux 7.2 counts whole seconds, and marks all pages for an age above its uptime.
#[test]
fn no_page_is_older_than_the_boot() {
    for kernel in KERNELS {
        let ages = "recompress = { idle-age = \"2h\", max-idle-age = \"2h\" }";
        let loaded = load(&format!("{SWAP}[maintenance]\n{ages}"));
        let machine = machine(kernel(), &loaded);
        store(&machine, false, 0..100);
        let before = used(&machine);
        // Two hours and a moment awake, then a moment in suspend, which the kernel adds to the age of pages.
        machine.change().clock = 2 * HOUR + Duration::from_millis(900);
        machine.change().suspended = Duration::from_millis(700);
        let report = timer(&machine, &loaded);
        assert!(skipped(&report, "recompress").contains("2h"), "{report:?}");
        assert_eq!((marked(&machine), used(&machine)), (0, before));
        let mark = |age: Duration| Maintain {
            only: Some(Only::MarkIdle(Some(age.as_secs()))),
            ..Maintain::all(Cause::Request)
        };
        let (report, ended) = maintain(&machine, &loaded, &mark(50 * HOUR));
        assert_eq!((ended, report.actions.len(), marked(&machine)), (Ok(()), 0, 0));
        skipped(&report, "mark-idle");
        maintain(&machine, &loaded, &mark(HOUR)).1.unwrap();
        assert_eq!(marked(&machine), 101);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// On kernels where marks only accumulate, those of a killed run stay.
    #[test]
    fn the_marks_of_a_run_that_was_killed_are_not_forgotten(
        runs in prop::collection::vec((1_u32..8, any::<bool>(), 0_usize..8), 10..30),
    ) {
        let kernel = KernelConfig { exact_marks: false, algorithm_params: false, ..KernelConfig::full() };
        // Enough for the reservations of killed runs.
        let budget = "writeback = { device = \"/dev/wb\", daily-budget = \"1GiB\", run-budget = \"20MiB\" }";
        let loaded = load(&format!("{SWAP}[maintenance]\nrecompress = true\n{budget}"));
        let machine = machine(kernel, &loaded);
        machine.change().available_kib = 1 << 20;
        for (index, (hours, severe, kill)) in (0..).zip(runs) {
            // Only compressible pages: incompressible ones are written at any age when memory is short.
            store(&machine, false, index * 100..index * 100 + 100);
            let slots = machine.look().devices[&0].slots.clone();
            let (cause, least) = if severe {
                (Cause::Pressure(Level::Severe), Duration::from_secs(60))
            } else {
                (Cause::Timer, 20 * HOUR)
            };
            machine.take_transcript();
            if kill > 0 {
                machine.kill_after(kill);
            }
            survive(|| maintain(&machine, &loaded, &Maintain::all(cause)));
            machine.take_transcript();
            for (number, slot) in &machine.look().devices[&0].slots.all {
                let before = &slots.all[number];
                let was_idle = slots.clock.saturating_sub(before.accessed);
                let was_written = slot.written && !before.written && !before.huge;
                prop_assert!(!was_written || was_idle >= least, "page {number}, idle for {was_idle:?}, run {index}");
            }
            pass_time(&machine, HOUR * hours);
        }
    }
}

/// Without access times, idle marks that one policy has used are not used by the other.
#[test]
fn without_access_times_both_policies_run() {
    // Without the latter before Linux 5.19.
    for writes_huge_idle in [true, false] {
        let kernel = KernelConfig { entry_times: false, writes_huge_idle, ..KernelConfig::full() };
        let (machine, loaded) = short_of_memory(kernel);
        for day in 0..4 {
            store(&machine, false, day * 6000..day * 6000 + 6000);
            for _ in 0..24 {
                timer(&machine, &loaded);
                pass_time(&machine, HOUR);
            }
        }
        let state = machine.look();
        let slots = state.devices[&0].slots.all.values();
        let shrunk = slots.filter(|slot| slot.priority > 0 && !slot.written).count();
        drop(state);
        let written = written(&machine);
        assert!(written >= 20 * MIB && shrunk > 0, "{written} written, {shrunk} shrunk");
    }
}

#[test]
fn without_access_times_a_full_disk_does_not_end_recompression() {
    let (machine, loaded) = short_of_memory(KernelConfig { entry_times: false, ..KernelConfig::full() });
    machine.change().block_bytes.insert("/dev/wb".to_owned(), MIB);
    let mut before = used(&machine);
    for round in 0..3 {
        store(&machine, false, round * 100..round * 100 + 100);
        for _ in 0..50 {
            pass_time(&machine, HOUR);
            timer(&machine, &loaded);
        }
        let now = used(&machine);
        assert_eq!(now, before + 100 * PAGE / 2, "round {round}");
        before = now;
    }
}
