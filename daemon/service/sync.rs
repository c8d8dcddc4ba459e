//! Keeps the objects on the bus in line with the machine.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use zbus::fdo::Properties;
use zbus::names::InterfaceName;
use zbus::object_server::{Interface, SignalEmitter};
use zbus::{Connection, OwnedVariant, Variant};

use super::bus::benchmark::{self, Benchmark};
use super::bus::device::Device;
use super::bus::filesystem::Filesystem;
use super::bus::manager::Manager;
use super::bus::ramdisk::Ramdisk;
use super::bus::swap::Swap;
use super::bus::table::{Object, Table};
use super::core::Core;
use super::names::{device_path, ramdisk_path};
use super::vm;
use logic::finding::Finding;
use logic::sample::{RoleView, Snapshot};
use logic::view::View;

/// Values of the properties that emit signals.
type Values = HashMap<String, OwnedVariant>;

/// The published objects, with their last values.
#[derive(Debug, Default)]
pub struct Published {
    /// By path and interface.
    objects: BTreeMap<(String, &'static str), Values>,
    problems: Vec<Finding>,
    vm: vm::Adjusted,
    /// The configuration that was announced.
    view: Arc<View>,
}

/// A dynamic interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Device,
    Swap,
    Filesystem,
    Ramdisk,
}

impl Kind {
    fn interface(self) -> &'static str {
        match self {
            Kind::Device => "org.zramd1.Device",
            Kind::Swap => "org.zramd1.Swap",
            Kind::Filesystem => "org.zramd1.Filesystem",
            Kind::Ramdisk => "org.zramd1.RamDisk",
        }
    }
}

/// The interfaces that should be published, with path and name of the object.
pub(crate) fn wanted(snapshot: &Snapshot) -> Vec<(Kind, String, String)> {
    let mut wanted = Vec::new();
    for device in &snapshot.devices {
        let mut add = |kind| wanted.push((kind, device_path(&device.name), device.name.clone()));
        add(Kind::Device);
        if device.role == RoleView::Swap {
            add(Kind::Swap);
        }
        if device.mount.is_some() {
            add(Kind::Filesystem);
        }
    }
    wanted.extend(
        snapshot.ramdisks.iter().map(|disk| (Kind::Ramdisk, ramdisk_path(&disk.name), disk.name.clone())),
    );
    wanted
}

/// Time without changes before problems are logged: shorter ones are work in progress.
const SETTLED: Duration = Duration::from_secs(2);
/// Maximum time to wait for that.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Updates the bus after each change, and logs problems once the state is stable.
pub async fn follow(core: Arc<Core>, connection: Connection, mut published: Published) {
    loop {
        core.changed.notified().await;
        // A state that does not become stable is logged after this time.
        let latest = Instant::now() + LONGEST_WAIT;
        loop {
            let request = core.request();
            try_publish(&core, &connection, &mut published).await;
            core.fulfil(request);
            let quiet = tokio::time::timeout(SETTLED, core.changed.notified()).await.is_err();
            if quiet || Instant::now() > latest {
                break;
            }
        }
        // The kernel does not announce that a device was reset, which another program may do after its `swapoff`.
        try_publish(&core, &connection, &mut published).await;
        let now = core.latest().problems.clone();
        super::journal::problems(&published.problems, &now);
        published.problems = now;
        published.vm.follow(&core);
        core.next_saves.ask();
    }
}

async fn try_publish(core: &Arc<Core>, connection: &Connection, published: &mut Published) {
    if let Err(error) = publish(core, connection, published).await {
        // The next change retries; a lost connection ends the daemon elsewhere.
        tracing::warn!("cannot publish a change: {error}");
    }
}

/// Follows the timers that save RAM disks.
pub async fn follow_timers(core: Arc<Core>, connection: Connection) {
    loop {
        let kept = || {
            let latest = core.latest();
            latest.ramdisks.iter().filter(|disk| disk.is_kept()).map(|disk| disk.name.clone()).collect()
        };
        core.next_saves.refresh(&connection, kept).await;
    }
}

