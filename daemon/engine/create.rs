//! The only place that creates and removes devices. Reading `hot_add` creates one, so nobody else may touch it.

use super::error::Error;
use super::gather;
use super::retry::while_busy;
use crate::host::Host;
use crate::logic::attribute::Attribute;
use crate::logic::record::{Record, Undo};

/// Creates `/dev/zramN`, and removes the lower numbers that the kernel hands out first.
///
/// The record says what may be left behind before the first device is created, and which device is ours afterwards.
pub fn create<H: Host>(host: &mut H, number: u32, record: &mut Record) -> Result<(), Error> {
    let before = host.device_numbers()?;
    if before.contains(&number) {
        return Ok(());
    }
    record.push(Undo::RemoveNewDevices { before: before.clone(), up_to: number });
    save(host, record)?;
    let mut on_the_way = Vec::new();
    let created = loop {
        match host.hot_add() {
            Ok(new) if new == number => break Ok(()),
            Ok(new) if new < number => on_the_way.push(new),
            Ok(new) => {
                on_the_way.push(new);
                break Err(Error::failed(format!(
                    "zram{number}: somebody else created it at the same moment"
                )));
            }
            Err(error) => break Err(error.into()),
        }
    };
    for extra in on_the_way.into_iter().rev() {
        remove(host, extra)?;
    }
    created?;
    record.diskseq = gather::diskseq(host, number)?;
    record.undo.retain(|undo| !matches!(undo, Undo::RemoveNewDevices { .. }));
    record.push(Undo::RemoveDevice { number });
    save(host, record)
}

/// Removes a device.
pub fn remove<H: Host>(host: &mut H, number: u32) -> Result<(), Error> {
    while_busy(host, number, |host| host.hot_remove(number))
}

/// Removes uninitialised devices that an interrupted [`create`] may have left.
pub fn remove_new<H: Host>(host: &mut H, before: &[u32], up_to: u32) -> Result<(), Error> {
    for number in host.device_numbers()? {
        let new = number <= up_to && !before.contains(&number);
        if new && host.read_attribute(number, Attribute::InitState)?.trim() == "0" {
            remove(host, number)?;
        }
    }
    Ok(())
}

/// Writes the record.
pub fn save<H: Host>(host: &mut H, record: &Record) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(record)
        .map_err(|error| Error::failed(format!("{}: write its record: {error}", record.target)))?;
    Ok(host.write_record(&record.file_name(), &text)?)
}
