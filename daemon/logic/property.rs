//! The properties of each object, defined once: the bus serves these tables, `show` prints them, and org.zramd1(5) has their
//! descriptions. In JSON, the path to a value ends with the name in lower case.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::config::setting::Setting;
use super::figure::{self, FIGURES, Figure};
use super::maintain_report;
use super::overlay::{Command, Override};
use super::sample::{DeviceView, MountView, RamdiskView, Snapshot, SwapView};
use super::view::View;
use super::vm::VmView;
use super::zswap::{Rejected, ZswapView};

/// What a property has, in types that the bus knows.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Bool(bool),
    I32(i32),
    U32(u32),
    /// The largest number is "without limit".
    U64(u64),
    F64(f64),
    Text(String),
    /// The name of a device; empty is none. On the bus, its object.
    Device(String),
    /// The name of a RAM disk; empty is none. On the bus, its object.
    Ramdisk(String),
    Texts(Vec<String>),
    Numbered(Vec<(u32, String)>),
    Named(BTreeMap<String, String>),
    Counts(BTreeMap<String, u64>),
    Threes(Vec<(String, String, String)>),
    Fours(Vec<(String, String, String, String)>),
    Fives(Vec<(String, String, String, String, String)>),
    Settings(Vec<Setting>),
}

/// When the bus announces a change of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// It never changes.
    Const,
    /// At each change.
    Change,
    /// At each change, without the value, which is large.
    Invalidation,
    /// Never, because it changes all the time.
    None,
}

/// A property of an object whose state is a `T`.
#[derive(Debug)]
pub struct Property<T> {
    pub name: &'static str,
    pub signal: Signal,
    /// Text of org.zramd1(5) and of the introspection.
    pub text: &'static str,
    /// The rest of the text; empty if there is none.
    pub detail: &'static str,
    value: Get<T>,
}

impl<T> Property<T> {
    /// Its value in this state.
    pub fn value(&self, state: &T) -> Value {
        match self.value {
            Get::Value(get) => get(state),
            Get::Figure(get) => match get(state).unwrap_or_default() {
                figure::Value::Count(count) => Value::U64(count),
                figure::Value::Real(quotient) => Value::F64(quotient),
            },
        }
    }
}

#[derive(Debug)]
enum Get<T> {
    Value(fn(&T) -> Value),
    Figure(fn(&T) -> Option<figure::Value>),
}

impl From<&Figure> for Property<DeviceView> {
    fn from(figure: &Figure) -> Property<DeviceView> {
        let Figure { name, metric, detail, .. } = figure;
        Property { name, signal: Signal::None, text: metric.help, detail, value: Get::Figure(metric.value) }
    }
}

const fn property<T>(
    name: &'static str,
    signal: Signal,
    value: fn(&T) -> Value,
    text: &'static str,
) -> Property<T> {
    Property { name, signal, text, detail: "", value: Get::Value(value) }
}

/// The state of an object with properties.
pub trait Properties: Default + 'static {
    /// Its properties, in the order of `show`.
    fn all() -> impl Iterator<Item = Property<Self>>;
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// The machine, and what the daemon knows of it.
#[derive(Debug, Default)]
pub struct Machine {
    pub snapshot: Arc<Snapshot>,
    /// What the daemon does; empty without one.
    pub state: &'static str,
    /// The configuration.
    pub view: Arc<View>,
}

fn override_row(found: &Override) -> (String, String, String, String, String) {
    let command = found.command.map_or("", Command::words).to_owned();
    let configured = found.configured.clone().unwrap_or_default();
    (found.object.clone(), found.key.clone(), found.value.clone(), configured, command)
}

fn setting_row(view: &VmView) -> (String, String, String, String) {
    (view.name.clone(), view.value.clone(), view.set_to.clone(), view.before.clone())
}

/// Whether a property whose changes are announced differs between two snapshots.
pub fn has_news(before: &Arc<Snapshot>, now: &Arc<Snapshot>) -> bool {
    let machine = |snapshot: &Arc<Snapshot>| Machine { snapshot: Arc::clone(snapshot), ..Machine::default() };
    differs(&machine(before), &machine(now))
        || any_differs(&before.ramdisks, &now.ramdisks)
        || any_differs(&before.devices, &now.devices)
        || before.devices.iter().zip(&now.devices).any(|(before, now)| {
            differs(&before.swap, &now.swap) || any_differs(before.mount.as_slice(), now.mount.as_slice())
        })
}

