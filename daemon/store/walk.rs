//! Walks a tree: every name with what statx(2) tells about it, before any contents are read.

use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use host::Errno;
use host::linux::ramdisk::{BTRFS, Calls, SUBVOLUME_ROOT, Subject, TMPFS};
use logic::ramdisk::Mode;
use logic::ramdisk::directories::{Directories, TOP};
use logic::ramdisk::entry::{Kind, Meta, Time};
use logic::ramdisk::fingerprint::Fingerprint;
use logic::ramdisk::limits::{self, NAMED, shown};
use logic::ramdisk::manifest::{BIGGEST, Contents, Sized};
use logic::ramdisk::omitted::{Omitted, Reason};

use super::open_directories::OpenDirectories;
use super::transfer_error::{TransferError, in_tree, is_general};

/// Name of the snapshot that a save creates on the RAM disk, on file systems that support snapshots.
pub const SNAPSHOT: &str = ".zramd-snapshot";

pub const PAGE: u64 = 4096;
const EXT: u64 = 0xef53;
/// The directory where fsck puts recovered files.
pub const LOST_AND_FOUND: &[u8] = b"lost+found";

/// A directory; its name is in [`Tree::names`].
#[derive(Debug)]
pub struct Directory {
    pub meta: Meta,
    /// Its entries other than directories.
    pub leaves: Range<usize>,
}

/// An entry that is not a directory.
#[derive(Debug)]
pub struct Leaf {
    pub name: Vec<u8>,
    pub meta: Meta,
    /// The index of the first leaf that is the same file (a hard link).
    pub first: Option<usize>,
}

#[derive(Debug, Default)]
pub struct Tree {
    /// Paths of the directories, by number.
    pub names: Directories,
    /// All directories by number.
    pub directories: Vec<Directory>,
    /// Everything else, in the order of the directories.
    pub leaves: Vec<Leaf>,
    /// Totals.
    pub contents: Contents,
    /// Number of sockets and of foreign mounts in the tree.
    pub skipped: u64,
    /// Paths of some of those mounts.
    pub mounts: Vec<String>,
    /// Entries that cannot be saved.
    pub omitted: Omitted,
    /// Whether it has subvolumes of btrfs, which are file systems of their own within the same mount.
    pub has_subvolumes: bool,
    /// A digest of the metadata; `None` if the latest changes are too recent to rely on it, or hidden: see [`hides_changes`].
    pub fingerprint: Option<String>,
    /// The digest in any case.
    pub seen: String,
}

/// Whether a directory was removed or replaced, or another file system was mounted on it.
pub fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno(libc::ENOTDIR | libc::ELOOP | libc::EXDEV))
}

/// The path of a name in a directory.
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

/// Bytes that a file occupies with pages of 4 KiB.
fn occupied(meta: &Meta) -> u64 {
    meta.size.min(meta.occupied).div_ceil(PAGE).saturating_mul(PAGE)
}

/// Whether a name in the root directory belongs to the file system instead of the user: an empty `lost+found` on ext4,
/// or the snapshot of an interrupted save.
pub fn is_reserved(calls: &Calls, root: BorrowedFd<'_>, magic: u64, name: &[u8]) -> Result<bool, Errno> {
    if magic == BTRFS && name == SNAPSHOT.as_bytes() {
        return Ok(calls.look(root, name)?.inode == SUBVOLUME_ROOT);
    }
    if !is_of_fsck(magic, name) {
        return Ok(false);
    }
    match calls.open_below(root, name) {
        Err(errno) if is_gone(errno) => Ok(false),
        opened => Ok(calls.list(opened?.as_fd())?.is_empty()),
    }
}

/// Whether this is the path of `lost+found` on ext4, empty or not.
pub fn is_of_fsck(magic: u64, path: &[u8]) -> bool {
    magic == EXT && path == LOST_AND_FOUND
}

/// Called for each name and for each directory; returns whether to continue.
pub type Each<'a> = &'a mut dyn FnMut() -> bool;

/// Whether contents on this file system may change without a visible change of metadata: see [`Fingerprint`].
pub fn hides_changes(magic: u64, mode: Mode) -> bool {
    magic == TMPFS && mode == Mode::Snapshot
}

/// Walks the tree below `root`, without crossing mounts.
pub fn walk(calls: &Calls, root: BorrowedFd<'_>, mode: Mode, each: Each<'_>) -> Result<Tree, TransferError> {
    walk_since(calls, root, mode, calls.file_clock(), each)
}

/// As [`walk`], after syncing the file system: from then on, the next write through a mapping updates the time of the
/// file.
pub fn walk_settled(
    calls: &Calls,
    root: BorrowedFd<'_>,
    mode: Mode,
    each: Each<'_>,
) -> Result<Tree, TransferError> {
    let clock = calls.file_clock();
    let settled = calls.sync_file_system(root);
    let mut tree = walk_since(calls, root, mode, clock, each)?;
    if settled.is_err() {
        tree.fingerprint = None;
    }
    Ok(tree)
}

