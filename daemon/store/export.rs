//! Reads generations without loading them: verifies one, or copies one into a directory.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use crate::{Error, ErrorKind};
use host::Errno;
use host::linux::ramdisk::{Calls, Untrusted};
use logic::ramdisk::SaveReason;
use logic::ramdisk::hold::Hold;
use logic::ramdisk::manifest::{Consistency, Contents, Manifest, Unusable};
use logic::ramdisk::omitted::{Omitted, Reason};
use logic::ramdisk::state::Root;

use super::directory::{Generation, Store};
use super::extract::{OnDamage, Options, extract, is_empty, unshelve, wipe};
use super::extracted::Extracted;
use super::format::BLOCK;
use super::format::tree::{self, Body, Placed, Places};
use super::frames::threads;
use super::shelf::{Place, Shelf, hashes};
use super::transfer_error::{TransferError, at, below, check_fit, not_opened};
use super::walk::{PAGE, join};
use super::{Progress, Ramdisk, Watcher, refuse_kernel, root};

/// Result of a successful verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Number of the generation.
    pub generation: u64,
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
}

/// Reads everything of a generation (the newest by default), also what is in the files of others. Changes nothing.
pub fn verify(
    calls: &Calls,
    disk: &Ramdisk,
    generation: Option<u64>,
    watcher: Watcher<'_>,
) -> Result<Checked, Error> {
    let (store, found) = find(calls, disk, generation)?;
    verify_in(disk, &store, &found, &mut BTreeSet::new(), watcher)
}

/// As [`verify`], and remembers the result. What is damaged counts as not stored, so that the next save writes it again.
pub fn verify_and_remember(
    calls: &Calls,
    disk: &Ramdisk,
    generation: Option<u64>,
    watcher: Watcher<'_>,
) -> Result<Checked, Error> {
    let (store, found) = find(calls, disk, generation)?;
    let mut damaged = BTreeSet::new();
    let checked = verify_in(disk, &store, &found, &mut damaged, watcher);
    let damage = match &checked {
        Ok(_) => None,
        Err(error) if error.kind == ErrorKind::SnapshotCorrupt => Some(error.message.clone()),
        // It was not read as a whole.
        Err(_) => return checked,
    };
    match (checked, store.verified(found.number, damage, damaged)) {
        (Err(error), Err(other)) => Err(error.join(other)),
        // A good one whose verification is forgotten is verified again.
        (checked, _) => checked,
    }
}

/// `damaged_frames` receives the frames that cannot be read: number of the file, offset.
fn verify_in(
    disk: &Ramdisk,
    store: &Store,
    found: &Generation,
    damaged_frames: &mut BTreeSet<(u64, u64)>,
    watcher: Watcher<'_>,
) -> Result<Checked, Error> {
    let manifest = usable(disk, found)?;
    let number = found.number;
    let total_bytes = manifest.contents.bytes;
    let mut shelf = Shelf::open(store, &store.listing()?, &BTreeSet::new())?;
    let checked = check(&mut shelf, number, &mut |done_bytes| {
        watcher(Progress { doing: "verifying", done_bytes, total_bytes })
    });
    *damaged_frames = shelf.damaged();
    let Looked { contents, damaged } = checked.map_err(|error| of_generation(disk, number, error))?;
    if !damaged.is_empty() {
        let error = refused(ErrorKind::SnapshotCorrupt, disk, found, &damaged.summary());
        return Err(error.with_private(damaged.report()));
    }
    let entries = contents.entries();
    if entries != manifest.contents.entries() {
        let why = format!("{entries} of {} entries", manifest.contents.entries());
        return Err(refused(ErrorKind::SnapshotCorrupt, disk, found, &why));
    }
    Ok(Checked { generation: number, entries, bytes: contents.bytes })
}

/// Totals of a tree, and its files with damaged contents.
#[derive(Debug, Default)]
pub struct Looked {
    pub contents: Contents,
    pub damaged: Omitted,
}

