//! What goes wrong, and when: every acting verb has a number, and a script says what happens at which number.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::Once;

use host::Errno;

/// The payload of the panic that stands for `SIGKILL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Killed;

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails without having done anything.
    Fail(Errno),
    /// The process dies instead of making the call.
    KillBefore,
    /// The process dies when the call is done.
    KillAfter,
}

/// The acting calls so far, and what is to happen at the next ones. Calls count from 1.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// Every acting call, in words.
    pub transcript: Vec<String>,
    faults: Vec<(usize, Fault)>,
}

impl Script {
    /// Lets `fault` happen at call `number`.
    pub fn at(&mut self, number: usize, fault: Fault) {
        self.faults.push((number, fault));
    }

    /// Forgets the transcript and all faults: the next call is number 1.
    pub fn clear(&mut self) {
        *self = Script::default();
    }

    /// Counts a call; its number.
    pub(super) fn enter(&mut self, call: String) -> usize {
        self.transcript.push(call);
        self.transcript.len()
    }

    /// Whether `fault` is to happen at call `number`.
    pub(super) fn has(&self, number: usize, fault: Fault) -> bool {
        self.faults.contains(&(number, fault))
    }

    /// The error with which call `number` fails.
    pub(super) fn error(&self, number: usize) -> Option<Errno> {
        self.faults.iter().find_map(|(at, fault)| match fault {
            Fault::Fail(errno) if *at == number => Some(*errno),
            _ => None,
        })
    }
}

/// Dies.
pub(super) fn die() -> ! {
    panic_any(Killed)
}

/// Runs `work` as a process that the script may kill: nothing when it was killed. Other panics go on.
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
