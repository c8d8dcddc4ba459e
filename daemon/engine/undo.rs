//! Taking back: one undo, and all undos of a record from its end.

use std::time::Duration;

use super::device::create;
use super::error::{Error, ErrorKind, held_open};
use super::gather;
use super::retry::{PATIENCE, until_released, while_busy};
use host::{Errno, Host, HostError, MountSpec, SwapSpec};
use logic::device::attribute::Attribute;
use logic::device::drain::RESERVE_SHARE;
use logic::facts::PathKind;
use logic::human::human;
use logic::plan::wants_discard;
use logic::ramdisk::place::passthrough;
use logic::record::{Progress, Record, Undo};
use logic::request::{Purpose, Request};
use logic::vm::Tunable;

/// Whether device `number` is still the one that the record is about.
pub(super) fn is_same_device<H: Host>(host: &H, number: u32, record: &Record) -> Result<bool, Error> {
    if !host.device_numbers()?.contains(&number) {
        return Ok(false);
    }
    Ok(record.is_about(gather::diskseq(host, number)?))
}

/// Takes one thing back. Safe to repeat: what is gone already is fine.
pub fn one<H: Host>(host: &mut H, record: &Record, undo: &Undo) -> Result<(), Error> {
    match undo {
        Undo::RemoveNewDevices { before, up_to } => create::remove_new(host, before, *up_to),
        Undo::RemoveSpare { number, diskseq } => create::remove_spare(host, *number, *diskseq),
        Undo::RemoveDevice { number } if is_same_device(host, *number, record)? => {
            create::remove(host, *number)
        }
        Undo::Reset { number } if is_same_device(host, *number, record)? => {
            host.unlock_device(*number)?;
            while_busy(host, *number, |host| host.write_attribute(*number, Attribute::Reset, "1"))?;
            restore_algorithm(host, *number, record)
        }
        Undo::SwapOff { number } if is_same_device(host, *number, record)? => swap_off(host, *number),
        Undo::Unmount { mount_point, number } => unmount(host, record, mount_point, *number),
        Undo::HideDisk { name, place, mount_point, kept } => {
            hide(host, place, mount_point)?;
            let mounted = gather::mounts(host)?.iter().any(|mount| mount.mount_point == *place);
            if *kept && mounted && host.path_kind(&passthrough(name)) == PathKind::Missing {
                let saved = host.run_worker(&["kept", "save", name, "--reason", "stop"]);
                if saved.is_err() {
                    // It stays, so that somebody can mend that: also where it was seen, if that can be.
                    host.bind(place, mount_point).ok();
                }
                saved?;
            }
            Ok(())
        }
        Undo::CloseCrypt { number } => while_busy(host, *number, |host| host.close_crypt(*number)),
        Undo::DetachFile { number } => while_busy(host, *number, |host| {
            host.detach_file(*number)?;
            // The kernel releases it on last close, for example by udev.
            match host.loop_device(*number)? {
                None => Ok(()),
                Some(device) => Err(HostError::new(device, "detach", Errno::BUSY)),
            }
        }),
        // Keeps changes made by others.
        Undo::RestoreTunable { tunable, before, ours } => set_if(host, *tunable, ours, before),
        Undo::RemoveDirectory { path } => match host.remove_directory(path) {
            // Somebody put something there, or removed it: both are their business.
            Err(error) if !error.is(Errno::NOENT) && !error.is(Errno::NOTEMPTY) => Err(error.into()),
            _ => Ok(()),
        },
        Undo::RemoveDevice { .. } | Undo::Reset { .. } | Undo::SwapOff { .. } => Ok(()),
    }
}

