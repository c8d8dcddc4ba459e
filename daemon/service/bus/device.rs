//! `org.zramd1.Device`: one zram device, managed or not.

use std::collections::HashMap;
use std::sync::Arc;

use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, OwnedObjectPath, OwnedVariant, Variant, interface};

use super::options::Options;
use crate::auth::{self, Action};
use crate::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::names::disk_path;
use logic::figure::{FIGURES, Value};
use logic::sample::{DeviceView, Stats};

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

    /// The last state of the device; the default if it is gone and its object is about to be removed.
    async fn view<T>(&self, get: impl FnOnce(&DeviceView) -> T) -> T {
        let sample = self.core.sample().await;
        match sample.device(&self.name) {
            Some(view) => get(view),
            None => get(&DeviceView::default()),
        }
    }

    async fn stats(&self) -> Stats {
        self.view(|view| view.stats).await
    }
}

/// One sample as a dictionary with the names of the properties.
pub(crate) fn stats_map(device: &DeviceView) -> HashMap<&'static str, Variant<'static>> {
    let value = |value| match value {
        Value::Count(count) => count.into(),
        Value::Real(quotient) => quotient.into(),
    };
    FIGURES.iter().map(|figure| (figure.name, value(figure.value(device)))).collect()
}

/// A zram device. Amounts are bytes of uncompressed data unless the name says otherwise; counters do not emit signals.
#[interface(name = "org.zramd1.Device")]
impl Device {
    /// Its name, for example `zram0`; the node is below `/dev`.
    #[zbus(property(emits_changed_signal = "const"))]
    fn name(&self) -> String {
        self.name.clone()
    }

    /// Device number, as stat(2) shows it.
    #[zbus(property(emits_changed_signal = "const"))]
    async fn device_number(&self) -> u64 {
        self.view(|view| view.device_number).await
    }

    /// Whether zramd set it up. Others are shown and never changed.
    #[zbus(property)]
    async fn managed(&self) -> bool {
        self.view(|view| view.managed).await
    }

    /// `swap`, `filesystem`, `raw` (set up, but neither of the two) or `unused`.
    #[zbus(property)]
    async fn role(&self) -> String {
        self.view(|view| view.role.word().to_owned()).await
    }

    /// `active` (swap is on), `mounted`, `ready` (set up, not in use), `unfinished` or `unused`.
    #[zbus(property)]
    async fn state(&self) -> String {
        self.view(|view| view.state.word().to_owned()).await
    }

    /// The section of the configuration that it comes from, or empty.
    #[zbus(property)]
    async fn config_section(&self) -> String {
        self.view(|view| view.config_section.clone()).await
    }

    /// The object of the RAM disk that it holds, or `/`.
    #[zbus(property)]
    async fn ram_disk(&self) -> OwnedObjectPath {
        let sample = self.core.sample().await;
        let disk = sample.disks.iter().find(|disk| disk.device == self.name);
        disk.and_then(|disk| disk_path(&disk.name).try_into().ok()).unwrap_or_default()
    }

    /// Uncompressed bytes that fit (`disksize`).
    #[zbus(property)]
    async fn disk_size_bytes(&self) -> u64 {
        self.view(|view| view.disk_size_bytes).await
    }

    /// Upper bound of the memory used (`mem_limit`); 0 is none.
    #[zbus(property)]
    async fn memory_limit_bytes(&self) -> u64 {
        self.view(|view| view.memory_limit_bytes).await
    }

    /// Primary compression algorithm (`comp_algorithm`).
    #[zbus(property)]
    async fn algorithm(&self) -> String {
        self.view(|view| view.algorithm.clone()).await
    }

    /// Why: `config`, `benchmark`, `auto`, `fallback`, `kernel-default` or `unknown`.
    #[zbus(property)]
    async fn algorithm_reason(&self) -> String {
        self.view(|view| view.algorithm_reason.word().to_owned()).await
    }

    /// Its parameters, as configured: the kernel shows none.
    #[zbus(property)]
    async fn algorithm_parameters(&self) -> HashMap<String, String> {
        self.view(|view| view.algorithm_parameters.clone().into_iter().collect()).await
    }

    /// Secondary algorithms with their priorities (`recomp_algorithm`).
    #[zbus(property)]
    async fn recompression_algorithms(&self) -> Vec<(u32, String)> {
        self.view(|view| view.recompression_algorithms.clone()).await
    }

    /// Where written-back pages go (`backing_dev`), or empty.
    #[zbus(property)]
    async fn backing_device(&self) -> String {
        self.view(|view| view.backing_device.clone()).await
    }