fn any_differs<T: Properties>(before: &[T], now: &[T]) -> bool {
    before.len() != now.len() || before.iter().zip(now).any(|(before, now)| differs(before, now))
}

fn differs<T: Properties>(before: &T, now: &T) -> bool {
    T::all()
        .filter(|property| property.signal == Signal::Change)
        .any(|property| property.value(before) != property.value(now))
}

/// A figure of zswap, or its default without zswap.
fn zswap<T: Default>(at: &Machine, figure: impl Fn(&ZswapView) -> T) -> T {
    at.snapshot.zswap.as_ref().map(figure).unwrap_or_default()
}

fn rejections(rejected: Rejected) -> BTreeMap<String, u64> {
    let Rejected { limit, compress_poor, allocation } = rejected;
    let all = [("allocation", allocation), ("compress-poor", compress_poor), ("limit", limit)];
    all.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect()
}

fn action_row(action: &maintain_report::Action) -> (String, String, String, String, String) {
    let maintain_report::Action { device, action, pages, reason, result, .. } = action.clone();
    (device, action, pages, reason, result)
}

impl Properties for Machine {
    #[rustfmt::skip]
    fn all() -> impl Iterator<Item = Property<Machine>> {
        [
            property::<Machine>("Version", Signal::Const, |_| text(env!("CARGO_PKG_VERSION")), "Version of zramd."),
            property("State", Signal::Change, |at| text(at.state), "`starting`, `running`, `degraded` (there is a problem that is an error), `reloading` or `stopping`."),
            property("Problems", Signal::Change, |at| Value::Threes(at.snapshot.problems.iter().map(|found| (found.code.to_string(), found.object.clone(), found.sentence())).collect()), "What is wrong, worst first: code, object, sentence. A code never changes meaning."),
            property("ProblemDetails", Signal::Change, |at| Value::Fives(at.snapshot.problems.iter().map(|found| (found.level.to_string(), found.code.to_string(), found.object.clone(), found.sentence(), found.remedy.clone())).collect()), "The same with all there is to show: level (`error`, `warning`, or `note` for what is intended), code, object, sentence, and what to do."),
            property("Capabilities", Signal::Change, |at| Value::Texts(at.snapshot.capabilities.clone()), "What this kernel can do, as far as a device shows it: `hot-add`, `algorithm-params`, `recompress`, `writeback`, `idle`."),
            property("SupportedAlgorithms", Signal::Change, |at| Value::Texts(at.snapshot.devices.first().map(|device| device.available_algorithms.clone()).unwrap_or_default()), "Compression algorithms that this kernel offers; empty while there is no device to ask."),
            property("ConfigFiles", Signal::Change, |at| Value::Texts(at.view.files.clone()), "Configuration files that were read, lowest precedence first."),
            property("Configuration", Signal::Invalidation, |at| Value::Settings(at.view.settings.clone()), "Each key of each section that is used: section, key, the value as TOML, as written; what follows from it on this machine (a size in bytes or a span of time in seconds as t, b, x, d, s, or a list of text as as; an empty string if nothing does, because of a mistake); where it comes from: `default`, `file` or `override`; file and line, empty and 0 for a default. Keys without a value and without a default are missing."),
            property("Overrides", Signal::Change, |at| Value::Fives(at.view.overrides.iter().map(override_row).collect()), "What holds until the next boot instead of the configuration: section (`zramN` or `ramdisk.NAME`), key, value as TOML, what the configuration says, or empty, and the command that left it, or empty: `create`, `remove`, `resize`, `limit`, `swap off`, `ramdisk resize` or `set`. UnsetOverride removes it."),
            property("VmSettings", Signal::Change, |at| Value::Fours(at.snapshot.vm.iter().map(setting_row).collect()), "Settings of the kernel that zramd has changed for compressed swap: name, value now, value that zramd set, and value that will be restored. Changes by other programs are kept."),
            property("PressureLevel", Signal::Change, |at| text(at.snapshot.pressure.word()), "The level of memory pressure, if `[maintenance]` enables it: `none`, `moderate`, `severe` or `critical`."),
            property("PressureReason", Signal::Change, |at| text(&at.snapshot.pressure_reason), "Why: how much of the time tasks waited for memory, and what compressed swap holds; empty at the level `none`."),
            property("LastMaintenanceMonotonic", Signal::Change, |at| Value::U64(at.snapshot.maintenance.ended_monotonic_usec), "When maintenance last ended, in microseconds since boot (CLOCK_MONOTONIC); 0 when it has not run."),
            property("MaintenanceActions", Signal::Change, |at| Value::Fives(at.snapshot.maintenance.actions.iter().map(action_row).collect()), "What it did then, in this order: device, action (`recompress`, `write-back`, `compact`, `mark-idle`), which pages, the reason, what came of it."),
            property("MaintenanceSkipped", Signal::Change, |at| Value::Threes(at.snapshot.maintenance.skipped.clone()), "What it did not do then: device (or empty), policy, reason."),
            property("WritebackBudgetLeftBytes", Signal::None, |at| Value::U64(at.snapshot.maintenance.budget.map_or(u64::MAX, |budget| budget.left_bytes)), "Bytes that may still be written to backing devices, of those in any 24 hours; the largest number without a budget."),
            property("WritebackDayBytes", Signal::None, |at| Value::U64(at.snapshot.maintenance.budget.map_or(0, |budget| budget.day_bytes)), "Bytes written to backing devices in the 24 hours before the last run of maintenance; the largest number if they are unknown."),
            property("WritebackTotalBytes", Signal::None, |at| Value::U64(at.snapshot.maintenance.budget.map_or(0, |budget| budget.total_bytes)), "Bytes written to backing devices since they are counted, over restarts."),
            property("ZswapEnabled", Signal::Change, |at| Value::Bool(zswap(at, |zswap| zswap.enabled)), "Whether zswap takes pages before swap does. The following are empty or 0 while it is disabled and holds nothing."),
            property("ZswapManaged", Signal::Change, |at| Value::Bool(zswap(at, |zswap| zswap.managed)), "Whether zramd has enabled it, from `[zswap]`."),
            property("ZswapAlgorithm", Signal::Change, |at| Value::Text(zswap(at, |zswap| zswap.algorithm.clone())), "Its compression algorithm (`compressor`)."),
            property("ZswapMemoryLimitBytes", Signal::Change, |at| Value::U64(zswap(at, |zswap| zswap.memory_limit_bytes)), "Most memory that it takes (`max_pool_percent`)."),
            property("ZswapOriginalDataBytes", Signal::None, |at| Value::U64(zswap(at, |zswap| zswap.original_data_bytes)), "Uncompressed bytes stored (`Zswapped` of /proc/meminfo)."),
            property("ZswapMemoryUsedBytes", Signal::None, |at| Value::U64(zswap(at, |zswap| zswap.memory_used_bytes)), "Memory that holds them (`Zswap` of /proc/meminfo)."),
            property("ZswapCompressionRatio", Signal::None, |at| Value::F64(zswap(at, |zswap| zswap.compression_ratio)), "ZswapOriginalDataBytes divided by ZswapMemoryUsedBytes; 0 when nothing is stored."),
            property("ZswapSavedBytes", Signal::None, |at| Value::U64(zswap(at, |zswap| zswap.saved_bytes)), "ZswapOriginalDataBytes less ZswapMemoryUsedBytes; at least 0."),
            property("ZswapReadBytes", Signal::None, |at| Value::U64(zswap(at, |zswap| zswap.read_bytes)), "Uncompressed bytes read from it since boot (`zswpin` of /proc/vmstat)."),
            property("ZswapWrittenBytes", Signal::None, |at| Value::U64(zswap(at, |zswap| zswap.written_bytes)), "Uncompressed bytes stored since boot (`zswpout` of /proc/vmstat)."),
            property("ZswapBackingWrittenBytes", Signal::None, |at| Value::U64(zswap(at, |zswap| zswap.backing_written_bytes)), "Bytes written back to swap on disks since boot (`zswpwb` of /proc/vmstat)."),
            property("ZswapRejected", Signal::None, |at| Value::Counts(zswap(at, |zswap| zswap.rejected).map(rejections).unwrap_or_default()), "Pages that it did not store since boot, by reason: `compress-poor`, `allocation`; and `limit`, how often its pool was full. From debugfs; empty where that is not mounted or only root reads it."),
            property("TotalOriginalBytes", Signal::None, |at| Value::U64(at.snapshot.total(|stats| stats.memory.orig_data_size)), "Uncompressed bytes stored on devices that zramd set up."),
            property("TotalCompressedBytes", Signal::None, |at| Value::U64(at.snapshot.total(|stats| stats.memory.compr_data_size)), "Their compressed payload."),
            property("TotalMemoryUsedBytes", Signal::None, |at| Value::U64(at.snapshot.total(|stats| stats.memory.mem_used_total)), "Memory that holds it."),
            property("MemoryTotalBytes", Signal::None, |at| Value::U64(at.snapshot.memory.total_bytes), "Memory of the machine (`MemTotal` of /proc/meminfo)."),
            property("MemoryAvailableBytes", Signal::None, |at| Value::U64(at.snapshot.memory.available_bytes), "What of it programs can still have (`MemAvailable`)."),
            property("SwapTotalBytes", Signal::None, |at| Value::U64(at.snapshot.memory.swap_total_bytes), "All swap, compressed or not (`SwapTotal`)."),
            property("SwapFreeBytes", Signal::None, |at| Value::U64(at.snapshot.memory.swap_free_bytes), "What of it is free (`SwapFree`)."),
            property("SwappedInBytes", Signal::None, |at| Value::U64(at.snapshot.memory.swapped_in_bytes), "Bytes read from all swap since boot (`pswpin` of /proc/vmstat)."),
            property("SwappedOutBytes", Signal::None, |at| Value::U64(at.snapshot.memory.swapped_out_bytes), "Bytes written to it since boot (`pswpout` of /proc/vmstat)."),
            property("MemoryStalledUSec", Signal::None, |at| Value::U64(at.snapshot.memory.stalled_usec), "Time since boot in which some task waited for memory, in microseconds (`some` of /proc/pressure/memory); 0 if unknown."),
        ]
        .into_iter()
    }
}

