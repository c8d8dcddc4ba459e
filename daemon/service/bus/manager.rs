//! `org.zramd1.Manager`: the machine as a whole.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, ObjectPath, OwnedObjectPath, Variant, interface};

use super::options::{Options, Sections};
use crate::auth::{self, Action};
use crate::caller;
use crate::core::{Core, Selection};
use crate::error::{Error, ErrorKind, Result};
use crate::names::{device_path, disk_path};
use crate::overlay::switched_off;
use logic::change::{self, Change};
use logic::finding::Finding;
use logic::overlay::{Command, Override};
use logic::proc::device_number;
use logic::sample::Snapshot;
use logic::upkeep;

/// The root object.
#[derive(Debug)]
pub struct Manager {
    core: Arc<Core>,
}

impl Manager {
    pub(crate) fn new(core: Arc<Core>) -> Manager {
        Manager { core }
    }
}

fn path(text: String) -> Result<OwnedObjectPath> {
    text.try_into().map_err(|error: zbus::Error| error.into())
}

/// The totals, with the names of the properties.
pub(crate) fn stats_map(snapshot: &Snapshot) -> HashMap<&'static str, Variant<'static>> {
    let totals = [
        ("TotalOriginalBytes", snapshot.total(|stats| stats.memory.orig_data_size)),
        ("TotalCompressedBytes", snapshot.total(|stats| stats.memory.compr_data_size)),
        ("TotalMemoryUsedBytes", snapshot.total(|stats| stats.memory.mem_used_total)),
        ("StatsTimestampMonotonic", snapshot.timestamp_monotonic_usec),
    ];
    totals.map(|(name, value)| (name, value.into())).into()
}

fn interval(milliseconds: u32) -> Duration {
    Duration::from_millis(u64::from(milliseconds))
}

/// The changes of a plan, without those that keep a target as it is.
fn planned(changes: Vec<Change>) -> Vec<change::OnTheBus> {
    let changes = changes.into_iter().filter(|change| change.action != change::Action::Keep);
    changes.map(Change::on_the_bus).collect()
}

/// Name, path and state of a device or disk.
type Listed = (String, OwnedObjectPath, String);

/// All compressed memory of this machine. Reading is open to every user; changing takes polkit's permission.
// The interface decides the form of a method.
#[allow(clippy::unused_self, clippy::needless_pass_by_value)]
#[interface(name = "org.zramd1.Manager")]
impl Manager {
    /// Version of zramd.
    #[zbus(property(emits_changed_signal = "const"))]
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    /// `starting`, `running`, `degraded` (there is a problem that is an error), `reloading` or `stopping`.
    #[zbus(property)]
    fn state(&self) -> String {
        self.core.state().to_owned()
    }

    /// What is wrong, worst first: code, object, sentence. A code never changes meaning.
    #[zbus(property)]
    async fn problems(&self) -> Vec<(String, String, String)> {
        let snapshot = self.core.sample().await;
        let found = snapshot.problems.iter();
        found.map(|found| (found.code.to_string(), found.object.clone(), found.message.clone())).collect()
    }

    /// The same with all there is to show: level (`error`, `warning`, or `note` for what is intended), code, object, sentence, and what
    /// to do.
    #[zbus(property)]
    async fn problem_details(&self) -> Vec<(String, String, String, String, String)> {
        let snapshot = self.core.sample().await;
        let row = |found: &Finding| {
            let Finding { level, code, object, message, remedy } = found.clone();
            (level.to_string(), code.to_string(), object, message, remedy)
        };
        snapshot.problems.iter().map(row).collect()
    }

    /// What this kernel can do, as far as a device shows it: `hot-add`, `algorithm-params`, `recompress`, `writeback`,
    /// `idle`.
    #[zbus(property)]
    async fn capabilities(&self) -> Vec<String> {
        self.core.sample().await.capabilities.clone()
    }

    /// Compression algorithms that this kernel offers; empty while there is no device to ask.
    #[zbus(property)]
    async fn supported_algorithms(&self) -> Vec<String> {
        let snapshot = self.core.sample().await;
        snapshot.devices.first().map(|device| device.available_algorithms.clone()).unwrap_or_default()
    }

    /// Configuration files that were read, lowest precedence first.
    #[zbus(property)]
    fn config_files(&self) -> Vec<String> {
        self.core.view().files.clone()
    }

