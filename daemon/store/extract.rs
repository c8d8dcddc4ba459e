//! Makes a tree, and nothing outside of it, whatever it is made from: directories are opened
//! only below the root and never through links; everything else is created in such a directory under a single name.

use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::Error;
use host::linux::ramdisk::{Calls, Subject};
use host::{Errno, HostError};
use logic::ramdisk::Mode;
use logic::ramdisk::directories::{Directories, TOP};
use logic::ramdisk::entry::{Attribute, Kind};
use logic::ramdisk::limits::{NAMED, shown};
use logic::ramdisk::omitted::Reason;

use super::extracted::Extracted;
use super::format::tree::{Body, Entry, Placed, Places};
use super::format::{self, tree};
use super::open_directories::OpenDirectories;
use super::shelf::{Shelf, hashes};
use super::sink::Sink;
use super::transfer_error::{TransferError, at, in_tree, is_of_entry};
use super::walk::{LOST_AND_FOUND, is_of_fsck, is_reserved, join};
use super::{Progress, Watcher};

/// Larger files are written as they are read; smaller ones are passed to other threads in batches.
const LARGE: usize = 256 << 10;
const BATCH_FILES: usize = 64;
const BATCH_BYTES: usize = 512 << 10;
/// The last file of a batch may exceed the limit.
const ALL_BYTES: usize = BATCH_BYTES + LARGE;
/// Maximum number of directories kept open while hard links are created.
const OPEN: usize = 512;
/// In sparse files, zero pages become holes: saving has filled small holes.
const PAGE: usize = 4096;

/// Parameters of an extraction.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// With or without the contents of files.
    pub mode: Mode,
    /// Additional threads that create files, at least one.
    pub threads: usize,
    /// The description of the progress.
    pub doing: &'static str,
    /// Bytes of all files, for the progress.
    pub total: u64,
}

/// A small file to create.
struct Job {
    directory: Arc<OwnedFd>,
    entry: Entry,
    /// The number of its directory.
    number: usize,
    /// Its data, and where that is in the file.
    parts: Vec<(u64, Range<usize>)>,
}

struct Batch {
    jobs: Vec<Job>,
    data: Vec<u8>,
    /// Bytes of attributes in this batch.
    attributes: usize,
}

impl Batch {
    fn new() -> Batch {
        Batch { jobs: Vec::new(), data: Vec::with_capacity(ALL_BYTES), attributes: 0 }
    }
}

/// State shared by all threads.
struct Site<'a> {
    calls: &'a Calls,
    /// Owner and group of everything new; `None` for root, because mount options may set another one.
    owns_all: Option<(u32, u32)>,
    /// Owner and group of new files for root: those of the first one. All are made in the same way, in new directories.
    owner: OnceLock<Option<(u32, u32)>>,
    failure: Mutex<Option<TransferError>>,
    /// Omitted entries and unsupported attributes; the totals are counted by one thread.
    made: Mutex<Extracted>,
    /// The paths of all directories so far.
    places: Mutex<Places>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A hard link: directory and name of the link and of its target.
struct Link {
    directory: usize,
    name: Box<[u8]>,
    target_directory: usize,
    target: Box<[u8]>,
}

