//! Looks and changes at paths whose file system may not answer: a server of FUSE or NFS that is dead.
//!
//! A system call that waits for such a server may not end at a signal, and a process does not end before its threads do.
//! So a child makes the call, and is left behind if that takes too long.

use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::files;

/// Time that a file system has for an answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// As many paths without an answer have that time; further ones have less, so that a program does not wait for all of them.
const PATHS: usize = 4;
/// Time for further ones.
const LESS: Duration = Duration::from_millis(200);
/// Types of file systems that ask another program or machine, by their beginning.
const ASKING: [&str; 12] =
    ["fuse", "nfs", "cifs", "smb", "9p", "afs", "ceph", "coda", "glusterfs", "lustre", "ncp", "autofs"];

/// A path that did not answer counts so for this time, and as long as its child cannot be killed.
const MEMORY: Duration = Duration::from_secs(30);

/// A path that did not answer.
struct Silent {
    path: PathBuf,
    since: Instant,
    /// The child that was killed; `None` once it has ended.
    child: Option<libc::pid_t>,
}

impl Silent {
    fn is_current(&mut self) -> bool {
        self.child = self.child.filter(|child| !has_ended(*child));
        self.child.is_some() || self.since.elapsed() < MEMORY
    }
}

static SILENT: Mutex<Vec<Silent>> = Mutex::new(Vec::new());

/// `/proc/self/mountinfo`, and whether a file system in it may fail to answer.
static MOUNTS: Mutex<Option<(File, bool)>> = Mutex::new(None);

/// Whether a file system of this machine may fail to answer. Its mounts are read again when they have changed: each path is asked
/// about here, and there may be as many mounts.
fn may_wait(root: &Path) -> bool {
    if root != Path::new("/") {
        return files::read_mountinfo(root).map_or(true, |text| has_asking(&text));
    }
    let mut last = MOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((file, may_wait)) = &*last
        && !has_changed(file)
    {
        return *may_wait;
    }
    // A change between opening and reading shows next time.
    let read = files::open_mountinfo(root).and_then(|file| Ok((files::mountinfo(&file)?, file)));
    *last = read.ok().map(|(text, file)| (file, has_asking(&text)));
    last.as_ref().is_none_or(|(_, may_wait)| *may_wait)
}

/// Whether mounts have changed since the file was opened (`mounts_poll` in fs/proc_namespace.c).
fn has_changed(mountinfo: &File) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    !matches!(poll(&mut [PollFd::new(mountinfo, PollFlags::PRI)], Some(&now)), Ok(0))
}

fn has_asking(mountinfo: &[u8]) -> bool {
    let fs_types = mountinfo.split(|byte| *byte == b'\n').filter_map(|line| {
        let at = line.windows(3).position(|three| three == b" - ")?;
        Some(&line[at + 3..])
    });
    fs_types.into_iter().any(|fs_type| ASKING.iter().any(|asking| fs_type.starts_with(asking.as_bytes())))
}

/// Makes system calls about `path`, and returns their answer. The error is `ETIMEDOUT` if a file system does not answer, at once
/// for a path at or below one that did not. Where one may not answer, `call` runs in a child without descriptors.
pub fn ask<T: Serialize + DeserializeOwned>(
    root: &Path,
    path: &Path,
    call: impl FnOnce() -> rustix::io::Result<T>,
) -> rustix::io::Result<T> {
    if !may_wait(root) {
        return call();
    }
    let patience = {
        let mut silent = silent();
        silent.retain_mut(Silent::is_current);
        if silent.iter().any(|other| path.starts_with(&other.path)) {
            return Err(Errno::TIMEDOUT);
        }
        if silent.len() < PATHS { PATIENCE } else { LESS }
    };
    let (reader, child) = begin(call)?;
    let answer = receive(reader, patience);
    if answer.is_none() {
        kill(child);
        silent().push(Silent { path: path.to_owned(), since: Instant::now(), child: Some(child) });
    }
    let answer = answer.ok_or(Errno::TIMEDOUT)?;
    wait(child);
    let answer: Result<T, i32> =
        serde_json::from_str(&String::from_utf8_lossy(&answer)).map_err(|_| Errno::IO)?;
    answer.map_err(Errno::from_raw_os_error)
}

