//! The store: the directory of a RAM disk's generations.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::format::Hashes;
use crate::{Error, ErrorKind};
use host::linux::ramdisk::{Calls, FileSystem, Subject, Untrusted};
use host::{Cause, Errno, Holder, HostError};
use logic::ramdisk::choose::{Kept, Pin};
use logic::ramdisk::entry::Kind;
use logic::ramdisk::hold::Hold;
use logic::ramdisk::manifest::{Manifest, Unusable};
use logic::ramdisk::paths::Foreign;
use logic::ramdisk::state::State;
use logic::ramdisk::{
    StoreFile, bad_name, classify, generation_name, hold_name, limits, paths, pin_name, rest_name,
};

use super::Ramdisk;
use super::extracted::Extracted;
use super::format::{self, Footer};
use super::read::{footer, section};
use super::transfer_error::{TransferError, again, at, in_store, is_damage, not_opened};

const STATE: &str = "state.json";
/// How long to wait for another save or load with the same store.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval of the questions whether to wait longer.
const POLL: Duration = Duration::from_millis(200);

fn refused(disk: &Ramdisk, untrusted: Untrusted) -> Error {
    let (name, store) = (&disk.name, disk.store().display());
    let (path, why, remedy) = match untrusted {
        Untrusted::Errno(path, errno) => return not_opened(disk.store(), &path, errno),
        Untrusted::Foreign(path, Foreign::Owner(uid)) => {
            (path, format!("belongs to user {uid}"), "chown -h root:root")
        }
        Untrusted::Foreign(path, Foreign::Writable) => {
            (path, "can be written to by others".to_owned(), "chmod go-w")
        }
    };
    let path = path.display();
    let message = format!(
        "{name}: the store {store} is refused, because {path} {why}, who could change the snapshots; run `{remedy} {path}`, or choose another store"
    );
    Error::new(ErrorKind::Unsafe, message)
}

/// A generation. Without a manifest it counts as damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// N of `gen-N`.
    pub number: u64,
    /// Its manifest, or why that cannot be used.
    pub manifest: Result<Manifest, Unusable>,
    /// Size of its file. Contents that other generations have, too, may be in other files.
    pub stored_bytes: u64,
    /// Why it is pinned by the administrator, if it is.
    pub pinned: Option<String>,
    /// Why it was not loaded, or not completely, although it is intact: it is pinned, too.
    pub held: Option<Hold>,
}

impl Generation {
    /// Why it is not pruned, if it is pinned or held.
    pub fn kept_because(&self) -> Option<String> {
        let held = || self.held.as_ref().map(|hold| format!("not loaded: {}", hold.text()));
        self.pinned.clone().or_else(held)
    }

    /// Whether it is good, as far as can be told without reading its tree and contents.
    pub fn is_whole(&self) -> bool {
        self.manifest.is_ok()
    }
}

/// A file with contents: a generation, or what is left of one.
#[derive(Debug, Clone)]
pub struct File {
    pub number: u64,
    pub name: String,
    pub size: u64,
    pub footer: Result<Footer, format::Unusable>,
}

/// Contents of a store.
#[derive(Debug, Default)]
pub struct Listing {
    /// Generations, newest first.
    pub generations: Vec<Generation>,
    /// Names of the files that were set aside.
    pub bad: Vec<String>,
    /// All files with contents.
    pub files: Vec<File>,
    /// Archives in the format of versions before the first release, which this one does not read.
    pub old: Vec<String>,
    /// Files left behind by interrupted saves.
    leftovers: Vec<String>,
    /// Number of the next generation: greater than that of every file.
    pub next: u64,
}