impl Properties for DeviceView {
    #[rustfmt::skip]
    fn all() -> impl Iterator<Item = Property<DeviceView>> {
        [
            property::<DeviceView>("Name", Signal::Const, |view| text(&view.name), "Its name, for example `zram0`; the node is below `/dev`."),
            property("DeviceNumber", Signal::Const, |view| Value::U64(view.device_number), "Device number, as stat(2) shows it."),
            property("Managed", Signal::Change, |view| Value::Bool(view.managed), "Whether zramd set it up. Others are shown and never changed."),
            property("Role", Signal::Change, |view| text(view.role.word()), "`swap`, `filesystem`, `raw` (set up, but neither of the two) or `unused`."),
            property("State", Signal::Change, |view| text(view.state.word()), "`active` (swap is on), `mounted`, `ready` (set up, not in use), `unfinished` or `unused`."),
            property("ConfigSection", Signal::Change, |view| text(&view.config_section), "The section of the configuration that it comes from, or empty."),
            property("RamDisk", Signal::Change, |view| Value::Ramdisk(view.ramdisk.clone()), "The object of the RAM disk that it holds, or `/`."),
            property("DiskSizeBytes", Signal::Change, |view| Value::U64(view.disk_size_bytes), "Uncompressed bytes that fit (`disksize`)."),
            property("MemoryLimitBytes", Signal::Change, |view| Value::U64(view.memory_limit_bytes), "Upper bound of the memory used (`mem_limit`); 0 is none."),
            property("Algorithm", Signal::Change, |view| text(&view.algorithm), "Primary compression algorithm (`comp_algorithm`)."),
            property("AlgorithmReason", Signal::Change, |view| text(view.algorithm_reason.word()), "Why: `config`, `benchmark`, `auto`, `fallback`, `kernel-default` or `unknown`."),
            property("AlgorithmParameters", Signal::Change, |view| Value::Named(view.algorithm_parameters.clone()), "Its parameters, as configured: the kernel shows none."),
            property("RecompressionAlgorithms", Signal::Change, |view| Value::Numbered(view.recompression_algorithms.clone()), "Secondary algorithms with their priorities (`recomp_algorithm`)."),
            property("Streams", Signal::Change, |view| Value::U32(view.streams.unwrap_or(0)), "How many compressions run at once (`max_comp_streams`); 0 is no limit, as since Linux 6.15."),
            property("BackingDevice", Signal::Change, |view| text(&view.backing_device), "Where written-back pages go (`backing_dev`), or empty."),
            property("WritebackLimitBytes", Signal::Change, |view| Value::U64(view.writeback_limit_bytes.unwrap_or(u64::MAX)), "What may still be written back; the largest number when there is no limit."),
        ]
        .into_iter()
        .chain(FIGURES.iter().map(Property::from))
    }
}

