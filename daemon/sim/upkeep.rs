//! The calls of maintenance on a simulated machine.

use std::time::Duration;

use super::SimHost;
use host::upkeep::{Priority, Resource, StateFile, Upkeep};
use host::{Errno, HostError};

/// Load of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Busy {
    /// Load of the last minute.
    pub load: f64,
    /// Percent of the last ten seconds in which some task waited for a CPU; `None` on kernels without PSI.
    pub cpu: Option<f64>,
    /// Percent of the last ten seconds in which all tasks waited for memory.
    pub memory: Option<f64>,
    /// Battery charge in percent; `None` on mains power.
    pub battery: Option<u8>,
}

impl Upkeep for SimHost {
    fn pressure(&self, resource: Resource) -> Option<String> {
        let busy = self.machine().look().busy;
        let (some, full) = match resource {
            Resource::Cpu => (busy.cpu?, 0.0),
            Resource::Memory => (busy.memory?, busy.memory?),
        };
        let line =
            |name: &str, share: f64| format!("{name} avg10={share:.2} avg60=0.00 avg300=0.00 total=0\n");
        Some(line("some", some) + &line("full", full))
    }

    fn load(&self) -> Option<String> {
        Some(format!("{:.2} 0.00 0.00 1/1 1\n", self.machine().look().busy.load))
    }

    fn on_battery(&self) -> Option<u8> {
        self.machine().look().busy.battery
    }

    fn synchronised_clock(&self) -> Option<Duration> {
        self.machine().look().synchronised
    }

    fn block_bytes(&self, path: &str) -> Result<u64, HostError> {
        let bytes = self.machine().look().bytes_of(path);
        bytes.ok_or_else(|| HostError::new(path, "look at its size", Errno::NOENT))
    }

    fn read_state(&self, file: StateFile) -> Result<Option<String>, HostError> {
        Ok(self.machine().look().states.get(&file).cloned())
    }

    fn set_priority(&mut self, priority: Priority) {
        self.machine().change().priority = priority;
    }

    fn write_state(&mut self, file: StateFile, text: &str) -> Result<(), HostError> {
        self.act(file.path(), "write", |state, _| {
            state.states.insert(file, text.to_owned());
            Ok(())
        })
    }
}
