//! `org.zramd1.Filesystem`: a device that is mounted.

use std::collections::HashMap;
use std::sync::Arc;

use zbus::object_server::SignalEmitter;
use zbus::{Variant, interface};

use crate::core::Core;
use logic::sample::{MountView, Snapshot};

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

    async fn view(&self) -> MountView {
        let snapshot = self.core.sample().await;
        snapshot.device(&self.name).and_then(|device| device.mount.clone()).unwrap_or_default()
    }
}

/// Its space, with the names of the properties.
pub(crate) fn stats_map(mount: &MountView, snapshot: &Snapshot) -> HashMap<&'static str, Variant<'static>> {
    let space = [
        ("SizeBytes", mount.size_bytes),
        ("UsedBytes", mount.used_bytes),
        ("StatsTimestampMonotonic", snapshot.timestamp_monotonic_usec),
    ];
    space.map(|(name, value)| (name, value.into())).into()
}

/// A mounted file system on a zram device.
#[interface(name = "org.zramd1.Filesystem")]
impl Filesystem {
    /// Where it is mounted.
    #[zbus(property)]
    async fn mount_point(&self) -> String {
        self.view().await.mount_point
    }

    /// Its type.
    #[zbus(property)]
    async fn fs_type(&self) -> String {
        self.view().await.fs_type
    }

    /// Options of the file system, as the kernel shows them.
    #[zbus(property)]
    async fn options(&self) -> String {
        self.view().await.options
    }

    /// Bytes that fit, as the file system counts.
    #[zbus(property)]
    async fn size_bytes(&self) -> u64 {
        self.view().await.size_bytes
    }

    /// Bytes in use, as the file system counts.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn used_bytes(&self) -> u64 {
        self.view().await.used_bytes
    }

    /// SizeBytes and UsedBytes of one moment, and StatsTimestampMonotonic, microseconds since boot (CLOCK_MONOTONIC); sent to those
    /// only who called SubscribeTo of the manager.
    #[zbus(signal)]
    pub(crate) async fn usage_updated(
        emitter: &SignalEmitter<'_>,
        stats: HashMap<&str, Variant<'_>>,
    ) -> zbus::Result<()>;
}
