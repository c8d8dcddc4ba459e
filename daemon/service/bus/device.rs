//! `org.zramd1.Device`: one zram device, managed or not.

use std::collections::HashMap;
use std::sync::Arc;

use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, OwnedObjectPath, OwnedVariant, Variant, interface};

use super::options::Options;
use super::table::{Object, variant};
use crate::auth::{self, Action};
use crate::core::Core;
use crate::error::{Error, ErrorKind, Result};
use logic::figure::FIGURES;
use logic::order::Only;
use logic::property::Property;
use logic::sample::DeviceView;

/// One device.
#[derive(Debug)]
pub struct Device {
    core: Arc<Core>,
    name: String,
}

impl Device {
    pub(crate) fn new(core: Arc<Core>, name: String) -> Device {
        Device { core, name }
    }
}

impl Object for Device {
    type State = DeviceView;

    async fn state(&self) -> DeviceView {
        let gone = || DeviceView { name: self.name.clone(), ..DeviceView::default() };
        self.core.sample().await.device(&self.name).cloned().unwrap_or_else(gone)
    }
}

/// One sample as a dictionary with the names of the properties.
pub(crate) fn stats_map(device: &DeviceView) -> HashMap<&'static str, Variant<'static>> {
    FIGURES.iter().map(|figure| (figure.name, variant(Property::from(figure).value(device)))).collect()
}

/// A zram device. Amounts are bytes of uncompressed data unless the name says otherwise; counters do not emit signals.
#[interface(name = "org.zramd1.Device")]
impl Device {
    /// One sample: all counters of the same moment, by the names of their properties.
    #[zbus(out_args("stats"))]
    async fn get_stats(&self) -> Result<HashMap<String, OwnedVariant>> {
        let snapshot = self.core.sample().await;
        let device = snapshot
            .device(&self.name)
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{} is gone", self.name)))?;
        let owned = |(name, value): (&str, Variant<'static>)| {
            let value = OwnedVariant::try_from(value).map_err(Error::from)?;
            Ok((name.to_owned(), value))
        };
        stats_map(device).into_iter().map(owned).collect()
    }

    /// Changes its size until the next boot. Swap is moved through memory; a file system is refused unless the option `force` is
    /// true, because its contents would be lost.
    #[zbus(out_args("job"))]
    async fn resize(
        &self,
        disk_size_bytes: u64,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let action = Action::Manage.of_size(disk_size_bytes);
        let request = auth::check(&self.core.call_limits, connection, &call, action).await?;
        request.run(self.core.resize(&self.name, disk_size_bytes, &options)).await
    }

    /// Limits the memory that it may use, until the next boot; 0 is no limit. Writes that would exceed it fail, so a limit below what
    /// is used is refused.
    async fn set_memory_limit(
        &self,
        memory_limit_bytes: u64,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<()> {
        let action = Action::Manage.of_size(memory_limit_bytes);
        let request = auth::check(&self.core.call_limits, connection, &call, action).await?;
        request.run(self.core.set_memory_limit(&self.name, memory_limit_bytes)).await
    }

    /// Gives memory back that the allocator holds in half-empty pages.
    async fn compact(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<()> {
        let request = auth::check(&self.core.call_limits, connection, &call, Action::Tune).await?;
        request.run(self.core.compact(&self.name)).await
    }

    /// Resets the peak of the memory used.
    async fn reset_peak(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<()> {
        let request = auth::check(&self.core.call_limits, connection, &call, Action::Tune).await?;
        request.run(self.core.reset_peak(&self.name)).await
    }

    /// Marks pages as idle: all, or with the option `age-seconds` (u) those that have not been used for so long.
    #[zbus(out_args("job"))]
    async fn mark_idle(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request = auth::check(&self.core.call_limits, connection, &call, Action::Tune).await?;
        request.run(self.core.maintain_device(&self.name, Only::MarkIdle(None), &options)).await
    }

    /// Compresses pages again with a secondary algorithm: those of the option `pages` (s: `idle`, `huge` or `huge-idle`, as they are
    /// marked), without it those that are idle according to the configuration.
    #[zbus(out_args("job"))]
    async fn recompress(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request = auth::check(&self.core.call_limits, connection, &call, Action::Tune).await?;
        request.run(self.core.maintain_device(&self.name, Only::Recompress(None), &options)).await
    }

    /// Writes pages to the backing device, never more than the budget. The option `pages` is as for Recompress.
    #[zbus(out_args("job"))]
    async fn writeback(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request = auth::check(&self.core.call_limits, connection, &call, Action::Tune).await?;
        request.run(self.core.maintain_device(&self.name, Only::WriteBack(None), &options)).await
    }

    /// One sample, as from GetStats; sent only to callers of Subscribe or SubscribeTo of the manager.
    #[zbus(signal)]
    pub(crate) async fn stats_updated(
        emitter: &SignalEmitter<'_>,
        stats: HashMap<&str, Variant<'_>>,
    ) -> zbus::Result<()>;
}
