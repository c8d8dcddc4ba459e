//! What maintenance asks of a simulated machine.

use std::time::Duration;

use super::SimHost;
use crate::host::upkeep::{Resource, StateFile, Upkeep};
use crate::host::{Errno, HostError};

impl Upkeep for SimHost {
    fn pressure(&self, _resource: Resource) -> Option<String> {
        None
    }

    fn load(&self) -> Option<String> {
        Some("0.00 0.00 0.00 1/1 1\n".to_owned())
    }

    fn boot_id(&self) -> String {
        self.machine().look().boot_id.clone()
    }

    fn on_battery(&self) -> Option<u8> {
        None
    }

    fn synchronised_clock(&self) -> Option<Duration> {
        self.machine().look().synchronised
    }

    fn block_bytes(&self, path: &str) -> Result<u64, HostError> {
        let bytes = self.machine().look().bytes_of(path);
        bytes.ok_or_else(|| HostError::new(path, "look at its size", Errno::NOENT))
    }

    fn read_state(&self, file: StateFile) -> Option<String> {
        self.machine().look().states.get(&file).cloned()
    }

    fn write_state(&mut self, file: StateFile, text: &str) -> Result<(), HostError> {
        self.act(file.path(), "write", |state, _| {
            state.states.insert(file, text.to_owned());
            Ok(())
        })
    }
}
