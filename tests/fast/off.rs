//! `zramdctl off` on the simulated machine with a simulated PID 1; the lab has real ones.

use engine::Error;
use engine::off::{Removal, Units, hidden, off};
use engine::reload::{self, Scope, Survey};
use host::{Host, MountSpec};
use logic::config::{self, Loaded};
use logic::device::attribute::Attribute;
use logic::error::ErrorKind;
use logic::plan::Activation;
use logic::ramdisk::place::place;
use logic::ramdisk::{Persist, UnitRamdisk};
use logic::record::Target;
use sim::kernel::KernelConfig;
use sim::{SimHost, SimMachine, Swap};

fn loaded(text: &str) -> Loaded {
    config::load(&[("/etc/zramd/zramd.toml".into(), text.to_owned())], "")
}

const SWAPS: &str = "[zram0]\nzram-size = 1024\n[zram1]\nzram-size = 512\n";

/// PID 1, which writes down what it does.
struct Pid1<'a> {
    machine: &'a SimMachine,
    /// The verb and unit that fail.
    fails: &'a str,
    done: Vec<String>,
}

impl Pid1<'_> {
    fn does(&mut self, what: String) -> Result<(), Error> {
        let fails = what == self.fails;
        self.done.push(what);
        if fails { Err(Error::failed("no")) } else { Ok(()) }
    }
}

impl Units<SimHost> for Pid1<'_> {
    fn quiet(&mut self, _: &mut SimHost) -> Result<(), Error> {
        self.does("quiet".to_owned())
    }

    fn resume(&mut self, _: &mut SimHost) -> Result<(), Error> {
        self.does("resume".to_owned())
    }

    fn save(&mut self, _: &mut SimHost, name: &str) -> Result<(), Error> {
        self.does(format!("save {name}"))
    }

    fn start(&mut self, _: &mut SimHost, unit: &str) -> Result<(), Error> {
        self.does(format!("start {unit}"))
    }

    fn stop(&mut self, host: &mut SimHost, unit: &str) -> Result<(), Error> {
        self.does(format!("stop {unit}"))?;
        for number in [0, 1] {
            if unit == format!("dev-zram{number}.swap") {
                host.swap_off(number)?;
            }
            if unit == format!("zramd-setup@zram{number}.service") {
                engine::down(&mut self.machine.process(), &Target::Device(number))?;
            }
        }
        Ok(())
    }

    fn disable(&mut self, _: &mut SimHost) -> Result<(), Error> {
        self.does("disable".to_owned())
    }
}

fn tmpfs(machine: &SimMachine, path: &str) {
    machine.change().add_directories(path);
    let tmpfs = MountSpec {
        source: "tmpfs".to_owned(),
        mount_point: path.to_owned(),
        fs_type: "tmpfs".to_owned(),
        options: String::new(),
    };
    machine.process().mount(&tmpfs).unwrap();
}

/// Two swaps that PID 1 has activated, and two RAM disks that it has mounted.
fn machine() -> (SimMachine, Survey) {
    let machine = SimMachine::new(KernelConfig::full());
    for number in [0, 1] {
        engine::up(&mut machine.process(), &loaded(SWAPS), number).unwrap();
        machine.change().swaps.push(Swap { number, priority: 100, discard: true, used_kib: 1 << 10 });
    }
    let disk = |name: &str, persist| UnitRamdisk {
        name: name.to_owned(),
        mount_point: format!("/{name}"),
        persist,
        ..UnitRamdisk::default()
    };
    let disks = vec![disk("kept", Persist::Snapshot), disk("scratch", Persist::None)];
    for disk in &disks {
        tmpfs(&machine, &disk.mount_point);
    }
    let scope = Scope { ramdisks: disks, ..Scope::default() };
    let survey = reload::survey(&machine.process(), &loaded(""), Activation::Managed, &scope).unwrap();
    (machine, survey)
}

fn switched_off(fails: &str) -> (SimMachine, Result<Vec<Removal>, Error>, Vec<String>) {
    let (machine, survey) = machine();
    let mut pid_1 = Pid1 { machine: &machine, fails, done: Vec::new() };
    let removed = off(&mut machine.process(), &mut pid_1, &survey);
    let done = pid_1.done;
    (machine, removed, done)
}

const DISKS: [&str; 6] = [
    "quiet",
    "stop kept.mount",
    "save kept",
    "stop run-zramd-ramdisk-kept.mount",
    "stop scratch.mount",
    "stop run-zramd-ramdisk-scratch.mount",
];
const SWAP_UNITS: [&str; 5] = [
    "disable",
    "stop dev-zram0.swap",
    "stop zramd-setup@zram0.service",
    "stop dev-zram1.swap",
    "stop zramd-setup@zram1.service",
];

#[test]
fn disks_are_saved_first_and_swap_stops_when_nothing_starts_it_again() {
    let (machine, removed, done) = switched_off("");
    assert_eq!(done, [&DISKS[..], &SWAP_UNITS].concat());
    let removed = removed.unwrap();
    let names: Vec<String> = removed.iter().map(|(target, _)| target.to_string()).collect();
    assert_eq!(names, ["ramdisk.kept", "ramdisk.scratch", "zram0", "zram1"]);
    assert!(removed.iter().all(|(_, result)| result.is_ok()), "{removed:?}");
    assert!(machine.look().swaps.is_empty());
}

