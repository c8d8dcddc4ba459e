//! RAM disks that keep their contents: saved as complete, verified generations, and loaded at boot before they are
//! used.
//!
//! The last good generation exists at every instant: it is pruned only after a new one is complete and on disk, and one
//! that cannot be loaded is renamed. All of it runs in `zramd-worker`; only [`status`] is for all
//! processes.

mod compact;
mod directory;
mod export;
mod extract;
mod extracted;
pub mod format;
mod frames;
mod load;
mod needs;
mod open_directories;
mod pack;
mod read;
mod root;
mod save;
mod shelf;
mod sink;
mod transfer_error;
mod walk;

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use host::Errno;
use host::linux::ramdisk::Calls;
use logic::ramdisk::KeepSettings;
use logic::ramdisk::hold::Hold;
use logic::ramdisk::manifest::Manifest;
use logic::ramdisk::rest_name;
use logic::ramdisk::state::State;

use directory::Listing;
pub use directory::{Generation, Store};
pub use export::{Checked, check_size, export, verify, verify_and_remember};
pub use load::{Loaded, adopt, load, load_from, old_text, restored_in};
pub use logic::error::{Error, ErrorKind};
pub use save::{Request, Room, Saved, save, save_in};
pub use transfer_error::TransferError;

/// A RAM disk and the settings of its snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ramdisk {
    pub name: String,
    /// The private mount point where it is loaded and saved.
    pub place: PathBuf,
    /// The public mount point; the store must not be below it.
    pub mount_point: PathBuf,
    /// The settings of its snapshots.
    pub keep: KeepSettings,
    /// Maximum size of the store in bytes.
    pub store_limit: Option<u64>,
    /// Maximum of what saves should write in 24 hours, in bytes: above it, they copy nothing from old files.
    pub daily_budget: Option<u64>,
    /// A directory in memory that also records the load of this boot, in case the store is full or read-only.
    pub notes: Option<PathBuf>,
    /// A generation that is not pruned now, because it is selected for the next load.
    pub spared: Option<u64>,
    /// Accepts a plain directory as the RAM disk, and a store that may be gone after a reboot: for tests.
    pub trial: bool,
}

impl Ramdisk {
    /// The directory of its generations, created if missing.
    pub fn store(&self) -> &Path {
        Path::new(&self.keep.store)
    }
}

/// Progress of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The current operation.
    pub doing: &'static str,
    /// Bytes of files processed.
    pub done_bytes: u64,
    /// Bytes of all files, as far as known.
    pub total_bytes: u64,
}

/// Receives the progress, and returns whether to continue. Called often, so it should be quick.
pub type Watcher<'a> = &'a mut dyn FnMut(Progress) -> bool;

/// State and generations of a RAM disk, read without changing anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// How it was loaded, and what was saved last.
    pub state: State,
    /// Its generations, newest first.
    pub generations: Vec<Generation>,
    /// Names of the files that were set aside.
    pub bad: Vec<String>,
    /// Names of archives of an earlier version, which are not read.
    pub old: Vec<String>,
    /// Bytes of all files with contents.
    pub bytes: u64,
}

impl Status {
    fn new(state: State, listing: Listing) -> Status {
        let bytes = listing.bytes();
        let Listing { generations, bad, old, .. } = listing;
        Status { state, generations, bad, old, bytes }
    }

    /// The newest generation that is whole.
    pub fn newest(&self) -> Option<(u64, &Manifest)> {
        self.generations
            .iter()
            .filter(|generation| generation.is_whole())
            .find_map(|generation| Some((generation.number, generation.manifest.as_ref().ok()?)))
    }
}

/// State and generations of a RAM disk. Empty if there is no store yet.
pub fn status(calls: &Calls, disk: &Ramdisk) -> Result<Status, Error> {
    let Some(store) = Store::glance(calls, disk)? else { return Ok(Status::default()) };
    Ok(Status::new(store.state()?, store.listing()?))
}

