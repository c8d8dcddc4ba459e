//! The parts of the machine's configuration that the worker uses.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use host::linux::files;
use logic::config::{self, Loaded};

/// The configuration of the machine, or `file` instead of its main file.
pub fn loaded(file: Option<&PathBuf>) -> Loaded {
    let root = Path::new("/");
    files::load(root, files::sources(root, file))
}

/// Device numbers that a measurement must not use: all in the files, including those disabled by the kernel command line.
pub fn numbers() -> BTreeSet<u32> {
    let loaded = config::load_sources(files::find_sources(Path::new("/")), "");
    loaded.settings.devices.iter().map(|device| device.number).collect()
}
