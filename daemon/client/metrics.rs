//! The figures of `stats`: their names, units and meanings.

use crate::logic::policy::report::{Budget, Total};
use crate::logic::snapshot::{DeviceView, DiskView};

/// What a metric counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Pages.
    Pages,
    /// Seconds.
    Seconds,
    /// Something else, which the name says.
    None,
}

impl Unit {
    /// Its word in names; empty where there is none.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Pages => "pages",
            Unit::Seconds => "seconds",
            Unit::None => "",
        }
    }
}

/// One metric of a thing of type `T`.
#[derive(Debug, Clone, Copy)]
pub struct Metric<T> {
    /// Its name, without the unit and `_total`.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Whether it only grows.
    pub counter: bool,
    /// What it means.
    pub help: &'static str,
    /// Its value, if it has one.
    pub value: fn(&T) -> Option<Value>,
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A count.
    Count(u64),
    /// A quotient.
    Real(f64),
}

const fn gauge<T>(
    name: &'static str,
    unit: Unit,
    value: fn(&T) -> Option<Value>,
    help: &'static str,
) -> Metric<T> {
    Metric { name, unit, counter: false, help, value }
}

const fn counter<T>(
    name: &'static str,
    unit: Unit,
    value: fn(&T) -> Option<Value>,
    help: &'static str,
) -> Metric<T> {
    Metric { name, unit, counter: true, help, value }
}

#[allow(clippy::unnecessary_wraps)] // As the tables want it.
fn count(value: u64) -> Option<Value> {
    Some(Value::Count(value))
}

/// Of each device that is set up.
pub const DEVICE: &[Metric<DeviceView>] = &[
    gauge(
        "device_disk_size",
        Unit::Bytes,
        |view| count(view.disk_size_bytes),
        "How much can be stored, uncompressed.",
    ),
    gauge(
        "device_original_data",
        Unit::Bytes,
        |view| count(view.stats.memory.orig_data_size),
        "Uncompressed data stored, same-filled and written-back pages included.",
    ),
    gauge(
        "device_compressed_data",
        Unit::Bytes,
        |view| count(view.stats.memory.compr_data_size),
        "Compressed payload.",
    ),
    gauge(
        "device_memory_used",
        Unit::Bytes,
        |view| count(view.stats.memory.mem_used_total),
        "Memory that holds the compressed data, allocator overhead included.",
    ),
    gauge(
        "device_memory_peak",
        Unit::Bytes,
        |view| count(view.stats.memory.mem_used_max),
        "Peak of the memory used.",
    ),
    gauge(
        "device_memory_limit",
        Unit::Bytes,
        |view| count(view.stats.memory.mem_limit),
        "Limit of the memory used, 0 for none.",
    ),
    gauge(
        "device_saved",
        Unit::Bytes,
        |view| count(view.stats.derived.saved_bytes),
        "Memory that the stored pages would take uncompressed, less what they do take.",
    ),
    gauge(
        "device_headroom",
        Unit::Bytes,
        |view| count(view.stats.derived.headroom_bytes),
        "What can still be stored, uncompressed, by size, limit and available memory.",
    ),
    gauge(
        "device_compression_ratio",
        Unit::None,
        |view| Some(Value::Real(view.stats.derived.compression_ratio)),
        "Compressed pages divided by the memory that holds them, 0 when there are none.",
    ),
    gauge(
        "device_same",
        Unit::Pages,
        |view| count(view.stats.memory.same_pages),
        "Pages of one repeated word, which need no memory.",
    ),
    gauge(
        "device_huge",
        Unit::Pages,
        |view| count(view.stats.memory.huge_pages),
        "Pages that do not compress.",
    ),
    counter(
        "device_huge_stored",
        Unit::Pages,
        |view| count(view.stats.memory.huge_pages_since),
        "Pages stored that did not compress, since the device was set up.",
    ),
    counter(
        "device_compacted",
        Unit::Pages,
        |view| count(view.stats.memory.pages_compacted),
        "Pages freed by compaction.",
    ),
    counter(
        "device_freed",
        Unit::Pages,
        |view| count(view.stats.io.notify_free),
        "Pages freed because nobody needs them any more.",
    ),
    counter(
        "device_failed_reads",
        Unit::None,
        |view| count(view.stats.io.failed_reads),
        "Reads that failed: each is a page that somebody lost.",
    ),
    counter(
        "device_failed_writes",
        Unit::None,
        |view| count(view.stats.io.failed_writes),
        "Writes that failed, for lack of memory or at the limit.",
    ),
    counter(
        "device_invalid_requests",
        Unit::None,
        |view| count(view.stats.io.invalid_io),
        "Requests that were not made of whole pages.",
    ),
    counter("device_reads", Unit::None, |view| count(view.stats.block.reads), "Read requests completed."),
    counter("device_read", Unit::Bytes, |view| count(view.stats.block.read_bytes), "Uncompressed data read."),
    counter("device_writes", Unit::None, |view| count(view.stats.block.writes), "Write requests completed."),
    counter(
        "device_written",
        Unit::Bytes,
        |view| count(view.stats.block.written_bytes),
        "Uncompressed data written.",
    ),
    counter(
        "device_discarded",
        Unit::Bytes,
        |view| count(view.stats.block.discarded_bytes),
        "Uncompressed data discarded.",
    ),
    gauge(
        "device_backing",
        Unit::Bytes,
        |view| backed(view, view.stats.backing.used_bytes),
        "Data on the backing device.",
    ),
    counter(
        "device_backing_read",
        Unit::Bytes,
        |view| backed(view, view.stats.backing.read_bytes),
        "Data read back from the backing device.",
    ),
    counter(
        "device_backing_written",
        Unit::Bytes,
        |view| backed(view, view.stats.backing.written_bytes),
        "Data written to the backing device.",
    ),
    gauge(
        "device_swap_size",
        Unit::Bytes,
        |view| view.swap.and_then(|swap| count(swap.size_bytes)),
        "Size of the active swap on the device.",
    ),
    gauge(
        "device_swap_used",
        Unit::Bytes,
        |view| view.swap.and_then(|swap| count(swap.used_bytes)),
        "Swap slots in use.",
    ),
];