#[test]
fn a_disk_that_stays_keeps_everything_that_saves_it() {
    for (fails, again) in [("stop kept.mount", None), ("save kept", Some("start kept.mount"))] {
        let (machine, removed, done) = switched_off(fails);
        let removed = removed.unwrap();
        assert_eq!(removed.len(), 2, "{removed:?}");
        assert!(removed[0].1.as_ref().is_err_and(|error| error.message.contains("ramdisk.kept")));
        assert_eq!(removed[1].1, Ok(()), "others go");
        assert!(!done.contains(&"disable".to_owned()), "{done:?}");
        assert!(!done.contains(&"stop run-zramd-ramdisk-kept.mount".to_owned()), "{done:?}");
        assert_eq!(done.last().map(String::as_str), Some("resume"));
        assert!(again.is_none_or(|again| done.iter().any(|done| done == again)), "{done:?}");
        assert_eq!(machine.look().swaps.len(), 2);
    }
}

#[test]
fn a_swap_that_memory_cannot_take_is_refused_before_anything_changes() {
    let (machine, survey) = machine();
    machine.change().available_kib = 0;
    let mut pid_1 = Pid1 { machine: &machine, fails: "", done: Vec::new() };
    let refused = off(&mut machine.process(), &mut pid_1, &survey).unwrap_err();
    assert_eq!((refused.kind, pid_1.done), (ErrorKind::InsufficientMemory, vec![]));
}

#[test]
fn a_unit_that_fails_is_reported_and_the_others_go() {
    let (machine, removed, done) = switched_off("stop dev-zram0.swap");
    let removed = removed.unwrap();
    assert!(removed[2].1.is_err() && removed[3].1.is_ok(), "{removed:?}");
    assert!(!done.contains(&"stop zramd-setup@zram0.service".to_owned()), "{done:?}");
    assert_eq!(machine.look().swaps.len(), 1);

    let (machine, removed, done) = switched_off("disable");
    assert_eq!(
        (removed.map_err(|error| error.message), done.last().unwrap().as_str()),
        (Err("no".into()), "resume")
    );
    assert_eq!(machine.look().swaps.len(), 2);
}

#[test]
fn a_disk_whose_mount_point_was_unmounted_by_hand_is_found_and_saved() {
    let (machine, survey) = machine();
    assert_eq!(hidden(&survey), []);
    let disks = survey.facts.unit_ramdisks;
    machine.process().unmount(b"/kept", &logic::record::MountId::default()).unwrap();
    tmpfs(&machine, &place("kept"));
    let scope = Scope { ramdisks: disks, ..Scope::default() };
    let mut survey = reload::survey(&machine.process(), &loaded(""), Activation::Managed, &scope).unwrap();
    survey.changes.retain(|change| change.target != Target::Ramdisk("kept".to_owned()));
    let hidden = hidden(&survey);
    assert_eq!(hidden.len(), 1, "{hidden:?}");
    survey.changes.extend(hidden);
    let mut pid_1 = Pid1 { machine: &machine, fails: "", done: Vec::new() };
    off(&mut machine.process(), &mut pid_1, &survey).unwrap();
    for done in ["save kept", "stop run-zramd-ramdisk-kept.mount"] {
        assert!(pid_1.done.contains(&done.to_owned()), "{:?}", pid_1.done);
    }
}

/// Its swap unit would stop the swap of the other program.
#[test]
fn a_device_that_another_program_has_taken_over_stays_as_it_is() {
    let (machine, _) = machine();
    let other = &mut machine.process();
    other.swap_off(1).unwrap();
    other.write_attribute(1, Attribute::Reset, "1").unwrap();
    other.write_attribute(1, Attribute::DiskSize, "48M").unwrap();
    machine.change().swaps.push(Swap { number: 1, priority: 1, discard: false, used_kib: 0 });
    let theirs = machine.look().devices[&1].clone();
    let scope = Scope::default();
    let survey = reload::survey(&machine.process(), &loaded(""), Activation::Managed, &scope).unwrap();
    let mut pid_1 = Pid1 { machine: &machine, fails: "", done: Vec::new() };
    let removed = off(&mut machine.process(), &mut pid_1, &survey).unwrap();
    let refused: Vec<_> = removed.iter().filter(|(_, result)| result.is_err()).collect();
    assert_eq!(refused.len(), 1, "{removed:?}");
    assert_eq!(refused[0].0, Target::Device(1));
    assert_eq!(refused[0].1.as_ref().unwrap_err().kind, ErrorKind::Unmanaged);
    assert!(
        pid_1.done.contains(&"disable".to_owned()) && pid_1.done.contains(&"stop dev-zram0.swap".to_owned())
    );
    assert!(!pid_1.done.iter().any(|done| done.contains("zram1")), "{:?}", pid_1.done);
    assert_eq!(machine.look().devices[&1], theirs);
}
