//! Faults and when they occur: every acting call has a number, and a script tells which fault occurs at which number.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::Once;

use host::Errno;

/// The payload of the panic that simulates `SIGKILL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Killed;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails without doing anything.
    Fail(Errno),
    /// The process dies instead of making the call.
    KillBefore,
    /// The process dies after the call.
    KillAfter,
}

/// The acting calls so far, and the faults of later ones. Calls count from 1.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// Every acting call, as text.
    pub transcript: Vec<String>,
    faults: Vec<(usize, Fault)>,
}

impl Script {
    /// Sets `fault` for call `number`, which must not have been made yet.
    pub fn at(&mut self, number: usize, fault: Fault) {
        let made = self.transcript.len();
        assert!(number > made, "call {number} is to fail, and {made} calls were made");
        self.faults.push((number, fault));
    }

    /// Clears the transcript and all faults: the next call is number 1.
    pub fn clear(&mut self) {
        *self = Script::default();
    }

    /// Counts a call; returns its number.
    pub(super) fn enter(&mut self, call: String) -> usize {
        self.transcript.push(call);
        self.transcript.len()
    }

    /// Whether `fault` is set for call `number`.
    pub(super) fn has(&self, number: usize, fault: Fault) -> bool {
        self.faults.contains(&(number, fault))
    }

    /// The error of call `number`, if it is to fail.
    pub(super) fn error(&self, number: usize) -> Option<Errno> {
        self.faults.iter().find_map(|(at, fault)| match fault {
            Fault::Fail(errno) if *at == number => Some(*errno),
            _ => None,
        })
    }
}

/// Simulates `SIGKILL`.
pub(super) fn die() -> ! {
    panic_any(Killed)
}

/// Runs `work` as a process that the script may kill; `None` if it was killed. Other panics are propagated.
pub fn survive<T>(work: impl FnOnce() -> T) -> Option<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.payload().is::<Killed>() {
                usual(info);
            }
        }));
    });
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<Killed>() => None,
        Err(payload) => resume_unwind(payload),
    }
}
