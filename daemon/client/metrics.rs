//! The metrics of `stats`, in addition to [`FIGURES`].

use logic::figure::{FIGURES, Metric, Unit, Value, counter, gauge};
use logic::maintain_report::{Budget, Total};
use logic::sample::{DeviceView, RamdiskView};

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