/// Makes the tree that `fill` adds to the builder, below `root`, which must be empty.
pub fn extract(
    calls: &Calls,
    root: BorrowedFd<'_>,
    options: Options,
    watcher: Watcher<'_>,
    fill: impl FnOnce(&mut Builder<'_>) -> Result<(), TransferError>,
) -> Result<Extracted, TransferError> {
    let site = Site {
        calls,
        owns_all: calls.identity(),
        owner: OnceLock::new(),
        failure: Mutex::new(None),
        made: Mutex::default(),
        places: Mutex::default(),
    };
    // Nothing else can look in until the tree is complete, and new files inherit neither group nor ACL.
    for name in [&b"system.posix_acl_default"[..], b"system.posix_acl_access"] {
        calls.remove_attribute(root, name).map_err(in_tree(b"", "remove the ACL of"))?;
    }
    calls.set_mode(Subject::Open(root), 0o700).map_err(in_tree(b"", "set the mode of"))?;
    let (directories, links, result) = std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Batch>(2 * options.threads);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..options.threads {
            let (site, receiver) = (&site, Arc::clone(&receiver));
            scope.spawn(move || work(site, &receiver));
        }
        drop(receiver);
        let mut builder = Builder {
            site: &site,
            root,
            options,
            watcher: &mut *watcher,
            sender,
            batch: Batch::new(),
            present: Present::None,
            open_directories: OpenDirectories::new(calls, root),
            directories: Vec::new(),
            links: Vec::new(),
            result: Extracted::default(),
        };
        fill(&mut builder)?;
        builder.send()?;
        let Builder { directories, links, result, sender, .. } = builder;
        // Closes the channel, so that the other threads end.
        drop(sender);
        Ok::<_, TransferError>((directories, links, result))
    })?;
    site.check()?;
    let Options { doing, total: total_bytes, .. } = options;
    let progress = Progress { doing, done_bytes: result.bytes, total_bytes };
    let mut proceed = || if watcher(progress) { Ok(()) } else { Err(TransferError::Ended) };
    let names = std::mem::take(&mut lock(&site.places).directories);
    make_links(&site, root, &names, links, &mut proceed)?;
    dress_directories(&site, root, &names, &directories, &mut proceed)?;
    let made = site.made.into_inner().unwrap_or_else(PoisonError::into_inner);
    let refused = made.omitted.counts.get(&Reason::Refused).copied().unwrap_or(0);
    let Extracted { entries, bytes, .. } = result;
    Ok(Extracted { entries: entries.saturating_sub(refused), bytes, ..made })
}

/// What to do with a file whose contents are damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDamage {
    /// Fail.
    Fail,
    /// Leave it out.
    Omit,
}

/// Adds a tree of the store.
pub fn unshelve(
    tree: &[u8],
    shelf: &mut Shelf<'_>,
    builder: &mut Builder<'_>,
    on_damage: OnDamage,
) -> Result<(), TransferError> {
    let unusable = |why: &'static str| TransferError::Unusable(why.to_owned());
    let mut reader = tree::Reader::new(tree);
    while let Some(entry) = reader.next_entry().map_err(unusable)? {
        let (is_file, size, name) =
            (matches!(entry.body, Body::File { .. }), entry.size(), entry.name.clone());
        builder.add(entry, 0)?;
        if !is_file {
            continue;
        }
        let (mut filled, mut left) = (Ok(()), size);
        while let Some(run) = reader.run().map_err(unusable)? {
            filled = filled.and_then(|()| match run {
                tree::Run::Hole(blocks) => {
                    left = left.saturating_sub(blocks.saturating_mul(format::BLOCK as u64));
                    builder.hole(blocks)
                }
                tree::Run::Contents(_) if builder.options.mode == Mode::Skeleton => Ok(()),
                tree::Run::Contents(run) => hashes(run).try_for_each(|hash| {
                    let data = shelf.content(&hash, &mut left)?;
                    builder.data(data)
                }),
            });
        }
        match filled {
            Err(TransferError::Bad(why)) if on_damage == OnDamage::Omit => builder.abandon(&name, &why)?,
            filled => filled.and_then(|()| builder.close())?,
        }
    }
    Ok(())
}

fn work(site: &Site<'_>, receiver: &Mutex<Receiver<Batch>>) {
    loop {
        let batch = lock(receiver).recv();
        let Ok(batch) = batch else { return };
        site.make_all(batch);
    }
}

