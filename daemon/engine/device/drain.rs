//! Draining before hibernation, and refilling after it.
//!
//! A swap is drained by a drop-in in `/run` that disables its section, from before the swap stops until just before it
//! starts again: no other request starts it in between, and only drained swaps are started again.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::error::Error;
use crate::gather::{memory, records, swaps};
use crate::undo::is_ours;
use host::Host;
use logic::device::drain::{Candidate, Drained, decide};
use logic::proc::SwapLine;
use logic::record::{Progress, Record, Target, Undo};
use logic::request::{Purpose, Request};
use logic::unit::swap_unit;

/// PID 1, which stops and starts the units.
pub trait Units<H> {
    /// Brings the units in line with the configuration.
    fn follow(&mut self, host: &mut H) -> Result<(), Error>;
    /// Stops a swap, and the unit that set its device up.
    fn stop(&mut self, host: &mut H, number: u32) -> Result<(), Error>;
    /// Starts swaps; returns those that have units.
    fn start(&mut self, host: &mut H, numbers: &[u32]) -> Result<Vec<u32>, Error>;
}

/// Deactivates every managed swap whose contents fit into memory, and reports each to `tell`. After an error the
/// drop-ins stay, so that [`refill`] restores all of them.
pub fn drain<H: Host>(
    host: &mut H,
    units: &mut impl Units<H>,
    mut tell: impl FnMut(u32, Drained),
) -> Result<(), Error> {
    let (candidates, swaps) = (candidates(host)?, swaps(host)?);
    let memory = memory(host)?;
    let mut going = Vec::new();
    for (candidate, outcome) in decide(&candidates, &swaps, memory) {
        match outcome {
            Drained::Off(_) => going.push((candidate.number, outcome)),
            Drained::Stays(_) => tell(candidate.number, outcome),
        }
    }
    if going.is_empty() {
        return Ok(());
    }
    for (number, _) in &going {
        host.mark_drained(*number, true)?;
    }
    units.follow(host)?;
    for (number, outcome) in going {
        units.stop(host, number)?;
        if numbers_in_use(host)?.contains(&number) {
            return Err(Error::failed(format!("zram{number}: PID 1 did not stop its swap")));
        }
        tell(number, outcome);
    }
    Ok(())
}

/// Active managed swaps, by descending priority: the kernel would move pages of the others to the one with the highest
/// priority.
fn candidates<H: Host>(host: &H) -> Result<Vec<Candidate>, Error> {
    let records = records(host)?;
    let mut found = Vec::new();
    for swap in swaps(host)? {
        let Some(number) = swap.zram_number() else { continue };
        let record = records.get(&Target::Device(number)).filter(|record| is_swap(record));
        if let Some(record) = record
            && is_ours(host, number, record)?
        {
            let directly = record.undo.iter().any(|undo| matches!(undo, Undo::SwapOff { .. }));
            found.push((swap.priority, Candidate { number, used_kib: swap.used_kib, has_unit: !directly }));
        }
    }
    found.sort_by_key(|(priority, candidate)| (Reverse(*priority), candidate.number));
    Ok(found.into_iter().map(|(_, candidate)| candidate).collect())
}

fn is_swap(record: &Record) -> bool {
    let Request::Device(request) = &record.request else { return false };
    record.progress == Progress::Done && matches!(request.purpose, Purpose::Swap { .. })
}

fn numbers_in_use<H: Host>(host: &H) -> Result<BTreeSet<u32>, Error> {
    Ok(swaps(host)?.iter().filter_map(SwapLine::zram_number).collect())
}

/// Activates the drained swaps again, and returns those that are still configured.
pub fn refill<H: Host>(host: &mut H, units: &mut impl Units<H>) -> Result<Vec<u32>, Error> {
    let numbers = host.drained()?;
    if numbers.is_empty() {
        return Ok(numbers);
    }
    for number in &numbers {
        host.mark_drained(*number, false)?;
    }
    units.follow(host)?;
    let known = units.start(host, &numbers)?;
    let in_use = numbers_in_use(host)?;
    let missing = known.iter().filter(|number| !in_use.contains(number));
    let errors = missing.map(|number| {
        let units = format!("-u {} -u zramd-setup@zram{number}", swap_unit(*number));
        Error::failed(format!("zram{number}: its swap did not come back: see `journalctl -b {units}`"))
    });
    errors.reduce(Error::join).map_or(Ok(known), Err)
}
