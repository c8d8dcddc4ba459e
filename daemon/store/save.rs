//! Saves a RAM disk as a generation.

use std::collections::{BTreeSet, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::{Error, ErrorKind};
use host::Errno;
use host::linux::ramdisk::{BTRFS, Calls, FileSystem, SUBVOLUME_ROOT};
use logic::human::human;
use logic::ramdisk::choose::{self, Kept, Limits, Pin};
use logic::ramdisk::hold::Hold;
use logic::ramdisk::manifest::{Consistency, Manifest};
use logic::ramdisk::omitted::Omitted;
use logic::ramdisk::state::{SaveOutcome, SaveRecord, State};
use logic::ramdisk::{Mode, SaveReason};
use logic::ramdisk::{bad_name, generation_name};

use super::compact;
use super::directory::{Generation, Listing, Store};
use super::export::verify;
use super::format::{self, Hash, Hashes};
use super::frames::{self, End, Frames};
use super::needs::{self, Needs};
use super::pack::{Packed, pack};
use super::shelf::{self, Shelf, Tree as StoredTree};
use super::sink::shelve;
use super::transfer_error::{TransferError, at, check_fit};
use super::walk::{Each, SNAPSHOT, Tree, walk, walk_settled, walk_since};
use super::{Progress, Ramdisk, Watcher, root};

/// Bytes that a file needs besides what is measured: for its manifest, and the rest of the last block.
const BESIDES: u64 = 16 << 10;
/// A tree needs no base if it has no more bytes than this once it is compressed: a disk writes no less. It is tried for a tree of
/// at most [`SMALL`] bytes.
const BLOCK: usize = 4 << 10;
const SMALL: usize = 16 << 10;
/// What is pruned after the next save does not matter if this many times the bytes that it needs are free.
const PLENTY: u64 = 16;

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
        /// Size of its file.
        written_bytes: u64,
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
    let written_bytes = store.take_written();
    if written_bytes > 0 {
        state.wrote(written_bytes, calls.clocks());
    }
    // If nothing has changed, not even the state is written: every write wears flash.
    if outcome != SaveOutcome::Unchanged || state != was {
        let at_usec = calls.now_usec();
        let took_usec = at_usec.saturating_sub(began);
        let reason = request.reason;
        state.save = Some(SaveRecord { at_usec, reason, outcome, generation, message, took_usec });
        // The file of the state matters to a later boot only: every write wears flash.
        let written = match &saved {
            Ok(_) if !request.last && was.hold == state.hold => store.note_state(&state),
            _ => store.write_state(&state),
        };
        match (&mut saved, written) {
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
    let listing = store.listing()?;
    let prepared = [store.clean(&listing), store.write_hold(state)];
    let mut warnings: Vec<String> =
        prepared.iter().filter_map(|done| Some(done.as_ref().err()?.to_string())).collect();
    let begun = Progress { doing: "saving", done_bytes: 0, total_bytes: 0 };
    let tree = walk_settled(calls, place.as_fd(), disk.keep.mode, &mut || watcher(begun))?;
    if let Some((generation, manifest)) = unchanged(disk, state, &listing, &tree)
        && !request.force
        && is_still(manifest, request)
    {
        // What a loaded generation lacks was not loaded from it either.
        let is_loaded = state.loaded_now(&boot_id) == Some(generation);
        let omitted = if is_loaded { tree.omitted } else { manifest.omitted.clone() };
        return Ok(Saved::Unchanged { generation, omitted });
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
    let writer = Writer {
        calls,
        disk,
        store,
        request,
        listing: &listing,
        kept: &kept,
        loaded,
        damaged: &state.damaged,
        place: &place,
        room: &room,
        boot_id: &boot_id,
        budget: disk.daily_budget.map_or(u64::MAX, |daily| state.writes_at(calls.clocks()).left(daily)),
    };
    let way = writer.find_room(&tree)?;
    let mut pruned = Vec::new();
    let (written, tree) =
        writer.write(tree, &way, &mut pruned, watcher).map_err(|error| after_deleting(error, &pruned))?;
    let number = listing.next;
    let (manifest, exact, written_bytes, goes) = match written {
        Done::New(manifest, exact, bytes, goes) => (manifest, exact, bytes, goes),
        Done::Same { generation, omitted, exact } => {
            // Entries that could not be read now may be readable at the next save.
            state.fingerprint = tree.fingerprint.filter(|_| exact && omitted.is_lasting());
            state.fingerprint_of = Some(generation);
            return Ok(Saved::Unchanged { generation, omitted });
        }
    };
    for number in &pruned {
        if kept.iter().any(|kept| kept.number == *number && kept.is_pinned()) {
            warnings.push(format!(
                "snapshot {number} was pinned, and is deleted: the store had no room for the last save"
            ));
        } else if !way.spare.contains(number) {
            warnings.push(format!("snapshot {number} is deleted: the store had no room for the last save"));
        }
    }
    warnings.extend(tree.mounts.iter().map(|path| not_saved(path)));
    // The new generation is on disk, with contents that were damaged.
    state.unclean = false;
    state.damage = None;
    if state.verified_usec == 0 {
        state.verified_usec = calls.now_usec();
    }
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
        match prune(store, disk, &room, loaded, &state.damaged, goes) {
            Ok(gone) => pruned.extend(gone),
            Err(error) => warnings.push(error.to_string()),
        }
    }
    Ok(Saved::Written { generation: number, manifest: Box::new(manifest), written_bytes, pruned, warnings })
}

/// A save that has to read all contents.
struct Writer<'a> {
    calls: &'a Calls,
    disk: &'a Ramdisk,
    store: &'a Store,
    request: Request,
    listing: &'a Listing,
    /// The generations that pruning considers.
    kept: &'a [Kept],
    /// The generation loaded in this boot.
    loaded: Option<u64>,
    /// Frames that count as not there.
    damaged: &'a BTreeSet<(u64, u64)>,
    place: &'a OwnedFd,
    /// The file system of the RAM disk.
    room: &'a FileSystem,
    boot_id: &'a str,
    /// Bytes that saves may write until the daily budget is spent.
    budget: u64,
}

/// Result of writing.
enum Done {
    /// A new generation, whether all of it is of the same point in time, the size of its file, and the generations that were
    /// pruned with it.
    New(Manifest, bool, u64, Vec<u64>),
    /// Nothing: the tree is that of this generation.
    Same { generation: u64, omitted: Omitted, exact: bool },
}

/// Why an attempt to write a generation failed.
enum Failed {
    /// With more space in the store it may succeed.
    ForWant(Error),
    ForGood(Error),
    /// It was only measured: the bytes that it needs, and its contents.
    Measured(u64, Hashes),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::ForWant(error)
    }
}

