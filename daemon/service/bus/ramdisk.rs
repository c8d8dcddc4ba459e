//! `org.zramd1.RamDisk`: a disk of `[ramdisk.NAME]`, and its snapshots.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, OwnedObjectPath, Variant, interface};

use super::options::Options;
use crate::auth::{self, Action, Caller};
use crate::core::Core;
use crate::error::Result;
use crate::names::device_path_or_none;
use logic::ramdisk::SaveReason;
use logic::sample::{DiskView, Snapshot};

/// Number, time, raw bytes, stored bytes, reason, whether its manifest is good, why it is pinned.
type Listed = (u64, u64, u64, u64, String, bool, String);

/// One disk.
#[derive(Debug)]
pub struct RamDisk {
    core: Arc<Core>,
    name: String,
}

impl RamDisk {
    pub(crate) fn new(core: Arc<Core>, name: String) -> RamDisk {
        RamDisk { core, name }
    }

    async fn view(&self) -> DiskView {
        self.core.sample().await.disk(&self.name).cloned().unwrap_or_default()
    }

    /// Starts work of `zramd-worker` on the disk, as a job of the caller.
    async fn work(
        &self,
        call: &Header<'_>,
        verb: &'static str,
        words: Vec<String>,
        options: &Options,
    ) -> Result<OwnedObjectPath> {
        let job = self.core.work_on_disk(&self.name, verb, words, options).await?;
        self.core.owned(call, job).await
    }
}

/// Its space, with the names of the properties.
pub(crate) fn stats_map(disk: &DiskView, snapshot: &Snapshot) -> HashMap<&'static str, Variant<'static>> {
    let space = [
        ("SizeBytes", disk.size_bytes),
        ("UsedBytes", disk.used_bytes),
        ("FreeBytes", disk.free_bytes),
        ("FreeInodes", disk.free_inodes),
        ("StatsTimestampMonotonic", snapshot.timestamp_monotonic_usec),
    ];
    space.map(|(name, value)| (name, value.into())).into()
}

/// A RAM disk.
#[interface(name = "org.zramd1.RamDisk")]
impl RamDisk {
    /// NAME of `[ramdisk.NAME]`.
    #[zbus(property(emits_changed_signal = "const"))]
    fn name(&self) -> String {
        self.name.clone()
    }

    /// Where it is mounted.
    #[zbus(property)]
    async fn mount_point(&self) -> String {
        self.view().await.mount_point
    }

    /// What holds it: `tmpfs` or `zram`.
    #[zbus(property)]
    async fn backend(&self) -> String {
        self.view().await.backend().to_owned()
    }

    /// Its type of file system.
    #[zbus(property)]
    async fn fs_type(&self) -> String {
        self.view().await.fs_type
    }

    /// Options of the file system, as the kernel shows them.
    #[zbus(property)]
    async fn options(&self) -> String {
        self.view().await.options
    }

    /// The object of the zram device that holds it, or `/`.
    #[zbus(property)]
    async fn device(&self) -> OwnedObjectPath {
        let device = self.view().await.device;
        OwnedObjectPath::try_from(device_path_or_none(&device)).unwrap_or_default()
    }

    /// Bytes that fit.
    #[zbus(property)]
    async fn size_bytes(&self) -> u64 {
        self.view().await.size_bytes
    }

