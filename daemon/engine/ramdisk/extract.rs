//! Extracts an archive into a tree, and nothing outside of it, whatever the archive contains: directories are opened
//! only below the root and never through links; everything else is created in such a directory under a single name.

use std::collections::HashMap;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Error;
use host::linux::ramdisk::{Calls, Subject};
use host::{Errno, HostError};
use logic::ramdisk::Mode;
use logic::ramdisk::directories::{Directories, TOP};
use logic::ramdisk::entry::{Attribute, Body, Entry, Kind, Segment};
use logic::ramdisk::limits::{NAMED, shown};
use logic::ramdisk::omitted::{Omitted, Reason};
use logic::ramdisk::paths;

use super::archive::{Admitted, ArchiveReader, Names, Refused};
use super::open_directories::OpenDirectories;
use super::transfer_error::{TransferError, at, in_tree, is_of_entry};
use super::walk::{LOST_AND_FOUND, is_of_fsck, is_reserved, join};
use super::{Progress, Watcher};

/// Larger files are written as they are read; smaller ones are passed to other threads in batches.
const LARGE: usize = 256 << 10;
const BATCH_FILES: usize = 64;
const BATCH_BYTES: usize = 512 << 10;
/// Maximum number of directories kept open while hard links are created.
const OPEN: usize = 512;
/// In sparse files, zero blocks become holes: saving may have filled some holes.
const BLOCK: usize = 4096;

/// Result of an extraction.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Extracted {
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// Number of attributes that the file system does not support.
    pub unsupported: u64,
    /// Path and attribute of some of them.
    pub unsupported_names: Vec<String>,
    /// Entries that could not be created.
    pub omitted: Omitted,
}

impl Extracted {
    /// What could not be created, for people and without file names; `None` if there is nothing.
    pub fn lost(&self) -> Option<String> {
        let attributes = match self.unsupported {
            0 => None,
            count => Some(format!("{count} extended attributes that the file system does not support")),
        };
        let omitted = Some(self.omitted.summary()).filter(|_| !self.omitted.is_empty());
        let lost: Vec<String> = omitted.into_iter().chain(attributes).collect();
        (!lost.is_empty()).then(|| lost.join(", "))
    }
}

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
    data: std::ops::Range<usize>,
    segments: Option<Vec<Segment>>,
}

struct Batch {
    jobs: Vec<Job>,
    /// Full size from the start, because zeroing byte by byte is slow.
    data: Vec<u8>,
    used: usize,
    /// Bytes of attributes in this batch.
    attributes: usize,
}

impl Batch {
    fn new() -> Batch {
        // The last file of a batch may exceed the limit.
        Batch { jobs: Vec::new(), data: vec![0; BATCH_BYTES + LARGE], used: 0, attributes: 0 }
    }
}

/// State shared by all threads.
struct Site<'a> {
    calls: &'a Calls,
    /// Owner and group that new files have already; `None` for root, which sets both on every file.
    owns_all: Option<(u32, u32)>,
    failure: Mutex<Option<TransferError>>,
    /// Omitted entries and unsupported attributes; the totals are counted by one thread.
    made: Mutex<Extracted>,
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

