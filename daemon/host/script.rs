//! Fault injection: the calls of a test are numbered, and a script says which fault happens at which number.

use crate::Errno;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails without having done anything.
    Fail(Errno),
    /// The call transfers only half of the bytes. No effect on calls that transfer none.
    Short,
    /// The process is killed before the call.
    KillBefore,
    /// The process is killed after the call.
    KillAfter,
}

/// The calls so far, as text, and the planned fault. Calls count from 1.
#[derive(Debug, Clone, Default)]
pub struct Script {
    pub transcript: Vec<String>,
    fault: Option<(usize, Fault)>,
}

impl Script {
    /// With a fault at call `number`; `None` only counts the calls.
    pub fn new(fault: Option<(usize, Fault)>) -> Script {
        Script { transcript: Vec::new(), fault }
    }

    /// Counts a call; returns the fault that happens at it.
    pub fn enter(&mut self, call: String) -> Option<Fault> {
        self.transcript.push(call);
        self.fault.filter(|(number, _)| *number == self.transcript.len()).map(|(_, fault)| fault)
    }
}
