//! Saves a RAM disk as a generation.

use std::collections::VecDeque;
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
use super::trouble::{Trouble, at, check_fit, in_store};
use super::unpack::unpack;
use super::walk::{Each, SNAPSHOT, Tree, walk, walk_settled, walk_since};
use super::{Disk, Progress, Watcher, root};

/// Level of zstd: higher ones make archives a little smaller and take much longer.
const LEVEL: i32 = 1;
/// Bytes after which the kernel is asked to start writing, which leaves less to write at the final sync.
const WRITE_BEHIND: u64 = 8 << 20;

/// Parameters of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The reason. A save with [`SaveReason::User`] replaces only the previous one with that reason.
    pub reason: SaveReason,
    /// Write a generation even if nothing has changed.
    pub force: bool,
    /// Whether this is the last save of this boot: later changes are lost.
    pub last: bool,
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
        /// Its manifest.
        manifest: Box<Manifest>,
        /// Numbers of the generations that were pruned.
        pruned: Vec<u64>,
        /// Errors after the generation was complete.
        warnings: Vec<String>,
    },
}

/// Saves a RAM disk that was loaded in this boot. On failure, the existing generations stay as they are, except those that
/// the last save of a boot has given up for its space.
pub fn save(calls: &Calls, disk: &Disk, request: Request, watcher: Watcher<'_>) -> Result<Saved, Error> {
    save_in(calls, disk, &Store::lock_for(calls, disk)?, request, watcher)
}

