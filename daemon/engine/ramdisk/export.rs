//! Reads generations without loading them: verifies one, or copies one into a directory.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use crate::{Error, ErrorKind};
use host::linux::ramdisk::{Calls, Untrusted};
use host::{Errno, HostError};
use logic::ramdisk::SaveReason;
use logic::ramdisk::hold::Hold;
use logic::ramdisk::manifest::{Consistency, FORMAT, Manifest, Unusable};
use logic::ramdisk::omitted::Omitted;
use logic::ramdisk::state::Root;

use super::archive::{Found, check};
use super::extract::{Extracted, Options, extract, is_empty, wipe};
use super::store::{Generation, Store};
use super::transfer_error::{TransferError, at, below, check_fit, not_opened};
use super::unpack::{unpack, unpack_any};
use super::{Progress, Ramdisk, Watcher, refuse_kernel, root};

/// The first bytes of a zstd frame.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

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
    disk: &Ramdisk,
    generation: Option<u64>,
    watcher: Watcher<'_>,
) -> Result<Checked, Error> {
    let (store, found) = find(calls, disk, generation)?;
    let manifest = match readable(&found) {
        Readable::As(manifest) => manifest,
        Readable::Perhaps(why) | Readable::Not(why) => {
            return Err(refused(ErrorKind::SnapshotCorrupt, disk, &found, &why));
        }
        Readable::PerhapsNewer(why) | Readable::Newer(why) => {
            return Err(refused(ErrorKind::Unsupported, disk, &found, &why));
        }
    };
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
    disk: &Ramdisk,
    generation: Option<u64>,
    to: &Path,
    watcher: Watcher<'_>,
) -> Result<Extracted, Error> {
    let (store, found) = find(calls, disk, generation)?;
    let mut manifest = usable(calls, disk, &store, &found, &mut *watcher)?;
    refuse_kernel(calls, store.fd())?;
    let site = Site::new(calls, to)?;
    let mut fill = |manifest: &Manifest| {
        site.fill(disk, &found, manifest, |options| {
            read(disk, &store, &found, |archive| {
                unpack(calls, archive, manifest, |reader| {
                    extract(calls, reader, site.directory.as_fd(), options, &mut *watcher)
                })
                .map_err(|error| below(to, error))
            })
        })
    };
    let mut extracted = fill(&manifest);
    if extracted.as_ref().is_err_and(|error| error.kind == ErrorKind::SnapshotCorrupt)
        && let Ok(other) = rebuilt(calls, disk, &store, &found, &mut |_| true)
    {
        // Only the manifest is damaged.
        manifest = other;
        wipe(calls, site.directory.as_fd(), to)?;
        extracted = fill(&manifest);
    }
    extracted.and_then(|extracted| site.name().map(|()| extracted)).map_err(|error| site.clear(error))
}

/// Why a destination was not opened: a link in its path that another user can change could lead anywhere.
fn untrusted(to: &Path, error: Untrusted) -> Error {
    match error {
        Untrusted::Errno(path, errno) => not_opened(to, &path, errno),
        Untrusted::Foreign(link, _) => {
            let (to, link) = (to.display(), link.display());
            let message = format!(
                "{to} is refused, because {link} is a symbolic link of another user; name its target"
            );
            Error::new(ErrorKind::Unsafe, message)
        }
    }
}

/// Whether an open directory belongs to the user of this process: another one could have put it there.
fn is_ours(calls: &Calls, directory: &OwnedFd) -> Result<bool, Errno> {
    let owner = calls.look(directory.as_fd(), b"")?.uid;
    Ok(owner == calls.identity().map_or(0, |(uid, _)| uid))
}

fn is_empty_at(calls: &Calls, directory: &OwnedFd, to: &Path) -> Result<bool, Error> {
    is_empty(calls, directory.as_fd()).map_err(|error| below(to, error).into())
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
        let (directory, unnamed) = match calls.open_without_links(to, false) {
            Err(Untrusted::Errno(_, Errno::NOENT)) => {
                let name = to.file_name().and_then(|name| name.to_str());
                let above =
                    to.parent().map(|above| if above == Path::new("") { Path::new(".") } else { above });
                let (Some(name), Some(above)) = (name, above) else { return Err(open()(Errno::NOENT)) };
                let above = calls.open_without_links(above, true).map_err(|error| untrusted(to, error))?;
                // If this exists already, an export was interrupted.
                let partial = format!(".{name}.zramd-partial");
                match calls.make_directory(above.as_fd(), partial.as_bytes(), 0o700) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(create()(errno)),
                }
                let made = calls.open_below(above.as_fd(), partial.as_bytes());
                let made =
                    made.and_then(|made| if is_ours(calls, &made)? { Ok(made) } else { Err(Errno::PERM) });
                (made, Some((above, partial, name.to_owned())))
            }
            opened => (Ok(opened.map_err(|error| untrusted(to, error))?), None),
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
        disk: &Ramdisk,
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

/// Why a generation would not fit into the empty RAM disk. Not checked if that is not mounted.
pub fn check_size(calls: &Calls, disk: &Ramdisk, number: u64) -> Result<Option<Hold>, Error> {
    let (store, found) = find(calls, disk, Some(number))?;
    let manifest = usable(calls, disk, &store, &found, &mut |_| true)?;
    if !super::is_mounted(calls, &disk.place) {
        return Ok(None);
    }
    let place = calls.open_directory(&disk.place).map_err(at(disk.place.display(), "open"))?;
    let room = calls.file_system(place.as_fd()).map_err(at(disk.place.display(), "look at"))?;
    Ok(Hold::of(&manifest.contents, room.size_bytes(), room.total_inodes))
}

fn find(calls: &Calls, disk: &Ramdisk, generation: Option<u64>) -> Result<(Store, Generation), Error> {
    let nothing = || Error::new(ErrorKind::NotFound, format!("{} has no snapshot", disk.name));
    let store = Store::look(calls, disk)?.ok_or_else(nothing)?;
    let found = match generation {
        Some(number) => store.find(number)?,
        None => store.listing()?.generations.into_iter().next().ok_or_else(nothing)?,
    };
    Ok((store, found))
}

/// Whether a generation can be read, as far as its manifest says.
pub enum Readable<'a> {
    As(&'a Manifest),
    /// The manifest is damaged or does not match the archive, which may be intact.
    Perhaps(String),
    /// Without a manifest, the archive is not ours.
    Not(String),
    /// Another version of zramd wrote it, or its version is damaged: then the archive may be intact.
    PerhapsNewer(String),
    /// Another version of zramd wrote it.
    Newer(String),
}

/// Whether a generation can be read.
pub fn readable(generation: &Generation) -> Readable<'_> {
    let newer = |version| format!("its format is version {version}, which this program does not know");
    match &generation.manifest {
        Ok(manifest) if manifest.archive_bytes == generation.archive_bytes => Readable::As(manifest),
        Ok(manifest) => {
            let (found, wanted) = (generation.archive_bytes, manifest.archive_bytes);
            Readable::Perhaps(format!("its archive has {found} bytes instead of {wanted}"))
        }
        Err(Unusable::Broken(why)) => Readable::Perhaps(why.clone()),
        Err(Unusable::Missing) => Readable::Not("its manifest is missing".to_owned()),
        Err(Unusable::PerhapsOtherVersion(version)) => Readable::PerhapsNewer(newer(version)),
        Err(Unusable::OtherVersion(version)) => Readable::Newer(newer(version)),
    }
}

