//! Reads a compressed archive to its end, and compares its digest with the manifest.

use std::io::BufReader;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use host::HostError;
use host::linux::ramdisk::Calls;
use logic::ramdisk::manifest::Manifest;

use super::archive::ArchiveReader;
use super::pipe::{AHEAD, CHUNK, Chunk, Chunks};
use super::transfer_error::TransferError;

/// The largest window that the decompressor accepts: larger than our levels use.
const WINDOW_LOG: u32 = 27;

/// Has `work` read an archive, then compares the digest of all that was read with the manifest.
pub fn unpack<T>(
    calls: &Calls,
    archive: BorrowedFd<'_>,
    manifest: &Manifest,
    work: impl FnOnce(&mut ArchiveReader<BufReader<zstd::Decoder<'static, Chunks>>>) -> Result<T, TransferError>,
) -> Result<T, TransferError> {
    let (done, digest) = unpack_any(calls, archive, work)?;
    // The digest is checked first: damaged data looks like anything to the decompressor.
    if digest != manifest.digest {
        let what = match done {
            Err(TransferError::Bad(what)) => format!(", {what}"),
            _ => String::new(),
        };
        return Err(TransferError::Bad(format!("its digest does not match its manifest{what}")));
    }
    done.map_err(|error| match error {
        TransferError::Bad(what) => TransferError::Unusable(what),
        other => other,
    })
}

/// Has `work` read an archive. Returns its result, and the digest of all that was read.
pub fn unpack_any<T>(
    calls: &Calls,
    archive: BorrowedFd<'_>,
    work: impl FnOnce(&mut ArchiveReader<BufReader<zstd::Decoder<'static, Chunks>>>) -> Result<T, TransferError>,
) -> Result<(Result<T, TransferError>, String), TransferError> {
    let (sender, receiver) = sync_channel(AHEAD);
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || read_archive(calls, archive, &sender));
        // The reader is dropped here, so that the thread above does not block on it.
        let done = decompress(receiver).and_then(|mut reader| work(&mut reader));
        let digest = reading.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        // A read error looks like a truncated archive to the decompressor.
        let found = digest.map_err(TransferError::Archive)?;
        Ok((done, format!("blake3:{}", found.to_hex())))
    })
}

fn decompress(
    receiver: Receiver<Chunk>,
) -> Result<ArchiveReader<BufReader<zstd::Decoder<'static, Chunks>>>, TransferError> {
    let mut decoder =
        zstd::Decoder::with_buffer(Chunks::new(receiver)).map_err(|error| TransferError::reading(&error))?;
    decoder.window_log_max(WINDOW_LOG).map_err(|error| TransferError::reading(&error))?;
    Ok(ArchiveReader::new(BufReader::with_capacity(128 << 10, decoder)))
}

/// Reads the archive ahead of the decompressor, and to its end even if the decompressor has failed. Returns its digest.
fn read_archive(
    calls: &Calls,
    archive: BorrowedFd<'_>,
    sender: &SyncSender<Chunk>,
) -> Result<blake3::Hash, HostError> {
    let fail = |errno| {
        sender.send(Err(errno)).ok();
        HostError::new("the archive", "read", errno)
    };
    calls.will_read(archive);
    calls.rewind(archive).map_err(fail)?;
    let mut hash = blake3::Hasher::new();
    loop {
        let mut chunk = vec![0; CHUNK];
        let length = calls.read(archive, &mut chunk).map_err(fail)?;
        if length == 0 {
            return Ok(hash.finalize());
        }
        chunk.truncate(length);
        hash.update(&chunk);
        sender.send(Ok(chunk)).ok();
    }
}
