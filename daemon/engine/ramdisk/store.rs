//! The store: the directory of a RAM disk's generations.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use crate::{Error, ErrorKind};
use host::linux::ramdisk::{Calls, FileSystem, Subject, Untrusted};
use host::{Cause, Errno, Holder, HostError};
use logic::ramdisk::choose::{Kept, Pin};
use logic::ramdisk::entry::Kind;
use logic::ramdisk::hold::Hold;
use logic::ramdisk::manifest::{Manifest, Unusable};
use logic::ramdisk::paths::Foreign;
use logic::ramdisk::state::State;
use logic::ramdisk::{StoreFile, archive_name, classify, hold_name, manifest_name, paths, pin_name};

use super::Ramdisk;
use super::extract::Extracted;
use super::transfer_error::{TransferError, at, in_store, not_opened};

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
    /// Size of its archive.
    pub archive_bytes: u64,
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

    /// Whether it is good, as far as can be told without reading its archive.
    pub fn is_whole(&self) -> bool {
        self.manifest.as_ref().is_ok_and(|manifest| manifest.archive_bytes == self.archive_bytes)
    }
}

/// Contents of a store.
#[derive(Debug, Default)]
pub struct Listing {
    /// Generations, newest first.
    pub generations: Vec<Generation>,
    /// Names of the files that were set aside.
    pub bad: Vec<String>,
    /// Archives without manifest.
    lone_archives: Vec<u64>,
    /// Other files left behind by interrupted saves.
    leftovers: Vec<String>,
    /// Number of the next generation: greater than that of every file.
    pub next: u64,
}

