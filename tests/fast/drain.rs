//! Draining before hibernation and refilling after it, on the simulated machine with a simulated PID 1; the lab has real
//! ones.

use engine::Error;
use engine::device::drain::{Units, drain, refill};
use host::{Errno, Host};
use logic::config::{self, Loaded};
use logic::device::drain::{Drained, Obstacle};
use logic::proc::SwapLine;
use logic::record::Target;
use sim::kernel::KernelConfig;
use sim::{Fault, SimHost, SimMachine, Swap, survive};

fn loaded() -> Loaded {
    let text = "[zram0]\nzram-size = 1024\nswap-priority = 5\n[zram1]\nzram-size = 512\nswap-priority = 9\n";
    config::load(&[("/etc/zramd/zramd.toml".into(), text.to_owned())], "")
}

/// PID 1 starts the swap unit of a device, if there is one.
fn pid_1_starts(machine: &SimMachine, number: u32, used_mib: u64) {
    let is_on = on(machine).iter().any(|(on, _)| *on == number);
    if is_on || drop_ins(machine).contains(&number) {
        return;
    }
    engine::up(&mut machine.process(), &loaded(), number).unwrap();
    let priority = if number == 0 { 5 } else { 9 };
    machine.change().swaps.push(Swap { number, priority, discard: true, used_kib: used_mib << 10 });
}

/// PID 1, with faults.
struct Pid1<'a> {
    machine: &'a SimMachine,
    /// Stopping this swap fails.
    fails: Option<u32>,
    /// Reports success without doing anything.
    lies: bool,
    /// Units that no longer exist.
    gone: Vec<u32>,
}

fn pid_1(machine: &SimMachine) -> Pid1<'_> {
    Pid1 { machine, fails: None, lies: false, gone: vec![] }
}

impl Units<SimHost> for Pid1<'_> {
    fn follow(&mut self, _: &mut SimHost) -> Result<(), Error> {
        Ok(())
    }

    fn stop(&mut self, host: &mut SimHost, number: u32) -> Result<(), Error> {
        match self.fails {
            Some(fails) if fails == number => Err(Error::failed("no")),
            _ if self.lies => Ok(()),
            _ => {
                host.swap_off(number)?;
                engine::down(&mut self.machine.process(), &Target::Device(number)).map(drop)
            }
        }
    }

    fn start(&mut self, _: &mut SimHost, numbers: &[u32]) -> Result<Vec<u32>, Error> {
        let known: Vec<u32> = numbers.iter().filter(|number| !self.gone.contains(number)).copied().collect();
        if !self.lies {
            for number in &known {
                pid_1_starts(self.machine, *number, 0);
            }
        }
        Ok(known)
    }
}

/// Two swaps of ours with this usage, available memory, and a disk with free swap.
fn machine(used_mib: [u64; 2], available_mib: u64, disk_mib: u64) -> SimMachine {
    let machine = SimMachine::new(KernelConfig::full());
    pid_1_starts(&machine, 0, used_mib[0]);
    pid_1_starts(&machine, 1, used_mib[1]);
    let mut state = machine.change();
    (state.ram_kib, state.available_kib) = (1000 << 10, available_mib << 10);
    if disk_mib > 0 {
        let size_kib = (disk_mib + 7) << 10;
        state.disk_swaps =
            vec![SwapLine { path: "/swap file".into(), size_kib, used_kib: 7 << 10, priority: 1 }];
    }
    drop(state);
    machine
}

fn on(machine: &SimMachine) -> Vec<(u32, i32)> {
    let mut found: Vec<_> = machine.look().swaps.iter().map(|swap| (swap.number, swap.priority)).collect();
    found.sort_unstable();
    found
}

fn drop_ins(machine: &SimMachine) -> Vec<u32> {
    machine.process().drained().unwrap()
}

fn drained_by(pid_1: &mut Pid1<'_>) -> (Result<(), Error>, Vec<(u32, Drained)>) {
    let mut told = Vec::new();
    let tell = |number, outcome| told.push((number, outcome));
    (drain(&mut pid_1.machine.process(), pid_1, tell), told)
}

fn drained(machine: &SimMachine) -> (Result<(), Error>, Vec<(u32, Drained)>) {
    drained_by(&mut pid_1(machine))
}

fn refilled(machine: &SimMachine) -> Result<Vec<u32>, Error> {
    refill(&mut machine.process(), &mut pid_1(machine))
}

#[test]
fn swap_that_fits_is_drained_and_restored() {
    let machine = machine([200, 100], 400, 50);
    let before = on(&machine);
    let (done, told) = drained(&machine);
    done.unwrap();
    // The swap with the highest priority is drained first.
    assert_eq!(told, [(1, Drained::Off(100 << 10)), (0, Drained::Off(200 << 10))]);
    assert_eq!((on(&machine), drop_ins(&machine)), (vec![], vec![0, 1]));
    // Starting a service has no effect on drained swaps.
    pid_1_starts(&machine, 0, 0);
    assert_eq!(on(&machine), []);
    assert_eq!(refilled(&machine).unwrap(), [0, 1]);
    assert_eq!((on(&machine), drop_ins(&machine)), (before, vec![]));
    assert_eq!(refilled(&machine).unwrap(), [0; 0], "once is enough");
}