    /// Bytes in use.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn used_bytes(&self) -> u64 {
        self.view().await.used_bytes
    }

    /// Bytes free.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn free_bytes(&self) -> u64 {
        self.view().await.free_bytes
    }

    /// Files that still fit.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn free_inodes(&self) -> u64 {
        self.view().await.free_inodes
    }

    /// What of its contents is kept over a reboot: `none`, `skeleton` or `snapshot`.
    #[zbus(property)]
    async fn persistence(&self) -> String {
        self.view().await.persistence.word().to_owned()
    }

    /// How it was filled: `empty`, `loading`, `loaded`, `fallback` (from an older snapshot), `passthrough` (the directory on disk
    /// is used instead) or `failed`.
    #[zbus(property)]
    async fn load_state(&self) -> String {
        self.view().await.status.load_state.word().to_owned()
    }

    /// The number of the snapshot that was loaded; 0 is none.
    #[zbus(property)]
    async fn generation(&self) -> u64 {
        self.view().await.status.generation
    }

    /// When it was saved last in this boot, in microseconds since 1970; 0 is never.
    #[zbus(property)]
    async fn last_save_timestamp(&self) -> u64 {
        self.view().await.status.last_save_usec
    }

    /// When its timer saves it next, in microseconds since 1970; 0 is never, or not known yet. No signal: it changes with
    /// LastSaveTimestamp and with every step of the clock.
    #[zbus(property(emits_changed_signal = "false"))]
    fn next_save_timestamp(&self) -> u64 {
        self.core.next_saves.of(&self.name)
    }

    /// How that ended: `ok`, `unchanged` (there was nothing to write), `failed`, or empty.
    #[zbus(property)]
    async fn last_save_result(&self) -> String {
        self.view().await.status.last_save_result.word().to_owned()
    }

    /// How many entries the last save that did not fail left out or could not keep whole, by reason: `attributes` (kept without
    /// user attributes), `damaged` (kept with zeros in unreadable places), `format` (an archive cannot hold it), `holes` (too many),
    /// `lease` (held by another program), `path` (too long), `unreadable`, or `other`. Empty when there are none. Their names are
    /// in the journal.
    #[zbus(property)]
    async fn last_save_omitted(&self) -> BTreeMap<String, u64> {
        let omitted = self.view().await.status.last_save_omitted;
        omitted.into_iter().map(|(reason, count)| (reason.word().to_owned(), count)).collect()
    }

    /// Bytes that all its snapshots take.
    #[zbus(property)]
    async fn store_bytes(&self) -> u64 {
        self.view().await.status.store_bytes
    }

    /// How many snapshots there are.
    #[zbus(property)]
    async fn snapshot_count(&self) -> u32 {
        u32::try_from(self.view().await.status.snapshots.len()).unwrap_or(u32::MAX)
    }

    /// Its snapshots, newest first: number, time (microseconds since 1970), bytes of files, bytes stored, reason, whether
    /// its manifest is good, why it is pinned.
    #[zbus(out_args("snapshots"))]
    async fn list_snapshots(&self) -> Vec<Listed> {
        let lines = self.view().await.status.snapshots.into_iter();
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
        let caller = auth::check(&self.core.turns, connection, &call, Action::SaveDisk).await?;
        let reason = if caller == Caller::Root { SaveReason::Asked } else { SaveReason::User };
        let words = ["--reason", reason.word()].map(str::to_owned).to_vec();
        self.work(&call, "save", words, &options).await
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
        auth::check(&self.core.turns, connection, &call, Action::SaveDisk).await?;
        self.work(&call, "verify", vec![number(snapshot)], &options).await
    }

    /// Saves what is in it, takes it away, and brings it back filled from a snapshot; 0 is the newest before that save. It is refused while
    /// the disk is in use; the error names the processes. There are no options yet.
    #[zbus(out_args("job"))]
    async fn restore(
        &self,
        snapshot: u64,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::RestoreDisk).await?;
        self.core.owned(&call, self.core.restore_disk(&self.name, number(snapshot), &options).await?).await
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
        auth::check(&self.core.turns, connection, &call, Action::RestoreDisk).await?;
        self.work(&call, "delete", vec![snapshot.to_string()], &options).await
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
        auth::check(&self.core.turns, connection, &call, Action::RestoreDisk).await?;
        let verb = if pinned { "pin" } else { "unpin" };
        self.work(&call, verb, vec![snapshot.to_string()], &options).await
    }

    /// Gives it another size until the next boot, in bytes. What lies on zram cannot change its size while it is in use.
    #[zbus(out_args("job"))]
    async fn resize(
        &self,
        size_bytes: u64,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Manage).await?;
        self.core.owned(&call, self.core.resize_disk(&self.name, size_bytes, &options).await?).await
    }

    /// SizeBytes, UsedBytes, FreeBytes and FreeInodes of one moment, and StatsTimestampMonotonic, microseconds since boot
    /// (CLOCK_MONOTONIC); sent to those only who called SubscribeTo of the manager.
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

/// Number of a snapshot as an argument of the worker.
fn number(snapshot: u64) -> String {
    if snapshot == 0 { "newest".to_owned() } else { snapshot.to_string() }
}
