//! Loads a generation into a RAM disk.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use crate::{Error, ErrorKind};
use host::Errno;
use host::linux::files;
use host::linux::ramdisk::{Calls, FileSystem};
use logic::ramdisk::hold::Hold;
use logic::ramdisk::manifest::{Manifest, Unusable};
use logic::ramdisk::state::{LoadRecord, Outcome, Place, Root, State};
use logic::ramdisk::{Mode, OnFailure};

use super::directory::{Generation, Listing, Store};
use super::export::{look, rebuilt, text};
use super::extract::{OnDamage, Options, extract, is_empty, unshelve, wipe};
use super::extracted::Extracted;
use super::frames::threads;
use super::pack::pack;
use super::shelf::Shelf;
use super::transfer_error::{TransferError, at, below, check_fit};
use super::walk::{hides_changes, walk};
use super::{Progress, Ramdisk, Watcher, refuse_kernel, root};

/// Result of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// How it ended.
    pub outcome: Outcome,
    /// The generation that was loaded.
    pub generation: Option<u64>,
    /// When that was saved, in microseconds since 1970.
    pub made_at_usec: Option<u64>,
    /// What was extracted.
    pub extracted: Extracted,
    /// Whether the boot before this one ended without a last save: changes since `made_at_usec` are lost.
    pub unclean: bool,
    /// Whether nothing was done, because this directory had been loaded in this boot already.
    pub already: bool,
    /// Generations that could not be loaded, and why. Contains no file names, because every user may read it.
    pub refused: Vec<(u64, String)>,
    /// Warnings. They may contain file names, so only root may read them.
    pub warnings: Vec<String>,
    /// Why the store could not be written to, and what that means for saving; `None` on success.
    pub store_problem: Option<String>,
}

impl Loaded {
    fn new(outcome: Outcome) -> Loaded {
        Loaded {
            outcome,
            generation: None,
            made_at_usec: None,
            extracted: Extracted::default(),
            unclean: false,
            already: false,
            refused: Vec::new(),
            warnings: Vec::new(),
            store_problem: None,
        }
    }
}

/// Fills a RAM disk with its newest good generation. The place must be empty, and not be in use yet.
pub fn load(calls: &Calls, disk: &Ramdisk, watcher: Watcher<'_>) -> Result<Loaded, Error> {
    load_from(calls, disk, &Store::lock_for(calls, disk)?, watcher)
}

/// As [`load`], from a store that is claimed.
pub fn load_from(
    calls: &Calls,
    disk: &Ramdisk,
    store: &Store,
    watcher: Watcher<'_>,
) -> Result<Loaded, Error> {
    let mut job = Job::new(calls, disk, store)?;
    refuse_kernel(calls, job.place.as_fd())?;
    let is_recorded = job.state.is_loaded(&job.boot_id, &job.at);
    if is_recorded || job.is_marked {
        let record = job.state.load.clone().filter(|_| is_recorded);
        let (outcome, generation) =
            record.map_or((Outcome::Loaded, None), |load| (load.outcome, load.generation));
        return Ok(Loaded { generation, already: true, ..Loaded::new(outcome) });
    }
    if job.state.is_half_loaded(&job.boot_id, &job.at) {
        job.was = job.state.load.as_ref().and_then(|load| load.root.clone()).unwrap_or(job.was);
        job.empty()?;
    } else if !is_empty(calls, job.place.as_fd())? {
        let message =
            format!("{} is not empty, and {} was not loaded into it", disk.place.display(), disk.name);
        return Err(Error::new(ErrorKind::Unsafe, message));
    }
    job.mark()?;
    job.state.unclean |= job.state.is_unclean(&job.boot_id);
    // Loading works from a read-only store, too.
    job.record(Outcome::Unfinished, None, None).ok();
    match job.run(&mut *watcher) {
        Ok(mut loaded) => {
            loaded.unclean = job.state.unclean;
            let is_marked = loaded.outcome != Outcome::Passthrough && job.finish_mark();
            if let Err(error) = job.remember(&loaded, watcher) {
                let problem = if is_marked || job.is_noted() {
                    format!("it is not saved while its store cannot be written: {error}")
                } else {
                    // The store may still say half loaded, and such a disk is wiped: a new mark makes it another one.
                    job.mark().ok();
                    format!("it cannot be saved in this boot: {error}")
                };
                loaded.store_problem = Some(problem);
            }
            Ok(loaded)
        }
        Err(error) => {
            job.record(Outcome::Failed, None, None).ok();
            Err(error)
        }
    }
}

