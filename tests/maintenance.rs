//! Maintenance on the simulator: what it does to pages, what it never does, and a month of it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use proptest::prelude::*;
use zramd::engine;
use zramd::engine::maintain::state::State;
use zramd::engine::maintain::{self, Only, Order, Unwatched};
use zramd::engine::work::Stopped;
use zramd::host::sim::kernel::KernelConfig;
use zramd::host::sim::{SimMachine, survive};
use zramd::host::upkeep::StateFile;
use zramd::host::{BlockProbe, Errno, Host};
use zramd::logic::attribute::Attribute;
use zramd::logic::config::{self, Loaded};
use zramd::logic::policy::Cause;
use zramd::logic::policy::pass::Pages;
use zramd::logic::policy::pressure::Level;
use zramd::logic::policy::report::Report;

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;
const HOUR: Duration = Duration::from_secs(3600);

fn load(text: &str) -> Loaded {
    let loaded = config::load(&[("zramd.toml".into(), text.to_owned())], "");
    assert_eq!(loaded.problems, []);
    loaded
}

const SWAP: &str = "[zram0]\nzram-size = \"256MiB\"\ncompression-algorithm = \"lz4\"\n";

/// A machine with compressed swap, and 100 MiB for what is written back.
fn machine(kernel: KernelConfig, loaded: &Loaded) -> SimMachine {
    let machine = SimMachine::new(kernel);
    let probe = BlockProbe { device: Some((8, 1)), head: vec![0; 65536], holders: Vec::new() };
    machine.change().blocks.insert("/dev/wb".to_owned(), probe);
    machine.change().block_bytes.insert("/dev/wb".to_owned(), 100 * MIB);
    provision(&machine, loaded);
    machine
}

/// The same with both policies, and with little memory left: pages count as idle early.
fn short_of_memory(kernel: KernelConfig) -> (SimMachine, Loaded) {
    let loaded = load(&format!("{SWAP}{BOTH}"));
    let machine = machine(kernel, &loaded);
    machine.change().available_kib = 1 << 20;
    (machine, loaded)
}

/// Linux 6.12 and 7.2 go over pages in different ways.
const KERNELS: [fn() -> KernelConfig; 2] = [KernelConfig::full, KernelConfig::newest];

fn provision(machine: &SimMachine, loaded: &Loaded) {
    let applied = engine::apply(&mut machine.process(), loaded).unwrap();
    assert!(applied.outcomes.iter().all(|outcome| outcome.errors.is_empty()), "{:?}", applied.outcomes);
    machine.take_transcript();
}

/// A page that only a secondary algorithm shrinks, or none does.
fn page(huge: bool, number: u64) -> Vec<u8> {
    let half = [number.to_le_bytes(), [0xA5; 8]].concat().repeat(128);
    let rest = if huge { half.clone() } else { vec![0; 2048] };
    [half, rest].concat()
}

/// Stores pages from page number 16 on, behind the header.
fn store(machine: &SimMachine, huge: bool, pages: std::ops::Range<u64>) {
    let mut host = machine.process();
    for number in pages {
        host.write_pages(0, (16 + number) * PAGE, &page(huge, number)).unwrap();
    }
}

fn pass_time(machine: &SimMachine, time: Duration) {
    machine.change().clock += time;
}

fn suspend(machine: &SimMachine, time: Duration) {
    let mut state = machine.change();
    state.clock += time;
    state.suspended += time;
}

fn maintain(machine: &SimMachine, loaded: &Loaded, order: &Order) -> (Report, Result<(), Stopped>) {
    maintain::run(&mut machine.process(), loaded, order, &mut Unwatched)
}

fn timer(machine: &SimMachine, loaded: &Loaded) -> Report {
    let (report, done) = maintain(machine, loaded, &Order::all(Cause::Timer));
    assert_eq!(done, Ok(()), "{report:?}");
    report
}

fn used(machine: &SimMachine) -> u64 {
    let text = machine.process().read_attribute(0, Attribute::MmStat).unwrap();
    text.split_whitespace().nth(2).unwrap().parse().unwrap()
}

