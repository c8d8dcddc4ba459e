//! The keys that say where a device writes pages back to.

use super::problem::Problem;
use super::section::SectionReader;
use super::settings::{BackingSettings, StoreSettings};

/// A device or a file, not both; and no key that belongs to the other.
pub fn writeback(reader: &mut SectionReader<'_>) -> Option<BackingSettings> {
    let (device, file) = (reader.path("writeback-device"), reader.path("writeback-file"));
    if let (Some((_, device)), Some((_, file))) = (&device, &file) {
        let message = format!("writeback-file and writeback-device (line {}) both say where", device.line);
        reader.fail(Problem::error(file.clone(), message).hint("keep one of them"));
    }
    let size = reader.size("writeback-size", false);
    let encrypted = match reader.text("writeback-encryption") {
        None => true,
        Some((word, _)) if word == "random-key" => true,
        Some((word, _)) if word == "none" => false,
        Some((word, origin)) => {
            let problem = Problem::error(origin, format!("there is no writeback-encryption \"{word}\""));
            reader.fail(problem.hint("write \"random-key\" or \"none\""));
            true
        }
    };
    for (key, belongs, to) in [
        ("writeback-size", file.is_some(), "a writeback-file"),
        ("writeback-encryption", file.is_some() || device.is_some(), "a writeback-device or writeback-file"),
    ] {
        if let Some(assignment) = reader.own(key).filter(|_| !belongs) {
            let problem = Problem::error(assignment.key_origin.clone(), format!("`{key}` needs {to}"));
            reader.fail(problem.hint("leave it out"));
        }
    }
    let (store, origin) = match (device, file) {
        (Some((path, origin)), _) => (StoreSettings::Device(path), origin),
        (None, Some((path, origin))) => (StoreSettings::File { path, size }, origin),
        (None, None) => return None,
    };
    Some(BackingSettings { store, encrypted, origin })
}
