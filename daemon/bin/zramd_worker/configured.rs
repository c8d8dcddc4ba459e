//! Device numbers that measuring has to leave alone.

use std::collections::BTreeSet;
use std::path::Path;

use zramd::host::linux::files;
use zramd::logic::config;

/// The numbers that the configuration names, wrong sections included.
pub fn numbers() -> BTreeSet<u32> {
    let loaded = config::load_sources(files::find_sources(Path::new("/")), "");
    loaded.settings.devices.iter().map(|device| device.number).collect()
}
