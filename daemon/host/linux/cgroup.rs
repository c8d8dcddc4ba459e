//! A memory cgroup of our own, of whichever version there is.

use std::fs;
use std::path::{Path, PathBuf};

use super::write_existing;
use crate::{Errno, HostError};

/// A group that limits the memory of the processes in it.
#[derive(Debug)]
pub struct MemoryCgroup {
    path: PathBuf,
    version: u8,
}

impl MemoryCgroup {
    /// Where such groups are, and of which version; nothing when this machine has none.
    fn hierarchy() -> Option<(PathBuf, u8)> {
        let v2 = Path::new("/sys/fs/cgroup");
        let handed_on = fs::read_to_string(v2.join("cgroup.subtree_control")).unwrap_or_default();
        if handed_on.split_whitespace().any(|controller| controller == "memory") {
            return Some((v2.to_owned(), 2));
        }
        let v1 = v2.join("memory");
        v1.join("memory.limit_in_bytes").exists().then_some((v1, 1))
    }

    /// Whether this machine has any.
    pub fn are_there() -> bool {
        MemoryCgroup::hierarchy().is_some()
    }

    /// The group of this name, if it is there.
    pub fn find(name: &str) -> Option<MemoryCgroup> {
        let (folder, version) = MemoryCgroup::hierarchy()?;
        let path = folder.join(name);
        path.is_dir().then_some(MemoryCgroup { path, version })
    }

    /// Creates one.
    pub fn create(name: &str) -> Result<MemoryCgroup, HostError> {
        let (folder, version) = MemoryCgroup::hierarchy()
            .ok_or_else(|| HostError::text("/sys/fs/cgroup", "find memory cgroups", "there are none"))?;
        let group = MemoryCgroup { path: folder.join(name), version };
        fs::create_dir(&group.path).map_err(|error| group.failed("create", &error))?;
        Ok(group)
    }

    /// 1 or 2.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// Limits memory, not swap.
    pub fn limit(&self, bytes: u64) -> Result<(), HostError> {
        let files = if self.version == 2 {
            ("memory.max", "memory.swap.max")
        } else {
            ("memory.limit_in_bytes", "memory.swappiness")
        };
        self.write(files.0, &bytes.to_string())?;
        match self.write(files.1, if self.version == 2 { "max" } else { "100" }) {
            // A kernel without that file has nothing to allow.
            Err(error) if !error.is(Errno::NOENT) && !error.is(Errno::ACCES) => Err(error),
            _ => Ok(()),
        }
    }

    /// The file that a process writes 0 to in order to be in it.
    pub fn processes(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    /// Its pressure (PSI); nothing where only the whole machine has one.
    pub fn pressure(&self) -> Option<String> {
        fs::read_to_string(self.path.join("memory.pressure")).ok()
    }

    /// Removes it; its processes have ended. The kernel may still be at work on the last of them.
    pub fn remove(self) -> Result<(), HostError> {
        for _ in 0..100 {
            match fs::remove_dir(&self.path) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                Err(error) => return Err(self.failed("remove", &error)),
                Ok(()) => return Ok(()),
            }
        }
        Err(HostError::new(self.path.display().to_string(), "remove", Errno::BUSY))
    }

    fn write(&self, file: &str, value: &str) -> Result<(), HostError> {
        write_existing(&self.path.join(file), value)
            .map_err(|error| self.failed(&format!("write {file}"), &error))
    }

    fn failed(&self, operation: &str, error: &std::io::Error) -> HostError {
        HostError::io(self.path.display().to_string(), operation, error)
    }
}
