//! What is in a tree: every name with what statx(2) says of it, before anything is read.

use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use crate::host::Errno;
use crate::host::linux::disk::{BTRFS, Calls, SUBVOLUME_ROOT, Subject, TMPFS};
use crate::logic::disk::Mode;
use crate::logic::disk::entry::{Attribute, Kind, Meta, Time};
use crate::logic::disk::fingerprint::Fingerprint;
use crate::logic::disk::manifest::{BIGGEST, Contents, Sized};

use super::trouble::{Trouble, in_tree};

/// The name under which a snapshot of the disk appears for a moment where the file system can make one.
pub const SNAPSHOT: &str = ".zramd-snapshot";

/// So many threads look at directories at most, and each at no fewer than this.
const THREADS: usize = 4;
const FEW: usize = 16;
const PAGE: u64 = 4096;
const EXT: u64 = 0xef53;
/// The folder in which fsck leaves what it finds.
pub const LOST_AND_FOUND: &[u8] = b"lost+found";
/// How many mounts are named.
const NAMED: usize = 10;

/// A directory.
#[derive(Debug)]
pub struct Directory {
    /// Path below the root.
    pub path: Vec<u8>,
    /// What it is.
    pub meta: Meta,
    /// What it has besides directories.
    pub leaves: Range<usize>,
}

/// What is no directory.
#[derive(Debug)]
pub struct Leaf {
    /// Its name.
    pub name: Vec<u8>,
    /// What it is.
    pub meta: Meta,
    /// The index of the leaf that is the same file under an earlier name.
    pub first: Option<usize>,
}

/// A tree.
#[derive(Debug, Default)]
pub struct Tree {
    /// All directories, each after the one it is in.
    pub directories: Vec<Directory>,
    /// Everything else, in the order of the directories.
    pub leaves: Vec<Leaf>,
    /// The sums.
    pub contents: Contents,
    /// Sockets, and mounts in the tree that are not ours.
    pub skipped: u64,
    /// Where some of those mounts are.
    pub mounts: Vec<String>,
    /// Whether parts of it are file systems of their own within the same mount (subvolumes of btrfs).
    pub has_subvolumes: bool,
    /// Whether contents may have changed although nothing that was seen has: see [`Fingerprint`].
    pub hides_changes: bool,
    /// A digest of what was seen; nothing when what was seen is too young to rely on.
    pub fingerprint: Option<String>,
    /// The digest in any case.
    pub seen: String,
}

/// Whether a directory that was seen is not there any more, or something else, or below another mount.
pub fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno(libc::ENOTDIR | libc::ELOOP | libc::EXDEV))
}

/// A name in a directory, as a path.
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

/// Bytes that a file of this size needs where pages have 4 KiB.
fn occupied(meta: &Meta) -> u64 {
    let whole = meta.size.div_ceil(PAGE).saturating_mul(PAGE);
    // Below that it is not holes that save room but ways to store small files.
    if meta.size > 16 * PAGE { whole.min(meta.occupied.div_ceil(PAGE).saturating_mul(PAGE)) } else { whole }
}

/// Whether a name at the top of a disk belongs to its file system, and not to its users: the folder of fsck on ext4 as long as
/// there is nothing in it, and the snapshot of a save that was interrupted.
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

/// Whether this is the path of the folder in which fsck leaves what it finds; it stays, whatever is in it.
pub fn is_of_fsck(magic: u64, path: &[u8]) -> bool {
    magic == EXT && path == LOST_AND_FOUND
}

/// A name in a directory, and what statx(2) says of it.
struct Seen {
    name: Vec<u8>,
    meta: Meta,
    /// Of a file of which nothing else is kept.
    attributes: Vec<Attribute>,
}

/// What every look at a directory needs.
struct Walk<'a> {
    calls: &'a Calls,
    root: BorrowedFd<'a>,
    mode: Mode,
    magic: u64,
    top: Meta,
}

