//! Saves a RAM disk as a generation.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::Receiver;

use crate::{Error, ErrorKind};
use host::linux::ramdisk::{BTRFS, Calls, FileSystem, SUBVOLUME_ROOT};
use host::{Cause, Errno, HostError};
use logic::ramdisk::SaveReason;
use logic::ramdisk::choose::{self, Experience, Kept, Limits, Pin};
use logic::ramdisk::manifest::{Consistency, FORMAT, Manifest, size_text};
use logic::ramdisk::omitted::Omitted;
use logic::ramdisk::state::{SaveOutcome, SaveRecord, State};

use super::archive::check;
use super::export::verify;
use super::pack::{Packed, pack};
use super::pipe::{Chunk, Pipe};
use super::store::{Draft, Listing, Store};
use super::transfer_error::{TransferError, at, check_fit, in_store};
use super::unpack::unpack;
use super::walk::{Each, SNAPSHOT, Tree, walk, walk_settled, walk_since};
use super::{Progress, Ramdisk, Watcher, root};

/// Level of zstd: higher ones make archives a little smaller and take much longer.
const LEVEL: i32 = 1;
/// Bytes after which the kernel is asked to start writing, which leaves less to write at the final sync.
const WRITE_BEHIND: u64 = 8 << 20;
/// Bytes that a generation needs besides its archive, for its manifest and the rest of the last block.
const BESIDES: u64 = 16 << 10;

/// Parameters of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The reason. A save with [`SaveReason::User`] replaces only the previous one with that reason.
    pub reason: SaveReason,
    /// Write a generation even if nothing has changed.
    pub force: bool,
    /// Whether the RAM disk is removed after it: later changes are lost.
    pub last: bool,
    /// Whether it cannot be repeated, because the machine shuts down: for its space, it deletes every snapshot but the
    /// newest ones.
    pub gives_up: bool,
}

/// Result of a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// Nothing has changed since this generation, so nothing was written.
    Unchanged {
        /// Number of the generation.
        generation: u64,
        /// Entries on the RAM disk that it lacks.
        omitted: Omitted,
    },
    /// This generation was written.
    Written {
        /// Number of the generation.
        generation: u64,
        manifest: Box<Manifest>,
        /// Numbers of the generations that were pruned.
        pruned: Vec<u64>,
        /// Errors after the generation was complete.
        warnings: Vec<String>,
    },
}

/// Saves a RAM disk that was loaded in this boot. On failure, the existing generations stay as they are, except those that
/// were deleted for its space, which the error names.
pub fn save(calls: &Calls, disk: &Ramdisk, request: Request, watcher: Watcher<'_>) -> Result<Saved, Error> {
    save_in(calls, disk, &Store::lock_for(calls, disk)?, request, watcher)
}

/// As [`save`], into a store that is claimed.
pub fn save_in(
    calls: &Calls,
    disk: &Ramdisk,
    store: &Store,
    request: Request,
    watcher: Watcher<'_>,
) -> Result<Saved, Error> {
    let began = calls.now_usec();
    let mut state = store.state()?;
    let was = state.clone();
    let mut saved = save_locked(calls, disk, request, store, &mut state, watcher);
    let (outcome, generation, message) = match &saved {
        Ok(Saved::Unchanged { generation, .. }) => (SaveOutcome::Unchanged, Some(*generation), None),
        Ok(Saved::Written { generation, .. }) => (SaveOutcome::Saved, Some(*generation), None),
        Err(error) => (SaveOutcome::Failed, None, Some(error.to_string())),
    };
    if saved.is_ok() && request.last {
        state.dirty = false;
    }
    // If nothing has changed, not even the state is written: every write wears flash.
    if outcome != SaveOutcome::Unchanged || state != was {
        let at_usec = calls.now_usec();
        let took_usec = at_usec.saturating_sub(began);
        let reason = request.reason;
        state.save = Some(SaveRecord { at_usec, reason, outcome, generation, message, took_usec });
        match (&mut saved, store.write_state(&state)) {
            (Ok(Saved::Written { warnings, .. }), Err(error)) => warnings.push(error.to_string()),
            (Ok(Saved::Unchanged { .. }), Err(error)) => return Err(error),
            _ => {}
        }
    }
    saved
}