impl From<TransferError> for Failed {
    fn from(error: TransferError) -> Failed {
        Failed::ForWant(error.into())
    }
}

impl Writer<'_> {
    fn shelf(&self) -> Result<Shelf<'_>, Error> {
        Ok(Shelf::open(self.store, self.listing, self.damaged)?)
    }

    /// Writes a generation. Others are deleted only when the store was too small without that, and only if their space may be
    /// enough for what was measured: then it is tried again, until it succeeds or there is nothing left to delete. Adds the
    /// deleted ones to `gone`.
    fn write(
        &self,
        mut tree: Tree,
        way: &Way,
        gone: &mut Vec<u64>,
        watcher: Watcher<'_>,
    ) -> Result<(Done, Tree), Error> {
        let begun = Progress { doing: "saving", done_bytes: 0, total_bytes: 0 };
        let partial = format!("{}.partial", generation_name(self.listing.next));
        let mut is_tried = !way.is_narrow;
        let (mut is_short, mut made) = (way.is_narrow, Made::default());
        let mut changed = None;
        loop {
            let listing = changed.as_ref().unwrap_or(self.listing);
            let began_at_usec = self.calls.now_usec();
            let mut free = self.store.file_system()?.available_bytes;
            let each = &mut || watcher(begun);
            let source = Source::new(self.calls, self.place, self.room.magic, tree, self.disk, each)?;
            let mut short = None;
            let copies = !is_short;
            let attempt = Attempt { source: &source, listing, began_at_usec, gone, copies };
            if is_tried {
                let attempt = self.attempt(&attempt, Some(&partial), &mut *watcher);
                let written = self.calls.look(self.store.fd(), partial.as_bytes()).ok();
                if !matches!(attempt, Ok(Done::New(..))) && written.is_some() {
                    self.store.discard(&partial);
                }
                match attempt {
                    Ok(written) => return Ok((written, source.end(self.calls))),
                    Err(Failed::ForWant(error)) if error.kind == ErrorKind::StoreFull => short = Some(error),
                    Err(Failed::ForWant(error) | Failed::ForGood(error)) => {
                        source.end(self.calls);
                        return Err(error);
                    }
                    Err(Failed::Measured(..)) => {}
                }
                // There is as much as could be written: more for root, less with a quota.
                free = written.map_or(free, |written| written.size);
            }
            is_short = true;
            let measured = self.attempt(&Attempt { copies: false, ..attempt }, None, &mut *watcher);
            tree = source.end(self.calls);
            let (bytes, contents) = match measured {
                Err(Failed::Measured(bytes, contents)) => (bytes, contents),
                Ok(done) => return Ok((done, tree)),
                Err(Failed::ForWant(error) | Failed::ForGood(error)) => return Err(error),
            };
            let mut wanted = bytes.saturating_add(BESIDES);
            if short.is_some() && !copies {
                wanted = wanted.max(free.saturating_add(1));
            }
            is_tried = true;
            if free >= wanted
                || self.make_way(way, &mut made, wanted - free, &contents, gone, &mut *watcher)?
            {
                changed = Some(self.store.listing()?);
                continue;
            }
            let (wanted, free) = (human(wanted), human(free));
            let why = short.map_or_else(String::new, |error| format!("{}; ", error.message));
            let why = format!(
                "{why}the store has room for {free}, and {wanted} are needed; {}",
                more_room(self.disk)
            );
            return Err(refused(ErrorKind::StoreFull, self.disk, &why));
        }
    }

    /// The newest generation, to which the new one is compared.
    fn last(&self, gone: &[u64]) -> Option<&Generation> {
        self.listing.generations.iter().find(|generation| !gone.contains(&generation.number))
    }

    /// Writes a generation into the space that there is; without a name, measures it.
    fn attempt(
        &self,
        attempt: &Attempt<'_>,
        partial: Option<&str>,
        watcher: Watcher<'_>,
    ) -> Result<Done, Failed> {
        let Attempt { source, listing, began_at_usec, gone, copies } = *attempt;
        let (calls, disk, store) = (self.calls, self.disk, self.store);
        let mut shelf = Shelf::open(store, listing, self.damaged)?;
        let doing = if partial.is_some() { "saving" } else { "measuring" };
        let ((packed, tree, contained, exact, compaction, copied, [copied_bytes, allowance]), mut written) =
            frames::write(store, partial.map(str::to_owned), |frames| {
                let (packed, tree) = shelve(&shelf, frames, |sink| {
                    pack(calls, source.fd(), &source.tree, disk.keep.mode, sink, doing, &mut *watcher)
                })?;
                let contained = shelf::contents(&tree)?;
                frames.flush()?;
                let bytes = packed.contents.bytes;
                let progress = Progress { doing, done_bytes: bytes, total_bytes: bytes };
                let exact = source.is_exact(calls, disk, &packed, &mut || watcher(progress))?;
                let new_bytes = frames.settle()?;
                let allowance = compact::allowance(&shelf, new_bytes);
                // Nothing is written if nothing has changed.
                let mut compaction =
                    if copies && new_bytes > 0 { self.compaction(&mut shelf, gone)? } else { None };
                let copied = match &mut compaction {
                    Some(compaction) => {
                        compaction.live.extend(&contained);
                        let most = allowance.min(self.budget.saturating_sub(new_bytes));
                        compaction.copy(&mut shelf, frames, &tree, new_bytes, most)?
                    }
                    None => 0,
                };
                let copied_bytes = frames.settle()? - new_bytes;
                let bytes = [copied_bytes, allowance.saturating_sub(copied_bytes)];
                Ok((packed, tree, contained, exact, compaction, copied, bytes))
            })?;
        let Packed { changed, omitted, contents, .. } = packed;
        let tree_hash = format::hash(&tree);
        let last = self.last(gone).and_then(|last| Some((last.number, last.manifest.as_ref().ok()?)));
        if let Some((generation, manifest)) = last
            && !self.request.force
            && written.contents == copied
            && manifest.mode == disk.keep.mode
            && is_still(manifest, self.request)
            && shelf.at(generation).is_some_and(|at| {
                shelf.files[at].footer.as_ref().is_ok_and(|footer| footer.tree_hash == tree_hash)
            })
            && Self::is_readable(&mut shelf, generation)
        {
            return Ok(Done::Same { generation, omitted, exact });
        }
        let (base, packed_tree) =
            self.pack_tree(&mut shelf, last.map(|(number, _)| number), &tree, compaction.as_ref())?;
        let bytes = written.measure(packed_tree.len() * if base.is_some() { 1 } else { 2 });
        self.check_limits(&mut shelf, &contained, bytes).map_err(Failed::ForGood)?;
        let Some(partial) = partial else { return Err(Failed::Measured(bytes, contained)) };
        let manifest = Manifest {
            mode: disk.keep.mode,
            began_at_usec,
            finished_at_usec: calls.now_usec(),
            boot_id: self.boot_id.to_owned(),
            reason: self.request.reason,
            consistency: if exact { Consistency::Exact } else { Consistency::Fuzzy },
            changed,
            skipped: source.tree.skipped,
            omitted,
            contents,
        };
        let (base_hash, base) = base.unzip();
        let text = manifest.text();
        let end = End {
            number: self.listing.next,
            tree: &tree,
            tree_hash,
            packed: &packed_tree,
            base: base_hash,
            manifest: text.as_bytes(),
            copied_bytes,
            allowance,
        };
        let total_bytes = manifest.contents.bytes;
        let base = base.as_deref().map_or(&[][..], Vec::as_slice);
        let read_back = written.end(&end, base, &mut |done_bytes| {
            watcher(Progress { doing: "verifying", done_bytes: done_bytes.min(total_bytes), total_bytes })
        });
        match read_back {
            Err(TransferError::Bad(why) | TransferError::Unusable(why)) => {
                let why =
                    format!("what was written to {} cannot be read back: {why}", disk.store().display());
                return Err(Failed::ForGood(refused(ErrorKind::SnapshotCorrupt, disk, &why)));
            }
            read_back => read_back?,
        }
        let goes = self.goes_with(&manifest, gone);
        if let Some(file) = written.file() {
            store.add(file, partial, self.listing.next, &goes)?;
            shelf::remember(store, self.listing.next, Arc::new(contained));
        }
        Ok(Done::New(manifest, exact, written.size(), goes))
    }

    /// The generations that are pruned together with the commit of a new one: without the newest, because the new one may not be
    /// on disk yet.
    fn goes_with(&self, manifest: &Manifest, gone: &[u64]) -> Vec<u64> {
        let fits = Hold::of(&manifest.contents, self.room.size_bytes(), self.room.total_inodes).is_none();
        let next = Kept { fits, ..next(self.disk, manifest.is_by_user()) };
        let kept: Vec<Kept> = self.kept.iter().filter(|kept| !gone.contains(&kept.number)).copied().collect();
        let goes = choose::spare(&kept, self.disk.keep.generations, self.loaded, next);
        goes.iter().map(|kept| kept.number).collect()
    }

    /// Whether all contents of a generation are there, as far as known, so that nothing has to be written.
    fn is_readable(shelf: &mut Shelf<'_>, number: u64) -> bool {
        let whole = shelf.at(number).is_some_and(|at| matches!(shelf.good_base(at), Ok(Some(_))));
        whole && shelf.contents_of(number).is_ok_and(|all| all.iter().all(|hash| shelf.find(hash).is_some()))
    }

    /// Compresses the tree: as a difference to the base of the last one, until the differences since are larger than two of its
    /// copies.
    fn pack_tree(
        &self,
        shelf: &mut Shelf<'_>,
        last: Option<u64>,
        tree: &[u8],
        compaction: Option<&Compaction>,
    ) -> Result<(Option<Base>, Vec<u8>), Error> {
        if tree.len() <= SMALL {
            let packed = shelf::pack_tree(tree, &[])?;
            if packed.len() <= BLOCK {
                return Ok((None, packed));
            }
        }
        let last = last.and_then(|number| shelf.at(number));
        if let Some((base, file)) = last.map_or(Ok(None), |at| shelf.good_base(at))?
            && let Ok(footer) = &file.footer
        {
            let packed = shelf::pack_tree(tree, &base)?;
            let saves = self.listing.next.saturating_sub(file.number);
            // A pruned file that is needed for little else than its tree.
            let is_dead = compaction.is_some_and(|compaction| {
                let at = shelf.at(file.number).filter(|at| !compaction.stays.contains(at));
                let live = at.map_or(file.size, |at| shelf.live_bytes(at, &compaction.live));
                file.size.saturating_sub(live) > 8 * footer.tree.length
            });
            // Differences grow steadily, so that all of them have about half as many bytes as this one times their number.
            if !is_dead && (packed.len() as u64).saturating_mul(saves) / 2 < 2 * footer.tree.length {
                return Ok((Some((footer.tree_hash, base)), packed));
            }
        }
        Ok((None, shelf::pack_tree(tree, &[])?))
    }

    /// What may be copied from old files; `None` if a generation cannot be read, so that nothing can be removed.
    fn compaction(&self, shelf: &mut Shelf<'_>, gone: &[u64]) -> Result<Option<Compaction>, TransferError> {
        let next =
            Kept { number: self.listing.next, ..next(self.disk, self.request.reason == SaveReason::User) };
        let limits = Limits { keep: self.disk.keep.generations, store_bytes: None };
        let pruned = choose::prune(&[self.kept, &[next]].concat(), limits, self.loaded);
        let mut compaction = Compaction { live: Hashes::default(), stays: HashSet::new() };
        let stays = self.listing.generations.iter().map(|generation| generation.number);
        for number in stays.filter(|number| !pruned.contains(number) && !gone.contains(number)) {
            let Some(at) = shelf.at(number) else { continue };
            match shelf.contents_of(number) {
                Ok(contents) => compaction.live.extend(contents.iter()),
                Err(TransferError::Bad(_) | TransferError::Unusable(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
            compaction.stays.insert(at);
        }
        Ok(Some(compaction))
    }

    /// Refuses a generation that alone exceeds `store-limit`, or one requested by a user that does so together with those that it
    /// may not replace. `bytes`: of its file.
    fn check_limits(&self, shelf: &mut Shelf<'_>, contents: &Hashes, bytes: u64) -> Result<(), Error> {
        let Some(limit) = self.disk.store_limit else { return Ok(()) };
        let shared: u64 =
            contents.iter().filter_map(|hash| shelf.find(hash)).map(|place| shelf.stored(place)).sum();
        let alone = shared.saturating_add(bytes);
        if alone > limit {
            let (size, limit) = (human(alone), human(limit));
            let why = format!("the snapshot has {size}, and store-limit is {limit}");
            return Err(refused(ErrorKind::StoreFull, self.disk, &why));
        }
        if self.request.reason == SaveReason::User {
            let by_users = self.kept.iter().filter(|kept| kept.by_user).map(|kept| kept.number);
            let freed = Needs::new(shelf, contents)?.freed(&by_users.collect::<Vec<_>>());
            let total = self.listing.bytes().saturating_sub(freed).saturating_add(bytes);
            if total > limit {
                let (total, limit) = (human(total), human(limit));
                let why = format!(
                    "with the snapshots that must be kept, the store would hold {total}, and store-limit is {limit}"
                );
                return Err(refused(ErrorKind::StoreFull, self.disk, &why));
            }
        }
        Ok(())
    }

    /// Deletes generations for the space of the new one, which has these contents; false if that would not gain it.
    fn make_way(
        &self,
        way: &Way,
        made: &mut Made,
        wanted: u64,
        contents: &Hashes,
        gone: &mut Vec<u64>,
        watcher: Watcher<'_>,
    ) -> Result<bool, Error> {
        let listing = self.store.listing()?;
        let needs = Needs::new(&mut Shelf::open(self.store, &listing, self.damaged)?, contents)?;
        let gives_up = self.request.gives_up;
        let choose = |made: &Made| {
            let choose = |last: &[u64]| {
                let mut order = made.damaged.clone();
                order.extend(last.iter().filter(|number| !made.damaged.contains(number)));
                order.retain(|number| !gone.contains(number) && made.good != Some(*number));
                needs.choose(&order, wanted, if gives_up { BESIDES } else { 0 }, made.nothing)
            };
            choose(&way.spare).or_else(|| choose(&way.last))
        };
        if made.good.is_none() {
            if !gives_up && choose(made).is_none() {
                return Ok(false);
            }
            self.protect(&needs, &listing, made, watcher)?;
        }
        let Some(next) = choose(made) else { return Ok(false) };
        needs::remove(self.store, &listing, &next, self.damaged, true, contents)?;
        made.nothing = next.is_empty();
        gone.extend(next);
        Ok(true)
    }

    /// Reads the newest generations until one is good: until the new one is written, it is the only one certain to remain. For a
    /// save that cannot be repeated, those that cannot be loaded go before others.
    fn protect(
        &self,
        needs: &Needs,
        listing: &Listing,
        made: &mut Made,
        watcher: Watcher<'_>,
    ) -> Result<(), Error> {
        let gives_up = self.request.gives_up;
        let whole: Vec<u64> =
            listing.generations.iter().filter(|found| found.is_whole()).map(|found| found.number).collect();
        for number in &whole {
            match verify(self.calls, self.disk, Some(*number), &mut *watcher) {
                Err(error) if gives_up && error.kind == ErrorKind::SnapshotCorrupt => {
                    made.damaged.push(*number);
                }
                verified => {
                    verified?;
                    made.good = Some(*number);
                    break;
                }
            }
        }
        if made.good.is_none() {
            // Most of its files may be good.
            made.good = whole.first().copied();
        }
        if gives_up {
            let set_aside = listing.files.iter().filter(|file| file.name == bad_name(file.number));
            made.damaged.extend(set_aside.map(|file| file.number));
            made.damaged.extend(needs.unreadable.iter().filter(|number| !whole.contains(number)));
        }
        Ok(())
    }

    /// The generations that may be deleted for a save. It is refused if they are probably not enough, except before the disk is
    /// removed: the estimate may be wrong.
    fn find_room(&self, tree: &Tree) -> Result<Way, Error> {
        let (disk, request) = (self.disk, self.request);
        let mut wanted = wanted_room(disk, self.listing, tree.contents.occupied_bytes);
        let by_user = request.reason == SaveReason::User;
        if by_user {
            // Leave space for the next automatic save, too, which would otherwise remove this generation.
            wanted = wanted.saturating_mul(2);
        }
        let free = self.store.file_system()?.available_bytes;
        let spare = choose::spare(self.kept, disk.keep.generations, self.loaded, next(disk, by_user));
        let numbers = |kept: &[Kept]| kept.iter().map(|kept| kept.number).collect::<Vec<_>>();
        let mut way = Way { spare: numbers(&spare), last: Vec::new(), is_narrow: false };
        if request.gives_up {
            way.last = numbers(&choose::give_up(self.kept));
            return Ok(way);
        }
        if wanted > free {
            way.is_narrow = true;
            let needs = Needs::new(&mut self.shelf()?, &Hashes::default())?;
            if needs.choose(&way.spare, wanted - free, 0, false).is_none() && !request.last {
                let (wanted, free) = (human(wanted), human(free));
                let why =
                    format!("the store has {free} free, and about {wanted} are needed; {}", more_room(disk));
                return Err(refused(ErrorKind::StoreFull, disk, &why));
            }
        }
        Ok(way)
    }
}

/// What was found and done to make way for a generation.
#[derive(Default)]
struct Made {
    /// The newest generation that is good.
    good: Option<u64>,
    /// Those that cannot be loaded, or not completely.
    damaged: Vec<u64>,
    /// Whether no generation was deleted the last time, only what none of them needs.
    nothing: bool,
}

/// What attempts to write a generation have in common.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    source: &'a Source<'a>,
    /// The files that there are: others than in [`Writer::listing`] after generations were deleted.
    listing: &'a Listing,
    began_at_usec: u64,
    /// Generations that were deleted for its space.
    gone: &'a [u64],
    /// Whether it may copy from old files.
    copies: bool,
}

/// A base and its hash.
type Base = (Hash, StoredTree);

/// What may be copied from old files into a new one.
struct Compaction {
    /// Contents that remaining generations need.
    live: Hashes,
    /// Files of these generations.
    stays: HashSet<usize>,
}

impl Compaction {
    /// Copies at most `most` stored bytes, for a save of this tree that adds `new_bytes`; returns the number of contents.
    fn copy(
        &self,
        shelf: &mut Shelf<'_>,
        frames: &mut Frames<'_, '_>,
        tree: &[u8],
        new_bytes: u64,
        most: u64,
    ) -> Result<usize, TransferError> {
        let before = frames.fresh.len();
        let mut copied = compact::copies(shelf, &self.live, &self.stays, new_bytes, most);
        // In the order in which a load reads them; at the end, what only older generations need.
        let mut order = Vec::with_capacity(copied.len());
        shelf::each_content(tree, |hash| order.extend(copied.take(&hash)))?;
        let mut others: Vec<Hash> = copied.into_iter().collect();
        others.sort_by_key(|hash| shelf.find(hash));
        for hash in order.into_iter().chain(others) {
            match shelf.any(&hash) {
                Ok(data) => frames.add(hash, data)?,
                // It stays where it is.
                Err(TransferError::Bad(_) | TransferError::Unusable(_)) => {}
                Err(error) => return Err(error),
            }
        }
        frames.flush()?;
        Ok(frames.fresh.len() - before)
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

fn not_saved(mount: &str) -> String {
    format!("{mount} is not saved: it is another file system")
}

/// Whether a generation also serves for this request: those saved by users are pruned first.
fn is_still(manifest: &Manifest, request: Request) -> bool {
    !manifest.is_by_user() || request.reason == SaveReason::User
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

/// Generations that may be deleted for the space of a new one.
struct Way {
    /// Those that are pruned after it anyway, in this order.
    spare: Vec<u64>,
    /// Those that a save which cannot be repeated gives up, in this order; else none.
    last: Vec<u64>,
    /// Whether the space is probably too small without that: measured before anything is written, since every write wears
    /// flash.
    is_narrow: bool,
}

/// Bytes that a new generation with these contents probably needs.
fn wanted_room(disk: &Ramdisk, listing: &Listing, occupied_bytes: u64) -> u64 {
    let same = listing.generations.iter().filter(|generation| {
        generation.manifest.as_ref().is_ok_and(|manifest| manifest.mode == disk.keep.mode)
    });
    let sizes: Vec<u64> = same.map(|generation| generation.stored_bytes).collect();
    match sizes.as_slice() {
        [] => choose::wanted_room(occupied_bytes),
        // The first one has all contents, later ones what had changed.
        [first] => first / 10,
        [later @ .., _] => later.iter().copied().max().unwrap_or(0),
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
    /// Bytes that it gains by removing what is pruned after it; 0 if there is plenty of space.
    pub spare_bytes: u64,
    pub free_bytes: u64,
}

/// The space for the next save, if the contents stay about the same; `None` without a snapshot.
pub fn room(
    calls: &Calls,
    disk: &Ramdisk,
    store: &Store,
    state: &State,
    listing: &Listing,
) -> Result<Option<Room>, Error> {
    let Some((_, manifest)) = newest(disk, listing) else { return Ok(None) };
    let loaded = calls.boot_id().ok().and_then(|boot_id| state.loaded_now(&boot_id));
    let spare = choose::spare(&listing.kept(disk), disk.keep.generations, loaded, next(disk, false));
    let spare: Vec<u64> = spare.iter().map(|kept| kept.number).collect();
    let needed_bytes = wanted_room(disk, listing, manifest.contents.occupied_bytes);
    let free_bytes = store.file_system()?.available_bytes;
    // It reads the trees of all snapshots.
    let spare_bytes = if spare.is_empty() || needed_bytes < free_bytes / PLENTY {
        0
    } else {
        let mut shelf = Shelf::open(store, listing, &state.damaged)?;
        Needs::new(&mut shelf, &Hashes::default())?.freed(&spare)
    };
    Ok(Some(Room { needed_bytes, spare_bytes, free_bytes }))
}

/// Prunes what is left to prune after a save, and removes what nothing needs any more; `gone`: what was pruned with the save.
fn prune(
    store: &Store,
    disk: &Ramdisk,
    room: &FileSystem,
    loaded: Option<u64>,
    damaged: &BTreeSet<(u64, u64)>,
    mut gone: Vec<u64>,
) -> Result<Vec<u64>, Error> {
    let listing = store.listing()?;
    // What is left of pruned generations counts, too.
    let generations = listing.generations.iter().map(|generation| generation.stored_bytes).sum();
    let rest = listing.bytes().saturating_sub(generations);
    let store_bytes = disk.store_limit.map(|limit| limit.saturating_sub(rest));
    let limits = Limits { keep: disk.keep.generations, store_bytes };
    let more = choose::prune(&listing.kept_for(disk, room), limits, loaded);
    gone.retain(|number| !more.contains(number));
    gone.extend(&more);
    // Without either, everything is needed as it was before.
    let newest = listing.files.iter().max_by_key(|file| file.number);
    let has_copied =
        newest.is_some_and(|file| file.footer.as_ref().is_ok_and(|footer| footer.copied_bytes > 0));
    if !gone.is_empty() || has_copied {
        needs::remove(store, &listing, &more, damaged, false, &Hashes::default())?;
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

    /// Whether all contents are of the same point in time. Without contents, the times of files say nothing about them.
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
        if disk.keep.mode == Mode::Snapshot {
            return Ok(!packed.is_later);
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
