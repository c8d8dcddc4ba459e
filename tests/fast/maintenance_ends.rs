//! When a run of maintenance ends early, on the simulator, and what it does not try again.

use std::time::Duration;

use crate::support::maintenance::*;
use engine::maintain::{self, Watch};
use engine::work::Stopped;
use host::{Errno, Host, MachineFile, Priority};
use logic::maintain::Cause;
use logic::maintain::pressure::Level;
use logic::maintain_report::Report;
use logic::order::{Maintain, Only};
use sim::SimMachine;
use sim::kernel::KernelConfig;

/// Calls a function between two writes to the device.
struct Between<F>(F);

impl<F: FnMut()> Watch for Between<F> {
    fn progress(&mut self, _share: f64, doing: &str) {
        if doing.contains(':') {
            (self.0)();
        }
    }

    fn check(&self) -> Result<(), Stopped> {
        Ok(())
    }
}

fn note_level(machine: &SimMachine, level: Level) {
    let text = format!("{}\nbecause of a test", level.word());
    machine.change().further.insert(MachineFile::PressureLevel, text.into_bytes());
}

/// A machine that has 31 MiB to write back, and a budget of 20 MiB.
fn full() -> (SimMachine, logic::config::Loaded) {
    let (machine, loaded) = short_of_memory(KernelConfig::full());
    store(&machine, true, 0..8000);
    pass_time(&machine, 26 * HOUR);
    (machine, loaded)
}

fn run(cause: Cause, between: impl FnMut(&SimMachine)) -> (SimMachine, Report, Result<(), Stopped>) {
    let (machine, loaded) = full();
    let mut between = between;
    let mut watch = Between(|| between(&machine));
    let (report, ended) = maintain::run(&mut machine.process(), &loaded, &Maintain::all(cause), &mut watch);
    (machine, report, ended)
}

#[test]
fn a_run_makes_way_when_memory_becomes_shorter() {
    let shorter = |machine: &SimMachine| note_level(machine, Level::Severe);
    for cause in [Cause::Timer, Cause::Pressure(Level::Moderate)] {
        let (machine, report, ended) = run(cause, shorter);
        assert!(matches!(ended, Err(Stopped::Postponed(_))), "{cause}: {ended:?}");
        let written = written(&machine);
        assert!(written > 0 && written < 2 * MIB, "{cause}: {written}");
        assert_eq!(report.budget.unwrap().left_bytes, 20 * MIB - written, "only what was written is spent");
        let reported: u64 = report.actions.iter().map(|action| action.written_bytes).sum();
        assert_eq!(reported, written, "and it is reported");
        assert_eq!(machine.look().devices[&0].slots.limit, 0);
    }
    for cause in [Cause::Request, Cause::Pressure(Level::Severe), Cause::Pressure(Level::Critical)] {
        let (machine, _, ended) = run(cause, shorter);
        assert_eq!((ended, written(&machine)), (Ok(()), 20 * MIB), "{cause}");
    }
}

#[test]
fn a_run_leaves_the_rest_to_the_next_one_after_a_while() {
    let slow = |seconds| move |machine: &SimMachine| pass_time(machine, Duration::from_secs(seconds));
    for (cause, each, seconds) in [(Cause::Pressure(Level::Critical), 25, 60), (Cause::Timer, 500, 1200)] {
        let begun = 26 * HOUR;
        let (machine, report, ended) = run(cause, slow(each));
        assert!(matches!(ended, Err(Stopped::Postponed(_))), "{cause}: {ended:?}");
        let compacts = done(&report).contains(&("compact", ""));
        assert_eq!(compacts, cause.is_short(), "what was freed is given back at once: {report:?}");
        let took = machine.look().clock.saturating_sub(begun);
        let longest = Duration::from_secs(seconds);
        assert!(took >= longest && took <= longest + Duration::from_secs(each), "{cause}: {took:?}");
    }
    let (_, _, ended) = run(Cause::Request, slow(500));
    assert_eq!(ended, Ok(()));
}