fn refused(kind: ErrorKind, disk: &Ramdisk, why: &str) -> Error {
    Error::new(kind, format!("{} is not saved: {why}", disk.name))
}

fn save_locked(
    calls: &Calls,
    disk: &Ramdisk,
    request: Request,
    store: &Store,
    state: &mut State,
    watcher: Watcher<'_>,
) -> Result<Saved, Error> {
    let boot_id = calls.boot_id().map_err(at("/proc/sys/kernel/random/boot_id", "read"))?;
    let place = match calls.open_directory(&disk.place) {
        Err(Errno::NOENT | Errno(libc::ENOTDIR)) => {
            return Err(refused(ErrorKind::NotLoaded, disk, "it is not mounted"));
        }
        opened => opened.map_err(at(disk.place.display(), "open"))?,
    };
    let (identity, is_marked) = root::identify(calls, disk, place.as_fd())?;
    let refusal = state.refuse_save(&boot_id, &identity);
    if let Some(why) = refusal {
        // The mark counts more than notes, which may be lost or out of date.
        if !is_marked {
            return Err(refused(ErrorKind::NotLoaded, disk, why));
        }
        state.fingerprint = None;
    }
    let prepared = [store.clean(), store.write_hold(state)];
    let mut warnings: Vec<String> =
        prepared.iter().filter_map(|done| Some(done.as_ref().err()?.to_string())).collect();
    let listing = store.listing()?;
    let begun = Progress { doing: "saving", done_bytes: 0, total_bytes: 0 };
    let mut tree = walk_settled(calls, place.as_fd(), disk.keep.mode, &mut || watcher(begun))?;
    if let Some((generation, manifest)) = unchanged(disk, state, &listing, &tree).filter(|_| !request.force) {
        let live = Source { place: &place, snapshot: None, tree };
        let same = if live.tree.hides_changes {
            compare(calls, &live, disk, manifest, watcher)?
        } else if state.loaded_now(&boot_id) == Some(generation) {
            // What this generation lacks was not loaded from it either.
            Some(live.tree.omitted.clone())
        } else {
            Some(manifest.omitted.clone())
        };
        if let Some(omitted) = same {
            return still(store, request, generation, manifest, omitted);
        }
        tree = live.tree;
    }
    let loaded = state.loaded_now(&boot_id);
    let room = calls.file_system(place.as_fd()).map_err(at(disk.place.display(), "look at"))?;
    let mut kept = listing.kept_for(disk, &room);
    if refusal.is_some() {
        // Without notes about the load, what it did not load cannot be told from the others.
        for kept in &mut kept {
            kept.pin = kept.pin.max(Pin::Held);
        }
    }
    let way = find_room(store, &listing, &kept, &tree, disk, request, loaded)?;
    let writer = Writer {
        calls,
        disk,
        store,
        request,
        listing: &listing,
        place: &place,
        magic: room.magic,
        boot_id: &boot_id,
    };
    let mut pruned = Vec::new();
    let (written, tree) =
        writer.write(tree, &way, &mut pruned, watcher).map_err(|error| after_deleting(error, &pruned))?;
    let number = listing.next;
    let (manifest, exact) = match written {
        Done::New(manifest, exact) => (manifest, exact),
        Done::Same { generation, manifest, omitted, exact } => {
            // Entries that could not be read now may be readable at the next save.
            state.fingerprint = tree.fingerprint.filter(|_| exact && omitted.is_lasting());
            state.fingerprint_of = Some(generation);
            return still(store, request, generation, manifest, omitted);
        }
    };
    for kept in way.last.iter().filter(|kept| pruned.contains(&kept.number)) {
        let number = kept.number;
        if kept.is_pinned() {
            warnings.push(format!(
                "snapshot {number} was pinned, and is deleted: the store had no room for the last save"
            ));
        } else if way.spare.iter().all(|spare| spare.number != number) {
            warnings.push(format!("snapshot {number} is deleted: the store had no room for the last save"));
        }
    }
    warnings.extend(tree.mounts.iter().map(|path| not_saved(path)));
    // The new generation is on disk.
    state.unclean = false;
    state.fingerprint = tree.fingerprint.filter(|_| exact && manifest.omitted.is_lasting());
    state.fingerprint_of = Some(number);
    if let Err(error) = check_fit(
        disk,
        ": the new snapshot may not load",
        &manifest.contents,
        room.size_bytes(),
        room.total_inodes,
    ) {
        warnings.push(error.full());
    }
    if refusal.is_none() {
        match prune(store, disk, &room, loaded) {
            Ok(gone) => pruned.extend(gone),
            Err(error) => warnings.push(error.to_string()),
        }
    }
    Ok(Saved::Written { generation: number, manifest: Box::new(manifest), pruned, warnings })
}