/// Creates the hard links, once all files exist. In the order of their targets, because opening a directory far from the
/// previous one takes long. That leaves the directories of the links in any order: up to [`OPEN`] stay open.
fn make_links(
    site: &Site<'_>,
    root: BorrowedFd<'_>,
    names: &Directories,
    mut links: Vec<Link>,
    proceed: &mut dyn FnMut() -> Result<(), TransferError>,
) -> Result<(), TransferError> {
    let (mut from, mut to) = (OpenDirectories::new(site.calls, root), OpenDirectories::new(site.calls, root));
    let mut open: HashMap<usize, Arc<OwnedFd>> = HashMap::new();
    links.sort_by_key(|link| link.target_directory);
    for Link { directory: number, name, target_directory, target } in &links {
        proceed()?;
        let directory = match open.get(number) {
            Some(directory) => Ok(Arc::clone(directory)),
            None => to.open(names, *number).inspect(|directory| {
                if open.len() >= OPEN {
                    open.clear();
                }
                open.insert(*number, Arc::clone(directory));
            }),
        };
        let linked = directory.and_then(|directory| {
            let source = from.open(names, *target_directory)?;
            site.calls.link(source.as_fd(), target, directory.as_fd(), name)
        });
        if let Err(errno) = linked {
            site.omit(|| join(&names.path(*number), name), "create", errno)?;
        }
    }
    Ok(())
}

/// Sets the attributes of directories from the bottom up, once all files and links exist: creating these changes the times
/// of directories.
fn dress_directories(
    site: &Site<'_>,
    root: BorrowedFd<'_>,
    names: &Directories,
    directories: &[(usize, Entry)],
    proceed: &mut dyn FnMut() -> Result<(), TransferError>,
) -> Result<(), TransferError> {
    let mut open_directories = OpenDirectories::new(site.calls, root);
    for (number, entry) in directories.iter().rev() {
        proceed()?;
        let path = || names.path(*number);
        match open_directories.open(names, *number) {
            Err(errno) => site.omit(path, "open", errno)?,
            Ok(opened) => {
                let subject = Subject::Open(opened.as_fd());
                if let Err((operation, errno)) = site.dress(subject, &path, entry, site.owns_all) {
                    site.omit(path, operation, errno)?;
                }
            }
        }
    }
    Ok(())
}

/// ACLs of directories are set last: new files would inherit the default ACL.
fn is_acl(name: &[u8]) -> bool {
    name.starts_with(b"system.posix_acl_")
}