#[test]
fn write_back_comes_first_while_memory_is_short_and_the_rest_last_unless_requested() {
    for (cause, begins, ends) in [
        (Cause::Timer, Priority::Low, Priority::Low),
        (Cause::Pressure(Level::Critical), Priority::RealTime, Priority::Low),
        (Cause::Request, Priority::Normal, Priority::Normal),
    ] {
        let mut first = None;
        let (machine, report, ended) = run(cause, |machine| _ = first.get_or_insert(machine.look().priority));
        assert_eq!(ended, Ok(()), "{cause}");
        assert!(done(&report).iter().any(|(policy, _)| *policy == "recompress"), "{cause}: {report:?}");
        assert_eq!((first, machine.look().priority), (Some(begins), ends), "{cause}");
    }
}

#[test]
fn a_disk_that_fails_is_left_alone_for_an_hour() {
    let (machine, loaded) = full();
    let order = Maintain::all(Cause::Pressure(Level::Critical));
    machine.take_transcript();
    maintain(&machine, &loaded, &order).1.unwrap();
    let calls = machine.take_transcript();
    let write =
        calls.iter().position(|call| call.ends_with("to writeback")).unwrap_or_else(|| panic!("{calls:?}"))
            + 1;

    let (machine, loaded) = full();
    machine.take_transcript();
    machine.fail_at(write, Errno::IO);
    let (_, ended) = maintain(&machine, &loaded, &order);
    assert!(matches!(ended, Err(Stopped::Failed(_))), "{ended:?}");
    machine.take_transcript();
    pass_time(&machine, HOUR / 2);
    for cause in [Cause::Timer, Cause::Filling, Cause::Pressure(Level::Critical)] {
        let (report, ended) = maintain(&machine, &loaded, &Maintain::all(cause));
        assert_eq!((ended, written(&machine)), (Ok(()), 0), "{cause}");
        skipped(&report, "write-back");
    }
    let request = Maintain { only: Some(Only::WriteBack(None)), ..Maintain::all(Cause::Request) };
    maintain(&machine, &loaded, &request).1.unwrap();
    assert!(written(&machine) > 0, "a request is tried at once");

    let (machine, loaded) = full();
    machine.take_transcript();
    machine.fail_at(write, Errno::IO);
    assert!(maintain(&machine, &loaded, &order).1.is_err());
    machine.take_transcript();
    pass_time(&machine, HOUR);
    maintain(&machine, &loaded, &order).1.unwrap();
    assert_eq!(written(&machine), 20 * MIB);
}

/// Also pages that do not compress: one of those may just have been read from the disk.
/// The header of swap: in the simulation, it does not compress.
const HEADER: u64 = PAGE;

#[test]
fn under_pressure_no_page_is_written_that_was_just_used_unless_it_is_critical_and_frees_no_memory() {
    let severe = Maintain::all(Cause::Pressure(Level::Severe));
    let critical = Maintain::all(Cause::Pressure(Level::Critical));
    for huge in [false, true] {
        let (machine, loaded) = short_of_memory(KernelConfig::full());
        let run = |order| {
            let (_, ended) = maintain(&machine, &loaded, order);
            assert_eq!(ended, Ok(()), "{huge}");
            written(&machine)
        };
        store(&machine, huge, 0..3000);
        pass_time(&machine, Duration::from_secs(10));
        assert_eq!(run(&severe), 0, "{huge}");
        let at_once = run(&critical);
        assert!(if huge { at_once > 10 * MIB } else { at_once == HEADER }, "{huge}: {at_once}");
        pass_time(&machine, Duration::from_secs(60));
        assert!(run(&critical) > 10 * MIB, "{huge}");
    }
}

