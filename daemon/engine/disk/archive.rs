//! An archive becomes entries again: strictly, since it may have been tampered with or be cut off.

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::io::{self, Read};

use crate::logic::disk::entry::{Body, Entry, Segment};
use crate::logic::disk::header::{self, BLOCK, Head};
use crate::logic::disk::paths;

use super::trouble::Trouble;

/// Reads the entries of an uncompressed archive, one after the other.
#[derive(Debug)]
pub struct ArchiveReader<R> {
    input: R,
    /// Bytes of the present entry that were not read yet, and zeros after them.
    left: u64,
    padding: usize,
    records: Vec<u8>,
    entries: u64,
}

impl<R: Read> ArchiveReader<R> {
    /// Starts at the first block.
    pub fn new(input: R) -> ArchiveReader<R> {
        ArchiveReader { input, left: 0, padding: 0, records: Vec::new(), entries: 0 }
    }

    /// The next entry; nothing at the end, after which the input has been read to its own end.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, Trouble> {
        self.skip()?;
        self.records.clear();
        let mut extended = false;
        loop {
            let mut block = [0; BLOCK];
            self.exactly(&mut block)?;
            match header::look(&block).map_err(Trouble::Bad)? {
                Head::End if extended => {
                    return Err(Trouble::Bad("an extended header without entry".to_owned()));
                }
                Head::End if self.entries == 0 => return Err(Trouble::Bad("it is empty".to_owned())),
                Head::End => return self.end().map(|()| None),
                Head::Extended(_) if extended => return Err(Trouble::Bad("two extended headers".to_owned())),
                Head::Extended(length) => {
                    extended = true;
                    // Bounded by `look`, but memory is taken only for what is really there.
                    let read = self.input.by_ref().take(length).read_to_end(&mut self.records);
                    if read.map_err(|error| Trouble::reading(&error))? as u64 != length {
                        return Err(Trouble::Bad("it ends too early".to_owned()));
                    }
                    let padding = header::padding(length);
                    self.exactly(&mut [0; BLOCK][..padding])?;
                }
                Head::Entry => {
                    let entry = header::decode(&block, &self.records).map_err(Trouble::Bad)?;
                    self.entries += 1;
                    if entry.path.is_empty() != (self.entries == 1) {
                        return Err(Trouble::Bad("it does not begin with the disk itself, once".to_owned()));
                    }
                    self.left = entry.stored();
                    self.padding = header::padding(self.left);
                    return Ok(Some(entry));
                }
            }
        }
    }

    /// Reads the map of holes, with which the contents of such a file begin; then exactly the data of the segments is left.
    pub fn read_map(&mut self, size: u64) -> Result<Vec<Segment>, Trouble> {
        let mut text = Vec::new();
        loop {
            if self.left < BLOCK as u64 {
                return Err(Trouble::Bad("a map of holes that is cut off".to_owned()));
            }
            let at = text.len();
            text.resize(at + BLOCK, 0);
            self.exactly(&mut text[at..])?;
            self.left -= BLOCK as u64;
            if let Some((segments, taken)) = header::parse_map(&text, size).map_err(Trouble::Bad)? {
                // In order and within the size, so the sum is within it, too.
                let data: u64 = segments.iter().map(|segment| segment.length).sum();
                if taken != text.len() || data != self.left {
                    return Err(Trouble::Bad("a map of holes that does not match its data".to_owned()));
                }
                return Ok(segments);
            }
        }
    }

    /// Reads contents of the present entry; all of `buffer`, which must not be larger than what is left.
    pub fn read_data(&mut self, buffer: &mut [u8]) -> Result<(), Trouble> {
        if buffer.len() as u64 > self.left {
            return Err(Trouble::Bad("contents that are too short".to_owned()));
        }
        self.exactly(buffer)?;
        self.left -= buffer.len() as u64;
        Ok(())
    }

    /// Reads and checks what is left of the present entry.
    pub fn skip(&mut self) -> Result<(), Trouble> {
        let wanted = self.left + self.padding as u64;
        if wanted > 0 {
            let copied = io::copy(&mut self.input.by_ref().take(wanted), &mut io::sink());
            if copied.map_err(|error| Trouble::reading(&error))? != wanted {
                return Err(Trouble::Bad("it ends too early".to_owned()));
            }
        }
        (self.left, self.padding) = (0, 0);
        Ok(())
    }

    fn exactly(&mut self, buffer: &mut [u8]) -> Result<(), Trouble> {
        self.input.read_exact(buffer).map_err(|error| Trouble::reading(&error))
    }

    /// After the first block of zeros: zeros to the end of the input. Reading that far makes the decompressor compare its checksum.
    fn end(&mut self) -> Result<(), Trouble> {
        let mut block = [0; BLOCK];
        self.exactly(&mut block)?;
        loop {
            if block.iter().any(|byte| *byte != 0) {
                return Err(Trouble::Bad("something after its end".to_owned()));
            }
            match self.input.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(length) => block[length..].fill(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => block.fill(0),
                Err(error) => return Err(Trouble::reading(&error)),
            }
        }
    }

    /// What it reads from.
    pub fn into_inner(self) -> R {
        self.input
    }
}

