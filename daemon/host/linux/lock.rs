//! Lock files that only their owner can open: flock(2) takes any open file, and every user can open a public directory.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{files, holders};
use crate::{Cause, Holder, HostError};
use logic::proc::Mounts;

/// Interval between two attempts.
const INTERVAL: Duration = Duration::from_millis(50);

/// Locks the file `name` in `directory`, which it creates with mode 0600. `shown` is its path, for messages.
///
/// # Errors
///
/// [`Cause::Locked`] if another process still holds the lock after `patience`, with that process if `/proc` shows it.
pub fn take(directory: impl AsFd, name: &str, shown: &str, patience: Duration) -> Result<OwnedFd, HostError> {
    let deadline = Instant::now() + patience;
    loop {
        let file = open(&directory, name, shown)?;
        if lock(&file, shown)? {
            if is_current(&directory, name, &file) {
                return Ok(file);
            }
        } else if Instant::now() >= deadline {
            return Err(held(&file, shown, patience));
        } else {
            std::thread::sleep(INTERVAL);
        }
    }
}

/// Locks an open file or directory. Only for files that other users cannot open, because an open file can be locked.
///
/// # Errors
///
/// As [`take`].
pub fn wait(file: impl AsFd, shown: &str, patience: Duration) -> Result<(), HostError> {
    let deadline = Instant::now() + patience;
    while !lock(&file, shown)? {
        if Instant::now() >= deadline {
            return Err(held(&file, shown, patience));
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(())
}

/// As [`take`], without waiting; `None` if another process holds the lock.
pub fn try_take(directory: impl AsFd, name: &str, shown: &str) -> Result<Option<OwnedFd>, HostError> {
    loop {
        let file = open(&directory, name, shown)?;
        if !lock(&file, shown)? {
            return Ok(None);
        }
        if is_current(&directory, name, &file) {
            return Ok(Some(file));
        }
    }
}

fn open(directory: impl AsFd, name: &str, shown: &str) -> Result<OwnedFd, HostError> {
    // NONBLOCK: without it, open(2) would wait for the lease that an owner of the file may hold.
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file =
        rustix::fs::openat(&directory, name, flags | OFlags::RDWR | OFlags::CREATE, Mode::RUSR | Mode::WUSR)
            // One that is there can be locked on a read-only or full file system, too.
            .or_else(|errno| rustix::fs::openat(&directory, name, flags, Mode::empty()).map_err(|_| errno))
            .map_err(|errno| HostError::new(shown, "open", errno))?;
    let stat = rustix::fs::fstat(&file).map_err(|errno| HostError::new(shown, "look at", errno))?;
    if is_private(&stat) {
        return Ok(file);
    }
    let text = "others can lock this file; remove it, and it is created again with mode 0600";
    Err(HostError::text(shown, "lock", text))
}

fn is_private(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_uid == rustix::process::geteuid().as_raw()
        && !Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO)
}

fn held(file: impl AsFd, shown: &str, patience: Duration) -> HostError {
    let cause = Cause::Locked { seconds: patience.as_secs(), holder: holder(file) };
    HostError { object: shown.to_owned(), operation: "lock".to_owned(), cause }
}

/// Tries to lock; false if the lock is taken.
fn lock(file: impl AsFd, shown: &str) -> Result<bool, HostError> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(errno) => Err(HostError::new(shown, "lock", errno)),
    }
}

/// Whether the name still leads to this file: a previous owner may have removed it before releasing it.
fn is_current(directory: impl AsFd, name: &str, file: &OwnedFd) -> bool {
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    let ours = rustix::fs::fstat(file);
    matches!((found, ours), (Ok(found), Ok(ours)) if (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino))
}

/// The process that holds the lock of a file.
///
/// On some file systems (btrfs) the device in `/proc/locks` is not that of stat(2). So candidates are selected by inode, and
/// confirmed by the mount of the file that they have locked.
fn holder(file: impl AsFd) -> Option<Holder> {
    let inode = rustix::fs::fstat(&file).ok()?.st_ino;
    let mounts = Mounts::parse(&files::read_mountinfo(Path::new("/")).ok()?);
    let number = OsString::from(file.as_fd().as_raw_fd().to_string());
    let ours = holders::open_files(Path::new("/proc/self"), None).find(|(name, _)| *name == number)?;
    let mount = |text: &str| holders::field(text, "mnt_id")?.parse::<u64>().ok();
    let same: Vec<u64> = mounts.ids(mounts.device(mount(&ours.1)?)?).collect();
    let has_lock = |text: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("lock:"));
        lines.into_iter().any(|line| flock_owner(line.as_bytes(), inode).is_some())
    };
    // In whole pages: between two calls of read(2), the kernel counts lines from the beginning, and leaves one out if a lock
    // before it is released.
    let locks = files::read_small(Path::new("/proc/locks")).ok()?;
    let pids = locks.split(|byte| *byte == b'\n').filter_map(|line| flock_owner(line, inode));
    pids.map(|pid| (pid, Path::new("/proc").join(pid.to_string()))).find_map(|(pid, process)| {
        holders::open_files(&process, None)
            .any(|(_, text)| has_lock(&text) && mount(&text).is_some_and(|mount| same.contains(&mount)))
            .then(|| Holder { pid, name: holders::comm(&process) })
    })
}

