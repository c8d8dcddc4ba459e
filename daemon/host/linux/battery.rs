//! The battery.

use std::fs;
use std::path::Path;

/// The capacity of the battery in percent if it is discharging, and no mains is online
/// (Documentation/ABI/testing/sysfs-class-power).
pub fn percent(directory: &Path) -> Option<u8> {
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
        assert_eq!(percent(directory.path()), None);
        supply(
            directory.path(),
            "mouse",
            &[("type", "Battery"), ("scope", "Device"), ("status", "Discharging"), ("capacity", "3")],
        );
        assert_eq!(percent(directory.path()), None);
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
        assert_eq!(percent(directory.path()), Some(25));
        fs::write(directory.path().join("AC/online"), "1\n").unwrap();
        assert_eq!(percent(directory.path()), None);
    }
}