/// Changes a setting from one value to another; one that is neither there nor that value stays as it is.
fn set_if<H: Host>(host: &mut H, tunable: Tunable, from: &str, to: &str) -> Result<(), Error> {
    match host.read_tunable(tunable) {
        Ok(found) if found == from => Ok(host.write_tunable(tunable, to)?),
        Err(error) if !error.is(Errno::NOENT) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Kernels before 6.12 keep the selected algorithm over a reset; a device that we only borrowed gets its own back.
fn restore_algorithm<H: Host>(host: &mut H, number: u32, record: &Record) -> Result<(), Error> {
    let Some(found) = record.found_algorithm.as_ref() else { return Ok(()) };
    if gather::device(host, number)?.algorithm.as_ref() == Some(found) {
        return Ok(());
    }
    Ok(host.write_attribute(number, Attribute::CompAlgorithm, found)?)
}

/// Whether memory can take what is in the swap on device `number`; an error says how much there is of both.
pub fn memory_can_take<H: Host>(host: &H, number: u32) -> Result<(), Error> {
    let swaps = gather::swaps(host)?;
    let Some(swap) = swaps.iter().find(|swap| swap.zram_number() == Some(number)) else { return Ok(()) };
    let memory = gather::memory(host)?;
    let reserve = memory.total_kib / RESERVE_SHARE;
    if swap.used_kib + reserve > memory.available_kib {
        let message = format!(
            "zram{number}: deactivate swap: its {} would not fit into the {} of memory that are available",
            human(swap.used_kib.saturating_mul(1024)),
            human(memory.available_kib.saturating_mul(1024)),
        );
        return Err(Error::new(ErrorKind::InsufficientMemory, message));
    }
    Ok(())
}

/// Deactivates swap if it is active, after checking that memory can take what is in it.
pub fn swap_off<H: Host>(host: &mut H, number: u32) -> Result<(), Error> {
    if !gather::swaps(host)?.iter().any(|swap| swap.zram_number() == Some(number)) {
        return Ok(());
    }
    memory_can_take(host, number)?;
    Ok(host.swap_off(number)?)
}

/// Unmounts what we mounted, if it is still what is seen there. Never lazily: who keeps it busy is named.
fn unmount<H: Host>(
    host: &mut H,
    record: &Record,
    mount_point: &str,
    number: Option<u32>,
) -> Result<(), Error> {
    let mounts = gather::mounts(host)?;
    let Some(mounted) = mounts.iter().rev().find(|mount| mount.mount_point == mount_point) else {
        return Ok(());
    };
    let ours = match number {
        None => mounted.fs_type == "tmpfs",
        Some(number) => {
            is_same_device(host, number, record)?
                && gather::device(host, number)?.device.is_some_and(|device| mounted.is_on(number, device))
        }
    };
    if !ours {
        return Ok(());
    }
    unmount_patiently(host, mount_point)
}

/// Takes a bind mount of what is mounted at `place` away.
fn hide<H: Host>(host: &mut H, place: &str, mount_point: &str) -> Result<(), Error> {
    let mounts = gather::mounts(host)?;
    let device_at =
        |path: &str| mounts.iter().rev().find(|mount| mount.mount_point == path).map(|mount| mount.device);
    match (device_at(mount_point), device_at(place)) {
        (Some(shown), Some(held)) if shown == held => unmount_patiently(host, mount_point),
        _ => Ok(()),
    }
}

fn unmount_patiently<H: Host>(host: &mut H, mount_point: &str) -> Result<(), Error> {
    let deadline = host.now() + PATIENCE;
    loop {
        match host.unmount(mount_point) {
            Err(error) if error.is(Errno::BUSY) => {
                let users = host.mount_users(mount_point);
                if host.now() >= deadline {
                    return Err(held_open(&error, &users));
                }
                host.sleep(Duration::from_millis(100));
            }
            other => return Ok(other?),
        }
    }
}

/// Takes everything back after a failure, from the end, whatever else fails; then the record goes, unless something
/// could not be taken back: then it stays, and the next run tries again.
pub fn roll_back<H: Host>(host: &mut H, record: &mut Record) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut left = Vec::new();
    for undo in std::mem::take(&mut record.undo).into_iter().rev() {
        if let Err(error) = one(host, record, &undo) {
            errors.push(error);
            left.insert(0, undo);
        }
    }
    record.undo = left;
    let ended = if record.undo.is_empty() {
        host.remove_record(&record.file_name()).map_err(Error::from)
    } else {
        create::save(host, record)
    };
    errors.extend(ended.err());
    errors
}

/// Takes a whole record back: one that was finished is left as it was when that fails, an unfinished one as far as it goes.
pub fn take_back<H: Host>(host: &mut H, record: &Record) -> Vec<Error> {
    if matches!(record.request, Request::Vm(_)) && record.progress == Progress::Done {
        // Half of them taken back must not look like values that another program has chosen.
        let mut record = Record { progress: Progress::Working, ..record.clone() };
        return match create::save(host, &record) {
            Ok(()) => roll_back(host, &mut record),
            Err(error) => vec![error],
        };
    }
    match record.progress {
        Progress::Done => release(host, record).err().into_iter().collect(),
        Progress::Working => roll_back(host, &mut record.clone()),
    }
}

/// Takes a target away on request. When one thing cannot be taken back, what was taken back before it is done again,
/// so that the target is left as it was.
fn release<H: Host>(host: &mut H, record: &Record) -> Result<(), Error> {
    for undo in &record.undo {
        if let Undo::Reset { number } = undo
            && is_same_device(host, *number, record)?
        {
            until_released(host, *number)?;
        }
    }
    for (index, undo) in record.undo.iter().enumerate().rev() {
        if let Err(error) = one(host, record, undo) {
            let again = record.undo[index..].iter().filter_map(|undo| redo(host, record, undo).err());
            return Err(again.fold(error, Error::join));
        }
    }
    Ok(host.remove_record(&record.file_name())?)
}

/// Puts back what [`one`] took away, as far as contents allow: only activation keeps them.
fn redo<H: Host>(host: &mut H, record: &Record, undo: &Undo) -> Result<(), Error> {
    if let Undo::HideDisk { name, place, mount_point, .. } = undo {
        let mounts = gather::mounts(host)?;
        let is_mounted = |path: &str| mounts.iter().any(|mounted| mounted.mount_point == path);
        let shown = is_mounted(mount_point) || host.path_kind(&passthrough(name)) != PathKind::Missing;
        if is_mounted(place) && !shown {
            host.bind(place, mount_point)?;
        }
        return Ok(());
    }
    let Request::Device(request) = &record.request else { return Ok(()) };
    match (undo, &request.purpose) {
        (Undo::SwapOff { number }, Purpose::Swap { priority, options }) => {
            if gather::swaps(host)?.iter().any(|swap| swap.zram_number() == Some(*number)) {
                return Ok(());
            }
            Ok(host.swap_on(*number, SwapSpec { priority: *priority, discard: wants_discard(options) })?)
        }
        (Undo::Unmount { number: Some(number), .. }, Purpose::Filesystem { fs_type, mount, .. }) => {
            if gather::mounts(host)?.iter().any(|mounted| mounted.mount_point == mount.mount_point) {
                return Ok(());
            }
            Ok(host.mount(&MountSpec {
                source: format!("/dev/zram{number}"),
                mount_point: mount.mount_point.clone(),
                fs_type: fs_type.clone(),
                options: mount.options.clone(),
            })?)
        }
        (Undo::RemoveDirectory { path }, _) => match host.make_directory(path) {
            Err(error) if !error.is(Errno::EXIST) => Err(error.into()),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}