/// A save that has to write.
struct Writer<'a> {
    calls: &'a Calls,
    disk: &'a Ramdisk,
    store: &'a Store,
    request: Request,
    listing: &'a Listing,
    place: &'a OwnedFd,
    /// Of the file system of the RAM disk.
    magic: u64,
    boot_id: &'a str,
}

/// Result of writing.
enum Done<'a> {
    /// A new generation, and whether all of it is of the same point in time.
    New(Manifest, bool),
    /// Nothing: the archive is that of this generation.
    Same { generation: u64, manifest: &'a Manifest, omitted: Omitted, exact: bool },
}

/// Why an attempt to write a generation failed.
enum Failed {
    /// With more space in the store it may succeed.
    ForWant(Error),
    ForGood(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::ForWant(error)
    }
}

impl<'a> Writer<'a> {
    /// Writes a generation. Others are deleted only when the store was too small without that, and only if their space is
    /// enough for what was measured. Adds the deleted ones to `gone`.
    fn write(
        &self,
        mut tree: Tree,
        way: &Way,
        gone: &mut Vec<u64>,
        watcher: Watcher<'_>,
    ) -> Result<(Done<'a>, Tree), Error> {
        let begun = Progress { doing: "saving", done_bytes: 0, total_bytes: 0 };
        let mut is_tried = !way.is_narrow;
        loop {
            let began_at_usec = self.calls.now_usec();
            let mut free = self.store.file_system()?.available_bytes;
            let each = &mut || watcher(begun);
            let source = Source::new(self.calls, self.place, self.magic, tree, self.disk, each)?;
            let mut short = None;
            if is_tried {
                let draft = self.store.draft(self.listing.next);
                match self.attempt(&source, draft.as_ref(), began_at_usec, gone, &mut *watcher) {
                    Ok(written) => return Ok((written, source.end(self.calls))),
                    Err(Failed::ForWant(error)) if error.kind == ErrorKind::StoreFull => short = Some(error),
                    Err(Failed::ForWant(error) | Failed::ForGood(error)) => {
                        source.end(self.calls);
                        return Err(error);
                    }
                }
                // A quota limits the space, too.
                let written = draft.ok().and_then(|draft| self.calls.look(draft.file.as_fd(), b"").ok());
                free = written.map_or(free, |written| written.size.min(free));
            }
            let measured = write_archive(self.calls, &source, self.disk, None, "measuring", &mut *watcher);
            tree = source.end(self.calls);
            let mut wanted = measured?.2.bytes.saturating_add(BESIDES);
            if short.is_some() {
                wanted = wanted.max(free.saturating_add(1));
            }
            let Some(next) = way.next(wanted, free, gone) else {
                let (wanted, free) = (size_text(wanted), size_text(free));
                let why = short.map_or_else(String::new, |error| format!("{}; ", error.message));
                let why = format!(
                    "{why}the store has room for {free}, and {wanted} are needed; {}",
                    more_room(self.disk)
                );
                return Err(refused(ErrorKind::StoreFull, self.disk, &why));
            };
            self.make_way(&next, gone, &mut *watcher)?;
            is_tried = true;
        }
    }

