//! A pipe of bytes between two threads, so that reading, compressing and writing run in parallel.

use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::transfer_error::io_error;
use host::Errno;

/// Size of a chunk in bytes.
pub const CHUNK: usize = 512 << 10;
/// Chunks buffered between two threads.
pub const AHEAD: usize = 6;

/// A chunk of data, or the error that ended the data early.
pub type Chunk = Result<Vec<u8>, Errno>;

/// The receiving end, as a reader.
#[derive(Debug)]
pub struct Chunks {
    receiver: Receiver<Chunk>,
    present: Vec<u8>,
    at: usize,
}

impl Chunks {
    /// Reads from `receiver`.
    pub fn new(receiver: Receiver<Chunk>) -> Chunks {
        Chunks { receiver, present: Vec::new(), at: 0 }
    }
}

impl BufRead for Chunks {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.present.len()
            && let Ok(next) = self.receiver.recv()
        {
            (self.present, self.at) = (next.map_err(io_error)?, 0);
        }
        Ok(&self.present[self.at..])
    }

    fn consume(&mut self, length: usize) {
        self.at += length;
    }
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let found = self.fill_buf()?;
        let length = found.len().min(buffer.len());
        buffer[..length].copy_from_slice(&found[..length]);
        self.consume(length);
        Ok(length)
    }
}

/// The sending end, as a writer. Dropping it loses the buffered data: see [`Pipe::finish`].
#[derive(Debug)]
pub struct Pipe {
    sender: SyncSender<Chunk>,
    chunk: Vec<u8>,
}

impl Pipe {
    /// Creates both ends.
    pub fn new() -> (Pipe, Receiver<Chunk>) {
        let (sender, receiver) = sync_channel(AHEAD);
        (Pipe { sender, chunk: Vec::with_capacity(CHUNK) }, receiver)
    }

    fn send(&mut self) -> io::Result<()> {
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK));
        self.sender.send(Ok(chunk)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Sends the buffered data, and closes the pipe.
    pub fn finish(mut self) -> io::Result<()> {
        if self.chunk.is_empty() { Ok(()) } else { self.send() }
    }
}

impl Write for Pipe {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        // Limited to one chunk, so that the buffer is never reallocated.
        let length = data.len().min(CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(&data[..length]);
        if self.chunk.len() == CHUNK {
            self.send()?;
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
