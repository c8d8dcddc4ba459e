//! RAM disks that keep what is in them: saved as whole, verified generations, loaded at boot before anyone uses the disk.
//!
//! At every instant the last good generation exists: a new one is complete and on the disk before an old one goes, and what
//! cannot be loaded is set aside under another name. All of it runs in `zramd-worker`; only [`status`] is for everybody.

mod archive;
mod export;
mod extract;
pub mod keep;
mod ladder;
mod load;
mod pack;
mod pipe;
mod root;
mod save;
mod store;
mod trouble;
mod unpack;
mod walk;

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use host::Errno;
use host::linux::ramdisk::Calls;
use logic::ramdisk::manifest::Manifest;
use logic::ramdisk::state::State;
use logic::ramdisk::{Mode, OnFailure};

use super::{Error, ErrorKind};
pub use archive::{ArchiveReader, Found, Refused};
pub use export::{Checked, check_size, export, verify};
pub use load::{Loaded, adopt, load};
pub use save::{Request, Saved, save};
pub use store::Generation;
pub use trouble::Trouble;

/// A disk, and how it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Disk {
    /// Its name, for messages.
    pub name: String,
    /// The directory of its generations, `/var/lib/zramd/disks/NAME`. It is created when it does not exist.
    pub store: PathBuf,
    /// Where it is mounted when it is loaded and saved: a place that nothing else uses.
    pub place: PathBuf,
    /// Where its users see it, if that is another path: the store must not be below it.
    #[serde(default)]
    pub target: Option<PathBuf>,
    /// What is kept.
    pub mode: Mode,
    /// How many generations are kept besides pinned ones, at least one.
    pub keep: u32,
    /// How many bytes they may take together.
    #[serde(default)]
    pub store_limit: Option<u64>,
    /// What happens when no generation can be loaded.
    pub on_failure: OnFailure,
    /// The directory whose contents fill the disk when there is no generation yet. It is read only.
    #[serde(default)]
    pub seed: Option<PathBuf>,
    /// Takes a plain directory as the disk, and a store that may be gone after a reboot: for trying things out.
    #[serde(default)]
    pub trial: bool,
    /// A directory in memory that also records what was loaded in this boot: the store may be full, or read-only.
    #[serde(default)]
    pub notes: Option<PathBuf>,
    /// A generation that is not pruned for now, since it is about to be restored.
    #[serde(default)]
    pub spared: Option<u64>,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub doing: &'static str,
    /// Bytes of files that are through.
    pub done_bytes: u64,
    /// All of them, as far as is known.
    pub total_bytes: u64,
}

/// Who wants to know how far a job is, and says whether it continues. Called often: it should be quick.
pub type Watcher<'a> = &'a mut dyn FnMut(Progress) -> bool;

/// What a job fails with that its watcher has ended.
pub const ENDED: &str = "ended before it was complete; nothing was changed";

/// What is known of a disk without touching anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Whether it is loaded, and what was saved last.
    pub state: State,
    /// Its generations, newest first.
    pub generations: Vec<Generation>,
    /// Names of files that were set aside.
    pub bad: Vec<String>,
}

impl Status {
    /// The newest generation that is whole.
    pub fn newest(&self) -> Option<(u64, &Manifest)> {
        self.generations
            .iter()
            .filter(|generation| generation.is_whole())
            .find_map(|generation| Some((generation.number, generation.manifest.as_ref().ok()?)))
    }
}

/// What is known of a disk. A store that is not there yet has nothing.
pub fn status(calls: &Calls, disk: &Disk) -> Result<Status, Error> {
    let Some(store) = store::Store::glance(calls, disk)? else {
        return Ok(Status { state: State::default(), generations: Vec::new(), bad: Vec::new() });
    };
    let listing = store.listing()?;
    Ok(Status { state: store.state()?, generations: listing.generations, bad: listing.bad })
}

/// Refuses a kernel without openat2(2), which loading needs so that it follows no links. Linux has it since 5.6.
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

/// Keeps a generation from being pruned, with a word why; takes that back without one.
pub fn pin(calls: &Calls, disk: &Disk, generation: u64, why: Option<&str>) -> Result<(), Error> {
    let store = store::Store::lock_existing(calls, disk)?;
    store.find(generation)?;
    match why {
        Some(why) => store.pin(generation, why),
        None => store.unpin(generation),
    }
}

/// Deletes a generation like [`delete`], but one that is good only when another one is: that is read to its end before.
pub fn delete_spare(calls: &Calls, disk: &Disk, number: u64, watcher: Watcher<'_>) -> Result<(), Error> {
    let (spare, others): (Vec<Generation>, Vec<Generation>) =
        status(calls, disk)?.generations.into_iter().partition(|generation| generation.number == number);
    refuse_pinned(disk, &spare)?;
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

/// Deletes a generation that is not pinned, with what was set aside of it.
pub fn delete(calls: &Calls, disk: &Disk, generation: u64) -> Result<(), Error> {
    let store = store::Store::lock_existing(calls, disk)?;
    let mut found = store.listing()?.generations;
    found.retain(|found| found.number == generation);
    refuse_pinned(disk, &found)?;
    store.delete(generation)
}

fn refuse_pinned(disk: &Disk, generations: &[Generation]) -> Result<(), Error> {
    let pinned = generations.iter().find_map(|found| Some((found.number, found.pinned.as_ref()?)));
    let Some((number, why)) = pinned else { return Ok(()) };
    let name = &disk.name;
    let message = format!(
        "{name}: snapshot {number} is pinned ({why}); run `zramdctl disk pin --off {name} {number}`, then delete it"
    );
    Err(Error::new(ErrorKind::Unsafe, message))
}
