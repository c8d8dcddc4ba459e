//! Reads generations without loading them: verifies one, or copies one into a directory.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use crate::{Error, ErrorKind};
use host::Errno;
use host::linux::ramdisk::Calls;
use logic::ramdisk::manifest::{Manifest, Unusable};
use logic::ramdisk::state::Root;

use super::archive::{Found, check};
use super::extract::{Extracted, Options, extract, is_empty, wipe};
use super::store::{Generation, Store};
use super::trouble::{Trouble, at, below, check_fit};
use super::unpack::unpack;
use super::{Disk, Progress, Watcher, refuse_kernel, root};

/// Result of a successful verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Number of the generation.
    pub generation: u64,
    /// Contents of its archive.
    pub found: Found,
}

/// Reads a generation (the newest by default) to its end and compares it with its manifest. Changes nothing.
pub fn verify(
    calls: &Calls,
    disk: &Disk,
    generation: Option<u64>,
    watcher: Watcher<'_>,
) -> Result<Checked, Error> {
    let (store, found) = find(calls, disk, generation)?;
    let manifest = usable(disk, &found)?;
    let total_bytes = manifest.contents.bytes;
    let generation = found.number;
    let found = read(disk, &store, &found, |archive| {
        unpack(calls, archive, manifest, |reader| {
            check(reader, |done_bytes| watcher(Progress { doing: "verifying", done_bytes, total_bytes }))
        })
    })?;
    Ok(Checked { generation, found })
}

/// Copies a generation (the newest by default) into a directory, which must be empty or is created. A directory that is
/// created gets its name only once it is complete.
pub fn export(
    calls: &Calls,
    disk: &Disk,
    generation: Option<u64>,
    to: &Path,
    watcher: Watcher<'_>,
) -> Result<Extracted, Error> {
    let (store, found) = find(calls, disk, generation)?;
    let manifest = usable(disk, &found)?;
    refuse_kernel(calls, store.fd())?;
    let site = Site::new(calls, to)?;
    let extracted = site.fill(disk, &found, manifest, |options| {
        read(disk, &store, &found, |archive| {
            unpack(calls, archive, manifest, |reader| {
                extract(calls, reader, site.directory.as_fd(), options, watcher)
            })
            .map_err(|trouble| below(to, trouble))
        })
    });
    extracted.and_then(|extracted| site.name().map(|()| extracted)).map_err(|error| site.clear(error))
}

fn is_empty_at(calls: &Calls, directory: &OwnedFd, to: &Path) -> Result<bool, Error> {
    is_empty(calls, directory.as_fd()).map_err(|trouble| below(to, trouble).into())
}

/// The destination of an export.
struct Site<'a> {
    calls: &'a Calls,
    to: &'a Path,
    directory: OwnedFd,
    /// Owner, mode and attributes before the export, restored on failure.
    was: Root,
    /// The parent directory, the temporary name and the final name. `None` for a directory that existed.
    unnamed: Option<(OwnedFd, String, String)>,
}

impl<'a> Site<'a> {
    fn new(calls: &'a Calls, to: &'a Path) -> Result<Site<'a>, Error> {
        let open = || at(to.display(), "open");
        let create = || at(to.display(), "create");
        let (directory, unnamed) = match calls.open_directory(to) {
            Err(Errno::NOENT) => {
                let name = to.file_name().and_then(|name| name.to_str());
                let above =
                    to.parent().map(|above| if above == Path::new("") { Path::new(".") } else { above });
                let (Some(name), Some(above)) = (name, above) else { return Err(open()(Errno::NOENT)) };
                calls.make_directories(above, 0o700).map_err(create())?;
                let above = calls.open_directory(above).map_err(create())?;
                // If this exists already, an export was interrupted.
                let partial = format!(".{name}.zramd-partial");
                match calls.make_directory(above.as_fd(), partial.as_bytes(), 0o700) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(create()(errno)),
                }
                let made = calls.open_below(above.as_fd(), partial.as_bytes());
                (made, Some((above, partial, name.to_owned())))
            }
            opened => (opened, None),
        };
        let looked =
            directory.and_then(|directory| root::look(calls, directory.as_fd()).map(|was| (directory, was)));
        match looked {
            Ok((directory, _)) if unnamed.is_none() && !is_empty_at(calls, &directory, to)? => {
                Err(Error::new(ErrorKind::Unsafe, format!("{} is not empty", to.display())))
            }
            Ok((directory, was)) => Ok(Site { calls, to, directory, was, unnamed }),
            Err(errno) => {
                if let Some((above, partial, _)) = unnamed {
                    calls.remove(above.as_fd(), partial.as_bytes(), true).ok();
                }
                Err(open()(errno))
            }
        }
    }

    /// Fills the directory, after checking that it is empty and has enough space.
    fn fill(
        &self,
        disk: &Disk,
        found: &Generation,
        manifest: &Manifest,
        work: impl FnOnce(Options) -> Result<Extracted, Error>,
    ) -> Result<Extracted, Error> {
        let (calls, to) = (self.calls, self.to);
        if self.unnamed.is_some() {
            wipe(calls, self.directory.as_fd(), to)?;
        }
        let room = calls.file_system(self.directory.as_fd()).map_err(at(to.display(), "look at"))?;
        let what = format!(", snapshot {}: {}", found.number, to.display());
        check_fit(disk, &what, &manifest.contents, room.free_bytes(), room.space.free_inodes)?;
        work(Options { mode: manifest.mode, threads: 2, doing: "exporting", total: manifest.contents.bytes })
    }

    /// Renames the directory to its final name.
    fn name(&self) -> Result<(), Error> {
        let Some((above, partial, name)) = &self.unnamed else { return Ok(()) };
        self.calls.rename(above.as_fd(), partial, name, true).map_err(at(self.to.display(), "name"))
    }

    /// Removes an incomplete export, which would look like a complete one.
    fn clear(&self, error: Error) -> Error {
        let path = || self.to.display();
        let (calls, directory) = (self.calls, self.directory.as_fd());
        let gone = wipe(calls, directory, self.to).and_then(|()| match &self.unnamed {
            Some((above, partial, _)) => {
                calls.remove(above.as_fd(), partial.as_bytes(), true).map_err(at(path(), "remove"))
            }
            None => root::restore(calls, directory, &self.was)
                .map_err(at(path(), "restore the owner and mode of")),
        });
        match gone {
            Ok(()) => error,
            Err(other) => error.join(other),
        }
    }
}

/// Checks that a generation would fit into the empty RAM disk. Not checked if that is not mounted.
pub fn check_size(calls: &Calls, disk: &Disk, number: u64) -> Result<(), Error> {
    let (_, found) = find(calls, disk, Some(number))?;
    let manifest = usable(disk, &found)?;
    if !super::is_mounted(calls, &disk.place) {
        return Ok(());
    }
    let place = calls.open_directory(&disk.place).map_err(at(disk.place.display(), "open"))?;
    let room = calls.file_system(place.as_fd()).map_err(at(disk.place.display(), "look at"))?;
    check_fit(disk, &format!(", snapshot {number}"), &manifest.contents, room.size_bytes(), room.total_inodes)
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
        let mut error = Error::from(store.of_archive(generation.number, trouble));
        error.message = format!("{}, snapshot {}: {}", disk.name, generation.number, error.message);
        error
    })
}
