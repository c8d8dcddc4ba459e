//! `org.zramd1.Manager`: the machine as a whole.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, ObjectPath, OwnedObjectPath, Variant, interface};

use super::options::{Options, Sections};
use super::prompt;
use super::table::Object;
use crate::auth::{self, Action};
use crate::caller;
use crate::core::{Core, Selection};
use crate::error::{Error, ErrorKind, Result};
use crate::names::{device_path, ramdisk_path};
use crate::overlay::switched_off;
use logic::change::{self, Change};
use logic::proc::device_number;
use logic::property::Machine;

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

impl Object for Manager {
    type State = Machine;

    async fn state(&self) -> Machine {
        let snapshot = self.core.sample().await;
        Machine { snapshot, state: self.core.state(), view: self.core.view() }
    }
}

/// The properties in TotalsUpdated.
pub(crate) const TOTALS: [&str; 15] = [
    "TotalOriginalBytes",
    "TotalCompressedBytes",
    "TotalMemoryUsedBytes",
    "MemoryTotalBytes",
    "MemoryAvailableBytes",
    "SwapTotalBytes",
    "SwapFreeBytes",
    "SwappedInBytes",
    "SwappedOutBytes",
    "MemoryStalledUSec",
    "ZswapOriginalDataBytes",
    "ZswapMemoryUsedBytes",
    "ZswapReadBytes",
    "ZswapWrittenBytes",
    "ZswapBackingWrittenBytes",
];

fn interval(milliseconds: u32) -> Duration {
    Duration::from_millis(u64::from(milliseconds))
}

/// The changes of a plan, without those that keep a target as it is.
fn planned(changes: Vec<Change>) -> Vec<change::OnTheBus> {
    let changes = changes.into_iter().filter(|change| change.action != change::Action::Keep);
    changes.map(Change::on_the_bus).collect()
}

/// Name, path and state of a device or RAM disk.
type Listed = (String, OwnedObjectPath, String);

/// All compressed memory of this machine. Reading is open to every user; changing takes polkit's permission.
// The interface decides the form of a method.
#[allow(clippy::unused_self, clippy::needless_pass_by_value)]
#[interface(name = "org.zramd1.Manager")]
impl Manager {
    /// Every zram device: name, path, state.
    #[zbus(out_args("devices"))]
    async fn list_devices(&self) -> Result<Vec<Listed>> {
        let snapshot = self.core.sample().await;
        let row = |name: &str, state: &str| Ok((name.to_owned(), path(device_path(name))?, state.to_owned()));
        snapshot.devices.iter().map(|device| row(&device.name, device.state.word())).collect()
    }

    /// Every RAM disk: name, path, `mounted` or `gone`.
    #[zbus(name = "ListRamDisks", out_args("ramdisks"))]
    async fn list_ramdisks(&self) -> Result<Vec<Listed>> {
        let snapshot = self.core.sample().await;
        let state = |mounted: bool| if mounted { "mounted" } else { "gone" }.to_owned();
        let row = |name: &str, mounted| Ok((name.to_owned(), path(ramdisk_path(name))?, state(mounted)));
        snapshot.ramdisks.iter().map(|disk| row(&disk.name, disk.mounted)).collect()
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
    #[zbus(name = "GetRamDisk", out_args("ramdisk"))]
    async fn get_ramdisk(&self, name: String) -> Result<OwnedObjectPath> {
        match self.core.sample().await.ramdisk(&name) {
            Some(disk) => path(ramdisk_path(&disk.name)),
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
        let action = Action::Manage.with("change", prompt::keys(&options));
        let request = auth::check(&self.core.call_limits, connection, &call, action).await?;
        let caller = request.caller();
        path(device_path(&request.run(self.core.create(&options, caller)).await?))
    }

    /// Removes a device, and the override of CreateDevice. One that is configured in a file is off until the next boot, or until
    /// ActivateDevice. The option `force` (b) discards the contents of a file system.
    #[zbus(out_args("job"))]
    async fn remove_device(
        &self,
        name: String,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request =
            auth::check(&self.core.call_limits, connection, &call, Action::Manage.on(&name)).await?;
        request.run(self.core.remove(&name, &options)).await
    }

    /// Activates a device that was switched off, by its name: it may have no object then. There are no options yet.
    #[zbus(out_args("job"))]
    async fn activate_device(
        &self,
        name: String,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request =
            auth::check(&self.core.call_limits, connection, &call, Action::Manage.on(&name)).await?;
        request.run(self.core.activate(&name, &options)).await
    }

    /// Removes the overrides of a device or RAM disk, by its name or section, and applies the configuration to it; a device of
    /// CreateDevice is removed. What cannot be done is refused, and the override stays. The option `force` is as for Reload.
    #[zbus(out_args("job"))]
    async fn unset_override(
        &self,
        name: String,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request =
            auth::check(&self.core.call_limits, connection, &call, Action::Manage.on(&name)).await?;
        request.run(self.core.unset_override(&name, &options)).await
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
        let _counted = self.core.call_limits.take(connection, &call).await?;
        let _alone = self.core.planning.lock().await;
        self.core.planned(&options).await.map(planned)
    }

    /// What Configure would do with the same arguments, in the form of Plan. With the option `runtime`, keys of the section of a device
    /// that is not configured are those of CreateDevice, for root and for other callers, and `enabled` = false (b) is RemoveDevice.
    #[zbus(out_args("changes"))]
    async fn plan_configure(
        &self,
        sections: Sections,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<Vec<change::OnTheBus>> {
        let action = Action::Manage.with("change", prompt::sections(&sections));
        let request = auth::check(&self.core.call_limits, connection, &call, action).await?;
        let _alone = self.core.planning.lock().await;
        self.core.planned_with(&sections, &options, request.caller()).await.map(planned)
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
        let request = auth::check(&self.core.call_limits, connection, &call, Action::Manage).await?;
        request.run(self.core.reload(&options)).await
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
        let action = Action::Configure.with("change", prompt::sections(&sections));
        let request = auth::check(&self.core.call_limits, connection, &call, action).await?;
        request.run(self.core.configure(&sections, &options)).await
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
        let request = auth::check(&self.core.call_limits, connection, &call, Action::Tune).await?;
        request.run(self.core.maintain_now(&options)).await
    }

    /// The level of memory pressure has changed; the reason says how much of the time tasks waited for memory.
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

    /// Sends StatsUpdated of every device to the caller, at this interval (100 ms to an hour), until Unsubscribe or until the caller
    /// leaves the bus. A second call changes the interval.
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

    /// The totals of one sample: those of the properties for memory, swap, zswap and all devices, and StatsTimestampMonotonic,
    /// microseconds since boot (CLOCK_MONOTONIC); sent only to callers of SubscribeTo.
    #[zbus(signal)]
    pub(crate) async fn totals_updated(
        emitter: &SignalEmitter<'_>,
        stats: HashMap<&str, Variant<'_>>,
    ) -> zbus::Result<()>;

    /// Ends the subscription of the caller.
    fn unsubscribe(&self, #[zbus(header)] call: Header<'_>) -> Result<()> {
        self.core.unsubscribe(&caller::name_of(&call)?);
        Ok(())
    }
}