impl Properties for Option<SwapView> {
    #[rustfmt::skip]
    fn all() -> impl Iterator<Item = Property<Option<SwapView>>> {
        [
            property::<Option<SwapView>>("Active", Signal::Change, |swap| Value::Bool(swap.is_some()), "Whether it is switched on."),
            property("Priority", Signal::Change, |swap| Value::I32(swap.map_or(-1, |swap| swap.priority)), "Its priority; higher is used first. −1 while it is off."),
            property("UsedBytes", Signal::None, |swap| Value::U64(swap.map_or(0, |swap| swap.used_bytes)), "Swap slots in use, in bytes. Not equal to OriginalDataBytes: a page that was read back keeps its slot, and one that was freed is discarded later."),
            property("SizeBytes", Signal::Change, |swap| Value::U64(swap.map_or(0, |swap| swap.size_bytes)), "Bytes that fit."),
        ]
        .into_iter()
    }
}

impl Properties for MountView {
    #[rustfmt::skip]
    fn all() -> impl Iterator<Item = Property<MountView>> {
        [
            property::<MountView>("MountPoint", Signal::Change, |view| text(&view.mount_point), "Where it is mounted."),
            property("FsType", Signal::Change, |view| text(&view.fs_type), "Its type."),
            property("Options", Signal::Change, |view| text(&view.options), "Options of the file system, as the kernel shows them."),
            property("SizeBytes", Signal::Change, |view| Value::U64(view.size_bytes), "Bytes that fit, as the file system counts."),
            property("UsedBytes", Signal::None, |view| Value::U64(view.used_bytes), "Bytes in use, as the file system counts."),
        ]
        .into_iter()
    }
}