impl Listing {
    /// The generations that pruning considers. Damaged ones, and ones that this version cannot read, are neither
    /// counted nor pruned.
    pub fn kept(&self, disk: &Ramdisk) -> Vec<Kept> {
        let usable = |generation: &Generation| {
            let manifest = generation.manifest.as_ref().ok()?;
            let (number, bytes) = (generation.number, generation.stored_bytes);
            let pin = match (&generation.pinned, &generation.held) {
                (Some(_), _) => Pin::Asked,
                _ if disk.spared == Some(number) => Pin::Asked,
                (None, Some(_)) => Pin::Held,
                (None, None) => Pin::No,
            };
            let (mode, by_user) = (manifest.mode, manifest.is_by_user());
            Some(Kept { number, bytes, mode, pin, by_user, fits: true })
        };
        self.generations.iter().filter_map(usable).collect()
    }

    /// As [`Listing::kept`]; those that do not fit into this file system take the place of none that do.
    pub fn kept_for(&self, disk: &Ramdisk, room: &FileSystem) -> Vec<Kept> {
        let mut kept = self.kept(disk);
        for kept in &mut kept {
            let manifest = self.generations.iter().find(|generation| generation.number == kept.number);
            let manifest = manifest.and_then(|generation| generation.manifest.as_ref().ok());
            kept.fits = manifest.is_none_or(|manifest| {
                Hold::of(&manifest.contents, room.size_bytes(), room.total_inodes).is_none()
            });
        }
        kept
    }

    /// Whether there has never been a generation.
    pub fn is_virgin(&self) -> bool {
        self.files.is_empty()
    }

    /// Bytes of all files with contents.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size))
    }
}

/// An open store. For changes it is also locked, until it is dropped: that excludes other saves and loads of all
/// processes, and needs no write.
#[derive(Debug)]
pub struct Store {
    calls: Calls,
    directory: OwnedFd,
    path: String,
    /// A copy of the state in memory, which stays writable while the machine runs.
    note: Option<Note>,
    /// Bytes written to files with contents. Not every processor has atomics of 64 bits.
    written: Mutex<u64>,
    /// Contents of generations that were read, by number.
    pub(super) known: Mutex<Vec<(u64, Arc<Hashes>)>>,
}

/// A file in another directory.
#[derive(Debug)]
struct Note {
    directory: Box<Store>,
    name: String,
}

impl Store {
    fn new(calls: &Calls, disk: &Ramdisk, directory: OwnedFd) -> Store {
        let path = disk.store().display().to_string();
        let mut store = Store::plain(calls, directory, path);
        // The note is optional while the store is writable.
        store.note = disk.notes.as_deref().and_then(|directory| store.note_in(directory).ok());
        store
    }