/// Updates the bus once.
pub async fn publish(
    core: &Arc<Core>,
    connection: &Connection,
    published: &mut Published,
) -> zbus::Result<()> {
    // What has changed may be the work of another program.
    core.forget_others();
    let snapshot = core.resample_patiently().await;
    core.announce(&snapshot);
    let wanted = wanted(&snapshot);
    let gone: Vec<(String, &'static str)> = published
        .objects
        .keys()
        .filter(|(path, interface)| {
            !wanted.iter().any(|(kind, at, _)| at == path && kind.interface() == *interface)
        })
        .filter(|(_, interface)| ![MANAGER, BENCHMARK].contains(interface))
        .cloned()
        .collect();
    for (path, interface) in gone {
        remove(connection, &path, interface).await?;
        published.objects.remove(&(path, interface));
    }
    for (kind, path, name) in wanted {
        let key = (path.clone(), kind.interface());
        if !published.objects.contains_key(&key) {
            add(core, connection, kind, &path, name).await?;
        }
        let now = current(connection, kind, &path).await?;
        announce(connection, published, &path, kind.interface(), now).await?;
    }
    let now = values::<Manager>(connection, super::ROOT).await?;
    announce(connection, published, super::ROOT, MANAGER, now).await?;
    let view = core.view();
    if view.settings != published.view.settings {
        let emitter = SignalEmitter::new(connection, super::ROOT)?;
        let interface = InterfaceName::from_static_str_unchecked(MANAGER);
        let none = HashMap::new();
        Properties::properties_changed(&emitter, interface, none, (&["Configuration"][..]).into()).await?;
    }
    published.view = view;
    if core.verdict_changed.swap(false, Ordering::SeqCst) {
        let path = benchmark::path();
        let server = connection.object_server();
        let object = server.interface::<_, Benchmark>(path.as_str()).await?;
        // All of them emit signals.
        let now = object.get().await.get_all(server, connection, None, object.signal_emitter()).await?;
        announce(connection, published, &path, BENCHMARK, now).await?;
    }
    Ok(())
}

const MANAGER: &str = "org.zramd1.Manager";
const BENCHMARK: &str = "org.zramd1.Benchmark";

async fn add(
    core: &Arc<Core>,
    connection: &Connection,
    kind: Kind,
    path: &str,
    name: String,
) -> zbus::Result<()> {
    let server = connection.object_server();
    let core = Arc::clone(core);
    match kind {
        Kind::Device => server.at(path, Table(Device::new(core, name))).await.map(drop),
        Kind::Swap => server.at(path, Table(Swap::new(core, name))).await.map(drop),
        Kind::Filesystem => server.at(path, Table(Filesystem::new(core, name))).await.map(drop),
        Kind::Ramdisk => server.at(path, Table(Ramdisk::new(core, name))).await.map(drop),
    }
}

async fn remove(connection: &Connection, path: &str, interface: &'static str) -> zbus::Result<()> {
    let name = InterfaceName::from_static_str_unchecked(interface);
    connection.object_server().remove_named(path, name).await.map(drop)
}

async fn current(connection: &Connection, kind: Kind, path: &str) -> zbus::Result<Values> {
    match kind {
        Kind::Device => values::<Device>(connection, path).await,
        Kind::Swap => values::<Swap>(connection, path).await,
        Kind::Filesystem => values::<Filesystem>(connection, path).await,
        Kind::Ramdisk => values::<Ramdisk>(connection, path).await,
    }
}

/// The current values of the properties that emit signals.
async fn values<T: Object>(connection: &Connection, path: &str) -> zbus::Result<Values> {
    connection.object_server().interface::<_, Table<T>>(path).await?.get().await.announced().await
}

/// Emits `PropertiesChanged` for changed values, and stores them.
async fn announce(
    connection: &Connection,
    published: &mut Published,
    path: &str,
    interface: &'static str,
    now: Values,
) -> zbus::Result<()> {
    let key = (path.to_owned(), interface);
    if let Some(before) = published.objects.get(&key) {
        let mut changed: HashMap<&str, Variant<'_>> = HashMap::new();
        for (name, value) in &now {
            if before.get(name) != Some(value) {
                changed.insert(name, value.try_clone()?.into());
            }
        }
        if !changed.is_empty() {
            let emitter = SignalEmitter::new(connection, path)?;
            let interface = InterfaceName::from_static_str_unchecked(interface);
            Properties::properties_changed(&emitter, interface, changed, (&[][..]).into()).await?;
        }
    }
    published.objects.insert(key, now);
    Ok(())
}
