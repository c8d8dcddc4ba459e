//! Reads a tree into a sink.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use host::Errno;
use host::linux::ramdisk::{Calls, Subject};
use logic::ramdisk::Mode;
use logic::ramdisk::directories::{TOP, Trail};
use logic::ramdisk::entry::{Attribute, Kind, Meta};
use logic::ramdisk::limits::{NAMED, shown};
use logic::ramdisk::manifest::Contents;
use logic::ramdisk::omitted::{Omitted, Reason};

use super::format::BLOCK;
use super::format::tree::{Body, Entry};
use super::open_directories::OpenDirectories;
use super::sink::Sink;
use super::transfer_error::{TransferError, in_tree, is_general};
use super::walk::{Directory, PAGE, Tree, count, is_gone, join};
use super::{Progress, Watcher};

/// Files up to this size are read completely before anything of them is kept, so that one that changed meanwhile can
/// be read again.
const WHOLE: u64 = 16 << 20;
/// Bytes of larger files that are read at once.
const CHUNK: usize = 1 << 20;
/// Attributes of a file with more bytes than this are bounded in all, so that those of one user leave room for the others.
const LARGE_ATTRIBUTES: usize = 64 << 10;
const ALL_LARGE_ATTRIBUTES: usize = 32 << 20;
/// How often a file that changes is read again.
const RETRIES: u32 = 2;

/// How long to wait for a program to give up its lease on a file, and in all. A program that handles the kernel's
/// signal does so within milliseconds.
const LEASE: Duration = Duration::from_millis(200);
const LEASES: Duration = Duration::from_secs(2);
/// How often to try in the meantime.
const LOOK: Duration = Duration::from_millis(10);

/// Result of packing a tree.
#[derive(Debug, Default)]
pub struct Packed {
    /// Some of the files that changed or were removed while being read.
    pub changed: Vec<String>,
    /// The number of such files.
    pub changed_count: u64,
    /// Whether something was no longer as the walk had seen it. If not, all is as it was at the end of the walk: each entry was
    /// the same before that, and when it was read.
    pub is_later: bool,
    /// Entries that were left out.
    pub omitted: Omitted,
    /// Totals of what was read.
    pub contents: Contents,
}

struct Packer<'a, S> {
    calls: &'a Calls,
    mode: Mode,
    sink: &'a mut S,
    watcher: Watcher<'a>,
    doing: &'static str,
    total: u64,
    done: u64,
    result: Packed,
    /// The numbers of the directories on the path of the last one.
    way: Vec<usize>,
    /// Number of files with further names so far.
    shared: usize,
    /// Data of a file. Never shrunk, so that it need not be zeroed again.
    data: Vec<u8>,
    /// Time left of [`LEASES`].
    patience: Duration,
    /// Bytes left of [`ALL_LARGE_ATTRIBUTES`].
    attributes_left: usize,
    /// Whether the present file has more attributes than can be kept.
    bare: bool,
}

/// Why an entry is not kept.
enum Skip {
    /// It was removed or replaced.
    Gone,
    /// It cannot be saved.
    Omit(Reason, String),
    /// The whole job fails.
    End(TransferError),
}

impl From<TransferError> for Skip {
    fn from(error: TransferError) -> Skip {
        Skip::End(error)
    }
}

/// Maps an error of an operation on a file.
fn skip(operation: &'static str) -> impl FnOnce(Errno) -> Skip {
    move |errno| match errno {
        Errno::NOENT => Skip::Gone,
        Errno::AGAIN => Skip::Omit(Reason::Lease, String::new()),
        errno if is_general(errno) => Skip::End(in_tree(b"", operation)(errno)),
        errno => Skip::Omit(Reason::Unreadable, errno.to_string()),
    }
}