/// Looks for all contents of a tree, as far as known without reading them; `each` receives where they are.
pub fn look(tree: &[u8], shelf: &Shelf<'_>, each: &mut dyn FnMut(Place)) -> Result<Looked, TransferError> {
    let unusable = |why: &'static str| TransferError::Unusable(why.to_owned());
    let mut looked = Looked::default();
    let (mut reader, mut places) = (tree::Reader::new(tree), Places::default());
    while let Some(entry) = reader.next_entry().map_err(unusable)? {
        let Placed { entry, directory, .. } = places.place(entry).map_err(unusable)?;
        let contents = &mut looked.contents;
        *match entry.body {
            Body::Directory(_) => &mut contents.directories,
            Body::File { .. } => &mut contents.files,
            Body::HardLink(_) => &mut contents.hard_links,
            _ => &mut contents.others,
        } += 1;
        contents.bytes = contents.bytes.saturating_add(entry.size());
        let (mut left, mut damage) = (entry.size(), None);
        while let Some(run) = reader.run().map_err(unusable)? {
            let run = match run {
                tree::Run::Hole(blocks) => {
                    left = left.saturating_sub(blocks.saturating_mul(BLOCK as u64));
                    continue;
                }
                tree::Run::Contents(run) => run,
            };
            for hash in hashes(run) {
                match shelf.place(&hash, &mut left) {
                    Ok(place) => {
                        contents.occupied_bytes += u64::from(place.length).next_multiple_of(PAGE);
                        each(place);
                    }
                    Err(TransferError::Bad(why)) => damage = damage.or(Some(why)),
                    // Without one content, the lengths of the others cannot be told.
                    Err(_) if damage.is_some() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if let Some(why) = damage {
            let path = || join(&places.directories.path(directory), &entry.name);
            looked.damaged.add(path, Reason::Contents, why);
        }
    }
    if looked.contents.directories == 0 { Err(unusable("the tree is empty")) } else { Ok(looked) }
}

/// A manifest for a generation whose own is damaged, from its tree.
pub fn rebuilt(disk: &Ramdisk, tree: &[u8], shelf: &Shelf<'_>) -> Result<Manifest, TransferError> {
    Ok(Manifest {
        mode: disk.keep.mode,
        began_at_usec: 0,
        finished_at_usec: 0,
        boot_id: String::new(),
        reason: SaveReason::Unknown,
        consistency: Consistency::Fuzzy,
        changed: Vec::new(),
        skipped: 0,
        omitted: Omitted::default(),
        contents: look(tree, shelf, &mut |_| {})?.contents,
    })
}

/// Reads all contents of a generation, in the order of the store, so that a disk with a head reads them at once.
fn check(
    shelf: &mut Shelf<'_>,
    number: u64,
    each: &mut dyn FnMut(u64) -> bool,
) -> Result<Looked, TransferError> {
    let tree = shelf.tree_of(number)?;
    let mut frames = BTreeSet::new();
    look(&tree, shelf, &mut |place| _ = frames.insert((place.file, place.frame)))?;
    let mut done = 0_u64;
    for frame in frames {
        match shelf.frame(frame) {
            Ok(data) => done += data.len() as u64,
            // The shelf remembers it.
            Err(TransferError::Bad(_)) => {}
            Err(error) => return Err(error),
        }
        if !each(done) {
            return Err(TransferError::Ended);
        }
    }
    look(&tree, shelf, &mut |_| {})
}

/// Copies a generation (the newest by default) into a directory, which must be empty or is created. A directory that is
/// created gets its name only once it is complete. Files whose contents are damaged are left out.
pub fn export(
    calls: &Calls,
    disk: &Ramdisk,
    generation: Option<u64>,
    to: &Path,
    watcher: Watcher<'_>,
) -> Result<Extracted, Error> {
    let (store, found) = find(calls, disk, generation)?;
    refuse_kernel(calls, store.fd())?;
    let mut shelf = Shelf::open(&store, &store.listing()?, &BTreeSet::new())?;
    let tree = shelf.tree_of(found.number).map_err(|error| of_generation(disk, found.number, error));
    let (tree, manifest) = match (usable(disk, &found), tree) {
        (Ok(manifest), tree) => (tree?, manifest.clone()),
        // Perhaps only the manifest is damaged.
        (Err(_), Ok(tree)) => {
            let manifest = rebuilt(disk, &tree, &shelf);
            (tree, manifest.map_err(|error| of_generation(disk, found.number, error))?)
        }
        (Err(error), Err(_)) => return Err(error),
    };
    let site = Site::new(calls, to)?;
    let extracted = site.fill(disk, &found, &manifest, |options| {
        let extracted = extract(calls, site.directory.as_fd(), options, &mut *watcher, |builder| {
            unshelve(&tree, &mut shelf, builder, OnDamage::Omit)
        });
        extracted.map_err(|error| of_generation(disk, found.number, below(to, error)))
    });
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
        work(Options {
            mode: manifest.mode,
            threads: threads(),
            doing: "exporting",
            total: manifest.contents.bytes,
        })
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
    let (_, found) = find(calls, disk, Some(number))?;
    let manifest = usable(disk, &found)?;
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

/// Why a generation cannot be read, for people, if its manifest says so.
pub fn text(why: &Unusable) -> String {
    match why {
        Unusable::Broken(why) => why.clone(),
        Unusable::OtherVersion(version) => {
            format!("its format is version {version}, which this program does not know")
        }
    }
}

/// The manifest of a generation.
fn usable<'a>(disk: &Ramdisk, generation: &'a Generation) -> Result<&'a Manifest, Error> {
    generation.manifest.as_ref().map_err(|why| {
        let kind = match why {
            Unusable::Broken(_) => ErrorKind::SnapshotCorrupt,
            Unusable::OtherVersion(_) => ErrorKind::Unsupported,
        };
        refused(kind, disk, generation, &text(why))
    })
}

fn refused(kind: ErrorKind, disk: &Ramdisk, generation: &Generation, why: &str) -> Error {
    Error::new(kind, format!("{}, snapshot {}: {why}", disk.name, generation.number))
}

fn of_generation(disk: &Ramdisk, number: u64, error: TransferError) -> Error {
    let error = Error::from(error);
    Error { message: format!("{}, snapshot {number}: {}", disk.name, error.message), ..error }
}
