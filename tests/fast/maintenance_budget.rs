//! The budget of write-back on the simulator, including a month of random events.

use std::time::Duration;

use crate::support::maintenance::*;

use engine::work::Stopped;
use host::{Errno, Host, StateFile};
use logic::maintain::Cause;
use logic::maintain::pressure::Level;
use logic::order::{Maintain, Only};
use proptest::prelude::*;
use sim::kernel::KernelConfig;
use sim::survive;

#[test]
fn write_back_stays_within_the_budget_and_ends_without_error() {
    for kernel in KERNELS {
        write_back_keeps_to_the_budget_and_its_ends_are_no_errors_on(kernel());
    }
}

fn write_back_keeps_to_the_budget_and_its_ends_are_no_errors_on(kernel: KernelConfig) {
    let (machine, loaded) = short_of_memory(kernel);
    let first = timer(&machine, &loaded);
    skipped(&first, "write-back");
    // Before the first one, nothing is spent.
    assert_eq!(first.budget.map(|budget| (budget.left_bytes, budget.total_bytes)), Some((20 * MIB, 0)));
    store(&machine, true, 0..8000);
    pass_time(&machine, 26 * HOUR);
    let memory = used(&machine);
    let report = timer(&machine, &loaded);
    assert_eq!(written(&machine), 20 * MIB, "{report:?}");
    let blocks = machine.look().devices[&0].slots.blocks() * PAGE;
    assert!(memory - used(&machine) >= blocks, "what bd_stat says is free in memory");
    assert_eq!(report.budget.unwrap().left_bytes, 0);
    assert_eq!(machine.look().devices[&0].slots.limit, 0, "nobody else writes either");
    pass_time(&machine, HOUR);
    assert!(skipped(&timer(&machine, &loaded), "write-back").contains("20.0 MiB"));
    // A full disk ends a run without an error.
    machine.change().block_bytes.insert("/dev/wb".to_owned(), 27 * MIB);
    pass_time(&machine, 25 * HOUR);
    let report = timer(&machine, &loaded);
    assert!(written(&machine) <= 27 * MIB && written(&machine) > 20 * MIB, "{report:?}");
    pass_time(&machine, 25 * HOUR);
    let full = timer(&machine, &loaded);
    skipped(&full, "write-back");
    assert!(full.budget.unwrap().left_bytes > 0, "{full:?}");
}

#[test]
fn without_a_record_on_disk_nothing_is_written() {
    let (machine, loaded) = short_of_memory(KernelConfig::full());
    store(&machine, true, 0..3000);
    pass_time(&machine, 26 * HOUR);
    machine.take_transcript();
    let order = Maintain::all(Cause::Pressure(Level::Critical));
    maintain(&machine, &loaded, &order).1.unwrap();
    let calls = machine.take_transcript();
    let reserve = calls.iter().position(|call| call.contains("to writeback_limit_enable")).unwrap();
    assert!(calls[..reserve].iter().filter(|call| call.contains("budget.json")).count() >= 2, "{calls:?}");
    // The same if the directory cannot be written.
    pass_time(&machine, 26 * HOUR);
    store(&machine, true, 3000..6000);
    pass_time(&machine, 26 * HOUR);
    let before = written(&machine);
    machine.fail_at(1, Errno::NOSPC);
    let (_, ended) = maintain(&machine, &loaded, &order);
    assert!(matches!(ended, Err(Stopped::Failed(_))), "{ended:?}");
    assert_eq!(written(&machine), before);
}

#[test]
fn the_budget_is_reported_before_the_first_action() {
    let (machine, loaded) = short_of_memory(KernelConfig::full());
    let budget = Maintain { only: Some(Only::Budget), ..Maintain::all(Cause::Request) };
    let left = || {
        let (report, done) = maintain(&machine, &loaded, &budget);
        assert_eq!((done, report.actions, report.skipped), (Ok(()), vec![], vec![]));
        report.budget.unwrap().left_bytes
    };
    assert_eq!(left(), 20 * MIB, "nothing is spent");
    // Unless the record is damaged.
    let first = machine.change().states.insert(StateFile::Budget, "{".to_owned()).unwrap();
    assert_eq!(left(), 0, "nothing is known");
    machine.change().states.insert(StateFile::Budget, first);
    skipped(&timer(&machine, &loaded), "write-back");
    store(&machine, true, 0..2000);
    pass_time(&machine, 26 * HOUR);
    timer(&machine, &loaded);
    let rest = 20 * MIB - written(&machine);
    assert!(written(&machine) > 0 && rest > 0);
    // After a reboot.
    machine.change().states.remove(&StateFile::Boot);
    machine.change().boot_id = "another".to_owned();
    machine.change().clock = Duration::from_secs(20);
    assert_eq!(left(), rest);
    let without = load(SWAP);
    assert_eq!(maintain(&machine, &without, &budget).0.budget, None);
}