/// A manifest for an archive whose own is damaged, from reading the archive to its end. The checksum of the compression and
/// the end of the archive show whether that is intact. The damaged manifest shows that it is a complete one of ours: an
/// archive gets its name after its manifest.
pub fn rebuilt(
    calls: &Calls,
    disk: &Ramdisk,
    store: &Store,
    generation: &Generation,
    watcher: Watcher<'_>,
) -> Result<Manifest, TransferError> {
    let archive = store.open_archive(generation.number).map_err(TransferError::Archive)?;
    let modified = calls
        .look(archive.as_fd(), b"")
        .map_err(|errno| TransferError::Archive(HostError::new("the archive", "look at", errno)))?;
    let mut start = [0; 5];
    let read = calls.read_at(archive.as_fd(), &mut start, 0);
    read.map_err(|errno| TransferError::Archive(HostError::new("the archive", "read", errno)))?;
    // Bit 2 of the descriptor after the magic number (RFC 8878): the contents have a checksum.
    if start[..4] != ZSTD || start[4] & 4 == 0 {
        return Err(TransferError::Bad("it has no checksum".to_owned()));
    }
    let (found, digest) = unpack_any(calls, archive.as_fd(), |reader| {
        check(reader, |done_bytes| watcher(Progress { doing: "verifying", done_bytes, total_bytes: 0 }))
    })?;
    let found = found?;
    let seconds = u64::try_from(modified.mtime.seconds).unwrap_or(0);
    let time = seconds.saturating_mul(1_000_000);
    let old = generation.manifest.as_ref().ok();
    Ok(Manifest {
        format_version: FORMAT,
        mode: old.map_or(disk.keep.mode, |manifest| manifest.mode),
        began_at_usec: time,
        finished_at_usec: time,
        boot_id: String::new(),
        reason: old.map_or(SaveReason::Unknown, |manifest| manifest.reason),
        consistency: Consistency::Fuzzy,
        changed: Vec::new(),
        skipped: 0,
        omitted: Omitted::default(),
        contents: found.contents,
        archive_bytes: generation.archive_bytes,
        digest,
    })
}

/// The manifest of a generation, rebuilt if it is damaged.
fn usable(
    calls: &Calls,
    disk: &Ramdisk,
    store: &Store,
    generation: &Generation,
    watcher: Watcher<'_>,
) -> Result<Manifest, Error> {
    let (kind, why, may_be_intact) = match readable(generation) {
        Readable::As(manifest) => return Ok(manifest.clone()),
        Readable::Perhaps(why) => (ErrorKind::SnapshotCorrupt, why, true),
        Readable::PerhapsNewer(why) => (ErrorKind::Unsupported, why, true),
        Readable::Not(why) => (ErrorKind::SnapshotCorrupt, why, false),
        Readable::Newer(why) => (ErrorKind::Unsupported, why, false),
    };
    if may_be_intact {
        match rebuilt(calls, disk, store, generation, watcher) {
            Ok(manifest) => return Ok(manifest),
            Err(TransferError::Bad(_) | TransferError::Unusable(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(refused(kind, disk, generation, &why))
}

fn refused(kind: ErrorKind, disk: &Ramdisk, generation: &Generation, why: &str) -> Error {
    Error::new(kind, format!("{}, snapshot {}: {why}", disk.name, generation.number))
}

fn read<T>(
    disk: &Ramdisk,
    store: &Store,
    generation: &Generation,
    work: impl FnOnce(std::os::fd::BorrowedFd<'_>) -> Result<T, TransferError>,
) -> Result<T, Error> {
    let archive = store.open_archive(generation.number)?;
    work(archive.as_fd()).map_err(|error| {
        let mut error = Error::from(store.of_archive(generation.number, error));
        error.message = format!("{}, snapshot {}: {}", disk.name, generation.number, error.message);
        error
    })
}
