//! Sizes that depend on the machine's memory, after that has changed.

use super::{Loaded, Run, Stopped, Upkeep};
use crate::engine::{control, gather};
use crate::logic::config::settings::Settings;
use crate::logic::facts::Facts;
use crate::logic::plan::wanted::wanted;
use crate::logic::plan::{Activation, Purpose, Request};
use crate::logic::policy::resize::{Seen, decide};
use crate::logic::record::Target;

impl<H: Upkeep> Run<'_, H> {
    /// Notes in the report which devices would have another size now.
    pub(super) fn resizes(&mut self, loaded: &Loaded) -> Result<(), Stopped> {
        let total = self.machine.facts.memory.total_kib;
        let before = std::mem::replace(&mut self.state.memory_total_kib, total);
        if before == 0 || total == 0 || before == total {
            return Ok(());
        }
        let old = Facts {
            memory: crate::logic::proc::Memory { total_kib: before, ..self.machine.facts.memory },
            ..self.machine.facts.clone()
        };
        let on_change = loaded
            .settings
            .maintenance
            .as_ref()
            .map_or_else(Default::default, |asked| asked.on_memory_change);
        let records = gather::records(self.host)?;
        for (target, record) in &records {
            let (Target::Device(number), Request::Device(request)) = (target, &record.request) else {
                continue;
            };
            // A size that has another reason than memory is the business of a reload.
            if size(&loaded.settings, &old, *number) != Some(request.disk_size) {
                continue;
            }
            let Some(wanted) = size(&loaded.settings, &self.machine.facts, *number) else { continue };
            let seen = Seen {
                number: *number,
                size: request.disk_size,
                wanted,
                used: control::swap_used(self.host, *number),
                swap: matches!(request.purpose, Purpose::Swap { .. }),
                added: 0,
            };
            self.report.resizes.extend(decide(&seen, on_change));
        }
        if !self.report.resizes.is_empty() {
            // Until it was brought about, or the memory is as before, it is said each time.
            self.state.memory_total_kib = before;
        }
        Ok(())
    }
}

/// The size that the configuration gives a device on a machine like this.
fn size(settings: &Settings, facts: &Facts, number: u32) -> Option<u64> {
    let (items, _) = wanted(settings, facts, Activation::Systemd);
    items.into_iter().find_map(|item| match item.request {
        Some(Request::Device(request)) if request.number == number => Some(request.disk_size),
        _ => None,
    })
}