/// As [`walk`]; changes after this time of [`Calls::file_clock`] are too recent to rely on the fingerprint.
pub fn walk_since(
    calls: &Calls,
    root: BorrowedFd<'_>,
    mode: Mode,
    (began, tick): (Time, Time),
    each: Each<'_>,
) -> Result<Tree, TransferError> {
    let magic = calls.file_system(root).map_err(in_tree(b"", "look at the file system of"))?.magic;
    let top = calls.look(root, b"").map_err(in_tree(b"", "look at"))?;
    let mut walk = Walk {
        calls,
        root,
        mode,
        magic,
        top,
        tree: Tree::default(),
        fingerprint: Fingerprint::default(),
        links: HashMap::new(),
        biggest: Vec::new(),
        below: Vec::new(),
        each,
    };
    walk.top()?;
    let mut open_directories = OpenDirectories::new(calls, root);
    let mut pending = vec![Pending { above: TOP, name: Vec::new(), meta: top, length: 0 }];
    while let Some(next) = pending.pop() {
        walk.directory(&mut open_directories, next)?;
        pending.extend(walk.below.drain(..).rev());
    }
    Ok(walk.finish((began, tick)))
}

/// A directory still to be listed.
struct Pending {
    above: usize,
    name: Vec<u8>,
    meta: Meta,
    /// Length of its path.
    length: usize,
}

/// State of a walk.
struct Walk<'a> {
    calls: &'a Calls,
    root: BorrowedFd<'a>,
    mode: Mode,
    magic: u64,
    top: Meta,
    tree: Tree,
    fingerprint: Fingerprint,
    /// The first name of each file that has several.
    links: HashMap<((u32, u32), u64), usize>,
    /// The biggest files: bytes, directory, leaf.
    biggest: Vec<(u64, usize, usize)>,
    /// Subdirectories of the present directory.
    below: Vec<Pending>,
    each: Each<'a>,
}

const UNKNOWN: Time = Time { seconds: 0, nanoseconds: 0 };