fn backed(view: &DeviceView, bytes: u64) -> Option<Value> {
    if view.backing_device.is_empty() { None } else { count(bytes) }
}

/// Of each RAM disk that is mounted.
pub const DISK: &[Metric<DiskView>] = &[
    gauge("disk_size", Unit::Bytes, |view| count(view.size_bytes), "How much fits on the RAM disk."),
    gauge("disk_used", Unit::Bytes, |view| count(view.used_bytes), "How much is on the RAM disk."),
    gauge("disk_free_inodes", Unit::None, |view| view.files_left().and_then(count), "Files that still fit."),
];

/// Of each policy that has had its turn since boot, with its name. The kernel does not tell how many pages it compressed again.
pub const POLICY: &[Metric<(String, Total)>] = &[
    counter(
        "maintenance_runs",
        Unit::None,
        |(_, total)| count(total.runs),
        "Times that the policy did something since boot, a device at a time.",
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
        "Time that the policy took since boot.",
    ),
];

/// Of the budget of write-back, where there is one.
pub const BUDGET: &[Metric<Budget>] = &[
    gauge(
        "writeback_budget",
        Unit::Bytes,
        |budget| count(budget.daily_bytes),
        "What may be written to backing devices in any 24 hours.",
    ),
    gauge(
        "writeback_budget_left",
        Unit::Bytes,
        |budget| count(budget.left_bytes),
        "What was left of that when maintenance last looked.",
    ),
    counter(
        "writeback",
        Unit::Bytes,
        |budget| count(budget.total_bytes),
        "Data written to backing devices since it is counted, over restarts.",
    ),
];

/// Microseconds in seconds.
#[allow(clippy::cast_precision_loss)] // A century is exact to a microsecond.
pub fn seconds(usec: u64) -> f64 {
    usec as f64 / 1e6
}
