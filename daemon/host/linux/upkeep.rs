//! [`Upkeep`] of the real machine.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{LinuxHost, durable, files, priority};
use crate::upkeep::{Priority, StateFile, Upkeep};
use crate::{Host, HostError};

/// Bytes per sector in `/sys/dev/block/*/size`, independent of the device.
const SECTOR: u64 = 512;

impl Upkeep for LinuxHost {
    fn on_battery(&self) -> Option<u8> {
        on_battery(&self.path("/sys/class/power_supply"))
    }

    fn synchronised_clock(&self) -> Option<Duration> {
        if !is_synchronised() {
            return None;
        }
        SystemTime::now().duration_since(UNIX_EPOCH).ok()
    }

    fn block_bytes(&self, path: &str) -> Result<u64, HostError> {
        let probe = self.probe_block(path)?;
        let (major, minor) = probe
            .and_then(|probe| probe.device)
            .ok_or_else(|| HostError::text(path, "look at its size", "it is no block device"))?;
        let text = self.read(&format!("/sys/dev/block/{major}:{minor}/size"))?;
        let sectors: Result<u64, _> = text.trim().parse();
        sectors
            .map(|sectors| sectors.saturating_mul(SECTOR))
            .map_err(|error| HostError::text(path, "look at its size", error.to_string()))
    }

    fn read_state(&self, file: StateFile) -> Result<Option<String>, HostError> {
        match fs::read_to_string(self.path(file.path())) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(HostError::io(file.path(), "read", &error)),
        }
    }

    fn set_priority(&mut self, priority: Priority) {
        match priority {
            Priority::Low => priority::low(),
            Priority::Normal => priority::real_time(false),
            Priority::RealTime => priority::real_time(true),
        }
    }

    fn write_state(&mut self, file: StateFile, text: &str) -> Result<(), HostError> {
        match file {
            StateFile::Boot => files::replace(&self.root, file.path(), Some(text))
                .map_err(|error| HostError::text(file.path(), "write", error)),
            StateFile::Budget => durable::replace(&self.root, file.path(), text),
        }
    }
}

/// The capacity of the battery in percent if it is discharging, and no mains is online
/// (Documentation/ABI/testing/sysfs-class-power).
fn on_battery(directory: &Path) -> Option<u8> {
    let mut least = None;
    for supply in fs::read_dir(directory).ok()?.filter_map(Result::ok) {
        let text =
            |name: &str| fs::read_to_string(supply.path().join(name)).unwrap_or_default().trim().to_owned();
        match text("type").as_str() {
            "Mains" | "USB" if text("online") == "1" => return None,
            // Batteries with scope `Device` belong to mice and keyboards.
            "Battery" if text("scope") != "Device" && text("status") == "Discharging" => {
                if let Ok(percent) = text("capacity").parse::<u8>() {
                    least = Some(least.map_or(percent, |other: u8| other.min(percent)));
                }
            }
            _ => {}
        }
    }
    least
}

#[allow(unsafe_code)]
fn is_synchronised() -> bool {
    // SAFETY: all fields of `timex` are numbers, for which zeros are valid; with no modes set nothing is changed.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live variable of the right type.
    let answer = unsafe { libc::adjtimex(&raw mut state) };
    answer >= 0 && answer != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supply(directory: &Path, name: &str, files: &[(&str, &str)]) {
        fs::create_dir(directory.join(name)).unwrap();
        for (file, text) in files {
            fs::write(directory.join(name).join(file), format!("{text}\n")).unwrap();
        }
    }

    #[test]
    fn the_emptiest_battery_counts_while_nothing_is_plugged_in() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(on_battery(directory.path()), None);
        supply(
            directory.path(),
            "mouse",
            &[("type", "Battery"), ("scope", "Device"), ("status", "Discharging"), ("capacity", "3")],
        );
        assert_eq!(on_battery(directory.path()), None);
        supply(
            directory.path(),
            "BAT0",
            &[("type", "Battery"), ("status", "Discharging"), ("capacity", "80")],
        );
        supply(
            directory.path(),
            "BAT1",
            &[("type", "Battery"), ("status", "Discharging"), ("capacity", "25")],
        );
        supply(directory.path(), "AC", &[("type", "Mains"), ("online", "0")]);
        assert_eq!(on_battery(directory.path()), Some(25));
        fs::write(directory.path().join("AC/online"), "1\n").unwrap();
        assert_eq!(on_battery(directory.path()), None);
    }

    #[test]
    fn state_files_are_replaced_atomically() {
        let root = tempfile::tempdir().unwrap();
        let mut host = LinuxHost::new(root.path());
        for file in [StateFile::Boot, StateFile::Budget] {
            assert_eq!(host.read_state(file).unwrap(), None);
            host.write_state(file, "a").unwrap();
            host.write_state(file, "bc").unwrap();
            assert_eq!(host.read_state(file).unwrap().as_deref(), Some("bc"));
        }
    }
}
