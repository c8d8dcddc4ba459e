//! Maintenance on the simulator with errors and unusual states: an error does not stop independent work.

use crate::support::maintenance::*;

use engine::work::Stopped;
use host::{Errno, Host};
use logic::maintain::Cause;
use logic::maintain::pass::Pages;
use logic::order::{Maintain, Only};
use sim::kernel::KernelConfig;

#[test]
fn a_failure_does_not_stop_independent_work() {
    let two = format!("{SWAP}[zram1]\nzram-size = \"256MiB\"\n{BOTH}");
    let loaded = load(&two);
    let machine = machine(KernelConfig::full(), &loaded);
    machine.change().available_kib = 1 << 20;
    store(&machine, false, 0..1000);
    pass_time(&machine, 26 * HOUR);
    machine.take_transcript();
    machine.fail_at(1, Errno::NOSPC);
    let (report, ended) = maintain(&machine, &loaded, &Maintain::all(Cause::Timer));
    assert!(
        matches!(&ended, Err(Stopped::Failed(error)) if error.to_string().contains("budget.json")),
        "{ended:?}"
    );
    assert!(done(&report).contains(&("recompress", "idle")), "{report:?}");
    assert_eq!(report.memory.len(), 2, "{report:?}");
    assert!(machine.take_transcript()[0].contains("budget.json"));
}

#[test]
fn a_threshold_that_the_kernel_refuses_is_no_error() {
    let loaded = load(&format!("{SWAP}[maintenance]\nrecompress.threshold = 4000"));
    let machine = machine(KernelConfig::full(), &loaded);
    store(&machine, false, 0..100);
    pass_time(&machine, 5 * HOUR);
    for _ in 0..2 {
        let report = timer(&machine, &loaded);
        assert!(skipped(&report, "recompress").contains("recompress.threshold"), "{report:?}");
        assert!(done(&report).contains(&("recompress", "idle")), "{report:?}");
        pass_time(&machine, HOUR);
    }
}

/// The number of incompressible pages is no longer valid when other pages have replaced them.
#[test]
fn new_incompressible_pages_are_tried() {
    let loaded = load(&format!("{SWAP}[maintenance]\nrecompress = true"));
    let machine = machine(KernelConfig::full(), &loaded);
    let tries = || done(&timer(&machine, &loaded)).contains(&("recompress", "huge"));
    store(&machine, true, 0..300);
    pass_time(&machine, HOUR);
    assert!(tries());
    machine.process().discard(0, 16 * PAGE, 200 * PAGE).unwrap();
    pass_time(&machine, HOUR);
    assert!(!tries());
    store(&machine, true, 300..350);
    pass_time(&machine, HOUR);
    assert!(tries(), "there are new ones");
    store(&machine, true, 350..400);
    pass_time(&machine, HOUR);
    let state = machine.look().states.clone();
    let run = |fails: Option<(usize, Errno)>| {
        machine.change().states.clone_from(&state);
        machine.take_transcript();
        if let Some((call, errno)) = fails {
            machine.fail_at(call, errno);
        }
        let (report, ended) = maintain(&machine, &loaded, &Maintain::all(Cause::Timer));
        assert_eq!(ended, Ok(()));
        assert!(done(&report).contains(&("recompress", "huge")), "{report:?}");
        machine.take_transcript()
    };
    let call = run(None).iter().position(|call| call.contains("type=huge ")).unwrap() + 1;
    // A concurrent pass, or lack of memory (for example in a run because of pressure), is not an error.
    for errno in [Errno::BUSY, Errno::NOMEM] {
        run(Some((call, errno)));
    }
    pass_time(&machine, HOUR);
    assert!(tries(), "a pass that was refused has tried nothing");
}

#[test]
fn a_request_for_incompressible_pages_reports_if_there_are_none() {
    let loaded = load(&format!("{SWAP}recompression-algorithm = \"zstd\"\n"));
    let machine = machine(KernelConfig::full(), &loaded);
    machine.process().discard(0, PAGE, 15 * PAGE).unwrap();
    machine.change().devices.get_mut(&0).unwrap().slots.all.get_mut(&0).unwrap().huge = false;
    store(&machine, false, 0..100);
    let huge = Only::Recompress(Some(Pages::Huge));
    let (report, ended) =
        maintain(&machine, &loaded, &Maintain { only: Some(huge), ..Maintain::all(Cause::Request) });
    assert_eq!((ended, report.actions.len()), (Ok(()), 0));
    skipped(&report, "recompress");
}

/// The result for the first pages is not generalised to the others.
#[test]
fn pages_behind_many_that_do_not_shrink_are_tried() {
    let loaded = load(&format!("{SWAP}[maintenance]\nrecompress = true"));
    let machine = machine(KernelConfig::full(), &loaded);
    store(&machine, true, 0..3000);
    for number in 3000..3100_u64 {
        let text = format!("{number:016}").repeat(256);
        machine.process().write_pages(0, (16 + number) * PAGE, text.as_bytes()).unwrap();
    }
    let before = used(&machine);
    pass_time(&machine, HOUR);
    timer(&machine, &loaded);
    assert_eq!(before - used(&machine), 100 * PAGE / 2);
}
