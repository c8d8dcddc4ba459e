//! `org.zramd1.Filesystem`: a device that is mounted.

use std::collections::HashMap;
use std::sync::Arc;

use zbus::object_server::SignalEmitter;
use zbus::{Variant, interface};

use super::table::Object;
use crate::core::Core;
use logic::sample::MountView;

/// The file system on one device.
#[derive(Debug)]
pub struct Filesystem {
    core: Arc<Core>,
    name: String,
}

impl Filesystem {
    pub(crate) fn new(core: Arc<Core>, name: String) -> Filesystem {
        Filesystem { core, name }
    }
}

impl Object for Filesystem {
    type State = MountView;

    async fn state(&self) -> MountView {
        let snapshot = self.core.sample().await;
        snapshot.device(&self.name).and_then(|device| device.mount.clone()).unwrap_or_default()
    }
}

/// The properties in UsageUpdated.
pub(crate) const USAGE: [&str; 2] = ["SizeBytes", "UsedBytes"];

/// A mounted file system on a zram device.
#[interface(name = "org.zramd1.Filesystem")]
impl Filesystem {
    /// SizeBytes and UsedBytes of one sample, and StatsTimestampMonotonic, microseconds since boot (CLOCK_MONOTONIC); sent only to
    /// callers of SubscribeTo of the manager.
    #[zbus(signal)]
    pub(crate) async fn usage_updated(
        emitter: &SignalEmitter<'_>,
        stats: HashMap<&str, Variant<'_>>,
    ) -> zbus::Result<()>;
}
