//! The keys that select the backing store of a device.

use super::keys::device as keys;
use super::section::SectionReader;
use super::settings::BackingSettings;
use crate::finding::Finding;
use crate::request::Store;

/// A device or a file, not both; keys that belong to the other are errors.
pub fn writeback(reader: &mut SectionReader<'_>) -> Option<BackingSettings> {
    let (device, file) = (reader.path(&keys::WRITEBACK_DEVICE), reader.path(&keys::WRITEBACK_FILE));
    if let (Some((_, device)), Some((_, file))) = (&device, &file) {
        let message =
            format!("writeback-file and writeback-device (line {}) exclude each other", device.line);
        reader.fail(Finding::error(file.clone(), message).remedy("keep one of them"));
    }
    let size = reader.size(&keys::WRITEBACK_SIZE);
    let encrypted = reader.word(&keys::WRITEBACK_ENCRYPTION).as_deref() != Some("none");
    for (key, belongs, to) in [
        (&keys::WRITEBACK_SIZE, file.is_some(), "a writeback-file"),
        (
            &keys::WRITEBACK_ENCRYPTION,
            file.is_some() || device.is_some(),
            "a writeback-device or writeback-file",
        ),
    ] {
        if let Some(assignment) = reader.own(key).filter(|_| !belongs) {
            let problem = Finding::error(assignment.key_origin.clone(), format!("`{}` needs {to}", key.name));
            reader.fail(problem.remedy("leave it out"));
        }
    }
    let (store, origin) = match (device, file) {
        (Some((path, origin)), _) => (Store::Device(path), origin),
        (None, Some((path, origin))) => (Store::File { path, size }, origin),
        (None, None) => return None,
    };
    Some(BackingSettings { store, encrypted, origin })
}