/// As [`status`], and the space for the next save by a timer, if the contents stay about the same; `None` without a snapshot, and
/// if it cannot be told.
pub fn status_and_room(calls: &Calls, disk: &Ramdisk) -> Result<(Status, Option<Room>), Error> {
    let Some(store) = Store::glance(calls, disk)? else { return Ok((Status::default(), None)) };
    let (state, listing) = (store.state()?, store.listing()?);
    let room = save::room(calls, disk, &store, &state, &listing).ok().flatten();
    Ok((Status::new(state, listing), room))
}

/// Refuses a kernel without openat2(2) (before 5.6), which loading needs in order not to follow links.
pub fn refuse_kernel(calls: &Calls, directory: BorrowedFd<'_>) -> Result<(), Error> {
    match calls.open_below(directory, b"") {
        Err(Errno(libc::ENOSYS)) => {
            let message = "RAM disks that are kept need Linux 5.6 or newer: this kernel has no openat2(2)";
            Err(Error::new(ErrorKind::Unsupported, message))
        }
        _ => Ok(()),
    }
}

/// Whether something is mounted at this path.
pub fn is_mounted(calls: &Calls, path: &Path) -> bool {
    calls.open_directory(path).is_ok_and(|opened| calls.is_mount_point(opened.as_fd()).unwrap_or(false))
}

/// Protects a generation from being pruned, for the reason `why`; `None` removes the protection.
pub fn pin(calls: &Calls, disk: &Ramdisk, generation: u64, why: Option<&str>) -> Result<(), Error> {
    let store = Store::lock_existing(calls, disk)?;
    store.find(generation)?;
    match why {
        Some(why) => store.pin(generation, why),
        None => store.unpin(generation),
    }
}

/// Protects a generation from being pruned, because it cannot be loaded.
pub fn hold(calls: &Calls, disk: &Ramdisk, generation: u64, hold: Hold) -> Result<(), Error> {
    let store = Store::lock_existing(calls, disk)?;
    store.change_holds(|state| store.hold(generation, hold, state))
}

/// As [`delete`], but refuses to delete a good generation unless another one passes verification.
pub fn delete_spare(calls: &Calls, disk: &Ramdisk, number: u64, watcher: Watcher<'_>) -> Result<(), Error> {
    let (spare, others): (Vec<Generation>, Vec<Generation>) =
        status(calls, disk)?.generations.into_iter().partition(|generation| generation.number == number);
    refuse_pinned(disk, spare.first())?;
    if spare.first().is_some_and(Generation::is_whole) {
        let mut found = false;
        for other in others.iter().filter(|other| other.is_whole()) {
            match verify(calls, disk, Some(other.number), &mut *watcher) {
                Err(error) if error.kind == ErrorKind::SnapshotCorrupt => {}
                checked => {
                    checked?;
                    found = true;
                    break;
                }
            }
        }
        if !found {
            let message =
                format!("{}: snapshot {number} is the only good one; save first, then delete it", disk.name);
            return Err(Error::new(ErrorKind::Unsafe, message));
        }
    }
    delete(calls, disk, number)
}

/// Deletes a generation that is not pinned, or its file that was set aside. Contents that others need stay.
pub fn delete(calls: &Calls, disk: &Ramdisk, generation: u64) -> Result<(), Error> {
    let store = Store::lock_existing(calls, disk)?;
    let listing = store.listing()?;
    let is_it = |found: &&Generation| found.number == generation;
    refuse_pinned(disk, listing.generations.iter().find(is_it))?;
    if !listing.files.iter().any(|file| file.number == generation && file.name != rest_name(generation)) {
        let message = format!("there is no snapshot {generation} in {}", disk.store().display());
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    needs::remove(
        &store,
        &listing,
        &[generation],
        &store.state()?.damaged,
        true,
        &format::Hashes::default(),
    )?;
    store.sync()
}

fn refuse_pinned(disk: &Ramdisk, generation: Option<&Generation>) -> Result<(), Error> {
    let pinned = generation.and_then(|found| Some((found.number, found.kept_because()?)));
    let Some((number, why)) = pinned else { return Ok(()) };
    let name = &disk.name;
    let message = format!(
        "{name}: snapshot {number} is pinned ({why}); run `zramdctl ramdisk pin --off {name} {number}`, then delete it"
    );
    Err(Error::new(ErrorKind::Unsafe, message))
}