    /// Writes a generation into the space that there is.
    fn attempt(
        &self,
        source: &Source<'_>,
        draft: Result<&Draft, &Error>,
        began_at_usec: u64,
        gone: &[u64],
        watcher: Watcher<'_>,
    ) -> Result<Done<'a>, Failed> {
        let (disk, store, request) = (self.disk, self.store, self.request);
        let draft = draft.map_err(Clone::clone)?;
        let written = write_archive(self.calls, source, disk, Some(draft), "saving", &mut *watcher);
        let written = written.map_err(Failed::from).and_then(|(packed, exact, output)| {
            let Packed { changed, omitted, contents, .. } = packed;
            let same = newest(disk, self.listing).filter(|_| !request.force);
            if let Some((generation, manifest)) = same.filter(|(number, _)| !gone.contains(number))
                && output.is_of(manifest)
            {
                store.discard(draft);
                return Ok(Done::Same { generation, manifest, omitted, exact });
            }
            let manifest = Manifest {
                format_version: FORMAT,
                mode: disk.keep.mode,
                began_at_usec,
                finished_at_usec: self.calls.now_usec(),
                boot_id: self.boot_id.to_owned(),
                reason: request.reason,
                consistency: if exact { Consistency::Exact } else { Consistency::Fuzzy },
                changed,
                skipped: source.tree.skipped,
                omitted,
                contents,
                archive_bytes: output.bytes,
                digest: output.digest(),
            };
            if let Some(limit) = disk.store_limit.filter(|limit| output.bytes > *limit) {
                let (size, limit) = (size_text(output.bytes), size_text(limit));
                let why = format!("the archive has {size}, and store-limit is {limit}");
                return Err(Failed::ForGood(refused(ErrorKind::StoreFull, disk, &why)));
            }
            if request.reason == SaveReason::User {
                check_limit(disk, self.listing, output.bytes).map_err(Failed::ForGood)?;
            }
            read_back(self.calls, disk, draft, &manifest, &mut *watcher)?;
            store.commit(self.listing.next, draft, &manifest)?;
            Ok(Done::New(manifest, exact))
        });
        if written.is_err() {
            store.discard(draft);
        }
        written
    }

    /// Deletes generations for the space of the new one.
    fn make_way(&self, next: &[u64], gone: &mut Vec<u64>, watcher: Watcher<'_>) -> Result<(), Error> {
        if next.is_empty() {
            return Ok(());
        }
        // Until the new generation is written, the newest one is the only one certain to remain: verify it first.
        let newest = self.listing.generations.iter().find(|newest| newest.is_whole());
        verify(self.calls, self.disk, newest.map(|newest| newest.number), watcher)?;
        for number in next {
            self.store.delete(*number)?;
            gone.push(*number);
        }
        Ok(())
    }
}

/// An error after generations were deleted, with their numbers.
fn after_deleting(error: Error, gone: &[u64]) -> Error {
    if gone.is_empty() {
        return error;
    }
    let numbers: Vec<String> = gone.iter().map(u64::to_string).collect();
    let deleted = format!("deleted for its space: snapshot {}", numbers.join(", "));
    let message = match error.kind {
        ErrorKind::Cancelled => format!("{deleted}; the others are unchanged"),
        _ => format!("{}; {deleted}", error.message),
    };
    Error { message, ..error }
}