impl Properties for RamdiskView {
    #[rustfmt::skip]
    fn all() -> impl Iterator<Item = Property<RamdiskView>> {
        [
            property::<RamdiskView>("Name", Signal::Const, |view| text(&view.name), "NAME of `[ramdisk.NAME]`."),
            property("MountPoint", Signal::Change, |view| text(&view.mount_point), "Where it is mounted."),
            property("Backend", Signal::Change, |view| text(view.backend()), "What holds it: `tmpfs` or `zram`."),
            property("FsType", Signal::Change, |view| text(&view.fs_type), "Its type of file system."),
            property("Options", Signal::Change, |view| text(&view.options), "Options of the file system, as the kernel shows them."),
            property("Device", Signal::Change, |view| Value::Device(view.device.clone()), "The object of the zram device that holds it, or `/`."),
            property("SizeBytes", Signal::Change, |view| Value::U64(view.size_bytes), "Bytes that fit."),
            property("UsedBytes", Signal::None, |view| Value::U64(view.used_bytes), "Bytes in use."),
            property("FreeBytes", Signal::None, |view| Value::U64(view.free_bytes), "Bytes free."),
            property("FreeInodes", Signal::None, |view| Value::U64(view.free_inodes), "Files that still fit."),
            property("Persistence", Signal::Change, |view| text(view.persistence.word()), "What of its contents is kept over a reboot: `none`, `skeleton` or `snapshot`."),
            property("LoadState", Signal::Change, |view| text(view.status.load_state.word()), "How it was filled: `empty`, `loading`, `loaded`, `fallback` (from an older snapshot), `passthrough` (the directory on disk is used instead) or `failed`."),
            property("Generation", Signal::Change, |view| Value::U64(view.status.generation), "The number of the snapshot that was loaded; 0 is none."),
            property("LastSaveTimestamp", Signal::Change, |view| Value::U64(view.status.last_save_usec), "When it was saved last in this boot, in microseconds since 1970; 0 is never."),
            property("NextSaveTimestamp", Signal::None, |view| Value::U64(view.next_save_usec), "When its timer saves it next, in microseconds since 1970; 0 is never, or not known yet. No signal: it changes with LastSaveTimestamp and with every step of the clock."),
            property("LastSaveResult", Signal::Change, |view| text(view.status.last_save_result.word()), "How that ended: `ok`, `unchanged` (there was nothing to write), `failed`, or empty."),
            property("LastSaveOmitted", Signal::Change, |view| Value::Counts(view.status.last_save_omitted.iter().map(|(reason, count)| (reason.word().to_owned(), *count)).collect()), "How many entries the last save that did not fail left out or could not keep whole, by reason: `attributes` (kept without user attributes), `damaged` (kept with zeros in unreadable places), `flags` (kept without the flags of chattr), `format` (a snapshot cannot hold it), `lease` (held by another program), `path` (too long), `unreadable`, or `other`. Empty when there are none. Their names are in the journal."),
            property("StoreBytes", Signal::Change, |view| Value::U64(view.status.store_bytes), "Bytes that all its snapshots take."),
            property("WrittenDayBytes", Signal::Change, |view| Value::U64(view.status.written_day_bytes), "Bytes that saves wrote in the 24 hours before the last save or load, over reboots."),
            property("WrittenTotalBytes", Signal::Change, |view| Value::U64(view.status.written_total_bytes), "Bytes that saves have written since they are counted, over reboots."),
            property("LastVerifyTimestamp", Signal::Change, |view| Value::U64(view.status.last_verify_usec), "When the newest snapshot was read as a whole last, by loading or verifying it, in microseconds since 1970; at first, when there was one. 0 is never."),
            property("SnapshotCount", Signal::Change, |view| Value::U32(u32::try_from(view.status.snapshots.len()).unwrap_or(u32::MAX)), "How many snapshots there are."),
        ]
        .into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Code, Finding, Level};

