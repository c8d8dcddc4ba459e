//! A simulated machine for maintenance.

use std::time::Duration;

use engine::maintain::{self, Unwatched};
use engine::work::Stopped;
use host::{BlockProbe, Host};
use logic::config::{self, Loaded};
use logic::device::attribute::Attribute;
use logic::maintain::Cause;
use logic::maintain_report::Report;
use logic::order::Maintain;
use sim::SimMachine;
use sim::kernel::KernelConfig;

pub const MIB: u64 = 1 << 20;
pub const PAGE: u64 = 4096;
pub const HOUR: Duration = Duration::from_secs(3600);

pub fn load(text: &str) -> Loaded {
    let loaded = config::load(&[("zramd.toml".into(), text.to_owned())], "");
    assert_eq!(loaded.problems, []);
    loaded
}

pub const SWAP: &str = "[zram0]\nzram-size = \"256MiB\"\ncompression-algorithm = \"lz4\"\n";

/// A machine with compressed swap, and a backing device of 100 MiB.
pub fn machine(kernel: KernelConfig, loaded: &Loaded) -> SimMachine {
    let machine = SimMachine::new(kernel);
    let probe = BlockProbe { device: Some((8, 1)), head: vec![0; 65536], holders: Vec::new() };
    machine.change().blocks.insert("/dev/wb".to_owned(), probe);
    machine.change().block_bytes.insert("/dev/wb".to_owned(), 100 * MIB);
    provision(&machine, loaded);
    machine
}

/// The same with both policies and little memory, so that pages count as idle early.
pub fn short_of_memory(kernel: KernelConfig) -> (SimMachine, Loaded) {
    let loaded = load(&format!("{SWAP}{BOTH}"));
    let machine = machine(kernel, &loaded);
    make_short(&machine);
    (machine, loaded)
}

/// Leaves so little memory that compressed swap takes too much of it until all pages are written back.
pub fn make_short(machine: &SimMachine) {
    let mut state = machine.change();
    (state.ram_kib, state.available_kib) = (1, 0);
}

/// Linux 6.12 and 7.2 process pages in different orders.
pub const KERNELS: [fn() -> KernelConfig; 2] = [KernelConfig::full, KernelConfig::newest];

pub fn provision(machine: &SimMachine, loaded: &Loaded) {
    let applied = engine::apply(&mut machine.process(), loaded).unwrap();
    assert!(applied.outcomes.iter().all(|outcome| outcome.errors.is_empty()), "{:?}", applied.outcomes);
    machine.take_transcript();
}

/// A page that only a secondary algorithm shrinks; with `huge`, an incompressible one.
pub fn page(huge: bool, number: u64) -> Vec<u8> {
    if huge { content(b"\xA5\x5A", true, number) } else { content(b"ab", false, number) }
}

/// A page filled with these bytes, wholly or by half. In the simulator, bytes that are not ASCII do not compress, and a plus
/// means that a quarter is saved.
pub fn content(bytes: &[u8], whole: bool, number: u64) -> Vec<u8> {
    let mut page = bytes.repeat(4096 / bytes.len());
    if !whole {
        page[2048..].fill(0);
    }
    page[..16].copy_from_slice(format!("{number:016}").as_bytes());
    page
}

/// Stores pages from page 16 on, after the header.
pub fn store(machine: &SimMachine, huge: bool, pages: std::ops::Range<u64>) {
    store_each(machine, pages, |number| page(huge, number));
}

/// The same with given contents.
pub fn store_each(machine: &SimMachine, pages: std::ops::Range<u64>, content: impl Fn(u64) -> Vec<u8>) {
    let mut host = machine.process();
    for number in pages {
        host.write_pages(0, (16 + number) * PAGE, &content(number)).unwrap();
    }
}

pub fn pass_time(machine: &SimMachine, time: Duration) {
    machine.change().clock += time;
}

pub fn suspend(machine: &SimMachine, time: Duration) {
    let mut state = machine.change();
    state.clock += time;
    state.suspended += time;
}

pub fn maintain(machine: &SimMachine, loaded: &Loaded, order: &Maintain) -> (Report, Result<(), Stopped>) {
    maintain::run(&mut machine.process(), loaded, order, &mut Unwatched)
}

pub fn timer(machine: &SimMachine, loaded: &Loaded) -> Report {
    let (report, done) = maintain(machine, loaded, &Maintain::all(Cause::Timer));
    assert_eq!(done, Ok(()), "{report:?}");
    report
}

pub fn used(machine: &SimMachine) -> u64 {
    let text = machine.process().read_attribute(0, Attribute::MmStat).unwrap();
    text.split_whitespace().nth(2).unwrap().parse().unwrap()
}

pub fn written(machine: &SimMachine) -> u64 {
    machine.look().devices[&0].slots.written * PAGE
}

pub fn done(report: &Report) -> Vec<(&str, &str)> {
    report.actions.iter().map(|action| (action.action.as_str(), action.pages.as_str())).collect()
}

/// Why a policy was skipped. It has to be.
#[track_caller]
pub fn skipped<'r>(report: &'r Report, policy: &str) -> &'r str {
    let Some((_, _, why)) = report.skipped.iter().find(|(_, name, _)| name == policy) else {
        panic!("{policy} was not skipped: {report:?}")
    };
    why
}

pub const BOTH: &str =
    "[maintenance]\nrecompress = true\nwriteback = { device = \"/dev/wb\", daily-budget = \"20MiB\" }";