/// An event between two runs.
#[derive(Debug, Clone, Copy)]
enum Event {
    Nothing,
    Suspend(u32),
    /// Off for some hours; the clock is synchronised some minutes after boot, or never, and wrong by some seconds.
    Reboot {
        hours: u32,
        synchronised: Option<u32>,
        error: i64,
    },
    /// The kernel does not consider this clock synchronised.
    ClockJumps,
    StateIsGarbage,
    KilledAt(usize),
    Pressure,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => Just(Event::Nothing),
        2 => (1_u32..30).prop_map(Event::Suspend),
        2 => (0_u32..40, prop::option::of(0_u32..500), -60_i64..=60)
            .prop_map(|(hours, synchronised, error)| Event::Reboot { hours, synchronised, error }),
        1 => Just(Event::ClockJumps),
        1 => Just(Event::StateIsGarbage),
        2 => (1_usize..40).prop_map(Event::KilledAt),
        3 => Just(Event::Pressure),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    /// Thirty days of random events: in no 24 hours is more written than the budget.
    #[test]
    fn never_more_than_the_budget_in_any_day(
        newest in 0_usize..2, events in prop::collection::vec((1_u32..240, event()), 250)
    ) {
        let budget = 8 * MIB;
        let loaded = load(&format!(
            "{SWAP}[maintenance]\nwriteback = {{ device = \"/dev/wb\", daily-budget = \"8MiB\", idle-age = \"1h\", max-idle-age = \"1h\" }}"
        ));
        let machine = machine(KERNELS[newest](), &loaded);
        machine.change().available_kib = 1 << 20;
        // The true time, which programs do not see, and the time of each write.
        let mut now = Duration::from_secs(1_700_000_000);
        let mut writes: Vec<(Duration, u64)> = Vec::new();
        let (mut next_page, mut boots, mut total) = (0_u64, 1, 0_u64);
        // When the clock is synchronised in this boot, and its error.
        let mut clock: Option<(Duration, i64)> = None;
        let look_at_clock = |now: Duration, clock: Option<(Duration, i64)>| {
            let mut state = machine.change();
            let set = clock.filter(|(after, _)| state.clock >= *after);
            state.synchronised =
                set.map(|(_, error)| Duration::from_secs(now.as_secs().saturating_add_signed(error)));
        };
        let end = now + 24 * HOUR * 30;
        for (minutes, event) in events {
            let time = Duration::from_secs(u64::from(minutes) * 60);
            now += time;
            pass_time(&machine, time);
            let mut cause = Cause::Timer;
            let mut kill = None;
            match event {
                Event::Nothing => {}
                Event::Suspend(hours) => {
                    now += HOUR * hours;
                    suspend(&machine, HOUR * hours);
                }
                Event::Reboot { hours, synchronised, error } => {
                    now += HOUR * hours + Duration::from_secs(30);
                    boots += 1;
                    clock = synchronised.map(|minutes| (Duration::from_secs(u64::from(minutes) * 60), error));
                    let mut state = machine.change();
                    state.clock = Duration::from_secs(30);
                    state.suspended = Duration::ZERO;
                    state.boot_id = format!("boot-{boots}");
                    state.states.remove(&StateFile::Boot);
                    state.records.clear();
                    state.swaps.clear();
                    state.devices.clear();
                    state.add(0);
                    drop(state);
                    provision(&machine, &loaded);
                    total = 0;
                    // The daemon reads the clock when it starts.
                    look_at_clock(now, clock);
                    let look = Maintain { only: Some(Only::Budget), ..Maintain::all(Cause::Request) };
                    maintain(&machine, &loaded, &look).1.unwrap();
                }
                // A synchronised clock is right; one that jumps does not count as synchronised.
                Event::ClockJumps => clock = None,
                Event::StateIsGarbage => {
                    machine.change().states.insert(StateFile::Budget, "{\"version\":1".to_owned());
                }
                Event::KilledAt(call) => kill = Some(call),
                Event::Pressure => cause = Cause::Pressure(Level::Critical),
            }
            // There are always enough pages to write.
            machine.process().discard(0, 16 * PAGE, 200 * MIB).unwrap();
            next_page += 1;
            store(&machine, true, next_page % 7..next_page % 7 + 2600);
            pass_time(&machine, HOUR);
            now += HOUR;
            look_at_clock(now, clock);
            machine.take_transcript();
            if let Some(call) = kill {
                machine.kill_after(call);
            }
            survive(|| maintain(&machine, &loaded, &Maintain::all(cause)));
            machine.take_transcript();
            let sum = written(&machine);
            writes.push((now, sum - total));
            total = sum;
            let day: u64 = writes.iter().filter(|(then, _)| now.saturating_sub(*then) < 24 * HOUR).map(|(_, bytes)| bytes).sum();
            prop_assert!(day <= budget, "{day} bytes in 24 hours at {now:?}, after {event:?}");
            if now > end {
                break;
            }
        }
    }
}

/// In the month above there are writes.
#[test]
fn an_ordinary_month_uses_its_budget() {
    for kernel in KERNELS {
        an_ordinary_month_uses_its_budget_on(kernel());
    }
}

fn an_ordinary_month_uses_its_budget_on(kernel: KernelConfig) {
    let loaded = load(&format!(
        "{SWAP}[maintenance]\nwriteback = {{ device = \"/dev/wb\", daily-budget = \"8MiB\", idle-age = \"1h\", max-idle-age = \"1h\" }}"
    ));
    let machine = machine(kernel, &loaded);
    machine.change().available_kib = 1 << 20;
    for hour in 0..30 * 24_u64 {
        if hour % 8 == 0 {
            machine.process().discard(0, 16 * PAGE, 200 * MIB).unwrap();
            store(&machine, true, 0..2600);
        }
        pass_time(&machine, HOUR + Duration::from_secs(1));
        timer(&machine, &loaded);
        machine.take_transcript();
    }
    let days = written(&machine) / (8 * MIB);
    assert!((28..=30).contains(&days), "{} MiB", written(&machine) / MIB);
}
