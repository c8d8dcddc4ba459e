//! A whole run: gather, plan and carry out, under the lock.

use std::collections::BTreeSet;

use super::apply::{apply as carry_out, remove_spares};
use super::create::{note_mount, save};
use super::error::{Error, ErrorKind};
use super::gather::{
    accounts, all_records, gather, has_chosen_zswap, lines_about_driver, lines_of_fstab, machine, offered,
    other_managers, places, programs, record_of, records, swaps,
};
use super::scratch;
use super::span::planned;
use super::undo::{is_ours, roll_back, take_back};
use host::{Cause, Host, MachineFile, absent};
use logic::config::Loaded;
use logic::config::settings::Settings;
use logic::device::attribute::Attribute;
use logic::facts::Facts;
use logic::outcome::Outcome;
use logic::plan as planner;
use logic::plan::adopt::Found;
use logic::plan::{Activation, Plan};
use logic::proc::SwapLine;
use logic::record::{Progress, Record, Target, Undo};
use logic::request::Request;

/// A plan and its results.
#[derive(Debug)]
pub struct Applied {
    pub plan: Plan,
    /// One per target that had steps.
    pub outcomes: Vec<Outcome>,
}

/// Plans without changing anything.
pub fn plan<H: Host>(host: &H, loaded: &Loaded, activation: Activation) -> Result<Plan, Error> {
    let facts = gather(host, &loaded.settings)?;
    Ok(planned(planner::plan(&loaded.settings, loaded.problems.clone(), &facts, activation)))
}

/// Sets up everything that is configured, including `swapon` and `mount`.
pub fn apply<H: Host>(host: &mut H, loaded: &Loaded) -> Result<Applied, Error> {
    locked(host, |host| {
        recover(host, |_| true)?;
        scratch::sweep(host)?;
        let plan = plan(host, loaded, Activation::Direct)?;
        let outcomes = carry_out(host, &plan);
        settings_follow(host, |_| true)?;
        Ok(Applied { plan, outcomes })
    })
}

/// As [`apply()`] for some targets. Unfinished work on others is left alone: their unit may be running.
pub fn apply_some<H: Host>(
    host: &mut H,
    loaded: &Loaded,
    wanted: &BTreeSet<Target>,
) -> Result<Applied, Error> {
    let some = only(loaded, wanted);
    locked(host, |host| {
        recover(host, |target| wanted.contains(target))?;
        let mut plan = plan(host, &some, Activation::Direct)?;
        plan.groups.retain(|group| wanted.contains(&group.target));
        let outcomes = carry_out(host, &plan);
        settings_follow(host, |_| true)?;
        Ok(Applied { plan, outcomes })
    })
}

/// The configuration of these targets only.
fn only(loaded: &Loaded, wanted: &BTreeSet<Target>) -> Loaded {
    let mut settings = Settings { maintenance: None, ..loaded.settings.clone() };
    settings.devices.retain(|device| wanted.contains(&Target::Device(device.number)));
    settings.ramdisks.retain(|disk| wanted.contains(&Target::Ramdisk(disk.name.clone())));
    settings.zswap = settings.zswap.filter(|_| wanted.contains(&Target::Zswap));
    if let Some(vm) = settings.vm.as_mut().filter(|_| !wanted.contains(&Target::Vm)) {
        vm.levels.clear();
    }
    Loaded { settings, ..loaded.clone() }
}

/// Applies to an active device those changes that can be made while it is in use.
pub fn adapt<H: Host>(host: &mut H, loaded: &Loaded, number: u32) -> Result<(), Error> {
    let target = Target::Device(number);
    let some = only(loaded, &BTreeSet::from([target.clone()]));
    serialised(host, |host| {
        let mut plan = plan(host, &some, Activation::Systemd)?;
        plan.groups.retain(|group| group.target == target && group.resume.is_some());
        let errors = carry_out(host, &plan).into_iter().flat_map(|outcome| outcome.errors);
        errors.reduce(Error::join).map_or(Ok(()), Err)
    })
}

/// Rolls back what interrupted runs left unfinished, before planning: the plan would otherwise rely on what is later
/// removed. What cannot be rolled back now is planned, tried and reported again.
fn recover<H: Host>(host: &mut H, concerned: impl Fn(&Target) -> bool) -> Result<(), Error> {
    for mut record in records(host)?.into_values() {
        if record.progress == Progress::Working && !record.stays && concerned(&record.target) {
            roll_back(host, &mut record);
        }
    }
    remove_spares(host).ok();
    Ok(())
}

/// Prepares one device for activation by PID 1.
pub fn up<H: Host>(host: &mut H, loaded: &Loaded, number: u32) -> Result<Applied, Error> {
    let one = only_device(loaded, number)?;
    locked(host, |host| {
        // Unfinished work on other targets is left alone: their unit may be running.
        let target = Target::Device(number);
        recover(host, |other| *other == target)?;
        scratch::sweep(host)?;
        let mut plan = plan(host, &one, Activation::Systemd)?;
        plan.groups.retain(|group| group.target == target);
        let outcomes = carry_out(host, &plan);
        Ok(Applied { plan, outcomes })
    })
}