/// Declares the present contents of the RAM disk to be kept, without loading anything.
pub fn adopt(calls: &Calls, disk: &Ramdisk) -> Result<(), Error> {
    adopt_in(calls, disk, &Store::lock_for(calls, disk)?)
}

/// As [`adopt`], with a store that is claimed.
fn adopt_in(calls: &Calls, disk: &Ramdisk, store: &Store) -> Result<(), Error> {
    let mut job = Job::new(calls, disk, store)?;
    if let Some(newest) = job.listing.generations.first() {
        job.store.pin(newest.number, "not loaded: the contents of the RAM disk were kept instead")?;
    }
    job.mark()?;
    let is_marked = job.finish_mark();
    job.record(Outcome::FirstUse, None, None)
        .or_else(|error| if is_marked || job.is_noted() { Ok(()) } else { Err(error) })
}

/// Notes that the contents are kept, after the RAM disk was filled from this generation.
pub fn restored_in(
    calls: &Calls,
    disk: &Ramdisk,
    store: &Store,
    generation: u64,
    extracted: &Extracted,
) -> Result<(), Error> {
    adopt_in(calls, disk, store)?;
    store.change_holds(|state| store.loaded(generation, extracted, state))
}

struct Job<'a> {
    calls: &'a Calls,
    disk: &'a Ramdisk,
    store: &'a Store,
    place: OwnedFd,
    at: Place,
    /// Whether the mark says that it is loaded.
    is_marked: bool,
    /// Owner, mode and attributes of the root while the RAM disk is empty.
    was: Root,
    boot_id: String,
    state: State,
    listing: Listing,
}

/// Result of trying to load one generation.
enum Attempt {
    Loaded(Extracted),
    /// Its tree is damaged: it is set aside, and an older one is tried.
    Broken(String),
    /// Contents of some of its files are damaged: an older one is tried, and if that is no better, this one without them.
    Damaged(String),
    /// It may be good, but cannot be loaded for a reason of this program or machine: it is held, and an older one is tried.
    Held(Hold, Option<Error>),
    /// It is good, but loading any other would fail as well.
    Impossible(Error),
    /// The watcher ended the job.
    Ended,
}