impl Walk<'_> {
    /// Whether a file is kept without its contents, which may change.
    fn is_bare(&self, meta: &Meta) -> bool {
        self.mode == Mode::Skeleton && meta.kind == Kind::File
    }

    fn is_other_mount(&self, meta: &Meta) -> bool {
        let top = &self.top;
        if top.mount == 0 { meta.device != top.device } else { meta.mount != top.mount }
    }

    /// All that is in a directory, sorted by name; nothing when the directory is gone.
    fn look(&self, path: &[u8]) -> Result<Option<Vec<Seen>>, Trouble> {
        let calls = self.calls;
        let directory = match calls.open_below(self.root, path) {
            Err(errno) if is_gone(errno) && !path.is_empty() => return Ok(None),
            opened => opened.map_err(in_tree(path, "open"))?,
        };
        let names = calls.list(directory.as_fd()).map_err(in_tree(path, "list"))?;
        let mut seen = Vec::with_capacity(names.len());
        for name in names {
            let reserved = path.is_empty()
                && match is_reserved(calls, self.root, self.magic, &name) {
                    Err(Errno::NOENT) => continue,
                    found => found.map_err(in_tree(&name, "look at"))?,
                };
            if reserved {
                continue;
            }
            let meta = match calls.look(directory.as_fd(), &name) {
                Err(Errno::NOENT) => continue,
                looked => looked.map_err(in_tree(&join(path, &name), "look at"))?,
            };
            let mut attributes = Vec::new();
            if self.is_bare(&meta) && !self.is_other_mount(&meta) {
                attributes = match calls.attributes(Subject::Named(directory.as_fd(), &name)) {
                    Err(Errno::NOENT) => continue,
                    read => read.map_err(in_tree(&join(path, &name), "read attributes of"))?,
                };
            }
            seen.push(Seen { name, meta, attributes });
        }
        Ok(Some(seen))
    }

    /// Looks at several directories, with several threads when that is worth it.
    fn look_at_all(&self, paths: &[Vec<u8>]) -> Result<Vec<Option<Vec<Seen>>>, Trouble> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = cpus.min(THREADS).min(paths.len() / FEW);
        if threads < 2 {
            return paths.iter().map(|path| self.look(path)).collect();
        }
        let share = paths.len().div_ceil(threads);
        std::thread::scope(|scope| {
            let looking: Vec<_> = paths
                .chunks(share)
                .map(|paths| scope.spawn(|| paths.iter().map(|path| self.look(path)).collect::<Vec<_>>()))
                .collect();
            let looked = looking.into_iter().flat_map(|looking| {
                looking.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
            });
            looked.collect()
        })
    }

    /// Looks at the whole tree, one level after the other.
    fn look_everywhere(&self) -> Result<HashMap<Vec<u8>, Vec<Seen>>, Trouble> {
        let mut found = HashMap::new();
        let mut level = vec![Vec::new()];
        while !level.is_empty() {
            let looked = self.look_at_all(&level)?;
            let mut below = Vec::new();
            for (path, seen) in level.into_iter().zip(looked) {
                let Some(seen) = seen else { continue };
                let is_below =
                    |seen: &&Seen| seen.meta.kind == Kind::Directory && !self.is_other_mount(&seen.meta);
                below.extend(seen.iter().filter(is_below).map(|seen| join(&path, &seen.name)));
                found.insert(path, seen);
            }
            level = below;
        }
        Ok(found)
    }
}

/// Walks through the tree below `root`, which stays in its mount.
pub fn walk(calls: &Calls, root: BorrowedFd<'_>, mode: Mode) -> Result<Tree, Trouble> {
    walk_since(calls, root, mode, calls.file_clock())
}

/// The same after everything is on its disk: from then on the next write through a mapping carries a new time.
pub fn walk_settled(calls: &Calls, root: BorrowedFd<'_>, mode: Mode) -> Result<Tree, Trouble> {
    let clock = calls.file_clock();
    let settled = calls.sync_file_system(root);
    let mut tree = walk_since(calls, root, mode, clock)?;
    if settled.is_err() {
        tree.fingerprint = None;
    }
    Ok(tree)
}