impl Listing {
    /// The generations that pruning considers. Damaged ones, and ones that this version cannot read, are neither
    /// counted nor pruned.
    pub fn kept(&self, disk: &Ramdisk) -> Vec<Kept> {
        let usable = |generation: &Generation| {
            let manifest = generation.manifest.as_ref().ok().filter(|_| generation.is_whole())?;
            let (number, bytes) = (generation.number, generation.archive_bytes);
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
        self.generations.is_empty() && self.bad.is_empty()
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
}

/// A file in another directory.
#[derive(Debug)]
struct Note {
    directory: Box<Store>,
    name: String,
}

/// An archive that is being written.
#[derive(Debug)]
pub struct Draft {
    pub file: OwnedFd,
    /// Its temporary name, on file systems without unnamed files.
    name: Option<String>,
}

impl Store {
    fn new(calls: &Calls, disk: &Ramdisk, directory: OwnedFd) -> Store {
        let path = disk.store().display().to_string();
        let mut store = Store { calls: calls.clone(), directory, path, note: None };
        // The note is optional while the store is writable.
        store.note = disk.notes.as_deref().and_then(|directory| store.note_in(directory).ok());
        store
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
        let directory = Store { calls: calls.clone(), directory, path, note: None };
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
        let (mut archives, mut manifests) = (BTreeSet::new(), BTreeSet::new());
        let (mut pins, mut holds) = (BTreeMap::new(), BTreeMap::new());
        for name in names {
            let number = match classify(&name) {
                StoreFile::Archive(number) => {
                    archives.insert(number);
                    number
                }
                StoreFile::Manifest(number) => {
                    manifests.insert(number);
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
                StoreFile::Bad(number) => {
                    listing.bad.push(name);
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
        listing.lone_archives = archives.difference(&manifests).copied().collect();
        listing.leftovers.extend(manifests.difference(&archives).map(|number| manifest_name(*number)));
        listing
            .leftovers
            .extend(pins.keys().filter(|number| !archives.contains(number)).map(|number| pin_name(*number)));
        listing.leftovers.extend(
            holds.keys().filter(|number| !archives.contains(number)).map(|number| hold_name(*number)),
        );
        if let Some((number, hold)) = self.state()?.hold {
            holds.entry(number).or_insert(hold);
        }
        for number in archives.iter().rev() {
            let manifest = match self.text(&manifest_name(*number))? {
                Some(text) => Manifest::parse(&text),
                None => Err(Unusable::Missing),
            };
            let archive = archive_name(*number);
            let meta =
                self.calls.look(self.fd(), archive.as_bytes()).map_err(self.at(&archive, "look at"))?;
            listing.generations.push(Generation {
                number: *number,
                manifest,
                archive_bytes: meta.size,
                pinned: pins.get(number).map(|why| why.trim_end().to_owned()),
                held: holds.remove(number),
            });
        }
        Ok(listing)
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
        if let Some(Note { directory, name }) = &self.note
            && directory.replace(name, &state.text()).is_err()
        {
            // An outdated note would count as the present state.
            directory.remove_if_there(name).ok();
        }
        self.replace(STATE, &state.text())
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

    /// Removes what interrupted saves left behind. An archive without its manifest is set aside, because it may still
    /// be of use.
    pub(super) fn clean(&self) -> Result<(), Error> {
        let listing = self.listing()?;
        for name in &listing.leftovers {
            self.calls.remove(self.fd(), name.as_bytes(), false).map_err(self.at(name, "remove"))?;
        }
        for number in &listing.lone_archives {
            self.put_aside(&archive_name(*number))?;
        }
        Ok(())
    }

    /// Renames the files of a generation so that it is not tried again. Nothing is overwritten.
    pub(super) fn set_aside(&self, number: u64) -> Result<(), Error> {
        let name = manifest_name(number);
        if self.text(&name)?.is_some() {
            self.put_aside(&name)?;
        }
        self.put_aside(&archive_name(number))?;
        self.sync()
    }

    fn put_aside(&self, name: &str) -> Result<(), Error> {
        let mut to = format!("{name}.bad");
        for attempt in 2.. {
            match self.calls.rename(self.fd(), name, &to, true) {
                Err(Errno::EXIST) if attempt < 100 => to = format!("{name}.{attempt}.bad"),
                renamed => return renamed.map_err(self.at(name, "set aside")),
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), Error> {
        self.calls.sync(self.fd()).map_err(at(&self.path, "sync"))
    }

    /// Replaces the manifest of a generation.
    pub(super) fn describe(&self, number: u64, manifest: &Manifest) -> Result<(), Error> {
        self.replace(&manifest_name(number), &manifest.text())?;
        self.sync()
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

    /// Deletes a generation and its files that were set aside, the archive first: without that there is no generation.
    pub(super) fn delete(&self, number: u64) -> Result<(), Error> {
        let mut names =
            vec![archive_name(number), manifest_name(number), pin_name(number), hold_name(number)];
        let listing = self.listing()?;
        names.extend(listing.bad.into_iter().filter(|name| classify(name) == StoreFile::Bad(number)));
        let mut found = false;
        for name in &names {
            found |= self.remove_if_there(name)?;
        }
        if !found {
            let message = format!("there is no snapshot {number} in {}", self.path);
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        self.sync()
    }

    /// Opens the archive of a generation.
    pub(super) fn open_archive(&self, number: u64) -> Result<OwnedFd, HostError> {
        let name = archive_name(number);
        let fail = |operation: &str, errno| HostError::new(format!("{}/{name}", self.path), operation, errno);
        let opened = self.calls.open_file(self.fd(), name.as_bytes()).map_err(|errno| fail("open", errno))?;
        let (file, store) = (self.calls.look(opened.as_fd(), b""), self.calls.look(self.fd(), b""));
        let (file, store) =
            file.and_then(|file| Ok((file, store?))).map_err(|errno| fail("look at", errno))?;
        let is_ours = file.uid == 0 || file.uid == store.uid;
        if file.kind == Kind::File && is_ours && file.mode & 0o022 == 0 {
            return Ok(opened);
        }
        let text = "not loaded, because other users can change it; if you trust its contents, run `chown root` and `chmod 600`";
        Err(HostError::text(format!("{}/{name}", self.path), "trust", text))
    }

    /// Adds the path of the archive to an error in reading it.
    pub(super) fn of_archive(&self, number: u64, error: TransferError) -> TransferError {
        match error {
            TransferError::Archive(error) => {
                let object = format!("{}/{}", self.path, archive_name(number));
                TransferError::Archive(HostError { object, ..error })
            }
            other => other,
        }
    }

    /// Creates a file for the archive of generation `number`. If the file system supports that, it has no name yet and
    /// disappears on exit.
    pub(super) fn draft(&self, number: u64) -> Result<Draft, Error> {
        match self.calls.create_unnamed(self.fd()) {
            Ok(file) => return Ok(Draft { file, name: None }),
            Err(Errno(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT | libc::EINVAL)) => {}
            Err(errno) => return Err(in_store(HostError::new(&self.path, "create a file in", errno))),
        }
        let name = format!("{}.partial", archive_name(number));
        let file = self.calls.create(self.fd(), name.as_bytes(), 0o600).map_err(self.at(&name, "create"))?;
        Ok(Draft { file, name: Some(name) })
    }

    /// Removes a draft.
    pub(super) fn discard(&self, draft: &Draft) {
        if let Some(name) = &draft.name {
            // On failure, the next save removes it.
            self.calls.remove(self.fd(), name.as_bytes(), false).ok();
        }
    }

    /// Turns a draft into a generation: all of it is on disk before it gets its name.
    pub(super) fn commit(&self, number: u64, draft: &Draft, manifest: &Manifest) -> Result<(), Error> {
        let (archive, name) = (archive_name(number), manifest_name(number));
        self.calls.sync(draft.file.as_fd()).map_err(self.at(&archive, "sync"))?;
        let partial = format!("{name}.partial");
        self.write_small(&partial, &manifest.text())?;
        let renamed = self.calls.rename(self.fd(), &partial, &name, true).map_err(self.at(&name, "name"));
        self.or_without(&partial, renamed)?;
        let named = match &draft.name {
            None => self.calls.name(draft.file.as_fd(), self.fd(), &archive),
            Some(partial) => self.calls.rename(self.fd(), partial, &archive, true),
        };
        if let Err(errno) = named {
            self.calls.remove(self.fd(), name.as_bytes(), false).ok();
            return Err(self.at(&archive, "name")(errno));
        }
        // On btrfs (seen with Linux 6.12), a file that was only synced before it had a name may be empty after a power cut.
        self.calls.sync(draft.file.as_fd()).map_err(self.at(&archive, "sync"))?;
        self.sync()
    }
}
