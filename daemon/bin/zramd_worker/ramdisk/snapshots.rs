//! Operations on the snapshots of a disk.

use std::path::PathBuf;

use engine::ramdisk;
use engine::ramdisk::keep;
use engine::work::Stopped;
use engine::{Error, ErrorKind};
use host::Host;
use host::linux::LinuxHost;
use logic::human::human;
use logic::ramdisk::SaveReason;

use super::{Job, Words, entries, left_out, save, warn};

/// The snapshot number at this position; `None` is the newest.
fn generation(words: &Words, at: usize) -> Result<Option<u64>, Error> {
    let Some(word) = words.rest.get(at).filter(|word| !["newest", "0"].contains(&word.as_str())) else {
        return Ok(None);
    };
    let number = word.parse().ok().filter(|number| *number > 0);
    number
        .map(Some)
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("`{word}` is no number of a snapshot")))
}

fn named(words: &Words) -> Result<u64, Error> {
    generation(words, 0)?
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{}: which snapshot?", words.name)))
}

pub(super) fn verify(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    let number = generation(words, 0)?;
    let checked = job.watched(|calls, disk, watcher| ramdisk::verify(calls, disk, number, watcher))?;
    let (entries, size) = (entries(checked.found.entries), human(checked.found.bytes));
    let left_out = left_out(&words.name, &checked.found.omitted);
    Ok(format!("{}: snapshot {} is good: {entries}, {size}{left_out}", words.name, checked.generation))
}

pub(super) fn export(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    let to = words.rest.first().ok_or_else(|| Error::failed("into which directory?"))?;
    let number = generation(words, 1)?;
    let to = PathBuf::from(to);
    let extracted = job.watched(|calls, disk, watcher| ramdisk::export(calls, disk, number, &to, watcher))?;
    let size = human(extracted.bytes);
    let left_out = left_out(&words.name, &extracted.omitted);
    Ok(format!("{}: {}, {size} in {}{left_out}", words.name, entries(extracted.entries), to.display()))
}

pub(super) fn pin(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    let number = named(words)?;
    let why = words.rest.get(1).map_or("asked for", String::as_str);
    ramdisk::pin(&job.calls, &job.disk, number, Some(why))?;
    job.publish(|_| {});
    Ok(format!("{}: snapshot {number} is kept until it is unpinned", words.name))
}

pub(super) fn unpin(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    let number = named(words)?;
    ramdisk::pin(&job.calls, &job.disk, number, None)?;
    job.publish(|_| {});
    Ok(format!("{}: snapshot {number} is no longer pinned", words.name))
}

pub(super) fn delete(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    let number = named(words)?;
    job.watched(|calls, disk, watcher| ramdisk::delete_spare(calls, disk, number, watcher))?;
    job.publish(|_| {});
    Ok(format!("{}: snapshot {number} is deleted", words.name))
}

/// Verifies the snapshot, saves the current contents, and makes the next load take the snapshot.
pub(super) fn prepare_restore(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    let name = words.name.as_str();
    let number = generation(words, 0)?;
    let checked = job.watched(|calls, disk, watcher| ramdisk::verify(calls, disk, number, watcher))?;
    if let Some(hold) = ramdisk::check_size(&job.calls, &job.disk, checked.generation)? {
        // Until the disk is larger, later saves must not replace it.
        let held = ramdisk::hold(&job.calls, &job.disk, checked.generation, hold.clone());
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
    save(
        job,
        &Words {
            verb: "save".to_owned(),
            name: name.to_owned(),
            rest: Vec::new(),
            reason: SaveReason::Restore,
            config: None,
        },
    )?;
    keep::want_restore(name, Some(checked.generation))?;
    Ok(format!("{name}: snapshot {} is loaded next", checked.generation))
}

pub(super) fn cancel_restore(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    keep::want_restore(&words.name, None)?;
    job.publish(|_| {});
    let place = &job.disk.place;
    let is_mounted = ramdisk::is_mounted(&job.calls, place);
    let users =
        if is_mounted { LinuxHost::new("/").mount_users(&place.to_string_lossy()) } else { Vec::new() };
    if !users.is_empty() {
        let names: Vec<String> =
            users.iter().map(|user| format!("{} (pid {})", user.name, user.pid)).collect();
        let mount_point = job.disk.mount_point.display();
        let message =
            format!("{}: not changed, because {mount_point} is in use by {}", words.name, names.join(", "));
        return Err(Error::new(ErrorKind::InUse, message).into());
    }
    Ok(format!("{}: the newest snapshot is loaded next", words.name))
}
