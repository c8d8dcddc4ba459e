//! The load of a simulated machine.

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
