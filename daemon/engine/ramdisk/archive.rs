//! Reads an archive back into entries. Strict, because the archive may be truncated or tampered with.

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::io::{self, Read};

use logic::ramdisk::directories::{Directories, TOP};
use logic::ramdisk::entry::{Body, Entry, Segment};
use logic::ramdisk::header::{self, BLOCK, Head, Map};
use logic::ramdisk::manifest::Contents;
use logic::ramdisk::omitted::{Omitted, Reason};
use logic::ramdisk::paths;

use super::transfer_error::TransferError;
use super::walk::PAGE;

/// Reads the entries of an uncompressed archive, one after the other.
#[derive(Debug)]
pub struct ArchiveReader<R> {
    input: R,
    /// Unread bytes of the present entry, and the padding after it.
    left: u64,
    padding: usize,
    records: Vec<u8>,
    begun: bool,
}

/// An entry that cannot be loaded. The entries after it can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What is known of its path.
    pub path: Vec<u8>,
    /// Why it cannot be loaded.
    pub why: String,
}

impl<R: Read> ArchiveReader<R> {
    /// Starts at the first block.
    pub fn new(input: R) -> ArchiveReader<R> {
        ArchiveReader { input, left: 0, padding: 0, records: Vec::new(), begun: false }
    }

    /// The next entry; `None` at the end of the archive, once the input has been read to its end.
    pub fn next_entry(&mut self) -> Result<Option<Result<Entry, Refused>>, TransferError> {
        self.skip()?;
        self.records.clear();
        let mut extended = false;
        loop {
            let mut block = [0; BLOCK];
            self.exactly(&mut block)?;
            match header::look(&block).map_err(bad)? {
                Head::End if extended => {
                    return Err(bad("an extended header without entry"));
                }
                Head::End if !self.begun => return Err(bad("it is empty")),
                Head::End => return self.end().map(|()| None),
                Head::Extended(_) if extended => return Err(bad("two extended headers")),
                Head::Extended(length) => {
                    extended = true;
                    // The length is bounded by `look`; memory is allocated only for data actually read.
                    let read = self.input.by_ref().take(length).read_to_end(&mut self.records);
                    if read.map_err(|error| TransferError::reading(&error))? as u64 != length {
                        return Err(bad("it ends too early"));
                    }
                    let padding = header::padding(length);
                    self.exactly(&mut [0; BLOCK][..padding])?;
                }
                Head::Entry(stored) => {
                    (self.left, self.padding) = (stored, header::padding(stored));
                    let entry = header::decode(&block, &self.records);
                    if !self.begun && !entry.as_ref().is_ok_and(|entry| entry.path.is_empty()) {
                        return Err(bad("it does not begin with the RAM disk itself"));
                    }
                    self.begun = true;
                    let refused = |why| Refused { path: header::name(&block).to_vec(), why };
                    return Ok(Some(entry.map_err(refused)));
                }
            }
        }
    }

    /// Reads the map of holes at the beginning of a sparse file's contents. Afterwards, the data of its segments is
    /// left.
    pub fn read_map(&mut self, size: u64) -> Result<Result<Vec<Segment>, &'static str>, TransferError> {
        let mut map = Map::new(size);
        loop {
            if self.left < BLOCK as u64 {
                return Ok(Err("a map of holes that is cut off"));
            }
            let mut block = [0; BLOCK];
            self.exactly(&mut block)?;
            self.left -= BLOCK as u64;
            match map.take(&block) {
                Ok(false) => {}
                Ok(true) => break,
                Err(why) => return Ok(Err(why)),
            }
        }
        let segments = map.segments();
        // Segments are ordered and within the size, so the sum cannot overflow.
        let data: u64 = segments.iter().map(|segment| segment.length).sum();
        Ok(if data == self.left { Ok(segments) } else { Err("a map of holes that does not match its data") })
    }

    /// Fills `buffer` with contents of the present entry. It must not be larger than what is left of them.
    pub fn read_data(&mut self, buffer: &mut [u8]) -> Result<(), TransferError> {
        if buffer.len() as u64 > self.left {
            return Err(bad("contents that are too short"));
        }
        self.exactly(buffer)?;
        self.left -= buffer.len() as u64;
        Ok(())
    }

    /// Reads and checks the rest of the present entry.
    pub fn skip(&mut self) -> Result<(), TransferError> {
        let wanted = self.left + self.padding as u64;
        if wanted > 0 {
            let copied = io::copy(&mut self.input.by_ref().take(wanted), &mut io::sink());
            if copied.map_err(|error| TransferError::reading(&error))? != wanted {
                return Err(bad("it ends too early"));
            }
        }
        (self.left, self.padding) = (0, 0);
        Ok(())
    }

    fn exactly(&mut self, buffer: &mut [u8]) -> Result<(), TransferError> {
        self.input.read_exact(buffer).map_err(|error| TransferError::reading(&error))
    }

    /// After the first zero block: only zeros up to the end of the input. Reading to the end makes the decompressor
    /// verify its checksum.
    fn end(&mut self) -> Result<(), TransferError> {
        let mut block = [0; BLOCK];
        self.exactly(&mut block)?;
        loop {
            if block.iter().any(|byte| *byte != 0) {
                return Err(bad("something after its end"));
            }
            match self.input.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(length) => block[length..].fill(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => block.fill(0),
                Err(error) => return Err(TransferError::reading(&error)),
            }
        }
    }

    /// Returns the input.
    pub fn into_inner(self) -> R {
        self.input
    }
}

fn bad(what: &str) -> TransferError {
    TransferError::Bad(what.to_owned())
}

