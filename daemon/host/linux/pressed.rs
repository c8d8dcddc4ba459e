//! What a program does that is put under memory pressure, and what is needed to start it.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::MemfdFlags;

use crate::HostError;

/// Has the kernel kill us when whoever started us ends, take us first when memory runs out, and give us single pages only.
pub fn become_expendable() -> Result<(), HostError> {
    let failed =
        |operation: &'static str| move |errno: rustix::io::Errno| HostError::new("process", operation, errno);
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(failed("follow the parent"))?;
    rustix::thread::disable_transparent_huge_pages(true).map_err(failed("refuse huge pages"))?;
    let path = "/proc/self/oom_score_adj";
    std::fs::write(path, "1000").map_err(|error| HostError::io(path, "write", &error))
}

/// The process that started us, or that has taken us over since.
pub fn parent() -> Option<i32> {
    rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get())
}

/// Enters a cgroup by its `cgroup.procs`.
pub fn enter(processes: &Path) -> Result<(), HostError> {
    std::fs::write(processes, "0")
        .map_err(|error| HostError::io(processes.display().to_string(), "enter the cgroup", &error))
}

/// Accesses of this thread that had to wait for a device so far.
#[allow(unsafe_code)]
pub fn major_faults() -> u64 {
    // SAFETY: all fields of `rusage` are numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writes to a local variable.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    u64::try_from(usage.ru_majflt).unwrap_or(0)
}

/// A file without a name in memory, for handing data to a child.
pub fn file_in_memory(data: &[u8]) -> Result<File, HostError> {
    let failed = |error: &std::io::Error| HostError::io("memfd", "write", error);
    let made: Result<OwnedFd, _> = rustix::fs::memfd_create("zramd-data", MemfdFlags::CLOEXEC);
    let mut file = File::from(made.map_err(|errno| failed(&errno.into()))?);
    file.write_all(data).map_err(|error| failed(&error))?;
    Ok(file)
}

/// Fills `page` from a place of such a file.
pub fn read_at(file: &File, page: &mut [u8], offset: u64) -> Result<(), HostError> {
    file.read_exact_at(page, offset).map_err(|error| HostError::io("memfd", "read", &error))
}

/// Its size in bytes.
pub fn size(file: &File) -> Result<u64, HostError> {
    file.metadata().map(|metadata| metadata.len()).map_err(|error| HostError::io("memfd", "look at", &error))
}

/// Standard input as a file at whatever place, for a child that data was handed to.
pub fn standard_input() -> Result<File, HostError> {
    let input = std::io::stdin().as_fd().try_clone_to_owned();
    input.map(File::from).map_err(|error| HostError::io("standard input", "open", &error))
}
