//! Writes a file of a store: packs contents into frames, which other threads compress and write.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use host::HostError;
use host::linux::ramdisk::Calls;
use zstd::zstd_safe::CParameter;

use super::directory::Store;
use super::format::{self, CONTENTS, Content, FRAME, Footer, Hash, Hashes, Head, START, STORED, Section};
use super::read;
use super::shelf::{self, Frame, Unpacker};
use super::transfer_error::TransferError;

/// Level of zstd: higher ones make files a little smaller and take much longer.
const LEVEL: i32 = 1;
/// Bytes after which the kernel is asked to start writing, which leaves less to write at the final sync.
const WRITE_BEHIND: u64 = 8 << 20;

/// Threads that compress.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(4)
}

/// The file of a save, which exists once something is written.
struct Out<'a> {
    store: &'a Store,
    /// Its temporary name; `None` to measure only.
    name: Option<String>,
    file: Option<OwnedFd>,
    end: u64,
    /// Bytes that the kernel was asked to write.
    begun: u64,
    index: Vec<u8>,
    failure: Option<TransferError>,
    /// Frames that are not written yet.
    pending: usize,
}

impl Out<'_> {
    fn write(&mut self, data: &[u8]) -> Result<(), TransferError> {
        let calls = self.store.calls();
        let fail = |error: HostError| TransferError::Store(error);
        if let Some(name) = &self.name {
            let is_new = self.file.is_none();
            let file = match self.file.take() {
                Some(file) => self.file.insert(file),
                None => self.file.insert(self.store.create(name).map_err(fail)?),
            };
            if is_new {
                self.store.put(file.as_fd(), &START).map_err(fail)?;
            }
            self.store.put(file.as_fd(), data).map_err(fail)?;
        }
        self.end += data.len() as u64;
        if let Some(file) = self.file.as_ref().filter(|_| self.end - self.begun >= WRITE_BEHIND) {
            calls.start_writing(file.as_fd(), self.begun, self.end - self.begun);
            // The piece before this one has had time to be written.
            if let Some(before) = self.begun.checked_sub(WRITE_BEHIND) {
                calls.let_go(file.as_fd(), before, WRITE_BEHIND);
            }
            self.begun = self.end;
        }
        Ok(())
    }

    fn section(&mut self, data: &[u8]) -> Result<Section, TransferError> {
        let offset = self.end;
        self.write(data)?;
        Ok(Section { offset, length: data.len() as u64, hash: format::hash(data) })
    }
}

/// The file, shared by all threads.
struct Shared<'s> {
    out: Mutex<Out<'s>>,
    /// A frame was written.
    written: Condvar,
}

impl<'s> Shared<'s> {
    fn lock(&self) -> MutexGuard<'_, Out<'s>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes contents, each once.
pub struct Frames<'a, 's> {
    shared: &'a Shared<'s>,
    sender: SyncSender<(Vec<u8>, Vec<Content>)>,
    raw: Vec<u8>,
    contents: Vec<Content>,
    /// All contents of this file.
    pub fresh: Hashes,
}

impl Frames<'_, '_> {
    /// Adds a content, unless it is in this file already.
    pub fn add(&mut self, hash: Hash, data: &[u8]) -> Result<(), TransferError> {
        if !self.fresh.insert(hash) {
            return Ok(());
        }
        if self.raw.len() + data.len() > FRAME || self.contents.len() == CONTENTS {
            self.flush()?;
        }
        self.raw.extend_from_slice(data);
        self.contents.push((hash, format::short(data.len())));
        Ok(())
    }

    /// Waits until everything so far is written; returns the bytes of all frames.
    pub fn settle(&mut self) -> Result<u64, TransferError> {
        self.flush()?;
        let out = self.shared.lock();
        let out = self.shared.written.wait_while(out, |out| out.pending > 0);
        let out = out.unwrap_or_else(PoisonError::into_inner);
        out.failure.clone().map_or(Ok(out.end - START.len() as u64), Err)
    }

    /// Hands the present frame to the other threads.
    pub fn flush(&mut self) -> Result<(), TransferError> {
        let mut out = self.shared.lock();
        if let Some(error) = &out.failure {
            return Err(error.clone());
        }
        if !self.contents.is_empty() {
            out.pending += 1;
            drop(out);
            let raw = std::mem::replace(&mut self.raw, Vec::with_capacity(FRAME));
            // The receivers exist until this is dropped.
            self.sender.send((raw, std::mem::take(&mut self.contents))).ok();
        }
        Ok(())
    }
}

/// A file without its end.
pub struct Written<'a> {
    out: Out<'a>,
    /// Number of contents in it.
    pub contents: usize,
}

