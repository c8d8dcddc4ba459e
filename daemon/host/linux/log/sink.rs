//! Where lines go.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SendFlags, SocketAddrUnix, sendto};

use super::entry::Line;
use crate::linux::clock::monotonic;
use crate::linux::files::{below, describe};
use crate::out;
use logic::log::{Level, Target, put_field};

const SOCKET: &str = "/run/systemd/journal/socket";
const KERNEL_LOG: &str = "/dev/kmsg";

/// Messages of the generator for the journal: each with its length before it, four bytes, the lowest first.
const KEPT: &str = "/run/zramd/generator.log";
/// Most bytes of them.
const MOST: usize = 1024 * 1024;
/// Time to wait for a journal that is full. After that, messages are lost at once until it takes one.
const PATIENCE: Duration = Duration::from_millis(20);

pub(super) enum Sink {
    Journal(Journal),
    Console,
    Kmsg(File),
    /// Of a generator.
    Kept(Kept),
    Null,
}

impl Sink {
    /// Opens a target; `connected`: standard error is connected to the journal.
    pub(super) fn open(target: Target, connected: bool) -> Result<Sink, String> {
        let journal = || Journal::open(Path::new(SOCKET)).map(Sink::Journal);
        let failed = |name: &str, error: &io::Error| format!("cannot log to {name}: {}", describe(error));
        match target {
            // Standard error reaches it, too, without fields.
            Target::Auto if connected => Ok(journal().unwrap_or(Sink::Console)),
            Target::Auto | Target::Console => Ok(Sink::Console),
            Target::Journal => journal().map_err(|error| failed(SOCKET, &error)),
            Target::Kmsg => kernel_log().map(Sink::Kmsg).map_err(|error| failed(KERNEL_LOG, &error)),
            Target::Null => Ok(Sink::Null),
        }
    }

    pub(super) fn kept(root: &Path) -> Sink {
        Sink::Kept(Kept { path: below(root, KEPT), kernel: None, entries: Vec::new() })
    }

    pub(super) fn write(&mut self, line: &Line) {
        match self {
            Sink::Journal(journal) => journal.send(line),
            Sink::Console => out::message(&line.text()),
            // One that is not written is lost, as with printk.
            Sink::Kmsg(kernel) => drop(kernel.write_all(line.record().as_bytes())),
            Sink::Kept(kept) => kept.put(line),
            Sink::Null => {}
        }
    }
}

fn kernel_log() -> io::Result<File> {
    OpenOptions::new().write(true).open(KERNEL_LOG)
}

/// A connection to the journal.
pub(super) struct Journal {
    socket: UnixDatagram,
    address: SocketAddrUnix,
    /// Messages that it has not taken since the last one that it took.
    lost: u64,
}

impl Journal {
    fn open(path: &Path) -> io::Result<Journal> {
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let address = SocketAddrUnix::new(path)?;
        // The journal ignores an empty datagram; without a journal this is an error. One that is full is there.
        match sendto(&socket, &[], SendFlags::DONTWAIT | SendFlags::NOSIGNAL, &address) {
            Ok(_) | Err(Errno::AGAIN) => Ok(Journal { socket, address, lost: 0 }),
            Err(error) => Err(error.into()),
        }
    }

    fn send(&mut self, line: &Line) {
        if !self.send_entry(&line.entry()) {
            self.lost += 1;
        } else if self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            let message = format!("{lost} messages are lost, because the journal did not take them");
            self.send_entry(&Line::new(Level::Warning, super::identifier(), &message).entry());
        }
    }

    fn send_entry(&self, entry: &[u8]) -> bool {
        // Waits only if the last one did not have to be given up.
        let flags = if self.lost > 0 { SendFlags::DONTWAIT } else { SendFlags::empty() };
        sendto(&self.socket, entry, flags | SendFlags::NOSIGNAL, &self.address).is_ok()
    }
}

/// Messages of a generator.
pub(super) struct Kept {
    path: PathBuf,
    kernel: Option<File>,
    entries: Vec<u8>,
}