    /// What holds until the next boot instead of the configuration: section (`zramN` or `ramdisk.NAME`), key, value as TOML, what
    /// the configuration says, or empty, and the command that left it, or empty: `create`, `remove`, `resize`, `limit`, `swap off`,
    /// `disk resize` or `set`. UnsetOverride removes it.
    #[zbus(property)]
    fn overrides(&self) -> Vec<(String, String, String, String, String)> {
        let row = |found: &Override| {
            let command = found.command.map_or("", Command::words).to_owned();
            let configured = found.configured.clone().unwrap_or_default();
            (found.object.clone(), found.key.clone(), found.value.clone(), configured, command)
        };
        self.core.view().overrides.iter().map(row).collect()
    }

    /// Settings of the kernel that zramd has changed for compressed swap: name, value now, what zramd set it to, and what it
    /// was before and will be again. Changes by other programs are kept.
    #[zbus(property)]
    async fn vm_settings(&self) -> Vec<(String, String, String, String)> {
        let row = |view: &logic::vm::VmView| {
            (view.name.clone(), view.value.clone(), view.set_to.clone(), view.before.clone())
        };
        self.core.sample().await.vm.iter().map(row).collect()
    }

    /// How short memory is, where `[maintenance]` asks to follow that: `none`, `moderate`, `severe` or `critical`.
    #[zbus(property)]
    fn pressure_level(&self) -> String {
        self.core.latest().pressure.word().to_owned()
    }

    /// Why: how much of the time tasks waited for memory, and what compressed swap holds; empty at the level `none`.
    #[zbus(property)]
    fn pressure_reason(&self) -> String {
        self.core.latest().pressure_reason.clone()
    }

    /// When maintenance last ended, in microseconds since boot (CLOCK_MONOTONIC); 0 when it has not run.
    #[zbus(property)]
    fn last_maintenance_monotonic(&self) -> u64 {
        self.core.latest().maintenance.ended_monotonic_usec
    }

    /// What it did then, in this order: device, action (`recompress`, `write-back`, `compact`, `mark-idle`), which pages, the
    /// reason, what came of it.
    #[zbus(property)]
    fn maintenance_actions(&self) -> Vec<(String, String, String, String, String)> {
        let snapshot = self.core.latest();
        let row = |action: &upkeep::Action| {
            let upkeep::Action { device, action, pages, reason, result, .. } = action.clone();
            (device, action, pages, reason, result)
        };
        snapshot.maintenance.actions.iter().map(row).collect()
    }

    /// What it did not do then: device (or empty), policy, reason.
    #[zbus(property)]
    fn maintenance_skipped(&self) -> Vec<(String, String, String)> {
        self.core.latest().maintenance.skipped.clone()
    }

    /// Bytes that may still be written to backing devices, of those in any 24 hours; the largest number without a budget.
    #[zbus(property(emits_changed_signal = "false"))]
    fn writeback_budget_left_bytes(&self) -> u64 {
        self.core.latest().maintenance.budget.map_or(u64::MAX, |budget| budget.left_bytes)
    }

    /// Bytes written to backing devices since they are counted, over restarts.
    #[zbus(property(emits_changed_signal = "false"))]
    fn writeback_total_bytes(&self) -> u64 {
        self.core.latest().maintenance.budget.map_or(0, |budget| budget.total_bytes)
    }

