//! Undoes one step, or all steps of a record from the last to the first.

use std::time::Duration;

use super::create;
use super::error::{Error, ErrorKind, held_open};
use super::gather;
use super::retry::{PATIENCE, while_busy};
use super::span::span;
use host::{Errno, Host, HostError, MountSpec, SwapSpec};
use logic::device::attribute::Attribute;
use logic::device::drain::RESERVE_SHARE;
use logic::human::human;
use logic::order::{Order, RamdiskOrder};
use logic::path_kind::PathKind;
use logic::plan::wants_discard;
use logic::proc::{self, MountLine, SwapLine};
use logic::ramdisk::SaveReason;
use logic::ramdisk::place::passthrough;
use logic::record::{MountId, Progress, Record, Target, Undo};
use logic::request::{Purpose, Request};
use logic::vm::Tunable;

/// Errors of removing a directory because of which it stays.
const DIRECTORY_STAYS: [Errno; 6] =
    [Errno::NOENT, Errno::NOTEMPTY, Errno::ROFS, Errno::ACCES, Errno::PERM, Errno::NOSPC];

/// Whether device `number` is still the one that the record describes.
///
/// # Errors
///
/// Also if another program has set it up since: then it is not touched.
pub(super) fn is_same_device<H: Host>(host: &H, number: u32, record: &Record) -> Result<bool, Error> {
    if !host.device_numbers()?.contains(&number) || !record.is_of(gather::diskseq(host, number)?) {
        return Ok(false);
    }
    let differs = record.taken_over(&gather::identify(host, number)?);
    differs.map_or(Ok(true), |differs| Err(record.refusal(&differs)))
}

/// As [`is_same_device`], for what discards its contents: also an error if it is raw, and other programs have written to it.
fn may_discard<H: Host>(host: &H, number: u32, record: &Record) -> Result<bool, Error> {
    if !is_same_device(host, number, record)? {
        return Ok(false);
    }
    let written = record.not_ours(&gather::identify(host, number)?);
    written.map_or(Ok(true), |written| Err(record.refusal(&written)))
}

/// As [`is_same_device`]; false if another program has set it up since.
pub(super) fn is_ours<H: Host>(host: &H, number: u32, record: &Record) -> Result<bool, Error> {
    match is_same_device(host, number, record) {
        Err(error) if error.kind == ErrorKind::Unmanaged => Ok(false),
        other => other,
    }
}

/// Undoes one step. May be repeated: steps that are undone already succeed.
pub fn one<H: Host>(host: &mut H, record: &mut Record, undo: &Undo) -> Result<(), Error> {
    let begun = host.monotonic();
    let done = undo_one(host, record, undo);
    let time = host.monotonic().saturating_sub(begun).as_micros();
    match &done {
        Ok(()) => tracing::debug!("{}: {undo}: done after {time} µs", record.target),
        Err(error) => tracing::debug!("{}: {undo}: {error}, after {time} µs", record.target),
    }
    done
}