/// What to do about a store without space.
fn more_room(disk: &Ramdisk) -> String {
    let name = &disk.name;
    format!(
        "make room there, for example with `zramdctl ramdisk delete {name} SNAPSHOT`, or set a smaller keep or another store in [ramdisk.{name}]"
    )
}

/// Reads the archive back from disk, as a load does, before it gets its name and before anything is pruned.
fn read_back(
    calls: &Calls,
    disk: &Ramdisk,
    draft: &Draft,
    manifest: &Manifest,
    watcher: Watcher<'_>,
) -> Result<(), Error> {
    let store = disk.store().display();
    let file = draft.file.as_fd();
    calls.let_go(file, 0, manifest.archive_bytes);
    let total_bytes = manifest.contents.bytes;
    let found = unpack(calls, file, manifest, |reader| {
        check(reader, |done_bytes| watcher(Progress { doing: "verifying", done_bytes, total_bytes }))
    });
    let why = match found {
        Ok(found) if found.omitted.is_empty() && found.entries == manifest.contents.entries() => {
            return Ok(());
        }
        Ok(found) => format!("{} of {} entries", found.entries, manifest.contents.entries()),
        Err(TransferError::Bad(why) | TransferError::Unusable(why)) => why,
        Err(error) => return Err(error.into()),
    };
    let why = format!("what was written to {store} cannot be read back: {why}");
    Err(refused(ErrorKind::SnapshotCorrupt, disk, &why))
}

fn not_saved(mount: &str) -> String {
    format!("{mount} is not saved: it is another file system")
}

/// Nothing has changed since this generation. If it was saved by a user and is now wanted for another reason, it takes
/// that reason: generations saved by users are pruned first.
fn still(
    store: &Store,
    request: Request,
    number: u64,
    manifest: &Manifest,
    omitted: Omitted,
) -> Result<Saved, Error> {
    if manifest.is_by_user() && request.reason != SaveReason::User {
        store.describe(number, &Manifest { reason: request.reason, ..manifest.clone() })?;
    }
    Ok(Saved::Unchanged { generation: number, omitted })
}

/// Refuses a generation requested by a user if it exceeds the limit together with those that it may not replace.
fn check_limit(disk: &Ramdisk, listing: &Listing, bytes: u64) -> Result<(), Error> {
    let others = listing.kept(disk).into_iter().filter(|kept| !kept.by_user);
    let total = others.fold(bytes, |sum, kept| sum.saturating_add(kept.bytes));
    match disk.store_limit.filter(|limit| total > *limit) {
        None => Ok(()),
        Some(limit) => {
            let (total, limit) = (size_text(total), size_text(limit));
            let why = format!(
                "with the snapshots that must be kept, the store would hold {total}, and store-limit is {limit}"
            );
            Err(refused(ErrorKind::StoreFull, disk, &why))
        }
    }
}

/// The newest generation, if its fingerprint matches the RAM disk.
fn unchanged<'a>(
    disk: &Ramdisk,
    state: &State,
    listing: &'a Listing,
    tree: &Tree,
) -> Option<(u64, &'a Manifest)> {
    let same = tree.fingerprint.is_some() && state.fingerprint == tree.fingerprint;
    newest(disk, listing).filter(|(number, _)| same && state.fingerprint_of == Some(*number))
}

/// The newest generation, if it is whole and of the configured mode.
fn newest<'a>(disk: &Ramdisk, listing: &'a Listing) -> Option<(u64, &'a Manifest)> {
    let newest = listing.generations.first().filter(|newest| newest.is_whole())?;
    let manifest = newest.manifest.as_ref().ok().filter(|manifest| manifest.mode == disk.keep.mode)?;
    Some((newest.number, manifest))
}

