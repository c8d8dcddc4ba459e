//! `org.zramd1.RamDisk`: a RAM disk of `[ramdisk.NAME]`, and its snapshots.

use std::collections::HashMap;
use std::sync::Arc;

use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, OwnedObjectPath, Variant, interface};

use super::options::Options;
use super::table::Object;
use crate::auth::{self, Action};
use crate::core::Core;
use crate::error::Result;
use crate::request::Caller;
use logic::order::{Order, RamdiskOrder};
use logic::ramdisk::SaveReason;
use logic::sample::RamdiskView;

/// Number, time, raw bytes, stored bytes, reason, whether its manifest is good, why it is pinned.
type Listed = (u64, u64, u64, u64, String, bool, String);

/// One RAM disk.
#[derive(Debug)]
pub struct Ramdisk {
    core: Arc<Core>,
    name: String,
}

impl Ramdisk {
    pub(crate) fn new(core: Arc<Core>, name: String) -> Ramdisk {
        Ramdisk { core, name }
    }

    /// Of this RAM disk, with a snapshot; 0 is the newest.
    fn order(&self, snapshot: u64) -> RamdiskOrder {
        RamdiskOrder {
            snapshot: Some(snapshot).filter(|number| *number > 0),
            ..RamdiskOrder::named(&self.name)
        }
    }
}

impl Object for Ramdisk {
    type State = RamdiskView;

    async fn state(&self) -> RamdiskView {
        let gone = || RamdiskView { name: self.name.clone(), ..RamdiskView::default() };
        let found = self.core.sample().await.ramdisk(&self.name).cloned();
        RamdiskView { next_save_usec: self.core.next_saves.of(&self.name), ..found.unwrap_or_else(gone) }
    }
}

/// The properties in SpaceUpdated.
pub(crate) const SPACE: [&str; 4] = ["SizeBytes", "UsedBytes", "FreeBytes", "FreeInodes"];

/// A RAM disk.
#[interface(name = "org.zramd1.RamDisk")]
impl Ramdisk {
    /// Its snapshots, newest first: number, time (microseconds since 1970), bytes of files, bytes stored, reason, whether
    /// its manifest is good, why it is pinned.
    #[zbus(out_args("snapshots"))]
    async fn list_snapshots(&self) -> Vec<Listed> {
        let lines = self.state().await.status.snapshots.into_iter();
        lines
            .map(|line| {
                let (raw, stored) = (line.raw_bytes, line.stored_bytes);
                let reason = line.reason.word().to_owned();
                (line.generation, line.time_usec, raw, stored, reason, line.good, line.pinned)
            })
            .collect()
    }

    /// Saves it now. For a caller other than root the reason is `user`: the new snapshot replaces only an older one with this
    /// reason, and fails where there is no room for it besides the others. There are no options yet.
    #[zbus(out_args("job"))]
    async fn save(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request = auth::check(&self.core.call_limits, connection, &call, Action::SaveRamdisk).await?;
        let reason = if request.caller() == Caller::Root { SaveReason::Asked } else { SaveReason::User };
        let order = Order::Save(RamdiskOrder { reason, ..self.order(0) });
        request.run(self.core.work_on_ramdisk("save", order, &options)).await
    }

    /// Reads a snapshot to its end and compares it with its manifest; 0 is the newest. There are no options yet.
    #[zbus(out_args("job"))]
    async fn verify(
        &self,
        snapshot: u64,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request = auth::check(&self.core.call_limits, connection, &call, Action::SaveRamdisk).await?;
        let order = Order::Verify(self.order(snapshot));
        request.run(self.core.work_on_ramdisk("verify", order, &options)).await
    }

    /// Saves it, unmounts it, and mounts it again with the contents of a snapshot; 0 is the newest before that save. It is refused while
    /// the RAM disk is in use; the error names the processes. There are no options yet.
    #[zbus(out_args("job"))]
    async fn restore(
        &self,
        snapshot: u64,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request = auth::check(&self.core.call_limits, connection, &call, Action::RestoreRamdisk).await?;
        request.run(self.core.restore_ramdisk(&self.name, self.order(snapshot).snapshot, &options)).await
    }

    /// Deletes a snapshot that is not pinned, but never the only good one. There are no options yet.
    #[zbus(out_args("job"))]
    async fn delete_snapshot(
        &self,
        snapshot: u64,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request = auth::check(&self.core.call_limits, connection, &call, Action::RestoreRamdisk).await?;
        let order = Order::Delete(self.order(snapshot));
        request.run(self.core.work_on_ramdisk("delete", order, &options)).await
    }

    /// Keeps a snapshot from being pruned, or lets it be pruned again. There are no options yet.
    #[zbus(out_args("job"))]
    async fn pin(
        &self,
        snapshot: u64,
        pinned: bool,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request = auth::check(&self.core.call_limits, connection, &call, Action::RestoreRamdisk).await?;
        let order = self.order(snapshot);
        let (verb, order) = if pinned { ("pin", Order::Pin(order)) } else { ("unpin", Order::Unpin(order)) };
        request.run(self.core.work_on_ramdisk(verb, order, &options)).await
    }

    /// Changes its size until the next boot, in bytes. A RAM disk on zram cannot change its size while it is in use.
    #[zbus(out_args("job"))]
    async fn resize(
        &self,
        size_bytes: u64,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let action = Action::Manage.of_size(size_bytes);
        let request = auth::check(&self.core.call_limits, connection, &call, action).await?;
        request.run(self.core.resize_ramdisk(&self.name, size_bytes, &options)).await
    }

    /// SizeBytes, UsedBytes, FreeBytes and FreeInodes of one sample, and StatsTimestampMonotonic, microseconds since boot
    /// (CLOCK_MONOTONIC); sent only to callers of SubscribeTo of the manager.
    #[zbus(signal)]
    pub(crate) async fn space_updated(
        emitter: &SignalEmitter<'_>,
        stats: HashMap<&str, Variant<'_>>,
    ) -> zbus::Result<()>;

    /// It is getting full: percent of its bytes, or of its inodes (FreeInodes), that are in use, and bytes free. Sent at 80 and at
    /// 95 percent of either, and again only after it was 5 percent below.
    #[zbus(signal)]
    pub async fn space_low(
        emitter: &SignalEmitter<'_>,
        percent_used: u32,
        free_bytes: u64,
    ) -> zbus::Result<()>;
}
