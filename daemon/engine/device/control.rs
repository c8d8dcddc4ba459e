//! Simple operations and queries on one device that need no plan.

use crate::error::{Error, ErrorKind};
use crate::gather;
use crate::undo;
use host::{Host, absent};
use logic::device::attribute::Attribute;
use logic::proc::HIGHEST_DEVICE;
use logic::record::Target;

/// Whether memory has space for the contents of the swap on device `number`; the error states how much is missing.
pub fn memory_can_take<H: Host>(host: &H, number: u32) -> Result<(), Error> {
    undo::memory_can_take(host, number)
}

/// The lowest number that is used neither by a device nor by a section.
pub fn free_number<H: Host>(host: &H, configured: impl Fn(u32) -> bool) -> Result<u32, Error> {
    let taken = host.device_numbers().or_else(absent)?;
    (0..=HIGHEST_DEVICE)
        .find(|number| !taken.contains(number) && !configured(*number))
        .ok_or_else(|| Error::new(ErrorKind::Unsupported, "there is no free device number"))
}

/// Refuses unless zramd set the device up.
pub fn must_be_ours<H: Host>(host: &H, number: u32) -> Result<(), Error> {
    let target = Target::Device(number);
    if !host.device_numbers().or_else(absent)?.contains(&number) {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no device {target}")));
    }
    let ours = match gather::record_of(host, &target)? {
        Some(record) => undo::is_same_device(host, number, &record)?,
        None => false,
    };
    if ours {
        return Ok(());
    }
    if host.read_attribute(number, Attribute::InitState)?.trim() == "0" {
        return Err(Error::new(ErrorKind::NotFound, format!("{target} is not set up")));
    }
    Err(Error::new(
        ErrorKind::Unmanaged,
        format!("{target} was set up by another program and is not changed"),
    ))
}

/// Starts compaction of the pool of a managed device.
pub fn compact<H: Host>(host: &mut H, number: u32) -> Result<(), Error> {
    must_be_ours(host, number)?;
    Ok(host.write_attribute(number, Attribute::Compact, "1")?)
}

/// Resets the peak memory use of a managed device.
pub fn reset_peak<H: Host>(host: &mut H, number: u32) -> Result<(), Error> {
    must_be_ours(host, number)?;
    Ok(host.write_attribute(number, Attribute::MemUsedMax, "0")?)
}

/// Bytes of swap in use on a device; 0 if it is not swap.
pub fn swap_used<H: Host>(host: &H, number: u32) -> u64 {
    let swaps = gather::swaps(host).unwrap_or_default();
    swaps.iter().find(|swap| swap.zram_number() == Some(number)).map_or(0, |swap| swap.used_kib * 1024)
}
