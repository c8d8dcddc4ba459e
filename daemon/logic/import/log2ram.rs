//! log2ram: `/etc/log2ram.conf`. What it keeps in memory becomes a RAM disk; that it keeps a copy on disk does not.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::document::{Draft, Section, quoted};
use super::shell::{self, Variable, Variables};

const KNOWN: [&str; 12] = [
    "SIZE",
    "PATH_DISK",
    "USE_RSYNC",
    "MAIL",
    "NOTIFICATION",
    "NOTIFICATION_COMMAND",
    "JOURNALD_AWARE",
    "ZL2R",
    "COMP_ALG",
    "LOG_DISK_SIZE",
    "BIG_CORES",
    "MEM_FACTOR",
];
/// What belongs to the copy on disk.
const COPY: [&str; 5] = ["USE_RSYNC", "MAIL", "NOTIFICATION", "NOTIFICATION_COMMAND", "JOURNALD_AWARE"];
/// What belongs to compression.
const COMPRESSION: [&str; 2] = ["COMP_ALG", "LOG_DISK_SIZE"];
/// What older versions had.
const OLD: [&str; 2] = ["BIG_CORES", "MEM_FACTOR"];

/// Reads the file.
pub fn import(files: &[(PathBuf, String)]) -> Draft {
    let mut draft = Draft::default();
    let Some((file, _)) = files.last() else { return draft };
    let variables = shell::read("log2ram", &KNOWN, files, &mut draft);
    let paths = variables.get("PATH_DISK");
    let value = paths.map_or("/var/log", |paths| paths.value.as_str());
    let size = size(variables.get("SIZE"), &mut draft);
    let mut names = BTreeSet::new();
    for path in value.split(';').map(str::trim).filter(|path| !path.is_empty()) {
        if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
            let text = format!("`{path}` is no absolute path without `..`; it was left out");
            draft.warn(file, paths.map(|paths| paths.line), text);
            continue;
        }
        let name = free_name(path, &mut names);
        let section = disk(path, &name, &size, &variables, file.clone(), &mut draft);
        draft.sections.push(section);
    }
    compression(&variables, &mut draft);
    copy(&variables, file, &mut draft);
    for variable in OLD.into_iter().filter_map(|name| variables.get(name)) {
        draft.row(variable.text(), "", "log2ram no longer knows it");
    }
    draft
}

fn disk(
    path: &str,
    name: &str,
    size: &str,
    variables: &Variables,
    file: PathBuf,
    draft: &mut Draft,
) -> Section {
    let mut section =
        Section::new(format!("ramdisk.{name}"), file, variables.get("PATH_DISK").map(|found| found.line));
    section.off = true;
    section.comment("Switched off, because what is in it would be lost at every shutdown.");
    let is = section.set("mount-point", &quoted(path));
    draft.row(
        shell::was(variables.get("PATH_DISK"), "PATH_DISK", "/var/log"),
        is,
        "switched off: nothing is kept over a reboot",
    );
    let is = section.set("size", &quoted(size));
    draft.row(shell::was(variables.get("SIZE"), "SIZE", "128M"), is, "");
    section.set("options", "\"nosuid,nodev,noexec,noatime\"");
    section.set("mode", "\"0755\"");
    section
}

/// A size as tmpfs takes it: bytes, or with a suffix, or a share of RAM.
fn size(variable: Option<&Variable>, draft: &mut Draft) -> String {
    let Some(variable) = variable else { return "128M".to_owned() };
    let value = variable.value.trim();
    let digits = value.trim_end_matches(|c: char| !c.is_ascii_digit());
    let suffix = match &value[digits.len()..] {
        "" => Some("B"),
        "k" | "K" => Some("K"),
        "m" | "M" => Some("M"),
        "g" | "G" => Some("G"),
        "%" => Some("%"),
        _ => None,
    };
    match (digits.parse::<u64>(), suffix) {
        (Ok(number), Some(suffix)) => format!("{number}{suffix}"),
        _ => {
            draft.warn(
                &variable.file,
                Some(variable.line),
                format!("`{value}` is no size of a tmpfs; 128M was taken"),
            );
            "128M".to_owned()
        }
    }
}

/// `/var/log` → `var-log`, and another one when that is taken.
fn free_name(path: &str, names: &mut BTreeSet<String>) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let plain: String = path.chars().map(letter).collect();
    let plain = plain.trim_matches('-');
    let plain = if plain.is_empty() { "root" } else { plain };
    let mut name = plain.to_owned();
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{plain}-{number}");
        number += 1;
    }
    name
}

fn compression(variables: &Variables, draft: &mut Draft) {
    let on = variables.get("ZL2R").filter(|variable| variable.value == "true");
    if let Some(variable) = on {
        let value = |name: &str, default: &str| {
            variables.get(name).map_or(default.to_owned(), |found| found.value.clone())
        };
        let text = format!(
            "a RAM disk of zramd is not compressed; for a compressed one write a section such as [zram1] with the \
             mount-point, zram-size = \"{}\", compression-algorithm = \"{}\" and zram-resident-limit in its place",
            value("LOG_DISK_SIZE", "256M"),
            value("COMP_ALG", "lz4")
        );
        draft.warn(&variable.file, Some(variable.line), text);
        draft.row(variable.text(), "", "a RAM disk of zramd is not compressed");
    }
    for variable in COMPRESSION.into_iter().filter_map(|name| variables.get(name)) {
        let note = if on.is_some() {
            "a RAM disk of zramd is not compressed"
        } else {
            "means nothing without ZL2R=true"
        };
        draft.row(variable.text(), "", note);
    }
}

fn copy(variables: &Variables, file: &std::path::Path, draft: &mut Draft) {
    let given: Vec<&Variable> = COPY.into_iter().filter_map(|name| variables.get(name)).collect();
    let names: Vec<&str> = given.iter().map(|variable| variable.name.as_str()).collect();
    let left_out = if names.is_empty() { String::new() } else { format!(" ({} left out)", names.join(", ")) };
    let text = format!(
        "log2ram keeps a copy on disk and zramd does not{left_out}, so the RAM disks were switched off; stay with log2ram, or \
         switch log2ram.service off and take `enabled = false` out if what is in them may be lost at every shutdown"
    );
    draft.warn(file, None, text);
    for variable in given {
        draft.row(variable.text(), "", "zramd keeps no copy on disk");
    }
}