    fn plain(calls: &Calls, directory: OwnedFd, path: String) -> Store {
        Store {
            calls: calls.clone(),
            directory,
            path,
            note: None,
            written: Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// Opens a store that only its owner can access: root would extract what others put there.
    fn open(calls: &Calls, disk: &Ramdisk, create: bool) -> Result<Option<Store>, Error> {
        match calls.open_trusted(disk.store(), create) {
            Ok(directory) => {
                let store = Store::new(calls, disk, directory);
                store.close_to_others()?;
                Ok(Some(store))
            }
            Err(Untrusted::Errno(_, Errno::NOENT)) if !create => Ok(None),
            Err(untrusted) => Err(refused(disk, untrusted)),
        }
    }

    fn close_to_others(&self) -> Result<(), Error> {
        let meta = self.calls.look(self.fd(), b"").map_err(at(&self.path, "look at"))?;
        if meta.mode & 0o777 == 0o700 {
            return Ok(());
        }
        match self.calls.set_mode(Subject::Open(self.fd()), 0o700) {
            // On a read-only file system others may read it, but cannot change it.
            Ok(()) | Err(Errno::ROFS) => Ok(()),
            Err(errno) => Err(at(&self.path, "set the mode 0700 of")(errno)),
        }
    }

    /// The note of this directory, named by device and inode instead of its path.
    fn note_in(&self, notes: &Path) -> Result<Note, Errno> {
        let calls = &self.calls;
        let meta = calls.look(self.fd(), b"")?;
        let (major, minor) = meta.device;
        let name = format!("store-{major}:{minor}-{}.json", meta.inode);
        let directory = match calls.open_directory(notes) {
            Err(Errno::NOENT) => {
                calls.make_directories(notes, 0o755)?;
                calls.open_directory(notes)?
            }
            opened => opened?,
        };
        let path = notes.display().to_string();
        let directory = Store::plain(calls, directory, path);
        Ok(Note { directory: Box::new(directory), name })
    }

    /// Opens a store for loading; `None` if it does not exist.
    pub(super) fn look(calls: &Calls, disk: &Ramdisk) -> Result<Option<Store>, Error> {
        Store::open(calls, disk, false)
    }

    /// Opens a store for listing, without checking who can access it; `None` if it does not exist.
    pub(super) fn glance(calls: &Calls, disk: &Ramdisk) -> Result<Option<Store>, Error> {
        match calls.open_directory(disk.store()) {
            Ok(directory) => Ok(Some(Store::new(calls, disk, directory))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(at(disk.store().display(), "open")(errno)),
        }
    }

    /// Opens and locks an existing store.
    pub(super) fn lock_existing(calls: &Calls, disk: &Ramdisk) -> Result<Store, Error> {
        let store = Store::open(calls, disk, false)?
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{} has no snapshot", disk.name)))?;
        store.lock()?;
        Ok(store)
    }

    /// Opens or creates the store, refuses one that may not survive a reboot, and locks it.
    pub(super) fn lock_for(calls: &Calls, disk: &Ramdisk) -> Result<Store, Error> {
        let store = Store::prepare(calls, disk)?;
        store.lock()?;
        Ok(store)
    }

    /// As a save or load does, which can then use the store. While another process has it, calls `wait` with that process,
    /// if known, and returns `None` once that returns false.
    pub fn claim(
        calls: &Calls,
        disk: &Ramdisk,
        mut wait: impl FnMut(Option<&Holder>) -> bool,
    ) -> Result<Option<Store>, Error> {
        let store = Store::prepare(calls, disk)?;
        loop {
            match calls.lock(store.fd(), &store.path, POLL) {
                Err(HostError { cause: Cause::Locked { holder, .. }, .. }) => {
                    if !wait(holder.as_ref()) {
                        return Ok(None);
                    }
                }
                locked => return Ok(locked.map(|()| Some(store))?),
            }
        }
    }

    fn prepare(calls: &Calls, disk: &Ramdisk) -> Result<Store, Error> {
        let store = Store::open(calls, disk, true)?
            .ok_or_else(|| at(disk.store().display(), "open")(Errno::NOENT))?;
        if !disk.trial {
            let found = store.file_system()?;
            let disks = [&disk.place, &disk.mount_point].map(|path| path.display().to_string());
            let layers = calls.layers(&store.path, &found);
            let disks = disks.each_ref().map(String::as_str);
            if let Some(reason) = paths::refuse_store(&store.path, &layers, &disks) {
                return Err(Error::new(ErrorKind::Unsafe, reason));
            }
        }
        Ok(store)
    }

    fn lock(&self) -> Result<(), Error> {
        Ok(self.calls.lock(self.fd(), &self.path, PATIENCE)?)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// The file system of the store.
    pub(super) fn file_system(&self) -> Result<FileSystem, Error> {
        self.calls.file_system(self.fd()).map_err(at(&self.path, "look at the file system of"))
    }

    fn at(&self, name: &str, operation: &'static str) -> impl FnOnce(Errno) -> Error {
        let object = format!("{}/{name}", self.path);
        move |errno| in_store(HostError::new(object, operation, errno))
    }

    /// Lists its contents.
    pub(super) fn listing(&self) -> Result<Listing, Error> {
        let names = self.calls.list(self.fd()).map_err(at(&self.path, "list"))?;
        let names: Vec<String> = names.into_iter().filter_map(|name| String::from_utf8(name).ok()).collect();
        let mut listing = Listing { next: 1, ..Listing::default() };
        let (mut pins, mut holds) = (BTreeMap::new(), BTreeMap::new());
        let mut numbers = BTreeSet::new();
        for name in names {
            let number = match classify(&name) {
                StoreFile::Generation(number) => {
                    numbers.insert(number);
                    self.add_file(&mut listing, number, name)?;
                    number
                }
                StoreFile::Rest(number) => {
                    self.add_file(&mut listing, number, name)?;
                    number
                }
                StoreFile::Bad(number) => {
                    listing.bad.push(name.clone());
                    self.add_file(&mut listing, number, name)?;
                    number
                }
                StoreFile::Pin(number) => {
                    pins.insert(number, self.text(&name)?.unwrap_or_default());
                    number
                }
                StoreFile::Held(number) => {
                    holds.insert(number, Hold::parse(&self.text(&name)?.unwrap_or_default()));
                    number
                }
                StoreFile::Old(number) => {
                    if name.ends_with(".tar.zst") {
                        listing.old.push(name);
                    }
                    numbers.insert(number);
                    number
                }
                StoreFile::Partial => {
                    listing.leftovers.push(name);
                    continue;
                }
                StoreFile::Other => continue,
            };
            listing.next = listing.next.max(number.saturating_add(1));
        }
        let is_lone = |number: &&u64| !numbers.contains(number);
        listing.leftovers.extend(pins.keys().filter(is_lone).map(|number| pin_name(*number)));
        listing.leftovers.extend(holds.keys().filter(is_lone).map(|number| hold_name(*number)));
        if let Some((number, hold)) = self.state()?.hold {
            holds.entry(number).or_insert(hold);
        }
        let files = listing.files.iter().filter(|file| file.name == generation_name(file.number));
        for File { number, name, size, footer } in files {
            listing.generations.push(Generation {
                number: *number,
                manifest: self.manifest(name, *number, footer)?,
                stored_bytes: *size,
                pinned: pins.get(number).map(|why| why.trim_end().to_owned()),
                held: holds.remove(number),
            });
        }
        listing.generations.sort_by_key(|generation| Reverse(generation.number));
        Ok(listing)
    }

    fn add_file(&self, listing: &mut Listing, number: u64, name: String) -> Result<(), Error> {
        let (size, footer) = match again(|| self.calls.open_file(self.fd(), name.as_bytes())) {
            // Removed in the meantime, for a listing without the lock.
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) if is_damage(errno) => (0, Err(format::Unusable::Broken)),
            opened => {
                let file = opened.map_err(self.at(&name, "open"))?;
                let size = self.calls.look(file.as_fd(), b"").map_err(self.at(&name, "look at"))?.size;
                let found = footer(&self.calls, file.as_fd(), size);
                (size, found.map_err(|error| error.of(format_args!("{}/{name}", self.path)))?)
            }
        };
        listing.files.push(File { number, name, size, footer });
        Ok(())
    }

    fn manifest(
        &self,
        name: &str,
        number: u64,
        footer: &Result<Footer, format::Unusable>,
    ) -> Result<Result<Manifest, Unusable>, Error> {
        let footer = match footer {
            Ok(footer) => footer,
            Err(format::Unusable::Version(version)) => return Ok(Err(Unusable::OtherVersion(*version))),
            Err(format::Unusable::Broken) => {
                return Ok(Err(Unusable::Broken("its end is missing or damaged".to_owned())));
            }
        };
        if footer.number != number {
            let why = format!("it is generation {} under another name", footer.number);
            return Ok(Err(Unusable::Broken(why)));
        }
        let file = self.calls.open_file(self.fd(), name.as_bytes()).map_err(self.at(name, "open"))?;
        match section(&self.calls, file.as_fd(), footer.manifest, limits::SMALL_FILE) {
            Ok(text) => Ok(Manifest::parse(&String::from_utf8_lossy(&text))),
            Err(TransferError::Bad(why)) => {
                Ok(Err(Unusable::Broken(format!("its manifest is damaged: {why}"))))
            }
            Err(error) => Err(error.of(format_args!("{}/{name}", self.path)).into()),
        }
    }

    fn text(&self, name: &str) -> Result<Option<String>, Error> {
        self.calls.read_text(self.fd(), name).map_err(self.at(name, "read"))
    }

    pub(super) fn find(&self, number: u64) -> Result<Generation, Error> {
        let found = self.listing()?.generations.into_iter().find(|generation| generation.number == number);
        found.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no snapshot {number} in {}", self.path))
        })
    }

    /// The state of the store. After a load in this boot, the note is at least as new as the file.
    pub(super) fn state(&self) -> Result<State, Error> {
        let noted = self.note.as_ref().and_then(|note| note.directory.text(&note.name).ok()?);
        let noted = State::parse(&noted.unwrap_or_default());
        if let (Some(load), Ok(boot_id)) = (&noted.load, self.calls.boot_id())
            && load.boot_id == boot_id
        {
            return Ok(noted);
        }
        Ok(State::parse(&self.text(STATE)?.unwrap_or_default()))
    }

    /// Writes the state. Even if writing the file fails, [`Store::state`] may return the new state from the note.
    pub(super) fn write_state(&self, state: &State) -> Result<(), Error> {
        self.write_note(state);
        self.replace(STATE, &state.text())
    }

    /// As [`Store::write_state`], but only for the rest of this boot, if that can be written in memory: each write wears flash.
    pub(super) fn note_state(&self, state: &State) -> Result<(), Error> {
        if self.write_note(state) { Ok(()) } else { self.replace(STATE, &state.text()) }
    }

    fn write_note(&self, state: &State) -> bool {
        let Some(Note { directory, name }) = &self.note else { return false };
        let is_written = directory.replace(name, &state.text()).is_ok();
        if !is_written {
            // An outdated note would count as the present state.
            directory.remove_if_there(name).ok();
        }
        is_written
    }

    /// Replaces a small file atomically; after a power failure it has either the old or the new contents.
    fn replace(&self, name: &str, text: &str) -> Result<(), Error> {
        let partial = format!("{name}.partial");
        self.write_small(&partial, text)?;
        let renamed = self.calls.rename(self.fd(), &partial, name, false).map_err(self.at(name, "replace"));
        self.or_without(&partial, renamed)
    }

    /// After an error, removes a temporary file; if that fails too, the next save does.
    fn or_without<T>(&self, name: &str, done: Result<T, Error>) -> Result<T, Error> {
        if done.is_err() {
            self.calls.remove(self.fd(), name.as_bytes(), false).ok();
        }
        done
    }

    fn write_small(&self, name: &str, text: &str) -> Result<(), Error> {
        self.remove_if_there(name)?;
        let file = self.calls.create(self.fd(), name.as_bytes(), 0o600).map_err(self.at(name, "create"))?;
        let written = self.calls.write_all(file.as_fd(), text.as_bytes()).map_err(self.at(name, "write"));
        let synced = written.and_then(|()| self.calls.sync(file.as_fd()).map_err(self.at(name, "sync")));
        self.or_without(name, synced)
    }

    /// Removes what interrupted saves left behind.
    pub(super) fn clean(&self, listing: &Listing) -> Result<(), Error> {
        for name in &listing.leftovers {
            self.calls.remove(self.fd(), name.as_bytes(), false).map_err(self.at(name, "remove"))?;
        }
        Ok(())
    }

    /// Renames a generation so that it is not tried again. Its contents can still be read.
    pub(super) fn set_aside(&self, number: u64) -> Result<(), Error> {
        self.rename(&generation_name(number), &bad_name(number), "set aside")?;
        self.sync()
    }

    fn rename(&self, from: &str, to: &str, operation: &'static str) -> Result<(), Error> {
        self.calls.rename(self.fd(), from, to, true).map_err(self.at(from, operation))
    }

    pub(super) fn sync(&self) -> Result<(), Error> {
        self.calls.sync(self.fd()).map_err(at(&self.path, "sync"))
    }

    /// Pins a generation, which protects it from being pruned.
    pub(super) fn pin(&self, number: u64, why: &str) -> Result<(), Error> {
        self.replace(&pin_name(number), &format!("{why}\n"))?;
        self.sync()
    }

    /// Pins a generation that was not loaded, or not completely. If its file cannot be written, for example because the store
    /// is full, the hold is part of the state, which the caller writes, until [`Store::write_hold`] succeeds.
    pub(super) fn hold(&self, number: u64, hold: Hold, state: &mut State) -> Result<(), Error> {
        state.hold = Some((number, hold));
        self.write_hold(state)
    }

    /// Writes the file of a hold that has none yet.
    pub(super) fn write_hold(&self, state: &mut State) -> Result<(), Error> {
        if let Some((number, hold)) = &state.hold {
            self.replace(&hold_name(*number), &hold.file())?;
            self.sync()?;
        }
        state.hold = None;
        Ok(())
    }

    /// After a generation was loaded: what could not be loaded exists only in it, so it is held; else a hold ends.
    pub(super) fn loaded(&self, number: u64, extracted: &Extracted, state: &mut State) -> Result<(), Error> {
        match extracted.lost() {
            Some(why) => self.hold(number, Hold::Other { why }, state),
            None => {
                state.hold.take_if(|(held, _)| *held == number);
                if self.remove_if_there(&hold_name(number))? { self.sync() } else { Ok(()) }
            }
        }
    }

    /// Remembers what reading a generation as a whole has found: what is wrong with it, and frames that are damaged.
    pub(super) fn verified(
        &self,
        number: u64,
        damage: Option<String>,
        damaged: BTreeSet<(u64, u64)>,
    ) -> Result<(), Error> {
        self.lock()?;
        let is_newest = self.listing()?.generations.first().is_some_and(|newest| newest.number == number);
        let (mut state, is_bad) = (self.state()?, damage.is_some());
        if is_newest {
            (state.verified_usec, state.damage) = (self.calls.now_usec(), damage);
        }
        if !is_bad {
            return self.note_state(&state);
        }
        state.damaged.extend(damaged);
        // The next save reads all files.
        state.fingerprint = None;
        self.write_state(&state)
    }

    /// Changes holds together with the state. A hold in the state counts, so one that has no file is no error.
    pub(super) fn change_holds(
        &self,
        change: impl FnOnce(&mut State) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut state = self.state()?;
        let was = state.clone();
        let changed = change(&mut state);
        if state == was { changed } else { self.write_state(&state) }
    }

    /// Removes the pin and the hold.
    pub(super) fn unpin(&self, number: u64) -> Result<(), Error> {
        self.change_holds(|state| {
            state.hold.take_if(|(held, _)| *held == number);
            Ok(())
        })?;
        self.remove_if_there(&pin_name(number))?;
        self.remove_if_there(&hold_name(number))?;
        self.sync()
    }

    /// Returns whether it existed.
    fn remove_if_there(&self, name: &str) -> Result<bool, Error> {
        match self.calls.remove(self.fd(), name.as_bytes(), false) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(self.at(name, "remove")(errno)),
        }
    }

