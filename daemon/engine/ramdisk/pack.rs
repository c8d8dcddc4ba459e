//! Packs a tree into an archive.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use host::Errno;
use host::linux::ramdisk::{Calls, Subject};
use logic::ramdisk::Mode;
use logic::ramdisk::directories::{TOP, Trail};
use logic::ramdisk::entry::{Attribute, Body, Entry, Kind, Meta, Segment};
use logic::ramdisk::header::{self, END};
use logic::ramdisk::limits::{self, NAMED, shown};
use logic::ramdisk::manifest::Contents;
use logic::ramdisk::omitted::{Omitted, Reason};

use super::open_directories::OpenDirectories;
use super::transfer_error::{TransferError, in_tree, is_general};
use super::walk::{Tree, count, is_gone, join};
use super::{Progress, Watcher};

/// Files up to this size are read completely before anything of them is written, so that one that changed meanwhile can
/// be read again.
const WHOLE: u64 = 16 << 20;
const CHUNK: usize = 1 << 20;
/// Bytes to collect before they are written.
const BATCH: usize = 256 << 10;
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
    /// Entries that were left out.
    pub omitted: Omitted,
    /// Contents of the archive.
    pub contents: Contents,
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
    /// Data to write next, `used` bytes of it. Never shrunk, so that it need not be zeroed again.
    pending: Vec<u8>,
    used: usize,
    /// Time left of [`LEASES`].
    patience: Duration,
    /// Bytes left of [`limits::LONG_PATHS`].
    long_paths: usize,
    /// Whether the present file has more attributes than can be kept.
    bare: bool,
}

/// Why an entry is not written.
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