/// Waits until the file system of this directory answers, which it then probably does for later calls.
///
/// # Errors
///
/// `ETIMEDOUT` if it does not. Other errors are left to those calls.
pub fn wait_for(directory: &Path) -> Result<(), crate::Errno> {
    let open = || {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(directory, flags, Mode::empty()).map(drop)
    };
    match ask(Path::new("/"), directory, open) {
        Err(Errno::TIMEDOUT) => Err(Errno::TIMEDOUT.into()),
        _ => Ok(()),
    }
}

fn silent() -> MutexGuard<'static, Vec<Silent>> {
    SILENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the call in a child, whose answer the reader gets.
#[allow(unsafe_code)]
fn begin<T: Serialize>(
    call: impl FnOnce() -> rustix::io::Result<T>,
) -> rustix::io::Result<(PipeReader, libc::pid_t)> {
    let (reader, mut writer) = std::io::pipe().map_err(|_| Errno::MFILE)?;
    // SAFETY: the child takes no lock of ours; glibc makes its allocator usable in it.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(Errno::AGAIN);
    }
    if child == 0 {
        close_others(writer.as_raw_fd());
        let answer = call().map_err(Errno::raw_os_error);
        let written = serde_json::to_vec(&answer).is_ok_and(|answer| writer.write_all(&answer).is_ok());
        // SAFETY: ends the child without anything that the parent would do at its end.
        unsafe { libc::_exit(i32::from(!written)) }
    }
    Ok((reader, child))
}

/// Closes all descriptors but one: a child that is left behind must keep no lock, and no pipe of a caller.
#[allow(unsafe_code)]
fn close_others(kept: i32) {
    let kept = kept.unsigned_abs();
    for (first, last) in [(0, kept.saturating_sub(1)), (kept + 1, u32::MAX)] {
        // SAFETY: the descriptors of this child are not used any more.
        if first <= last && unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } != 0 {
            // Before Linux 5.9.
            for descriptor in first..=last.min(1024) {
                // SAFETY: as above.
                unsafe { libc::close(descriptor.cast_signed()) };
            }
        }
    }
}

/// What the child writes; `None` if it has not within this time.
fn receive(mut reader: PipeReader, patience: Duration) -> Option<Vec<u8>> {
    let limit = Timespec::try_from(patience).ok()?;
    loop {
        let ready = poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&limit));
        match ready {
            Err(Errno::INTR) => {}
            Ok(ready) if ready > 0 => break,
            _ => return None,
        }
    }
    let mut answer = Vec::new();
    reader.read_to_end(&mut answer).ok()?;
    Some(answer)
}

#[allow(unsafe_code)]
fn kill(child: libc::pid_t) {
    // SAFETY: our own child, which nothing has waited for.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

#[allow(unsafe_code)]
fn wait(child: libc::pid_t) {
    // SAFETY: our own child; no status is stored.
    while unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } < 0
        && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
    {}
}

#[allow(unsafe_code)]
fn has_ended(child: libc::pid_t) -> bool {
    // SAFETY: our own child; no status is stored.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), libc::WNOHANG) != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_answers_or_is_left_behind() {
        let (reader, child) = begin(|| Ok(vec![1_u64, 2])).unwrap();
        let answer: Result<Vec<u64>, i32> =
            serde_json::from_slice(&receive(reader, PATIENCE).unwrap()).unwrap();
        wait(child);
        assert_eq!(answer, Ok(vec![1, 2]));
        let (reader, child) = begin(|| Err::<(), _>(Errno::ACCESS)).unwrap();
        let answer: Result<(), i32> = serde_json::from_slice(&receive(reader, PATIENCE).unwrap()).unwrap();
        wait(child);
        assert_eq!(answer, Err(libc::EACCES));
        // One that never answers.
        let (reader, child) = begin(loop_forever).unwrap();
        assert_eq!(receive(reader, Duration::ZERO), None);
        assert!(!has_ended(child));
        kill(child);
        wait(child);
    }

    fn loop_forever() -> rustix::io::Result<()> {
        loop {
            std::thread::park();
        }
    }
}