impl<'a> Job<'a> {
    fn new(calls: &'a Calls, disk: &'a Ramdisk, store: &'a Store) -> Result<Job<'a>, Error> {
        let boot_id = calls.boot_id().map_err(at("/proc/sys/kernel/random/boot_id", "read"))?;
        let place = calls.open_directory(&disk.place).map_err(at(disk.place.display(), "open"))?;
        let (identity, is_marked) = root::identify(calls, disk, place.as_fd())?;
        let was = root::look(calls, place.as_fd()).map_err(at(disk.place.display(), "look at"))?;
        let (state, listing) = (store.state()?, store.listing()?);
        Ok(Job { calls, disk, store, place, at: identity, is_marked, was, boot_id, state, listing })
    }

    /// Empties the RAM disk, and restores the attributes of its root.
    fn empty(&self) -> Result<(), Error> {
        wipe(self.calls, self.place.as_fd(), &self.disk.place)?;
        let restored = root::restore(self.calls, self.place.as_fd(), &self.was);
        restored.map_err(at(self.disk.place.display(), "restore the owner and mode of"))
    }

    /// Sets a new mark on the root, which tells this RAM disk from every other one.
    fn mark(&mut self) -> Result<(), Error> {
        let path = self.disk.place.display();
        self.calls.set_mark(self.place.as_fd()).map_err(at(&path, "mark"))?;
        (self.at, _) = root::identify(self.calls, self.disk, self.place.as_fd())?;
        Ok(())
    }

    /// Marks the RAM disk as loaded; false if the file system has no such attributes.
    fn finish_mark(&self) -> bool {
        let place = self.place.as_fd();
        let finished = self.calls.finish_mark(place, &self.at.mark);
        finished.is_ok()
            && self.calls.mark(place).is_ok_and(|(mark, is_loaded)| is_loaded && mark == self.at.mark)
    }

    fn record(
        &mut self,
        outcome: Outcome,
        generation: Option<u64>,
        fingerprint: Option<String>,
    ) -> Result<(), Error> {
        let (boot_id, place, at_usec) = (self.boot_id.clone(), self.at.clone(), self.calls.now_usec());
        let root = Some(self.was.clone()).filter(|_| outcome == Outcome::Unfinished);
        self.state.load = Some(LoadRecord { boot_id, place, outcome, generation, at_usec, root });
        self.state.dirty = true;
        self.state.fingerprint = fingerprint;
        self.state.fingerprint_of = generation;
        self.store.write_state(&self.state)
    }

    /// Whether the result of the load is stored for the rest of this boot, in the store or in memory.
    fn is_noted(&self) -> bool {
        self.store.state().is_ok_and(|state| state.load == self.state.load)
    }

    /// Stores the result, and a fingerprint of the contents: if they do not change, they need not be saved again.
    fn remember(&mut self, loaded: &Loaded, watcher: Watcher<'_>) -> Result<(), Error> {
        let (calls, disk) = (self.calls, self.disk);
        let mut fingerprint = None;
        let Extracted { unsupported, omitted, .. } = &loaded.extracted;
        let is_whole = loaded.outcome == Outcome::Loaded && *unsupported == 0 && omitted.is_empty();
        let is_useful = |room: FileSystem| !hides_changes(room.magic, disk.keep.mode);
        if is_whole && calls.file_system(self.place.as_fd()).is_ok_and(is_useful) {
            calls.wait_for_tick();
            // Without a fingerprint, the first save writes everything; nothing worse.
            let bytes = loaded.extracted.bytes;
            let progress = Progress { doing: "loading", done_bytes: bytes, total_bytes: bytes };
            let walked = walk(calls, self.place.as_fd(), disk.keep.mode, &mut || watcher(progress));
            fingerprint = walked.ok().and_then(|tree| tree.fingerprint);
        }
        self.record(loaded.outcome, loaded.generation, fingerprint)
    }

    fn run(&mut self, watcher: Watcher<'_>) -> Result<Loaded, Error> {
        if self.listing.is_virgin() {
            let mut loaded = self.first_use(watcher)?;
            loaded.warnings.extend(old_text(self.disk, &self.listing.old));
            return Ok(loaded);
        }
        let mut shelf = Shelf::open(self.store, &self.listing, &BTreeSet::new())?;
        shelf.is_read_whole = true;
        let (mut refused, mut warnings, mut broken) = (Vec::new(), Vec::new(), Vec::new());
        let mut reason: Option<Error> = None;
        let mut is_held = false;
        let mut loaded = None;
        let generations = std::mem::take(&mut self.listing.generations);
        let mut damaged: Vec<&Generation> = Vec::new();
        for generation in &generations {
            let number = generation.number;
            match self.attempt(generation, &mut shelf, OnDamage::Fail, watcher) {
                Attempt::Loaded(extracted) => {
                    loaded = Some((generation, extracted));
                    break;
                }
                Attempt::Broken(why) => {
                    broken.push(number);
                    refused.push((number, why));
                }
                Attempt::Damaged(why) => {
                    damaged.push(generation);
                    // The older ones follow `keep`.
                    if !std::mem::replace(&mut is_held, true) {
                        self.hold(number, Hold::Other { why: why.clone() }, &mut warnings);
                    }
                    refused.push((number, why));
                }
                Attempt::Held(hold, error) => {
                    if !std::mem::replace(&mut is_held, true) {
                        self.hold(number, hold.clone(), &mut warnings);
                    }
                    refused.push((number, hold.text()));
                    reason = reason.or(error);
                }
                Attempt::Impossible(error) => {
                    self.hold(number, Hold::Other { why: error.message.clone() }, &mut warnings);
                    refused.push((number, error.message.clone()));
                    reason = Some(error);
                    damaged.clear();
                    break;
                }
                Attempt::Ended => return Err(TransferError::Ended.into()),
            }
        }
        for generation in damaged {
            if loaded.is_some() {
                break;
            }
            match self.attempt(generation, &mut shelf, OnDamage::Omit, watcher) {
                Attempt::Loaded(extracted) => {
                    refused.retain(|(number, _)| *number > generation.number);
                    loaded = Some((generation, extracted));
                }
                Attempt::Ended => return Err(TransferError::Ended.into()),
                // Its reason is that of the first attempt.
                _ => {}
            }
        }
        // They count as not stored, so that the next save writes them again.
        self.state.damaged = shelf.damaged();
        drop(shelf);
        for number in broken {
            if let Err(error) = self.store.set_aside(number) {
                warnings.push(error.to_string());
            }
        }
        if let Some((generation, extracted)) = loaded {
            if let Err(error) = self.store.loaded(generation.number, &extracted, &mut self.state) {
                warnings.push(error.to_string());
            }
            if !extracted.omitted.is_empty() {
                warnings.push(extracted.omitted.report());
            }
            warnings.extend(reason.map(|error| error.full()));
            let outcome = if refused.is_empty() { Outcome::Loaded } else { Outcome::Fallback };
            if refused.is_empty() {
                (self.state.verified_usec, self.state.damage) = (self.calls.now_usec(), None);
            }
            return Ok(Loaded {
                generation: Some(generation.number),
                made_at_usec: generation.manifest.as_ref().ok().map(|manifest| manifest.began_at_usec),
                extracted,
                refused,
                warnings,
                ..Loaded::new(outcome)
            });
        }
        let names: Vec<String> =
            refused.iter().map(|(number, why)| format!("snapshot {number}: {why}")).collect();
        let reason = reason.unwrap_or_else(|| {
            let why =
                if names.is_empty() { "damaged ones were set aside".to_owned() } else { names.join("; ") };
            let message = format!("no snapshot of {} can be loaded: {why}", self.disk.name);
            Error::new(ErrorKind::SnapshotCorrupt, message)
        });
        let on_failure = self.disk.keep.on_failure.unwrap_or_else(|| {
            let has_contents = files::has_entries(&self.disk.mount_point);
            if has_contents { OnFailure::Passthrough } else { OnFailure::Empty }
        });
        let outcome = match on_failure {
            OnFailure::Fail => return Err(reason),
            OnFailure::Empty => Outcome::Empty,
            OnFailure::Passthrough => Outcome::Passthrough,
        };
        warnings.insert(0, reason.full());
        Ok(Loaded { refused, warnings, ..Loaded::new(outcome) })
    }

    /// Keeps a generation that was not loaded, or not completely, from being pruned: later saves lack what is in it.
    fn hold(&mut self, number: u64, hold: Hold, warnings: &mut Vec<String>) {
        if let Err(error) = self.store.hold(number, hold, &mut self.state) {
            warnings.push(error.to_string());
        }
    }

    fn attempt(
        &self,
        generation: &Generation,
        shelf: &mut Shelf<'_>,
        on_damage: OnDamage,
        watcher: Watcher<'_>,
    ) -> Attempt {
        if let Err(why @ Unusable::OtherVersion(_)) = &generation.manifest {
            return Attempt::Held(Hold::Other { why: text(why) }, None);
        }
        let tree = match shelf.tree_of(generation.number) {
            Ok(tree) => tree,
            Err(TransferError::Bad(why)) => {
                let broken = generation.manifest.as_ref().err().map(text);
                return Attempt::Broken(broken.unwrap_or(format!("its tree is damaged: {why}")));
            }
            Err(error) => return Attempt::Held(Hold::Other { why: error.to_string() }, None),
        };
        // Perhaps only the manifest is damaged.
        let manifest = match &generation.manifest {
            Ok(manifest) => manifest.clone(),
            Err(_) => match rebuilt(self.disk, &tree, shelf) {
                Ok(manifest) => manifest,
                Err(error) => return Attempt::Held(Hold::Other { why: error.to_string() }, None),
            },
        };
        let manifest = &manifest;
        if on_damage == OnDamage::Fail {
            match look(&tree, shelf, &mut |_| {}) {
                Ok(looked) if looked.damaged.is_empty() => {}
                Ok(looked) => return Attempt::Damaged(looked.damaged.summary()),
                Err(error) => return Attempt::Held(Hold::Other { why: error.to_string() }, None),
            }
        }
        let mode = if self.disk.keep.mode == Mode::Skeleton { Mode::Skeleton } else { manifest.mode };
        let options = Options { mode, threads: threads(), doing: "loading", total: manifest.contents.bytes };
        let extracted = extract(self.calls, self.place.as_fd(), options, watcher, |builder| {
            unshelve(&tree, shelf, builder, on_damage)
        });
        let error = match extracted {
            Ok(extracted) => return Attempt::Loaded(extracted),
            Err(error) => below(&self.disk.place, error),
        };
        if let Err(left) = self.empty() {
            return Attempt::Impossible(Error::from(error).join(left));
        }
        match error {
            TransferError::Bad(why) => {
                let looked = look(&tree, shelf, &mut |_| {}).unwrap_or_default();
                Attempt::Damaged(if looked.damaged.is_empty() { why } else { looked.damaged.summary() })
            }
            TransferError::Unusable(_) | TransferError::Store(_) => {
                Attempt::Held(Hold::Other { why: error.to_string() }, None)
            }
            TransferError::Tree(_) => match Error::from(error) {
                // The totals of the manifest explain it better, where they exceed the disk.
                error if error.kind == ErrorKind::DiskFull => match self.size_hold(manifest, &error) {
                    Ok(hold) => Attempt::Held(hold, Some(self.check_size(manifest).err().unwrap_or(error))),
                    Err(error) => Attempt::Impossible(error),
                },
                error => Attempt::Impossible(error),
            },
            TransferError::Ended => Attempt::Ended,
        }
    }

    /// Why a generation that did not fit is not loaded.
    fn size_hold(&self, manifest: &Manifest, error: &Error) -> Result<Hold, Error> {
        let place = self.disk.place.display();
        let room = self.calls.file_system(self.place.as_fd()).map_err(at(place, "look at"))?;
        // A skeleton has no contents, whatever its manifest says.
        if self.disk.keep.mode == Mode::Skeleton {
            return Ok(Hold::Other { why: error.message.clone() });
        }
        let contents = &manifest.contents;
        let (needed, size) = (contents.occupied_bytes, room.free_bytes());
        // A file system takes a part of its size for itself.
        let hold = Hold::of(contents, room.size_bytes(), room.total_inodes);
        let hold = hold.or_else(|| Hold::of(contents, size, room.space.free_inodes));
        Ok(hold.unwrap_or(Hold::Size { needed, size }))
    }

    fn check_size(&self, manifest: &Manifest) -> Result<(), Error> {
        if self.disk.keep.mode == Mode::Snapshot || manifest.mode == Mode::Skeleton {
            let found = self
                .calls
                .file_system(self.place.as_fd())
                .map_err(at(self.disk.place.display(), "look at"))?;
            let (bytes, inodes) = (found.free_bytes(), found.space.free_inodes);
            check_fit(self.disk, " is not loaded", &manifest.contents, bytes, inodes)?;
        }
        Ok(())
    }

    /// Without any generation yet, fills the RAM disk from a directory, if one is configured.
    fn first_use(&self, watcher: Watcher<'_>) -> Result<Loaded, Error> {
        let loaded = Loaded::new(Outcome::FirstUse);
        if !self.disk.keep.seed {
            return Ok(loaded);
        }
        let seed = self.disk.mount_point.as_path();
        let opened = match self.calls.open_directory(seed) {
            Err(Errno::NOENT) => return Ok(loaded),
            opened => opened.map_err(at(seed.display(), "open"))?,
        };
        let extracted = self.copy(seed, opened.as_fd(), watcher);
        if extracted.is_err() {
            self.empty()?;
        }
        let extracted = extracted?;
        let omitted = extracted.omitted.report();
        let warnings = if omitted.is_empty() { Vec::new() } else { vec![omitted] };
        Ok(Loaded { extracted, warnings, ..loaded })
    }

    fn copy(&self, seed: &Path, source: BorrowedFd<'_>, watcher: Watcher<'_>) -> Result<Extracted, Error> {
        let mode = self.disk.keep.mode;
        let begun = Progress { doing: "copying", done_bytes: 0, total_bytes: 0 };
        let tree = walk(self.calls, source, mode, &mut || watcher(begun))?;
        let found =
            self.calls.file_system(self.place.as_fd()).map_err(at(self.disk.place.display(), "look at"))?;
        let what = format!(" is not filled from {}", seed.display());
        check_fit(self.disk, &what, &tree.contents, found.free_bytes(), found.space.free_inodes)?;
        let options = Options { mode, threads: threads(), doing: "copying", total: tree.contents.bytes };
        let mut packed = None;
        let extracted = extract(self.calls, self.place.as_fd(), options, watcher, |builder| {
            packed = Some(pack(self.calls, source, &tree, mode, builder, "copying", &mut |_| true)?);
            Ok(())
        });
        let mut extracted = extracted?;
        if let Some(packed) = packed {
            extracted.omitted.extend(&packed.omitted);
        }
        Ok(extracted)
    }
}

/// Names snapshots of earlier versions, and how to unpack them.
pub fn old_text(disk: &Ramdisk, old: &[String]) -> Option<String> {
    let name = old.last()?;
    let (count, store, mount_point) = (old.len(), disk.store().display(), disk.mount_point.display());
    Some(format!(
        "{store} has {count} snapshots in the format of an earlier version; unpack one with `zstd -dc {store}/{name} | tar -x --xattrs --acls -C {mount_point}`, then remove gen-*.tar.zst and gen-*.json there"
    ))
}
