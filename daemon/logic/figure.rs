//! The figures of a device, each defined once: used for the bus, `show`, `list`, `stats` and org.zramd1(5).

use super::sample::DeviceView;

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    Pages,
    Seconds,
    /// Another unit, according to the name.
    None,
}

impl Unit {
    /// The unit in names; empty if there is none.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Pages => "pages",
            Unit::Seconds => "seconds",
            Unit::None => "",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// An integer.
    Count(u64),
    /// A real number.
    Real(f64),
}

impl Default for Value {
    fn default() -> Value {
        Value::Count(0)
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Value {
        Value::Count(count)
    }
}

impl From<f64> for Value {
    fn from(quotient: f64) -> Value {
        Value::Real(quotient)
    }
}

/// A metric of an object of type `T`.
#[derive(Debug)]
pub struct Metric<T> {
    /// Its name, without the unit and `_total`.
    pub name: &'static str,
    pub unit: Unit,
    /// Whether it is a counter, which never decreases.
    pub counter: bool,
    /// Description.
    pub help: &'static str,
    /// Its value, if there is one.
    pub value: fn(&T) -> Option<Value>,
}

/// A metric that may decrease.
pub const fn gauge<T>(
    name: &'static str,
    unit: Unit,
    value: fn(&T) -> Option<Value>,
    help: &'static str,
) -> Metric<T> {
    Metric { name, unit, counter: false, help, value }
}

/// A metric that never decreases.
pub const fn counter<T>(
    name: &'static str,
    unit: Unit,
    value: fn(&T) -> Option<Value>,
    help: &'static str,
) -> Metric<T> {
    Metric { name, unit, counter: true, help, value }
}

/// A figure of a device.
#[derive(Debug)]
pub struct Figure {
    /// Its name in `show`, in the dictionary of GetStats and as a property, if it is one.
    pub name: &'static str,
    /// Its name for people, in all tables and texts; empty if none has it.
    pub label: &'static str,
    /// The metric; without a name it is not in `stats`.
    pub metric: Metric<DeviceView>,
    /// Text of org.zramd1(5) after the help of the metric: details, and the source in the kernel.
    pub detail: &'static str,
}

impl Figure {
    /// Its value; 0 without one.
    pub fn value(&self, view: &DeviceView) -> Value {
        (self.metric.value)(view).unwrap_or_default()
    }
}

const fn figure(name: &'static str, metric: Metric<DeviceView>, detail: &'static str) -> Figure {
    Figure { name, label: "", metric, detail }
}

const fn labelled(label: &'static str, figure: Figure) -> Figure {
    Figure { label, ..figure }
}

/// The figure with this name. In a constant, an unknown name is a compile-time error.
pub const fn named(name: &str) -> &'static Figure {
    let mut index = 0;
    while !is_same(FIGURES[index].name.as_bytes(), name.as_bytes()) {
        index += 1;
    }
    &FIGURES[index]
}

/// `==` for constants.
const fn is_same(left: &[u8], right: &[u8]) -> bool {
    match (left, right) {
        ([], []) => true,
        ([one, left @ ..], [other, right @ ..]) => *one == *other && is_same(left, right),
        _ => false,
    }
}

/// The value, if the device has a backing device.
fn backed(view: &DeviceView, bytes: u64) -> Option<Value> {
    if view.backing_device.is_empty() { None } else { Some(bytes.into()) }
}

