//! The calls of a job, which a script can make fail.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Errno;
use crate::script::{Fault, Script};

/// A job with a script.
#[derive(Debug, Default)]
struct Scripted {
    script: Script,
    /// The process is killed after this call if it changes the store, otherwise before the next one.
    dying: bool,
    dead: bool,
    room: Option<Room>,
}

/// A directory with little space.
#[derive(Debug, Clone)]
pub struct Room {
    pub directory: PathBuf,
    /// Bytes that its files can have together.
    pub bytes: u64,
    /// The same as statfs(2) shows it: less for what is reserved for root, more with a quota.
    pub shown: u64,
}

impl Room {
    /// Bytes of its files, in blocks of 1 KiB.
    fn used(&self) -> u64 {
        let files = fs::read_dir(&self.directory).into_iter().flatten();
        let sizes = files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len()));
        sizes.map(|size| size.next_multiple_of(1024)).sum()
    }
}

/// The error of all calls after the kill. No code of the product sees it, because its process would not exist.
const DEAD: Errno = Errno(libc::EOWNERDEAD);

/// The system calls of one job. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Calls(Option<Arc<Mutex<Scripted>>>);

impl Calls {
    /// Calls without a script.
    pub fn new() -> Calls {
        Calls::default()
    }

    /// With a fault at call `number`; `None` only counts the calls.
    pub fn with_fault(fault: Option<(usize, Fault)>) -> Calls {
        let scripted = Scripted { script: Script::new(fault), ..Scripted::default() };
        Calls(Some(Arc::new(Mutex::new(scripted))))
    }

    /// With a directory in which all files are written, which may get full.
    pub fn with_room(room: Room) -> Calls {
        Calls(Some(Arc::new(Mutex::new(Scripted { room: Some(room), ..Scripted::default() }))))
    }

    /// The bytes that statfs(2) shows as available for this directory, if a script says so.
    pub(super) fn shown_room(&self, inode: u64) -> Option<u64> {
        let scripted = self.state()?;
        let room = scripted.room.as_ref()?;
        let is_it = fs::metadata(&room.directory).is_ok_and(|found| found.ino() == inode);
        is_it.then(|| room.shown.saturating_sub(room.used()))
    }

    fn state(&self) -> Option<MutexGuard<'_, Scripted>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All calls so far, as text; empty without a script.
    pub fn transcript(&self) -> Vec<String> {
        self.state().map(|scripted| scripted.script.transcript.clone()).unwrap_or_default()
    }

    /// Called before a system call.
    pub(super) fn enter(&self, call: &'static str, object: impl FnOnce() -> String) -> Result<(), Errno> {
        match self.state() {
            None => Ok(()),
            Some(mut scripted) => scripted.step(call, &object()).map(|_| ()),
        }
    }

    /// Called before a system call that transfers bytes; returns how many it may transfer.
    pub(super) fn transfer(&self, call: &'static str, bytes: usize) -> Result<usize, Errno> {
        match self.state() {
            None => Ok(bytes),
            Some(mut scripted) => {
                let short = scripted.step(call, &format!("{bytes} bytes"))?;
                let bytes = if short { bytes.div_ceil(2) } else { bytes };
                match &scripted.room {
                    Some(room) if call == "write" => match room.bytes.saturating_sub(room.used()) {
                        0 => Err(Errno::NOSPC),
                        left => Ok(bytes.min(usize::try_from(left).unwrap_or(bytes))),
                    },
                    _ => Ok(bytes),
                }
            }
        }
    }

    /// Called after a system call that changed the store.
    pub(super) fn leave(&self) -> Result<(), Errno> {
        match self.state() {
            Some(mut scripted) if scripted.dying => {
                scripted.dead = true;
                Err(DEAD)
            }
            _ => Ok(()),
        }
    }
}

impl Scripted {
    /// Counts a call; true if it is to be short.
    fn step(&mut self, call: &str, object: &str) -> Result<bool, Errno> {
        if self.dead || self.dying {
            self.dead = true;
            return Err(DEAD);
        }
        let text = if object.is_empty() { call.to_owned() } else { format!("{call} {object}") };
        match self.script.enter(text) {
            Some(Fault::Fail(errno)) => Err(errno),
            Some(Fault::KillBefore) => {
                self.dead = true;
                Err(DEAD)
            }
            fault => {
                self.dying = fault == Some(Fault::KillAfter);
                Ok(fault == Some(Fault::Short))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::linux::ramdisk::script::*;

    #[test]
    fn a_script_counts_calls_and_injects_the_fault() {
        let calls = Calls::with_fault(Some((2, Fault::Fail(Errno::NOSPC))));
        assert_eq!(calls.enter("open", String::new), Ok(()));
        assert_eq!(calls.transfer("write", 10), Err(Errno::NOSPC));
        assert_eq!(calls.transfer("write", 10), Ok(10));
        assert_eq!(calls.transcript(), ["open", "write 10 bytes", "write 10 bytes"]);

        let calls = Calls::with_fault(Some((1, Fault::Short)));
        assert_eq!((calls.transfer("write", 5), calls.transfer("write", 5)), (Ok(3), Ok(5)));
    }

    #[test]
    fn calls_after_a_kill_have_no_effect() {
        let calls = Calls::with_fault(Some((1, Fault::KillBefore)));
        assert_eq!(calls.enter("open", String::new), Err(DEAD));
        assert_eq!(calls.enter("open", String::new), Err(DEAD));
        assert!(calls.transcript().len() == 1);

        let calls = Calls::with_fault(Some((1, Fault::KillAfter)));
        assert_eq!(calls.enter("renameat", String::new), Ok(()));
        assert_eq!(calls.leave(), Err(DEAD));
        assert_eq!(calls.clone().enter("open", String::new), Err(DEAD));
    }
}