/// Makes an archive without writing it, since every write wears the store. If it is identical to that of the manifest,
/// returns what was left out.
fn compare(
    calls: &Calls,
    source: &Source<'_>,
    disk: &Ramdisk,
    manifest: &Manifest,
    watcher: Watcher<'_>,
) -> Result<Option<Omitted>, Error> {
    let (packed, _, made) = write_archive(calls, source, disk, None, "comparing", watcher)?;
    Ok(made.is_of(manifest).then_some(packed.omitted))
}

/// Generations that may be deleted for the space of a new one.
struct Way {
    /// Those that are pruned after it anyway, in this order.
    spare: Vec<Kept>,
    /// Those that a save which cannot be repeated gives up, in this order; else none.
    last: Vec<Kept>,
    /// Whether the space is probably too small without that: measured before anything is written, since every write wears
    /// flash.
    is_narrow: bool,
}

impl Way {
    /// The next ones to delete, so that `wanted` bytes are free, given that `free` are, after those that are `gone`; `None` if
    /// all are not enough.
    fn next(&self, wanted: u64, free: u64, gone: &[u64]) -> Option<Vec<u64>> {
        [&self.spare, &self.last].into_iter().find_map(|from| {
            let left: Vec<Kept> = from.iter().filter(|kept| !gone.contains(&kept.number)).copied().collect();
            choose::make_room(&left, wanted, free)
        })
    }
}

/// Bytes that a new generation with these contents probably needs, by the last one of the same mode.
fn wanted_room(disk: &Ramdisk, listing: &Listing, occupied_bytes: u64) -> u64 {
    let last = listing.generations.iter().find_map(|generation| {
        let manifest =
            generation.manifest.as_ref().ok().filter(|manifest| manifest.mode == disk.keep.mode)?;
        Some(Experience {
            archive_bytes: manifest.archive_bytes,
            content_bytes: manifest.contents.occupied_bytes,
        })
    });
    choose::wanted_room(occupied_bytes, last)
}

/// The generations that may be deleted for a save. It is refused if they are probably not enough, except before the disk is
/// removed: the estimate may be wrong.
fn find_room(
    store: &Store,
    listing: &Listing,
    kept: &[Kept],
    tree: &Tree,
    disk: &Ramdisk,
    request: Request,
    loaded: Option<u64>,
) -> Result<Way, Error> {
    let mut wanted = wanted_room(disk, listing, tree.contents.occupied_bytes);
    let by_user = request.reason == SaveReason::User;
    if by_user {
        // Leave space for the next automatic save, too, which would otherwise remove this generation.
        wanted = wanted.saturating_mul(2);
    }
    let free = store.file_system()?.available_bytes;
    let spare = choose::spare(kept, disk.keep.generations, loaded, next(disk, by_user));
    if request.gives_up {
        return Ok(Way { spare, last: choose::give_up(kept), is_narrow: false });
    }
    match choose::make_room(&spare, wanted, free) {
        Some(gone) => Ok(Way { spare, last: Vec::new(), is_narrow: !gone.is_empty() }),
        None if request.last => Ok(Way { spare, last: Vec::new(), is_narrow: true }),
        None => {
            let (wanted, free) = (size_text(wanted), size_text(free));
            let why =
                format!("the store has {free} free, and about {wanted} are needed; {}", more_room(disk));
            Err(refused(ErrorKind::StoreFull, disk, &why))
        }
    }
}

/// A generation about to be written, as far as others matter.
fn next(disk: &Ramdisk, by_user: bool) -> Kept {
    Kept { number: 0, bytes: 0, mode: disk.keep.mode, pin: Pin::No, by_user, fits: true }
}

/// Space in a store for the next save by a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes that it probably needs.
    pub needed_bytes: u64,
    /// Bytes that it gains by removing what is pruned after it.
    pub spare_bytes: u64,
    pub free_bytes: u64,
}

