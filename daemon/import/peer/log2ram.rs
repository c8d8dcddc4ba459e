//! log2ram: `/etc/log2ram.conf`. The directories that it keeps in memory become RAM disks, their copies on disk
//! snapshots.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::document::{Draft, Section};
use super::shell::{self, Variable, Variables};
use logic::config::tmpfs;
use logic::overlay::quoted;
use logic::unit_name::normalised;

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
/// Settings of the copy on disk.
const COPY: [&str; 5] = ["USE_RSYNC", "MAIL", "NOTIFICATION", "NOTIFICATION_COMMAND", "JOURNALD_AWARE"];
/// Settings of compression.
const COMPRESSION: [&str; 2] = ["COMP_ALG", "LOG_DISK_SIZE"];
/// Settings of older versions.
const OLD: [&str; 2] = ["BIG_CORES", "MEM_FACTOR"];

/// Reads the file.
pub fn import(files: &[(PathBuf, String)]) -> Draft {
    let mut draft = Draft::default();
    let Some((file, _)) = files.last() else { return draft };
    let variables = shell::read("log2ram", &KNOWN, files, &mut draft);
    let paths = variables.get("PATH_DISK");
    let value = paths.map_or("/var/log", |paths| paths.value.as_str());
    let size = size(variables.get("SIZE"), "128M", &mut draft);
    let mut names = BTreeSet::new();
    for path in value.split(';').map(str::trim).filter(|path| !path.is_empty()) {
        let Some(path) = normalised(path) else {
            let text = format!("`{path}` is no absolute path without `..`; it was left out");
            draft.warn(file, paths.map(|paths| paths.line), text);
            continue;
        };
        let name = tmpfs::free_name(&path, &mut names);
        let section = disk(&path, &name, &size, &variables, file.clone(), &mut draft);
        draft.sections.push(section);
    }
    compression(&variables, &mut draft);
    copy(&variables, &mut draft);
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
    let is = section.set("mount-point", &quoted(path));
    draft.row(shell::was(variables.get("PATH_DISK"), "PATH_DISK", "/var/log"), is, "");
    if let Some(compressed) = compressed(variables) {
        let is = section.set("backend", "\"zram\"");
        draft.row(compressed.text(), is, "");
        let is = section.set("size", &quoted(&self::size(variables.get("LOG_DISK_SIZE"), "256M", draft)));
        draft.row(shell::was(variables.get("LOG_DISK_SIZE"), "LOG_DISK_SIZE", "256M"), is, "");
        let value = shell::algorithm(variables.get("COMP_ALG"), "lz4", draft);
        let is = section.set("compression-algorithm", &value);
        draft.row(
            shell::was(variables.get("COMP_ALG"), "COMP_ALG", "lz4"),
            is,
            "auto: another one where the kernel lacks it",
        );
        let note = "no bound for the memory that it takes: files would be lost when it is reached";
        draft.row(shell::was(variables.get("SIZE"), "SIZE", "128M"), "", note);
    } else {
        let is = section.set("size", &quoted(size));
        draft.row(shell::was(variables.get("SIZE"), "SIZE", "128M"), is, "");
    }
    let is = section.set("persist", "\"snapshot\"");
    draft.row("a copy on disk, written at shutdown", is, "a new snapshot each time, never over the last one");
    let is = section.set("save-interval", "\"1d\"");
    draft.row("and by log2ram-daily.timer", is, "");
    section.set("options", "\"nosuid,nodev,noexec,noatime\"");
    section.set("mode", "\"0755\"");
    section
}

/// A size as for tmpfs.
fn size(variable: Option<&Variable>, default: &str, draft: &mut Draft) -> String {
    let Some(variable) = variable else { return default.to_owned() };
    let value = variable.value.trim();
    tmpfs::size(value).unwrap_or_else(|| {
        let text = format!("`{value}` is no size of a tmpfs; {default} was taken");
        draft.warn(&variable.file, Some(variable.line), text);
        default.to_owned()
    })
}

/// The setting that enables compression, if any.
fn compressed(variables: &Variables) -> Option<&Variable> {
    variables.get("ZL2R").filter(|variable| variable.value == "true")
}

fn compression(variables: &Variables, draft: &mut Draft) {
    if compressed(variables).is_none() {
        for variable in COMPRESSION.into_iter().filter_map(|name| variables.get(name)) {
            draft.row(variable.text(), "", "has no effect without ZL2R=true");
        }
    }
}

fn copy(variables: &Variables, draft: &mut Draft) {
    for variable in COPY.into_iter().filter_map(|name| variables.get(name)) {
        let note = match variable.name.as_str() {
            "JOURNALD_AWARE" => "journald leaves the RAM disk before it is saved, always",
            "USE_RSYNC" => "snapshots have a format of zramd's own",
            _ => "a save that fails is in the journal; zramd sends nothing",
        };
        draft.row(variable.text(), "", note);
    }
}
