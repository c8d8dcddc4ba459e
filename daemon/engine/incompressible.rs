//! Stops swapping with `vm.swappiness`, and resumes it: see [`logic::maintain::incompressible`].

use super::device::create::save;
use super::error::Error;
use super::gather::{record_of, records, swaps};
use super::provision::serialised;
use super::undo::set_if;
use host::Host;
use logic::device::attribute::Attribute;
use logic::device::stat::{BlockStat, IoStat, MmStat};
use logic::maintain::arrivals::Totals;
use logic::maintain::incompressible::{NEVER, configured, is_stopped, undo};
use logic::record::{Progress, Record, Target, Undo};
use logic::request::Request;
use logic::vm::Tunable;

/// Numbers of the compressed swaps, if swapping may be stopped: all swap is ours, and none is written to a disk, where pages that
/// do not compress would free memory.
pub fn swap_numbers<H: Host>(host: &H) -> Result<Option<Vec<u32>>, Error> {
    let records = records(host)?;
    let stays_in_memory = |number: &u32| {
        let request = records.get(&Target::Device(*number)).map(|record| &record.request);
        matches!(request, Some(Request::Device(request)) if request.writeback.is_none())
    };
    let swaps = swaps(host)?;
    Ok(swaps.iter().map(|swap| swap.zram_number().filter(stays_in_memory)).collect())
}

/// What these devices have taken in since they were set up.
pub fn totals<H: Host>(host: &H, numbers: &[u32]) -> Result<Totals, Error> {
    let mut totals = Totals::default();
    for number in numbers {
        let text = |attribute| host.read_attribute(*number, attribute);
        let block = BlockStat::parse(&text(Attribute::Stat)?).unwrap_or_default();
        let io = IoStat::parse(&text(Attribute::IoStat)?).unwrap_or_default();
        let memory = MmStat::parse(&text(Attribute::MmStat)?).unwrap_or_default();
        totals = totals.with(&block, &io, &memory, host.page_size());
    }
    Ok(totals)
}

/// Stops swapping; false if `[vm]` has not set `vm.swappiness`, or another program has changed it.
pub fn stop<H: Host>(host: &mut H) -> Result<bool, Error> {
    serialised(host, |host| {
        let Some(mut record) = vm_record(host)? else { return Ok(false) };
        let found = host.read_tunable(Tunable::Swappiness)?;
        let Some(undo) = undo(&record).filter(|_| configured(&record) == Some(&found)) else {
            return Ok(false);
        };
        record.undo.push(undo);
        save(host, &record)?;
        host.write_tunable(Tunable::Swappiness, NEVER)?;
        Ok(true)
    })
}

/// Resumes swapping; false if it was not stopped.
pub fn resume<H: Host>(host: &mut H) -> Result<bool, Error> {
    // Without the lock, which at most starts of the daemon is not needed.
    if !vm_record(host)?.as_ref().is_some_and(is_stopped) {
        return Ok(false);
    }
    serialised(host, |host| {
        let Some(mut record) = vm_record(host)?.filter(is_stopped) else { return Ok(false) };
        if let Some(Undo::RestoreTunable { tunable, before, ours }) = record.undo.pop() {
            set_if(host, tunable, &ours, &before)?;
        }
        save(host, &record)?;
        Ok(true)
    })
}

fn vm_record<H: Host>(host: &H) -> Result<Option<Record>, Error> {
    Ok(record_of(host, &Target::Vm)?.filter(|record| record.progress == Progress::Done))
}
