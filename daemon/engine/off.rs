//! Takes everything away that zramd set up, where PID 1 activates it. Without systemd, [`crate::revert`] does all of it.

use super::device::control::memory_can_take;
use super::error::{Error, ErrorKind};
pub use super::provision::Removal;
use super::reload::Survey;
use host::{Holder, Host};
use logic::change::Change;
use logic::ramdisk::UnitRamdisk;
use logic::ramdisk::place::place;
use logic::record::Target;
use logic::request::Request;
use logic::unit::swap_unit;

/// PID 1.
pub trait Units<H> {
    /// Stops the daemon and maintenance, which change devices.
    fn quiet(&mut self, host: &mut H) -> Result<(), Error>;
    /// Starts the daemon again.
    fn resume(&mut self, host: &mut H) -> Result<(), Error>;
    /// Saves a RAM disk.
    fn save(&mut self, host: &mut H, name: &str) -> Result<(), Error>;
    fn start(&mut self, host: &mut H, unit: &str) -> Result<(), Error>;
    /// Stops a unit. One that does not exist is stopped.
    fn stop(&mut self, host: &mut H, unit: &str) -> Result<(), Error>;
    /// Disables zramd at boot, and removes its units, so that PID 1 starts none of them again.
    fn disable(&mut self, host: &mut H) -> Result<(), Error>;
}

/// RAM disks of PID 1 whose mount point was unmounted, by hand or by a removal that failed later: the survey lacks them, but their
/// file system is mounted at its private place.
pub fn hidden(survey: &Survey) -> Vec<Change> {
    let is_hidden = |disk: &&UnitRamdisk| {
        let target = Target::Ramdisk(disk.name.clone());
        let place = place(&disk.name);
        !survey.changes.iter().any(|change| change.target == target)
            && survey.facts.mount_at(&place).is_some()
    };
    let disks = survey.facts.unit_ramdisks.iter().filter(is_hidden);
    disks.map(Change::removal).collect()
}

/// The RAM disk that PID 1 mounted for a target, if any.
fn unit_ramdisk<'a>(change: &Change, survey: &'a Survey) -> Option<&'a UnitRamdisk> {
    let Target::Ramdisk(name) = &change.target else { return None };
    survey.facts.unit_ramdisks.iter().find(|disk| disk.name == *name)
}

/// What zramd set up for a target.
fn present<'a>(change: &Change, survey: &'a Survey) -> Option<&'a Request> {
    survey.facts.records.get(&change.target).map(|record| &record.request)
}

/// The directory of the snapshots of a RAM disk that is saved when it is removed.
pub fn store<'a>(change: &Change, survey: &'a Survey) -> Option<&'a str> {
    match present(change, survey) {
        Some(Request::Ramdisk(request)) => request.keep.as_ref().map(|keep| keep.settings.store.as_str()),
        _ => unit_ramdisk(change, survey).filter(|disk| disk.is_kept()).map(|disk| disk.store.as_str()),
    }
}

/// Whether the contents of a RAM disk are saved when it is removed.
pub fn is_kept(change: &Change, survey: &Survey) -> bool {
    store(change, survey).is_some()
}

/// The mount point of a target, if it has one.
pub fn mount_point<'a>(change: &Change, survey: &'a Survey) -> Option<&'a str> {
    let of_request = present(change, survey).and_then(Request::mount).map(|mount| &mount.mount_point);
    of_request.or_else(|| unit_ramdisk(change, survey).map(|disk| &disk.mount_point)).map(String::as_str)
}

/// The refusal to remove a device that another program has set up since zramd did.
pub fn taken_over(change: &Change, survey: &Survey) -> Option<Error> {
    let Target::Device(number) = change.target else { return None };
    let record = survey.facts.records.get(&change.target)?;
    let differs = record.not_ours(survey.facts.devices.get(&number)?)?;
    Some(record.refusal(&differs))
}

/// Removes the targets of a survey: first everything that is mounted, then swap. While something mounted stays, zramd is not
/// disabled and swap stays, because its units save the contents at shutdown. An error is one before any change, or of
/// [`Units::disable`].
pub fn off<H: Host>(host: &mut H, units: &mut impl Units<H>, survey: &Survey) -> Result<Vec<Removal>, Error> {
    let (foreign, changes): (Vec<&Change>, Vec<&Change>) =
        survey.changes.iter().partition(|change| taken_over(change, survey).is_some());
    let numbers = changes.iter().filter_map(|change| match change.target {
        Target::Device(number) => Some(number),
        _ => None,
    });
    numbers.clone().try_for_each(|number| memory_can_take(host, number))?;
    units.quiet(host)?;
    let (last, mut first): (Vec<&Change>, Vec<&Change>) =
        changes.into_iter().partition(|change| match &change.target {
            Target::Device(_) => present(change, survey).is_none_or(|present| present.mount().is_none()),
            Target::Ramdisk(_) => false,
            Target::Vm | Target::Zswap => true,
        });
    // RAM disks before the devices that hold them.
    first.sort_by_key(|change| !matches!(change.target, Target::Ramdisk(_)));
    let mut removed: Vec<Removal> = Vec::new();
    for change in first {
        removed.push((change.target.clone(), take_away(host, units, change, survey)));
    }
    if removed.iter().any(|(_, result)| result.is_err()) {
        // The first errors are the ones to report.
        units.resume(host).ok();
        return Ok(removed);
    }
    if let Err(error) = units.disable(host) {
        units.resume(host).ok();
        return Err(error);
    }
    for change in last {
        let checked = match change.target {
            Target::Device(number) => memory_can_take(host, number),
            _ => Ok(()),
        };
        let result = checked.and_then(|()| take_away(host, units, change, survey));
        removed.push((change.target.clone(), result));
    }
    let refused = |change: &&Change| Some((change.target.clone(), Err(taken_over(change, survey)?)));
    removed.extend(foreign.iter().filter_map(refused));
    Ok(removed)
}

fn take_away<H: Host>(
    host: &mut H,
    units: &mut impl Units<H>,
    change: &Change,
    survey: &Survey,
) -> Result<(), Error> {
    if let Some(unit) = &change.stop {
        units.stop(host, unit).map_err(|error| held(host, change, survey, &error))?;
        if let Target::Ramdisk(name) = &change.target
            && is_kept(change, survey)
            && let Err(error) = units.save(host, name)
        {
            // It stays until the problem is solved.
            units.start(host, unit).ok();
            let message = format!("{}: not removed, because it cannot be saved: {error}", change.target);
            return Err(Error::new(error.kind, message));
        }
    }
    if let Target::Device(number) = change.target
        && super::gather::swaps(host)?.iter().any(|swap| swap.zram_number() == Some(number))
    {
        return Err(Error::failed(format!("{}: PID 1 did not stop {}", change.target, swap_unit(number))));
    }
    change.setup.iter().try_for_each(|unit| units.stop(host, unit))
}

/// The error of a unit that was not stopped, with the processes that use its mount.
fn held<H: Host>(host: &H, change: &Change, survey: &Survey, error: &Error) -> Error {
    let path = mount_point(change, survey);
    let users: Vec<Holder> = path.map(|path| host.mount_users(path)).unwrap_or_default();
    let users: Vec<String> = users.iter().map(Holder::to_string).collect();
    match path {
        Some(path) if !users.is_empty() => {
            let message = format!("{}: {path} is held open by {}", change.target, users.join(", "));
            Error::new(ErrorKind::InUse, message)
        }
        _ => Error::new(error.kind, format!("{}: {error}", change.target)),
    }
}