fn undo_one<H: Host>(host: &mut H, record: &mut Record, undo: &Undo) -> Result<(), Error> {
    match undo {
        Undo::RemoveSpare { number, diskseq } => create::remove_spare(host, *number, *diskseq),
        Undo::RemoveDevice { number } if may_discard(host, *number, record)? => create::remove(host, *number),
        Undo::Reset { number } if may_discard(host, *number, record)? => {
            host.unlock_device(*number)?;
            while_busy(host, *number, |host| host.write_attribute(*number, Attribute::Reset, "1"))?;
            restore_algorithm(host, *number, record)
        }
        Undo::SwapOff { number } if is_same_device(host, *number, record)? => swap_off(host, *number),
        Undo::Unmount { mount_point, number, mounted } => {
            if let Some(number) = number
                && !is_same_device(host, *number, record)?
            {
                return Ok(());
            }
            let number = *number;
            let device = number.map(|number| gather::device(host, number)).transpose()?;
            let device = device.and_then(|facts| number.zip(facts.device));
            unmount(host, mount_point, mounted.as_ref(), |mount| match device {
                None => Owner::perhaps(
                    mount.fs_type == "tmpfs" && mounted.is_none_or(|mounted| mounted.device == mount.device),
                ),
                Some((number, device)) => Owner::surely(mount.is_on(number, device)),
            })
        }
        Undo::HideRamdisk { name, place, mount_point, kept, mounted } => {
            let is_passed_through = host.path_kind(&passthrough(name)) != PathKind::Missing;
            hold(host, record, place, mounted.as_ref())?;
            let mounts = gather::mounts(host)?;
            let held = proc::top(&mounts, place);
            if let Some(held) = held {
                unmount(host, mount_point, mounted.as_ref(), |mount| {
                    Owner::surely(mount.device == held.device && mount.id != held.id)
                })?;
            }
            if *kept && held.is_some() && !is_passed_through {
                host.run_worker(&Order::Save(RamdiskOrder {
                    reason: SaveReason::Stop,
                    ..RamdiskOrder::named(name)
                }))?;
            }
            Ok(())
        }
        Undo::CloseCrypt { number, diskseq } => {
            let found = host.crypt_device(*number)?;
            if is_another(host, found, *diskseq) {
                return Ok(());
            }
            while_busy(host, *number, |host| host.close_crypt(*number))
        }
        Undo::DetachFile { number, diskseq } => while_busy(host, *number, |host| {
            let found = host.loop_device(*number)?;
            if is_another(host, found, *diskseq) {
                return Ok(());
            }
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
            // Not empty, or removed already: changes of other programs, which are left alone. An empty directory below a
            // read-only one may stay.
            Err(error) if DIRECTORY_STAYS.iter().any(|errno| error.is(*errno)) => Ok(()),
            // So does one that another program has mounted on.
            Err(error) if error.is(Errno::BUSY) && is_mount_point(host, path)? => Ok(()),
            other => Ok(other?),
        },
        Undo::RemoveSwapFile(file) => {
            let swaps = gather::swaps(host)?;
            if let Some(swap) = swaps.iter().find(|swap| swap.path == *file.path) {
                has_room(host, swap, &file.path)?;
            }
            Ok(host.remove_swap_file(file)?)
        }
        Undo::RemoveDevice { .. } | Undo::Reset { .. } | Undo::SwapOff { .. } => Ok(()),
    }
}

fn is_mount_point<H: Host>(host: &H, path: &str) -> Result<bool, Error> {
    Ok(proc::top(&gather::mounts(host)?, path).is_some())
}

/// Mounts a RAM disk at its private place again if only its mount point is left: it is saved from there.
fn hold<H: Host>(
    host: &mut H,
    record: &mut Record,
    place: &str,
    mounted: Option<&MountId>,
) -> Result<(), Error> {
    let Some(id) = mounted.filter(|id| id.id != 0) else { return Ok(()) };
    let mounts = gather::mounts(host)?;
    let shown = mounts.iter().find(|mount| mount.id == id.id && mount.device == id.device);
    let Some(shown) = shown.filter(|_| proc::top(&mounts, place).is_none()) else {
        return Ok(());
    };
    host.bind(&shown.mount_point.lossy(), place)?;
    create::note_mount(host, place, record)?;
    if host.mount_id(place)?.is_some_and(|found| found.device == id.device) {
        return Ok(());
    }
    // A user has moved another mount to that path meanwhile.
    host.unmount(place.as_bytes(), &MountId::default())?;
    Err(Error::failed(format!("{place}: nothing could be saved, because {} was moved", shown.mount_point)))
}

/// Whether a block device with the name of ours is one of another program.
fn is_another<H: Host>(host: &H, node: Option<String>, ours: Option<u64>) -> bool {
    let found = node.and_then(|node| host.diskseq(&node));
    found.zip(ours).is_some_and(|(found, ours)| found != ours)
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
    has_room(host, swap, &format!("zram{number}"))
}

fn has_room<H: Host>(host: &H, swap: &SwapLine, name: &str) -> Result<(), Error> {
    let memory = gather::memory(host)?;
    let reserve = memory.total_kib / RESERVE_SHARE;
    if swap.used_kib + reserve > memory.available_kib {
        let message = format!(
            "{name}: deactivate swap: its {} would not fit into the {} of memory that are available",
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

/// Whose file system a mount has, as far as its device number tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Ours, whichever program has mounted it.
    Us,
    /// Perhaps ours: the kernel reuses the numbers of tmpfs.
    Perhaps,
    Others,
}

impl Owner {
    fn surely(ours: bool) -> Owner {
        if ours { Owner::Us } else { Owner::Others }
    }

    fn perhaps(ours: bool) -> Owner {
        if ours { Owner::Perhaps } else { Owner::Others }
    }
}

/// Unmounts our mount, until it is seen to be gone: a user may rename the directories above it at any time. Never lazily:
/// the error names the processes that use it.
fn unmount<H: Host>(
    host: &mut H,
    mount_point: &str,
    mounted: Option<&MountId>,
    owner: impl Fn(&MountLine) -> Owner,
) -> Result<(), Error> {
    let deadline = host.now() + PATIENCE;
    loop {
        let mounts = gather::mounts(host)?;
        let Some(found) = find_mount(host, &mounts, mount_point, mounted, &owner) else { return Ok(()) };
        let path = &found.mount_point;
        if let Some(cover) = proc::top(&mounts, path).filter(|cover| cover.id != found.id) {
            let message = format!(
                "{path} is covered by another mount ({} on {}); run `umount {path}`, and try again",
                cover.fs_type, cover.source
            );
            return Err(Error::new(ErrorKind::InUse, message));
        }
        let any = MountId { namespace: host.mount_namespace(), id: found.id, unique: 0, device: (0, 0) };
        // With our file system, it does not matter which program has mounted it.
        let id = mounted.filter(|_| owner(found) == Owner::Perhaps).copied().unwrap_or(any);
        let Err(error) = host.unmount(path.as_bytes(), &id) else { continue };
        let now = host.mount_id(&path.lossy()).ok().flatten();
        if error.is(Errno::STALE) && now.is_some_and(|now| now.id == found.id && !now.is(&id)) {
            // Another mount has got its ID and its path.
            return Ok(());
        }
        let is_moved = [Errno::STALE, Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::INVAL];
        let may_pass = error.is(Errno::BUSY) || is_moved.iter().any(|errno| error.is(*errno));
        if !may_pass || host.now() >= deadline {
            if error.is(Errno::BUSY) {
                return Err(held_open(&error, &host.mount_users(&path.lossy())));
            }
            return Err(error.into());
        }
        host.sleep(Duration::from_millis(100));
    }
}

/// The error for mounts of another mount namespace that still exists: they cannot be unmounted from here, and removing their
/// mount points would detach them.
fn elsewhere<H: Host>(host: &H, record: &Record) -> Result<(), Error> {
    let here = host.mount_namespace();
    for undo in &record.undo {
        let (Undo::Unmount { mount_point, mounted, .. } | Undo::HideRamdisk { mount_point, mounted, .. }) =
            undo
        else {
            continue;
        };
        let namespace = mounted.map_or(here, |mounted| mounted.namespace);
        if namespace != here
            && let Some(user) = host.namespace_user(namespace)
        {
            let message = format!(
                "{}: {mount_point} is mounted in another mount namespace, that of {user}; run this there: `nsenter --mount --target {} …`",
                record.target, user.pid
            );
            return Err(Error::new(ErrorKind::Unsafe, message));
        }
    }
    Ok(())
}

/// Whether the record can be undone here: its device is not that of another program, and its mounts are in this namespace.
fn refuse_others<H: Host>(host: &H, record: &Record) -> Result<(), Error> {
    if let Target::Device(number) = record.target {
        may_discard(host, number, record)?;
    }
    elsewhere(host, record)
}

/// Our mount, wherever it is now. Its ID tells it from others if it is of this namespace; otherwise it is the visible one at its
/// mount point, or else any that may be ours. What another program has mounted at our mount point is ours only with our file
/// system.
fn find_mount<'a, H: Host>(
    host: &H,
    mounts: &'a [MountLine],
    mount_point: &str,
    mounted: Option<&MountId>,
    owner: impl Fn(&MountLine) -> Owner,
) -> Option<&'a MountLine> {
    let mut candidates = mounts.iter().rev().filter(|mount| owner(mount) != Owner::Others);
    let visible = proc::top(mounts, mount_point);
    let Some(id) = mounted else { return visible.filter(|mount| owner(mount) != Owner::Others) };
    if id.id != 0 && id.namespace == host.mount_namespace() {
        let named = candidates.find(|mount| mount.id == id.id);
        return named.or_else(|| visible.filter(|mount| owner(mount) == Owner::Us));
    }
    candidates.clone().find(|mount| mount.mount_point == mount_point).or_else(|| candidates.next())
}

/// Undoes all steps after a failure, from the last to the first, and continues after errors. Then removes the record,
/// unless a step could not be undone: the next run tries again. A device that another program has set up since, and what belongs
/// to it, stays as it is.
pub fn roll_back<H: Host>(host: &mut H, record: &mut Record) -> Vec<Error> {
    let _span = span(&record.target).entered();
    if let Err(error) = refuse_others(host, record).and_then(|()| create::note_added(host, record)) {
        return vec![error];
    }
    let mut errors = Vec::new();
    for index in (0..record.undo.len()).rev() {
        let undo = record.undo[index].clone();
        match one(host, record, &undo) {
            Ok(()) => drop(record.undo.remove(index)),
            Err(error) => {
                errors.push(error);
                if matches!(undo, Undo::HideRamdisk { .. }) {
                    // What could not be saved stays mounted until the problem is solved, at its mount point as well.
                    errors.extend(redo(host, record, &undo).err());
                }
            }
        }
    }
    errors
        .extend(if record.undo.is_empty() { forget(host, record) } else { create::save(host, record) }.err());
    errors
}

/// Removes the record of a target that is gone.
fn forget<H: Host>(host: &mut H, record: &Record) -> Result<(), Error> {
    let removed = host.remove_record(&record.file_name());
    removed.map_err(|error| {
        Error::failed(format!("{}: it was removed, but its record could not be: {error}", record.target))
    })
}

/// Undoes a whole record. On failure, a finished target is left as it was, an unfinished one partly undone.
pub fn take_back<H: Host>(host: &mut H, record: &Record) -> Vec<Error> {
    let _span = span(&record.target).entered();
    if matches!(record.request, Request::Vm(_)) && record.progress == Progress::Done {
        // If only some settings could be restored, these must not count as changed by another program. Without space for that
        // note they are restored all the same.
        let mut record = Record { progress: Progress::Working, ..record.clone() };
        create::save(host, &record).ok();
        return roll_back(host, &mut record);
    }
    match record.progress {
        Progress::Done => release(host, record).err().into_iter().collect(),
        Progress::Working => roll_back(host, &mut record.clone()),
    }
}

/// Removes a target on request. If a step cannot be undone, those undone before it are done again, so that the target
/// is as before.
fn release<H: Host>(host: &mut H, record: &Record) -> Result<(), Error> {
    let mut record = record.clone();
    let record = &mut record;
    refuse_others(host, record)?;
    for index in (0..record.undo.len()).rev() {
        let undo = record.undo[index].clone();
        if record.stays && matches!(undo, Undo::RemoveDevice { .. }) {
            continue;
        }
        if let Err(error) = one(host, record, &undo) {
            let undone = record.undo[index..].to_vec();
            let again: Vec<Error> = undone.iter().filter_map(|undo| redo(host, record, undo).err()).collect();
            return Err(again.into_iter().fold(error, Error::join));
        }
    }
    if record.stays {
        // What is left to undo, until it is set up again.
        record.undo.retain(|undo| matches!(undo, Undo::RemoveDevice { .. }));
        (record.progress, record.carries) = (Progress::Working, None);
        return create::save(host, record);
    }
    forget(host, record)
}

/// Redoes what [`one`] undid. Only activation keeps the contents of the device, so nothing else is redone.
fn redo<H: Host>(host: &mut H, record: &mut Record, undo: &Undo) -> Result<(), Error> {
    if let Undo::HideRamdisk { name, place, mount_point, mounted, .. } = undo {
        let shown =
            is_mount_point(host, mount_point)? || host.path_kind(&passthrough(name)) != PathKind::Missing;
        // Only our file system: something else may be mounted there by now.
        let held = host.mount_id(place).ok().flatten();
        let is_ours = held.is_some_and(|held| mounted.is_none_or(|mounted| mounted.device == held.device));
        if is_ours && !shown {
            host.bind(place, mount_point)?;
            create::note_mount(host, mount_point, record)?;
        }
        return Ok(());
    }
    let Request::Device(request) = record.request.clone() else { return Ok(()) };
    match (undo, &request.purpose) {
        (Undo::SwapOff { number }, Purpose::Swap { priority, options }) => {
            if gather::swaps(host)?.iter().any(|swap| swap.zram_number() == Some(*number)) {
                return Ok(());
            }
            Ok(host.swap_on(*number, SwapSpec { priority: *priority, discard: wants_discard(options) })?)
        }
        (Undo::Unmount { number: Some(number), .. }, Purpose::Filesystem { fs_type, mount, .. }) => {
            if proc::top(&gather::mounts(host)?, &mount.mount_point).is_some() {
                return Ok(());
            }
            host.mount(&MountSpec {
                source: format!("/dev/zram{number}"),
                mount_point: mount.mount_point.clone(),
                fs_type: fs_type.clone(),
                options: mount.options.clone(),
            })?;
            create::note_mount(host, &mount.mount_point, record)
        }
        (Undo::RemoveDirectory { path }, _) => match host.make_directory(path) {
            Err(error) if !error.is(Errno::EXIST) => Err(error.into()),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}