    /// What may still be written back; the largest number when there is no limit.
    #[zbus(property)]
    async fn writeback_limit_bytes(&self) -> u64 {
        self.view(|view| view.writeback_limit_bytes.unwrap_or(u64::MAX)).await
    }

    // Counters. org.zramd1(5) has their descriptions from `FIGURES`.

    #[zbus(property(emits_changed_signal = "false"))]
    async fn original_data_bytes(&self) -> u64 {
        self.stats().await.memory.orig_data_size
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn compressed_data_bytes(&self) -> u64 {
        self.stats().await.memory.compr_data_size
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn memory_used_bytes(&self) -> u64 {
        self.stats().await.memory.mem_used_total
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn memory_peak_bytes(&self) -> u64 {
        self.stats().await.memory.mem_used_max
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn same_pages(&self) -> u64 {
        self.stats().await.memory.same_pages
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn pages_compacted(&self) -> u64 {
        self.stats().await.memory.pages_compacted
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn huge_pages(&self) -> u64 {
        self.stats().await.memory.huge_pages
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn huge_pages_since(&self) -> u64 {
        self.stats().await.memory.huge_pages_since
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn failed_reads(&self) -> u64 {
        self.stats().await.io.failed_reads
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn failed_writes(&self) -> u64 {
        self.stats().await.io.failed_writes
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn invalid_io(&self) -> u64 {
        self.stats().await.io.invalid_io
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn notify_free(&self) -> u64 {
        self.stats().await.io.notify_free
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn backing_bytes(&self) -> u64 {
        self.stats().await.backing.used_bytes
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn backing_reads(&self) -> u64 {
        self.stats().await.backing.read_bytes
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn backing_writes(&self) -> u64 {
        self.stats().await.backing.written_bytes
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn compression_ratio(&self) -> f64 {
        self.stats().await.derived.compression_ratio
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn saved_bytes(&self) -> u64 {
        self.stats().await.derived.saved_bytes
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn loss_bytes(&self) -> u64 {
        self.stats().await.derived.loss_bytes
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn headroom_bytes(&self) -> u64 {
        self.stats().await.derived.headroom_bytes
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn stats_timestamp_monotonic(&self) -> u64 {
        self.stats().await.timestamp_monotonic_usec
    }

    /// One sample: all counters of the same moment, by their names. Those that are properties have the same name there.
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

    /// Gives it another size, until the next boot. Swap is moved through memory; a file system is refused unless the
    /// option `force` is true, because its contents would be lost.
    #[zbus(out_args("job"))]
    async fn resize(
        &self,
        disk_size_bytes: u64,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Manage).await?;
        self.core.owned(&call, self.core.resize(&self.name, disk_size_bytes, &options).await?).await
    }

    /// Limits the memory that it may use, until the next boot; 0 is no limit. Writes that would exceed it fail, so a limit below what
    /// is used is refused.
    async fn set_memory_limit(
        &self,
        memory_limit_bytes: u64,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<()> {
        auth::check(&self.core.turns, connection, &call, Action::Manage).await?;
        self.core.set_memory_limit(&self.name, memory_limit_bytes).await
    }

    /// Gives memory back that the allocator holds in half-empty pages.
    async fn compact(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<()> {
        auth::check(&self.core.turns, connection, &call, Action::Tune).await?;
        self.core.compact(&self.name).await
    }

    /// Forgets the peak of the memory used.
    async fn reset_peak(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<()> {
        auth::check(&self.core.turns, connection, &call, Action::Tune).await?;
        self.core.reset_peak(&self.name).await
    }

    /// Marks pages as idle: all, or with the option `age-seconds` (u) those that have not been used for so long.
    #[zbus(out_args("job"))]
    async fn mark_idle(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Tune).await?;
        self.core.owned(&call, self.core.maintain_device(&self.name, "mark-idle", &options).await?).await
    }

    /// Compresses pages again with a secondary algorithm. Without the option `pages` (s: `idle`, `huge` or `huge-idle`, as they are
    /// marked) those are idle that the configuration says.
    #[zbus(out_args("job"))]
    async fn recompress(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Tune).await?;
        self.core.owned(&call, self.core.maintain_device(&self.name, "recompress", &options).await?).await
    }

    /// Writes pages to the backing device, never more than the budget. The option `pages` is as for Recompress.
    #[zbus(out_args("job"))]
    async fn writeback(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Tune).await?;
        self.core.owned(&call, self.core.maintain_device(&self.name, "write-back", &options).await?).await
    }

    /// One sample, as from GetStats; sent to those only who called Subscribe or SubscribeTo of the manager.
    #[zbus(signal)]
    pub(crate) async fn stats_updated(
        emitter: &SignalEmitter<'_>,
        stats: HashMap<&str, Variant<'_>>,
    ) -> zbus::Result<()>;
}
