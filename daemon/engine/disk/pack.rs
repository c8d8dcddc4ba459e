//! A tree becomes an archive.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};

use crate::host::Errno;
use crate::host::linux::disk::{Calls, Subject};
use crate::logic::disk::Mode;
use crate::logic::disk::entry::{Attribute, Body, Entry, Kind, Meta, Segment};
use crate::logic::disk::header::{self, END, MAX_SEGMENTS};
use crate::logic::disk::paths;

use super::trouble::{Trouble, in_tree};
use super::walk::{Tree, is_gone, join};
use super::{Progress, Watcher};

/// Files up to this size are read as a whole before anything of them is written: a file that changed meanwhile is read again.
const WHOLE: u64 = 16 << 20;
const CHUNK: usize = 1 << 20;
/// So much is collected before it is written.
const BATCH: usize = 256 << 10;
/// How often a file that changes is read again.
const RETRIES: u32 = 2;
/// How many of the changed files are named.
const NAMED: usize = 10;

/// What became of a tree.
#[derive(Debug, Default)]
pub struct Packed {
    /// Some of the files that changed or went away while they were read.
    pub changed: Vec<String>,
    /// How many did.
    pub changed_count: u64,
    /// Bytes of the archive before compression.
    pub bytes: u64,
}

struct Packer<'a, W> {
    calls: &'a Calls,
    mode: Mode,
    out: &'a mut W,
    watcher: Watcher<'a>,
    doing: &'static str,
    total: u64,
    done: u64,
    result: Packed,
    header: Vec<u8>,
    /// What is to be written next is at its beginning. It only grows, so that nothing is cleared again and again.
    pending: Vec<u8>,
    used: usize,
}

/// Writes the whole tree to `out`.
pub fn pack(
    calls: &Calls,
    root: BorrowedFd<'_>,
    tree: &Tree,
    mode: Mode,
    out: &mut impl Write,
    doing: &'static str,
    watcher: Watcher<'_>,
) -> Result<Packed, Trouble> {
    let mut packer = Packer {
        calls,
        mode,
        out,
        watcher,
        doing,
        total: tree.contents.bytes,
        done: 0,
        result: Packed::default(),
        header: Vec::new(),
        pending: vec![0; 2 * BATCH],
        used: 0,
    };
    // Directories that are gone; what was below them is not saved, wherever it is now.
    let mut gone = HashSet::new();
    // Of files with several names the one under which each was written.
    let mut names: HashMap<usize, Vec<u8>> = HashMap::new();
    for directory in &tree.directories {
        if gone.contains(paths::split(&directory.path).0) {
            gone.insert(directory.path.as_slice());
            continue;
        }
        let opened = match calls.open_below(root, &directory.path) {
            Err(errno) if is_gone(errno) && !directory.path.is_empty() => {
                packer.changed(&directory.path);
                gone.insert(directory.path.as_slice());
                continue;
            }
            opened => opened.map_err(in_tree(&directory.path, "open"))?,
        };
        let attributes = packer.attributes(Subject::Open(opened.as_fd()), &directory.path)?;
        packer.entry(
            directory.path.clone(),
            &directory.meta,
            attributes.unwrap_or_default(),
            Body::Directory,
        )?;
        for number in directory.leaves.clone() {
            let leaf = &tree.leaves[number];
            let path = join(&directory.path, &leaf.name);
            let first = leaf.first.unwrap_or(number);
            if let Some(target) = names.get(&first) {
                packer.entry(path, &leaf.meta, Vec::new(), Body::HardLink(target.clone()))?;
            } else if packer.leaf(opened.as_fd(), &path, &leaf.name, &leaf.meta)? && leaf.meta.links > 1 {
                names.insert(first, path);
            }
        }
    }
    packer.add(&END);
    packer.write(0)?;
    Ok(packer.result)
}

