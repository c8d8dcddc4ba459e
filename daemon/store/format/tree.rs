//! The tree of a generation: names and metadata in the order of a walk, and which contents the files have.
//!
//! ```text
//! tree    = entry*                        the first is the root, a directory without name
//! entry   = kind u8, then by kind:
//!   0       directory: levels up, name, meta          levels above the last directory; 0 is a child of it
//!   1       file: name, meta, size, runs              +16: has holes
//!   2       another name of a file: number, name      of the files with +32, counted back from the last, which is 0
//!   3       symbolic link: name, meta, target
//!   4       named pipe: name, meta
//!   5, 6    character, block device: name, meta, major, minor
//! kind    + 32: names of it follow; + 64: has attributes
//! meta    = mode, user, group, seconds (zigzag), nanoseconds, and with +64: count, count times (name, value)
//! runs    = until the size is reached: 2n+1, n hashes of contents; or 2n, n blocks of zeros, which are a hole
//! name, target, value = length, bytes
//! ```
//!
//! Numbers are LEB128. Entries other than directories are in the last directory; first those of a directory, then its
//! directories, each in the order of their names, so that a change of one name changes a tree only where it is.

use logic::ramdisk::directories::{Directories, TOP};
use logic::ramdisk::entry::{Attribute, Time};
use logic::ramdisk::limits;

use super::{BLOCK, Bytes, Hash, put_varint};

const HOLES: u8 = 16;
const SHARED: u8 = 32;
const ATTRIBUTES: u8 = 64;

/// Type of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// The levels from the last directory up to its parent.
    Directory(usize),
    /// A regular file, with contents after it.
    File {
        size: u64,
        has_holes: bool,
    },
    /// Another name of a file: the one with this number among those that are `is_shared`, counted back from the last.
    HardLink(usize),
    /// A symbolic link with this target.
    Symlink(Vec<u8>),
    Fifo,
    Character(u32, u32),
    Block(u32, u32),
}

/// An entry, without the contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Empty for the root.
    pub name: Vec<u8>,
    /// Permission bits with set-id and sticky bits.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Modification time.
    pub mtime: Time,
    /// Extended attributes, including ACLs, capabilities and security labels.
    pub attributes: Vec<Attribute>,
    /// Whether other entries are hard links to it.
    pub is_shared: bool,
    pub body: Body,
}

impl Entry {
    /// Size of a file, including its holes.
    pub fn size(&self) -> u64 {
        match self.body {
            Body::File { size, .. } => size,
            _ => 0,
        }
    }

