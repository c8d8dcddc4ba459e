//! zram-generator: merges its files into a set of devices, and translates each into a section of zramd.

mod device;
mod program;
mod size;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::document::Draft;
use super::ini::{self, Setting};
use super::{Program, Values};
use logic::proc::zram_number;

/// A device: the last setting of each key.
#[derive(Debug)]
struct Device {
    number: u32,
    /// Header of its section.
    header: Setting,
    keys: BTreeMap<String, Setting>,
    /// Settings that the original ignores.
    unknown: Vec<Setting>,
}

/// Keys of the original.
const KEYS: [&str; 12] = [
    "zram-size",
    "zram-fraction",
    "max-zram-size",
    "host-memory-limit",
    "zram-resident-limit",
    "compression-algorithm",
    "writeback-device",
    "swap-priority",
    "mount-point",
    "fs-type",
    "options",
    "memory-limit",
];

/// The programs of `set!` lines.
pub fn programs(files: &[(PathBuf, String)]) -> Vec<Program> {
    let settings = files.iter().flat_map(|(file, text)| ini::read(file, text).0);
    let program = |setting: Setting| {
        let name =
            setting.key.strip_prefix("set!").filter(|name| *name != "ram" && setting.section.is_none())?;
        let (name, command) = (name.to_owned(), setting.value.clone());
        Some(Program { file: setting.file, line: setting.line, name, command })
    };
    settings.filter_map(program).collect()
}

/// Reads the files, lowest precedence first.
pub fn import(files: &[(PathBuf, String)], values: &Values) -> Draft {
    let mut draft = Draft::default();
    let mut settings = Vec::new();
    for (file, text) in files {
        let (found, warnings) = ini::read(file, text);
        draft.warnings.extend(warnings);
        settings.extend(found);
    }
    let given = program::given(&settings, values, &mut draft);
    for device in devices(settings, &mut draft).into_values() {
        device::import(&device, &given, &mut draft);
    }
    draft.sections.extend(draft.offered.take());
    draft
}

/// The number of a device as parsed by the original, which also accepts `zram+1` and `zram01`.
fn generous_number(section: &str) -> Option<u64> {
    section.strip_prefix("zram")?.parse().ok()
}

fn devices(settings: Vec<Setting>, draft: &mut Draft) -> BTreeMap<u32, Device> {
    let exact: BTreeSet<u32> =
        settings.iter().filter_map(|setting| zram_number(setting.section.as_deref()?)).collect();
    let mut devices: BTreeMap<u32, Device> = BTreeMap::new();
    for setting in settings {
        let Some(section) = setting.section.clone() else { continue };
        let Some(number) = number(&section, &exact, &setting, draft) else { continue };
        if setting.is_header() {
            header(&mut devices, number, setting, draft);
        } else if let Some(device) = devices.get_mut(&number) {
            device.add(setting, draft);
        }
    }
    devices
}

/// The device of a section; `None` with a warning at its header if it is not one.
fn number(section: &str, exact: &BTreeSet<u32>, setting: &Setting, draft: &mut Draft) -> Option<u32> {
    if let Some(number) = zram_number(section) {
        return Some(number);
    }
    let meant = generous_number(section).and_then(|number| u32::try_from(number).ok());
    let free = meant.filter(|number| !exact.contains(number));
    if setting.is_header() {
        let text = match (free, meant) {
            (Some(number), _) => {
                format!(
                    "there can be no device {section}, for which zram-generator waits until it times out; it was taken for zram{number}"
                )
            }
            (None, Some(number)) => {
                format!(
                    "there can be no device {section}, and [zram{number}] has a section of its own; it was left out"
                )
            }
            (None, None) => format!(
                "zram-generator ignores [{section}], and so nothing was imported from it; device sections are named [zram0], [zram1] and so on"
            ),
        };
        draft.warn(&setting.file, Some(setting.line), text);
    }
    free
}

fn header(devices: &mut BTreeMap<u32, Device>, number: u32, setting: Setting, draft: &mut Draft) {
    match devices.get(&number) {
        Some(device) if device.header.file == setting.file => {
            let text = format!(
                "[zram{number}] also begins in line {}; the settings of both were put together, the last of each key counts",
                device.header.line
            );
            draft.warn(&setting.file, Some(setting.line), text);
        }
        Some(_) => {}
        None => {
            let device = Device { number, header: setting, keys: BTreeMap::new(), unknown: Vec::new() };
            devices.insert(number, device);
        }
    }
}

impl Device {
    fn add(&mut self, setting: Setting, draft: &mut Draft) {
        if !KEYS.contains(&setting.key.as_str()) {
            let text = format!("zram-generator knows no `{}` and ignores it; it was left out", setting.key);
            draft.warn(&setting.file, Some(setting.line), text);
            return self.unknown.push(setting);
        }
        let key = if setting.key == "memory-limit" { "host-memory-limit" } else { &setting.key }.to_owned();
        if let Some(known) = self.keys.get(&key)
            && known.file == setting.file
            && known.section == setting.section
        {
            let text = format!("{key} is also given in line {}; the last one counts", known.line);
            draft.warn(&setting.file, Some(setting.line), text);
        }
        self.keys.insert(key, setting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_those_above_all_sections_and_ram_is_none() {
        let text = "set!a = echo 1\nset!ram = echo 2\nb = echo 3\n[zram0]\nset!c = echo 4\n";
        let found = programs(&[("/f".into(), text.to_owned())]);
        let [Program { line: 1, name, command, .. }] = &found[..] else { panic!("{found:?}") };
        assert_eq!((name.as_str(), command.as_str()), ("a", "echo 1"));
    }
}
