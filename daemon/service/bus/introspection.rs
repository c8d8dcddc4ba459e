//! The introspection XML of all interfaces, without a bus: for documentation, and for comparing versions.

use std::sync::Arc;

use zbus::object_server::Interface;

use super::benchmark::Benchmark;
use super::device::Device;
use super::filesystem::Filesystem;
use super::job::Job;
use super::manager::Manager;
use super::ramdisk::RamDisk;
use super::swap::Swap;
use super::turn::Turns;
use crate::core::{Core, Mode};
use crate::setup::{Cancel, Source};

/// Name and XML of every interface, as in the reply of Introspect.
pub fn interfaces() -> Vec<(String, String)> {
    let core = Core::new(Source::default(), Mode::Direct);
    let no_owner = String::new;
    vec![
        text(&Manager::new(Arc::clone(&core))),
        text(&Device::new(Arc::clone(&core), no_owner())),
        text(&Swap::new(Arc::clone(&core), no_owner())),
        text(&Filesystem::new(Arc::clone(&core), no_owner())),
        text(&RamDisk::new(Arc::clone(&core), no_owner())),
        text(&Benchmark::new(Arc::clone(&core))),
        text(&Job::new("", no_owner(), Arc::default(), Cancel::default(), Arc::default(), Turns::default())),
    ]
}

fn text<I: Interface>(interface: &I) -> (String, String) {
    let mut xml = String::new();
    interface.introspect_to_writer(&mut xml, 0);
    (I::name().to_string(), xml)
}