    fn snapshot() -> Snapshot {
        let swapped = DeviceView { swap: Some(SwapView::default()), ..DeviceView::default() };
        let mounted = DeviceView { mount: Some(MountView::default()), ..DeviceView::default() };
        Snapshot {
            devices: vec![swapped, mounted],
            zswap: Some(ZswapView::default()),
            ramdisks: vec![RamdiskView::default()],
            ..Snapshot::default()
        }
    }

    #[test]
    fn settings_and_problems_are_news_and_amounts_are_not() {
        type Edit = fn(&mut Snapshot);
        let changes: [(&str, Edit, bool); 15] = [
            ("nothing", |_| {}, false),
            (
                "a problem",
                |now| now.problems.push(Finding::new(Level::Note, Code::SwapOff, "zram0", "", "")),
                true,
            ),
            ("memory of the machine", |now| now.memory.available_bytes = 1, false),
            ("zswap", |now| now.zswap.as_mut().unwrap().enabled = true, true),
            ("what zswap holds", |now| now.zswap.as_mut().unwrap().original_data_bytes = 1, false),
            ("another device", |now| now.devices.push(DeviceView::default()), true),
            ("the size of a device", |now| now.devices[0].disk_size_bytes = 1, true),
            ("what a device holds", |now| now.devices[0].stats.memory.orig_data_size = 1, false),
            ("swap that is off", |now| now.devices[0].swap = None, true),
            ("use of swap", |now| now.devices[0].swap.as_mut().unwrap().used_bytes = 1, false),
            ("a mount that is gone", |now| now.devices[1].mount = None, true),
            ("the size of a mount", |now| now.devices[1].mount.as_mut().unwrap().size_bytes = 1, true),
            ("use of a mount", |now| now.devices[1].mount.as_mut().unwrap().used_bytes = 1, false),
            ("the size of a RAM disk", |now| now.ramdisks[0].size_bytes = 1, true),
            ("use of a RAM disk", |now| now.ramdisks[0].used_bytes = 1, false),
        ];
        for (what, change, is_news) in changes {
            let mut now = snapshot();
            change(&mut now);
            assert_eq!(has_news(&Arc::new(snapshot()), &Arc::new(now)), is_news, "{what}");
        }
    }

    #[test]
    fn swap_that_is_off_has_the_priority_minus_one() {
        let on = SwapView { priority: 5, ..SwapView::default() };
        for (swap, expected) in [(None, -1), (Some(on), 5)] {
            let mut all = <Option<SwapView>>::all();
            let priority = all.find(|property| property.name == "Priority").unwrap();
            assert_eq!(priority.value(&swap), Value::I32(expected));
        }
    }
}
