//! An archive becomes a tree. Nothing is made outside of it, whatever the archive says: directories are opened only below the
//! root and never through links, everything else is made anew in such a directory under a single name.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::host::Errno;
use crate::host::linux::disk::{Calls, Subject};
use crate::logic::disk::Mode;
use crate::logic::disk::entry::{Body, Entry, Kind, Segment};
use crate::logic::disk::paths;

use super::archive::{ArchiveReader, directory_target, no_folder, no_target, twice};
use super::trouble::{Trouble, in_tree};
use super::walk::{LOST_AND_FOUND, is_of_fsck, is_reserved, join};
use super::{Progress, Watcher};

/// Files above this are written while they are read; smaller ones are handed to other threads in batches.
const LARGE: usize = 256 << 10;
const BATCH_FILES: usize = 64;
const BATCH_BYTES: usize = 512 << 10;
/// So many directories above the present one are kept open.
const OPEN: usize = 32;
/// How many things are named in a report.
const NAMED: usize = 10;

/// What was made.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Extracted {
    /// Entries.
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// Attributes that the file system of the disk does not take: how many, and some of them.
    pub unsupported: u64,
    /// Path and attribute each.
    pub unsupported_names: Vec<String>,
}

/// How it is done.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// With or without the contents of files.
    pub mode: Mode,
    /// Threads that make files besides this one; with none it does so itself.
    pub threads: usize,
    /// What the watcher is told.
    pub doing: &'static str,
    /// Bytes of all files, for the watcher.
    pub total: u64,
}

/// A small file that is to be made.
struct Job {
    directory: Arc<OwnedFd>,
    entry: Entry,
    data: std::ops::Range<usize>,
    segments: Option<Vec<Segment>>,
}

struct Batch {
    jobs: Vec<Job>,
    /// As large as it gets from the beginning, since clearing bytes one by one takes long.
    data: Vec<u8>,
    used: usize,
}

impl Batch {
    fn new() -> Batch {
        // One file may be beyond the limit.
        Batch { jobs: Vec::new(), data: vec![0; BATCH_BYTES + LARGE], used: 0 }
    }
}

/// What all threads share.
struct Site<'a> {
    calls: &'a Calls,
    /// Whether owners are always set: only those with privileges can give files away.
    owns_all: Option<(u32, u32)>,
    failure: Mutex<Option<Trouble>>,
    unsupported: Mutex<(u64, Vec<String>)>,
}

/// Makes what is in the archive below `root`, which has to be empty.
pub fn extract<R: Read>(
    calls: &Calls,
    reader: &mut ArchiveReader<R>,
    root: BorrowedFd<'_>,
    options: Options,
    watcher: Watcher<'_>,
) -> Result<Extracted, Trouble> {
    let site =
        Site { calls, owns_all: calls.identity(), failure: Mutex::new(None), unsupported: Mutex::default() };
    // Until everything is there nobody else looks in, and new files inherit neither group nor ACL.
    for name in [&b"system.posix_acl_default"[..], b"system.posix_acl_access"] {
        calls.remove_attribute(root, name).map_err(in_tree(b"", "remove the ACL of"))?;
    }
    calls.set_mode(Subject::Open(root), 0o700).map_err(in_tree(b"", "set the mode of"))?;
    let mut extracted = std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Batch>(2 * options.threads.max(1));
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
            watcher,
            sender,
            batch: Batch::new(),
            open: Vec::new(),
            directories: Vec::new(),
            links: Vec::new(),
            result: Extracted::default(),
        };
        extractor.read(reader)?;
        let Extractor { directories, links, result, sender, .. } = extractor;
        // The others end when nothing more can come.
        drop(sender);
        Ok((directories, links, result))
    })
    .and_then(|(directories, links, result)| {
        site.check()?;
        finish(&site, root, &directories, &links)?;
        Ok(result)
    })?;
    let (count, names) = site.unsupported.into_inner().unwrap_or_else(PoisonError::into_inner);
    (extracted.unsupported, extracted.unsupported_names) = (count, names);
    Ok(extracted)
}

fn work(site: &Site<'_>, receiver: &Mutex<Receiver<Batch>>) {
    loop {
        let batch = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(batch) = batch else { return };
        site.make_all(batch);
    }
}