/// The space for the next save, if the contents stay about the same; `None` without a snapshot.
pub fn next_save(calls: &Calls, disk: &Ramdisk) -> Result<Option<Room>, Error> {
    let Some(store) = Store::glance(calls, disk)? else { return Ok(None) };
    let listing = store.listing()?;
    let Some((_, manifest)) = newest(disk, &listing) else { return Ok(None) };
    let loaded = calls.boot_id().ok().and_then(|boot_id| store.state().ok()?.loaded_now(&boot_id));
    let spare = choose::spare(&listing.kept(disk), disk.keep.generations, loaded, next(disk, false));
    Ok(Some(Room {
        needed_bytes: wanted_room(disk, &listing, manifest.contents.occupied_bytes),
        spare_bytes: spare.iter().fold(0, |sum, kept| sum.saturating_add(kept.bytes)),
        free_bytes: store.file_system()?.available_bytes,
    }))
}

fn prune(store: &Store, disk: &Ramdisk, room: &FileSystem, loaded: Option<u64>) -> Result<Vec<u64>, Error> {
    let limits = Limits { keep: disk.keep.generations, store_bytes: disk.store_limit };
    let gone = choose::prune(&store.listing()?.kept_for(disk, room), limits, loaded);
    for number in &gone {
        store.delete(*number)?;
    }
    Ok(gone)
}

/// The source of a save: the RAM disk itself, or a snapshot of it.
struct Source<'a> {
    place: &'a OwnedFd,
    snapshot: Option<OwnedFd>,
    tree: Tree,
}

impl<'a> Source<'a> {
    fn new(
        calls: &Calls,
        place: &'a OwnedFd,
        magic: u64,
        tree: Tree,
        disk: &Ramdisk,
        each: Each<'_>,
    ) -> Result<Source<'a>, Error> {
        let live = |tree| Ok(Source { place, snapshot: None, tree });
        let root = calls.look(place.as_fd(), b"").map_err(at(&disk.name, "look at"))?;
        if magic != BTRFS || root.inode != SUBVOLUME_ROOT || tree.has_subvolumes {
            return live(tree);
        }
        // Left behind by an interrupted save.
        calls.remove_snapshot(place.as_fd(), SNAPSHOT).ok();
        let clock = calls.file_clock();
        if calls.make_snapshot(place.as_fd(), SNAPSHOT).is_err() {
            return live(tree);
        }
        let opened = calls.open_below(place.as_fd(), SNAPSHOT.as_bytes()).map_err(at(SNAPSHOT, "open"));
        let opened = opened.and_then(|snapshot| {
            Ok((walk_since(calls, snapshot.as_fd(), disk.keep.mode, clock, each)?, snapshot))
        });
        match opened {
            Ok((mut tree, snapshot)) => {
                // Creating the snapshot changed this time.
                tree.directories.iter_mut().take(1).for_each(|top| top.meta.mtime = root.mtime);
                Ok(Source { place, snapshot: Some(snapshot), tree })
            }
            Err(error) => {
                calls.remove_snapshot(place.as_fd(), SNAPSHOT).ok();
                Err(error)
            }
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.snapshot.as_ref().unwrap_or(self.place).as_fd()
    }

    /// Whether all contents are of the same point in time.
    fn is_exact(
        &self,
        calls: &Calls,
        disk: &Ramdisk,
        packed: &Packed,
        each: Each<'_>,
    ) -> Result<bool, TransferError> {
        if packed.changed_count > 0 || self.snapshot.is_some() {
            return Ok(packed.changed_count == 0);
        }
        match walk(calls, self.fd(), disk.keep.mode, each) {
            Err(TransferError::Ended) => Err(TransferError::Ended),
            later => Ok(later.is_ok_and(|later| later.seen == self.tree.seen)),
        }
    }

    fn end(self, calls: &Calls) -> Tree {
        if self.snapshot.is_some() {
            drop(self.snapshot);
            // On failure, the next save removes it.
            calls.remove_snapshot(self.place.as_fd(), SNAPSHOT).ok();
        }
        self.tree
    }
}

