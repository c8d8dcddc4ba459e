//! Reads the machine and the devices for the policies.

use std::time::Duration;

use super::state::{DeviceState, State};
use crate::error::Error;
use crate::gather;
use host::{Host, HostError, absent};
use logic::device::algorithm::{Algorithm, parse_recomp_algorithm};
use logic::device::attribute::Attribute;
use logic::device::stat::{BdStat, MmStat};
use logic::facts::Facts;
use logic::ledger::Clocks;
use logic::maintain::gate::{self, Conditions};
use logic::maintain::{Moment, age};
use logic::record::{Progress, Record, Target};
use logic::request::Request;

/// State of the machine.
pub(super) struct Machine {
    pub now: Moment,
    pub facts: Facts,
    pub conditions: Conditions,
    /// Share of memory in use, 0 to 1.
    pub utilisation: f64,
}

impl Machine {
    /// Reads the machine, and notes in `state` if it was suspended.
    pub(super) fn observe<H: Host>(host: &H, state: &mut State) -> Machine {
        let now = Moment { boot: host.now(), awake: host.monotonic() };
        let slept = state.history.note(now);
        // The time of resume is unknown. On a machine suspended between any two runs, only every second run counts as
        // just resumed.
        state.resumed = match state.resumed {
            None => slept.then_some(now.awake),
            Some(seen) => {
                let goes_on = !slept && now.awake.saturating_sub(seen) < gate::AFTER_RESUME;
                goes_on.then_some(seen)
            }
        };
        // If a file cannot be read, memory counts as empty, which selects only the oldest pages.
        let facts = gather::machine(host);
        let memory = facts.memory;
        let conditions = Conditions {
            usage: gather::usage(host),
            on_battery: host.on_battery(),
            since_resume: state.resumed.map(|resumed| now.awake.saturating_sub(resumed)),
        };
        Machine {
            now,
            utilisation: age::utilisation(memory.total_kib, memory.available_kib),
            conditions,
            facts,
        }
    }

    /// Waking time since then.
    pub(super) fn since(&self, then: Option<Duration>) -> Option<Duration> {
        then.map(|then| self.now.awake.saturating_sub(then))
    }
}

/// The clocks that the budget is based on.
pub(super) fn clocks<H: Host>(host: &H) -> Clocks {
    Clocks { boot_id: gather::boot_id(host), boot: host.now(), synchronised: host.synchronised_clock() }
}

/// A managed device.
pub(super) struct Device {
    pub name: String,
    pub number: u32,
    pub state: DeviceState,
    pub primary: Option<Algorithm>,
    pub secondary: Vec<(u32, Algorithm)>,
    /// Pages in memory: neither written back nor same-filled.
    pub stored_pages: u64,
    /// Bytes per page.
    pub page_size: u64,
    pub huge_pages: u64,
    pub memory_used: u64,
    /// Path of the backing device and the bytes free on it, or why it cannot be examined.
    pub backing: Result<Option<(String, u64)>, String>,
    /// Whether a policy has processed the marked pages in this run.
    pub marks_used: bool,
}

/// The managed devices, or only those in `only`.
pub(super) fn devices<H: Host>(host: &H, state: &mut State, only: &[u32]) -> Result<Vec<Device>, Error> {
    let mut devices = Vec::new();
    for (target, record) in gather::records(host)? {
        let Target::Device(number) = target else { continue };
        if !(only.is_empty() || only.contains(&number)) || record.progress != Progress::Done {
            continue;
        }
        match device(host, state, number, &record) {
            Ok(found) => devices.extend(found),
            // The device was removed meanwhile.
            Err(error) if error.is(host::Errno::NOENT) || error.is(host::Errno::NODEV) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(devices)
}

fn device<H: Host>(
    host: &H,
    state: &mut State,
    number: u32,
    record: &Record,
) -> Result<Option<Device>, HostError> {
    let facts = gather::identify(host, number)?;
    let text = |attribute| host.read_attribute(number, attribute).or_else(absent::<String>);
    if !record.is_about(&facts) || !facts.initialised {
        return Ok(None);
    }
    let memory = MmStat::parse(&text(Attribute::MmStat)?).unwrap_or_default();
    let written = BdStat::parse(&text(Attribute::BdStat)?).unwrap_or_default();
    let page = host.page_size().max(1);
    let path = text(Attribute::BackingDev)?.trim().to_owned();
    let backing = if path.is_empty() || path == "none" {
        Ok(None)
    } else {
        // The kernel reserves the first block.
        let free = |bytes: u64| bytes.saturating_sub(written.used_bytes).saturating_sub(page);
        match host.block_bytes(&path) {
            Ok(bytes) => Ok(Some((path, free(bytes)))),
            // For example after `dmsetup rename`, or without udev.
            Err(error) => Err(format!("its backing device cannot be examined: {error}")),
        }
    };
    let asked = match &record.request {
        Request::Device(request) => request.recompression.as_slice(),
        _ => &[],
    };
    // The kernel shows only names; parameters are in the record.
    let secondary =
        parse_recomp_algorithm(&text(Attribute::RecompAlgorithm)?).into_iter().map(|(priority, name)| {
            let known = asked.get(usize::from(priority).saturating_sub(1)).filter(|known| known.name == name);
            (u32::from(priority), known.cloned().unwrap_or(Algorithm::plain(name)))
        });
    Ok(Some(Device {
        name: format!("zram{number}"),
        number,
        state: *state.device(number, facts.diskseq),
        primary: record.algorithm.clone(),
        secondary: secondary.collect(),
        stored_pages: (memory.orig_data_size / page)
            .saturating_sub(memory.same_pages)
            .saturating_sub(written.used_bytes / page),
        page_size: page,
        huge_pages: memory.huge_pages,
        memory_used: memory.mem_used_total,
        backing,
        marks_used: false,
    }))
}