    /// Of these files, removes the names of these generations, and those that no other generation needs. Without a list of what
    /// the others need, no file is removed.
    pub(super) fn drop(
        &self,
        files: &[File],
        numbers: &[u64],
        needed: Option<&BTreeSet<u64>>,
    ) -> Result<(), Error> {
        let is_needed = |number| needed.is_none_or(|needed| needed.contains(&number));
        let (gone, others): (Vec<_>, Vec<_>) = files
            .iter()
            .partition(|file| numbers.contains(&file.number) && file.name != rest_name(file.number));
        for file in &gone {
            if is_needed(file.number) {
                self.rename(&file.name, &rest_name(file.number), "rename")?;
            } else {
                self.remove_if_there(&file.name)?;
            }
        }
        // What was set aside is removed by request only.
        let mut dead = others
            .iter()
            .filter(|file| file.name == rest_name(file.number) && !is_needed(file.number))
            .peekable();
        // After a power cut, no generation may be there without its contents.
        if !gone.is_empty() && dead.peek().is_some() {
            self.sync()?;
        }
        for file in dead {
            self.remove_if_there(&file.name)?;
        }
        for number in numbers {
            self.remove_if_there(&pin_name(*number))?;
            self.remove_if_there(&hold_name(*number))?;
        }
        Ok(())
    }

