//! Undoes one step, or all steps of a record from the last to the first.

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
use logic::ramdisk::SaveReason;
use logic::ramdisk::place::passthrough;
use logic::record::{Progress, Record, Undo};
use logic::request::{Purpose, Request};
use logic::vm::Tunable;

/// Whether device `number` is still the one that the record describes.
pub(super) fn is_same_device<H: Host>(host: &H, number: u32, record: &Record) -> Result<bool, Error> {
    if !host.device_numbers()?.contains(&number) {
        return Ok(false);
    }
    Ok(record.is_about(gather::diskseq(host, number)?))
}

/// Undoes one step. May be repeated: steps that are undone already succeed.
pub fn one<H: Host>(host: &mut H, record: &Record, undo: &Undo) -> Result<(), Error> {
    match undo {
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
                let saved = host.run_worker(&["kept", "save", name, "--reason", SaveReason::Stop.word()]);
                if saved.is_err() {
                    // It stays mounted until the problem is solved, at its mount point as well, if possible.
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
        Undo::RestoreTunable { tunable, before, ours } => set_if(host, *tunable, ours, before).map(drop),
        Undo::RemoveDirectory { path } => match host.remove_directory(path) {
            // Not empty, or removed already: changes of other programs, which are left alone.
            Err(error) if !error.is(Errno::NOENT) && !error.is(Errno::NOTEMPTY) => Err(error.into()),
            _ => Ok(()),
        },
        Undo::RemoveDevice { .. } | Undo::Reset { .. } | Undo::SwapOff { .. } => Ok(()),
    }
}

/// Sets a setting to `to` only if its value is `from`; whether it was. A missing setting is ignored.
pub(super) fn set_if<H: Host>(host: &mut H, tunable: Tunable, from: &str, to: &str) -> Result<bool, Error> {
    match host.read_tunable(tunable) {
        Ok(found) if found == from => {
            host.write_tunable(tunable, to)?;
            Ok(true)
        }
        Err(error) if !error.is(Errno::NOENT) => Err(error.into()),
        _ => Ok(false),
    }
}

/// Before 6.12, the selected algorithm survives a reset; a device that existed before gets its own back.
fn restore_algorithm<H: Host>(host: &mut H, number: u32, record: &Record) -> Result<(), Error> {
    let Some(found) = record.found_algorithm.as_ref() else { return Ok(()) };
    if gather::device(host, number)?.algorithm.as_ref() == Some(found) {
        return Ok(());
    }
    Ok(host.write_attribute(number, Attribute::CompAlgorithm, found)?)
}

/// Whether memory has space for the contents of the swap on device `number`; the error states both sizes.
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

/// Deactivates swap if it is active, after checking that memory has space for its contents.
pub fn swap_off<H: Host>(host: &mut H, number: u32) -> Result<(), Error> {
    if !gather::swaps(host)?.iter().any(|swap| swap.zram_number() == Some(number)) {
        return Ok(());
    }
    memory_can_take(host, number)?;
    Ok(host.swap_off(number)?)
}

/// Unmounts our mount, if it is still the visible one. Never lazily: the error names the processes that use it.
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

/// Unmounts a bind mount of `place`.
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

/// Undoes all steps after a failure, from the last to the first, and continues after errors. Then removes the record,
/// unless a step could not be undone: the next run tries again.
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

/// Undoes a whole record. On failure, a finished target is left as it was, an unfinished one partly undone.
pub fn take_back<H: Host>(host: &mut H, record: &Record) -> Vec<Error> {
    if matches!(record.request, Request::Vm(_)) && record.progress == Progress::Done {
        // If only some settings could be restored, these must not count as changed by another program.
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

/// Removes a target on request. If a step cannot be undone, those undone before it are done again, so that the target
/// is as before.
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

/// Redoes what [`one`] undid. Only activation keeps the contents of the device, so nothing else is redone.
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
