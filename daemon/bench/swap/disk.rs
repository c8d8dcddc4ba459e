//! The disk to compare with: a swap file in a directory on it.

use std::path::Path;

use engine::{Error, ErrorKind, gather};
use host::linux::LinuxHost;
use host::linux::bench_file::Directory;
use host::linux::swap_file::{self, LABEL, NewFile};
use host::{Errno, Host, HostError};
use logic::device::swap_header;
use logic::human::human;
use logic::path_kind::PathKind;
use logic::plan::{file_size, no_disk};

use super::SPARE;

/// File systems of disks that have no swap files.
const WITHOUT: [&str; 4] = ["bcachefs", "nilfs2", "zfs", "ecryptfs"];
/// Times that all memory is written for each value of `vm.page-cluster`.
const WRITTEN: u64 = 2;
const REMEDY: &str = "choose a directory on a disk of this machine, with ext4, xfs or btrfs";

/// A directory where the file can be.
#[derive(Debug)]
pub struct Disk {
    /// Its path, without symbolic links.
    directory: String,
    /// Directory and file system, as `/srv (ext4)`.
    pub shown: String,
    /// Size of the file: while it is less than half full, the kernel keeps the place of a page that was read, and need not write it again.
    bytes: u64,
}

impl Disk {
    /// Checks that a swap file for this much memory can be in the directory. Writes nothing.
    pub fn check(host: &LinuxHost, path: &Path, memory: u64) -> Result<Disk, Error> {
        let given = path.display();
        let refused = |why: String| Error::new(ErrorKind::Unsafe, format!("{given}: {why}"));
        let real = path
            .canonicalize()
            .map_err(|error| Error::from(HostError::io(given.to_string(), "find", &error)))?;
        let directory =
            real.to_str().ok_or_else(|| refused(format!("its name is not UTF-8; {REMEDY}")))?.to_owned();
        if !matches!(host.path_kind(&directory), PathKind::Directory | PathKind::Empty) {
            return Err(refused(format!("it is not a directory; {REMEDY}")));
        }
        let found =
            gather::file_place(host, &real.join("file").display().to_string(), &gather::mounts(host)?);
        if let Some(what) = no_disk(&found) {
            return Err(refused(format!("it is on {what}, and not on a disk of this machine; {REMEDY}")));
        }
        if WITHOUT.contains(&found.fs_type.as_str()) {
            return Err(refused(format!("{} has no swap files; {REMEDY}", found.fs_type)));
        }
        if Directory::open(&real)?.is_read_only()? {
            return Err(refused(format!("its file system is read-only; {REMEDY}")));
        }
        let bytes = WRITTEN * memory + SPARE;
        file_size(Some(bytes), found.free_bytes, found.total_bytes)
            .map_err(|why| refused(format!("{why}; measure with less (--memory), or free some space")))?;
        Ok(Disk { directory, shown: format!("{given} ({})", found.fs_type), bytes })
    }

    /// What is written for this many values of `vm.page-cluster`, for people.
    pub fn announced(&self, memory: u64, clusters: usize) -> String {
        let all = human(WRITTEN * memory * clusters as u64);
        let (file, memory) = (human(self.bytes), human(memory));
        let each = if clusters == 1 {
            String::new()
        } else {
            format!(" for each of {clusters} values of page-cluster")
        };
        format!(
            "This writes about {all} to {}: {memory} twice{each}, in a file of {file} that is removed afterwards.",
            self.shown
        )
    }

    /// Makes the file.
    pub(super) fn file<H: Host>(&self, host: &mut H) -> Result<NewFile, Error> {
        let page = usize::try_from(host.page_size()).unwrap_or(4096);
        let header = swap_header::build(self.bytes, page, host.random(), LABEL)
            .map_err(|error| Error::failed(format!("{}: write a swap header: {error}", self.shown)))?;
        swap_file::make(&self.directory, self.bytes, &header).map_err(explained)
    }
}

/// The error of a step with the file.
pub(super) fn explained(error: HostError) -> Error {
    let unsupported = [rustix::io::Errno::INVAL, rustix::io::Errno::OPNOTSUPP, rustix::io::Errno::ISDIR];
    if unsupported.iter().any(|errno| error.is((*errno).into())) {
        let message = format!("{error}: this file system has no swap files; {REMEDY}");
        return Error::new(ErrorKind::Unsupported, message);
    }
    if error.is(Errno::EXIST) {
        let message =
            format!("{error}, and zramd did not make it; move it away, or choose another directory");
        return Error::new(ErrorKind::Unsafe, message);
    }
    error.into()
}