/// Reads the whole tree into the sink.
pub fn pack(
    calls: &Calls,
    root: BorrowedFd<'_>,
    tree: &Tree,
    mode: Mode,
    sink: &mut impl Sink,
    doing: &'static str,
    watcher: Watcher<'_>,
) -> Result<Packed, TransferError> {
    let mut packer = Packer {
        calls,
        mode,
        sink,
        watcher,
        doing,
        total: tree.contents.bytes,
        done: 0,
        result: Packed {
            omitted: tree.omitted.clone(),
            contents: Contents { biggest: tree.contents.biggest.clone(), ..Contents::default() },
            ..Packed::default()
        },
        way: Vec::new(),
        shared: 0,
        data: vec![0; CHUNK],
        patience: LEASES,
        attributes_left: ALL_LARGE_ATTRIBUTES,
        bare: false,
    };
    let mut open_directories = OpenDirectories::new(calls, root);
    let mut trail = Trail::default();
    // Directories that are not saved; nothing below them is saved either.
    let mut without = HashSet::new();
    // Of files with several names: their number among these.
    let mut names: HashMap<usize, usize> = HashMap::new();
    for (number, directory) in tree.directories.iter().enumerate() {
        let above = tree.names.above(number).0;
        if number != TOP && without.contains(&above) {
            without.insert(number);
            continue;
        }
        let path = trail.path(&tree.names, number);
        let opened = match open_directories.open(&tree.names, number) {
            Err(errno) if number == TOP => return Err(in_tree(b"", "open")(errno)),
            opened => opened.map_err(|errno| if is_gone(errno) { Skip::Gone } else { skip("open")(errno) }),
        };
        let name = tree.names.above(number).1;
        let written = opened.and_then(|opened| {
            packer.directory(&opened, path, name, number, above, directory)?;
            packer.compare(opened.as_fd(), b"", &directory.meta);
            Ok(opened)
        });
        let (opened, ended) = match written {
            Ok(opened) => (Some(opened), Ok(())),
            Err(why) => (None, Err(why)),
        };
        packer.ended(path, ended)?;
        let Some(opened) = opened else {
            without.insert(number);
            continue;
        };
        for at in directory.leaves.clone() {
            let leaf = &tree.leaves[at];
            let path = join(path, &leaf.name);
            let first = leaf.first.unwrap_or(at);
            let before = packer.shared;
            let written = match names.get(&first) {
                Some(number) => {
                    let back = packer.shared - 1 - number;
                    packer.entry(&leaf.name, &leaf.meta, Vec::new(), Body::HardLink(back)).map(|()| false)
                }
                None => packer.leaf(opened.as_fd(), &path, &leaf.name, &leaf.meta),
            };
            if matches!(written, Ok(true)) && packer.shared > before {
                names.insert(first, before);
            }
            packer.ended(&path, written.map(|_| ()))?;
        }
    }
    Ok(packer.result)
}

