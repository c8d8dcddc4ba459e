//! The record folder, `/run/zramd`: small files, each replaced as a whole.

use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::host::HostError;

/// Where the verdict of the benchmark is kept from boot to boot.
pub const VERDICT: &str = crate::logic::benchmark::cache::FILE;

/// The folder, for messages.
pub const FOLDER: &str = "/run/zramd";

fn folder(root: &Path) -> PathBuf {
    root.join("run/zramd")
}

fn create_folder(root: &Path) -> Result<PathBuf, HostError> {
    let folder = folder(root);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(&folder)
        .map_err(|error| HostError::io(FOLDER, "create", &error))?;
    Ok(folder)
}

/// Names and texts of all records whose names end so. A folder that is not there has none.
pub fn list(root: &Path, suffix: &str) -> Result<Vec<(String, String)>, HostError> {
    let folder = folder(root);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(HostError::io(FOLDER, "list", &error)),
    };
    let mut records = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| HostError::io(FOLDER, "list", &error))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !name.ends_with(suffix) || name.starts_with('.') {
            continue;
        }
        match fs::read_to_string(entry.path()) {
            Ok(text) => records.push((name, text)),
            // It has gone away while we looked.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(HostError::io(format!("{FOLDER}/{name}"), "read", &error)),
        }
    }
    records.sort();
    Ok(records)
}

/// Replaces a record. `/run` does not outlive a power cut, so rename is enough and nothing is synced.
pub fn write(root: &Path, name: &str, text: &str) -> Result<(), HostError> {
    let folder = create_folder(root)?;
    let partial = folder.join(format!(".{name}.new"));
    let shown = format!("{FOLDER}/{name}");
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(&partial)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&partial, folder.join(name)));
    written.map_err(|error| HostError::io(shown, "write", &error))
}

/// Removes a record; an absent one is fine.
pub fn remove(root: &Path, name: &str) -> Result<(), HostError> {
    match fs::remove_file(folder(root).join(name)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(HostError::io(format!("{FOLDER}/{name}"), "remove", &error))
        }
        _ => Ok(()),
    }
}

/// Takes the lock under which the machine is changed, waiting for whoever has it.
///
/// The folder itself is locked. Whoever gives the lock back removes the folder when nothing is recorded in it, so the
/// one who waited has to check that the folder it got is still the one that others would find.
pub fn lock(root: &Path) -> Result<OwnedFd, HostError> {
    let fail =
        |operation: &'static str| move |errno: rustix::io::Errno| HostError::new(FOLDER, operation, errno);
    loop {
        let path = create_folder(root)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = match rustix::fs::open(&path, flags, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => continue,
            opened => opened.map_err(fail("open"))?,
        };
        match rustix::fs::flock(&fd, FlockOperation::LockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(fail("lock")(errno)),
        }
        let ours = rustix::fs::fstat(&fd).map_err(fail("look at"))?;
        if fs::metadata(&path).is_ok_and(|found| found.ino() == ours.st_ino) {
            return Ok(fd);
        }
    }
}

/// Gives the lock back, and removes the folder if it is empty: nothing stays behind when everything was taken away.
pub fn unlock(root: &Path, lock: OwnedFd) {
    // A folder that is not empty, or gone, or that we may not remove: it stays, which harms nobody.
    fs::remove_dir(folder(root)).ok();
    drop(lock);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_go_away_meanwhile_are_not_there() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "zram0.json", "{}").unwrap();
        // Listed, and nothing to be read.
        std::os::unix::fs::symlink("gone", folder(root.path()).join("zram1.json")).unwrap();
        assert_eq!(list(root.path(), ".json"), Ok(vec![("zram0.json".to_owned(), "{}".to_owned())]));
    }
}
