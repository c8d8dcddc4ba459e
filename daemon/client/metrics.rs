//! The metrics of `stats`, in addition to [`FIGURES`].

use logic::figure::{FIGURES, Metric, Unit, Value, counter, gauge};
use logic::maintain::report::{Budget, Total};
use logic::sample::{DeviceView, DiskView};

#[allow(clippy::unnecessary_wraps)] // As the tables want it.
fn count(value: u64) -> Option<Value> {
    Some(Value::Count(value))
}

/// Metrics of each device that is set up, in addition to [`FIGURES`].
const SIZES: &[Metric<DeviceView>] = &[
    gauge(
        "device_disk_size",
        Unit::Bytes,
        |view| count(view.disk_size_bytes),
        "How much can be stored, uncompressed.",
    ),
    gauge(
        "device_memory_limit",
        Unit::Bytes,
        |view| count(view.stats.memory.mem_limit),
        "Limit of the memory used, 0 for none.",
    ),
    gauge(
        "device_swap_size",
        Unit::Bytes,
        |view| view.swap.and_then(|swap| count(swap.size_bytes)),
        "Size of the active swap on the device.",
    ),
];

/// All metrics of each device that is set up.
pub fn device() -> impl Iterator<Item = &'static Metric<DeviceView>> {
    let figures = FIGURES.iter().map(|figure| &figure.metric).filter(|metric| !metric.name.is_empty());
    SIZES.iter().chain(figures)
}

/// Metrics of each mounted RAM disk.
pub const DISK: &[Metric<DiskView>] = &[
    gauge("disk_size", Unit::Bytes, |view| count(view.size_bytes), "How much fits on the RAM disk."),
    gauge("disk_used", Unit::Bytes, |view| count(view.used_bytes), "How much is on the RAM disk."),
    gauge("disk_free_inodes", Unit::None, |view| view.files_left().and_then(count), "Files that still fit."),
];

/// Metrics of each maintenance policy that has run since boot. The kernel does not count recompressed pages.
pub const POLICY: &[Metric<(String, Total)>] = &[
    counter(
        "maintenance_runs",
        Unit::None,
        |(_, total)| count(total.runs),
        "Runs of the policy that changed a device since boot.",
    ),
    counter(
        "maintenance_freed",
        Unit::Bytes,
        |(_, total)| count(total.freed_bytes),
        "Memory that the policy freed since boot.",
    ),
    counter(
        "maintenance_written",
        Unit::Bytes,
        |(_, total)| count(total.written_bytes),
        "Data that the policy wrote to backing devices since boot.",
    ),
    counter(
        "maintenance_busy",
        Unit::Seconds,
        |(_, total)| Some(Value::Real(seconds(total.took_usec))),
        "Time spent in the policy since boot.",
    ),
];

/// Metrics of the write-back budget, if there is one.
pub const BUDGET: &[Metric<Budget>] = &[
    gauge(
        "writeback_budget",
        Unit::Bytes,
        |budget| count(budget.daily_bytes),
        "Budget for writes to backing devices in any 24 hours.",
    ),
    gauge(
        "writeback_budget_left",
        Unit::Bytes,
        |budget| count(budget.left_bytes),
        "Remaining budget at the last run of maintenance.",
    ),
    counter(
        "writeback",
        Unit::Bytes,
        |budget| count(budget.total_bytes),
        "Data written to backing devices in total, across restarts.",
    ),
];

/// Microseconds as seconds.
#[allow(clippy::cast_precision_loss)] // A century is exact to a microsecond.
pub fn seconds(usec: u64) -> f64 {
    usec as f64 / 1e6
}