fn written(machine: &SimMachine) -> u64 {
    machine.look().devices[&0].slots.written * PAGE
}

fn done(report: &Report) -> Vec<(&str, &str)> {
    report.actions.iter().map(|action| (action.action.as_str(), action.pages.as_str())).collect()
}

fn skipped(report: &Report, policy: &str) -> String {
    let found = report.skipped.iter().find(|(_, name, _)| name == policy);
    found.map(|(_, _, why)| why.clone()).unwrap_or_default()
}

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
    assert!(report.actions[1].reason.contains("idle for"), "{report:?}");
    let fresh = |number: &u64| machine.look().devices[&0].slots.all[number].priority == 0;
    assert!((1016..1116).all(|number| fresh(&number)));
    // Which algorithm is always said, and never more pages than statistics can wait for.
    for call in machine.take_transcript().iter().filter(|call| call.contains("to recompress")) {
        assert!(call.contains("priority=1") && call.contains("max_pages="), "{call}");
    }
    assert!(skipped(&timer(&machine, &loaded), "recompress").contains("only"), "an hour apart");
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
    // Right after that, nothing is done at all.
    let (report, ended) = maintain(&machine, &loaded, &Order::all(Cause::Timer));
    assert!(matches!(ended, Err(Stopped::Postponed(ref why)) if why.contains("suspended")), "{ended:?}");
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
fn a_kernel_without_times_of_access_waits_for_the_whole_age() {
    let loaded = load(&format!("{SWAP}[maintenance]\nrecompress = true"));
    let machine = machine(KernelConfig { entry_times: false, ..KernelConfig::full() }, &loaded);
    store(&machine, false, 0..200);
    pass_time(&machine, 30 * HOUR);
    let before = used(&machine);
    let report = timer(&machine, &loaded);
    assert!(skipped(&report, "recompress").contains("does not know how old"), "{report:?}");
    pass_time(&machine, HOUR);
    machine.process().read_pages(0, 16 * PAGE, 4096).unwrap();
    assert!(skipped(&timer(&machine, &loaded), "recompress").contains("known in"));
    pass_time(&machine, 4 * HOUR);
    timer(&machine, &loaded);
    let freed = (before - used(&machine)) / (PAGE / 2);
    assert!((199..=200).contains(&freed), "all but the page that was read: {freed}");
}

const BOTH: &str =
    "[maintenance]\nrecompress = true\nwriteback = { device = \"/dev/wb\", daily-budget = \"20MiB\" }";

/// Lets a day pass so that the budget, of which nothing is known at first, is there.
fn with_budget(machine: &SimMachine, loaded: &Loaded) {
    timer(machine, loaded);
    pass_time(machine, 25 * HOUR);
}

#[test]
fn where_marks_only_add_up_no_young_page_is_written() {
    let kernel = KernelConfig { exact_marks: false, algorithm_params: false, ..KernelConfig::full() };
    let (machine, loaded) = short_of_memory(kernel);
    with_budget(&machine, &loaded);
    for hour in 0..40 {
        store(&machine, true, hour * 50..hour * 50 + 50);
        timer(&machine, &loaded);
        let state = machine.look();
        let slots = &state.devices[&0].slots;
        let young = |slot: &&zramd::host::sim::slots::Slot| {
            slot.written && slots.clock.saturating_sub(slot.accessed) < 20 * HOUR
        };
        assert_eq!(slots.all.values().filter(young).count(), 0, "hour {hour}");
        drop(state);
        pass_time(&machine, HOUR);
    }
    assert!(written(&machine) > 0);
}

#[test]
fn write_back_keeps_to_the_budget_and_its_ends_are_no_errors() {
    for kernel in KERNELS {
        write_back_keeps_to_the_budget_and_its_ends_are_no_errors_on(kernel());
    }
}