    /// Uncompressed bytes stored on devices that zramd set up.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn total_original_bytes(&self) -> u64 {
        self.core.sample().await.total(|stats| stats.memory.orig_data_size)
    }

    /// Their compressed payload.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn total_compressed_bytes(&self) -> u64 {
        self.core.sample().await.total(|stats| stats.memory.compr_data_size)
    }

    /// Memory that holds it.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn total_memory_used_bytes(&self) -> u64 {
        self.core.sample().await.total(|stats| stats.memory.mem_used_total)
    }

    /// Every zram device: name, path, state.
    #[zbus(out_args("devices"))]
    async fn list_devices(&self) -> Result<Vec<Listed>> {
        let snapshot = self.core.sample().await;
        let row = |name: &str, state: &str| Ok((name.to_owned(), path(device_path(name))?, state.to_owned()));
        snapshot.devices.iter().map(|device| row(&device.name, device.state.word())).collect()
    }

    /// Every RAM disk: name, path, `mounted` or `gone`.
    #[zbus(out_args("disks"))]
    async fn list_disks(&self) -> Result<Vec<Listed>> {
        let snapshot = self.core.sample().await;
        let state = |mounted: bool| if mounted { "mounted" } else { "gone" }.to_owned();
        let row = |name: &str, mounted| Ok((name.to_owned(), path(disk_path(name))?, state(mounted)));
        snapshot.disks.iter().map(|disk| row(&disk.name, disk.mounted)).collect()
    }

    /// The object of a device, by its name or its node.
    #[zbus(out_args("device"))]
    async fn get_device(&self, name: String) -> Result<OwnedObjectPath> {
        match self.core.sample().await.device(name.strip_prefix("/dev/").unwrap_or(&name)) {
            Some(device) => path(device_path(&device.name)),
            None => Err(device_number(&name).and_then(switched_off).unwrap_or_else(|| {
                Error::new(ErrorKind::NotFound, format!("there is no zram device {name:?}"))
            })),
        }
    }

    /// The object of a RAM disk, by its name.
    #[zbus(out_args("disk"))]
    async fn get_disk(&self, name: String) -> Result<OwnedObjectPath> {
        match self.core.sample().await.disk(&name) {
            Some(disk) => path(disk_path(&disk.name)),
            None => Err(Error::new(ErrorKind::NotFound, format!("there is no RAM disk {name:?}"))),
        }
    }

    /// Creates a device that lasts until the next boot, and activates it. One that is there and unused is taken over; RemoveDevice
    /// then takes it out of use, and it stays. Options are the keys of a `[zramN]` section
    /// (strings as there; a size may also be a number of bytes, type t), and `name` to choose the number. Callers other than root
    /// may use the keys that Configure takes: sizes, algorithms without a dictionary, the priority and limits.
    #[zbus(out_args("device"))]
    async fn create_device(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let caller = auth::check(&self.core.turns, connection, &call, Action::Manage).await?;
        path(device_path(&self.core.create(&options, caller).await?))
    }

    /// Takes a device away, and with it what CreateDevice asked for. One that is configured in a file is off until the
    /// next boot, or until ActivateDevice. The option `force` (b) discards the contents of a file system.
    #[zbus(out_args("job"))]
    async fn remove_device(
        &self,
        name: String,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Manage).await?;
        self.core.owned(&call, self.core.remove(&name, &options).await?).await
    }

    /// Brings a device into use that was switched off, by its name: it may have no object at the moment. There are no
    /// options yet.
    #[zbus(out_args("job"))]
    async fn activate_device(
        &self,
        name: String,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Manage).await?;
        self.core.owned(&call, self.core.activate(&name, &options).await?).await
    }

    /// Removes what holds until the next boot of a device or RAM disk, by its name or section, and brings that one in line with
    /// the configuration; one that CreateDevice made goes. What cannot be done is refused, and the override stays. The option
    /// `force` is as for Reload.
    #[zbus(out_args("job"))]
    async fn unset_override(
        &self,
        name: String,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Manage).await?;
        self.core.owned(&call, self.core.unset_override(&name, &options).await?).await
    }

    /// What Reload would do: action, object, detail. Actions are `create`, `activate`, `adapt`, `reactivate`,
    /// `recreate`, `remove` and `refuse`. The option `force` is as for Reload.
    #[zbus(out_args("changes"))]
    async fn plan(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<Vec<change::OnTheBus>> {
        let _turn = self.core.turns.take(connection, &call).await?;
        let _alone = self.core.planning.lock().await;
        self.core.planned(&options).await.map(planned)
    }

    /// What Configure would do with the same arguments, as Plan tells it. With the option `runtime`, keys of the section of a device
    /// that is not configured are those of CreateDevice, for root and for other callers, and `enabled` = false (b) is RemoveDevice.
    #[zbus(out_args("changes"))]
    async fn plan_configure(
        &self,
        sections: Sections,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<Vec<change::OnTheBus>> {
        let caller = auth::check(&self.core.turns, connection, &call, Action::Manage).await?;
        let _alone = self.core.planning.lock().await;
        self.core.planned_with(&sections, &options, caller).await.map(planned)
    }

    /// Reads the configuration again and brings the machine in line with it. A configuration with a mistake is refused
    /// as a whole, and the old one stays. The option `force` (b) discards contents that would be lost.
    #[zbus(out_args("job"))]
    async fn reload(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Manage).await?;
        self.core.owned(&call, self.core.reload(&options).await?).await
    }

    /// Changes the configuration in a drop-in of its own in `/etc`, and applies that as Reload does. Sections (`zramN`, `defaults`,
    /// `ramdisk.NAME`) have keys with values as for CreateDevice; an empty string removes a key from the drop-in. Only sizes,
    /// algorithms, the priority and limits can be changed; other keys are changed by root in files. What has a mistake, or is
    /// refused by the plan, is not written. Options: `force` (b) as for Reload; with `runtime` (b), the keys of one device
    /// or RAM disk are changed until the next boot.
    #[zbus(out_args("job"))]
    async fn configure(
        &self,
        sections: Sections,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Configure).await?;
        self.core.owned(&call, self.core.configure(&sections, &options).await?).await
    }

    /// Starts the maintenance that `[maintenance]` configures without waiting for its timer, for example because the machine
    /// is idle. The option `devices` (as) limits it to these devices.
    #[zbus(out_args("job"))]
    async fn maintain(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Tune).await?;
        self.core.owned(&call, self.core.maintain_now(&options).await?).await
    }

    /// Memory has become shorter, or less so; the reason says how much of the time tasks waited for it.
    #[zbus(signal)]
    pub(crate) async fn pressure_changed(
        emitter: &SignalEmitter<'_>,
        level: &str,
        reason: &str,
    ) -> zbus::Result<()>;

    /// Everything as JSON, in the form of `zramdctl status`: the definition `status` of `/usr/share/zramd/zramdctl.schema.json`.
    /// `schema_version` says in which form.
    #[zbus(out_args("json"))]
    async fn describe(&self) -> Result<String> {
        let snapshot = self.core.sample().await;
        serde_json::to_string(&*snapshot)
            .map_err(|error| Error::new(ErrorKind::Failed, format!("write JSON: {error}")))
    }

    /// Has StatsUpdated of every device sent to the caller, at this interval (100 ms to an hour), until Unsubscribe or
    /// until the caller leaves the bus. A second call changes the interval.
    async fn subscribe(&self, interval_ms: u32, #[zbus(header)] call: Header<'_>) -> Result<()> {
        self.core.subscribe(&call, interval(interval_ms), Selection::Devices, None).await
    }

    /// The same for a selection of objects, by their paths: StatsUpdated of devices, UsageUpdated of file systems on devices,
    /// SpaceUpdated of RAM disks, and TotalsUpdated for `/org/zramd1`. All have to exist; one that appears later needs another
    /// call. An empty list selects everything, now and later. It replaces a subscription of the caller, and Unsubscribe ends it.
    async fn subscribe_to(
        &self,
        interval_ms: u32,
        objects: Vec<ObjectPath<'_>>,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<()> {
        let selection = self.core.selection(&objects).await?;
        self.core.subscribe(&call, interval(interval_ms), selection, None).await
    }

    /// As SubscribeTo, but for at most this time (1 s to an hour); another call prolongs it. For a caller that shares its connection
    /// with others, so that its end does not show on the bus.
    async fn subscribe_for(
        &self,
        interval_ms: u32,
        objects: Vec<ObjectPath<'_>>,
        seconds: u32,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<()> {
        let selection = self.core.selection(&objects).await?;
        let time = Duration::from_secs(seconds.into());
        self.core.subscribe(&call, interval(interval_ms), selection, Some(time)).await
    }

    /// The totals of one moment: those of the properties, and StatsTimestampMonotonic, microseconds since boot (CLOCK_MONOTONIC);
    /// sent to those only who called SubscribeTo.
    #[zbus(signal)]
    pub(crate) async fn totals_updated(
        emitter: &SignalEmitter<'_>,
        stats: HashMap<&str, Variant<'_>>,
    ) -> zbus::Result<()>;

    /// Ends that.
    fn unsubscribe(&self, #[zbus(header)] call: Header<'_>) -> Result<()> {
        self.core.unsubscribe(&caller::name_of(&call)?);
        Ok(())
    }
}