/// As [`save`], into a store that is claimed.
pub fn save_in(
    calls: &Calls,
    disk: &Disk,
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

fn refused(kind: ErrorKind, disk: &Disk, why: &str) -> Error {
    Error::new(kind, format!("{} is not saved: {why}", disk.name))
}

fn save_locked(
    calls: &Calls,
    disk: &Disk,
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
    if let Some(why) = state.refuse_save(&boot_id, &identity) {
        // The mark counts more than notes, which may be lost or out of date.
        if !is_marked {
            return Err(refused(ErrorKind::NotLoaded, disk, why));
        }
        state.fingerprint = None;
    }
    let mut warnings: Vec<String> = store.clean().err().iter().map(ToString::to_string).collect();
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
    let kept = listing.kept_for(disk, &room);
    let mut pruned = Vec::new();
    let mut left = find_room(store, &listing, &kept, &tree, disk, request, loaded)?;
    let number = listing.next;
    let (manifest, exact, tree) = loop {
        let removed = make_way(calls, disk, store, &listing, &left.gone, watcher);
        match removed {
            Ok(()) => pruned.append(&mut left.gone),
            // Nothing of the rest is given up either.
            Err(error) if request.last => {
                warnings.push(error.to_string());
                left = Way::default();
            }
            Err(error) => return Err(error),
        }
        let began_at_usec = calls.now_usec();
        let source = Source::new(calls, &place, room.magic, tree, disk, &mut || watcher(begun))?;
        let draft = store.draft(number);
        let packed = draft
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|draft| write_archive(calls, &source, disk, Some(draft), "saving", &mut *watcher));
        tree = source.end(calls);
        let same = newest(disk, &listing).filter(|(number, _)| !request.force && !pruned.contains(number));
        if let (Ok((packed, exact, output)), Some((number, manifest)), Ok(draft)) = (&packed, same, &draft)
            && output.is_of(manifest)
        {
            store.discard(draft);
            // Entries that could not be read now may be readable at the next save.
            state.fingerprint = tree.fingerprint.take().filter(|_| *exact && packed.omitted.is_lasting());
            state.fingerprint_of = Some(number);
            return still(store, request, number, manifest, packed.omitted.clone());
        }
        let written = packed.map_err(Failed::ForWant).and_then(|(packed, exact, output)| {
            let draft = draft.as_ref().map_err(Clone::clone)?;
            let Packed { changed, omitted, contents, .. } = packed;
            let manifest = Manifest {
                format_version: FORMAT,
                mode: disk.keep.mode,
                began_at_usec,
                finished_at_usec: calls.now_usec(),
                boot_id: boot_id.clone(),
                reason: request.reason,
                consistency: if exact { Consistency::Exact } else { Consistency::Fuzzy },
                changed,
                skipped: tree.skipped,
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
                check_limit(disk, &listing, output.bytes).map_err(Failed::ForGood)?;
            }
            read_back(calls, disk, draft, &manifest, &mut *watcher)?;
            store.commit(number, draft, &manifest)?;
            Ok((manifest, exact))
        });
        match written {
            Ok((manifest, exact)) => break (manifest, exact, tree),
            Err(failed) => {
                if let Ok(draft) = &draft {
                    store.discard(draft);
                }
                let error = match failed {
                    Failed::ForWant(error) if error.kind == ErrorKind::StoreFull && request.last => error,
                    Failed::ForWant(error) if error.kind == ErrorKind::StoreFull => {
                        let message = format!("{}; {}", error.message, more_room(disk));
                        return Err(Error { message, ..error });
                    }
                    Failed::ForWant(error) | Failed::ForGood(error) => return Err(error),
                };
                // The last save cannot be repeated.
                let Some(next) = left.rest.pop_front() else {
                    let message = format!("{}; {}", error.message, more_room(disk));
                    return Err(Error { message, ..error });
                };
                left.gone.push(next);
            }
        }
    };
    for number in
        pruned.iter().filter(|number| kept.iter().any(|kept| kept.number == **number && kept.is_pinned()))
    {
        warnings.push(format!(
            "snapshot {number} was pinned, and is deleted: the store had no room for the last save"
        ));
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
    match prune(store, disk, &room, loaded) {
        Ok(gone) => pruned.extend(gone),
        Err(error) => warnings.push(error.to_string()),
    }
    Ok(Saved::Written { generation: number, manifest: Box::new(manifest), pruned, warnings })
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

/// What to do about a store without space.
fn more_room(disk: &Disk) -> String {
    let name = &disk.name;
    format!(
        "make room there, for example with `zramdctl disk delete {name} SNAPSHOT`, or set a smaller keep or another store in [ramdisk.{name}]"
    )
}

/// Deletes generations before a save.
fn make_way(
    calls: &Calls,
    disk: &Disk,
    store: &Store,
    listing: &Listing,
    gone: &[u64],
    watcher: Watcher<'_>,
) -> Result<(), Error> {
    if gone.is_empty() {
        return Ok(());
    }
    // Until the new generation is written, the newest one is the only one certain to remain: verify it first.
    let newest = listing.generations.iter().find(|newest| newest.is_whole());
    verify(calls, disk, newest.map(|newest| newest.number), watcher)?;
    gone.iter().try_for_each(|number| store.delete(*number))
}

/// Reads the archive back from disk, as a load does, before it gets its name and before anything is pruned.
fn read_back(
    calls: &Calls,
    disk: &Disk,
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
        Err(Trouble::Bad(why) | Trouble::Unusable(why)) => why,
        Err(trouble) => return Err(trouble.into()),
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
fn check_limit(disk: &Disk, listing: &Listing, bytes: u64) -> Result<(), Error> {
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
    disk: &Disk,
    state: &State,
    listing: &'a Listing,
    tree: &Tree,
) -> Option<(u64, &'a Manifest)> {
    let same = tree.fingerprint.is_some() && state.fingerprint == tree.fingerprint;
    newest(disk, listing).filter(|(number, _)| same && state.fingerprint_of == Some(*number))
}

/// The newest generation, if it is whole and of the configured mode.
fn newest<'a>(disk: &Disk, listing: &'a Listing) -> Option<(u64, &'a Manifest)> {
    let newest = listing.generations.first().filter(|newest| newest.is_whole())?;
    let manifest = newest.manifest.as_ref().ok().filter(|manifest| manifest.mode == disk.keep.mode)?;
    Some((newest.number, manifest))
}

/// Makes an archive without writing it, since every write wears the store. If it is identical to that of the manifest,
/// returns what was left out.
fn compare(
    calls: &Calls,
    source: &Source<'_>,
    disk: &Disk,
    manifest: &Manifest,
    watcher: Watcher<'_>,
) -> Result<Option<Omitted>, Error> {
    let (packed, _, made) = write_archive(calls, source, disk, None, "comparing", watcher)?;
    Ok(made.is_of(manifest).then_some(packed.omitted))
}

/// Generations to remove for the space of a new one.
#[derive(Default)]
struct Way {
    /// Before the save.
    gone: Vec<u64>,
    /// One after the other, if it still lacks space.
    rest: VecDeque<u64>,
}

/// Bytes that a new generation with these contents probably needs, by the last one of the same mode.
fn wanted_room(disk: &Disk, listing: &Listing, occupied_bytes: u64) -> u64 {
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

/// The generations to remove so that the store probably has enough space.
fn find_room(
    store: &Store,
    listing: &Listing,
    kept: &[Kept],
    tree: &Tree,
    disk: &Disk,
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
    let room = choose::make_room(&spare, wanted, free);
    if !request.last {
        let gone = room.ok_or_else(|| {
            let (wanted, free) = (size_text(wanted), size_text(free));
            let why =
                format!("the store has {free} free, and about {wanted} are needed; {}", more_room(disk));
            refused(ErrorKind::StoreFull, disk, &why)
        })?;
        return Ok(Way { gone, rest: VecDeque::new() });
    }
    let order = choose::give_up(kept);
    let unpinned: Vec<Kept> = order.iter().copied().filter(|kept| !kept.is_pinned()).collect();
    // The figure is an estimate: pinned ones go only after the save has failed without their space.
    let gone = room.or_else(|| choose::make_room(&unpinned, wanted, free));
    let gone = gone.unwrap_or_else(|| unpinned.iter().map(|kept| kept.number).collect());
    let rest = order.iter().map(|kept| kept.number).filter(|number| !gone.contains(number)).collect();
    Ok(Way { gone, rest })
}

/// A generation about to be written, as far as others matter.
fn next(disk: &Disk, by_user: bool) -> Kept {
    Kept { number: 0, bytes: 0, mode: disk.keep.mode, pin: Pin::No, by_user, fits: true }
}

/// Space in a store for the next save by a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes that it probably needs.
    pub needed_bytes: u64,
    /// Bytes that it gains by removing what is pruned after it.
    pub spare_bytes: u64,
    /// Bytes free.
    pub free_bytes: u64,
}

/// The space for the next save, if the contents stay about the same; `None` without a snapshot.
pub fn next_save(calls: &Calls, disk: &Disk) -> Result<Option<Room>, Error> {
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

fn prune(store: &Store, disk: &Disk, room: &FileSystem, loaded: Option<u64>) -> Result<Vec<u64>, Error> {
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
        disk: &Disk,
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
    fn is_exact(&self, calls: &Calls, disk: &Disk, packed: &Packed, each: Each<'_>) -> Result<bool, Trouble> {
        if packed.changed_count > 0 || self.snapshot.is_some() {
            return Ok(packed.changed_count == 0);
        }
        match walk(calls, self.fd(), disk.keep.mode, each) {
            Err(Trouble::Ended) => Err(Trouble::Ended),
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
    disk: &Disk,
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
        let (packed, exact) = compressed.map_err(|trouble| match trouble {
            Trouble::Archive(HostError { cause, .. }) => fail(cause),
            other => other.into(),
        })?;
        Ok((packed, exact, written))
    })
}

/// Packs the tree and compresses it into the pipe. Also returns whether all of it is of the same point in time.
fn compress(
    calls: &Calls,
    source: &Source<'_>,
    disk: &Disk,
    pipe: Pipe,
    doing: &'static str,
    watcher: Watcher<'_>,
) -> Result<(Packed, bool), Trouble> {
    let fail = |error: io::Error| Trouble::writing(&error);
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