/// Extracts the archive below `root`, which must be empty.
pub fn extract<R: Read>(
    calls: &Calls,
    reader: &mut ArchiveReader<R>,
    root: BorrowedFd<'_>,
    options: Options,
    watcher: Watcher<'_>,
) -> Result<Extracted, TransferError> {
    let site = Site { calls, owns_all: calls.identity(), failure: Mutex::new(None), made: Mutex::default() };
    // Nothing else can look in until the tree is complete, and new files inherit neither group nor ACL.
    for name in [&b"system.posix_acl_default"[..], b"system.posix_acl_access"] {
        calls.remove_attribute(root, name).map_err(in_tree(b"", "remove the ACL of"))?;
    }
    calls.set_mode(Subject::Open(root), 0o700).map_err(in_tree(b"", "set the mode of"))?;
    let Extracted { entries, bytes, .. } = std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Batch>(2 * options.threads);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..options.threads {
            let (site, receiver) = (&site, Arc::clone(&receiver));
            scope.spawn(move || work(site, &receiver));
        }
        drop(receiver);
        let mut extractor = Extractor {
            site: &site,
            root,
            options,
            watcher: &mut *watcher,
            sender,
            batch: Batch::new(),
            open_directories: OpenDirectories::new(calls, root),
            names: Names::default(),
            directories: Vec::new(),
            links: Vec::new(),
            result: Extracted::default(),
        };
        extractor.read(reader)?;
        let Extractor { names, directories, links, result, sender, .. } = extractor;
        // Closes the channel, so that the other threads end.
        drop(sender);
        Ok((names.directories, directories, links, result))
    })
    .and_then(|(names, directories, links, result)| {
        site.check()?;
        let Options { doing, total: total_bytes, .. } = options;
        let progress = Progress { doing, done_bytes: result.bytes, total_bytes };
        let mut proceed = || if watcher(progress) { Ok(()) } else { Err(TransferError::Ended) };
        make_links(&site, root, &names, links, &mut proceed)?;
        dress_directories(&site, root, &names, &directories, &mut proceed)?;
        Ok(result)
    })?;
    let made = site.made.into_inner().unwrap_or_else(PoisonError::into_inner);
    let refused = made.omitted.counts.get(&Reason::Refused).copied().unwrap_or(0);
    Ok(Extracted { entries: entries.saturating_sub(refused), bytes, ..made })
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
                if let Err((operation, errno)) = site.dress(Subject::Open(opened.as_fd()), &path, entry) {
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
            if let Err(error) = self.make(&job, &data[job.data.clone()]) {
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

    /// Creates a file. If not everything about it can be set, it is removed again.
    fn file(
        &self,
        directory: BorrowedFd<'_>,
        entry: &Entry,
        fill: impl FnOnce(BorrowedFd<'_>) -> Result<(), Errno>,
    ) -> Result<(), TransferError> {
        let (_, name) = paths::split(&entry.path);
        let path = || entry.path.clone();
        let file = match self.calls.create(directory, name, 0o600) {
            Ok(file) => file,
            Err(errno) => return self.omit(path, "create", errno),
        };
        let filled = fill(file.as_fd()).map_err(|errno| ("write", errno));
        match filled.and_then(|()| self.dress(Subject::Open(file.as_fd()), &path, entry)) {
            Ok(()) => Ok(()),
            Err((operation, errno)) => self.undo(directory, entry, operation, errno),
        }
    }

    /// Removes a file that is incomplete, and records that.
    fn undo(
        &self,
        directory: BorrowedFd<'_>,
        entry: &Entry,
        operation: &'static str,
        errno: Errno,
    ) -> Result<(), TransferError> {
        let (_, name) = paths::split(&entry.path);
        self.omit(|| entry.path.clone(), operation, errno)?;
        self.calls.remove(directory, name, false).map_err(in_tree(b"", "remove"))
    }

    fn make(&self, job: &Job, data: &[u8]) -> Result<(), TransferError> {
        self.file(job.directory.as_fd(), &job.entry, |file| {
            let Some(segments) = &job.segments else { return self.calls.write_all(file, data) };
            let mut rest = data;
            for segment in segments {
                // Lengths never exceed the data: it was read by them.
                let (part, after) =
                    rest.split_at(usize::try_from(segment.length).unwrap_or(0).min(rest.len()));
                self.write_data(file, part, segment.offset)?;
                rest = after;
            }
            self.calls.set_size(file, job.entry.size())
        })
    }

    /// Writes the data, except for zero blocks.
    fn write_data(&self, file: BorrowedFd<'_>, data: &[u8], offset: u64) -> Result<(), Errno> {
        let first = BLOCK - usize::try_from(offset % BLOCK as u64).unwrap_or(0);
        let (mut start, mut at) = (0, 0);
        while at < data.len() {
            let end = data.len().min(if at < first { first } else { at + BLOCK });
            if data[at..end].iter().all(|byte| *byte == 0) {
                self.calls.write_all_at(file, &data[start..at], offset + start as u64)?;
                start = end;
            }
            at = end;
        }
        self.calls.write_all_at(file, &data[start..], offset + start as u64)
    }

    /// Sets owner, mode, attributes and time, in this order: chown(2) clears set-id bits and capabilities.
    fn dress(
        &self,
        subject: Subject<'_>,
        path: &dyn Fn() -> Vec<u8>,
        entry: &Entry,
    ) -> Result<(), (&'static str, Errno)> {
        let Entry { mode, uid, gid, mtime, attributes, body, .. } = entry;
        let failed = |operation: &'static str| move |errno| (operation, errno);
        if self.owns_all != Some((*uid, *gid)) {
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

struct Extractor<'a> {
    site: &'a Site<'a>,
    root: BorrowedFd<'a>,
    options: Options,
    watcher: Watcher<'a>,
    sender: SyncSender<Batch>,
    batch: Batch,
    open_directories: OpenDirectories<'a>,
    names: Names,
    /// Directories to finish, by number. Their paths are in `names`.
    directories: Vec<(usize, Entry)>,
    links: Vec<Link>,
    result: Extracted,
}

impl Extractor<'_> {
    fn read<R: Read>(&mut self, reader: &mut ArchiveReader<R>) -> Result<(), TransferError> {
        while let Some(admitted) = self.names.next(reader)? {
            match admitted {
                Ok(admitted) => {
                    self.place(reader, admitted)?;
                    self.result.entries += 1;
                }
                Err(Refused { path, why }) => {
                    lock(&self.site.made).omitted.add(|| path, Reason::Entry, why);
                }
            }
            let goes_on = (self.watcher)(Progress {
                doing: self.options.doing,
                done_bytes: self.result.bytes,
                total_bytes: self.options.total,
            });
            if !goes_on {
                return Err(TransferError::Ended);
            }
        }
        self.send()
    }

    /// Creates an entry, or queues it for another thread.
    fn place<R: Read>(
        &mut self,
        reader: &mut ArchiveReader<R>,
        admitted: Admitted,
    ) -> Result<(), TransferError> {
        let Admitted { entry, directory: number, segments } = admitted;
        match &entry.body {
            Body::Directory => self.directory(number, entry)?,
            Body::HardLink(target) => {
                if let Ok((target_directory, target)) = self.names.target(target) {
                    let (target, name) = (target.into(), paths::split(&entry.path).1.into());
                    self.links.push(Link { directory: number, name, target_directory, target });
                }
            }
            _ => match self.open_directories.open(&self.names.directories, number) {
                Err(errno) => self.site.omit(|| entry.path, "open the directory of", errno)?,
                Ok(directory) => self.leaf(reader, entry, directory, segments)?,
            },
        }
        Ok(())
    }

    fn directory(&mut self, number: usize, mut entry: Entry) -> Result<(), TransferError> {
        let calls = self.site.calls;
        if number != TOP {
            if entry.path == LOST_AND_FOUND {
                // A new file system has its own, empty one.
                calls.remove(self.root, LOST_AND_FOUND, true).ok();
            }
            let names = &self.names.directories;
            let (above, name) = names.above(number);
            let made = self
                .open_directories
                .open(names, above)
                .and_then(|above| calls.make_directory(above.as_fd(), name, 0o700));
            if let Err(errno) = made {
                return self.site.omit(|| entry.path, "create", errno);
            }
        }
        // Set the attributes now instead of keeping those of all directories in memory; only ACLs have to wait.
        let (late, attributes) =
            std::mem::take(&mut entry.attributes).into_iter().partition(|(name, _)| is_acl(name));
        entry.attributes = late;
        let attributes: Vec<Attribute> = attributes;
        if !attributes.is_empty() {
            let path = || entry.path.clone();
            let opened = self.open_directories.open(&self.names.directories, number);
            let set = opened.map_err(|errno| ("open", errno)).and_then(|opened| {
                self.site.set_attributes(Subject::Open(opened.as_fd()), &path, &attributes)
            });
            if let Err((operation, errno)) = set {
                self.site.omit(path, operation, errno)?;
            }
        }
        entry.path = Vec::new();
        self.directories.push((number, entry));
        Ok(())
    }

    fn leaf<R: Read>(
        &mut self,
        reader: &mut ArchiveReader<R>,
        entry: Entry,
        directory: Arc<OwnedFd>,
        segments: Option<Vec<Segment>>,
    ) -> Result<(), TransferError> {
        let calls = self.site.calls;
        let (_, name) = paths::split(&entry.path);
        let at = directory.as_fd();
        let made = match &entry.body {
            Body::Symlink(target) => calls.make_symlink(at, name, target),
            Body::Fifo => calls.make_node(at, name, Kind::Fifo, (0, 0)),
            Body::Character(major, minor) => calls.make_node(at, name, Kind::Character, (*major, *minor)),
            Body::Block(major, minor) => calls.make_node(at, name, Kind::Block, (*major, *minor)),
            _ => return self.file(reader, entry, directory, segments),
        };
        if let Err(errno) = made {
            return self.site.omit(|| entry.path, "create", errno);
        }
        let path = || entry.path.clone();
        match self.site.dress(Subject::Named(at, name), &path, &entry) {
            Ok(()) => Ok(()),
            Err((operation, errno)) => self.site.undo(at, &entry, operation, errno),
        }
    }

    fn file<R: Read>(
        &mut self,
        reader: &mut ArchiveReader<R>,
        mut entry: Entry,
        directory: Arc<OwnedFd>,
        segments: Option<Vec<Segment>>,
    ) -> Result<(), TransferError> {
        let stored = segments
            .as_ref()
            .map_or(entry.size(), |segments| segments.iter().map(|segment| segment.length).sum());
        self.batch.attributes +=
            entry.attributes.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        if self.options.mode == Mode::Skeleton {
            // Its contents are skipped before the next entry is read.
            entry.body = Body::File(0);
            self.batch.jobs.push(Job { directory, entry, data: 0..0, segments: None });
            return self.send_when_full();
        }
        self.result.bytes = self.result.bytes.saturating_add(entry.size());
        let Some(stored) = usize::try_from(stored).ok().filter(|stored| *stored <= LARGE) else {
            return self.large(reader, &entry, &directory, segments);
        };
        let data = self.batch.used..self.batch.used + stored;
        reader.read_data(&mut self.batch.data[data.clone()])?;
        self.batch.used = data.end;
        self.batch.jobs.push(Job { directory, entry, data, segments });
        self.send_when_full()
    }

    fn large<R: Read>(
        &mut self,
        reader: &mut ArchiveReader<R>,
        entry: &Entry,
        directory: &Arc<OwnedFd>,
        segments: Option<Vec<Segment>>,
    ) -> Result<(), TransferError> {
        let (calls, size, has_holes) = (self.site.calls, entry.size(), segments.is_some());
        let segments = segments.unwrap_or_else(|| vec![Segment { offset: 0, length: size }]);
        // An error of the archive, as opposed to one of the file.
        let mut error = None;
        let mut buffer = vec![0; LARGE];
        self.site.file(directory.as_fd(), entry, |file| {
            for Segment { mut offset, length: mut left } in segments {
                while left > 0 {
                    let most = buffer.len().min(usize::try_from(left).unwrap_or(buffer.len()));
                    if let Err(found) = reader.read_data(&mut buffer[..most]) {
                        error = Some(found);
                        return Ok(());
                    }
                    if has_holes {
                        self.site.write_data(file, &buffer[..most], offset)?;
                    } else {
                        calls.write_all(file, &buffer[..most])?;
                    }
                    left -= most as u64;
                    offset += most as u64;
                }
            }
            if has_holes { calls.set_size(file, size) } else { Ok(()) }
        })?;
        error.map_or(Ok(()), Err)
    }

    fn send_when_full(&mut self) -> Result<(), TransferError> {
        let Batch { jobs, used, attributes, .. } = &self.batch;
        if jobs.len() >= BATCH_FILES || used + attributes >= BATCH_BYTES { self.send() } else { Ok(()) }
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