/// Has `work` add contents to a file of this name, or measures only. The file is created when the first frame is written.
pub fn write<'a, T>(
    store: &'a Store,
    name: Option<String>,
    work: impl FnOnce(&mut Frames<'_, 'a>) -> Result<T, TransferError>,
) -> Result<(T, Written<'a>), TransferError> {
    let out = Out {
        store,
        name,
        file: None,
        end: START.len() as u64,
        begun: 0,
        index: Vec::new(),
        failure: None,
        pending: 0,
    };
    let shared = Shared { out: Mutex::new(out), written: Condvar::new() };
    let threads = threads();
    let worked = std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(2 * threads);
        let (shared, receiver) = (&shared, Arc::new(Mutex::new(receiver)));
        let work_on = |receiver: Arc<_>| scope.spawn(move || compress(&receiver, shared));
        let workers: Vec<_> = (0..threads).map(|_| work_on(Arc::clone(&receiver))).collect();
        // Dropped at the end, so that the threads end.
        let mut frames = Frames {
            shared,
            sender,
            raw: Vec::with_capacity(FRAME),
            contents: Vec::new(),
            fresh: Hashes::default(),
        };
        let worked = work(&mut frames).and_then(|worked| frames.flush().map(|()| worked));
        let contents = frames.fresh.len();
        drop(frames);
        for worker in workers {
            worker.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        }
        worked.map(|worked| (worked, contents))
    });
    let mut out = shared.out.into_inner().unwrap_or_else(PoisonError::into_inner);
    // An error of a thread is the cause of one of the work.
    match (worked, out.failure.take()) {
        (Ok((worked, contents)), None) => Ok((worked, Written { out, contents })),
        (_, Some(error)) | (Err(error), None) => Err(error),
    }
}

fn compress(receiver: &Mutex<Receiver<(Vec<u8>, Vec<Content>)>>, shared: &Shared<'_>) {
    let mut packed = Vec::with_capacity(STORED);
    let mut compressor = zstd::bulk::Compressor::new(LEVEL).and_then(|mut compressor| {
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(compressor)
    });
    loop {
        let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((raw, contents)) = next else { return };
        packed.clear();
        let length = match &mut compressor {
            Ok(compressor) => {
                compressor.compress_to_buffer(&raw, &mut packed).map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        let stored = format::hash(&packed);
        let mut out = shared.lock();
        out.pending -= 1;
        shared.written.notify_all();
        if out.failure.is_some() {
            // Empties the channel.
            continue;
        }
        let done = length.map_err(TransferError::Unusable).and_then(|length| {
            let head =
                Head { raw: format::short(raw.len()), stored: format::short(length), hash: stored, contents };
            let offset = out.end;
            let mut bytes = Vec::with_capacity(head.length());
            head.put(&mut bytes);
            out.write(&bytes)?;
            out.write(&packed)?;
            format::index(offset, &head, &mut out.index);
            Ok(())
        });
        out.failure = done.err();
    }
}

/// What the end of a file is made of.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    pub number: u64,
    pub tree: &'a [u8],
    pub tree_hash: Hash,
    /// The tree as it is stored, and its base.
    pub packed: &'a [u8],
    pub base: Option<Hash>,
    pub manifest: &'a [u8],
    /// Bytes of frames that are copies.
    pub copied_bytes: u64,
    /// Bytes that later saves may copy.
    pub allowance: u64,
}

impl Written<'_> {
    /// Bytes of the frames.
    pub fn bytes(&self) -> u64 {
        self.out.end - START.len() as u64
    }

    /// Bytes of the whole file, but for its manifest, with this number of bytes for its tree.
    pub fn measure(&self, tree: usize) -> u64 {
        self.out.end + self.out.index.len() as u64 + tree as u64
    }

    /// Completes the file, waits until its data are on disk, and reads them back from there. The file itself is on disk after
    /// [`Store::add`].
    pub fn end(
        &mut self,
        end: &End<'_>,
        base: &[u8],
        each: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), TransferError> {
        let copied_bytes = end.copied_bytes;
        let new_bytes = self.bytes().saturating_sub(copied_bytes);
        let out = &mut self.out;
        let index = std::mem::take(&mut out.index);
        let tree = out.section(end.packed)?;
        let index = out.section(&index)?;
        let manifest = out.section(end.manifest)?;
        let again = if end.base.is_none() { out.section(end.packed)? } else { Section::default() };
        let footer = Footer {
            number: end.number,
            allowance: u32::try_from(end.allowance >> 10).unwrap_or(u32::MAX),
            index,
            manifest,
            tree,
            again,
            tree_bytes: end.tree.len() as u64,
            tree_hash: end.tree_hash,
            base: end.base,
            new_bytes,
            copied_bytes,
        };
        out.write(&footer.bytes())?;
        out.write(&footer.bytes())?;
        let (store, size) = (out.store, out.end);
        let Some(file) = &out.file else { return Ok(()) };
        // Not fsync(2), which writes the journal as well: that is done once, when the file has its name.
        store.calls().let_go(file.as_fd(), 0, size);
        let read = read_back(store.calls(), file.as_fd(), size, &footer, base, each);
        read.map_err(|error| error.of(store.path()))
    }

    /// Size of the file.
    pub fn size(&self) -> u64 {
        self.out.end
    }

    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.out.file.as_ref().map(AsFd::as_fd)
    }
}