impl Kept {
    fn put(&mut self, line: &Line) {
        if line.level <= Level::Warning {
            if self.kernel.is_none() {
                self.kernel = kernel_log().ok();
            }
            let record = line.record();
            let is_written =
                self.kernel.as_mut().is_some_and(|kernel| kernel.write_all(record.as_bytes()).is_ok());
            if !is_written {
                out::message(&line.text());
            }
            return;
        }
        let mut entry = line.entry();
        // The journal receives it later.
        put_field(&mut entry, "ZRAMD_MONOTONIC_USEC", &monotonic().as_micros().to_string());
        if let Ok(length) = u32::try_from(entry.len())
            && self.entries.len() + entry.len() <= MOST
        {
            self.entries.extend_from_slice(&length.to_le_bytes());
            self.entries.append(&mut entry);
        }
    }

    /// Replaces the file, if there is something to write.
    pub(super) fn write(&mut self) {
        if self.entries.is_empty() {
            return;
        }
        let path = &self.path;
        let partial = path.with_extension("new");
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            // The configuration may be readable by root only.
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
            file.write_all(&self.entries)?;
            fs::rename(&partial, path)
        };
        if let Err(error) = write() {
            out::message(&format!("{}: {}", path.display(), describe(&error)));
        }
    }
}

/// Sends the messages of the generator below `root`, and removes their file.
pub(super) fn hand_over(root: &Path, journal: &mut Journal) {
    let path = below(root, KEPT);
    // Set-up services run in parallel: only one of them renames it.
    let taken = path.with_extension(std::process::id().to_string());
    if fs::rename(&path, &taken).is_err() {
        return;
    }
    let entries = fs::read(&taken).unwrap_or_default();
    fs::remove_file(&taken).ok();
    for entry in split(&entries) {
        journal.send_entry(entry);
    }
}

/// The entries in the file of the generator; what was not written whole is left out.
fn split(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (entry, after) = after.split_at_checked(length)?;
        rest = after;
        Some(entry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_generator_says_is_kept_whole() {
        let mut kept = Kept { path: PathBuf::new(), kernel: None, entries: Vec::new() };
        for text in ["read", "decided\nPRIORITY=0"] {
            kept.put(&Line::new(Level::Debug, "zramd-setup", text));
        }
        let whole: Vec<Vec<u8>> = split(&kept.entries).map(<[u8]>::to_vec).collect();
        assert_eq!(whole.len(), 2);
        assert!(whole[0].starts_with(b"MESSAGE=read\nPRIORITY=7\nSYSLOG_IDENTIFIER=zramd-setup\n"));
        assert!(whole[1].starts_with(b"MESSAGE\n\x12\0\0\0\0\0\0\0decided\nPRIORITY=0\n"));
        // Cut off, or with a length that is wrong.
        for end in 0..kept.entries.len() {
            assert!(split(&kept.entries[..end]).count() < 2);
        }
        assert_eq!(split(&[0xff; 64]).count(), 0);
    }

    #[test]
    fn much_that_the_generator_says_is_bounded() {
        let mut kept = Kept { path: PathBuf::new(), kernel: None, entries: Vec::new() };
        let long = "x".repeat(20_000);
        (0..200).for_each(|_| kept.put(&Line::new(Level::Info, "zramd-setup", &long)));
        assert!(kept.entries.len() <= MOST && split(&kept.entries).count() > 10);
    }

    #[test]
    fn a_journal_that_is_full_or_gone_loses_messages_and_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        assert!(Journal::open(&path).is_err(), "there is none");
        let server = UnixDatagram::bind(&path).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        // As many as debug makes in a second, and the other end does not read.
        (0..10_000).for_each(|_| journal.send(&Line::new(Level::Debug, "zramd", "read")));
        let lost = journal.lost;
        assert!(lost > 0);
        let mut buffer = [0; 4096];
        let mut next =
            || server.recv(&mut buffer).map(|length| String::from_utf8_lossy(&buffer[..length]).into_owned());
        server.set_nonblocking(true).unwrap();
        while next().is_ok() {}
        journal.send(&Line::new(Level::Info, "zramd", "again"));
        assert!(next().unwrap().starts_with("MESSAGE=again\n"));
        assert!(next().unwrap().starts_with(&format!("MESSAGE={lost} messages are lost")));
        drop(server);
        journal.send(&Line::new(Level::Info, "zramd", "unheard"));
        assert_eq!(journal.lost, 1);
    }
}
