//! The record directory, `/run/zramd`: small files, each replaced atomically.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::lock;
use crate::{HostError, RecordFile};

/// The verdict of the benchmark, which is kept over reboots.
pub const VERDICT: &str = logic::verdict::FILE;

/// The record directory, for messages.
pub const DIRECTORY: &str = "/run/zramd";

fn directory(root: &Path) -> PathBuf {
    root.join("run/zramd")
}

fn create_directory(root: &Path) -> Result<PathBuf, HostError> {
    let directory = directory(root);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(&directory)
        .map_err(|error| HostError::io(DIRECTORY, "create", &error))?;
    Ok(directory)
}

/// All records with this suffix; none if the directory does not exist.
pub fn list(root: &Path, suffix: &str) -> Result<Vec<RecordFile>, HostError> {
    let directory = directory(root);
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(HostError::io(DIRECTORY, "list", &error)),
    };
    let mut records = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| HostError::io(DIRECTORY, "list", &error))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !name.ends_with(suffix) || name.starts_with('.') {
            continue;
        }
        match read(&entry.path()) {
            // Removed since the directory was read.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            text => {
                let text = text.map_err(|error| HostError::io(format!("{DIRECTORY}/{name}"), "read", &error));
                records.push((name, text));
            }
        }
    }
    records.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(records)
}

/// Reads a record. A pipe is read as empty: waiting for a writer would block every command.
fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Replaces a record atomically. `/run` does not survive a power cut, so nothing is synced.
pub fn write(root: &Path, name: &str, text: &str) -> Result<(), HostError> {
    let directory = create_directory(root)?;
    let partial = directory.join(format!(".{name}.new"));
    let shown = format!("{DIRECTORY}/{name}");
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(&partial)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&partial, directory.join(name)));
    written.map_err(|error| HostError::io(shown, "write", &error))
}

/// Removes a record; a missing one is not an error.
pub fn remove(root: &Path, name: &str) -> Result<(), HostError> {
    match fs::remove_file(directory(root).join(name)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(HostError::io(format!("{DIRECTORY}/{name}"), "remove", &error))
        }
        _ => Ok(()),
    }
}

/// Name of the lock file, in [`DIRECTORY`].
const LOCK: &str = ".lock";

/// How long the lock is waited for. The units that set up devices end after 60 s, without a reason.
const PATIENCE: Duration = Duration::from_secs(50);

/// Takes the lock that serialises changes to the machine.
pub fn lock(root: &Path) -> Result<OwnedFd, HostError> {
    let directory = open_directory(&create_directory(root)?)?;
    lock::take(directory, LOCK, &format!("{DIRECTORY}/{LOCK}"), PATIENCE)
}

fn open_directory(path: &Path) -> Result<OwnedFd, HostError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| HostError::new(DIRECTORY, "open", errno))
}

/// Releases the lock. Its file stays as long as there are records, so that these targets can be removed when nothing can be
/// created here any more. The directory stays: a service that is just starting may be about to mount it in its namespace.
pub fn unlock(root: &Path, lock: OwnedFd) {
    let is_needed = list(root, ".json").is_ok_and(|records| !records.is_empty());
    if let Ok(directory) = open_directory(&directory(root))
        && !is_needed
    {
        lock::remove(directory, LOCK);
    }
    drop(lock);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_removed_during_a_listing_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "zram0.json", "{}").unwrap();
        // A record that is listed but cannot be read.
        std::os::unix::fs::symlink("gone", directory(root.path()).join("zram1.json")).unwrap();
        assert_eq!(list(root.path(), ".json"), Ok(vec![("zram0.json".to_owned(), Ok("{}".to_owned()))]));
    }

    #[test]
    fn a_lock_that_every_user_can_take_stops_nothing() {
        let root = tempfile::tempdir().unwrap();
        let public = open_directory(&create_directory(root.path()).unwrap()).unwrap();
        let public = rustix::fs::openat(public, ".", OFlags::RDONLY, Mode::empty()).unwrap();
        rustix::fs::flock(&public, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        let ours = lock(root.path()).unwrap();
        unlock(root.path(), ours);
    }

    #[test]
    fn the_directory_stays_because_a_starting_service_may_mount_it() {
        let root = tempfile::tempdir().unwrap();
        let ours = lock(root.path()).unwrap();
        unlock(root.path(), ours);
        assert!(directory(root.path()).is_dir());
    }

    #[test]
    fn the_lock_is_exclusive_although_its_file_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let inside = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    use std::sync::atomic::Ordering::SeqCst;
                    for _ in 0..5 {
                        let ours = lock(root.path()).unwrap();
                        assert_eq!(inside.fetch_add(1, SeqCst), 0);
                        assert_eq!(inside.fetch_sub(1, SeqCst), 1);
                        unlock(root.path(), ours);
                    }
                });
            }
        });
    }
}