#[test]
fn swap_that_does_not_fit_stays_on() {
    let machine = machine([300, 100], 200, 50);
    let (done, told) = drained(&machine);
    done.unwrap();
    let obstacle = Obstacle::NoRoom {
        used_kib: 300 << 10,
        taken_kib: 100 << 10,
        available_kib: 200 << 10,
        disk_kib: 50 << 10,
    };
    assert_eq!(told, [(0, Drained::Stays(obstacle)), (1, Drained::Off(100 << 10))]);
    assert_eq!((on(&machine), drop_ins(&machine)), (vec![(0, 5)], vec![1]));
    refilled(&machine).unwrap();
    assert_eq!(on(&machine), [(0, 5), (1, 9)]);
}

#[test]
fn without_swap_on_a_disk_nothing_is_drained() {
    let machine = machine([1, 1], 900, 0);
    let (done, told) = drained(&machine);
    done.unwrap();
    assert_eq!(told, [1, 0].map(|number| (number, Drained::Stays(Obstacle::NoDisk))));
    assert_eq!((on(&machine).len(), drop_ins(&machine)), (2, vec![]));
}

#[test]
fn swap_that_was_switched_off_by_hand_stays_off() {
    let machine = machine([1, 1], 900, 100);
    pid_1(&machine).stop(&mut machine.process(), 1).unwrap();
    let (done, told) = drained(&machine);
    done.unwrap();
    assert_eq!(told, [(0, Drained::Off(1 << 10))]);
    refilled(&machine).unwrap();
    assert_eq!(on(&machine), [(0, 5)]);
}

#[test]
fn swap_of_other_programs_and_without_a_unit_is_not_drained() {
    let machine = machine([1, 1], 900, 100);
    machine.change().records.remove("zram1.json");
    engine::apply(
        &mut machine.process(),
        &config::load(&[("a".into(), "[zram5]\nzram-size = 64\n".into())], ""),
    )
    .unwrap();
    let before = on(&machine);
    let (done, told) = drained(&machine);
    done.unwrap();
    assert_eq!(told, [(5, Drained::Stays(Obstacle::NoUnit)), (0, Drained::Off(1 << 10))]);
    assert_eq!(on(&machine), before[1..]);
}

#[test]
fn after_a_failure_all_swap_is_restored() {
    let machine = machine([1, 1], 900, 100);
    let before = on(&machine);
    let (done, told) = drained_by(&mut Pid1 { fails: Some(0), ..pid_1(&machine) });
    assert_eq!(done.unwrap_err().to_string(), "no");
    assert_eq!(told, [(1, Drained::Off(1 << 10))]);
    assert_eq!((on(&machine), drop_ins(&machine)), (vec![(0, 5)], vec![0, 1]));
    refilled(&machine).unwrap();
    assert_eq!((on(&machine), drop_ins(&machine)), (before, vec![]));
}

#[test]
fn the_result_of_pid_1_is_verified() {
    let machine = machine([1, 1], 900, 100);
    let lies = || Pid1 { lies: true, ..pid_1(&machine) };
    assert!(drained_by(&mut lies()).0.unwrap_err().to_string().contains("zram1"));
    assert_eq!(refilled(&machine).unwrap(), [0, 1], "they were on all the time");
    drained(&machine).0.unwrap();
    let error = refill(&mut machine.process(), &mut lies()).unwrap_err().to_string();
    assert!(error.contains("zram0") && error.contains("zram1"), "{error}");
    assert_eq!(drop_ins(&machine), [0; 0], "so that it can be started by hand");
}

#[test]
fn swap_that_is_no_longer_configured_is_no_failure() {
    let machine = machine([1, 1], 900, 100);
    drained(&machine).0.unwrap();
    let known = refill(&mut machine.process(), &mut Pid1 { gone: vec![0], ..pid_1(&machine) });
    assert_eq!(known.unwrap(), [1]);
    assert_eq!((on(&machine), drop_ins(&machine)), (vec![(1, 9)], vec![]));
}

/// A kill or failure at any call: drained swaps have a drop-in, and swaps with a drop-in come back.
#[test]
fn a_kill_or_failure_never_leaves_swap_off() {
    for fault in [Fault::KillBefore, Fault::KillAfter, Fault::Fail(Errno::NOSPC)] {
        let mut ended = false;
        for call in 1..40 {
            let machine = machine([1, 1], 900, 100);
            let before = on(&machine);
            machine.script(call, fault);
            let result = survive(|| drained(&machine));
            ended = machine.take_transcript().len() < call;
            let off = before.iter().filter(|swap| !on(&machine).contains(swap));
            let off: Vec<u32> = off.map(|(number, _)| *number).collect();
            let marked = drop_ins(&machine);
            assert!(off.iter().all(|number| marked.contains(number)), "{fault:?} at {call}: {result:?}");
            refilled(&machine).unwrap();
            assert_eq!((on(&machine), drop_ins(&machine)), (before, vec![]), "{fault:?} at {call}");
            if ended {
                break;
            }
        }
        assert!(ended, "{fault:?}: more calls than were tried");
    }
}
