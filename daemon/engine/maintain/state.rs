//! What maintenance remembers until the next boot.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use host::HostError;
use host::upkeep::{StateFile, Upkeep};
use logic::maintain::marks::{Marking, Marks};
use logic::maintain::pressure::Level;
use logic::maintain::report::Total;
use logic::maintain::suspend::History;

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The boot that it is about.
    pub boot_id: String,
    /// When the machine slept.
    pub history: History,
    /// Waking time at which a suspend was noticed to be over, if that was not long ago and is not the second time in a row.
    pub resumed: Option<Duration>,
    /// `MemTotal` in KiB when it was last in line with the sizes of the devices.
    pub memory_total_kib: u64,
    /// Sizes in bytes that followed from memory when that was last said, by device number.
    pub sizes: BTreeMap<u32, u64>,
    /// Second devices that were asked for because memory has grown.
    pub added: Vec<Added>,
    /// By device number.
    pub devices: BTreeMap<u32, DeviceState>,
    /// What the policies have done, by their names.
    pub totals: BTreeMap<String, Total>,
}

/// A second device that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// Number of the first.
    pub first: u32,
    /// Its size in bytes.
    pub bytes: u64,
    /// Waking time at which it was asked for.
    pub asked: Duration,
    /// Numbers of the devices that there were: none of them is it.
    pub before: Vec<u32>,
    /// Its number, once it is there.
    pub number: Option<u32>,
}

/// What is remembered of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceState {
    /// Which device of this number it is about.
    pub diskseq: Option<u64>,
    /// What the kernel does with an age.
    pub marking: Option<Marking>,
    /// What its marks mean.
    pub marks: Marks,
    /// Waking time of the last recompression.
    pub recompressed: Option<Duration>,
    /// How short memory was then.
    pub recompressed_level: Level,
    /// Waking time of the last write-back.
    pub written_back: Option<Duration>,
    /// How short memory was then.
    pub written_back_level: Level,
    /// Incompressible pages when trying them gained nothing.
    pub hopeless_huge_pages: u64,
}

impl State {
    /// What is remembered of this boot. What cannot be read is as if nothing had been remembered.
    pub fn read<H: Upkeep>(host: &H) -> State {
        let boot_id = host.boot_id();
        let read =
            host.read_state(StateFile::Boot).and_then(|text| serde_json::from_str::<State>(&text).ok());
        read.filter(|state| state.boot_id == boot_id).unwrap_or(State { boot_id, ..State::default() })
    }

    /// Remembers it.
    pub fn write<H: Upkeep>(&self, host: &mut H) -> Result<(), HostError> {
        let text = serde_json::to_string(self)
            .map_err(|error| HostError::text(StateFile::Boot.path(), "write JSON", error.to_string()))?;
        host.write_state(StateFile::Boot, &text)
    }

    /// What is remembered of this very device; nothing of an earlier one of the same number.
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
        assert_eq!(
            (device.recompressed, device.recompressed_level),
            (Some(Duration::from_secs(9)), Level::None)
        );
    }
}
