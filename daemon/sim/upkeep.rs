//! The calls of maintenance on a simulated machine.

use std::time::Duration;

use super::SimHost;
use host::upkeep::{Priority, StateFile, Upkeep};
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

impl Busy {
    /// `/proc/pressure/cpu`.
    pub(crate) fn cpu_pressure(self) -> Option<String> {
        Some(pressure(self.cpu?, 0.0))
    }

    /// `/proc/pressure/memory`.
    pub(crate) fn memory_pressure(self) -> Option<String> {
        Some(pressure(self.memory?, self.memory?))
    }
}

fn pressure(some: f64, full: f64) -> String {
    let line = |name: &str, share: f64| format!("{name} avg10={share:.2} avg60=0.00 avg300=0.00 total=0\n");
    line("some", some) + &line("full", full)
}

impl Upkeep for SimHost {
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
