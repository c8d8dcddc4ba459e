//! Where a walk through a tree puts what it reads: into a store, or into another tree.

use super::format::tree::{Entry, Runs};
use super::format::{self, BLOCK, TREE};
use super::frames::Frames;
use super::shelf::Shelf;
use super::transfer_error::TransferError;

/// Takes the entries of a tree in its order. The contents of a file follow its entry.
pub trait Sink {
    /// Adds an entry whose file has at most this number of blocks; false if it cannot be kept.
    fn add(&mut self, entry: Entry, blocks: u64) -> Result<bool, TransferError>;
    /// Adds contents of the last file: whole blocks, but for the end of the file.
    fn data(&mut self, data: &[u8]) -> Result<(), TransferError>;
    /// Adds a hole of the last file, whole blocks or up to its end.
    fn hole(&mut self, blocks: u64) -> Result<(), TransferError>;
    /// Ends the contents of the last file.
    fn close(&mut self) -> Result<(), TransferError>;
}

/// Puts contents that are not in the store yet into frames, and makes the tree.
pub struct Shelving<'a, 'b, 's> {
    pub shelf: &'a Shelf<'s>,
    pub frames: &'a mut Frames<'b, 's>,
    pub tree: Vec<u8>,
    runs: Runs,
}

impl<'a, 'b, 's> Shelving<'a, 'b, 's> {
    pub fn new(shelf: &'a Shelf<'s>, frames: &'a mut Frames<'b, 's>) -> Shelving<'a, 'b, 's> {
        Shelving { shelf, frames, tree: Vec::new(), runs: Runs::default() }
    }
}

/// Bytes of a tree for each block of contents at most: a hash, and a run for itself beside a hole.
const EACH: u64 = 32 + 4 + 10;

impl Sink for Shelving<'_, '_, '_> {
    fn add(&mut self, entry: Entry, blocks: u64) -> Result<bool, TransferError> {
        let start = self.tree.len();
        entry.put(&mut self.tree);
        let most = blocks.saturating_mul(EACH).saturating_add(self.tree.len() as u64);
        let has_room = most <= TREE as u64;
        if !has_room {
            self.tree.truncate(start);
        }
        Ok(has_room)
    }

    fn data(&mut self, data: &[u8]) -> Result<(), TransferError> {
        for block in data.chunks(BLOCK) {
            let hash = format::hash(block);
            self.runs.content(&mut self.tree, &hash);
            if self.shelf.find(&hash).is_none() {
                self.frames.add(hash, block)?;
            }
        }
        Ok(())
    }

    fn hole(&mut self, blocks: u64) -> Result<(), TransferError> {
        self.runs.hole(&mut self.tree, blocks);
        Ok(())
    }

    fn close(&mut self) -> Result<(), TransferError> {
        self.runs.end(&mut self.tree);
        Ok(())
    }
}