/// Contents of a whole archive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// Entries that can be loaded.
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// Entries that cannot be loaded.
    pub omitted: Omitted,
    /// The totals, as in a manifest, without the biggest files.
    pub contents: Contents,
}

/// Adds an entry to the totals of an archive.
fn count(contents: &mut Contents, Admitted { entry, segments, .. }: &Admitted) {
    let data = match (&entry.body, segments) {
        (Body::Sparse { .. }, Some(segments)) => segments.iter().map(|segment| segment.length).sum(),
        _ => entry.stored(),
    };
    let occupied = u64::div_ceil(data, PAGE).saturating_mul(PAGE);
    contents.bytes = contents.bytes.saturating_add(entry.size());
    contents.occupied_bytes = contents.occupied_bytes.saturating_add(occupied);
    *match entry.body {
        Body::Directory => &mut contents.directories,
        Body::File(_) | Body::Sparse { .. } => &mut contents.files,
        Body::HardLink(_) => &mut contents.hard_links,
        Body::Symlink(_) | Body::Fifo | Body::Character(..) | Body::Block(..) => &mut contents.others,
    } += 1;
}

/// Reads an archive to its end without extracting it.
pub fn check<R: Read>(
    reader: &mut ArchiveReader<R>,
    mut each: impl FnMut(u64) -> bool,
) -> Result<Found, TransferError> {
    let mut found = Found::default();
    let mut names = Names::default();
    while let Some(admitted) = names.next(reader)? {
        match admitted {
            Ok(admitted) => {
                found.entries += 1;
                found.bytes = found.bytes.saturating_add(admitted.entry.size());
                count(&mut found.contents, &admitted);
            }
            Err(Refused { path, why }) => found.omitted.add(|| path, Reason::Entry, why),
        }
        if !each(found.bytes) {
            return Err(TransferError::Ended);
        }
    }
    Ok(found)
}

/// An entry that can be loaded.
#[derive(Debug)]
pub struct Admitted {
    pub entry: Entry,
    /// The number of the directory itself, or of the one that contains the entry.
    pub directory: usize,
    /// The data segments of a file with holes.
    pub segments: Option<Vec<Segment>>,
}

/// The names seen in an archive. Paths are kept as digests only, so that memory does not grow with the depth of a tree.
#[derive(Debug, Default)]
pub struct Names {
    pub directories: Directories,
    /// Number of each directory by the digest of its path, or [`LEAF`].
    seen: HashMap<[u8; 16], usize>,
    /// The directory looked up last.
    last: (Vec<u8>, usize),
}

const LEAF: usize = usize::MAX;

/// A cryptographic digest: no archive can hold two paths with the same one.
fn digest(path: &[u8]) -> [u8; 16] {
    let mut digest = [0; 16];
    digest.copy_from_slice(&blake3::hash(path).as_bytes()[..16]);
    digest
}

impl Names {
    /// Reads the next entry of an archive, and refuses one that conflicts with those before it; `None` at the end.
    pub fn next<R: Read>(
        &mut self,
        reader: &mut ArchiveReader<R>,
    ) -> Result<Option<Result<Admitted, Refused>>, TransferError> {
        let entry = match reader.next_entry()? {
            Some(Ok(entry)) => entry,
            Some(Err(refused)) => return Ok(Some(Err(refused))),
            None => return Ok(None),
        };
        let segments = match entry.body {
            Body::Sparse { size, .. } => reader.read_map(size)?.map(Some),
            _ => Ok(None),
        };
        let taken = segments.and_then(|segments| Ok((self.take(&entry)?, segments)));
        Ok(Some(match taken {
            Ok((directory, segments)) => Ok(Admitted { entry, directory, segments }),
            Err(why) => Err(Refused { path: entry.path, why: why.to_owned() }),
        }))
    }

    /// Adds the name of an entry. Returns the number of the directory itself, or of the one that contains the entry.
    fn take(&mut self, entry: &Entry) -> Result<usize, &'static str> {
        let (directory, name) = paths::split(&entry.path);
        let directory = if entry.path.is_empty() {
            TOP
        } else {
            self.directory(directory).ok_or("its directory is not in the archive")?
        };
        if let Body::HardLink(target) = &entry.body {
            self.target(target)?;
        }
        match self.seen.entry(digest(&entry.path)) {
            MapEntry::Occupied(_) => Err("its name is in the archive twice"),
            MapEntry::Vacant(free) if entry.path.is_empty() => Ok(*free.insert(TOP)),
            MapEntry::Vacant(free) if entry.body == Body::Directory => {
                Ok(*free.insert(self.directories.add(directory, name)))
            }
            MapEntry::Vacant(free) => {
                free.insert(LEAF);
                Ok(directory)
            }
        }
    }

    fn directory(&mut self, path: &[u8]) -> Option<usize> {
        if self.seen.is_empty() || self.last.0 == path {
            return Some(self.last.1).filter(|_| !self.seen.is_empty());
        }
        let number = *self.seen.get(&digest(path)).filter(|number| **number != LEAF)?;
        self.last.0.clear();
        self.last.0.extend_from_slice(path);
        self.last.1 = number;
        Some(number)
    }

    /// The directory and name of a hard link's target.
    pub fn target<'a>(&mut self, target: &'a [u8]) -> Result<(usize, &'a [u8]), &'static str> {
        if self.seen.get(&digest(target)) != Some(&LEAF) {
            return Err("it is a link to what is no file of the archive");
        }
        let (directory, name) = paths::split(target);
        let directory = self.seen.get(&digest(directory)).ok_or("its directory is not in the archive")?;
        Ok((*directory, name))
    }
}