/// Reads a file as a load does.
fn read_back(
    calls: &Calls,
    file: BorrowedFd<'_>,
    size: u64,
    written: &Footer,
    base: &[u8],
    each: &mut dyn FnMut(u64) -> bool,
) -> Result<(), TransferError> {
    let wrong = |what: &str| TransferError::Bad(format!("{what} is not what was written"));
    if read::footer(calls, file, size)?.as_ref() != Ok(written) {
        return Err(wrong("the end of the file"));
    }
    let index = read::section(calls, file, written.index, usize::MAX)?;
    let frames = format::parse_index(&index, size).ok_or_else(|| wrong("the index"))?;
    read::section(calls, file, written.manifest, usize::MAX)?;
    for copy in [written.tree, written.again].into_iter().take(if written.base.is_none() { 2 } else { 1 }) {
        shelf::unpack_tree(&read::section(calls, file, copy, format::TREE)?, base, written)?;
    }
    check_frames(calls, &frames, |_| Ok(file), each)
}

/// Reads frames, in this order, and checks every content in other threads. `each` receives the raw bytes so far, and returns
/// whether to continue.
pub fn check_frames<'f>(
    calls: &Calls,
    frames: &[(u64, Head)],
    mut file: impl FnMut(usize) -> Result<BorrowedFd<'f>, TransferError>,
    each: &mut dyn FnMut(u64) -> bool,
) -> Result<(), TransferError> {
    let failure = Mutex::new(None);
    let threads = threads();
    let read = std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<(&Head, Vec<u8>, Vec<u8>)>(2 * threads);
        let (receiver, failure) = (Arc::new(Mutex::new(receiver)), &failure);
        for _ in 0..threads {
            let receiver = Arc::clone(&receiver);
            scope.spawn(move || {
                let mut unpacker = Unpacker::default();
                loop {
                    let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((head, written, stored)) = next else { return };
                    if let Err(error) = check_frame(&mut unpacker, head, &written, &stored) {
                        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    }
                }
            });
        }
        let mut done = 0;
        for (at, (offset, head)) in frames.iter().enumerate() {
            let file = file(at)?;
            let mut bytes = read::read(calls, file, *offset, head.length() + head.stored as usize)?;
            let stored = bytes.split_off(head.length());
            done += u64::from(head.raw);
            if !each(done) {
                return Err(TransferError::Ended);
            }
            // The receivers exist until the sender is dropped.
            sender.send((head, bytes, stored)).ok();
        }
        Ok(())
    });
    let failed = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    read.and(failed.map_or(Ok(()), Err))
}

fn check_frame(
    unpacker: &mut Unpacker,
    head: &Head,
    written: &[u8],
    stored: &[u8],
) -> Result<(), TransferError> {
    if Head::parse(written).as_ref() != Some(head) {
        return Err(TransferError::Bad("the head of a frame does not match the index".to_owned()));
    }
    let Head { raw, hash, .. } = *head;
    let frame = Frame { offset: 0, raw, stored: head.stored, hash, is_damaged: false };
    let data = unpacker.unpack(&frame, stored)?;
    let mut at = 0;
    for (hash, length) in &head.contents {
        let content = &data[at..at + *length as usize];
        if format::hash(content) != *hash {
            return Err(TransferError::Unusable("a content does not match its hash".to_owned()));
        }
        at += content.len();
    }
    Ok(())
}
