//! `swapon` and `swapoff`.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::cancel;
use crate::{Errno, HostError, SwapSpec};

/// `SWAP_FLAG_PREFER` of swapon(2): the low 15 bits are a priority.
const PREFER: libc::c_int = 0x8000;
/// `SWAP_FLAG_DISCARD` of swapon(2).
const DISCARD: libc::c_int = 0x1_0000;

fn c_path(node: &Path, object: &str) -> Result<CString, HostError> {
    CString::new(node.as_os_str().as_bytes())
        .map_err(|_| HostError::new(object, "name the device", Errno::INVAL))
}

/// Activates swap.
#[allow(unsafe_code)]
pub fn on(node: &Path, object: &str, spec: SwapSpec) -> Result<(), HostError> {
    let path = c_path(node, object)?;
    let mut flags = if spec.discard { DISCARD } else { 0 };
    if spec.priority >= 0 {
        flags |= PREFER | spec.priority;
    }
    // SAFETY: the path is a string that outlives the call.
    if unsafe { libc::swapon(path.as_ptr(), flags) } == 0 {
        return Ok(());
    }
    Err(HostError::io(object, "swapon", &std::io::Error::last_os_error()))
}

/// Deactivates swap in a child process.
///
/// During swapoff(2) the kernel treats the caller as the preferred victim of the OOM killer, whatever its `oom_score_adj`
/// (mm/swapfile.c, mm/oom_kill.c). The child is expendable.
#[allow(unsafe_code)]
pub fn off(node: &Path, object: &str) -> Result<(), HostError> {
    let path = c_path(node, object)?;
    // SAFETY: between fork and _exit the child only makes system calls and reads an atomic, so locks held by other threads
    // do not matter.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(HostError::io(object, "start a child for swapoff", &std::io::Error::last_os_error()));
    }
    if child == 0 {
        // SAFETY: as above; errno of this thread is that of swapoff.
        unsafe {
            // From here on SIGTERM ends the child; until here the inherited handler recorded it.
            libc::signal(libc::SIGTERM, libc::SIG_DFL);
            if cancel::is_asked() {
                libc::_exit(libc::EINTR);
            }
            let failed = libc::swapoff(path.as_ptr()) != 0;
            libc::_exit(if failed { *libc::__errno_location() } else { 0 });
        }
    }
    let _watched = cancel::watch(child);
    let mut status = 0;
    // SAFETY: waits for our own child and writes to a local variable.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(HostError::io(object, "wait for swapoff", &error));
        }
    }
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        if signal == libc::SIGTERM {
            return Err(HostError::new(object, "swapoff", Errno(libc::EINTR)));
        }
        return Err(HostError::text(object, "swapoff", format!("the child was killed by signal {signal}")));
    }
    match libc::WEXITSTATUS(status) {
        0 => Ok(()),
        number => Err(HostError::new(object, "swapoff", Errno(number))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_termination_before_the_child_is_waited_for_is_not_lost() {
        let gone = Path::new("/nowhere");
        let ended = cancel::tests::after_termination(|| off(gone, "zram0"));
        assert_eq!(ended.unwrap_err().errno(), Some(Errno(libc::EINTR)));
        assert_ne!(off(gone, "zram0").unwrap_err().errno(), Some(Errno(libc::EINTR)));
    }
}
