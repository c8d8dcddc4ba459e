//! Reads what is in the files of a store: finds contents by their hashes, checks frames before they are used, and restores
//! trees from their bases.

use std::collections::{BTreeSet, HashSet};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, PoisonError};

use foldhash::fast::RandomState;
use host::{Errno, HostError};
use logic::ramdisk::rest_name;

use super::directory::{File, Listing, Store};
use super::format::{self, ByHash, FRAME, Footer, Hash, Hashes, Head, START, STORED, tree};
use super::read::{read, section};
use super::transfer_error::{TransferError, again};

/// Decompressed frames that are kept. Contents of one generation are in the same order in each file, so one frame of each is
/// nearly enough.
const FRAMES: usize = 80;
/// Contents of generations that are kept, in all: 16 MiB of hashes at most.
const KNOWN: usize = 1 << 18;
/// Files that are kept open.
const OPEN: usize = 32;
/// Bytes that are read at once where frames are searched for.
const SCAN: usize = 4 << 20;
/// The largest window of a tree's compression: it reaches from its end to the start of its base.
const WINDOW: u32 = 28;

/// A frame in a file.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Where its stored bytes are.
    pub offset: u64,
    pub raw: u32,
    pub stored: u32,
    /// Of the stored bytes.
    pub hash: Hash,
    pub is_damaged: bool,
}

/// Where a content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub file: u32,
    pub frame: u32,
    /// Within the raw bytes of the frame.
    pub at: u32,
    pub length: u32,
}

/// The contents of a store, read without changing anything.
pub struct Shelf<'a> {
    store: &'a Store,
    pub files: Vec<File>,
    /// Whether most of the files will be read.
    pub is_read_whole: bool,
    /// Of each file.
    pub frames: Vec<Vec<Frame>>,
    /// Files whose index could not be read: they may have more contents than were found.
    doubtful: HashSet<usize>,
    /// The newest place of each content whose frame is not known to be damaged.
    places: ByHash<Place>,
    open: Vec<(usize, Arc<OwnedFd>)>,
    cache: Vec<((u32, u32), Vec<u8>)>,
    bases: Vec<(Hash, Tree)>,
    unpacker: Unpacker,
}

/// A tree as it is when it is not compressed.
pub type Tree = Arc<Vec<u8>>;

/// The hashes of a run.
pub fn hashes(run: &[u8]) -> impl Iterator<Item = Hash> {
    run.as_chunks::<32>().0.iter().copied()
}

fn bad(why: impl Into<String>) -> TransferError {
    TransferError::Bad(why.into())
}

