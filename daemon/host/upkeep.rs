//! What maintenance asks of a machine besides what everybody asks.

use std::time::Duration;

use super::{Host, HostError};

/// What there can be too little of (Documentation/accounting/psi.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// `/proc/pressure/cpu`.
    Cpu,
    /// `/proc/pressure/memory`.
    Memory,
}

/// What maintenance remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateFile {
    /// Until the next boot: `/run/zramd/work/maintenance.state`.
    Boot,
    /// What was written to backing devices: `/var/lib/zramd/budget.json`. It is on disk before a write of it returns.
    Budget,
}

impl StateFile {
    /// Its path.
    pub const fn path(self) -> &'static str {
        match self {
            StateFile::Boot => "/run/zramd/work/maintenance.state",
            StateFile::Budget => "/var/lib/zramd/budget.json",
        }
    }
}

/// A machine that can be maintained.
pub trait Upkeep: Host {
    /// What the kernel counted of the time that was lost for lack of something; nothing where it does not count.
    fn pressure(&self, resource: Resource) -> Option<String>;
    /// `/proc/loadavg`.
    fn load(&self) -> Option<String>;
    /// The kernel's id of this boot.
    fn boot_id(&self) -> String;
    /// How full the battery is in percent, while the machine runs on it.
    fn on_battery(&self) -> Option<u8>;
    /// Time since 1970, if the kernel takes its clock for synchronised (adjtimex(2)).
    fn synchronised_clock(&self) -> Option<Duration>;
    /// Size of a block device in bytes.
    fn block_bytes(&self, path: &str) -> Result<u64, HostError>;
    /// What is remembered; nothing when there is none, or when it cannot be read.
    fn read_state(&self, file: StateFile) -> Option<String>;
    /// Remembers something instead.
    fn write_state(&mut self, file: StateFile, text: &str) -> Result<(), HostError>;
}
