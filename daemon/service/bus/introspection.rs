//! The introspection XML of all interfaces, without a bus: for documentation, and for `packaging/interfaces`, which are installed
//! for generators of bindings.

use std::sync::Arc;

use zbus::object_server::Interface;

use super::benchmark::Benchmark;
use super::device::Device;
use super::filesystem::Filesystem;
use super::manager::Manager;
use super::ramdisk::Ramdisk;
use super::swap::Swap;
use super::table::Table;
use crate::call_limits::CallLimits;
use crate::core::{Core, Mode};
use crate::job::{Job, Subject};
use crate::setup::{Cancel, Source};

/// What the D-Bus specification begins such a document with.
const DOCTYPE: &str = r#"<!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">"#;

/// Name of every interface, and a document with its XML as in the reply of Introspect.
pub fn interfaces() -> Vec<(String, String)> {
    let core = Core::new(Source::default(), Mode::Direct);
    let no_owner = String::new;
    vec![
        text(&Table(Manager::new(Arc::clone(&core)))),
        text(&Table(Device::new(Arc::clone(&core), no_owner()))),
        text(&Table(Swap::new(Arc::clone(&core), no_owner()))),
        text(&Table(Filesystem::new(Arc::clone(&core), no_owner()))),
        text(&Table(Ramdisk::new(Arc::clone(&core), no_owner()))),
        text(&Benchmark::new(Arc::clone(&core))),
        text(&Job::new(
            "",
            Subject::default(),
            Arc::default(),
            Cancel::default(),
            Arc::default(),
            CallLimits::default(),
        )),
    ]
}

fn text<I: Interface>(interface: &I) -> (String, String) {
    let mut xml = format!("{DOCTYPE}\n<node>\n");
    interface.introspect_to_writer(&mut xml, 2);
    (I::name().to_string(), xml + "</node>\n")
}