impl<S: Sink> Packer<'_, S> {
    fn changed(&mut self, path: &[u8]) {
        self.result.changed_count += 1;
        if self.result.changed.len() < NAMED {
            self.result.changed.push(shown(path));
        }
    }

    /// Notes whether an entry is as the walk has seen it.
    fn compare(&mut self, directory: BorrowedFd<'_>, name: &[u8], seen: &Meta) {
        self.result.is_later |= !self.calls.look(directory, name).is_ok_and(|now| seen.is_unchanged(&now));
    }

    /// Reports the end of an entry, and records why it is not kept.
    fn ended(&mut self, path: &[u8], ended: Result<(), Skip>) -> Result<(), TransferError> {
        let bare = std::mem::take(&mut self.bare);
        match ended {
            Ok(()) if bare => self.result.omitted.add(|| path.to_vec(), Reason::Attributes, ""),
            Ok(()) => {}
            Err(Skip::Gone) => self.changed(path),
            Err(Skip::Omit(reason, detail)) => self.result.omitted.add(|| path.to_vec(), reason, detail),
            Err(Skip::End(error)) => return Err(error),
        }
        self.progress(0)
    }

    fn progress(&mut self, bytes: u64) -> Result<(), TransferError> {
        self.done = self.done.saturating_add(bytes);
        let proceed =
            (self.watcher)(Progress { doing: self.doing, done_bytes: self.done, total_bytes: self.total });
        if proceed { Ok(()) } else { Err(TransferError::Ended) }
    }

    /// Adds an entry. A file's contents follow.
    fn add(
        &mut self,
        name: &[u8],
        meta: &Meta,
        attributes: Vec<Attribute>,
        body: Body,
        blocks: u64,
    ) -> Result<(), Skip> {
        let is_shared = meta.links > 1 && !matches!(body, Body::Directory(_) | Body::HardLink(_));
        let (mode, uid, gid, mtime) = (meta.mode, meta.uid, meta.gid, meta.mtime);
        let entry = Entry { name: name.to_vec(), mode, uid, gid, mtime, attributes, is_shared, body };
        if !self.sink.add(entry, blocks)? {
            return Err(Skip::Omit(Reason::Format, "the tree is too large".to_owned()));
        }
        self.shared += usize::from(is_shared);
        Ok(())
    }

    /// Adds an entry without contents.
    fn entry(
        &mut self,
        name: &[u8],
        meta: &Meta,
        attributes: Vec<Attribute>,
        body: Body,
    ) -> Result<(), Skip> {
        let is_further = matches!(body, Body::HardLink(_));
        let is_directory = matches!(body, Body::Directory(_));
        let is_file = matches!(body, Body::File { .. });
        self.add(name, meta, attributes, body, 0)?;
        if is_file {
            self.sink.close()?;
        }
        if is_directory {
            self.result.contents.directories += 1;
        } else {
            count(&mut self.result.contents, meta, is_further, self.mode);
        }
        Ok(())
    }

    fn attributes(&mut self, subject: Subject<'_>) -> Result<Vec<Attribute>, Skip> {
        let (mut attributes, complete) =
            self.calls.attributes(subject).map_err(skip("read attributes of"))?;
        self.bare = !complete;
        let bytes: usize = attributes.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > LARGE_ATTRIBUTES {
            match self.attributes_left.checked_sub(bytes) {
                Some(left) => self.attributes_left = left,
                None => {
                    self.bare = true;
                    attributes.retain(|(name, _)| !name.starts_with(b"user."));
                }
            }
        }
        Ok(attributes)
    }

    /// If the attributes of a directory cannot be read, it is saved with access for its owner only, because they might
    /// include an ACL.
    fn directory(
        &mut self,
        opened: &OwnedFd,
        path: &[u8],
        name: &[u8],
        number: usize,
        above: usize,
        Directory { meta, .. }: &Directory,
    ) -> Result<(), Skip> {
        let stays = self.way.iter().position(|on_way| *on_way == above).map_or(0, |at| at + 1);
        let body = Body::Directory(self.way.len() - stays);
        match self.attributes(Subject::Open(opened.as_fd())) {
            Err(Skip::Omit(reason, detail)) => {
                self.result.omitted.add(|| path.to_vec(), reason, detail);
                self.entry(name, &Meta { mode: meta.mode & 0o700, ..*meta }, Vec::new(), body)
            }
            Err(Skip::Gone) => self.entry(name, meta, Vec::new(), body),
            attributes => self.entry(name, meta, attributes?, body),
        }?;
        self.way.truncate(stays);
        self.way.push(number);
        Ok(())
    }

    /// Keeps the entry with this name; false if it is no longer the file that was seen there.
    fn leaf(
        &mut self,
        directory: BorrowedFd<'_>,
        path: &[u8],
        name: &[u8],
        meta: &Meta,
    ) -> Result<bool, Skip> {
        if meta.kind == Kind::File && self.mode == Mode::Snapshot {
            return self.file(directory, path, name, meta);
        }
        let body = match meta.kind {
            Kind::File => Body::File { size: 0, has_holes: false },
            Kind::Fifo => Body::Fifo,
            Kind::Character => Body::Character(meta.special.0, meta.special.1),
            Kind::Block => Body::Block(meta.special.0, meta.special.1),
            Kind::Symlink => match self.calls.read_link(directory, name) {
                Err(Errno::INVAL) => return Err(Skip::Gone),
                read => Body::Symlink(read.map_err(skip("read"))?),
            },
            Kind::Directory | Kind::Socket | Kind::Unknown => return Ok(false),
        };
        let attributes = self.attributes(Subject::Named(directory, name))?;
        self.entry(name, meta, attributes, body)?;
        self.compare(directory, name, meta);
        Ok(true)
    }

    /// Opens a file. If a program holds a lease on it, the kernel asks that program to give it up; wait for that.
    fn open(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &[u8],
    ) -> Result<Result<OwnedFd, Errno>, TransferError> {
        let mut waited = Duration::ZERO;
        loop {
            match self.calls.open_file(directory, name) {
                Err(Errno::AGAIN) if waited < LEASE && !self.patience.is_zero() => {
                    std::thread::sleep(LOOK);
                    waited += LOOK;
                    self.patience = self.patience.saturating_sub(LOOK);
                    self.progress(0)?;
                }
                opened => return Ok(opened),
            }
        }
    }

    fn file(
        &mut self,
        directory: BorrowedFd<'_>,
        path: &[u8],
        name: &[u8],
        seen: &Meta,
    ) -> Result<bool, Skip> {
        let file = match self.open(directory, name)? {
            Err(Errno(libc::ELOOP | libc::ENXIO)) => return Err(Skip::Gone),
            opened => opened.map_err(skip("open"))?,
        };
        let file = file.as_fd();
        let mut meta = self.calls.look(file, b"").map_err(skip("look at"))?;
        if meta.kind != Kind::File {
            return Err(Skip::Gone);
        }
        let is_it = (meta.device, meta.inode) == (seen.device, seen.inode);
        self.result.is_later |= !is_it;
        if meta.size > WHOLE {
            return self.large(file, path, name, &meta, seen).map(|()| is_it);
        }
        for attempt in 0.. {
            let attributes = self.attributes(Subject::Open(file))?;
            let (parts, complete) = self.whole(file, &meta)?;
            let later = self.calls.look(file, b"").map_err(skip("look at"))?;
            let unchanged = complete && meta.is_unchanged(&later);
            if !unchanged && attempt < RETRIES && later.size <= WHOLE {
                meta = later;
                continue;
            }
            let body = Body::File { size: meta.size, has_holes: has_holes(&meta) };
            self.add(name, &meta, attributes, body, most_blocks(&meta))?;
            for part in parts {
                match part {
                    Part::Hole(blocks) => self.sink.hole(blocks)?,
                    Part::Data(range) => self.sink.data(&self.data[range])?,
                }
            }
            self.sink.close()?;
            if !unchanged {
                self.changed(path);
            }
            self.result.is_later |= !seen.is_unchanged(&later);
            break;
        }
        count(&mut self.result.contents, &meta, false, self.mode);
        self.done = self.done.saturating_add(meta.size);
        Ok(is_it)
    }

    /// The next range of data in a file from `at` on, in whole blocks; `None` if only a hole is left.
    fn next_data(&self, file: BorrowedFd<'_>, meta: &Meta, at: u64) -> Result<Option<(u64, u64)>, Skip> {
        if at >= meta.size {
            return Ok(None);
        }
        if !has_holes(meta) {
            return Ok(Some((at, meta.size)));
        }
        let found = self.calls.next_data(file, at).map_err(skip("look for holes in"))?;
        let Some((start, end)) = found.filter(|(start, _)| *start < meta.size) else { return Ok(None) };
        let block = BLOCK as u64;
        let start = (start / block * block).max(at);
        let end = end.max(start + 1).div_ceil(block).saturating_mul(block).min(meta.size);
        Ok(Some((start, end)))
    }

    /// Reads a whole file into `data`. If it has become shorter, the rest is zeros and the result is false.
    fn whole(&mut self, file: BorrowedFd<'_>, meta: &Meta) -> Result<(Vec<Part>, bool), Skip> {
        let calls = self.calls;
        let mut parts = Vec::new();
        let (mut at, mut used, mut complete) = (0, 0, true);
        while let Some((start, end)) = self.next_data(file, meta, at)? {
            if start > at {
                parts.push(Part::Hole((start - at).div_ceil(BLOCK as u64)));
            }
            // At most WHOLE.
            let length = usize::try_from(end - start).unwrap_or(0);
            if self.data.len() < used + length {
                self.data.resize((used + length).next_power_of_two(), 0);
            }
            let data = &mut self.data[used..used + length];
            let mut read = 0;
            while read < length {
                match calls.read_at(file, &mut data[read..], start + read as u64).map_err(skip("read"))? {
                    0 => {
                        complete = false;
                        data[read..].fill(0);
                        break;
                    }
                    length => read += length,
                }
            }
            parts.push(Part::Data(used..used + length));
            used += length;
            at = end;
        }
        if at < meta.size {
            parts.push(Part::Hole((meta.size - at).div_ceil(BLOCK as u64)));
        }
        Ok((parts, complete))
    }

    /// Keeps a file while reading it. Parts that cannot be read any more become zeros.
    fn large(
        &mut self,
        file: BorrowedFd<'_>,
        path: &[u8],
        name: &[u8],
        meta: &Meta,
        seen: &Meta,
    ) -> Result<(), Skip> {
        let calls = self.calls;
        let attributes = self.attributes(Subject::Open(file))?;
        let mut next = self.next_data(file, meta, 0)?;
        let body = Body::File { size: meta.size, has_holes: has_holes(meta) };
        self.add(name, meta, attributes, body, most_blocks(meta))?;
        count(&mut self.result.contents, meta, false, self.mode);
        let (mut complete, mut damage, mut at) = (true, None, 0);
        while let Some((start, end)) = next {
            if start > at {
                self.sink.hole((start - at).div_ceil(BLOCK as u64))?;
            }
            at = start;
            while at < end {
                let length = CHUNK.min(usize::try_from(end - at).unwrap_or(CHUNK));
                let mut read = 0;
                while read < length {
                    match calls.read_at(file, &mut self.data[read..length], at + read as u64) {
                        Err(errno) if is_general(errno) => return Err(in_tree(b"", "read")(errno).into()),
                        Ok(count) if count > 0 => read += count,
                        failed => {
                            complete = false;
                            damage = damage.or(failed.err());
                            self.data[read..length].fill(0);
                            break;
                        }
                    }
                }
                self.sink.data(&self.data[..length])?;
                self.progress(length as u64)?;
                at += length as u64;
            }
            next = match self.next_data(file, meta, at) {
                Err(Skip::End(error)) => return Err(error.into()),
                // What cannot be looked at is read as zeros.
                Err(_) => {
                    (complete, damage) = (false, damage.or(Some(Errno::IO)));
                    None
                }
                Ok(next) => next,
            };
        }
        if at < meta.size {
            self.sink.hole((meta.size - at).div_ceil(BLOCK as u64))?;
        }
        self.sink.close()?;
        if let Some(errno) = damage {
            self.result.omitted.add(|| path.to_vec(), Reason::Damaged, errno);
        }
        let is_unchanged = calls.look(file, b"").is_ok_and(|later| meta.is_unchanged(&later));
        if !complete || !is_unchanged {
            self.changed(path);
        }
        self.result.is_later |= !seen.is_unchanged(meta);
        Ok(())
    }
}

/// A part of a file.
enum Part {
    /// A hole of this many blocks.
    Hole(u64),
    /// A range of [`Packer::data`].
    Data(std::ops::Range<usize>),
}

fn has_holes(meta: &Meta) -> bool {
    meta.occupied < meta.size
}

/// Blocks that the contents of a file need at most: each of its pages may be in one of its own.
fn most_blocks(meta: &Meta) -> u64 {
    let blocks = meta.size.div_ceil(BLOCK as u64);
    if has_holes(meta) { blocks.min(meta.occupied / PAGE + 1) } else { blocks }
}