#[test]
fn kernels_that_only_add_marks_write_the_oldest_pages_first_as_well() {
    for kernel in [KernelConfig::full(), KernelConfig { exact_marks: false, ..KernelConfig::full() }] {
        let (machine, loaded) = short_of_memory(kernel);
        store(&machine, false, 0..3000);
        pass_time(&machine, 2 * HOUR);
        store(&machine, false, 3000..6000);
        pass_time(&machine, Duration::from_secs(90));
        let (report, ended) = maintain(&machine, &loaded, &Maintain::all(Cause::Pressure(Level::Severe)));
        ended.unwrap();
        let is_written = |number: u64| machine.look().devices[&0].slots.all[&(16 + number)].written;
        assert!((0..3000).all(is_written), "without waiting for hours");
        let younger = (3000..6000).filter(|number| is_written(*number)).count();
        assert!((1000..3000).contains(&younger), "{younger}: what is left of the limit");
        assert!(done(&report).contains(&("recompress", "idle")), "the others: {report:?}");
    }
}

/// A page takes 2 ms, as on a flash card, and each scan of the device 30 ms.
#[test]
fn while_memory_is_short_the_disk_is_kept_busy() {
    let time = |kernel: KernelConfig, cause| {
        let (write_time, scan_time) = (Duration::from_millis(2), Duration::from_millis(30));
        let (machine, loaded) = short_of_memory(KernelConfig { write_time, scan_time, ..kernel });
        store(&machine, true, 0..8000);
        pass_time(&machine, 26 * HOUR);
        let begun = machine.look().clock;
        let (_, ended) = maintain(&machine, &loaded, &Maintain::all(cause));
        let took = machine.look().clock.saturating_sub(begun).as_secs_f64();
        assert_eq!((ended, written(&machine)), (Ok(()), 20 * MIB), "{cause}");
        took / (20 * MIB / PAGE) as f64 / write_time.as_secs_f64()
    };
    for kernel in [KernelConfig::full(), KernelConfig::newest()] {
        let busy = time(kernel.clone(), Cause::Pressure(Level::Severe));
        assert!(busy < 1.5, "{busy}");
        // Otherwise half of the time is left to others.
        let shared = time(kernel, Cause::Timer);
        assert!(shared > 2.0, "{shared}");
    }
}

#[test]
fn the_device_that_had_to_wait_is_the_first_of_the_next_run() {
    let other = SWAP.replace("zram0", "zram1");
    let loaded = load(&format!("{SWAP}{other}[maintenance]\nrecompress = true"));
    let machine = machine(KernelConfig::full(), &loaded);
    machine.change().available_kib = 1 << 20;
    for number in 0..3000 {
        for device in 0..2 {
            machine.process().write_pages(device, (16 + number) * PAGE, &page(false, number)).unwrap();
        }
    }
    pass_time(&machine, 26 * HOUR);
    let concerned = || {
        let mut slow = Between(|| pass_time(&machine, Duration::from_secs(25)));
        let order = Maintain::all(Cause::Pressure(Level::Critical));
        let (report, _) = maintain::run(&mut machine.process(), &loaded, &order, &mut slow);
        let recompressed = report.actions.into_iter().filter(|action| action.action == "recompress");
        recompressed.map(|action| action.device).next().unwrap()
    };
    assert_eq!([concerned(), concerned()], ["zram0", "zram1"]);
}

/// All pages are marked, and those that were not used until the marks are as old as the shortest age are written.
#[test]
fn under_pressure_a_kernel_without_access_times_is_not_waited_for_either() {
    let (machine, loaded) = short_of_memory(KernelConfig { entry_times: false, ..KernelConfig::full() });
    store(&machine, false, 0..3000);
    let run = |cause| maintain(&machine, &loaded, &Maintain::all(cause)).1.unwrap();
    run(Cause::Pressure(Level::Critical));
    assert_eq!(written(&machine), HEADER, "nothing is idle yet");
    machine.process().read_pages(0, 16 * PAGE, 4096).unwrap();
    pass_time(&machine, Duration::from_secs(20));
    run(Cause::Pressure(Level::Critical));
    assert_eq!(written(&machine), HEADER + 2999 * PAGE, "all but the page that was read");
}