impl Site<'_> {
    /// The error of another thread, if one failed.
    fn check(&self) -> Result<(), TransferError> {
        lock(&self.failure).clone().map_or(Ok(()), Err)
    }

    fn make_all(&self, batch: Batch) {
        let Batch { jobs, data, .. } = batch;
        if self.check().is_err() {
            return;
        }
        for job in jobs {
            if let Err(error) = self.make(&job, &data) {
                lock(&self.failure).get_or_insert(error);
                return;
            }
        }
    }

    /// Records an entry that could not be created. An error that would affect all others, too, is returned.
    fn omit(
        &self,
        path: impl FnOnce() -> Vec<u8>,
        operation: &'static str,
        errno: Errno,
    ) -> Result<(), TransferError> {
        if !is_of_entry(errno) {
            // Not named: every user may read why a load failed, but only root may read file names.
            return Err(in_tree(b"", operation)(errno));
        }
        lock(&self.made).omitted.add(path, Reason::Refused, errno);
        Ok(())
    }

    fn path(&self, directory: usize, name: &[u8]) -> Vec<u8> {
        join(&lock(&self.places).directories.path(directory), name)
    }

    /// Sets everything about a file that is filled. If that fails, it is removed again.
    fn finish(
        &self,
        (directory, number): (BorrowedFd<'_>, usize),
        entry: &Entry,
        file: BorrowedFd<'_>,
        filled: Result<(), Errno>,
    ) -> Result<(), TransferError> {
        let path = || self.path(number, &entry.name);
        let filled = filled.map_err(|errno| ("write", errno));
        let look = || self.calls.look(file, b"").ok().map(|new| (new.uid, new.gid));
        let owner = self.owns_all.or_else(|| *self.owner.get_or_init(look));
        match filled.and_then(|()| self.dress(Subject::Open(file), &path, entry, owner)) {
            Ok(()) => Ok(()),
            Err((operation, errno)) => self.undo(directory, number, entry, operation, errno),
        }
    }

    /// Removes a file that is incomplete, and records that.
    fn undo(
        &self,
        directory: BorrowedFd<'_>,
        number: usize,
        entry: &Entry,
        operation: &'static str,
        errno: Errno,
    ) -> Result<(), TransferError> {
        self.omit(|| self.path(number, &entry.name), operation, errno)?;
        self.calls.remove(directory, &entry.name, false).map_err(in_tree(b"", "remove"))
    }

    fn make(&self, job: &Job, data: &[u8]) -> Result<(), TransferError> {
        let directory = job.directory.as_fd();
        let file = match self.calls.create(directory, &job.entry.name, 0o600) {
            Ok(file) => file,
            Err(errno) => return self.omit(|| self.path(job.number, &job.entry.name), "create", errno),
        };
        let fill = || {
            let has_holes = matches!(job.entry.body, Body::File { has_holes: true, .. });
            for (offset, range) in &job.parts {
                let data = &data[range.clone()];
                if has_holes {
                    self.write_data(file.as_fd(), data, *offset)?;
                } else {
                    self.calls.write_all(file.as_fd(), data)?;
                }
            }
            if has_holes { self.calls.set_size(file.as_fd(), job.entry.size()) } else { Ok(()) }
        };
        self.finish((directory, job.number), &job.entry, file.as_fd(), fill())
    }

    /// Writes the data, except for zero pages.
    fn write_data(&self, file: BorrowedFd<'_>, data: &[u8], offset: u64) -> Result<(), Errno> {
        // Contents begin at a page.
        let (mut start, mut at) = (0, 0);
        while at < data.len() {
            let end = data.len().min(at + PAGE);
            if data[at..end].iter().all(|byte| *byte == 0) {
                self.calls.write_all_at(file, &data[start..at], offset + start as u64)?;
                start = end;
            }
            at = end;
        }
        self.calls.write_all_at(file, &data[start..], offset + start as u64)
    }

    /// Sets owner, mode, attributes and time, in this order: chown(2) clears set-id bits and capabilities. `owner`: the present
    /// one, if it is known.
    fn dress(
        &self,
        subject: Subject<'_>,
        path: &dyn Fn() -> Vec<u8>,
        entry: &Entry,
        owner: Option<(u32, u32)>,
    ) -> Result<(), (&'static str, Errno)> {
        let Entry { mode, uid, gid, mtime, attributes, body, .. } = entry;
        let failed = |operation: &'static str| move |errno| (operation, errno);
        if owner != Some((*uid, *gid)) {
            self.calls.set_owner(subject, *uid, *gid).map_err(failed("set the owner of"))?;
        }
        if !matches!(body, Body::Symlink(_)) {
            self.calls.set_mode(subject, *mode).map_err(failed("set the mode of"))?;
        }
        self.set_attributes(subject, path, attributes)?;
        self.calls.set_time(subject, *mtime).map_err(failed("set the time of"))
    }

    fn set_attributes(
        &self,
        subject: Subject<'_>,
        path: &dyn Fn() -> Vec<u8>,
        attributes: &[Attribute],
    ) -> Result<(), (&'static str, Errno)> {
        for (name, value) in attributes {
            match self.calls.set_attribute(subject, name, value) {
                Err(Errno(
                    libc::EOPNOTSUPP | libc::EPERM | libc::EINVAL | libc::E2BIG | libc::ERANGE | libc::ENOSPC,
                )) => {
                    let mut made = lock(&self.made);
                    made.unsupported += 1;
                    if made.unsupported_names.len() < NAMED {
                        made.unsupported_names.push(format!("{}: {}", shown(&path()), shown(name)));
                    }
                }
                set => set.map_err(|errno| ("set an attribute of", errno))?,
            }
        }
        Ok(())
    }
}

