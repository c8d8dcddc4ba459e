//! `[maintenance]` → settings of the policies, and what they mean for the devices.

use std::time::Duration;

use super::assemble::{built_in, origin_of, secondary};
use super::problem::{Origin, Problem};
use super::schema::SectionKind;
use super::section::SectionReader;
use super::settings::{
    BackingSettings, DeviceSettings, MaintenanceSettings, Role, StoreSettings, WritebackSettings,
};
use crate::logic::algorithm::Algorithm;
use crate::logic::duration;
use crate::logic::expr::{Variables, size_in_bytes};
use crate::logic::policy::age::Range;
use crate::logic::policy::pressure::{self, Thresholds};
use crate::logic::policy::resize::OnChange;
use crate::logic::policy::{recompress, writeback};

/// Time between two passes by default (ChromeOS, Android).
const INTERVAL: Duration = Duration::from_secs(3600);
/// Shortest time between two passes.
const SHORTEST: Duration = Duration::from_secs(60);
/// A page of the largest size there is cannot shrink to more than this.
const LARGEST_THRESHOLD: i64 = 65536;
/// A machine on which every size that depends on memory is large.
const LARGE: Variables = Variables { ram_mib: 1e6, swap_mib: 1e6, cpus: 1e3 };
/// Secondary algorithm by default.
const ALGORITHM: &str = "zstd";

/// The section, before it is known which devices there are.
pub(super) struct Asked {
    settings: MaintenanceSettings,
    algorithms: Vec<Algorithm>,
    algorithms_origin: Origin,
    device: Option<(String, Origin)>,
    writeback_origin: Origin,
}

/// Reads the section; nothing when it asks for nothing.
pub(super) fn read(reader: &mut SectionReader<'_>) -> Option<Asked> {
    reader.unknown_keys(SectionKind::Maintenance);
    let enabled = reader.boolean("enabled", true);
    let interval = reader.duration("interval", INTERVAL);
    if interval < SHORTEST {
        let message = format!("{} is too short", duration::text(interval));
        let problem = Problem::error(origin_of(reader, "interval"), message);
        reader.fail(problem.hint(format!("write \"{}\" or more", duration::text(SHORTEST))));
    }
    let asked = Asked {
        settings: MaintenanceSettings {
            origin: reader.origin(),
            interval,
            recompress: recompress(reader),
            writeback: writeback(reader),
            pressure: pressure(reader),
            on_memory_change: on_memory_change(reader),
        },
        algorithms: secondary(reader, "recompress.algorithm"),
        algorithms_origin: origin_of(reader, "recompress.algorithm"),
        device: reader.path("writeback.device"),
        writeback_origin: origin_of(reader, "writeback.enabled"),
    };
    enabled.then_some(asked)
}

/// Whether a policy is on: it, or one of its keys, is there, and it is not `false`.
fn is_on(reader: &mut SectionReader<'_>, policy: &str) -> bool {
    let prefix = format!("{policy}.");
    let has_keys = SectionKind::Maintenance
        .keys()
        .any(|key| key.name.starts_with(&prefix) && reader.own(key.name).is_some());
    reader.boolean(&format!("{policy}.enabled"), has_keys)
}

fn ages(reader: &mut SectionReader<'_>, policy: &str, default: Range) -> Range {
    let (least_key, most_key) = (format!("{policy}.idle-age"), format!("{policy}.max-idle-age"));
    let mut given = |key: &str, default| reader.own(key).is_some().then(|| reader.duration(key, default));
    let (least, most) = (given(&least_key, default.least), given(&most_key, default.most));
    let range = match (least, most) {
        (None, None) => default,
        (Some(least), Some(most)) => Range { least, most },
        // The spread of the defaults, below or above what is given.
        (Some(least), None) => {
            Range { least, most: least.saturating_add(default.most.saturating_sub(default.least)) }
        }
        (None, Some(most)) => Range { least: default.least.min(most), most },
    };
    if range.least > range.most {
        let message = format!("the longest idle age is below the shortest, {}", duration::text(range.least));
        let problem = Problem::error(origin_of(reader, &most_key), message);
        reader.fail(problem.hint(format!("write {} or more", duration::text(range.least))));
    }
    range
}

fn recompress(reader: &mut SectionReader<'_>) -> Option<recompress::Settings> {
    let on = is_on(reader, "recompress");
    let age = ages(reader, "recompress", recompress::AGE);
    let threshold = reader.integer("recompress.threshold", 1, LARGEST_THRESHOLD, "3072");
    let threshold = threshold.and_then(|bytes| u32::try_from(bytes).ok());
    on.then_some(recompress::Settings { age, threshold })
}

