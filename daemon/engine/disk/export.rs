//! Reading generations without loading them: checking one, and copying one into a directory.

use std::os::fd::AsFd;
use std::path::Path;

use crate::engine::{Error, ErrorKind};
use crate::host::linux::disk::Calls;
use crate::logic::disk::manifest::{Manifest, Unusable, refuse_size};

use super::archive::check;
use super::extract::{Extracted, Options, extract, is_empty, wipe};
use super::load::unpack;
use super::store::{Generation, Store};
use super::trouble::{Trouble, at};
use super::{Disk, Progress, Watcher};

/// What was found in a generation that is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// N.
    pub generation: u64,
    /// Entries of the archive.
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
}

/// Reads a generation, the newest if none is named, to its end and compares it with its manifest. Nothing is changed.
pub fn verify(
    calls: &Calls,
    disk: &Disk,
    generation: Option<u64>,
    watcher: Watcher<'_>,
) -> Result<Checked, Error> {
    let (store, found) = find(calls, disk, generation)?;
    let manifest = usable(disk, &found)?;
    let total_bytes = manifest.contents.bytes;
    let (entries, bytes) = read(disk, &store, &found, |archive| {
        unpack(calls, archive, manifest, |reader| {
            check(reader, |done_bytes| watcher(Progress { doing: "verifying", done_bytes, total_bytes }))
        })
    })?;
    Ok(Checked { generation: found.number, entries, bytes })
}

/// Copies a generation, the newest if none is named, into a directory, which has to be empty or is made.
pub fn export(
    calls: &Calls,
    disk: &Disk,
    generation: Option<u64>,
    to: &Path,
    watcher: Watcher<'_>,
) -> Result<Extracted, Error> {
    let (store, found) = find(calls, disk, generation)?;
    let manifest = usable(disk, &found)?;
    calls.make_directories(to, 0o700).map_err(at(to.display(), "create"))?;
    let folder = calls.open_directory(to).map_err(at(to.display(), "open"))?;
    if !is_empty(calls, folder.as_fd())? {
        return Err(Error::new(ErrorKind::Unsafe, format!("{} is not empty", to.display())));
    }
    let room = calls.file_system(folder.as_fd()).map_err(at(to.display(), "look at"))?;
    if let Some(why) = refuse_size(&manifest.contents, room.free_bytes(), room.space.free_inodes) {
        let message = format!("{}, snapshot {}: {}: {why}", disk.name, found.number, to.display());
        return Err(Error::new(ErrorKind::DiskFull, message));
    }
    let options =
        Options { mode: manifest.mode, threads: 2, doing: "exporting", total: manifest.contents.bytes };
    let extracted = read(disk, &store, &found, |archive| {
        unpack(calls, archive, manifest, |reader| extract(calls, reader, folder.as_fd(), options, watcher))
    });
    if extracted.is_err() {
        // Half of a generation would look like all of it.
        wipe(calls, folder.as_fd())?;
    }
    extracted
}

/// Whether a generation would fit into the disk if nothing else were in it. One that is not mounted says nothing.
pub fn check_size(calls: &Calls, disk: &Disk, number: u64) -> Result<(), Error> {
    let (_, found) = find(calls, disk, Some(number))?;
    let manifest = usable(disk, &found)?;
    if !super::is_mounted(calls, &disk.place) {
        return Ok(());
    }
    let place = calls.open_directory(&disk.place).map_err(at(disk.place.display(), "open"))?;
    let room = calls.file_system(place.as_fd()).map_err(at(disk.place.display(), "look at"))?;
    let bytes = if room.space.total_bytes == 0 { u64::MAX } else { room.space.total_bytes };
    match refuse_size(&manifest.contents, bytes, room.total_inodes) {
        Some(why) => Err(Error::new(ErrorKind::DiskFull, format!("{}, snapshot {number}: {why}", disk.name))),
        None => Ok(()),
    }
}

fn find(calls: &Calls, disk: &Disk, generation: Option<u64>) -> Result<(Store, Generation), Error> {
    let nothing = || Error::new(ErrorKind::NotFound, format!("{} has no snapshot", disk.name));
    let store = Store::look(calls, disk)?.ok_or_else(nothing)?;
    let found = match generation {
        Some(number) => store.find(number)?,
        None => store.listing()?.generations.into_iter().next().ok_or_else(nothing)?,
    };
    Ok((store, found))
}

fn usable<'a>(disk: &Disk, generation: &'a Generation) -> Result<&'a Manifest, Error> {
    generation.manifest.as_ref().map_err(|unusable| {
        let (kind, why) = match unusable {
            Unusable::Broken(why) => (ErrorKind::SnapshotCorrupt, why.clone()),
            Unusable::OtherVersion(version) => {
                (ErrorKind::Unsupported, format!("its format is version {version}"))
            }
        };
        Error::new(kind, format!("{}, snapshot {}: {why}", disk.name, generation.number))
    })
}

fn read<T>(
    disk: &Disk,
    store: &Store,
    generation: &Generation,
    work: impl FnOnce(std::os::fd::BorrowedFd<'_>) -> Result<T, Trouble>,
) -> Result<T, Error> {
    let archive = store.open_archive(generation.number)?;
    work(archive.as_fd()).map_err(|trouble| {
        let mut error = Error::from(trouble);
        error.message = format!("{}, snapshot {}: {}", disk.name, generation.number, error.message);
        error
    })
}