/// The file whose contents are being added.
enum Present {
    /// It is not kept, or there is none.
    None,
    /// The last one of the batch, and where the next data is in it.
    Small(u64),
    Large(Large),
}

/// A file that is written as it is read.
struct Large {
    directory: Arc<OwnedFd>,
    number: usize,
    entry: Entry,
    file: OwnedFd,
    has_holes: bool,
    at: u64,
    filled: Result<(), Errno>,
}

/// Makes a tree from its entries, which must be in their order.
pub struct Builder<'a> {
    site: &'a Site<'a>,
    root: BorrowedFd<'a>,
    options: Options,
    watcher: Watcher<'a>,
    sender: SyncSender<Batch>,
    batch: Batch,
    present: Present,
    open_directories: OpenDirectories<'a>,
    /// Directories to finish, by number. Their paths are those of the site.
    directories: Vec<(usize, Entry)>,
    links: Vec<Link>,
    result: Extracted,
}

impl Sink for Builder<'_> {
    fn add(&mut self, entry: Entry, _: u64) -> Result<bool, TransferError> {
        let placed = lock(&self.site.places).place(entry);
        self.place(placed.map_err(|why| TransferError::Unusable(why.to_owned()))?)?;
        self.result.entries += 1;
        let Options { doing, total: total_bytes, .. } = self.options;
        let proceed = (self.watcher)(Progress { doing, done_bytes: self.result.bytes, total_bytes });
        if proceed { Ok(true) } else { Err(TransferError::Ended) }
    }

    fn data(&mut self, data: &[u8]) -> Result<(), TransferError> {
        match &mut self.present {
            Present::None => {}
            Present::Small(at) => {
                let batch = &mut self.batch;
                let range = batch.data.len()..batch.data.len() + data.len();
                if range.end > ALL_BYTES {
                    return Err(TransferError::Unusable("a file is longer than its size".to_owned()));
                }
                batch.data.extend_from_slice(data);
                if let Some(job) = batch.jobs.last_mut() {
                    match job.parts.last_mut() {
                        // Written at once.
                        Some((start, part)) if *start + part.len() as u64 == *at => part.end = range.end,
                        _ => job.parts.push((*at, range)),
                    }
                }
                *at += data.len() as u64;
            }
            Present::Large(large) => {
                let (calls, file) = (self.site.calls, large.file.as_fd());
                if large.filled.is_ok() {
                    large.filled = if large.has_holes {
                        self.site.write_data(file, data, large.at)
                    } else {
                        calls.write_all(file, data)
                    };
                }
                large.at += data.len() as u64;
            }
        }
        Ok(())
    }

    fn hole(&mut self, blocks: u64) -> Result<(), TransferError> {
        let bytes = blocks.saturating_mul(format::BLOCK as u64);
        match &mut self.present {
            Present::None => {}
            Present::Small(at) => *at = at.saturating_add(bytes),
            Present::Large(large) => large.at = large.at.saturating_add(bytes),
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), TransferError> {
        match std::mem::replace(&mut self.present, Present::None) {
            Present::None => Ok(()),
            Present::Small(_) => self.send_when_full(),
            Present::Large(Large { directory, number, entry, file, has_holes, filled, .. }) => {
                let filled = filled.and_then(|()| {
                    if has_holes { self.site.calls.set_size(file.as_fd(), entry.size()) } else { Ok(()) }
                });
                self.site.finish((directory.as_fd(), number), &entry, file.as_fd(), filled)
            }
        }
    }
}