/// The process in a line of `/proc/locks` that holds an flock of an inode: `1: FLOCK  ADVISORY  WRITE 1234 00:1a:5678 0
/// EOF`. A waiting process has `->` before the kind; a process of another PID namespace has the number 0.
fn flock_owner(line: &[u8], inode: u64) -> Option<u32> {
    let words: Vec<&str> = std::str::from_utf8(line).ok()?.split_ascii_whitespace().collect();
    let [_, "FLOCK", _, _, pid, place, ..] = words[..] else { return None };
    let found: u64 = place.rsplit(':').next()?.parse().ok()?;
    pid.parse().ok().filter(|pid| *pid > 0 && found == inode)
}

/// Removes a lock file. The owner may do so before the release; the next process then creates and locks a new file.
pub fn remove(directory: impl AsFd, name: &str) {
    // A file that could not be removed is used again.
    rustix::fs::unlinkat(directory, name, AtFlags::empty()).ok();
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    /// Children of other tests hold a lock until they execute their program.
    const CHILDREN: Duration = Duration::from_secs(60);

    fn place() -> (tempfile::TempDir, fs::File) {
        let directory = tempfile::tempdir().unwrap();
        let opened = fs::File::open(directory.path()).unwrap();
        (directory, opened)
    }

    #[test]
    fn a_lock_that_is_held_names_its_holder() {
        let (directory, opened) = place();
        let lock = take(&opened, ".lock", "LOCK", Duration::ZERO).unwrap();
        let mode = fs::metadata(directory.path().join(".lock")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);

        let refused = take(&opened, ".lock", "LOCK", Duration::ZERO).unwrap_err();
        let Cause::Locked { seconds: 0, holder: Some(holder) } = refused.cause else { panic!("{refused}") };
        assert_eq!(holder.pid, std::process::id());
        assert_eq!(try_take(&opened, ".lock", "LOCK").unwrap().map(drop), None);

        drop(lock);
        take(&opened, ".lock", "LOCK", CHILDREN).unwrap();
    }

    #[test]
    fn a_directory_that_is_locked_names_its_holder() {
        let (directory, opened) = place();
        wait(&opened, "DIRECTORY", Duration::ZERO).unwrap();
        let again = fs::File::open(directory.path()).unwrap();
        let refused = wait(&again, "DIRECTORY", Duration::ZERO).unwrap_err();
        let Cause::Locked { seconds: 0, holder: Some(holder) } = refused.cause else { panic!("{refused}") };
        assert_eq!(holder.pid, std::process::id());
        drop(opened);
        wait(&again, "DIRECTORY", CHILDREN).unwrap();
    }

    #[test]
    fn a_holder_is_found_while_other_locks_are_released() {
        let (directory, opened) = place();
        let _lock = take(&opened, ".lock", "LOCK", Duration::ZERO).unwrap();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let others = std::thread::spawn({
            let others: Vec<PathBuf> =
                (0..8).map(|number| directory.path().join(number.to_string())).collect();
            move || {
                while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                    let files: Vec<fs::File> =
                        others.iter().map(|path| fs::File::create(path).unwrap()).collect();
                    for file in &files {
                        file.lock().unwrap();
                    }
                }
            }
        });
        for round in 0..300 {
            let refused = take(&opened, ".lock", "LOCK", Duration::ZERO).unwrap_err();
            assert!(
                matches!(refused.cause, Cause::Locked { holder: Some(_), .. }),
                "round {round}: {refused}"
            );
        }
        drop(end);
        others.join().unwrap();
    }

    #[test]
    fn a_lock_that_was_removed_by_its_owner_is_taken_at_the_new_file() {
        let (directory, opened) = place();
        let first = take(&opened, ".lock", "LOCK", Duration::ZERO).unwrap();
        let waiting = std::thread::spawn({
            let opened = opened.try_clone().unwrap();
            move || take(&opened, ".lock", "LOCK", Duration::from_secs(60)).unwrap()
        });
        remove(&opened, ".lock");
        drop(first);
        let second = waiting.join().unwrap();
        assert!(is_current(&opened, ".lock", &second));
        assert!(directory.path().join(".lock").exists());
    }

    #[test]
    fn a_file_that_others_can_lock_is_refused() {
        let (directory, opened) = place();
        let path = directory.path().join(".lock");
        let refused = |case: &str| {
            let taken = take(&opened, ".lock", "LOCK", Duration::ZERO);
            assert!(taken.is_err(), "{case}");
            fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).unwrap();
        };
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
        refused("public");
        fs::write(directory.path().join("elsewhere"), "").unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        refused("link");
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        refused("dangling link");
        rustix::fs::mkfifoat(&opened, ".lock", Mode::RUSR | Mode::WUSR).unwrap();
        refused("pipe");
        fs::create_dir(&path).unwrap();
        refused("directory");
    }

    #[test]
    fn lines_of_the_kernel_are_read() {
        let owner = |line: &str| flock_owner(line.as_bytes(), 5678);
        assert_eq!(owner("1: FLOCK  ADVISORY  WRITE 1234 00:1a:5678 0 EOF"), Some(1234));
        assert_eq!(owner("1: -> FLOCK  ADVISORY  WRITE 1234 00:1a:5678 0 EOF"), None);
        assert_eq!(owner("2: POSIX  ADVISORY  WRITE 1234 00:1a:5678 0 EOF"), None);
        assert_eq!(owner("3: FLOCK  ADVISORY  WRITE 1234 00:1a:56789 0 EOF"), None);
        assert_eq!(owner("4: FLOCK  ADVISORY  WRITE 0 00:1a:5678 0 EOF"), None);
        assert_eq!(owner("5: OFDLCK ADVISORY  WRITE -1 00:1a:5678 0 EOF"), None);
        assert_eq!(flock_owner(b"6: FLOCK \xff", 5678), None);
    }
}
