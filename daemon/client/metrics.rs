//! The metrics of `stats`, in addition to [`FIGURES`].

use logic::figure::{FIGURES, Metric, Unit, Value, counter, gauge};
use logic::maintain_report::{Budget, Total};
use logic::sample::{DeviceView, RamdiskView};
use logic::zswap::ZswapView;

/// Metrics of each device that is set up, in addition to [`FIGURES`].
const SIZES: &[Metric<DeviceView>] = &[
    gauge(
        "device_disk_size",
        Unit::Bytes,
        |view| Some(view.disk_size_bytes.into()),
        "How much can be stored, uncompressed.",
    ),
    gauge(
        "device_memory_limit",
        Unit::Bytes,
        |view| Some(view.stats.memory.mem_limit.into()),
        "Limit of the memory used, 0 for none.",
    ),
    gauge(
        "device_swap_size",
        Unit::Bytes,
        |view| view.swap.map(|swap| swap.size_bytes.into()),
        "Size of the active swap on the device.",
    ),
];

/// All metrics of each device that is set up.
pub fn device() -> impl Iterator<Item = &'static Metric<DeviceView>> {
    let figures = FIGURES.iter().map(|figure| &figure.metric).filter(|metric| !metric.name.is_empty());
    SIZES.iter().chain(figures)
}

/// Metrics of each mounted RAM disk.
pub const RAMDISK: &[Metric<RamdiskView>] = &[
    gauge("ramdisk_size", Unit::Bytes, |view| Some(view.size_bytes.into()), "How much fits on the RAM disk."),
    gauge("ramdisk_used", Unit::Bytes, |view| Some(view.used_bytes.into()), "How much is on the RAM disk."),
    gauge(
        "ramdisk_free_inodes",
        Unit::None,
        |view| view.files_left().map(Value::from),
        "Files that still fit.",
    ),
    counter(
        "ramdisk_written",
        Unit::Bytes,
        |view| view.is_kept().then(|| view.status.written_total_bytes.into()),
        "Data that saves of the RAM disk wrote in total, across restarts.",
    ),
];

/// Metrics of zswap.
#[rustfmt::skip]
pub const ZSWAP: &[Metric<ZswapView>] = &[
    gauge("zswap_original_data", Unit::Bytes, |view| Some(view.original_data_bytes.into()), "Uncompressed data stored by zswap."),
    gauge("zswap_memory_used", Unit::Bytes, |view| Some(view.memory_used_bytes.into()), "Memory that zswap takes, allocator overhead included."),
    gauge("zswap_memory_limit", Unit::Bytes, |view| Some(view.memory_limit_bytes.into()), "Limit of the memory that zswap takes."),
    gauge("zswap_compression_ratio", Unit::None, |view| Some(view.compression_ratio.into()), "Data stored by zswap divided by the memory that it takes, 0 when there is none."),
    gauge("zswap_saved", Unit::Bytes, |view| Some(view.saved_bytes.into()), "Data stored by zswap, less the memory that it takes."),
    counter("zswap_read", Unit::Bytes, |view| Some(view.read_bytes.into()), "Uncompressed data read from zswap."),
    counter("zswap_written", Unit::Bytes, |view| Some(view.written_bytes.into()), "Uncompressed data stored in zswap since boot."),
    counter("zswap_backing_written", Unit::Bytes, |view| Some(view.backing_written_bytes.into()), "Data that zswap has written back to swap on disks."),
    counter("zswap_limit_hits", Unit::None, |view| Some(view.rejected?.limit.into()), "How often the pool of zswap was full."),
    counter("zswap_rejected_compress_poor", Unit::Pages, |view| Some(view.rejected?.compress_poor.into()), "Pages that zswap did not store, because they do not compress."),
    counter("zswap_rejected_allocation", Unit::Pages, |view| Some(view.rejected?.allocation.into()), "Pages that zswap did not store, for lack of memory."),
];

/// Metrics of each maintenance policy that has run since boot. The kernel does not count recompressed pages.
pub const POLICY: &[Metric<(String, Total)>] = &[
    counter(
        "maintenance_runs",
        Unit::None,
        |(_, total)| Some(total.runs.into()),
        "Runs of the policy that changed a device since boot.",
    ),
    counter(
        "maintenance_freed",
        Unit::Bytes,
        |(_, total)| Some(total.freed_bytes.into()),
        "Memory that the policy freed since boot.",
    ),
    counter(
        "maintenance_written",
        Unit::Bytes,
        |(_, total)| Some(total.written_bytes.into()),
        "Data that the policy wrote to backing devices since boot.",
    ),
    counter(
        "maintenance_busy",
        Unit::Seconds,
        |(_, total)| Some(seconds(total.took_usec).into()),
        "Time spent in the policy since boot.",
    ),
];

/// Metrics of the write-back budget, if there is one.
pub const BUDGET: &[Metric<Budget>] = &[
    gauge(
        "writeback_budget",
        Unit::Bytes,
        |budget| Some(budget.daily_bytes.into()),
        "Budget for writes to backing devices in any 24 hours.",
    ),
    gauge(
        "writeback_budget_left",
        Unit::Bytes,
        |budget| Some(budget.left_bytes.into()),
        "Remaining budget at the last run of maintenance.",
    ),
    counter(
        "writeback",
        Unit::Bytes,
        |budget| Some(budget.total_bytes.into()),
        "Data written to backing devices in total, across restarts.",
    ),
];

/// Microseconds as seconds.
#[allow(clippy::cast_precision_loss)] // A century is exact to a microsecond.
pub fn seconds(usec: u64) -> f64 {
    usec as f64 / 1e6
}