    /// Opens a file with contents, which other users must not be able to change.
    pub(super) fn open_file(&self, name: &str) -> Result<OwnedFd, TransferError> {
        let object = || format!("{}/{name}", self.path);
        let fail = |operation: &str, errno| match errno {
            errno if is_damage(errno) => TransferError::Bad(errno.to_string()),
            errno => TransferError::Store(HostError::new(object(), operation, errno)),
        };
        let opened = again(|| self.calls.open_file(self.fd(), name.as_bytes()));
        let opened = opened.map_err(|errno| fail("open", errno))?;
        let look = |file| again(|| self.calls.look(file, b""));
        let (file, store) = (look(opened.as_fd()), look(self.fd()));
        let (file, store) =
            file.and_then(|file| Ok((file, store?))).map_err(|errno| fail("look at", errno))?;
        let is_ours = file.uid == 0 || file.uid == store.uid;
        if file.kind == Kind::File && is_ours && file.mode & 0o022 == 0 {
            return Ok(opened);
        }
        let text = "not loaded, because other users can change it; if you trust its contents, run `chown root` and `chmod 600`";
        Err(TransferError::Unusable(format!("{}: {text}", object())))
    }

    pub(super) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Creates the file of a save.
    pub(super) fn create(&self, name: &str) -> Result<OwnedFd, HostError> {
        let created = self.calls.create(self.fd(), name.as_bytes(), 0o600);
        created.map_err(|errno| HostError::new(format!("{}/{name}", self.path), "create", errno))
    }