/// What has to wait until all files are there: further names, then directories from the bottom to the top, whose times the
/// files would have changed.
fn finish(
    site: &Site<'_>,
    root: BorrowedFd<'_>,
    directories: &[Entry],
    links: &[(Vec<u8>, Vec<u8>)],
) -> Result<(), Trouble> {
    for (path, target) in links {
        let (folder, name) = paths::split(path);
        let (target_folder, target_name) = paths::split(target);
        let opened = site.calls.open_below(root, folder).map_err(in_tree(path, "create"))?;
        let missing = |errno: Errno| match errno {
            Errno::NOENT | Errno(libc::ENOTDIR | libc::ELOOP | libc::EXDEV) => no_target(target),
            other => in_tree(path, "create")(other),
        };
        let from = site.calls.open_below(root, target_folder).map_err(missing)?;
        site.calls.link(from.as_fd(), target_name, opened.as_fd(), name).map_err(|errno| match errno {
            Errno::EXIST => twice(path),
            Errno::PERM => directory_target(target),
            other => missing(other),
        })?;
    }
    for entry in directories.iter().rev() {
        let opened = site.calls.open_below(root, &entry.path).map_err(in_tree(&entry.path, "open"))?;
        site.dress(Subject::Open(opened.as_fd()), entry)?;
    }
    Ok(())
}

impl Site<'_> {
    /// What went wrong in another thread.
    fn check(&self) -> Result<(), Trouble> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone().map_or(Ok(()), Err)
    }

    fn make_all(&self, batch: Batch) {
        let Batch { jobs, data, .. } = batch;
        if self.check().is_err() {
            return;
        }
        for job in jobs {
            if let Err(trouble) = self.make(&job, &data[job.data.clone()]) {
                self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(trouble);
                return;
            }
        }
    }

    fn create(&self, directory: BorrowedFd<'_>, entry: &Entry) -> Result<OwnedFd, Trouble> {
        let (_, name) = paths::split(&entry.path);
        self.calls.create(directory, name, 0o600).map_err(|errno| match errno {
            Errno::EXIST => twice(&entry.path),
            other => in_tree(&entry.path, "create")(other),
        })
    }

    fn make(&self, job: &Job, data: &[u8]) -> Result<(), Trouble> {
        let file = self.create(job.directory.as_fd(), &job.entry)?;
        let wrong = || in_tree(&job.entry.path, "write");
        match (&job.entry.body, &job.segments) {
            (Body::Sparse { size, .. }, Some(segments)) => {
                let mut rest = data;
                for segment in segments {
                    // No longer than the data, which is how it was read.
                    let (part, after) =
                        rest.split_at(usize::try_from(segment.length).unwrap_or(0).min(rest.len()));
                    self.calls.write_all_at(file.as_fd(), part, segment.offset).map_err(wrong())?;
                    rest = after;
                }
                self.calls.set_size(file.as_fd(), *size).map_err(wrong())?;
            }
            _ => self.calls.write_all(file.as_fd(), data).map_err(wrong())?,
        }
        self.dress(Subject::Open(file.as_fd()), &job.entry)
    }

    /// Owner, mode, attributes, time: in this order, since a new owner clears set-id bits and capabilities.
    fn dress(&self, subject: Subject<'_>, entry: &Entry) -> Result<(), Trouble> {
        let Entry { path, mode, uid, gid, mtime, attributes, body } = entry;
        if self.owns_all != Some((*uid, *gid)) {
            self.calls.set_owner(subject, *uid, *gid).map_err(in_tree(path, "set the owner of"))?;
        }
        if !matches!(body, Body::Symlink(_)) {
            self.calls.set_mode(subject, *mode).map_err(in_tree(path, "set the mode of"))?;
        }
        for (name, value) in attributes {
            match self.calls.set_attribute(subject, name, value) {
                Err(Errno(libc::EOPNOTSUPP | libc::EPERM | libc::EINVAL)) => {
                    let mut unsupported = self.unsupported.lock().unwrap_or_else(PoisonError::into_inner);
                    unsupported.0 += 1;
                    if unsupported.1.len() < NAMED {
                        let text =
                            format!("{}: {}", String::from_utf8_lossy(path), String::from_utf8_lossy(name));
                        unsupported.1.push(text);
                    }
                }
                set => set.map_err(in_tree(path, "set an attribute of"))?,
            }
        }
        self.calls.set_time(subject, *mtime).map_err(in_tree(path, "set the time of"))
    }
}

