//! What the worker reads of the machine's configuration.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use host::linux::files;
use logic::config::{self, Loaded};

/// The configuration of the machine, or `file` instead of its main file.
pub fn loaded(file: Option<&PathBuf>) -> Loaded {
    let root = Path::new("/");
    let cmdline = files::read_optional(root, "/proc/cmdline").unwrap_or_default();
    config::load_sources(files::sources(root, file), &cmdline)
}

/// Device numbers that measuring has to leave alone: those of the files, whatever the kernel command line switches off.
pub fn numbers() -> BTreeSet<u32> {
    let loaded = config::load_sources(files::find_sources(Path::new("/")), "");
    loaded.settings.devices.iter().map(|device| device.number).collect()
}
