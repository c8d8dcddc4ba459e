//! Who set up a device.

use crate::facts::{Facts, Seen, Use};
use crate::human::human;
use crate::record::{Record, Target};

/// Who set up a device.
#[derive(Debug, Clone, PartialEq)]
pub enum Ownership<'a> {
    /// There is no device with this number.
    Missing,
    /// It exists, is uninitialised, and no program uses it.
    Free,
    /// zramd has set it up, or begun to.
    Ours(&'a Record),
    /// zramd has set it up, and another program has done so since, by this difference.
    TakenOver(String),
    /// Another program set it up.
    Foreign {
        /// Its use, for messages.
        user: String,
    },
}

/// Determines who set up device `number`.
pub fn ownership(number: u32, facts: &Facts) -> Ownership<'_> {
    let Some(device) = facts.devices.get(&number) else { return Ownership::Missing };
    if let Some(record) = facts.records.get(&Target::Device(number))
        && record.is_of(device.diskseq)
    {
        return match record.taken_over(device) {
            None => Ownership::Ours(record),
            Some(differs) => Ownership::TakenOver(differs),
        };
    }
    if !device.initialised {
        return Ownership::Free;
    }
    let user = match facts.device_use(number) {
        Some(Use::Swap { priority, .. }) => format!("it is active as swap with priority {priority}"),
        Some(Use::Mounted { mount_point }) => format!("it is mounted on {mount_point}"),
        None => {
            let size = human(device.disk_size);
            match &device.seen {
                Seen::Signature(found) => {
                    format!("it has a size of {size}, contains: {found}, and is not in use")
                }
                Seen::Unknown | Seen::Nothing => format!("it has a size of {size} but is not in use"),
            }
        }
    };
    Ownership::Foreign { user }
}