/// All figures, in the order of `show`.
#[rustfmt::skip]
pub const FIGURES: &[Figure] = &[
    labelled("Stored", figure("OriginalDataBytes", gauge("device_original_data", Unit::Bytes, |view| Some(view.stats.memory.orig_data_size.into()), "Uncompressed data stored, same-filled and written-back pages included."), "From `orig_data_size` of `mm_stat`.")),
    labelled("Compressed", figure("CompressedDataBytes", gauge("device_compressed_data", Unit::Bytes, |view| Some(view.stats.memory.compr_data_size.into()), "Compressed payload."), "From `compr_data_size` of `mm_stat`.")),
    labelled("Memory", figure("MemoryUsedBytes", gauge("device_memory_used", Unit::Bytes, |view| Some(view.stats.memory.mem_used_total.into()), "Memory that holds the compressed data, allocator overhead included."), "Without the table of pages. From `mem_used_total` of `mm_stat`.")),
    labelled("Memory peak", figure("MemoryPeakBytes", gauge("device_memory_peak", Unit::Bytes, |view| Some(view.stats.memory.mem_used_max.into()), "Peak of the memory used."), "From `mem_used_max` of `mm_stat`.")),
    labelled("Same", figure("SamePages", gauge("device_same", Unit::Pages, |view| Some(view.stats.memory.same_pages.into()), "Pages of one repeated word, which need no memory."), "From `same_pages` of `mm_stat`.")),
    figure("PagesCompacted", counter("device_compacted", Unit::Pages, |view| Some(view.stats.memory.pages_compacted.into()), "Pages freed by compaction."), "From `pages_compacted` of `mm_stat`."),
    labelled("Huge", figure("HugePages", gauge("device_huge", Unit::Pages, |view| Some(view.stats.memory.huge_pages.into()), "Pages that do not compress."), "From `huge_pages` of `mm_stat`.")),
    figure("HugePagesSince", counter("device_huge_stored", Unit::Pages, |view| Some(view.stats.memory.huge_pages_since.into()), "Pages stored that did not compress, since the device was set up."), "From `huge_pages_since` of `mm_stat`."),
    figure("FailedReads", counter("device_failed_reads", Unit::None, |view| Some(view.stats.io.failed_reads.into()), "Failed reads. Each is a lost page."), "From `failed_reads` of `io_stat`."),
    figure("FailedWrites", counter("device_failed_writes", Unit::None, |view| Some(view.stats.io.failed_writes.into()), "Writes that failed, for lack of memory or at the limit."), "From `failed_writes` of `io_stat`."),
    figure("InvalidIo", counter("device_invalid_requests", Unit::None, |view| Some(view.stats.io.invalid_io.into()), "Requests that were not made of whole pages."), "Always 0 since Linux 6.12. From `invalid_io` of `io_stat`."),
    figure("NotifyFree", counter("device_freed", Unit::Pages, |view| Some(view.stats.io.notify_free.into()), "Pages freed by their owner (discard or slot free)."), "From `notify_free` of `io_stat`."),
    figure("BackingBytes", gauge("device_backing", Unit::Bytes, |view| backed(view, view.stats.backing.used_bytes), "Data on the backing device."), "From `bd_count` of `bd_stat`."),
    figure("BackingReads", counter("device_backing_read", Unit::Bytes, |view| backed(view, view.stats.backing.read_bytes), "Data read back from the backing device."), "Since the device was set up. From `bd_reads` of `bd_stat`."),
    figure("BackingWrites", counter("device_backing_written", Unit::Bytes, |view| backed(view, view.stats.backing.written_bytes), "Data written to the backing device."), "Since the device was set up. From `bd_writes` of `bd_stat`."),
    labelled("Ratio", figure("CompressionRatio", gauge("device_compression_ratio", Unit::None, |view| Some(view.stats.derived.compression_ratio.into()), "Compressed pages divided by the memory that holds them, 0 when there are none."), "Same-filled and written-back pages do not count.")),
    labelled("Saved", figure("SavedBytes", gauge("device_saved", Unit::Bytes, |view| Some(view.stats.derived.saved_bytes.into()), "Memory that the stored pages would take uncompressed, less what they do take."), "0 if they take more: then LossBytes is the difference.")),
    figure("LossBytes", gauge("device_loss", Unit::Bytes, |view| Some(view.stats.derived.loss_bytes.into()), "Memory that the stored pages take, less what they would take uncompressed."), "0 if they take less: then SavedBytes is the difference."),
    labelled("Headroom", figure("HeadroomBytes", gauge("device_headroom", Unit::Bytes, |view| Some(view.stats.derived.headroom_bytes.into()), "What can still be stored, uncompressed, by size, limit and available memory."), "Memory counts at the present ratio, or at 1 while nothing is stored.")),
    figure("StatsTimestampMonotonic", gauge("", Unit::None, |view| Some(view.stats.timestamp_monotonic_usec.into()), "When the counters were read, in microseconds since boot."), "The clock is CLOCK_MONOTONIC. Linux holds statistics back while it recompresses or writes back; then they are older than usual."),
    figure("ReadRequests", counter("device_reads", Unit::None, |view| Some(view.stats.block.reads.into()), "Read requests completed."), "From `stat` of the block device."),
    figure("ReadBytes", counter("device_read", Unit::Bytes, |view| Some(view.stats.block.read_bytes.into()), "Uncompressed data read."), "From `stat` of the block device."),
    figure("WriteRequests", counter("device_writes", Unit::None, |view| Some(view.stats.block.writes.into()), "Write requests completed."), "From `stat` of the block device."),
    figure("WrittenBytes", counter("device_written", Unit::Bytes, |view| Some(view.stats.block.written_bytes.into()), "Uncompressed data written."), "From `stat` of the block device."),
    figure("DiscardedBytes", counter("device_discarded", Unit::Bytes, |view| Some(view.stats.block.discarded_bytes.into()), "Uncompressed data discarded."), "From `stat` of the block device."),
    figure("HugeShare", gauge("", Unit::None, |view| Some(view.stats.derived.huge_share.into()), "Share of the stored pages that do not compress, 0 to 1."), ""),
    figure("SameShare", gauge("", Unit::None, |view| Some(view.stats.derived.same_share.into()), "Share of the stored pages that hold one repeated word, 0 to 1."), ""),
    labelled("Swap used", figure("SwapUsedBytes", gauge("device_swap_used", Unit::Bytes, |view| view.swap.map(|swap| swap.used_bytes.into()), "Swap slots in use."), "0 while the swap is off. As `UsedBytes` of org.zramd1.Swap.")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_backing_device_need_one() {
        let mut view = DeviceView::default();
        view.stats.memory.orig_data_size = 8192;
        view.stats.derived.compression_ratio = 2.5;
        view.stats.backing.used_bytes = 4096;
        let values = |view: &DeviceView| {
            ["OriginalDataBytes", "CompressionRatio", "BackingBytes"]
                .map(|name| ((named(name).metric.value)(view), named(name).value(view)))
        };
        let (stored, ratio) = (Value::Count(8192), Value::Real(2.5));
        let known = [(Some(stored), stored), (Some(ratio), ratio)];
        assert_eq!(values(&view), [known[0], known[1], (None, Value::Count(0))]);
        view.backing_device = "sda2".to_owned();
        let backing = Value::Count(4096);
        assert_eq!(values(&view), [known[0], known[1], (Some(backing), backing)]);
    }
}
