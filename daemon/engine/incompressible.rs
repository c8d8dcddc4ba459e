//! The record of a stop of swapping: see [`logic::maintain::incompressible`]. The daemon itself sets `vm.swappiness`, because that must
//! not take memory.

use super::create::save;
use super::error::Error;
use super::gather::{record_of, records, swaps};
use super::provision::serialised;
use super::undo::set_if;
use host::Host;
use logic::maintain::incompressible::{configured, is_prepared, undo};
use logic::path_kind::PathKind;
use logic::record::{Progress, Record, Target, Undo};
use logic::vm::Tunable;

/// Only control groups of version 1 have it: a new one copies `vm.swappiness`, and keeps that.
const GROUP_SWAPPINESS: &str = "/sys/fs/cgroup/memory/memory.swappiness";

/// Numbers of the compressed swaps, if swapping may be stopped: all swap is ours, and `vm.swappiness` applies to all. On other swap, pages
/// that do not compress free memory.
pub fn swap_numbers<H: Host>(host: &H) -> Result<Option<Vec<u32>>, Error> {
    if host.path_kind(GROUP_SWAPPINESS) != PathKind::Missing {
        return Ok(None);
    }
    let records = records(host)?;
    let is_ours = |number: &u32| records.contains_key(&Target::Device(*number));
    let swaps = swaps(host)?;
    Ok(swaps.iter().map(|swap| swap.zram_number().filter(is_ours)).collect())
}

/// Notes in the record of `[vm]` how to undo a stop of swapping. Returns the value of `vm.swappiness`, unless `[vm]` has not set it, or
/// another program has changed it.
pub fn prepare<H: Host>(host: &mut H) -> Result<Option<String>, Error> {
    serialised(host, |host| {
        let Some(mut record) = vm_record(host)? else { return Ok(None) };
        let found = host.read_tunable(Tunable::Swappiness)?;
        let Some(undo) = undo(&record).filter(|_| configured(&record) == Some(&found)) else {
            return Ok(None);
        };
        if !is_prepared(&record) {
            record.undo.push(undo);
            save(host, &record)?;
        }
        Ok(Some(found))
    })
}

/// Resumes swapping if it may have been stopped, and removes the note; whether it was stopped.
pub fn end<H: Host>(host: &mut H, may_be_stopped: bool) -> Result<bool, Error> {
    // Without the lock, which at most starts of the daemon is not needed.
    if !vm_record(host)?.as_ref().is_some_and(is_prepared) {
        return Ok(false);
    }
    serialised(host, |host| {
        let Some(mut record) = vm_record(host)?.filter(is_prepared) else { return Ok(false) };
        let Some(Undo::RestoreTunable { tunable, before, ours }) = record.undo.pop() else {
            return Ok(false);
        };
        let was_stopped = may_be_stopped && set_if(host, tunable, &ours, &before)?;
        save(host, &record)?;
        Ok(was_stopped)
    })
}

fn vm_record<H: Host>(host: &H) -> Result<Option<Record>, Error> {
    Ok(record_of(host, &Target::Vm)?.filter(|record| record.progress == Progress::Done))
}
