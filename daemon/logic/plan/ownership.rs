//! Whose device it is.

use crate::facts::{Facts, Use};
use crate::human::human;
use crate::record::{Record, Target};

/// Whose device it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Ownership<'a> {
    /// There is no device of this number.
    Missing,
    /// It is there, uninitialised, and nobody has claimed it.
    Free,
    /// We set it up, or began to.
    Ours(&'a Record),
    /// Another program set it up.
    Foreign {
        /// What it is used for, for messages.
        user: String,
    },
}

/// Whose device `number` is.
pub fn ownership(number: u32, facts: &Facts) -> Ownership<'_> {
    let Some(device) = facts.devices.get(&number) else { return Ownership::Missing };
    if let Some(record) = facts.records.get(&Target::Device(number))
        && record.is_about(device.diskseq)
    {
        return Ownership::Ours(record);
    }
    if !device.initialised {
        return Ownership::Free;
    }
    let user = match facts.device_use(number) {
        Some(Use::Swap { priority, .. }) => format!("it is active as swap with priority {priority}"),
        Some(Use::Mounted { mount_point }) => format!("it is mounted on {mount_point}"),
        None => {
            format!("it has a size of {} but is not in use", human(device.disk_size))
        }
    };
    Ownership::Foreign { user }
}
