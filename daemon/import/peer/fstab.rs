//! `/etc/fstab`: a tmpfs becomes a RAM disk. Lines about zram devices are reported only, because sizes and algorithms are set
//! elsewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::document::{Draft, Section};
use super::refused::refused;
use logic::config::tmpfs::{self, Meaning};
use logic::overlay::quoted;
use logic::proc::{device_number, unescape};
use logic::unit_name::normalised;

/// What tmpfs takes without an option, and zramd takes other values.
const DEFAULTS: [(&str, &str); 2] = [("size", "\"50%\""), ("mode", "\"1777\"")];

/// Reads the file.
pub fn import(files: &[(PathBuf, String)]) -> Draft {
    let mut draft = Draft::default();
    let mut names = BTreeSet::new();
    for (file, text) in files {
        for (index, line) in text.lines().enumerate() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields.first().is_none_or(|field| field.starts_with('#')) {
                continue;
            }
            let [source, place, fs_type, rest @ ..] = &fields[..] else {
                let text = "a line of fstab has at least three fields; it was left out";
                draft.warn(file, Some(index + 1), text);
                continue;
            };
            let entry = Entry { file, line: index + 1, options: rest.first().unwrap_or(&"defaults") };
            match (*fs_type, device_number(source)) {
                ("tmpfs", _) => entry.disk(place, &mut names, &mut draft),
                (_, Some(number)) => entry.device(number, place, fs_type, &mut draft),
                _ => {}
            }
        }
    }
    draft
}

/// A line.
struct Entry<'a> {
    file: &'a Path,
    line: usize,
    options: &'a str,
}

impl Entry<'_> {
    fn warn(&self, text: impl Into<String>, draft: &mut Draft) {
        draft.warn(self.file, Some(self.line), text);
    }

    /// A zram device.
    fn device(&self, number: u32, place: &str, fs_type: &str, draft: &mut Draft) {
        let (was, text) = if fs_type == "swap" {
            let text = format!(
                "zramd activates swap on zram{number} itself: configure [zram{number}], and remove this line"
            );
            (format!("swap on zram{number}"), text)
        } else {
            let text = format!(
                "zramd makes and mounts the file system on zram{number} itself: configure [zram{number}] with mount-point = {}, \
                 and remove this line",
                quoted(place)
            );
            (format!("{place} on zram{number}"), text)
        };
        self.warn(text, draft);
        draft.row(was, "", "not imported: its size is set elsewhere");
    }

    /// A tmpfs.
    fn disk(&self, place: &str, names: &mut BTreeSet<String>, draft: &mut Draft) {
        let decoded = String::from_utf8(unescape(place.as_bytes())).ok();
        let Some(place) = decoded.and_then(|place| normalised(&place)) else {
            return self.warn(format!("`{place}` is no absolute path without `..`; it was left out"), draft);
        };
        let name = tmpfs::free_name(&place, names);
        let minimal = format!("[ramdisk.{name}]\nmount-point = {}\n", quoted(&place));
        if let Some((_, why)) = refused(&minimal).pop() {
            draft.row(format!("tmpfs {place}"), "", "stays in fstab");
            return self.warn(format!("zramd does not mount {place}, so it was left out: {why}"), draft);
        }
        let mut section = Section::new(format!("ramdisk.{name}"), self.file.to_owned(), Some(self.line));
        let is = section.set("mount-point", &quoted(&place));
        draft.row(format!("tmpfs {place}"), is, "");
        self.warn(format!("zramd mounts {place} itself: remove this line before the next boot"), draft);
        let mut options = Vec::new();
        let mut keys: Vec<(&str, String, &str)> = Vec::new();
        for option in self.options.split(',').filter(|option| !option.is_empty()) {
            match tmpfs::option(option) {
                Meaning::Key(key, value) => {
                    // The last one counts.
                    keys.retain(|(known, ..)| *known != key);
                    keys.push((key, value, option));
                }
                Meaning::Disabled => {
                    section.off = true;
                    draft.row(option, format!("[{}] enabled = false", section.name), "");
                }
                Meaning::Option => options.push(option),
                Meaning::Nothing => {}
                Meaning::LeftOut(why) => {
                    section.comment(&format!("{option} ({why})"));
                    self.warn(format!("`{option}` was left out: {why}"), draft);
                    draft.row(option, "", why);
                }
            }
        }
        for (key, value) in DEFAULTS {
            if !keys.iter().any(|(known, ..)| *known == key) {
                let is = section.set(key, value);
                draft.row(format!("{key} is not set"), is, "");
            }
        }
        for (key, value, was) in keys {
            let is = section.set(key, &value);
            draft.row(was, is, "");
        }
        // Without the key, zramd adds nosuid and nodev.
        let options = options.join(",");
        let is = section.set("options", &quoted(&options));
        if !options.is_empty() {
            draft.row(options, is, "");
        }
        draft.sections.push(section);
    }
}
