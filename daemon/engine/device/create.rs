//! The only place that creates and removes devices. Reading `hot_add` creates a device, so nothing else may open it.

use crate::error::Error;
use crate::gather;
use crate::retry::while_busy;
use host::Host;
use logic::device::attribute::Attribute;
use logic::record::{Record, Undo};

/// Creates `/dev/zramN`, and removes the lower numbers that the kernel assigns first.
///
/// The record names each device as soon as it exists. After a kill in between, the device stays: it could as well belong to
/// another program, and takes no memory before it is initialised.
pub fn create<H: Host>(host: &mut H, number: u32, record: &mut Record) -> Result<(), Error> {
    if host.device_numbers()?.contains(&number) {
        return Ok(());
    }
    let created = create_up_to(host, number, record);
    for undo in record.undo.clone().iter().rev() {
        if let Undo::RemoveSpare { number, diskseq } = undo {
            remove_spare(host, *number, *diskseq)?;
            record.undo.retain(|kept| kept != undo);
        }
    }
    created?;
    save(host, record)
}

fn create_up_to<H: Host>(host: &mut H, number: u32, record: &mut Record) -> Result<(), Error> {
    loop {
        // The kernel assigns the lowest free number.
        let new = host.hot_add()?;
        let diskseq = match gather::diskseq(host, new) {
            Ok(diskseq) => diskseq,
            Err(error) => {
                // No record could tell it from a device of another program.
                remove_unused(host, new)?;
                return Err(error.into());
            }
        };
        if new == number {
            record.diskseq = diskseq;
            record.push(Undo::RemoveDevice { number });
        } else {
            record.push(Undo::RemoveSpare { number: new, diskseq });
        }
        save(host, record)?;
        if new == number {
            return Ok(());
        }
        if new > number {
            return Err(Error::failed(format!(
                "zram{number}: another program created it at the same moment"
            )));
        }
    }
}

/// Removes a device.
pub fn remove<H: Host>(host: &mut H, number: u32) -> Result<(), Error> {
    while_busy(host, number, |host| host.hot_remove(number))
}

/// Removes a device that was created only to reach a higher number, if it is the same one and uninitialised.
pub fn remove_spare<H: Host>(host: &mut H, number: u32, diskseq: Option<u64>) -> Result<(), Error> {
    let same = host.device_numbers()?.contains(&number)
        && diskseq.is_some()
        && gather::diskseq(host, number)? == diskseq;
    if same { remove_unused(host, number) } else { Ok(()) }
}

fn remove_unused<H: Host>(host: &mut H, number: u32) -> Result<(), Error> {
    match host.read_attribute(number, Attribute::InitState)?.trim() {
        "0" => remove(host, number),
        _ => Ok(()),
    }
}

/// Writes the record.
pub fn save<H: Host>(host: &mut H, record: &Record) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(record)
        .map_err(|error| Error::failed(format!("{}: write its record: {error}", record.target)))?;
    Ok(host.write_record(&record.file_name(), &text)?)
}