/// Writes the whole tree to `out`.
pub fn pack(
    calls: &Calls,
    root: BorrowedFd<'_>,
    tree: &Tree,
    mode: Mode,
    out: &mut impl Write,
    doing: &'static str,
    watcher: Watcher<'_>,
) -> Result<Packed, TransferError> {
    let mut packer = Packer {
        calls,
        mode,
        out,
        watcher,
        doing,
        total: tree.contents.bytes,
        done: 0,
        result: Packed {
            omitted: tree.omitted.clone(),
            contents: Contents { biggest: tree.contents.biggest.clone(), ..Contents::default() },
            ..Packed::default()
        },
        pending: vec![0; 2 * BATCH],
        used: 0,
        patience: LEASES,
        long_paths: limits::LONG_PATHS,
        bare: false,
    };
    let mut open_directories = OpenDirectories::new(calls, root);
    let mut trail = Trail::default();
    // Directories that are not saved; nothing below them is saved either.
    let mut without = HashSet::new();
    // Of files with several names: directory, name and length of the path under which each was written. `last` caches the
    // path used last.
    let mut names: HashMap<usize, (usize, &[u8], usize)> = HashMap::new();
    let mut last: Option<(usize, Vec<u8>)> = None;
    for (number, directory) in tree.directories.iter().enumerate() {
        if number != TOP && without.contains(&tree.names.above(number).0) {
            without.insert(number);
            continue;
        }
        let path = trail.path(&tree.names, number);
        let opened = match open_directories.open(&tree.names, number) {
            Err(errno) if number == TOP => return Err(in_tree(b"", "open")(errno)),
            opened => opened.map_err(|errno| if is_gone(errno) { Skip::Gone } else { skip("open")(errno) }),
        };
        let written = opened
            .and_then(|opened| packer.path(path.len()).map(|()| opened))
            .and_then(|opened| packer.directory(&opened, path, &directory.meta).map(|()| opened));
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
            let known = names.get(&first);
            let length = path.len() + known.map_or(0, |(.., length)| *length);
            let written = packer.path(length).and_then(|()| match known {
                Some((above, name, _)) => {
                    let target = match last.take().filter(|(of, _)| *of == first) {
                        Some((_, target)) => target,
                        None => join(&tree.names.path(*above), name),
                    };
                    last = Some((first, target.clone()));
                    packer.entry(&path, &leaf.meta, Vec::new(), Body::HardLink(target)).map(|()| false)
                }
                None => packer.leaf(opened.as_fd(), &path, &leaf.name, &leaf.meta),
            });
            if matches!(written, Ok(true)) && leaf.meta.links > 1 {
                names.insert(first, (number, &leaf.name, path.len()));
            }
            packer.ended(&path, written.map(|_| ()))?;
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
            self.result.changed.push(shown(path));
        }
    }

    /// Takes the bytes of an entry's paths from what is left for long ones.
    fn path(&mut self, length: usize) -> Result<(), Skip> {
        if length > limits::LONG_PATH {
            let left = self.long_paths.checked_sub(length);
            self.long_paths =
                left.ok_or_else(|| Skip::Omit(Reason::Path, "too many long paths".to_owned()))?;
        }
        Ok(())
    }

    /// Reports the end of an entry, and records why it is not in the archive.
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

    /// Writes the collected data if it is at least `least` bytes.
    fn write(&mut self, least: usize) -> Result<(), TransferError> {
        if self.used < least {
            return Ok(());
        }
        self.result.bytes += self.used as u64;
        self.out.write_all(&self.pending[..self.used]).map_err(|error| TransferError::writing(&error))?;
        self.used = 0;
        Ok(())
    }

    /// Space for this many bytes after the collected data.
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

    fn progress(&mut self, bytes: u64) -> Result<(), TransferError> {
        self.done = self.done.saturating_add(bytes);
        let proceed =
            (self.watcher)(Progress { doing: self.doing, done_bytes: self.done, total_bytes: self.total });
        if proceed { Ok(()) } else { Err(TransferError::Ended) }
    }

    /// Adds an entry without contents.
    fn entry(
        &mut self,
        path: &[u8],
        meta: &Meta,
        attributes: Vec<Attribute>,
        body: Body,
    ) -> Result<(), Skip> {
        let is_further = matches!(body, Body::HardLink(_));
        let is_directory = body == Body::Directory;
        self.encode(path, meta, attributes, body)?;
        if is_directory {
            self.result.contents.directories += 1;
        } else {
            count(&mut self.result.contents, meta, is_further, self.mode);
        }
        Ok(self.write(BATCH)?)
    }

    /// Encodes an entry up to its contents. Refused if a reader would decode another entry.
    fn encode(
        &mut self,
        path: &[u8],
        meta: &Meta,
        attributes: Vec<Attribute>,
        body: Body,
    ) -> Result<(), Skip> {
        let (mode, uid, gid, mtime) = (meta.mode, meta.uid, meta.gid, meta.mtime);
        let entry = Entry { path: path.to_vec(), mode, uid, gid, mtime, attributes, body };
        let blocks = header::encode_checked(&entry).map_err(|why| Skip::Omit(Reason::Format, why))?;
        self.add(&blocks);
        Ok(())
    }

    fn attributes(&mut self, subject: Subject<'_>) -> Result<Vec<Attribute>, Skip> {
        let (attributes, complete) = self.calls.attributes(subject).map_err(skip("read attributes of"))?;
        self.bare = !complete;
        Ok(attributes)
    }

    /// If the attributes of a directory cannot be read, it is saved with access for its owner only, because they might
    /// include an ACL.
    fn directory(&mut self, opened: &OwnedFd, path: &[u8], meta: &Meta) -> Result<(), Skip> {
        match self.attributes(Subject::Open(opened.as_fd())) {
            Err(Skip::Omit(reason, detail)) => {
                self.result.omitted.add(|| path.to_vec(), reason, detail);
                self.entry(path, &Meta { mode: meta.mode & 0o700, ..*meta }, Vec::new(), Body::Directory)
            }
            Err(Skip::Gone) => self.entry(path, meta, Vec::new(), Body::Directory),
            attributes => self.entry(path, meta, attributes?, Body::Directory),
        }
    }

    /// Writes the entry with this name; false if it is no longer the file that was seen there.
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
            Kind::File => Body::File(0),
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
        self.entry(path, meta, attributes, body)?;
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
        if meta.size > WHOLE {
            return self.large(file, path, &meta).map(|()| is_it);
        }
        let start = self.used;
        for attempt in 0.. {
            // Discard what was read before.
            self.used = start;
            let read = self.whole(file, path, &meta).and_then(|complete| {
                let later = self.calls.look(file, b"").map_err(skip("look at"))?;
                Ok((complete && meta.is_unchanged(&later), later))
            });
            let (unchanged, later) = match read {
                Ok(read) => read,
                Err(why) => {
                    self.used = start;
                    return Err(why);
                }
            };
            if !unchanged && attempt < RETRIES && later.size <= WHOLE {
                meta = later;
                continue;
            }
            if !unchanged {
                self.changed(path);
            }
            break;
        }
        count(&mut self.result.contents, &meta, false, self.mode);
        self.write(BATCH)?;
        self.done = self.done.saturating_add(meta.size);
        Ok(is_it)
    }

    /// Adds what comes before the data of a file: its header, and the map if it has holes. Returns its segments, and their
    /// length together with that of the map.
    fn head(&mut self, file: BorrowedFd<'_>, path: &[u8], meta: &Meta) -> Result<(Vec<Segment>, u64), Skip> {
        let attributes = self.attributes(Subject::Open(file))?;
        let segments = self.segments(file, meta)?;
        if segments == [Segment { offset: 0, length: meta.size }] {
            self.encode(path, meta, attributes, Body::File(meta.size))?;
            return Ok((segments, meta.size));
        }
        let map = header::map_text(&segments);
        let stored = sum(&segments) + map.len() as u64;
        self.encode(path, meta, attributes, Body::Sparse { size: meta.size, stored })?;
        self.add(&map);
        Ok((segments, stored))
    }

    /// Reads a whole file; false if it is shorter than expected.
    fn whole(&mut self, file: BorrowedFd<'_>, path: &[u8], meta: &Meta) -> Result<bool, Skip> {
        let (segments, stored) = self.head(file, path, meta)?;
        let complete = self.read_whole(file, &segments)?;
        self.pad(stored);
        Ok(complete)
    }

    /// The data segments of a sparse file. If there are too many, those separated by the smallest holes are joined.
    fn segments(&mut self, file: BorrowedFd<'_>, meta: &Meta) -> Result<Vec<Segment>, Skip> {
        if meta.occupied >= meta.size || meta.size == 0 {
            return Ok(vec![Segment { offset: 0, length: meta.size }]);
        }
        let mut segments: Vec<Segment> = Vec::new();
        // Holes smaller than `least` are filled.
        let (mut least, mut at, mut data) = (0, 0, 0_u64);
        while at < meta.size {
            let found = self.calls.next_data(file, at).map_err(skip("look for holes in"))?;
            let Some((start, end)) = found.filter(|(start, _)| *start < meta.size) else { break };
            let end = end.min(meta.size).max(start + 1);
            data += end - start;
            at = end;
            join_segment(&mut segments, Segment { offset: start, length: end - start }, least);
            while segments.len() > limits::SEGMENTS {
                least = (2 * least).max(limits::HOLE);
                for segment in std::mem::take(&mut segments) {
                    join_segment(&mut segments, segment, least);
                }
            }
        }
        if sum(&segments) > data.saturating_mul(2).saturating_add(limits::ADDED_ZEROS) {
            return Err(Skip::Omit(Reason::Holes, String::new()));
        }
        Ok(segments)
    }

    /// Reads all segments. If the file has become shorter, the rest is zeros and the result is false.
    fn read_whole(&mut self, file: BorrowedFd<'_>, segments: &[Segment]) -> Result<bool, Skip> {
        let calls = self.calls;
        let mut complete = true;
        for segment in segments {
            // At most WHOLE.
            let length = usize::try_from(segment.length).unwrap_or(0);
            let data = self.room(length);
            let mut at = 0;
            while at < length {
                let offset = segment.offset + at as u64;
                match calls.read_at(file, &mut data[at..], offset).map_err(skip("read"))? {
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

    /// Writes a file while reading it. Parts that cannot be read any more become zeros.
    fn large(&mut self, file: BorrowedFd<'_>, path: &[u8], meta: &Meta) -> Result<(), Skip> {
        let calls = self.calls;
        let (segments, stored) = self.head(file, path, meta)?;
        count(&mut self.result.contents, meta, false, self.mode);
        let (mut complete, mut damage) = (true, None);
        for segment in &segments {
            let mut offset = segment.offset;
            let mut left = segment.length;
            while left > 0 {
                let most = CHUNK.min(usize::try_from(left).unwrap_or(CHUNK));
                let data = self.room(most);
                let length = match calls.read_at(file, data, offset) {
                    Err(errno) if is_general(errno) => return Err(in_tree(b"", "read")(errno).into()),
                    Ok(length) if length > 0 => length,
                    read => {
                        complete = false;
                        damage = damage.or(read.err());
                        data.fill(0);
                        most
                    }
                };
                self.used += length;
                self.write(BATCH)?;
                self.progress(length as u64)?;
                left -= length as u64;
                offset += length as u64;
            }
        }
        self.pad(stored);
        if let Some(errno) = damage {
            self.result.omitted.add(|| path.to_vec(), Reason::Damaged, errno);
        }
        let is_unchanged = calls.look(file, b"").is_ok_and(|later| meta.is_unchanged(&later));
        if !complete || !is_unchanged {
            self.changed(path);
        }
        Ok(())
    }
}

/// Appends a segment. A hole before it that is smaller than `least` is filled.
fn join_segment(segments: &mut Vec<Segment>, next: Segment, least: u64) {
    match segments.last_mut() {
        Some(last) if next.offset - (last.offset + last.length) < least => {
            last.length = next.offset + next.length - last.offset;
        }
        _ => segments.push(next),
    }
}

fn sum(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| segment.length).sum()
}