    /// Appends it to a tree.
    pub fn put(&self, out: &mut Vec<u8>) {
        let kind = match self.body {
            Body::Directory(_) => 0,
            Body::File { has_holes, .. } => 1 + if has_holes { HOLES } else { 0 },
            Body::HardLink(_) => 2,
            Body::Symlink(_) => 3,
            Body::Fifo => 4,
            Body::Character(..) => 5,
            Body::Block(..) => 6,
        };
        let is_link = matches!(self.body, Body::HardLink(_));
        let attributes = if self.attributes.is_empty() || is_link { 0 } else { ATTRIBUTES };
        out.push(kind | attributes | if self.is_shared && !is_link { SHARED } else { 0 });
        if let Body::Directory(number) | Body::HardLink(number) = self.body {
            put_varint(out, number as u64);
        }
        put_text(out, &self.name);
        if is_link {
            return;
        }
        for number in [self.mode, self.uid, self.gid] {
            put_varint(out, u64::from(number));
        }
        let seconds = self.mtime.seconds;
        put_varint(out, (seconds << 1 ^ seconds >> 63).cast_unsigned());
        put_varint(out, u64::from(self.mtime.nanoseconds));
        if attributes != 0 {
            put_varint(out, self.attributes.len() as u64);
            for (name, value) in &self.attributes {
                put_text(out, name);
                put_text(out, value);
            }
        }
        match &self.body {
            Body::File { size, .. } => put_varint(out, *size),
            Body::Symlink(target) => put_text(out, target),
            Body::Character(major, minor) | Body::Block(major, minor) => {
                put_varint(out, u64::from(*major));
                put_varint(out, u64::from(*minor));
            }
            Body::Directory(_) | Body::HardLink(_) | Body::Fifo => {}
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run<'a> {
    /// Contents, one after the other: their hashes.
    Contents(&'a [u8]),
    /// A hole of this many blocks.
    Hole(u64),
}

/// Appends the runs of a file's contents to a tree, joining equal ones.
#[derive(Debug, Default)]
pub struct Runs {
    hashes: Vec<u8>,
    hole: u64,
}

impl Runs {
    pub fn content(&mut self, out: &mut Vec<u8>, hash: &Hash) {
        if self.hole > 0 {
            self.end(out);
        }
        self.hashes.extend(hash);
    }

    pub fn hole(&mut self, out: &mut Vec<u8>, blocks: u64) {
        if !self.hashes.is_empty() {
            self.end(out);
        }
        self.hole += blocks;
    }

    /// Ends the present run.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if self.hole > 0 {
            put_varint(out, 2 * self.hole);
        }
        if !self.hashes.is_empty() {
            put_varint(out, 2 * (self.hashes.len() as u64 / 32) + 1);
            out.append(&mut self.hashes);
        }
        self.hole = 0;
    }
}

/// An entry in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub entry: Entry,
    /// The number of the directory that contains it, in [`Places::directories`]; of a directory, its own.
    pub directory: usize,
    /// Of another name of a file: directory and name of that.
    pub target: Option<(usize, Box<[u8]>)>,
}

/// Finds the places of entries, and refuses those outside of the tree.
#[derive(Debug, Default)]
pub struct Places {
    pub directories: Directories,
    /// The directories on the path of the last one: number, length of the path.
    way: Vec<(usize, usize)>,
    /// Files with further names: directory and name.
    shared: Vec<(usize, Box<[u8]>)>,
}

impl Places {
    pub fn place(&mut self, entry: Entry) -> Result<Placed, &'static str> {
        const NO_ROOT: &str = "the tree does not begin with its root";
        if let Body::Directory(up) = entry.body {
            if self.way.is_empty() {
                self.way.push((TOP, 0));
                let is_root = entry.name.is_empty() && up == 0;
                return is_root.then_some(Placed { entry, directory: TOP, target: None }).ok_or(NO_ROOT);
            }
            let left = self.way.len().checked_sub(up).filter(|left| *left > 0);
            self.way.truncate(left.ok_or("a directory outside of the tree")?);
        }
        let (last, length) = *self.way.last().ok_or(NO_ROOT)?;
        let is_name = !matches!(entry.name.as_slice(), b"" | b"." | b"..")
            && !entry.name.iter().any(|byte| matches!(byte, 0 | b'/'));
        if !is_name {
            return Err("an entry without a valid name");
        }
        let length = length + usize::from(length > 0) + entry.name.len();
        if length > limits::PATH {
            return Err("a path that is too long");
        }
        let (mut directory, mut target) = (last, None);
        match entry.body {
            Body::Directory(_) => {
                directory = self.directories.add(last, &entry.name);
                self.way.push((directory, length));
            }
            Body::HardLink(back) => {
                let at = self.shared.len().checked_sub(1).and_then(|last| last.checked_sub(back));
                target = Some(self.shared[at.ok_or("a link to no file of the tree")?].clone());
            }
            _ if entry.is_shared => self.shared.push((last, entry.name.clone().into())),
            _ => {}
        }
        Ok(Placed { entry, directory, target })
    }
}

/// Reads the entries of a tree, and refuses one that [`Entry::put`] does not write.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: Bytes<'a>,
    /// Blocks of the present file that are still to come.
    blocks: u64,
}

