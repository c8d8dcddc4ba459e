//! Parses `[maintenance]` into settings of the policies, and applies them to the devices.

use super::device::secondary;
use super::fragment::Assignment;
use super::key::Key;
use super::keys::maintenance as keys;
use super::schema::SectionKind;
use super::section::SectionReader;
use super::settings::{BackingSettings, DeviceSettings, MaintenanceSettings, WritebackSettings};
use super::value::Value;
use crate::device::algorithm::Algorithm;
use crate::duration;
use crate::expr::{Variables, size_in_bytes};
use crate::finding::Finding;
use crate::maintain::age::Range;
use crate::maintain::pressure::Thresholds;
use crate::maintain::{recompress, writeback};
use crate::origin::Origin;
use crate::request::{Purpose, Store};

/// A machine on which all sizes that depend on memory are large.
const LARGE: Variables = Variables { ram_mib: 1e6, swap_mib: 1e6, cpus: 1e3 };
/// Contents of the section, before the devices are known.
pub(crate) struct Asked {
    settings: MaintenanceSettings,
    algorithms: Vec<Algorithm>,
    algorithms_origin: Origin,
    device: Option<(String, Origin)>,
    writeback_origin: Origin,
}

/// Parses the section; `None` if it enables nothing.
pub(crate) fn read(reader: &mut SectionReader<'_>) -> Option<Asked> {
    let enabled = reader.boolean(&keys::ENABLED);
    let recompress = recompress(reader);
    let writeback = writeback(reader);
    let asked = Asked {
        settings: MaintenanceSettings {
            origin: reader.origin(),
            interval: reader.span(&keys::INTERVAL)?,
            pressure: pressure(reader, writeback.is_some()),
            recompress,
            writeback,
            on_memory_change: reader.choice(&keys::ON_MEMORY_CHANGE),
        },
        algorithms: secondary(reader, &keys::RECOMPRESS_ALGORITHM),
        algorithms_origin: reader.origin_of(&keys::RECOMPRESS_ALGORITHM),
        device: reader.path(&keys::WRITEBACK_DEVICE),
        writeback_origin: reader.origin_of(&keys::WRITEBACK_ENABLED),
    };
    enabled.then_some(asked)
}

/// Whether a policy is enabled: explicitly, or by any of its keys.
fn is_on(reader: &mut SectionReader<'_>, enabled: &Key) -> bool {
    let policy = enabled.name.trim_end_matches("enabled");
    let mut keys = SectionKind::Maintenance.keys().iter().filter(|key| key.name.starts_with(policy));
    match reader.own(enabled) {
        Some(_) => reader.boolean(enabled),
        None => keys.any(|key| reader.own(key).is_some()),
    }
}

/// A number without a unit is seconds, but a few seconds of idleness are hardly meant.
fn without_unit(reader: &mut SectionReader<'_>, key: &Key) {
    if let Some(Assignment { value: Value::Integer(seconds @ 0..60, _), origin, .. }) = reader.own(key) {
        let problem =
            Finding::warning(origin.clone(), format!("{seconds} without a unit is {seconds} seconds"));
        reader
            .problems
            .push(problem.remedy(format!("write \"{seconds}h\", or \"{seconds}s\" if that is meant")));
    }
}

fn ages(reader: &mut SectionReader<'_>, least_key: &Key, most_key: &Key, default: Range) -> Option<Range> {
    without_unit(reader, least_key);
    without_unit(reader, most_key);
    let (least, most) = (reader.span(least_key)?, reader.span(most_key));
    let range = match most {
        Some(most) if reader.own(least_key).is_none() => Range { least: least.min(most), most },
        Some(most) => Range { least, most },
        // Keep the distance of the defaults.
        None => Range { least, most: least.saturating_add(default.most.saturating_sub(default.least)) },
    };
    if range.least > range.most {
        let message = format!("the longest idle age is below the shortest, {}", duration::text(range.least));
        let problem = Finding::error(reader.origin_of(most_key), message);
        reader.fail(problem.remedy(format!("write {} or more", duration::text(range.least))));
    }
    Some(range)
}

fn recompress(reader: &mut SectionReader<'_>) -> Option<recompress::Settings> {
    let on = is_on(reader, &keys::RECOMPRESS_ENABLED);
    let (least, most) = (&keys::RECOMPRESS_IDLE_AGE, &keys::RECOMPRESS_MAX_IDLE_AGE);
    let age = ages(reader, least, most, recompress::AGE)?;
    let threshold = reader.integer(&keys::RECOMPRESS_THRESHOLD);
    on.then_some(recompress::Settings { age, threshold })
}