    /// Writes to the file of a save.
    pub(super) fn put(&self, file: BorrowedFd<'_>, data: &[u8]) -> Result<(), HostError> {
        let written = self.calls.write_all(file, data);
        written.map_err(|errno| HostError::new(&self.path, "write to", errno))?;
        *self.written() += data.len() as u64;
        Ok(())
    }

    /// Bytes that were written to such files since the last question.
    pub(super) fn take_written(&self) -> u64 {
        std::mem::take(&mut *self.written())
    }

    fn written(&self) -> MutexGuard<'_, u64> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the file of a save that failed. If that fails, too, the next save removes it.
    pub(super) fn discard(&self, name: &str) {
        self.calls.remove(self.fd(), name.as_bytes(), false).ok();
    }

    /// Makes a new file, whose data are on disk, a generation, and waits until it is one there. These generations are pruned at
    /// once, so that the journal of the file system is written once. If it fails, all is as it was.
    pub(super) fn add(
        &self,
        file: BorrowedFd<'_>,
        partial: &str,
        number: u64,
        goes: &[u64],
    ) -> Result<(), Error> {
        let name = generation_name(number);
        self.rename(partial, &name, "name")?;
        // Tried again when the generation is on disk.
        let renamed: Vec<u64> = goes
            .iter()
            .copied()
            .filter(|number| self.rename(&generation_name(*number), &rest_name(*number), "rename").is_ok())
            .collect();
        let synced = self.or_without(&name, self.sync_named(file, &name));
        if synced.is_err() {
            for number in renamed {
                self.rename(&rest_name(number), &generation_name(number), "rename").ok();
            }
        }
        synced
    }

    /// Replaces a file by a new one, whose data are on disk, and waits until it is there. If that fails, one of them is.
    pub(super) fn exchange(&self, file: BorrowedFd<'_>, partial: &str, name: &str) -> Result<(), Error> {
        self.calls.sync(file).map_err(self.at(partial, "sync"))?;
        self.calls.rename(self.fd(), partial, name, false).map_err(self.at(partial, "name"))?;
        self.sync_named(file, name)
    }

    /// On btrfs (seen with Linux 6.12), a file that was only synced under another name may be empty after a power cut.
    fn sync_named(&self, file: BorrowedFd<'_>, name: &str) -> Result<(), Error> {
        self.calls.sync(file).map_err(self.at(name, "sync")).and_then(|()| self.sync())
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }
}