impl<'a> Reader<'a> {
    pub fn new(tree: &'a [u8]) -> Reader<'a> {
        Reader { rest: Bytes(tree), blocks: 0 }
    }

    /// The next entry; `None` at the end. What is left of the runs of the one before is skipped.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, &'static str> {
        while self.run()?.is_some() {}
        if self.rest.0.is_empty() {
            return Ok(None);
        }
        let entry = self.entry()?;
        self.blocks = entry.size().div_ceil(BLOCK as u64);
        Ok(Some(entry))
    }

    fn entry(&mut self) -> Result<Entry, &'static str> {
        const CUT: &str = "the tree is cut off";
        let kind = self.rest.array::<1>().ok_or(CUT)?[0];
        let (flags, kind) = (kind & !15, kind & 15);
        let allowed = match kind {
            0 => ATTRIBUTES,
            1 => HOLES | SHARED | ATTRIBUTES,
            2 => 0,
            _ => SHARED | ATTRIBUTES,
        };
        if flags & !allowed != 0 {
            return Err("an entry of an unknown kind");
        }
        let number = if matches!(kind, 0 | 2) { self.rest.varint().ok_or(CUT)? } else { 0 };
        let number = usize::try_from(number).map_err(|_| "a number that is too large")?;
        let mut entry = Entry {
            name: self.text(limits::NAME)?.to_vec(),
            mode: 0,
            uid: 0,
            gid: 0,
            mtime: Time::default(),
            attributes: Vec::new(),
            is_shared: flags & SHARED != 0,
            body: Body::HardLink(number),
        };
        if kind == 2 {
            return Ok(entry);
        }
        self.meta(&mut entry, flags & ATTRIBUTES != 0)?;
        entry.body = match kind {
            0 => Body::Directory(number),
            1 => Body::File { size: self.rest.varint().ok_or(CUT)?, has_holes: flags & HOLES != 0 },
            3 => Body::Symlink(self.text(limits::TARGET)?.to_vec()),
            4 => Body::Fifo,
            5 => Body::Character(self.u32()?, self.u32()?),
            6 => Body::Block(self.u32()?, self.u32()?),
            _ => return Err("an entry of an unknown kind"),
        };
        if entry.size() > limits::SIZE {
            return Err("a file that is too large");
        }
        match &entry.body {
            Body::Symlink(target) if target.is_empty() || target.contains(&0) => {
                Err("a symbolic link without a valid target")
            }
            _ => Ok(entry),
        }
    }

    /// The next part of the last entry's contents; `None` at the end. The last content may be shorter than a block.
    pub fn run(&mut self) -> Result<Option<Run<'a>>, &'static str> {
        const WRONG: &str = "the contents of a file do not match its size";
        if self.blocks == 0 {
            return Ok(None);
        }
        let number = self.rest.varint().ok_or(WRONG)?;
        let blocks = number / 2;
        self.blocks = self.blocks.checked_sub(blocks).filter(|_| blocks > 0).ok_or(WRONG)?;
        if number % 2 == 0 {
            return Ok(Some(Run::Hole(blocks)));
        }
        let length = usize::try_from(blocks).ok().and_then(|blocks| blocks.checked_mul(32)).ok_or(WRONG)?;
        Ok(Some(Run::Contents(self.rest.take(length).ok_or(WRONG)?)))
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        self.rest.varint().and_then(|number| u32::try_from(number).ok()).ok_or("a number that is too large")
    }

    fn text(&mut self, most: usize) -> Result<&'a [u8], &'static str> {
        let length = self.rest.below(most).ok_or("a text that is too long")?;
        self.rest.take(length).ok_or("the tree is cut off")
    }

    fn meta(&mut self, entry: &mut Entry, has_attributes: bool) -> Result<(), &'static str> {
        (entry.mode, entry.uid, entry.gid) = (self.u32()?, self.u32()?, self.u32()?);
        let seconds = self.rest.varint().ok_or("the tree is cut off")?;
        let seconds = (seconds >> 1).cast_signed() ^ -(seconds & 1).cast_signed();
        entry.mtime = Time { seconds, nanoseconds: self.u32()? };
        if entry.mode > 0o7777 || entry.mtime.nanoseconds >= 1_000_000_000 {
            return Err("an entry with an invalid mode or time");
        }
        if !has_attributes {
            return Ok(());
        }
        let mut room = limits::ATTRIBUTES;
        let count = self.rest.below(room).ok_or("too many attributes")?;
        for _ in 0..count {
            let name = self.text(limits::NAME)?;
            let value = self.text(room)?;
            room = room.checked_sub(name.len() + value.len()).ok_or("too many attributes")?;
            if name.is_empty() || name.contains(&0) {
                return Err("an attribute without a valid name");
            }
            entry.attributes.push((name.to_vec(), value.to_vec()));
        }
        if count == 0 { Err("an entry without its attributes") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn root() -> Entry {
        Entry {
            name: Vec::new(),
            mode: 0o755,
            uid: 0,
            gid: 0,
            mtime: Time { seconds: -1, nanoseconds: 5 },
            attributes: Vec::new(),
            is_shared: false,
            body: Body::Directory(0),
        }
    }

    fn named(name: &[u8], body: Body) -> Entry {
        Entry { name: name.to_vec(), body, ..root() }
    }

    fn tree(entries: &[Entry]) -> Vec<u8> {
        let mut out = Vec::new();
        for entry in entries {
            entry.put(&mut out);
        }
        out
    }

    fn error(tree: &[u8]) -> &'static str {
        let mut reader = Reader::new(tree);
        let mut places = Places::default();
        loop {
            match reader.next_entry().and_then(|entry| entry.map(|entry| places.place(entry)).transpose()) {
                Ok(Some(_)) => {}
                Ok(None) => return "",
                Err(why) => return why,
            }
        }
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        let directory = |name: &[u8], up| named(name, Body::Directory(up));
        assert_eq!(error(&tree(&[root(), directory(b"a", 0), directory(b"b", 1), directory(b"c", 0)])), "");
        for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
            assert_ne!(error(&tree(&[root(), named(name, Body::Fifo)])), "", "{name:?}");
        }
        assert_ne!(error(&tree(&[root(), directory(b"a", 0), directory(b"b", 2)])), "");
        assert_ne!(error(&tree(&[directory(b"a", 0)])), "");
        assert_ne!(error(&tree(&[root(), root()])), "");
        assert_ne!(error(&tree(&[root(), named(b"a", Body::HardLink(0))])), "");
        assert_ne!(error(&tree(&[root(), named(b"a", Body::Symlink(Vec::new()))])), "");
        let large = Body::File { size: limits::SIZE + 1, has_holes: true };
        assert_ne!(error(&tree(&[root(), named(b"a", large)])), "");
        // Contents that claim more than there is.
        let mut cut = tree(&[root(), named(b"a", Body::File { size: u64::MAX >> 1, has_holes: false })]);
        put_varint(&mut cut, u64::MAX);
        assert_ne!(error(&cut), "");
    }

    #[test]
    fn a_path_is_bounded() {
        let deep = |levels| {
            let name = [b'n'; 255];
            let below = std::iter::repeat_n(named(&name, Body::Directory(0)), levels);
            tree(&std::iter::once(root()).chain(below).collect::<Vec<_>>())
        };
        assert_eq!(error(&deep(limits::PATH / 256)), "");
        assert_ne!(error(&deep(limits::PATH / 256 + 1)), "");
    }

    fn entries() -> impl Strategy<Value = Vec<(Entry, Vec<(bool, u8)>)>> {
        let name = proptest::collection::vec(any::<u8>(), 1..20).prop_map(|name| {
            let name: Vec<u8> = name.into_iter().filter(|byte| !matches!(byte, 0 | b'/')).collect();
            if name.iter().all(|byte| *byte == b'.') { b"x".to_vec() } else { name }
        });
        let attribute =
            (proptest::collection::vec(1_u8.., 1..9), proptest::collection::vec(any::<u8>(), 0..9));
        let attributes = proptest::collection::vec(attribute, 0..3);
        let runs = proptest::collection::vec((any::<bool>(), 1_u8..4), 1..4);
        let numbers = (0..0o10000_u32, any::<u32>(), any::<u32>(), any::<i64>(), 0..1_000_000_000_u32);
        let one = (name, numbers, attributes, any::<bool>(), 0..7_u8, 0..3_usize, runs);
        proptest::collection::vec(one, 0..20).prop_map(|list| {
            let (mut all, mut depth, mut shared) = (vec![(root(), Vec::new())], 1, 0);
            for (name, (mode, uid, gid, seconds, nanoseconds), attributes, is_shared, kind, number, runs) in
                list
            {
                let blocks: u64 = runs.iter().map(|(_, blocks)| u64::from(*blocks)).sum();
                let mut entry = Entry {
                    name,
                    mode,
                    uid,
                    gid,
                    mtime: Time { seconds, nanoseconds },
                    attributes,
                    is_shared: is_shared && kind != 0,
                    body: match kind {
                        0 => Body::Directory(number.min(depth - 1)),
                        1 => Body::File { size: blocks * BLOCK as u64 - 3, has_holes: is_shared },
                        2 if number < shared => Body::HardLink(number),
                        3 => Body::Symlink(b"../x".to_vec()),
                        5 => Body::Character(uid, gid),
                        6 => Body::Block(gid, uid),
                        _ => Body::Fifo,
                    },
                };
                match entry.body {
                    Body::Directory(up) => depth = depth - up + 1,
                    Body::HardLink(_) => {
                        let Entry { name, body, .. } = entry;
                        entry = Entry { name, body, mode: 0, mtime: Time::default(), ..root() };
                    }
                    _ => shared += usize::from(entry.is_shared),
                }
                let runs = if entry.size() > 0 { runs } else { Vec::new() };
                all.push((entry, runs));
            }
            all
        })
    }

    proptest! {
        #[test]
        fn a_tree_comes_back_and_a_part_of_it_is_refused_or_shorter(entries in entries(), cut in any::<u16>()) {
            let mut out = Vec::new();
            for (entry, pieces) in &entries {
                entry.put(&mut out);
                let mut runs = Runs::default();
                for (is_hole, blocks) in pieces {
                    match is_hole {
                        true => runs.hole(&mut out, u64::from(*blocks)),
                        false => (0..*blocks).for_each(|block| runs.content(&mut out, &[block; 32])),
                    }
                }
                runs.end(&mut out);
            }
            let (mut reader, mut places) = (Reader::new(&out), Places::default());
            for (entry, pieces) in &entries {
                let placed = places.place(reader.next_entry().unwrap().unwrap()).unwrap();
                prop_assert_eq!(&placed.entry, entry);
                let (mut found, mut wanted) = (Vec::new(), Vec::new());
                while let Some(run) = reader.run().unwrap() {
                    match run {
                        Run::Hole(blocks) => found.extend((0..blocks).map(|_| None)),
                        Run::Contents(hashes) => found.extend(hashes.chunks(32).map(|hash| Some(hash[0]))),
                    }
                }
                for (is_hole, blocks) in pieces {
                    wanted.extend((0..*blocks).map(|block| (!is_hole).then_some(block)));
                }
                prop_assert_eq!(found, wanted);
            }
            prop_assert_eq!(reader.next_entry(), Ok(None));
            let cut = usize::from(cut) % out.len();
            let mut reader = Reader::new(&out[..cut]);
            let mut count = 0;
            while let Ok(Some(_)) = reader.next_entry() {
                count += 1;
            }
            prop_assert!(count <= entries.len());
        }
    }
}
