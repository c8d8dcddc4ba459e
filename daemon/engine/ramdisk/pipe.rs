//! Bytes on their way from one thread to another, so that reading, compressing and writing go on side by side.

use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::trouble::io_error;
use host::Errno;

/// Bytes that are handed on at once.
pub const CHUNK: usize = 512 << 10;
/// Chunks between two threads.
pub const AHEAD: usize = 6;

/// What one thread hands to the next: bytes, or that there will be no more though they were not all.
pub type Chunk = Result<Vec<u8>, Errno>;

/// The receiving end, as something to read from.
#[derive(Debug)]
pub struct Chunks {
    receiver: Receiver<Chunk>,
    present: Vec<u8>,
    at: usize,
}

impl Chunks {
    /// Reads what comes.
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

/// The sending end, as something to write to. What was not handed on when it is dropped is lost: see [`Pipe::finish`].
#[derive(Debug)]
pub struct Pipe {
    sender: SyncSender<Chunk>,
    chunk: Vec<u8>,
}

impl Pipe {
    /// Both ends.
    pub fn new() -> (Pipe, Receiver<Chunk>) {
        let (sender, receiver) = sync_channel(AHEAD);
        (Pipe { sender, chunk: Vec::with_capacity(CHUNK) }, receiver)
    }

    fn send(&mut self) -> io::Result<()> {
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK));
        self.sender.send(Ok(chunk)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Hands on the rest, after which the other end sees the end.
    pub fn finish(mut self) -> io::Result<()> {
        if self.chunk.is_empty() { Ok(()) } else { self.send() }
    }
}

impl Write for Pipe {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        // Never more than one chunk, so that none has to grow.
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
