//! Fault injection: system calls are numbered, and a script says which fault happens at which number.

use std::sync::{Arc, Mutex, PoisonError};

use crate::Errno;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails without having done anything.
    Fail(Errno),
    /// The call transfers only half of the bytes. No effect on calls that transfer none.
    Short,
    /// The process is killed before the call: it and all later calls have no effect.
    KillBefore,
    /// The process is killed after the call if it changes the store, otherwise before it.
    KillAfter,
}

/// The calls so far, and the planned fault. Calls count from 1.
#[derive(Debug, Default)]
pub struct Script {
    transcript: Vec<String>,
    fault: Option<(usize, Fault)>,
    /// The file system of the store does not support files without a name.
    all_named: bool,
    /// The process is killed after this call.
    dying: bool,
    dead: bool,
}

/// The error of all calls after the kill. No code of the product sees it, because its process would not exist.
const DEAD: Errno = Errno(libc::EOWNERDEAD);

/// The system calls of one job. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Calls(Option<Arc<Mutex<Script>>>);

impl Calls {
    /// Calls without a script.
    pub fn new() -> Calls {
        Calls::default()
    }

    /// With a fault at call `number`; `None` only counts the calls.
    pub fn with_fault(fault: Option<(usize, Fault)>) -> Calls {
        Calls(Some(Arc::new(Mutex::new(Script { fault, ..Script::default() }))))
    }

    /// The same without support for unnamed files, as on many FUSE and some network file systems.
    pub fn all_named(fault: Option<(usize, Fault)>) -> Calls {
        Calls(Some(Arc::new(Mutex::new(Script { fault, all_named: true, ..Script::default() }))))
    }

    /// All calls so far, as text; empty without a script.
    pub fn transcript(&self) -> Vec<String> {
        let Some(script) = &self.0 else { return Vec::new() };
        script.lock().unwrap_or_else(PoisonError::into_inner).transcript.clone()
    }

    /// Whether files without a name are supported, as far as the script decides this.
    pub(super) fn has_unnamed(&self) -> bool {
        let Some(script) = &self.0 else { return true };
        !script.lock().unwrap_or_else(PoisonError::into_inner).all_named
    }

    /// Called before a system call.
    pub(super) fn enter(&self, call: &'static str, object: impl FnOnce() -> String) -> Result<(), Errno> {
        match &self.0 {
            None => Ok(()),
            Some(script) => step(script, call, &object()).map(|_| ()),
        }
    }

    /// Called before a system call that transfers bytes; returns how many it may transfer.
    pub(super) fn transfer(&self, call: &'static str, bytes: usize) -> Result<usize, Errno> {
        match &self.0 {
            None => Ok(bytes),
            Some(script) => {
                let short = step(script, call, &format!("{bytes} bytes"))?;
                Ok(if short { bytes.div_ceil(2) } else { bytes })
            }
        }
    }

    /// Called after a system call that changed the store.
    pub(super) fn leave(&self) -> Result<(), Errno> {
        let Some(script) = &self.0 else { return Ok(()) };
        let mut script = script.lock().unwrap_or_else(PoisonError::into_inner);
        if script.dying {
            script.dead = true;
            return Err(DEAD);
        }
        Ok(())
    }
}

/// Counts a call; true if it is to be short.
fn step(script: &Mutex<Script>, call: &str, object: &str) -> Result<bool, Errno> {
    let mut script = script.lock().unwrap_or_else(PoisonError::into_inner);
    if script.dead || script.dying {
        script.dead = true;
        return Err(DEAD);
    }
    script.transcript.push(if object.is_empty() { call.to_owned() } else { format!("{call} {object}") });
    match script.fault {
        Some((number, fault)) if number == script.transcript.len() => match fault {
            Fault::Fail(errno) => Err(errno),
            Fault::Short => Ok(true),
            Fault::KillBefore => {
                script.dead = true;
                Err(DEAD)
            }
            Fault::KillAfter => {
                script.dying = true;
                Ok(false)
            }
        },
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use crate::linux::ramdisk::script::*;

    #[test]
    fn a_script_counts_calls_and_injects_the_fault() {
        let calls = Calls::with_fault(Some((2, Fault::Fail(Errno::NOSPC))));
        assert_eq!(calls.enter("open", String::new), Ok(()));
        assert_eq!(calls.transfer("write", 10), Err(Errno::NOSPC));
        assert_eq!(calls.transfer("write", 10), Ok(10));
        assert_eq!(calls.transcript(), ["open", "write 10 bytes", "write 10 bytes"]);

        let calls = Calls::with_fault(Some((1, Fault::Short)));
        assert_eq!((calls.transfer("write", 5), calls.transfer("write", 5)), (Ok(3), Ok(5)));
    }

    #[test]
    fn calls_after_a_kill_have_no_effect() {
        let calls = Calls::with_fault(Some((1, Fault::KillBefore)));
        assert_eq!(calls.enter("open", String::new), Err(DEAD));
        assert_eq!(calls.enter("open", String::new), Err(DEAD));
        assert!(calls.transcript().len() == 1);

        let calls = Calls::with_fault(Some((1, Fault::KillAfter)));
        assert_eq!(calls.enter("renameat", String::new), Ok(()));
        assert_eq!(calls.leave(), Err(DEAD));
        assert_eq!(calls.clone().enter("open", String::new), Err(DEAD));
    }
}