impl Walk<'_> {
    /// Whether a file is saved without its contents, which may change.
    fn is_bare(&self, meta: &Meta) -> bool {
        self.mode == Mode::Skeleton && meta.kind == Kind::File
    }

    fn is_other_mount(&self, meta: &Meta) -> bool {
        let top = &self.top;
        if top.mount == 0 { meta.device != top.device } else { meta.mount != top.mount }
    }

    /// Adds the root directory.
    fn top(&mut self) -> Result<(), TransferError> {
        // Creating a snapshot changes these times; other changes in the root show in names and attributes.
        let fixed = Meta { mtime: UNKNOWN, ctime: UNKNOWN, size: 0, links: 0, inode: 0, ..self.top };
        self.fingerprint.add(TOP, b"", &fixed);
        self.attributes(Subject::Open(self.root)).map_err(in_tree(b"", "read attributes of"))
    }

    /// Adds attributes to the fingerprint. Unreadable ones are reported when the tree is packed.
    fn attributes(&mut self, subject: Subject<'_>) -> Result<(), Errno> {
        let attributes = match self.calls.attributes(subject) {
            Err(errno) if !is_general(errno) => return Ok(()),
            read => read?.0,
        };
        for (name, value) in &attributes {
            self.fingerprint.add_attribute(name, value);
        }
        Ok(())
    }

    fn proceed(&mut self) -> Result<(), TransferError> {
        if (self.each)() { Ok(()) } else { Err(TransferError::Ended) }
    }

    fn path(&self, directory: usize, name: &[u8]) -> Vec<u8> {
        join(&self.tree.names.path(directory), name)
    }

    /// Records an unreadable entry. An error that would affect all others, too, is returned.
    fn unreadable(
        &mut self,
        directory: usize,
        name: &[u8],
        operation: &'static str,
        errno: Errno,
    ) -> Result<(), TransferError> {
        if is_general(errno) {
            return Err(in_tree(b"", operation)(errno));
        }
        let names = &self.tree.names;
        self.tree.omitted.add(|| join(&names.path(directory), name), Reason::Unreadable, errno);
        Ok(())
    }

    /// Lists a directory, which may be gone by now.
    fn directory(
        &mut self,
        open_directories: &mut OpenDirectories<'_>,
        found: Pending,
    ) -> Result<(), TransferError> {
        self.proceed()?;
        let Pending { above, name, meta, length } = found;
        let is_top = name.is_empty();
        let number = if is_top { TOP } else { self.tree.names.add(above, &name) };
        let opened = open_directories.open(&self.tree.names, number);
        let listed = opened.and_then(|opened| Ok((self.calls.list(opened.as_fd())?, opened)));
        let (names, opened) = match listed {
            Err(errno) if is_top => return Err(in_tree(b"", "list")(errno)),
            Err(errno) => {
                // Its number goes to the next directory.
                self.tree.names.remove_last();
                open_directories.forget(number);
                return if is_gone(errno) { Ok(()) } else { self.unreadable(above, &name, "list", errno) };
            }
            Ok(listed) => listed,
        };
        if !is_top {
            self.fingerprint.add(above, &name, &meta);
        }
        let first_leaf = self.tree.leaves.len();
        for name in names {
            self.proceed()?;
            if is_top && self.is_reserved(&name)? {
                continue;
            }
            let length = if is_top { name.len() } else { length + 1 + name.len() };
            match self.calls.look(opened.as_fd(), &name) {
                Err(Errno::NOENT) => {}
                Err(errno) => self.unreadable(number, &name, "look at", errno)?,
                Ok(meta) => self.seen(opened.as_fd(), Pending { above: number, name, meta, length })?,
            }
        }
        self.tree.contents.directories += 1;
        self.tree.directories.push(Directory { meta, leaves: first_leaf..self.tree.leaves.len() });
        Ok(())
    }

    fn is_reserved(&self, name: &[u8]) -> Result<bool, TransferError> {
        match is_reserved(self.calls, self.root, self.magic, name) {
            Err(errno) if is_general(errno) => Err(in_tree(name, "look at")(errno)),
            // An error is reported when the entry itself is examined.
            found => Ok(found.unwrap_or(false)),
        }
    }

    /// Handles a name found in a directory.
    fn seen(&mut self, directory: BorrowedFd<'_>, found: Pending) -> Result<(), TransferError> {
        let Pending { above, name, meta, length } = &found;
        let (above, meta) = (*above, *meta);
        let is_mount = self.is_other_mount(&meta);
        if is_mount && self.tree.mounts.len() < NAMED {
            self.tree.mounts.push(shown(&self.path(above, name)));
        }
        if is_mount || matches!(meta.kind, Kind::Socket | Kind::Unknown) {
            self.tree.skipped += 1;
            return Ok(());
        }
        if *length > limits::PATH {
            let names = &self.tree.names;
            self.tree.omitted.add(|| join(&names.path(above), name), Reason::Path, "");
            return Ok(());
        }
        if meta.is_locked {
            let names = &self.tree.names;
            self.tree.omitted.add(|| join(&names.path(above), name), Reason::Flags, "");
        }
        self.tree.has_subvolumes |= meta.device != self.top.device;
        if meta.kind == Kind::Directory {
            self.below.push(found);
            return Ok(());
        }
        if self.is_bare(&meta) {
            let fixed = Meta { mtime: UNKNOWN, ctime: UNKNOWN, size: 0, inode: 0, ..meta };
            self.fingerprint.add(above, name, &fixed);
            let read = self.attributes(Subject::Named(directory, name));
            read.map_err(in_tree(b"", "read attributes of"))?;
        } else {
            self.fingerprint.add(above, name, &meta);
        }
        let leaf = self.tree.leaves.len();
        let first = if meta.links > 1 {
            let known = *self.links.entry((meta.device, meta.inode)).or_insert(leaf);
            (known != leaf).then_some(known)
        } else {
            None
        };
        if let Some(bytes) = count(&mut self.tree.contents, &meta, first.is_some(), self.mode) {
            let biggest = &mut self.biggest;
            if biggest.len() < BIGGEST || biggest.last().is_some_and(|least| least.0 < bytes) {
                let place = biggest.partition_point(|other| other.0 >= bytes);
                biggest.insert(place, (bytes, above, leaf));
                biggest.truncate(BIGGEST);
            }
        }
        self.tree.leaves.push(Leaf { name: found.name, meta, first });
        Ok(())
    }

    fn finish(self, (began, tick): (Time, Time)) -> Tree {
        let Walk { mut tree, fingerprint, biggest, magic, mode, .. } = self;
        let sized = |(bytes, directory, leaf): (u64, usize, usize)| {
            let path = join(&tree.names.path(directory), &tree.leaves[leaf].name);
            Sized { path: shown(&path), bytes }
        };
        tree.contents.biggest = biggest.into_iter().map(sized).collect();
        tree.seen = fingerprint.text();
        tree.fingerprint = fingerprint.finish(began, tick).filter(|_| !hides_changes(magic, mode));
        tree
    }
}

/// Counts an entry that is not a directory, and the bytes that its contents need, if these are kept.
pub fn count(contents: &mut Contents, meta: &Meta, is_further: bool, mode: Mode) -> Option<u64> {
    if is_further {
        contents.hard_links += 1;
        return None;
    }
    if meta.kind != Kind::File {
        contents.others += 1;
        return None;
    }
    contents.files += 1;
    if mode == Mode::Skeleton {
        return None;
    }
    let bytes = occupied(meta);
    contents.bytes = contents.bytes.saturating_add(meta.size);
    contents.occupied_bytes = contents.occupied_bytes.saturating_add(bytes);
    Some(bytes)
}
