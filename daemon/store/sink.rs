//! Where a walk through a tree puts what it reads: into a store, or into another tree.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

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

/// Bytes of a tree for each block of contents, its hash, and for a run of them beside a hole, at most.
const EACH: u64 = 32;
const RUN: u64 = 4 + 10;
/// Bytes, in whole blocks, that are read before the other thread gets them, and how many such batches may wait for it.
const BATCH: usize = 32 * BLOCK;
const BATCHES: usize = 4;

/// What was read: an entry as it is in the tree or contents, with the length of either in [`Batch::bytes`]; a hole; the end of a file.
enum Step {
    Entry(usize),
    Data(usize),
    Hole(u64),
    Close,
}

#[derive(Default)]
struct Batch {
    steps: Vec<Step>,
    bytes: Vec<u8>,
}

/// Passes what is read to another thread, which [`shelve`] has started.
pub struct Shelving {
    sender: SyncSender<Batch>,
    batch: Batch,
    /// Bytes of the tree, at most.
    tree: u64,
}

impl Shelving {
    fn step(&mut self, step: Step) -> Result<(), TransferError> {
        self.batch.steps.push(step);
        if self.batch.bytes.len() < BATCH { Ok(()) } else { self.send() }
    }

    fn send(&mut self) -> Result<(), TransferError> {
        // The receiver ends early only with an error of its own.
        self.sender.send(std::mem::take(&mut self.batch)).map_err(|_| TransferError::Ended)
    }
}

impl Sink for Shelving {
    fn add(&mut self, entry: Entry, blocks: u64) -> Result<bool, TransferError> {
        let start = self.batch.bytes.len();
        entry.put(&mut self.batch.bytes);
        let length = self.batch.bytes.len() - start;
        let tree = self.tree.saturating_add(length as u64);
        if tree.saturating_add(blocks.saturating_mul(EACH + RUN)) > TREE as u64 {
            self.batch.bytes.truncate(start);
            return Ok(false);
        }
        self.tree = tree;
        self.step(Step::Entry(length))?;
        Ok(true)
    }

    fn data(&mut self, data: &[u8]) -> Result<(), TransferError> {
        self.tree += data.len().div_ceil(BLOCK) as u64 * EACH;
        // Up to 16 MiB at once.
        data.chunks(BATCH).try_for_each(|data| {
            self.batch.bytes.extend_from_slice(data);
            self.step(Step::Data(data.len()))
        })
    }

    fn hole(&mut self, blocks: u64) -> Result<(), TransferError> {
        self.tree += RUN;
        self.step(Step::Hole(blocks))
    }

    fn close(&mut self) -> Result<(), TransferError> {
        self.tree += RUN;
        self.step(Step::Close)
    }
}

/// Puts contents that `work` reads and that are not in the store yet into frames, and makes the tree, in a thread of its own: hashing takes
/// about as long as reading.
pub fn shelve<T>(
    shelf: &Shelf<'_>,
    frames: &mut Frames<'_, '_>,
    work: impl FnOnce(&mut Shelving) -> Result<T, TransferError>,
) -> Result<(T, Vec<u8>), TransferError> {
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(BATCHES);
        let shelved = scope.spawn(move || put(shelf, frames, &receiver));
        let mut shelving = Shelving { sender, batch: Batch::default(), tree: 0 };
        let worked = work(&mut shelving).and_then(|worked| shelving.send().map(|()| worked));
        // Ends the thread.
        drop(shelving);
        // Its error is the cause of one of the work.
        let tree = shelved.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))?;
        worked.map(|worked| (worked, tree))
    })
}

fn put(
    shelf: &Shelf<'_>,
    frames: &mut Frames<'_, '_>,
    receiver: &Receiver<Batch>,
) -> Result<Vec<u8>, TransferError> {
    let (mut tree, mut runs) = (Vec::new(), Runs::default());
    for Batch { steps, bytes } in receiver {
        let mut rest = &bytes[..];
        for step in steps {
            match step {
                Step::Entry(length) => {
                    let (entry, after) = rest.split_at(length);
                    tree.extend_from_slice(entry);
                    rest = after;
                }
                Step::Data(length) => {
                    let (data, after) = rest.split_at(length);
                    for block in data.chunks(BLOCK) {
                        let hash = format::hash(block);
                        runs.content(&mut tree, &hash);
                        if shelf.find(&hash).is_none() {
                            frames.add(hash, block)?;
                        }
                    }
                    rest = after;
                }
                Step::Hole(blocks) => runs.hole(&mut tree, blocks),
                Step::Close => runs.end(&mut tree),
            }
        }
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_takes_no_more_memory_than_small_ones() {
        let (sender, receiver) = sync_channel(64);
        let mut shelving = Shelving { sender, batch: Batch::default(), tree: 0 };
        shelving.batch.bytes.resize(BATCH - 1, 0);
        let file = vec![0; (16 << 20) - 1];
        shelving.data(&file).unwrap();
        shelving.close().unwrap();
        shelving.send().unwrap();
        drop(shelving);
        let batches: Vec<Batch> = receiver.iter().collect();
        assert!(batches.iter().all(|batch| batch.bytes.len() <= 2 * BATCH));
        assert_eq!(batches.iter().map(|batch| batch.bytes.len()).sum::<usize>(), BATCH - 1 + file.len());
    }
}