impl Builder<'_> {
    /// Leaves out the last file, because its contents are damaged.
    fn abandon(&mut self, name: &[u8], why: &str) -> Result<(), TransferError> {
        let number = match std::mem::replace(&mut self.present, Present::None) {
            // Its error is recorded.
            Present::None => return Ok(()),
            Present::Small(_) => match self.batch.jobs.pop() {
                Some(job) => job.number,
                None => return Ok(()),
            },
            Present::Large(Large { directory, number, .. }) => {
                self.site.calls.remove(directory.as_fd(), name, false).map_err(in_tree(b"", "remove"))?;
                number
            }
        };
        self.result.entries -= 1;
        let path = self.site.path(number, name);
        lock(&self.site.made).omitted.add(|| path, Reason::Contents, why);
        Ok(())
    }

    /// Creates an entry, or queues it for another thread.
    fn place(&mut self, placed: Placed) -> Result<(), TransferError> {
        self.present = Present::None;
        let Placed { entry, directory: number, target } = placed;
        if let Body::Directory(_) = entry.body {
            return self.directory(number, entry);
        }
        if let Some((target_directory, target)) = target {
            self.links.push(Link { directory: number, name: entry.name.into(), target_directory, target });
            return Ok(());
        }
        let opened = self.open_directories.open(&lock(&self.site.places).directories, number);
        match opened {
            Err(errno) => {
                self.site.omit(|| self.site.path(number, &entry.name), "open the directory of", errno)
            }
            Ok(directory) => self.leaf(entry, number, directory),
        }
    }

    fn directory(&mut self, number: usize, mut entry: Entry) -> Result<(), TransferError> {
        let (site, calls) = (self.site, self.site.calls);
        let path = || lock(&site.places).directories.path(number);
        if number != TOP {
            let places = lock(&site.places);
            let (above, name) = places.directories.above(number);
            if above == TOP && name == LOST_AND_FOUND {
                // A new file system has its own, empty one.
                calls.remove(self.root, LOST_AND_FOUND, true).ok();
            }
            let made = self
                .open_directories
                .open(&places.directories, above)
                .and_then(|above| calls.make_directory(above.as_fd(), name, 0o700));
            drop(places);
            if let Err(errno) = made {
                return site.omit(path, "create", errno);
            }
        }
        // Set the attributes now instead of keeping those of all directories in memory; only ACLs have to wait.
        let (late, attributes) =
            std::mem::take(&mut entry.attributes).into_iter().partition(|(name, _)| is_acl(name));
        entry.attributes = late;
        let attributes: Vec<Attribute> = attributes;
        if !attributes.is_empty() {
            let opened = self.open_directories.open(&lock(&site.places).directories, number);
            let set = opened
                .map_err(|errno| ("open", errno))
                .and_then(|opened| site.set_attributes(Subject::Open(opened.as_fd()), &path, &attributes));
            if let Err((operation, errno)) = set {
                site.omit(path, operation, errno)?;
            }
        }
        entry.name = Vec::new();
        self.directories.push((number, entry));
        Ok(())
    }

    fn leaf(&mut self, entry: Entry, number: usize, directory: Arc<OwnedFd>) -> Result<(), TransferError> {
        let (site, calls) = (self.site, self.site.calls);
        let (at, name) = (directory.as_fd(), entry.name.as_slice());
        let made = match &entry.body {
            Body::Symlink(target) => calls.make_symlink(at, name, target),
            Body::Fifo => calls.make_node(at, name, Kind::Fifo, (0, 0)),
            Body::Character(major, minor) => calls.make_node(at, name, Kind::Character, (*major, *minor)),
            Body::Block(major, minor) => calls.make_node(at, name, Kind::Block, (*major, *minor)),
            _ => return self.file(entry, number, directory),
        };
        let path = || site.path(number, name);
        if let Err(errno) = made {
            return site.omit(path, "create", errno);
        }
        match site.dress(Subject::Named(at, name), &path, &entry, site.owns_all) {
            Ok(()) => Ok(()),
            Err((operation, errno)) => site.undo(at, number, &entry, operation, errno),
        }
    }

    fn file(
        &mut self,
        mut entry: Entry,
        number: usize,
        directory: Arc<OwnedFd>,
    ) -> Result<(), TransferError> {
        if self.options.mode == Mode::Skeleton {
            entry.body = Body::File { size: 0, has_holes: false };
        }
        self.batch.attributes +=
            entry.attributes.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        self.result.bytes = self.result.bytes.saturating_add(entry.size());
        if entry.size() <= LARGE as u64 {
            // Without the contents of the file before, there is room for a small one.
            self.send_when_full()?;
            self.batch.jobs.push(Job { directory, entry, number, parts: Vec::new() });
            self.present = Present::Small(0);
            return Ok(());
        }
        let file = match self.site.calls.create(directory.as_fd(), &entry.name, 0o600) {
            Ok(file) => file,
            Err(errno) => {
                return self.site.omit(|| self.site.path(number, &entry.name), "create", errno);
            }
        };
        let has_holes = matches!(entry.body, Body::File { has_holes: true, .. });
        let large = Large { directory, number, entry, file, has_holes, at: 0, filled: Ok(()) };
        self.present = Present::Large(large);
        Ok(())
    }

    fn send_when_full(&mut self) -> Result<(), TransferError> {
        let Batch { jobs, data, attributes } = &self.batch;
        if jobs.len() >= BATCH_FILES || data.len() + attributes >= BATCH_BYTES { self.send() } else { Ok(()) }
    }

    /// Passes the batch to another thread.
    fn send(&mut self) -> Result<(), TransferError> {
        self.site.check()?;
        let batch = std::mem::replace(&mut self.batch, Batch::new());
        // The receivers exist until this thread is done.
        self.sender.send(batch).ok();
        Ok(())
    }
}

