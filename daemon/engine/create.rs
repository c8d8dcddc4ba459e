//! The only place that creates and removes devices. Reading `hot_add` creates a device, so nothing else may open it.

use crate::error::Error;
use crate::gather;
use crate::retry::while_busy;
use host::Host;
use logic::device::attribute::Attribute;
use logic::record::{Adding, Record, Target, Undo};

/// Creates `/dev/zramN`. The lower numbers that the kernel assigns first stay until [`remove_spares_of`]: the next device of the same
/// run need not create them again.
///
/// The record says before each `hot_add` which device it will add, and has its `diskseq` as soon as it exists. After a kill in
/// between, [`note_added`] finds the device that appeared then.
pub fn create<H: Host>(host: &mut H, number: u32, record: &mut Record) -> Result<(), Error> {
    if host.device_numbers()?.contains(&number) {
        return take_spare(host, number, record);
    }
    create_up_to(host, number, record)
}

/// Takes a device that was created to reach a higher number, if this is one.
fn take_spare<H: Host>(host: &mut H, number: u32, record: &mut Record) -> Result<(), Error> {
    let diskseq = gather::diskseq(host, number)?;
    let spare = Undo::RemoveSpare { number, diskseq };
    let mut records = gather::records(host)?.into_values();
    if let Some(mut other) = records.find(|other| diskseq.is_some() && other.undo.contains(&spare)) {
        record_new(number, number, diskseq, record);
        save(host, record)?;
        other.undo.retain(|kept| *kept != spare);
        save(host, &other)?;
    }
    Ok(())
}

/// Removes the devices that were created to reach higher numbers for this record.
pub fn remove_spares_of<H: Host>(host: &mut H, record: &mut Record) -> Result<(), Error> {
    let all = record.undo.len();
    for undo in record.undo.clone().iter().rev() {
        if let Undo::RemoveSpare { number, diskseq } = undo {
            remove_spare(host, *number, *diskseq)?;
            record.undo.retain(|kept| kept != undo);
        }
    }
    if record.undo.len() < all { save(host, record) } else { Ok(()) }
}

/// Adds the undo of the device that an interrupted run was about to add, if it appeared then and is unused. One that appeared
/// later is another program's.
pub fn note_added<H: Host>(host: &mut H, record: &mut Record) -> Result<(), Error> {
    let (Some(adding), Target::Device(wanted)) = (record.adding, &record.target) else { return Ok(()) };
    let (number, wanted) = (adding.number, *wanted);
    record.adding = None;
    if !host.device_numbers()?.contains(&number)
        || host.read_attribute(number, Attribute::InitState)?.trim() != "0"
    {
        return Ok(());
    }
    let found = gather::diskseq(host, number)?.zip(host.device_age(number));
    if let Some((diskseq, _)) = found.filter(|(diskseq, age)| adding.is(*diskseq, *age, host.now())) {
        record_new(wanted, number, Some(diskseq), record);
    }
    Ok(())
}

fn record_new(number: u32, new: u32, diskseq: Option<u64>, record: &mut Record) {
    record.adding = None;
    if new == number {
        record.diskseq = diskseq;
        record.push(Undo::RemoveDevice { number });
    } else {
        record.push(Undo::RemoveSpare { number: new, diskseq });
    }
}

fn create_up_to<H: Host>(host: &mut H, number: u32, record: &mut Record) -> Result<(), Error> {
    // One that is removed meanwhile does not matter.
    let diskseq_of = |number| gather::diskseq(host, number).ok().flatten();
    let mut after = host.device_numbers()?.into_iter().filter_map(diskseq_of).max().unwrap_or(0);
    loop {
        // The kernel assigns the lowest free number.
        let taken = host.device_numbers()?;
        let free = (0..=number).find(|free| !taken.contains(free)).unwrap_or(number);
        record.adding = Some(Adding { number: free, after, at: host.now() });
        save(host, record)?;
        let new = host.hot_add()?;
        let diskseq = match gather::diskseq(host, new) {
            Ok(diskseq) => diskseq,
            Err(error) => {
                // No record could tell it from a device of another program.
                remove_unused(host, new)?;
                return Err(error.into());
            }
        };
        record_new(number, new, diskseq, record);
        save(host, record)?;
        after = diskseq.unwrap_or(0).max(after);
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
    let record = Record { boot_id: gather::boot_id(host), ..record.clone() };
    let text = serde_json::to_string_pretty(&record)
        .map_err(|error| Error::failed(format!("{}: write its record: {error}", record.target)))?;
    Ok(host.write_record(&record.file_name(), &text)?)
}

/// Records which mount at `path` is ours.
pub fn note_mount<H: Host>(host: &mut H, path: &str, record: &mut Record) -> Result<(), Error> {
    record.set_mounted(path, host.mount_id(path)?);
    save(host, record)
}