struct Extractor<'a> {
    site: &'a Site<'a>,
    root: BorrowedFd<'a>,
    options: Options,
    watcher: Watcher<'a>,
    sender: SyncSender<Batch>,
    batch: Batch,
    /// The present directory and some above it.
    open: Vec<(Vec<u8>, Arc<OwnedFd>)>,
    directories: Vec<Entry>,
    links: Vec<(Vec<u8>, Vec<u8>)>,
    result: Extracted,
}

impl Extractor<'_> {
    fn read<R: Read>(&mut self, reader: &mut ArchiveReader<R>) -> Result<(), Trouble> {
        while let Some(entry) = reader.next_entry()? {
            self.result.entries += 1;
            self.place(reader, entry)?;
            let goes_on = (self.watcher)(Progress {
                doing: self.options.doing,
                done_bytes: self.result.bytes,
                total_bytes: self.options.total,
            });
            if !goes_on {
                return Err(Trouble::Ended);
            }
        }
        self.send()
    }

    fn place<R: Read>(&mut self, reader: &mut ArchiveReader<R>, mut entry: Entry) -> Result<(), Trouble> {
        let calls = self.site.calls;
        if entry.path.is_empty() {
            self.directories.push(entry);
            return Ok(());
        }
        if let Body::HardLink(target) = &mut entry.body {
            self.links.push((entry.path, std::mem::take(target)));
            return Ok(());
        }
        if entry.path == LOST_AND_FOUND {
            // A new file system has one of its own, which is empty.
            calls.remove(self.root, LOST_AND_FOUND, true).ok();
        }
        let (folder, name) = paths::split(&entry.path);
        let directory = self.directory(folder)?;
        let failed = |errno: Errno| match errno {
            Errno::EXIST => twice(&entry.path),
            other => in_tree(&entry.path, "create")(other),
        };
        let subject = Subject::Named(directory.as_fd(), name);
        match &entry.body {
            Body::Directory => {
                calls.make_directory(directory.as_fd(), name, 0o700).map_err(failed)?;
                self.directories.push(entry);
                return Ok(());
            }
            Body::File(_) | Body::Sparse { .. } => return self.file(reader, entry, directory),
            Body::Symlink(target) => calls.make_symlink(directory.as_fd(), name, target).map_err(failed)?,
            Body::Fifo => calls.make_node(directory.as_fd(), name, Kind::Fifo, (0, 0)).map_err(failed)?,
            Body::Character(major, minor) => {
                calls
                    .make_node(directory.as_fd(), name, Kind::Character, (*major, *minor))
                    .map_err(failed)?;
            }
            Body::Block(major, minor) => {
                calls.make_node(directory.as_fd(), name, Kind::Block, (*major, *minor)).map_err(failed)?;
            }
            Body::HardLink(_) => return Ok(()),
        }
        self.site.dress(subject, &entry)
    }

    /// Opens a directory, which an entry before this one has to have made.
    fn directory(&mut self, path: &[u8]) -> Result<Arc<OwnedFd>, Trouble> {
        let is_above = |above: &[u8]| {
            above.is_empty()
                || path.strip_prefix(above).is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b'/'))
        };
        while self.open.last().is_some_and(|(above, _)| !is_above(above)) {
            self.open.pop();
        }
        let (from, rest) = match self.open.last() {
            Some((above, opened)) if above == path => return Ok(Arc::clone(opened)),
            Some((above, opened)) if !above.is_empty() => (opened.as_fd(), &path[above.len() + 1..]),
            Some((_, opened)) => (opened.as_fd(), path),
            None => (self.root, path),
        };
        let opened = self.site.calls.open_below(from, rest).map_err(|errno| match errno {
            Errno::NOENT | Errno(libc::ENOTDIR | libc::ELOOP | libc::EXDEV) => no_folder(path),
            other => in_tree(path, "open")(other),
        })?;
        let opened = Arc::new(opened);
        if self.open.len() < OPEN {
            self.open.push((path.to_vec(), Arc::clone(&opened)));
        }
        Ok(opened)
    }

    fn file<R: Read>(
        &mut self,
        reader: &mut ArchiveReader<R>,
        mut entry: Entry,
        directory: Arc<OwnedFd>,
    ) -> Result<(), Trouble> {
        let segments = match entry.body {
            Body::Sparse { size, .. } => Some((reader.read_map(size)?, size)),
            _ => None,
        };
        let size = segments.as_ref().map_or(entry.stored(), |(_, size)| *size);
        let stored: u64 =
            segments.as_ref().map_or(size, |(list, _)| list.iter().map(|segment| segment.length).sum());
        if self.options.mode == Mode::Skeleton {
            // What is left is skipped with the next entry.
            entry.body = Body::File(0);
            self.batch.jobs.push(Job { directory, entry, data: 0..0, segments: None });
            return if self.batch.jobs.len() >= BATCH_FILES { self.send() } else { Ok(()) };
        }
        self.result.bytes = self.result.bytes.saturating_add(size);
        let Some(stored) = usize::try_from(stored).ok().filter(|stored| *stored <= LARGE) else {
            return self.large(reader, &entry, &directory, segments);
        };
        let data = self.batch.used..self.batch.used + stored;
        reader.read_data(&mut self.batch.data[data.clone()])?;
        self.batch.used = data.end;
        self.batch.jobs.push(Job { directory, entry, data, segments: segments.map(|(list, _)| list) });
        if self.batch.jobs.len() >= BATCH_FILES || self.batch.used >= BATCH_BYTES {
            self.send()
        } else {
            Ok(())
        }
    }

    fn large<R: Read>(
        &mut self,
        reader: &mut ArchiveReader<R>,
        entry: &Entry,
        directory: &Arc<OwnedFd>,
        segments: Option<(Vec<Segment>, u64)>,
    ) -> Result<(), Trouble> {
        let calls = self.site.calls;
        let file = self.site.create(directory.as_fd(), entry)?;
        let wrong = || in_tree(&entry.path, "write");
        let (segments, size) = match segments {
            Some((segments, size)) => (segments, Some(size)),
            None => (vec![Segment { offset: 0, length: entry.stored() }], None),
        };
        let mut buffer = vec![0; LARGE];
        for segment in segments {
            let mut offset = segment.offset;
            let mut left = segment.length;
            while left > 0 {
                let most = buffer.len().min(usize::try_from(left).unwrap_or(buffer.len()));
                reader.read_data(&mut buffer[..most])?;
                calls.write_all_at(file.as_fd(), &buffer[..most], offset).map_err(wrong())?;
                left -= most as u64;
                offset += most as u64;
            }
        }
        if let Some(size) = size {
            calls.set_size(file.as_fd(), size).map_err(wrong())?;
        }
        self.site.dress(Subject::Open(file.as_fd()), entry)
    }

    /// Hands on what has been collected.
    fn send(&mut self) -> Result<(), Trouble> {
        self.site.check()?;
        let batch = std::mem::replace(&mut self.batch, Batch::new());
        if self.options.threads == 0 {
            self.site.make_all(batch);
            return self.site.check();
        }
        // They are there until we are done.
        self.sender.send(batch).ok();
        Ok(())
    }
}