impl<W: Write> Packer<'_, W> {
    fn changed(&mut self, path: &[u8]) {
        self.result.changed_count += 1;
        if self.result.changed.len() < NAMED {
            self.result.changed.push(String::from_utf8_lossy(path).into_owned());
        }
    }

    /// Writes what has been collected, if it is at least so much.
    fn write(&mut self, least: usize) -> Result<(), Trouble> {
        if self.used < least {
            return Ok(());
        }
        self.result.bytes += self.used as u64;
        self.out.write_all(&self.pending[..self.used]).map_err(|error| Trouble::writing(&error))?;
        self.used = 0;
        Ok(())
    }

    /// Room for this many bytes behind what has been collected.
    fn room(&mut self, length: usize) -> &mut [u8] {
        let end = self.used + length;
        if self.pending.len() < end {
            self.pending.resize(end.next_power_of_two(), 0);
        }
        &mut self.pending[self.used..end]
    }

    fn add(&mut self, data: &[u8]) {
        self.room(data.len()).copy_from_slice(data);
        self.used += data.len();
    }

    fn pad(&mut self, length: u64) {
        self.add(&END[..header::padding(length)]);
    }

    fn progress(&mut self, bytes: u64) -> Result<(), Trouble> {
        self.done = self.done.saturating_add(bytes);
        let goes_on =
            (self.watcher)(Progress { doing: self.doing, done_bytes: self.done, total_bytes: self.total });
        if goes_on { Ok(()) } else { Err(Trouble::Ended) }
    }

    fn entry(
        &mut self,
        path: Vec<u8>,
        meta: &Meta,
        attributes: Vec<Attribute>,
        body: Body,
    ) -> Result<(), Trouble> {
        self.encode(path, meta, attributes, body);
        self.write(BATCH)
    }

    fn encode(&mut self, path: Vec<u8>, meta: &Meta, attributes: Vec<Attribute>, body: Body) {
        let (mode, uid, gid, mtime) = (meta.mode, meta.uid, meta.gid, meta.mtime);
        let mut header = std::mem::take(&mut self.header);
        header.clear();
        header::encode(&Entry { path, mode, uid, gid, mtime, attributes, body }, &mut header);
        self.add(&header);
        self.header = header;
    }

    /// Nothing when it is gone.
    fn attributes(&mut self, subject: Subject<'_>, path: &[u8]) -> Result<Option<Vec<Attribute>>, Trouble> {
        match self.calls.attributes(subject) {
            Err(Errno::NOENT) => Ok(None),
            read => read.map(Some).map_err(in_tree(path, "read attributes of")),
        }
    }

    /// Writes what has this name. Whether that was what had been seen there: not if it is gone, or another file by now.
    fn leaf(
        &mut self,
        directory: BorrowedFd<'_>,
        path: &[u8],
        name: &[u8],
        meta: &Meta,
    ) -> Result<bool, Trouble> {
        if meta.kind == Kind::File && self.mode == Mode::Snapshot {
            return self.file(directory, path, name, meta);
        }
        let body = match meta.kind {
            Kind::File => Body::File(0),
            Kind::Fifo => Body::Fifo,
            Kind::Character => Body::Character(meta.special.0, meta.special.1),
            Kind::Block => Body::Block(meta.special.0, meta.special.1),
            Kind::Symlink => match self.calls.read_link(directory, name) {
                Err(Errno::NOENT | Errno::INVAL) => {
                    self.changed(path);
                    return Ok(false);
                }
                read => Body::Symlink(read.map_err(in_tree(path, "read"))?),
            },
            Kind::Directory | Kind::Socket | Kind::Unknown => return Ok(false),
        };
        let Some(attributes) = self.attributes(Subject::Named(directory, name), path)? else {
            self.changed(path);
            return Ok(false);
        };
        self.entry(path.to_vec(), meta, attributes, body)?;
        Ok(true)
    }

    fn file(
        &mut self,
        directory: BorrowedFd<'_>,
        path: &[u8],
        name: &[u8],
        seen: &Meta,
    ) -> Result<bool, Trouble> {
        let file = match self.calls.open_file(directory, name) {
            Err(Errno::NOENT | Errno(libc::ELOOP | libc::ENXIO)) => {
                self.changed(path);
                return Ok(false);
            }
            opened => opened.map_err(in_tree(path, "open"))?,
        };
        let file = file.as_fd();
        let mut meta = self.calls.look(file, b"").map_err(in_tree(path, "look at"))?;
        if meta.kind != Kind::File {
            self.changed(path);
            return Ok(false);
        }
        let is_it = (meta.device, meta.inode) == (seen.device, seen.inode);
        let mut attempt = 0;
        loop {
            let start = self.used;
            let attributes = self.attributes(Subject::Open(file), path)?.unwrap_or_default();
            let segments = self.segments(file, path, &meta)?;
            if meta.size > WHOLE {
                return self.large(file, path, &meta, attributes, &segments).map(|()| is_it);
            }
            let map = body_map(&segments, meta.size);
            let length = sum(&segments);
            let stored = length + map.as_ref().map_or(0, |map| map.len() as u64);
            let body = body(meta.size, stored, map.is_some());
            self.encode(path.to_vec(), &meta, attributes, body);
            self.add(&map.unwrap_or_default());
            let complete = self.read_whole(file, path, &segments)?;
            let later = self.calls.look(file, b"").map_err(in_tree(path, "look at"))?;
            let unchanged = complete && meta.is_unchanged(&later);
            if !unchanged && attempt < RETRIES {
                // As if it had not been read.
                self.used = start;
                (attempt, meta) = (attempt + 1, later);
                continue;
            }
            if !unchanged {
                self.changed(path);
            }
            self.pad(stored);
            self.write(BATCH)?;
            return self.progress(meta.size).map(|()| is_it);
        }
    }

    /// The parts of a file that are no holes.
    fn segments(&mut self, file: BorrowedFd<'_>, path: &[u8], meta: &Meta) -> Result<Vec<Segment>, Trouble> {
        let whole = vec![Segment { offset: 0, length: meta.size }];
        if meta.occupied >= meta.size || meta.size == 0 {
            return Ok(whole);
        }
        let mut segments = Vec::new();
        let mut at = 0;
        while at < meta.size {
            let found = self.calls.next_data(file, at).map_err(in_tree(path, "look for holes in"))?;
            let Some((start, end)) = found.filter(|(start, _)| *start < meta.size) else { break };
            let end = end.min(meta.size).max(start + 1);
            segments.push(Segment { offset: start, length: end - start });
            at = end;
            if segments.len() > MAX_SEGMENTS {
                return Ok(whole);
            }
        }
        Ok(segments)
    }

    /// Collects all segments; what has gone from the end of the file becomes zeros. Whether nothing has.
    fn read_whole(
        &mut self,
        file: BorrowedFd<'_>,
        path: &[u8],
        segments: &[Segment],
    ) -> Result<bool, Trouble> {
        let calls = self.calls;
        let mut complete = true;
        for segment in segments {
            // At most WHOLE.
            let length = usize::try_from(segment.length).unwrap_or(0);
            let data = self.room(length);
            let mut at = 0;
            while at < length {
                let offset = segment.offset + at as u64;
                match calls.read_at(file, &mut data[at..], offset).map_err(in_tree(path, "read"))? {
                    0 => {
                        complete = false;
                        data[at..].fill(0);
                        break;
                    }
                    length => at += length,
                }
            }
            self.used += length;
        }
        Ok(complete)
    }

    fn large(
        &mut self,
        file: BorrowedFd<'_>,
        path: &[u8],
        meta: &Meta,
        attributes: Vec<Attribute>,
        segments: &[Segment],
    ) -> Result<(), Trouble> {
        let calls = self.calls;
        let map = body_map(segments, meta.size);
        let stored = sum(segments) + map.as_ref().map_or(0, |map| map.len() as u64);
        self.entry(path.to_vec(), meta, attributes, body(meta.size, stored, map.is_some()))?;
        self.add(&map.unwrap_or_default());
        let mut complete = true;
        for segment in segments {
            let mut offset = segment.offset;
            let mut left = segment.length;
            while left > 0 {
                let most = CHUNK.min(usize::try_from(left).unwrap_or(CHUNK));
                let data = self.room(most);
                let mut length = calls.read_at(file, data, offset).map_err(in_tree(path, "read"))?;
                if length == 0 {
                    complete = false;
                    data.fill(0);
                    length = most;
                }
                self.used += length;
                self.write(BATCH)?;
                self.progress(length as u64)?;
                left -= length as u64;
                offset += length as u64;
            }
        }
        self.pad(stored);
        let later = self.calls.look(file, b"").map_err(in_tree(path, "look at"))?;
        if !complete || !meta.is_unchanged(&later) {
            self.changed(path);
        }
        Ok(())
    }
}

fn sum(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| segment.length).sum()
}

/// The map of a file, if it has holes.
fn body_map(segments: &[Segment], size: u64) -> Option<Vec<u8>> {
    let is_whole = segments == [Segment { offset: 0, length: size }];
    (!is_whole).then(|| header::map_text(segments))
}

fn body(size: u64, stored: u64, has_holes: bool) -> Body {
    if has_holes { Body::Sparse { size, stored } } else { Body::File(size) }
}
