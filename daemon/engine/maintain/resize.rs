//! Device sizes that depend on the machine's memory, when that has changed.

use std::collections::BTreeMap;
use std::time::Duration;

use super::state::Added;
use super::{Host, Loaded, Run, Stopped};
use crate::device::control;
use crate::gather;
use logic::config::settings::Settings;
use logic::facts::Facts;
use logic::plan::wanted::wanted;
use logic::proc::Memory;
use logic::record::{Progress, Record, Target};
use logic::request::{DeviceRequest, Purpose, Request};
use logic::resize::{Seen, Step, decide};

/// How long to wait for a second device before requesting it again.
const PATIENCE: Duration = Duration::from_secs(60);

impl<H: Host> Run<'_, H> {
    /// Reports the devices whose size would now be different.
    pub(super) fn resizes(&mut self, loaded: &Loaded) -> Result<(), Stopped> {
        let total = self.machine.facts.memory.total_kib;
        if total == 0 {
            // The memory size is unknown.
            return Ok(());
        }
        let before = match std::mem::replace(&mut self.state.memory_total_kib, total) {
            0 => total,
            before => before,
        };
        let on_change = loaded.settings.maintenance.as_ref().and_then(|asked| asked.on_memory_change);
        let on_change = on_change.unwrap_or_default();
        let records = gather::records(self.host)?;
        let devices: BTreeMap<u32, (&DeviceRequest, u64)> = records.iter().filter_map(device).collect();
        self.recognise_added(&devices);
        for (number, (request, memory_kib)) in &devices {
            let added: Vec<&Added> = self.state.added.iter().filter(|added| added.first == *number).collect();
            // A second device has been requested and is not there yet.
            if added.iter().any(|added| added.number.is_none()) {
                continue;
            }
            let more = added.iter().map(|added| added.bytes).sum();
            let has = Some(request.disk_size.saturating_add(more));
            // Records of older versions lack it.
            let total_kib = if *memory_kib == 0 { before } else { *memory_kib };
            let old = Facts {
                memory: Memory { total_kib, ..self.machine.facts.memory },
                ..self.machine.facts.clone()
            };
            // If the size differs for another reason than memory, a reload handles it.
            if size(&loaded.settings, &old, *number) != has && self.state.sizes.get(number).copied() != has {
                continue;
            }
            let Some(wanted) = size(&loaded.settings, &self.machine.facts, *number) else { continue };
            let seen = Seen {
                number: *number,
                size: request.disk_size,
                wanted,
                used: control::swap_used(self.host, *number),
                swap: matches!(request.purpose, Purpose::Swap { .. }),
                added: more,
            };
            self.report.resizes.extend(decide(&seen, on_change));
        }
        for resize in &self.report.resizes {
            self.state.sizes.insert(resize.number, resize.to);
            if let Step::Add(bytes) = resize.step {
                self.state.added.push(Added {
                    first: resize.number,
                    bytes,
                    asked: self.machine.now.awake,
                    before: devices.keys().copied().collect(),
                    number: None,
                });
            }
        }
        if !self.report.resizes.is_empty() || self.state.added.iter().any(|added| added.number.is_none()) {
            // Report it in each run, until the size is changed or the memory is as before.
            self.state.memory_total_kib = before;
        }
        Ok(())
    }

    /// Recognises requested second devices, and forgets those that were removed or did not appear in time.
    fn recognise_added(&mut self, devices: &BTreeMap<u32, (&DeviceRequest, u64)>) {
        let now = self.machine.now.awake;
        let mut taken: Vec<u32> = self.state.added.iter().filter_map(|added| added.number).collect();
        for added in &mut self.state.added {
            let fits = |(number, (request, _)): &(&u32, &(&DeviceRequest, u64))| {
                request.disk_size == added.bytes && !added.before.contains(number) && !taken.contains(number)
            };
            if added.number.is_none()
                && let Some((number, _)) = devices.iter().find(fits)
            {
                added.number = Some(*number);
                taken.push(*number);
            }
        }
        self.state.added.retain(|added| match added.number {
            Some(number) => devices.contains_key(&number),
            None => now.saturating_sub(added.asked) < PATIENCE,
        });
    }
}

/// The request of a device, and the machine's memory when the device was set up.
fn device<'a>((target, record): (&Target, &'a Record)) -> Option<(u32, (&'a DeviceRequest, u64))> {
    match (target, &record.request) {
        (Target::Device(number), Request::Device(request)) if record.progress == Progress::Done => {
            Some((*number, (request, record.memory_kib)))
        }
        _ => None,
    }
}

/// The configured size of a device on this machine.
fn size(settings: &Settings, facts: &Facts, number: u32) -> Option<u64> {
    let (items, _) = wanted(settings, facts);
    items.into_iter().find_map(|item| match item.request {
        Some(Request::Device(request)) if request.number == number => Some(request.disk_size),
        _ => None,
    })
}
