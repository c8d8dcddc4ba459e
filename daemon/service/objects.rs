//! `org.freedesktop.DBus.ObjectManager`: every object with its properties. That of zbus also lists the paths above them, which have
//! no interface.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use zbus::fdo::{self, ManagedObjects};
use zbus::names::InterfaceName;
use zbus::object_server::{Interface, SignalEmitter};
use zbus::{Connection, ObjectPath, ObjectServer, OwnedObjectPath, Variant, interface};

use super::bus::benchmark::{self, Benchmark};
use super::bus::device::Device;
use super::bus::filesystem::Filesystem;
use super::bus::ramdisk::Ramdisk;
use super::bus::swap::Swap;
use super::bus::table::Table;
use super::core::Core;
use super::job::Job;
use super::jobs;
use super::lock::lock;
use super::sync::{Kind, wanted};

/// The manager of all objects below the root.
#[derive(Debug)]
pub struct Objects {
    core: Arc<Core>,
}

impl Objects {
    pub(crate) fn new(core: Arc<Core>) -> Objects {
        Objects { core }
    }
}

struct Found<'a> {
    server: &'a ObjectServer,
    connection: &'a Connection,
    objects: ManagedObjects,
}

impl Found<'_> {
    /// Adds an interface of an object, if it is published.
    async fn add<I: Interface>(&mut self, path: String) -> fdo::Result<()> {
        let Ok(object) = self.server.interface::<_, I>(path.as_str()).await else { return Ok(()) };
        let emitter = object.signal_emitter();
        let values = object.get().await.get_all(self.server, self.connection, None, emitter).await?;
        let path = OwnedObjectPath::try_from(path).map_err(fdo::Error::from)?;
        self.objects.entry(path).or_default().insert(I::name().into(), values);
        Ok(())
    }
}

#[interface(name = "org.freedesktop.DBus.ObjectManager", introspection_docs = false)]
impl Objects {
    /// Every object with its interfaces and their properties.
    #[zbus(out_args("object_paths_interfaces_and_properties"))]
    async fn get_managed_objects(
        &self,
        #[zbus(object_server)] server: &ObjectServer,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<ManagedObjects> {
        let mut found = Found { server, connection, objects: ManagedObjects::new() };
        found.add::<Benchmark>(benchmark::path()).await?;
        for (kind, path, _) in wanted(&self.core.latest()) {
            match kind {
                Kind::Device => found.add::<Table<Device>>(path).await?,
                Kind::Swap => found.add::<Table<Swap>>(path).await?,
                Kind::Filesystem => found.add::<Table<Filesystem>>(path).await?,
                Kind::Ramdisk => found.add::<Table<Ramdisk>>(path).await?,
            }
        }
        let published = lock(&self.core.jobs).published.clone();
        for number in published {
            found.add::<Job>(jobs::path(number)).await?;
        }
        Ok(found.objects)
    }

    /// An object or interface was added; zbus sends it.
    #[zbus(signal)]
    pub async fn interfaces_added(
        emitter: &SignalEmitter<'_>,
        object_path: ObjectPath<'_>,
        interfaces_and_properties: HashMap<InterfaceName<'_>, HashMap<&str, Variant<'_>>>,
    ) -> zbus::Result<()>;

    /// An object or interface was removed; zbus sends it.
    #[zbus(signal)]
    pub async fn interfaces_removed(
        emitter: &SignalEmitter<'_>,
        object_path: ObjectPath<'_>,
        interfaces: Cow<'_, [InterfaceName<'_>]>,
    ) -> zbus::Result<()>;
}
