//! What maintenance asks of a machine in addition to [`Host`].

use std::time::Duration;

use super::{Host, HostError};

/// How soon maintenance gets a CPU when others want it, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// After most others. It is not raised again.
    Low,
    /// Like others.
    Normal,
    /// Before others.
    RealTime,
}

/// State of maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateFile {
    /// Kept until the next boot, in `/run/zramd/work/maintenance.state`.
    Boot,
    /// Bytes written to backing devices, in `/var/lib/zramd/budget.json`. Synced before a write returns.
    Budget,
}

impl StateFile {
    pub const fn path(self) -> &'static str {
        match self {
            StateFile::Boot => "/run/zramd/work/maintenance.state",
            StateFile::Budget => "/var/lib/zramd/budget.json",
        }
    }
}

/// A machine that can be maintained.
pub trait Upkeep: Host {
    /// Capacity of the battery in percent while the machine runs on it.
    fn on_battery(&self) -> Option<u8>;
    /// Time since 1970 if the kernel considers its clock synchronised (adjtimex(2)).
    fn synchronised_clock(&self) -> Option<Duration>;
    /// Size of a block device in bytes.
    fn block_bytes(&self, path: &str) -> Result<u64, HostError>;
    /// The stored state; `None` if there is none.
    fn read_state(&self, file: StateFile) -> Result<Option<String>, HostError>;
    /// Sets the priority from now on.
    fn set_priority(&mut self, priority: Priority);
    /// Replaces the stored state.
    fn write_state(&mut self, file: StateFile, text: &str) -> Result<(), HostError>;
}