/// Whether there is nothing below `root`.
pub fn is_empty(calls: &Calls, root: BorrowedFd<'_>) -> Result<bool, TransferError> {
    let magic = calls.file_system(root).map_err(in_tree(b"", "look at the file system of"))?.magic;
    for name in calls.list(root).map_err(in_tree(b"", "list"))? {
        if !is_reserved(calls, root, magic, &name).map_err(in_tree(&name, "look at"))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes everything below `root`, which is at `path`. Names of what cannot be removed are reported to root only.
pub fn wipe(calls: &Calls, root: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    let magic = calls.file_system(root).map_err(at(path.display(), "look at the file system of"))?.magic;
    let mut names = Directories::default();
    let mut open_directories = OpenDirectories::new(calls, root);
    let mut pending = vec![(TOP, false)];
    let failed = |names: &Directories, number, name: &[u8], operation, errno| {
        let directory = names.path(number);
        let name = shown(&if name.is_empty() { directory } else { join(&directory, name) });
        let error = HostError::new(format!("what is in {}", path.display()), operation, errno);
        Error::from(TransferError::Tree(error)).with_private(format!("{operation} {name}: {errno}"))
    };
    while let Some((number, listed)) = pending.pop() {
        if listed {
            let (above, name) = names.above(number);
            if above == TOP && is_of_fsck(magic, name) {
                continue;
            }
            let opened = open_directories.open(&names, above);
            let removed = opened.and_then(|above| calls.remove(above.as_fd(), name, true));
            removed.map_err(|errno| failed(&names, above, name, "remove", errno))?;
            continue;
        }
        let opened = open_directories.open(&names, number);
        let listed = opened.and_then(|opened| Ok((calls.list(opened.as_fd())?, opened)));
        let (found, opened) = listed.map_err(|errno| failed(&names, number, b"", "list", errno))?;
        if number != TOP {
            pending.push((number, true));
        }
        for name in found {
            let is_reserved = number == TOP
                && is_reserved(calls, root, magic, &name)
                    .map_err(|errno| failed(&names, number, &name, "look at", errno))?;
            if is_reserved {
                continue;
            }
            let looked = calls.look(opened.as_fd(), &name);
            let meta = looked.map_err(|errno| failed(&names, number, &name, "look at", errno))?;
            if meta.kind == Kind::Directory {
                pending.push((names.add(number, &name), false));
                continue;
            }
            let removed = calls.remove(opened.as_fd(), &name, false);
            removed.map_err(|errno| failed(&names, number, &name, "remove", errno))?;
        }
    }
    Ok(())
}