fn writeback(reader: &mut SectionReader<'_>) -> Option<WritebackSettings> {
    let on = is_on(reader, &keys::WRITEBACK_ENABLED);
    let mut budget = |key: &Key| {
        let size = reader.size(key)?;
        let most = size.expr.evaluate(&LARGE).and_then(size_in_bytes);
        if most.is_ok_and(|most| most < writeback::LEAST) {
            let message = format!("`{}` is too little: nothing would ever be written", size.text);
            let problem = Finding::error(size.origin.clone(), message);
            reader.fail(problem.remedy("write \"5MiB\" or more, or switch writeback off"));
        }
        Some(size)
    };
    let (daily, per_run) = (budget(&keys::WRITEBACK_DAILY_BUDGET), budget(&keys::WRITEBACK_RUN_BUDGET));
    let (least, most) = (&keys::WRITEBACK_IDLE_AGE, &keys::WRITEBACK_MAX_IDLE_AGE);
    let age = ages(reader, least, most, writeback::AGE)?;
    let huge = reader.boolean(&keys::WRITEBACK_HUGE);
    let settings = WritebackSettings { age, daily: daily?, per_run: per_run?, huge };
    on.then_some(settings)
}

/// `writes`: whether write-back is on, which without this begins when the oldest pages are hours old, however short memory is.
fn pressure(reader: &mut SectionReader<'_>, writes: bool) -> Option<Thresholds> {
    let is_unset = reader.own(&keys::PRESSURE_ENABLED).is_none();
    let on = is_on(reader, &keys::PRESSURE_ENABLED) || (is_unset && writes);
    let thresholds = Thresholds {
        moderate: reader.integer(&keys::PRESSURE_MODERATE)?,
        severe: reader.integer(&keys::PRESSURE_SEVERE)?,
        critical: reader.integer(&keys::PRESSURE_CRITICAL)?,
    };
    if thresholds.severe >= thresholds.critical {
        let message = format!(
            "critical pressure ({} %) begins below severe pressure ({} %)",
            thresholds.critical, thresholds.severe
        );
        let critical = reader.own(&keys::PRESSURE_CRITICAL).is_some();
        let key = if critical { &keys::PRESSURE_CRITICAL } else { &keys::PRESSURE_SEVERE };
        reader.fail(
            Finding::error(reader.origin_of(key), message)
                .remedy("both are shares of time in which everything waits"),
        );
    }
    on.then_some(thresholds)
}

impl Asked {
    /// Gives the devices the settings that the policies need, unless they have their own.
    pub(crate) fn apply(
        self,
        devices: &mut [DeviceSettings],
        problems: &mut Vec<Finding>,
    ) -> MaintenanceSettings {
        if self.settings.recompress.is_some() {
            for device in devices.iter_mut().filter(|device| device.recompression.is_empty()) {
                device.recompression.clone_from(&self.algorithms);
                device.recompression_origin = self.algorithms_origin.clone();
            }
        }
        let has_none = || devices.iter().all(|device| device.writeback.is_none());
        if self.settings.writeback.is_some() && self.device.is_none() && has_none() {
            problems.push(
                Finding::warning(self.writeback_origin, "no device has a disk to write to, so nothing is written")
                    .remedy("name one as writeback.device here, or as writeback-device or writeback-file in a [zramN]"),
            );
        }
        if let Some((path, origin)) = self.device.filter(|_| self.settings.writeback.is_some()) {
            let free = devices
                .iter_mut()
                .find(|device| device.writeback.is_none() && matches!(device.purpose, Purpose::Swap { .. }));
            match free {
                Some(device) => {
                    device.writeback =
                        Some(BackingSettings { store: Store::Device(path), encrypted: true, origin });
                }
                None => problems.push(
                    Finding::warning(origin, format!("no compressed swap can write to {path}"))
                        .remedy("a device serves one [zramN]; write writeback-device there"),
                ),
            }
        }
        self.settings
    }
}

#[cfg(test)]
mod tests {
    use crate::config::load;

    #[test]
    fn a_budget_is_at_least_what_a_disk_is_woken_up_for() {
        for (budget, good) in
            [("\"5MiB\"", true), ("5", true), ("\"5MiB - 1B\"", false), ("\"ram / 1000\"", true)]
        {
            let text = format!(
                "[zram0]\nwriteback-device = \"/dev/a\"\n[maintenance]\nwriteback.run-budget = {budget}\n"
            );
            let problems = load(&[("f".into(), text)], "").problems;
            assert_eq!(problems.is_empty(), good, "{budget}: {problems:?}");
        }
    }
}