/// Size and digest of an archive.
struct Written {
    bytes: u64,
    hash: blake3::Hash,
}

impl Written {
    fn digest(&self) -> String {
        format!("blake3:{}", self.hash.to_hex())
    }

    /// Whether it is identical to the archive of this manifest.
    fn is_of(&self, manifest: &Manifest) -> bool {
        self.bytes == manifest.archive_bytes && self.digest() == manifest.digest
    }
}

/// Makes an archive; without a draft, only to compute its digest.
fn write_archive(
    calls: &Calls,
    source: &Source<'_>,
    disk: &Ramdisk,
    draft: Option<&Draft>,
    doing: &'static str,
    watcher: Watcher<'_>,
) -> Result<(Packed, bool, Written), Error> {
    let fail = |cause| {
        let object = disk.store().display().to_string();
        in_store(HostError { object, operation: "write to".to_owned(), cause })
    };
    std::thread::scope(|scope| {
        let (pipe, receiver) = Pipe::new();
        let writing = scope.spawn(|| write_out(calls, draft.map(|draft| draft.file.as_fd()), receiver));
        let compressed = compress(calls, source, disk, pipe, doing, watcher);
        // An error of the writer is the cause of the compressor's.
        let written = writing.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        let written = written.map_err(|errno| fail(Cause::Errno(errno)))?;
        let (packed, exact) = compressed.map_err(|error| match error {
            TransferError::Archive(HostError { cause, .. }) => fail(cause),
            other => other.into(),
        })?;
        Ok((packed, exact, written))
    })
}

/// Packs the tree and compresses it into the pipe. Also returns whether all of it is of the same point in time.
fn compress(
    calls: &Calls,
    source: &Source<'_>,
    disk: &Ramdisk,
    pipe: Pipe,
    doing: &'static str,
    watcher: Watcher<'_>,
) -> Result<(Packed, bool), TransferError> {
    let fail = |error: io::Error| TransferError::writing(&error);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = u32::try_from(cpus.min(4)).unwrap_or(1);
    let mut encoder = zstd::Encoder::new(pipe, LEVEL).map_err(fail)?;
    encoder.include_checksum(true).map_err(fail)?;
    encoder.multithread(if threads > 1 { threads } else { 0 }).map_err(fail)?;
    let packed = pack(calls, source.fd(), &source.tree, disk.keep.mode, &mut encoder, doing, &mut *watcher)?;
    // Check the tree for changes while the end of the archive is compressed and written.
    let bytes = packed.contents.bytes;
    let progress = Progress { doing, done_bytes: bytes, total_bytes: bytes };
    let (finished, exact) = std::thread::scope(|scope| {
        let finishing = scope.spawn(|| encoder.finish().and_then(Pipe::finish));
        let exact = source.is_exact(calls, disk, &packed, &mut || watcher(progress));
        (finishing.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)), exact)
    });
    finished.map_err(fail)?;
    Ok((packed, exact?))
}

/// Writes the chunks of the pipe and computes their digest. Data that is on disk is dropped from the page cache.
fn write_out(
    calls: &Calls,
    file: Option<BorrowedFd<'_>>,
    receiver: Receiver<Chunk>,
) -> Result<Written, Errno> {
    let mut hash = blake3::Hasher::new();
    let (mut bytes, mut begun) = (0, 0);
    for chunk in receiver {
        let chunk = chunk?;
        hash.update(&chunk);
        bytes += chunk.len() as u64;
        let Some(file) = file else { continue };
        calls.write_all(file, &chunk)?;
        if bytes - begun >= WRITE_BEHIND {
            calls.start_writing(file, begun, bytes - begun);
            // The piece before this one has had time to be written.
            if let Some(before) = begun.checked_sub(WRITE_BEHIND) {
                calls.let_go(file, before, WRITE_BEHIND);
            }
            begun = bytes;
        }
    }
    Ok(Written { bytes, hash: hash.finalize() })
}
