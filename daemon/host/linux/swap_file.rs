//! Swap files on a disk, for measurements.
//!
//! A file gets its name when it is ready and recorded: until then, the kernel removes it with its descriptor. swapon(2) takes none without
//! a name; and while swap is active on one, it can be neither renamed nor removed.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};

use super::{loops, swap};
use crate::{Errno, HostError, SwapSpec};
use logic::device::signature;
use logic::record::SwapFile;

/// Its name in the directory.
const NAME: &str = ".zramd-bench.swap";
/// Label of the swap area, by which what a power cut left is recognised.
pub const LABEL: &str = "zramd-bench";

/// A file that has no name yet.
#[derive(Debug)]
pub struct NewFile {
    file: OwnedFd,
    identity: SwapFile,
}

/// Makes a file of this size in `directory`, which begins with `header`. One that a power cut left there is removed.
///
/// # Errors
///
/// `EOPNOTSUPP` if the file system has no files without a name; `EEXIST` if there is another file at the path.
pub fn make(directory: &str, bytes: u64, header: &[u8]) -> Result<NewFile, HostError> {
    let path = Path::new(directory).join(NAME).display().to_string();
    let failed = |operation: &'static str| {
        let path = path.clone();
        move |errno: rustix::io::Errno| HostError::new(path, operation, errno)
    };
    if let Some(left) = left_over(&path)? {
        remove(&left)?;
    }
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR).map_err(failed("create"))?;
    loops::allocate(&file, bytes).map_err(failed("allocate its space"))?;
    let file = File::from(file);
    let written = file.write_all_at(header, 0).and_then(|()| file.sync_all());
    written.map_err(|error| HostError::io(&path, "write the swap header", &error))?;
    let file = OwnedFd::from(file);
    let stat = rustix::fs::fstat(&file).map_err(failed("look at"))?;
    Ok(NewFile { file, identity: identity(&path, &stat) })
}

impl NewFile {
    /// What it is, to be recorded before it is activated.
    pub fn identity(&self) -> &SwapFile {
        &self.identity
    }

    /// Gives it its name, and activates swap on it.
    pub fn activate(self, priority: i32) -> Result<(), HostError> {
        let path = &self.identity.path;
        rustix::fs::linkat(CWD, of_descriptor(&self.file), CWD, path, AtFlags::SYMLINK_FOLLOW)
            .map_err(|errno| HostError::new(path, "create", errno))?;
        swap::on(Path::new(path), path, SwapSpec { priority, discard: false })
    }
}

/// Deactivates swap on this file if it is active, and removes it. Another file at its path stays.
pub fn remove(file: &SwapFile) -> Result<(), HostError> {
    let path = &file.path;
    let failed =
        |operation: &'static str| move |errno: rustix::io::Errno| HostError::new(path, operation, errno);
    let opened = match open(path) {
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => return Ok(()),
        other => other.map_err(failed("open"))?,
    };
    let stat = rustix::fs::fstat(&opened).map_err(failed("look at"))?;
    if identity(path, &stat) != *file {
        return Ok(());
    }
    match swap::off(Path::new(&of_descriptor(&opened)), path) {
        // It is not active.
        Err(error) if error.is(Errno::INVAL) => {}
        other => other?,
    }
    match rustix::fs::unlink(path) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(errno) => Err(failed("remove")(errno)),
    }
}

/// The file of a measurement that a power cut ended: its record is gone with the boot.
fn left_over(path: &str) -> Result<Option<SwapFile>, HostError> {
    let look = || -> rustix::io::Result<Option<SwapFile>> {
        let file = open(path)?;
        let stat = rustix::fs::fstat(&file)?;
        let mut head = vec![0; rustix::param::page_size()];
        let is_ours = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_uid == rustix::process::geteuid().as_raw()
            && stat.st_nlink == 1
            && File::from(file).read_exact_at(&mut head, 0).is_ok()
            && signature::read(&head).is_some_and(|found| found.kind == "swap area" && found.label == LABEL);
        if is_ours { Ok(Some(identity(path, &stat))) } else { Err(rustix::io::Errno::EXIST) }
    };
    match look() {
        Err(rustix::io::Errno::NOENT) => Ok(None),
        other => other.map_err(|errno| HostError::new(path, "create", errno)),
    }
}

fn open(path: &str) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(
        path,
        OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

fn of_descriptor(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn identity(path: &str, stat: &Stat) -> SwapFile {
    SwapFile {
        path: path.to_owned(),
        device: (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev)),
        inode: stat.st_ino,
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_no_name_until_it_is_activated_and_others_stay() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let directory = place.path().to_str().unwrap();
        let path = place.path().join(NAME);
        let header =
            logic::device::swap_header::build(1 << 20, rustix::param::page_size(), [7; 16], LABEL).unwrap();
        let file = make(directory, 1 << 20, &header).unwrap();
        assert!(!path.exists());
        assert_eq!(file.identity().bytes, 1 << 20);

        let other = SwapFile { inode: file.identity().inode + 1, ..file.identity().clone() };
        rustix::fs::linkat(CWD, of_descriptor(&file.file), CWD, &path, AtFlags::SYMLINK_FOLLOW).unwrap();
        remove(&other).unwrap();
        assert!(path.exists(), "it is another file");

        // Only root may ask whether swap is active on it.
        if rustix::process::geteuid().is_root() {
            make(directory, 1 << 20, &header).unwrap();
            assert!(!path.exists(), "it was left by a power cut");
        }

        std::fs::write(&path, "text").unwrap();
        assert!(make(directory, 1 << 20, &header).unwrap_err().is(Errno::EXIST));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
    }
}