fn write_back_keeps_to_the_budget_and_its_ends_are_no_errors_on(kernel: KernelConfig) {
    let (machine, loaded) = short_of_memory(kernel);
    let first = timer(&machine, &loaded);
    assert!(skipped(&first, "write-back").contains("no record"), "{first:?}");
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
    assert!(skipped(&timer(&machine, &loaded), "write-back").contains("is spent"));
    // A full disk ends a run as it should.
    machine.change().block_bytes.insert("/dev/wb".to_owned(), 27 * MIB);
    pass_time(&machine, 25 * HOUR);
    let report = timer(&machine, &loaded);
    assert!(written(&machine) <= 27 * MIB && written(&machine) > 20 * MIB, "{report:?}");
    pass_time(&machine, 25 * HOUR);
    assert!(skipped(&timer(&machine, &loaded), "write-back").contains("is full"));
}

#[test]
fn without_a_record_on_disk_nothing_is_written() {
    let (machine, loaded) = short_of_memory(KernelConfig::full());
    with_budget(&machine, &loaded);
    store(&machine, true, 0..3000);
    pass_time(&machine, 26 * HOUR);
    machine.take_transcript();
    let order = Order::all(Cause::Pressure(Level::Critical));
    maintain(&machine, &loaded, &order).1.unwrap();
    let calls = machine.take_transcript();
    let reserve = calls.iter().position(|call| call.contains("to writeback_limit_enable")).unwrap();
    assert!(calls[..reserve].iter().filter(|call| call.contains("budget.json")).count() >= 2, "{calls:?}");
    // The same when the folder cannot be written.
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
fn who_asks_for_one_thing_gets_it() {
    let loaded = load(SWAP.trim_end());
    let text = format!("{SWAP}recompression-algorithm = \"zstd\"\n");
    let loaded = Loaded { settings: load(&text).settings, ..loaded };
    let machine = machine(KernelConfig::full(), &loaded);
    store(&machine, false, 0..100);
    let before = used(&machine);
    let one = |only| Order { devices: vec![0], only: Some(only), ..Order::all(Cause::Request) };
    maintain(&machine, &loaded, &one(Only::MarkIdle(None))).1.unwrap();
    let (report, ended) = maintain(&machine, &loaded, &one(Only::Recompress(Some(Pages::Idle))));
    assert_eq!(ended, Ok(()));
    assert_eq!(report.actions[0].reason, "asked for");
    assert!(used(&machine) < before);
    let strange = Order { devices: vec![7], ..one(Only::MarkIdle(None)) };
    assert!(matches!(maintain(&machine, &loaded, &strange).1, Err(Stopped::Failed(_))));
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let (machine, loaded) = short_of_memory(KernelConfig::full());
    with_budget(&machine, &loaded);
    store(&machine, true, 0..3000);
    pass_time(&machine, 26 * HOUR);
    machine.take_transcript();
    let states = machine.look().states.clone();
    let dry = Order { dry_run: true, ..Order::all(Cause::Request) };
    let (report, ended) = maintain(&machine, &loaded, &dry);
    assert_eq!((ended, machine.take_transcript()), (Ok(()), Vec::<String>::new()));
    assert_eq!(machine.look().states, states);
    assert!(report.actions.iter().all(|action| action.result == "would be done"), "{report:?}");
    // What a run then does, but for the pages that write-back has taken already.
    let (real, _) = maintain(&machine, &loaded, &Order::all(Cause::Request));
    assert_eq!(done(&report)[..4], done(&real)[..4]);
    let used = &real.memory[0];
    assert!(used.device == "zram0" && used.after_bytes < used.before_bytes, "{used:?}");
    assert_eq!(report.memory[0].before_bytes, report.memory[0].after_bytes);
}

#[test]
fn nothing_is_left_alone_without_a_word() {
    let loaded = load(&format!("{SWAP}{BOTH}"));
    let machine = machine(KernelConfig::full(), &loaded);
    store(&machine, false, 0..100);
    pass_time(&machine, 30 * HOUR);
    // The node of the backing device has gone, as when somebody renames the mapping.
    machine.change().block_bytes.clear();
    machine.change().blocks.remove("/dev/wb");
    let report = timer(&machine, &loaded);
    assert!(skipped(&report, "write-back").contains("/dev/dm-0: look at its size"), "{report:?}");
    assert!(done(&report).contains(&("recompress", "idle")), "the rest goes on: {report:?}");
    let nothing = load(SWAP);
    assert!(skipped(&timer(&machine, &nothing), "maintenance").contains("asks for neither"));
    let empty = SimMachine::new(KernelConfig::full());
    assert!(skipped(&timer(&empty, &loaded), "maintenance").contains("no device"));
}

#[test]
fn what_policies_have_done_adds_up_until_the_next_boot() {
    let (machine, loaded) = short_of_memory(KernelConfig::full());
    with_budget(&machine, &loaded);
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
    maintain(&machine, &loaded, &Order::all(Cause::Timer)).1.unwrap_err();
    assert_eq!(totals()["recompress"].last_result, "postponed");
}

#[test]
fn the_budget_is_told_before_anything_is_done() {
    let (machine, loaded) = short_of_memory(KernelConfig::full());
    let budget = Order { only: Some(Only::Budget), ..Order::all(Cause::Request) };
    let left = || {
        let (report, done) = maintain(&machine, &loaded, &budget);
        assert_eq!((done, report.actions, report.skipped), (Ok(()), vec![], vec![]));
        report.budget.unwrap().left_bytes
    };
    assert_eq!(left(), 0, "nothing is known");
    assert!(skipped(&timer(&machine, &loaded), "write-back").contains("no record"), "which is said later");
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

/// What happens between two runs.
#[derive(Debug, Clone, Copy)]
enum Event {
    Nothing,
    Suspend(u32),
    Reboot {
        synchronised: bool,
    },
    /// Whatever it says then, the kernel does not take such a clock for synchronised.
    ClockJumps,
    StateIsLost,
    StateIsGarbage,
    KilledAt(usize),
    Pressure,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => Just(Event::Nothing),
        2 => (1_u32..30).prop_map(Event::Suspend),
        2 => any::<bool>().prop_map(|synchronised| Event::Reboot { synchronised }),
        1 => Just(Event::ClockJumps),
        1 => Just(Event::StateIsLost),
        1 => Just(Event::StateIsGarbage),
        2 => (1_usize..40).prop_map(Event::KilledAt),
        3 => Just(Event::Pressure),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    /// Thirty days in which everything happens that can: in no 24 hours is more written than the budget.
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
        // True time, which no program sees, and what was written when.
        let mut now = Duration::from_secs(1_700_000_000);
        let mut writes: Vec<(Duration, u64)> = Vec::new();
        let (mut next_page, mut boots, mut total) = (0_u64, 1, 0_u64);
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
                Event::Reboot { synchronised } => {
                    now += HOUR;
                    boots += 1;
                    let mut state = machine.change();
                    state.clock = Duration::from_secs(30);
                    state.suspended = Duration::ZERO;
                    state.boot_id = format!("boot-{boots}");
                    state.states.remove(&StateFile::Boot);
                    state.records.clear();
                    state.swaps.clear();
                    state.devices.clear();
                    state.add(0);
                    state.synchronised = synchronised.then_some(now);
                    drop(state);
                    provision(&machine, &loaded);
                    total = 0;
                }
                // A synchronised clock is right; one that jumps is not taken for that.
                Event::ClockJumps => machine.change().synchronised = None,
                Event::StateIsLost => {
                    machine.change().states.remove(&StateFile::Budget);
                }
                Event::StateIsGarbage => {
                    machine.change().states.insert(StateFile::Budget, "{\"version\":1".to_owned());
                }
                Event::KilledAt(call) => kill = Some(call),
                Event::Pressure => cause = Cause::Pressure(Level::Critical),
            }
            if let Some(wall) = &mut machine.change().synchronised {
                *wall = now;
            }
            // Enough to write, always.
            machine.process().discard(0, 16 * PAGE, 200 * MIB).unwrap();
            next_page += 1;
            store(&machine, true, next_page % 7..next_page % 7 + 2600);
            pass_time(&machine, HOUR);
            now += HOUR;
            if let Some(wall) = &mut machine.change().synchronised {
                *wall = now;
            }
            machine.take_transcript();
            if let Some(call) = kill {
                machine.kill_after(call);
            }
            survive(|| maintain(&machine, &loaded, &Order::all(cause)));
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

/// The month above is not one in which nothing is ever written.
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