/// Reads an archive to its end without making anything of it: how many entries, and bytes of files, it has. What is found good
/// can be loaded: it is checked here for everything that extraction refuses.
pub fn check<R: Read>(
    reader: &mut ArchiveReader<R>,
    mut each: impl FnMut(u64) -> bool,
) -> Result<(u64, u64), Trouble> {
    let mut bytes = 0_u64;
    let mut names = Names::default();
    while let Some(entry) = reader.next_entry()? {
        if let Body::Sparse { size, .. } = entry.body {
            reader.read_map(size)?;
            bytes = bytes.saturating_add(size);
        } else {
            bytes = bytes.saturating_add(entry.stored());
        }
        names.take(entry)?;
        if !each(bytes) {
            return Err(Trouble::Ended);
        }
    }
    names.finish()?;
    Ok((reader.entries, bytes))
}

/// The names of an archive.
#[derive(Default)]
struct Names {
    /// Each with whether it is a directory.
    made: HashMap<Vec<u8>, bool>,
    /// Further names, which have to wait until all files are there, and what they are names of.
    links: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Names {
    fn take(&mut self, entry: Entry) -> Result<(), Trouble> {
        if let Body::HardLink(target) = entry.body {
            self.links.push((entry.path, target));
            return Ok(());
        }
        self.add(entry.path, matches!(entry.body, Body::Directory))
    }

    fn add(&mut self, path: Vec<u8>, is_directory: bool) -> Result<(), Trouble> {
        let (folder, _) = paths::split(&path);
        if !path.is_empty() && self.made.get(folder) != Some(&true) {
            return Err(no_folder(folder));
        }
        match self.made.entry(path) {
            MapEntry::Occupied(found) => Err(twice(found.key())),
            MapEntry::Vacant(free) => {
                free.insert(is_directory);
                Ok(())
            }
        }
    }

    fn finish(mut self) -> Result<(), Trouble> {
        for (path, target) in std::mem::take(&mut self.links) {
            match self.made.get(&target) {
                None => return Err(no_target(&target)),
                Some(true) => return Err(directory_target(&target)),
                Some(false) => self.add(path, false)?,
            }
        }
        Ok(())
    }
}

/// An entry for whose directory there is none before it.
pub fn no_folder(folder: &[u8]) -> Trouble {
    Trouble::Bad(format!("something in {}, which is no directory of it", folder.escape_ascii()))
}

/// A name that two entries have.
pub fn twice(path: &[u8]) -> Trouble {
    Trouble::Bad(format!("{} is in it twice", path.escape_ascii()))
}

/// A further name of nothing.
pub fn no_target(target: &[u8]) -> Trouble {
    Trouble::Bad(format!("a link to {}, which it does not have", target.escape_ascii()))
}

/// A further name of a directory.
pub fn directory_target(target: &[u8]) -> Trouble {
    Trouble::Bad(format!("a link to the directory {}", target.escape_ascii()))
}