/// The configuration of one device only.
fn only_device(loaded: &Loaded, number: u32) -> Result<Loaded, Error> {
    let one = only(loaded, &BTreeSet::from([Target::Device(number)]));
    if one.settings.devices.is_empty() {
        let message = format!("zram{number}: no usable section [zram{number}] in the configuration");
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    Ok(one)
}

/// Takes over a device that is in use as configured, but whose record is missing or damaged. The device is not changed;
/// its record is written anew. False if that was not needed.
pub fn adopt<H: Host>(
    host: &mut H,
    loaded: &Loaded,
    number: u32,
    activation: Activation,
) -> Result<bool, Error> {
    let one = only_device(loaded, number)?;
    locked(host, |host| {
        let facts = gather(host, &one.settings)?;
        let plan = planner::plan(&one.settings, Vec::new(), &facts, activation);
        let found = Found {
            backing: host.read_attribute(number, Attribute::BackingDev).or_else(absent)?,
            has_loop: host.loop_device(number)?.is_some(),
            has_crypt: host.crypt_device(number)?.is_some(),
        };
        match planner::adopt::record(number, &plan, &facts, &found, activation) {
            Ok(Some(mut record)) => {
                record.set_file(host.loop_device(number)?.and_then(|node| host.diskseq(&node)));
                record.set_mapping(host.crypt_device(number)?.and_then(|node| host.diskseq(&node)));
                match record.request.mount().map(|mount| mount.mount_point.clone()) {
                    Some(path) => note_mount(host, &path, &mut record).map(|()| true),
                    None => save(host, &record).map(|()| true),
                }
            }
            Ok(None) => Ok(false),
            Err((kind, why)) => Err(Error::new(kind, format!("zram{number}: {why}"))),
        }
    })
}

/// Applies the settings of `[vm]` that belong to `target`, before or after PID 1 activates the swap.
pub fn up_vm<H: Host>(host: &mut H, loaded: &Loaded, target: &Target) -> Result<Applied, Error> {
    if loaded.has_mistake(&target.to_string()) {
        let message = format!("{target}: no usable section [{target}] in the configuration");
        return Err(Error::new(ErrorKind::Config, message));
    }
    locked(host, |host| {
        recover(host, |other| other == target)?;
        let mut plan = plan(host, loaded, Activation::Systemd)?;
        plan.items.retain(|item| item.target == *target);
        plan.groups.retain(|group| group.target == *target);
        // PID 1 activates the swap, not this plan.
        plan.groups.iter_mut().for_each(|group| group.needs = None);
        let outcomes = carry_out(host, &plan);
        Ok(Applied { plan, outcomes })
    })
}

/// Removes one target; false if there was nothing to remove.
pub fn down<H: Host>(host: &mut H, target: &Target) -> Result<bool, Error> {
    removing(host, |host| {
        let Some(record) = record_of(host, target)? else { return Ok(false) };
        take_away(host, &record)?;
        // If PID 1 activated the swap, it stops the units of the settings, too.
        let ours = record.undo.iter().any(|undo| matches!(undo, Undo::SwapOff { .. }));
        settings_follow(host, |_| ours).map(|()| true)
    })
}

/// Records whether the next removal of a device only resets it: `again` if it is set up again after that. Before Linux 6.12, a reset
/// keeps the algorithms. The first one is set anyway; a device with others is removed.
pub fn note_whether_it_stays<H: Host>(host: &mut H, number: u32, again: bool) -> Result<(), Error> {
    serialised(host, |host| {
        let Some(mut record) = record_of(host, &Target::Device(number))? else { return Ok(()) };
        let is_plain = record.algorithm.as_ref().is_none_or(|used| used.parameters.is_empty())
            && record
                .request
                .device()
                .is_some_and(|it| it.recompression.is_empty() && it.writeback.is_none());
        let stays = again && is_plain && record.owns_device() && record.progress == Progress::Done;
        if record.stays != stays {
            record.stays = stays;
            save(host, &record)?;
        }
        Ok(())
    })
}

/// Restores the kernel settings when no managed swap is active any more.
fn settings_follow<H: Host>(host: &mut H, concerned: impl Fn(&Target) -> bool) -> Result<(), Error> {
    let (records, damaged) = all_records(host)?;
    let swaps = swaps(host)?;
    let numbers: Vec<u32> = swaps.iter().filter_map(SwapLine::zram_number).collect();
    for number in numbers {
        let target = Target::Device(number);
        let perhaps = damaged.iter().any(|damaged| damaged.target.as_ref() == Some(&target));
        let record = records.get(&target);
        if perhaps || record.is_some_and(|record| is_ours(host, number, record).unwrap_or(true)) {
            return Ok(());
        }
    }
    let settings = [Target::Vm, Target::Zswap].into_iter().filter(concerned);
    // zswap is disabled for compressed swap, but enabled for swap on disks.
    let follows = |record: &&Record| !matches!(&record.request, Request::Vm(vm) if vm.zswap() == Some(true));
    let mut settings = settings.filter_map(|target| records.get(&target)).filter(follows);
    settings.try_for_each(|record| take_away(host, record))
}

fn take_away<H: Host>(host: &mut H, record: &Record) -> Result<(), Error> {
    take_back(host, record).into_iter().reduce(Error::join).map_or(Ok(()), Err)
}

/// A target, and the result of removing it.
pub type Removal = (Target, Result<(), Error>);

/// Removes everything that zramd set up. Continues after failures, and reports all of them.
pub fn revert<H: Host>(host: &mut H) -> Result<Vec<Removal>, Error> {
    removing(host, |host| {
        let swept = scratch::sweep(host);
        let (records, damaged) = all_records(host)?;
        let mut records: Vec<Record> =
            records.into_values().map(|record| Record { stays: false, ..record }).collect();
        // Deepest mounts first; settings before the devices, zswap after all swap is gone.
        records.sort_by_key(|record| match record.target {
            Target::Vm => (0, 0),
            Target::Zswap => (2, 0),
            _ => (1, usize::MAX - planner::mount_depth(&record.request)),
        });
        let stays =
            damaged.iter().filter_map(|damaged| Some((damaged.target.clone()?, Err(damaged.refusal()))));
        let gone = records.iter().map(|record| (record.target.clone(), take_away(host, record)));
        let removals: Vec<Removal> = gone.chain(stays).collect();
        if removals.is_empty() {
            swept?;
        }
        Ok(removals)
    })
}

/// Works under the lock, or without it if it cannot be created: nothing can be set up then, but what is there has to be
/// removable.
fn removing<H: Host, T>(host: &mut H, work: impl FnOnce(&mut H) -> Result<T, Error>) -> Result<T, Error> {
    refuse_unprivileged(host)?;
    match host.lock_run() {
        Err(error) if matches!(error.cause, Cause::Locked { .. }) => Err(error.into()),
        _ => {
            let result = work(host);
            host.unlock_run();
            result
        }
    }
}

fn locked<H: Host, T>(host: &mut H, work: impl FnOnce(&mut H) -> Result<T, Error>) -> Result<T, Error> {
    refuse_unprivileged(host)?;
    serialised(host, work)
}

fn refuse_unprivileged<H: Host>(host: &H) -> Result<(), Error> {
    if host.is_privileged() {
        return Ok(());
    }
    let message = "changing swap, mounts and zram devices needs root (CAP_SYS_ADMIN); run it with sudo";
    Err(Error::new(ErrorKind::NotPermitted, message))
}

/// Works under the lock that serialises changes to the machine.
pub(super) fn serialised<H: Host, T>(
    host: &mut H,
    work: impl FnOnce(&mut H) -> Result<T, Error>,
) -> Result<T, Error> {
    host.lock_run()?;
    let result = work(host);
    host.unlock_run();
    result
}

/// Plans with only memory, CPUs and accounts known: for units. Devices, mounts and programs are
/// checked at set-up, whose unit then reports what does not fit.
pub fn plan_elsewhere<H: Host>(host: &H, loaded: &Loaded) -> Plan {
    let mut facts = machine(host);
    if loaded.settings.devices.iter().any(|device| device.yields) {
        facts.other_managers = other_managers(host);
    }
    plan_with(host, loaded, facts, false)
}

/// Checks the configuration, except against what is in use: devices, mounts and disks. For another machine, and for one
/// that is about to change.
pub fn check_elsewhere<H: Host>(host: &H, loaded: &Loaded) -> Plan {
    let mut facts = machine(host);
    facts.is_image = facts.memory.total_kib == 0;
    facts.other_managers = other_managers(host);
    facts.cmdline = host.text(MachineFile::Cmdline).unwrap_or_default();
    facts.driver = lines_about_driver(host, &facts.cmdline);
    facts.fstab = lines_of_fstab(host);
    programs(host, &loaded.settings, &mut facts);
    places(host, &loaded.settings, &mut facts);
    // Without a device to ask, any algorithm may be offered.
    offered(host, &mut facts).ok();
    plan_with(host, loaded, facts, true)
}

fn plan_with<H: Host>(host: &H, loaded: &Loaded, mut facts: Facts, has_fstab: bool) -> Plan {
    accounts(host, &loaded.settings, &mut facts);
    if loaded.settings.devices.iter().any(|device| device.yields) {
        let lines = has_fstab.then_some(facts.fstab.as_slice());
        facts.has_chosen_zswap = has_chosen_zswap(host, &records(host).unwrap_or_default(), lines);
    }
    planned(planner::plan(&loaded.settings, loaded.problems.clone(), &facts, Activation::Direct))
}
