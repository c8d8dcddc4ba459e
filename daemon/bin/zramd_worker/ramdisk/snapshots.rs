//! Operations on the snapshots of a disk.

use engine::ramdisk;
use engine::work::Stopped;
use engine::{Error, ErrorKind};
use host::Host;
use host::linux::LinuxHost;
use logic::human::human;
use logic::ramdisk::SaveReason;

use super::{Job, RamdiskOrder, entries, left_out, save, warn};

fn chosen(order: &RamdiskOrder) -> Result<u64, Error> {
    order.snapshot.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{}: which snapshot?", order.name)))
}

pub(super) fn verify(job: &mut Job, order: &RamdiskOrder) -> Result<String, Stopped> {
    let number = order.snapshot;
    let checked =
        job.watched(|calls, disk, watcher| store::verify_and_remember(calls, disk, number, watcher));
    job.publish(|_| {});
    let checked = checked?;
    let (entries, size) = (entries(checked.entries), human(checked.bytes));
    Ok(format!("{}: snapshot {} is good: {entries}, {size}", order.name, checked.generation))
}

pub(super) fn export(job: &mut Job, order: &RamdiskOrder) -> Result<String, Stopped> {
    let to = order.to.as_ref().ok_or_else(|| Error::failed("into which directory?"))?;
    let number = order.snapshot;
    let extracted = job.watched(|calls, disk, watcher| store::export(calls, disk, number, to, watcher))?;
    let size = human(extracted.bytes);
    let left_out = left_out(&order.name, &extracted.omitted);
    Ok(format!("{}: {}, {size} in {}{left_out}", order.name, entries(extracted.entries), to.display()))
}

pub(super) fn pin(job: &mut Job, order: &RamdiskOrder) -> Result<String, Stopped> {
    let number = chosen(order)?;
    store::pin(&job.calls, &job.disk, number, Some(order.why.as_deref().unwrap_or("asked for")))?;
    job.publish(|_| {});
    Ok(format!("{}: snapshot {number} is kept until it is unpinned", order.name))
}

pub(super) fn unpin(job: &mut Job, order: &RamdiskOrder) -> Result<String, Stopped> {
    let number = chosen(order)?;
    store::pin(&job.calls, &job.disk, number, None)?;
    job.publish(|_| {});
    Ok(format!("{}: snapshot {number} is no longer pinned", order.name))
}

pub(super) fn delete(job: &mut Job, order: &RamdiskOrder) -> Result<String, Stopped> {
    let number = chosen(order)?;
    job.watched(|calls, disk, watcher| store::delete_spare(calls, disk, number, watcher))?;
    job.publish(|_| {});
    Ok(format!("{}: snapshot {number} is deleted", order.name))
}

/// Verifies the snapshot, saves the current contents, and makes the next load take the snapshot.
pub(super) fn prepare_restore(job: &mut Job, order: &RamdiskOrder) -> Result<String, Stopped> {
    let name = order.name.as_str();
    let number = order.snapshot;
    let checked = job.watched(|calls, disk, watcher| store::verify(calls, disk, number, watcher))?;
    if let Some(hold) = store::check_size(&job.calls, &job.disk, checked.generation)? {
        // Until the disk is larger, later saves must not replace it.
        let held = store::hold(&job.calls, &job.disk, checked.generation, hold.clone());
        if let Err(error) = held {
            warn(name, &error.to_string());
        }
        job.publish(|_| {});
        let message = format!(
            "{name}: snapshot {} is not loaded: {}; {}",
            checked.generation,
            hold.text(),
            hold.cure(name)
        );
        return Err(Error::new(ErrorKind::DiskFull, message).into());
    }
    job.disk.spared = Some(checked.generation);
    save(job, &RamdiskOrder { reason: SaveReason::Restore, ..RamdiskOrder::named(name) })?;
    ramdisk::want_restore(name, Some(checked.generation))?;
    Ok(format!("{name}: snapshot {} is loaded next", checked.generation))
}

pub(super) fn cancel_restore(job: &mut Job, order: &RamdiskOrder) -> Result<String, Stopped> {
    ramdisk::want_restore(&order.name, None)?;
    job.publish(|_| {});
    let place = &job.disk.place;
    let is_mounted = store::is_mounted(&job.calls, place);
    let users =
        if is_mounted { LinuxHost::new("/").mount_users(&place.to_string_lossy()) } else { Vec::new() };
    if !users.is_empty() {
        let names: Vec<String> =
            users.iter().map(|user| format!("{} (pid {})", user.name, user.pid)).collect();
        let mount_point = job.disk.mount_point.display();
        let message =
            format!("{}: not changed, because {mount_point} is in use by {}", order.name, names.join(", "));
        return Err(Error::new(ErrorKind::InUse, message).into());
    }
    Ok(format!("{}: the newest snapshot is loaded next", order.name))
}