fn writeback(reader: &mut SectionReader<'_>) -> Option<WritebackSettings> {
    let on = is_on(reader, "writeback");
    let mut size = |key: &str, default: &str| {
        let Some(size) = reader.own(key) else { return built_in(default, reader) };
        let size = reader.size_of(size, false)?;
        let most = size.expr.evaluate(&LARGE).and_then(size_in_bytes);
        if most.is_ok_and(|most| most < writeback::LEAST) {
            let message = format!("`{}` is too little: nothing would ever be written", size.text);
            let problem = Problem::error(size.origin.clone(), message);
            reader.fail(problem.hint("write \"5MiB\" or more, or switch writeback off"));
        }
        Some(size)
    };
    let daily = size("writeback.daily-budget", "1GiB");
    let per_run = size("writeback.run-budget", "300MiB");
    let age = ages(reader, "writeback", writeback::AGE);
    let huge = reader.boolean("writeback.huge", false);
    let settings = WritebackSettings { age, daily: daily?, per_run: per_run?, huge };
    on.then_some(settings)
}

fn pressure(reader: &mut SectionReader<'_>) -> Option<Thresholds> {
    let on = is_on(reader, "pressure");
    let default = pressure::DEFAULT;
    let mut percent = |key: &str, default: u8| {
        let number = reader.integer(key, 1, 100, &default.to_string());
        number.and_then(|number| u8::try_from(number).ok()).unwrap_or(default)
    };
    let thresholds = Thresholds {
        moderate: percent("pressure.moderate", default.moderate),
        severe: percent("pressure.severe", default.severe),
        critical: percent("pressure.critical", default.critical),
    };
    if thresholds.severe >= thresholds.critical {
        let message = format!(
            "critical pressure ({} %) begins below severe pressure ({} %)",
            thresholds.critical, thresholds.severe
        );
        let key =
            if reader.own("pressure.critical").is_some() { "pressure.critical" } else { "pressure.severe" };
        reader.fail(
            Problem::error(origin_of(reader, key), message)
                .hint("both are shares of time in which everything waits"),
        );
    }
    on.then_some(thresholds)
}

fn on_memory_change(reader: &mut SectionReader<'_>) -> Option<OnChange> {
    let (word, origin) = reader.text("on-memory-change")?;
    match word.as_str() {
        "report" => Some(OnChange::Report),
        "apply" => Some(OnChange::Apply),
        _ => {
            let problem = Problem::error(origin, format!("`{word}` is nothing that can be done then"));
            reader.fail(problem.hint("write \"report\" or \"apply\""));
            None
        }
    }
}

impl Asked {
    /// Gives the devices what the policies need of them, unless they have their own.
    pub(super) fn apply(
        self,
        devices: &mut [DeviceSettings],
        problems: &mut Vec<Problem>,
    ) -> MaintenanceSettings {
        if self.settings.recompress.is_some() {
            let default = || Algorithm { name: ALGORITHM.to_owned(), parameters: Vec::new() };
            let algorithms = if self.algorithms.is_empty() { vec![default()] } else { self.algorithms };
            for device in devices.iter_mut().filter(|device| device.recompression.is_empty()) {
                device.recompression.clone_from(&algorithms);
                device.recompression_origin = self.algorithms_origin.clone();
            }
        }
        let has_none = || devices.iter().all(|device| device.writeback.is_none());
        if self.settings.writeback.is_some() && self.device.is_none() && has_none() {
            problems.push(
                Problem::warning(self.writeback_origin, "no device has a disk to write to, so nothing is written")
                    .hint("name one as writeback.device here, or as writeback-device or writeback-file in a [zramN]"),
            );
        }
        if let Some((path, origin)) = self.device.filter(|_| self.settings.writeback.is_some()) {
            let free = devices
                .iter_mut()
                .find(|device| device.writeback.is_none() && matches!(device.role, Role::Swap { .. }));
            match free {
                Some(device) => {
                    device.writeback =
                        Some(BackingSettings { store: StoreSettings::Device(path), encrypted: true, origin });
                }
                None => problems.push(
                    Problem::warning(
                        origin,
                        format!("no compressed swap is left that could write to {path}"),
                    )
                    .hint("a device takes the pages of one [zramN]; write writeback-device there"),
                ),
            }
        }
        self.settings
    }
}
