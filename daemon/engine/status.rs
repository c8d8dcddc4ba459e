//! The present state, with the figures of the kernel.

use super::error::Error;
use super::gather::{self, all_records};
use host::Host;
use logic::device::attribute::Attribute;
use logic::device::stat::MmStat;
use logic::proc;
use logic::ramdisk::place::ramdisk_mount;
use logic::record::{Progress, Record, Target};
use logic::request::{Purpose, Request, VmRequest};
use logic::vm::VmView;

/// One target that zramd set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub target: Target,
    /// The algorithm in use, where there is one.
    pub algorithm: Option<String>,
    /// Size in bytes as the kernel shows it; `None` if that cannot be looked at.
    pub size: Option<u64>,
    /// Uncompressed bytes stored; likewise.
    pub stored: Option<u64>,
    /// Memory used for them; likewise.
    pub memory: Option<u64>,
    /// `swap, priority 100` or `ext4 on /mnt`.
    pub used_for: String,
    /// `active`, `mounted`, `ready`, or the problem.
    pub state: &'static str,
}

/// One row per target that has a record.
pub fn rows<H: Host>(host: &H) -> Result<Vec<Row>, Error> {
    let (records, damaged) = all_records(host)?;
    let damaged = damaged.into_iter().filter_map(|damaged| damaged.target);
    let damaged = damaged.map(|target| Ok(Row { state: "its record is damaged", ..empty(target) }));
    records.values().map(|record| row(host, record)).chain(damaged).collect()
}

fn row<H: Host>(host: &H, record: &Record) -> Result<Row, Error> {
    let mut row = match (&record.target, &record.request) {
        (Target::Device(number), Request::Device(request)) => device_row(host, *number, &request.purpose)?,
        (_, Request::Vm(request)) => vm_row(host, record, request)?,
        _ => ramdisk_row(host, record)?,
    };
    if record.progress == Progress::Working {
        row.state = "unfinished";
    }
    Ok(row)
}

fn device_row<H: Host>(host: &H, number: u32, purpose: &Purpose) -> Result<Row, Error> {
    let mut row = empty(Target::Device(number));
    if !host.device_numbers()?.contains(&number) {
        return Ok(row);
    }
    let device = gather::device(host, number)?;
    let stat = MmStat::parse(&host.read_attribute(number, Attribute::MmStat)?).unwrap_or_default();
    row.algorithm = device.algorithm;
    row.size = Some(device.disk_size);
    row.stored = Some(stat.orig_data_size);
    row.memory = Some(stat.mem_used_total);
    let swap = gather::swaps(host)?.into_iter().find(|swap| swap.zram_number() == Some(number));
    let mounts = gather::mounts(host)?;
    let mount = proc::mount_of(&mounts, number, device.device);
    (row.used_for, row.state) = match (swap, mount) {
        (Some(swap), _) => (format!("swap, priority {}", swap.priority), "active"),
        (None, Some(mount)) => (format!("{} on {}", mount.fs_type, mount.mount_point), "mounted"),
        (None, None) if device.initialised => (purpose.role().to_owned(), "ready"),
        (None, None) => (purpose.role().to_owned(), "gone"),
    };
    Ok(row)
}

fn vm_row<H: Host>(host: &H, record: &Record, request: &VmRequest) -> Result<Row, Error> {
    let changed = super::sample::vm_views(host, record)?.iter().any(VmView::is_changed);
    let state = if changed { "changed by another program" } else { "set" };
    Ok(Row { used_for: request.to_string(), state, ..empty(record.target.clone()) })
}

fn ramdisk_row<H: Host>(host: &H, record: &Record) -> Result<Row, Error> {
    let mut row = empty(record.target.clone());
    let Request::Ramdisk(request) = &record.request else { return Ok(row) };
    let path = request.mount.mount_point.as_str();
    row.used_for = format!("{} on {path}", request.backend());
    let mounts = gather::mounts(host)?;
    if ramdisk_mount(&mounts, &request.name, path).is_some() && !gather::is_replaced(host, record, &mounts) {
        // What a user mounted above it may refuse to be looked at.
        let space = host.space(path.as_bytes()).ok();
        row.stored = space.map(|space| space.used_bytes);
        row.size = space.map(|space| space.total_bytes);
        // tmpfs does not compress; memory used by a zram device is shown with that device.
        row.memory = if request.number.is_none() { row.stored } else { Some(0) };
        row.state = "mounted";
    }
    Ok(row)
}

fn empty(target: Target) -> Row {
    Row {
        target,
        algorithm: None,
        size: Some(0),
        stored: Some(0),
        memory: Some(0),
        used_for: String::new(),
        state: "gone",
    }
}
