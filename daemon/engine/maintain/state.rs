//! State of maintenance, kept until the next boot.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use host::{Host, HostError, StateFile};
use logic::maintain::idle_marks::{Marking, Marks};
use logic::maintain::suspend::History;
use logic::maintain_report::Total;

/// Contents of the state file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The boot that the state belongs to.
    pub boot_id: String,
    /// Suspends of the machine.
    pub history: History,
    /// Waking time at which a resume was noticed; `None` if that is long ago, or if the run before noticed one, too.
    pub resumed: Option<Duration>,
    /// `MemTotal` in KiB when the device sizes last matched it.
    pub memory_total_kib: u64,
    /// Last reported sizes in bytes that follow from memory, by device number.
    pub sizes: BTreeMap<u32, u64>,
    /// Second devices requested because memory has grown.
    pub added: Vec<Added>,
    /// State by device number.
    pub devices: BTreeMap<u32, DeviceState>,
    /// Totals since boot, by policy.
    pub totals: BTreeMap<String, Total>,
}

/// A requested second device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// Number of the first device.
    pub first: u32,
    /// Its size in bytes.
    pub bytes: u64,
    /// Waking time of the request.
    pub asked: Duration,
    /// Numbers of the devices that existed before: none of them is the new one.
    pub before: Vec<u32>,
    /// Its number, once it exists.
    pub number: Option<u32>,
}

/// State of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceState {
    /// Tells it from other devices with the same number.
    pub diskseq: Option<u64>,
    /// How the kernel treats an age.
    pub marking: Option<Marking>,
    /// Which age its idle marks stand for.
    pub marks: Marks,
    /// Waking time of the last recompression.
    pub recompressed: Option<Duration>,
    /// Waking time of the last write-back.
    pub written_back: Option<Duration>,
    /// Waking time at which writing back failed, if it was the last time.
    pub write_back_failed: Option<Duration>,
    /// Number of incompressible pages when recompressing them last gained nothing.
    pub hopeless_huge_pages: u64,
}

impl State {
    /// Reads the state of this boot. Unreadable state counts as empty.
    pub fn read<H: Host>(host: &H) -> State {
        let boot_id = crate::gather::boot_id(host);
        let text = host.read_state(StateFile::Boot).ok().flatten();
        let read = text.and_then(|text| serde_json::from_str::<State>(&text).ok());
        read.filter(|state| state.boot_id == boot_id).unwrap_or(State { boot_id, ..State::default() })
    }

    pub fn write<H: Host>(&self, host: &mut H) -> Result<(), HostError> {
        let text = serde_json::to_string(self)
            .map_err(|error| HostError::text(StateFile::Boot.path(), "write JSON", error.to_string()))?;
        host.write_state(StateFile::Boot, &text)
    }

    /// The state of this device; empty if it was of an earlier device with the same number.
    pub fn device(&mut self, number: u32, diskseq: Option<u64>) -> &mut DeviceState {
        let state = self.devices.entry(number).or_default();
        if state.diskseq != diskseq {
            *state = DeviceState { diskseq, ..DeviceState::default() };
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_older_version_remembers_is_not_lost() {
        let text = r#"{"boot_id":"a","devices":{"0":{"diskseq":3,"marking":"additive","marks":{"idle_since":{"secs":7,"nanos":0}},
            "recompressed":{"secs":9,"nanos":0},"written_back":null,"hopeless_huge_pages":5}}}"#;
        let state: State = serde_json::from_str(text).unwrap();
        let device = state.devices[&0];
        assert_eq!(device.marks.idle_since, Some(Duration::from_secs(7)));
        assert_eq!(device.recompressed, Some(Duration::from_secs(9)));
    }
}