/// Whether there is nothing below `root`.
pub fn is_empty(calls: &Calls, root: BorrowedFd<'_>) -> Result<bool, Trouble> {
    let magic = calls.file_system(root).map_err(in_tree(b"", "look at the file system of"))?.magic;
    for name in calls.list(root).map_err(in_tree(b"", "list"))? {
        if !is_reserved(calls, root, magic, &name).map_err(in_tree(&name, "look at"))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes everything below `root`.
pub fn wipe(calls: &Calls, root: BorrowedFd<'_>) -> Result<(), Trouble> {
    let magic = calls.file_system(root).map_err(in_tree(b"", "look at the file system of"))?.magic;
    let mut pending = vec![(Vec::new(), false)];
    while let Some((path, listed)) = pending.pop() {
        if listed && is_of_fsck(magic, &path) {
            continue;
        }
        if listed {
            let (folder, name) = paths::split(&path);
            let opened = calls.open_below(root, folder).map_err(in_tree(folder, "open"))?;
            calls.remove(opened.as_fd(), name, true).map_err(in_tree(&path, "remove"))?;
            continue;
        }
        let directory = calls.open_below(root, &path).map_err(in_tree(&path, "open"))?;
        if !path.is_empty() {
            pending.push((path.clone(), true));
        }
        for name in calls.list(directory.as_fd()).map_err(in_tree(&path, "list"))? {
            let below = join(&path, &name);
            if path.is_empty()
                && is_reserved(calls, root, magic, &name).map_err(in_tree(&below, "look at"))?
            {
                continue;
            }
            let meta = calls.look(directory.as_fd(), &name).map_err(in_tree(&below, "look at"))?;
            if meta.kind == Kind::Directory {
                pending.push((below, false));
            } else {
                calls.remove(directory.as_fd(), &name, false).map_err(in_tree(&below, "remove"))?;
            }
        }
    }
    Ok(())
}