/// The same; what has changed after this time of [`Calls::file_clock`] is too young to rely on.
pub fn walk_since(
    calls: &Calls,
    root: BorrowedFd<'_>,
    mode: Mode,
    (began, tick): (Time, Time),
) -> Result<Tree, Trouble> {
    let magic = calls.file_system(root).map_err(in_tree(b"", "look at the file system of"))?.magic;
    let top = calls.look(root, b"").map_err(in_tree(b"", "look at"))?;
    let walk = Walk { calls, root, mode, magic, top };
    let hides_changes = magic == TMPFS && mode == Mode::Snapshot;
    let mut tree = Tree { hides_changes, ..Tree::default() };
    let mut fingerprint = Fingerprint::default();
    // Making a snapshot changes these times; what else changes here is seen by its names and attributes.
    let zero = Time::default();
    let fixed = Meta { mtime: zero, ctime: zero, size: 0, links: 0, inode: 0, ..top };
    fingerprint.add(b"", b"", &fixed);
    let attributes = calls.attributes(Subject::Open(root)).map_err(in_tree(b"", "read attributes of"))?;
    for (name, value) in &attributes {
        fingerprint.add(name, value, &fixed);
    }
    let mut everything = walk.look_everywhere()?;
    let mut links: HashMap<((u32, u32), u64), usize> = HashMap::new();
    let mut pending = vec![(Vec::new(), top)];
    while let Some((path, meta)) = pending.pop() {
        // It may be gone by now.
        let Some(seen) = everything.remove(&path) else { continue };
        if !path.is_empty() {
            fingerprint.add(&path, b"", &meta);
        }
        let first_leaf = tree.leaves.len();
        let mut below = Vec::new();
        for Seen { name, meta, attributes } in seen {
            let is_mount = walk.is_other_mount(&meta);
            if is_mount && tree.mounts.len() < NAMED {
                tree.mounts.push(String::from_utf8_lossy(&join(&path, &name)).into_owned());
            }
            if is_mount || matches!(meta.kind, Kind::Socket | Kind::Unknown) {
                tree.skipped += 1;
                continue;
            }
            tree.has_subvolumes |= meta.device != top.device;
            if meta.kind == Kind::Directory {
                below.push((join(&path, &name), meta));
                continue;
            }
            if walk.is_bare(&meta) {
                fingerprint.add(&path, &name, &Meta { mtime: zero, ctime: zero, size: 0, inode: 0, ..meta });
                for (name, value) in &attributes {
                    fingerprint.add(name, value, &fixed);
                }
            } else {
                fingerprint.add(&path, &name, &meta);
            }
            let leaf = tree.leaves.len();
            let first = if meta.links > 1 {
                let known = *links.entry((meta.device, meta.inode)).or_insert(leaf);
                (known != leaf).then_some(known)
            } else {
                None
            };
            count(&mut tree.contents, &path, &name, &meta, first.is_some(), mode);
            tree.leaves.push(Leaf { name, meta, first });
        }
        tree.contents.directories += 1;
        tree.directories.push(Directory { path, meta, leaves: first_leaf..tree.leaves.len() });
        pending.extend(below.into_iter().rev());
    }
    tree.seen = fingerprint.text();
    tree.fingerprint = fingerprint.finish(began, tick);
    Ok(tree)
}

fn count(contents: &mut Contents, path: &[u8], name: &[u8], meta: &Meta, is_further: bool, mode: Mode) {
    if is_further {
        contents.hard_links += 1;
        return;
    }
    if meta.kind != Kind::File {
        contents.others += 1;
        return;
    }
    contents.files += 1;
    if mode == Mode::Skeleton {
        return;
    }
    contents.bytes += meta.size;
    let bytes = occupied(meta);
    contents.occupied_bytes += bytes;
    let biggest = &mut contents.biggest;
    if biggest.len() < BIGGEST || biggest.last().is_some_and(|least| least.bytes < bytes) {
        let place = biggest.partition_point(|other| other.bytes >= bytes);
        let path = String::from_utf8_lossy(&join(path, name)).into_owned();
        biggest.insert(place, Sized { path, bytes });
        biggest.truncate(BIGGEST);
    }
}