/// Checks and decompresses frames.
#[derive(Default)]
pub struct Unpacker(zstd::bulk::Decompressor<'static>);

impl Unpacker {
    /// The contents of a frame, from its stored bytes.
    pub fn unpack(&mut self, frame: &Frame, stored: &[u8]) -> Result<Vec<u8>, TransferError> {
        if format::hash(stored) != frame.hash {
            return Err(bad("the hash of a frame does not match"));
        }
        let raw = (frame.raw as usize).min(FRAME);
        let mut data = Vec::with_capacity(raw);
        match self.0.decompress_to_buffer(stored, &mut data) {
            Ok(length) if length == raw => Ok(data),
            Ok(_) => Err(TransferError::Unusable("a frame has another length".to_owned())),
            Err(error) => Err(TransferError::Unusable(error.to_string())),
        }
    }
}

impl<'a> Shelf<'a> {
    /// Reads the indexes of all files. Frames in `damaged` (number of the file, offset) count as not there.
    pub fn open(
        store: &'a Store,
        listing: &Listing,
        damaged: &BTreeSet<(u64, u64)>,
    ) -> Result<Shelf<'a>, TransferError> {
        let mut shelf = Shelf {
            store,
            files: listing.files.clone(),
            is_read_whole: false,
            frames: Vec::new(),
            doubtful: HashSet::new(),
            places: ByHash::default(),
            open: Vec::new(),
            cache: Vec::new(),
            bases: Vec::new(),
            unpacker: Unpacker::default(),
        };
        // The oldest first, so that the newest place of a content counts.
        shelf.files.sort_by_key(|file| file.number);
        for at in 0..shelf.files.len() {
            let heads = shelf.heads(at).map_err(|error| shelf.named(at, error))?;
            shelf.put(at, heads, damaged);
        }
        // Opened again by what reads all of them.
        shelf.open.clear();
        Ok(shelf)
    }

    fn put(&mut self, at: usize, heads: Vec<(u64, Head)>, damaged: &BTreeSet<(u64, u64)>) {
        let number = self.files[at].number;
        let mut frames = Vec::with_capacity(heads.len());
        self.places.reserve(heads.iter().map(|(_, head)| head.contents.len()).sum());
        for (offset, head) in heads {
            let offset = offset + head.length() as u64;
            let is_damaged = damaged.contains(&(number, offset));
            let mut place =
                Place { file: format::short(at), frame: format::short(frames.len()), at: 0, length: 0 };
            for (hash, length) in head.contents {
                place.length = length;
                if !is_damaged {
                    self.places.insert(hash, place);
                }
                place.at += length;
            }
            frames.push(Frame { offset, raw: head.raw, stored: head.stored, hash: head.hash, is_damaged });
        }
        self.frames.push(frames);
    }

    /// The frames of a file: from its index, or, where that is damaged, by searching for them.
    fn heads(&mut self, at: usize) -> Result<Vec<(u64, Head)>, TransferError> {
        let size = self.files[at].size;
        self.doubtful.insert(at);
        let file = match self.file(at) {
            // Damaged, or not trusted.
            Err(TransferError::Bad(_) | TransferError::Unusable(_)) => return Ok(Vec::new()),
            opened => opened?,
        };
        if let Ok(footer) = &self.files[at].footer {
            let index = section(self.store.calls(), file.as_fd(), footer.index, 256 << 20);
            match index.map(|index| format::parse_index(&index, size)) {
                Ok(Some(frames)) => {
                    self.doubtful.remove(&at);
                    return Ok(frames);
                }
                Ok(None) | Err(TransferError::Bad(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let mut frames = Vec::new();
        let (mut offset, mut room) = (START.len() as u64, SCAN);
        while offset < size {
            let length = room.min(usize::try_from(size - offset).unwrap_or(room));
            let bytes = match read(self.store.calls(), file.as_fd(), offset, length) {
                // A bad sector: what is around it can be read.
                Err(TransferError::Bad(_)) if room > 4096 => {
                    room = (room / 2).max(4096);
                    continue;
                }
                Err(TransferError::Bad(_)) => {
                    offset += 4096;
                    continue;
                }
                bytes => bytes?,
            };
            let next = format::scan(&bytes, offset, size, &mut frames);
            room = SCAN;
            if next <= offset {
                break;
            }
            offset = next;
        }
        Ok(frames)
    }

    fn file(&mut self, at: usize) -> Result<Arc<OwnedFd>, TransferError> {
        if let Some(found) = self.open.iter().position(|(of, _)| *of == at) {
            let found = self.open.remove(found);
            let file = Arc::clone(&found.1);
            self.open.push(found);
            return Ok(file);
        }
        let opened = match self.store.open_file(&self.files[at].name) {
            // A save has pruned the snapshot in the meantime.
            Err(TransferError::Store(error)) if error.errno() == Some(Errno::NOENT) => {
                self.store.open_file(&rest_name(self.files[at].number))
            }
            opened => opened,
        };
        let file = Arc::new(opened?);
        // Another process has replaced it by a part of it.
        let size = again(|| self.store.calls().look(file.as_fd(), b"")).map(|found| found.size);
        if self.files[at].size > 0 && size.is_ok_and(|size| size != self.files[at].size) {
            let name = self.files[at].name.clone();
            return Err(TransferError::Store(HostError::new(name, "open", Errno(libc::ESTALE))));
        }
        if self.is_read_whole {
            self.store.calls().will_read(file.as_fd());
        }
        if self.open.len() >= OPEN {
            self.open.remove(0);
        }
        self.open.push((at, Arc::clone(&file)));
        Ok(file)
    }

    fn named(&self, at: usize, error: TransferError) -> TransferError {
        error.of(format_args!("{}/{}", self.store.path(), self.files[at].name))
    }

    /// Where a content is, if its frame is not known to be damaged.
    pub fn find(&self, hash: &Hash) -> Option<Place> {
        let place = *self.places.get(hash)?;
        self.is_good(place).then_some(place)
    }

    fn is_good(&self, place: Place) -> bool {
        !self.frames[place.file as usize][place.frame as usize].is_damaged
    }

    /// Stored bytes of these contents in a file, about.
    pub fn live_bytes(&self, at: usize, live: &Hashes) -> u64 {
        let places = live.iter().filter_map(|hash| self.find(hash));
        places.filter(|place| place.file as usize == at).map(|place| self.stored(place)).sum()
    }

    /// All contents that are not known to be damaged.
    pub fn places(&self) -> impl Iterator<Item = (&Hash, Place)> {
        self.places.iter().filter(|(_, place)| self.is_good(**place)).map(|(hash, place)| (hash, *place))
    }

    /// The frames that were found to be damaged: number of the file, offset.
    pub fn damaged(&self) -> BTreeSet<(u64, u64)> {
        let frames = self.files.iter().zip(&self.frames);
        let damaged = frames.flat_map(|(file, frames)| {
            frames.iter().filter(|frame| frame.is_damaged).map(|frame| (file.number, frame.offset))
        });
        damaged.collect()
    }

    /// Reads a content of a file of which `left` bytes are left. [`TransferError::Bad`] if it is damaged or not there.
    pub fn content(&mut self, hash: &Hash, left: &mut u64) -> Result<&[u8], TransferError> {
        let place = self.place(hash, left)?;
        let key = (place.file, place.frame);
        if self.cache.last().is_none_or(|(last, _)| *last != key) {
            let frame = match self.cache.iter().position(|(known, _)| *known == key) {
                Some(at) => self.cache.remove(at),
                None => (key, self.frame(key)?),
            };
            if self.cache.len() >= FRAMES {
                self.cache.remove(0);
            }
            self.cache.push(frame);
        }
        let (_, data) = &self.cache[self.cache.len() - 1];
        let range = place.at as usize..(place.at + place.length) as usize;
        data.get(range).ok_or_else(|| TransferError::Unusable("a frame has another length".to_owned()))
    }

    /// Reads a content of any length.
    pub fn any(&mut self, hash: &Hash) -> Result<&[u8], TransferError> {
        let mut left = self.find(hash).map_or(0, |place| u64::from(place.length));
        self.content(hash, &mut left)
    }

    /// Bytes of a content in its file, about.
    pub fn stored(&self, place: Place) -> u64 {
        let frame = &self.frames[place.file as usize][place.frame as usize];
        u64::from(place.length) * u64::from(frame.stored) / u64::from(frame.raw.max(1))
    }

    /// As [`Shelf::content`], without reading it.
    pub fn place(&self, hash: &Hash, left: &mut u64) -> Result<Place, TransferError> {
        let place = self.find(hash).ok_or_else(|| bad("a part of the contents is not there"))?;
        let length = (format::BLOCK as u64).min(*left);
        if u64::from(place.length) != length {
            return Err(TransferError::Unusable("a content has another length than its file".to_owned()));
        }
        *left -= length;
        Ok(place)
    }

    /// Reads and decompresses a frame.
    pub fn frame(&mut self, (file, frame): (u32, u32)) -> Result<Vec<u8>, TransferError> {
        let (at, number) = (file as usize, frame as usize);
        let found = self.frames[at][number].clone();
        let data = self.file(at).and_then(|file| {
            let stored = (found.stored as usize).min(STORED);
            self.unpacker.unpack(&found, &read(self.store.calls(), file.as_fd(), found.offset, stored)?)
        });
        if matches!(data, Err(TransferError::Bad(_))) {
            self.frames[at][number].is_damaged = true;
        }
        data.map_err(|error| self.named(at, error))
    }

    /// The tree of a file.
    pub fn tree(&mut self, at: usize) -> Result<Tree, TransferError> {
        let Ok(footer) = self.files[at].footer.clone() else { return Err(bad("its end is damaged")) };
        let base = match footer.base {
            None => {
                // Refused if others can change it, although the same tree may be in another file.
                self.file(at)?;
                return self.base(&footer.tree_hash);
            }
            Some(base) => self.base(&base)?,
        };
        let file = self.file(at)?;
        let stored = section(self.store.calls(), file.as_fd(), footer.tree, format::TREE);
        let stored = stored.map_err(|error| self.named(at, error))?;
        unpack_tree(&stored, &base, &footer).map(Arc::new)
    }

    /// The tree of a generation.
    pub fn tree_of(&mut self, number: u64) -> Result<Tree, TransferError> {
        let at = self.at(number).ok_or_else(|| bad("its file is not there"))?;
        self.tree(at)
    }

    /// The tree with this hash that has no base.
    fn base(&mut self, hash: &Hash) -> Result<Tree, TransferError> {
        if let Some((_, base)) = self.bases.iter().find(|(of, _)| of == hash) {
            return Ok(Arc::clone(base));
        }
        let mut failed = bad("the tree that it is a difference to is not there");
        for (at, footer) in self.bases_of(hash) {
            for copy in [footer.tree, footer.again] {
                let read = self.file(at).and_then(|file| {
                    let stored = section(self.store.calls(), file.as_fd(), copy, format::TREE)?;
                    unpack_tree(&stored, &[], &footer)
                });
                match read {
                    Ok(base) => {
                        let base = Arc::new(base);
                        self.bases.truncate(1);
                        self.bases.insert(0, (*hash, Arc::clone(&base)));
                        return Ok(base);
                    }
                    Err(error @ (TransferError::Bad(_) | TransferError::Unusable(_))) => failed = error,
                    Err(error) => return Err(self.named(at, error)),
                }
            }
        }
        Err(failed)
    }

    fn bases_of(&self, hash: &Hash) -> Vec<(usize, Footer)> {
        let footers = self.files.iter().enumerate().rev();
        let footers = footers.filter_map(|(at, file)| Some((at, file.footer.as_ref().ok()?)));
        footers
            .filter(|(_, footer)| footer.base.is_none() && footer.tree_hash == *hash)
            .map(|(at, footer)| (at, footer.clone()))
            .collect()
    }

    /// A base for the next tree, with its file: that of the newest tree, if both of its copies are whole.
    pub fn good_base(&mut self, at: usize) -> Result<Option<(Tree, File)>, TransferError> {
        let Ok(footer) = &self.files[at].footer else { return Ok(None) };
        let hash = footer.base.unwrap_or(footer.tree_hash);
        for (of, footer) in self.bases_of(&hash) {
            let file = match self.file(of) {
                Err(TransferError::Bad(_) | TransferError::Unusable(_)) => continue,
                opened => opened?,
            };
            let calls = self.store.calls();
            let copies = [footer.tree, footer.again];
            let whole = copies.map(|copy| section(calls, file.as_fd(), copy, format::TREE).map(|_| ()));
            match whole {
                [Ok(()), Ok(())] => return Ok(Some((self.base(&hash)?, self.files[of].clone()))),
                [Err(TransferError::Bad(_)), _] | [_, Err(TransferError::Bad(_))] => {}
                [Err(error), _] | [_, Err(error)] => return Err(self.named(of, error)),
            }
        }
        Ok(None)
    }

    /// The file of a generation.
    pub fn at(&self, number: u64) -> Option<usize> {
        self.files.iter().position(|file| file.number == number)
    }

    /// Hashes of all contents of a generation, which is read once.
    pub fn contents_of(&mut self, number: u64) -> Result<Arc<Hashes>, TransferError> {
        let known = |store: &Store| {
            let known = store.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.iter().find(|(of, _)| *of == number).map(|(_, contents)| Arc::clone(contents))
        };
        if let Some(contents) = known(self.store) {
            return Ok(contents);
        }
        let contents = Arc::new(contents(&self.tree_of(number)?)?);
        remember(self.store, number, Arc::clone(&contents));
        Ok(contents)
    }

    /// Whether a part of a file cannot be read, as far as known.
    pub fn has_damage(&self, at: usize) -> bool {
        self.doubtful.contains(&at) || self.frames[at].iter().any(|frame| frame.is_damaged)
    }

    /// Closes all files, and forgets what was read of them.
    pub fn close(&mut self) {
        self.open.clear();
        self.cache.clear();
    }
}

/// Remembers the contents of a generation, if there is room.
pub fn remember(store: &Store, number: u64, contents: Arc<Hashes>) {
    let mut known = store.known.lock().unwrap_or_else(PoisonError::into_inner);
    if known.iter().map(|(_, contents)| contents.len()).sum::<usize>() + contents.len() <= KNOWN {
        known.push((number, contents));
    }
}

/// Hashes of all contents of a tree.
pub fn contents(tree: &[u8]) -> Result<Hashes, TransferError> {
    // An entry has about as many bytes as a hash.
    let mut found = Hashes::with_capacity_and_hasher(tree.len() / 64, RandomState::default());
    each_content(tree, |hash| _ = found.insert(hash))?;
    Ok(found)
}

/// Calls `each` with the hashes of the contents of a tree, in its order.
pub fn each_content(tree: &[u8], mut each: impl FnMut(Hash)) -> Result<(), TransferError> {
    let unusable = |why: &'static str| TransferError::Unusable(why.to_owned());
    let mut reader = tree::Reader::new(tree);
    while reader.next_entry().map_err(unusable)?.is_some() {
        while let Some(run) = reader.run().map_err(unusable)? {
            if let tree::Run::Contents(run) = run {
                hashes(run).for_each(&mut each);
            }
        }
    }
    Ok(())
}

/// Compresses a tree as a difference to its base, which may be empty.
pub fn pack_tree(tree: &[u8], base: &[u8]) -> Result<Vec<u8>, TransferError> {
    let pack = || {
        let mut encoder = zstd::Encoder::with_ref_prefix(Vec::new(), 3, base)?;
        let reach = (base.len() + tree.len()).max(1).next_power_of_two().ilog2();
        encoder.window_log(reach.clamp(10, WINDOW))?;
        encoder.long_distance_matching(!base.is_empty())?;
        encoder.include_checksum(true)?;
        encoder.set_pledged_src_size(Some(tree.len() as u64))?;
        std::io::Write::write_all(&mut encoder, tree)?;
        encoder.finish()
    };
    pack().map_err(|error: std::io::Error| TransferError::Unusable(error.to_string()))
}

/// Decompresses and checks a tree.
pub fn unpack_tree(stored: &[u8], base: &[u8], footer: &Footer) -> Result<Vec<u8>, TransferError> {
    let unpack = || {
        let mut decoder = zstd::stream::read::Decoder::with_ref_prefix(stored, base)?;
        decoder.window_log_max(WINDOW)?;
        let mut tree = Vec::new();
        // Memory is taken as far as there is data.
        decoder.take(footer.tree_bytes + 1).read_to_end(&mut tree)?;
        Ok(tree)
    };
    let tree = unpack().map_err(|error: std::io::Error| bad(error.to_string()))?;
    if tree.len() as u64 == footer.tree_bytes && format::hash(&tree) == footer.tree_hash {
        Ok(tree)
    } else {
        Err(bad("the hash of the tree does not match"))
    }
}
