//! `/proc/pressure/memory`: reports of the kernel that tasks wait for memory.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// The file.
pub const FILE: &str = "/proc/pressure/memory";

/// Opens the file for triggers, and gives up `CAP_SYS_RESOURCE`: whether a trigger may be fast depends on the capability of the
/// process that opened the file, at that time.
pub fn open() -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(FILE);
    let mut sets = capabilities(None)?;
    if sets.permitted.contains(CapabilitySet::SYS_RESOURCE) {
        for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
            set.remove(CapabilitySet::SYS_RESOURCE);
        }
        set_capabilities(None, sets)?;
    }
    file
}

/// Makes the kernel report what a trigger describes; once for each open file.
pub fn arm(mut file: &File, trigger: &str) -> io::Result<()> {
    file.write_all(format!("{trigger}\0").as_bytes())
}

/// Waits for a report, without a limit if there is no time; whether there was one.
///
/// # Errors
///
/// Also if the kernel does not report any more.
pub fn wait(file: &File, time: Option<Duration>) -> io::Result<bool> {
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    let mut files = [PollFd::new(file, PollFlags::PRI)];
    match poll(&mut files, time.as_ref()) {
        Ok(_) if files[0].revents().contains(PollFlags::ERR) => Err(io::ErrorKind::BrokenPipe.into()),
        Ok(found) => Ok(found > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
