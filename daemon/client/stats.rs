//! `stats`: one sample of every counter, for monitoring systems.

use std::fmt::Write;
use std::path::PathBuf;

use serde::Serialize;

use super::args::{Cli, Json, StatsFormat};
use super::columns::Row;
use super::metrics::{BUDGET, POLICY, RAMDISK, ZSWAP, device, seconds};
use super::read::Policies;
use super::{out, read, select};
use engine::Error;
use logic::exit::ExitStatus;
use logic::figure::{Metric, Unit, Value};
use logic::finding::Level;
use logic::maintain_report::Total;
use logic::sample::{SCHEMA_VERSION, Snapshot, Stats};
use logic::zswap::ZswapView;

/// Prefix of all names.
const PREFIX: &str = "zramd";

pub fn run(cli: &Cli, names: &[String], format: StatsFormat, form: Json) -> Result<ExitStatus, Error> {
    let (snapshot, _) = read::snapshot(cli.config.as_ref())?;
    let policies = read::policies();
    let (rows, unknown) = select::select(Row::all(&snapshot), names);
    let text = match (form, format) {
        (Json::Pretty | Json::Short, _) => out::json(&document(&snapshot, &rows), form)?,
        (Json::Off, StatsFormat::Prometheus) => exposition(&snapshot, &rows, &policies, Dialect::Prometheus),
        (Json::Off, StatsFormat::Openmetrics) => {
            exposition(&snapshot, &rows, &policies, Dialect::OpenMetrics)
        }
    };
    out::data(&text);
    Ok(select::report(&unknown))
}

/// All counters in Prometheus' format.
pub fn text(config: Option<&PathBuf>) -> Result<String, Error> {
    let (snapshot, _) = read::snapshot(config)?;
    Ok(exposition(&snapshot, &Row::all(&snapshot), &read::policies(), Dialect::Prometheus))
}

/// Counters of devices.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "stats"))]
pub(super) struct Document<'a> {
    /// Version of this form, incremented when a field is removed or changes its meaning.
    schema_version: u32,
    /// Microseconds since boot, excluding suspend (`CLOCK_MONOTONIC`).
    timestamp_monotonic_usec: u64,
    /// The devices.
    devices: Vec<Sample<'a>>,
    /// zswap; null if the kernel lacks it, or if it is disabled and empty.
    zswap: Option<&'a ZswapView>,
}

/// Counters of a device.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Sample<'a> {
    /// `zramN`.
    name: &'a str,
    /// Bytes of swap slots in use; null if it is not active swap.
    swap_used_bytes: Option<u64>,
    /// Its counters.
    stats: &'a Stats,
}

fn document<'a>(snapshot: &Snapshot, rows: &[Row<'a>]) -> Document<'a> {
    let devices = Row::split(rows).0.into_iter().map(|view| Sample {
        name: &view.name,
        swap_used_bytes: view.swap.map(|swap| swap.used_bytes),
        stats: &view.stats,
    });
    Document {
        schema_version: SCHEMA_VERSION,
        timestamp_monotonic_usec: snapshot.timestamp_monotonic_usec,
        devices: devices.collect(),
        zswap: rows.iter().find_map(|row| row.zswap()),
    }
}

/// The two text formats.
///
/// They are incompatible: OpenMetrics declares a counter without `_total`, and has a type `info`. A parser of the Prometheus
/// format takes the former for a metric without samples, and rejects the whole file because of the latter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Prometheus' text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// One sample of these rows as text.
pub fn exposition(snapshot: &Snapshot, rows: &[Row<'_>], policies: &Policies, dialect: Dialect) -> String {
    let (mut devices, mut disks) = Row::split(rows);
    // A device that is not set up has no figures.
    devices.retain(|view| view.disk_size_bytes > 0);
    disks.retain(|view| view.mounted);
    let mut text = Text { dialect, out: String::new() };
    let info = devices.iter().map(|view| {
        let managed = if view.managed { "true" } else { "false" };
        let labels = vec![
            ("device", view.name.as_str()),
            ("algorithm", view.algorithm.as_str()),
            ("role", view.role.word()),
            ("managed", managed),
        ];
        (labels, Value::Count(1))
    });
    text.family("device", Unit::None, Kind::Info, "What the device is.", info);
    text.metrics(device(), &devices, |view| vec![("device", view.name.as_str())]);
    let zswap: Vec<&ZswapView> = rows.iter().filter_map(|row| row.zswap()).collect();
    text.metrics(ZSWAP, &zswap, |_| Vec::new());
    text.metrics(RAMDISK, &disks, |view| vec![("ramdisk", view.name.as_str())]);
    let policies: Vec<(String, Total)> = policies.clone().into_iter().collect();
    text.metrics(POLICY, &policies.iter().collect::<Vec<_>>(), |(name, _)| vec![("policy", name.as_str())]);
    let ages = policies.iter().map(|(policy, total)| {
        let age = snapshot.timestamp_monotonic_usec.saturating_sub(total.last_monotonic_usec);
        let labels = vec![("policy", policy.as_str()), ("result", total.last_result.as_str())];
        (labels, Value::Real(seconds(age)))
    });
    let help = "Waking time since the policy last ran, by result.";
    text.family("maintenance_last_run_age", Unit::Seconds, Kind::Gauge, help, ages);
    text.metrics(BUDGET, &snapshot.maintenance.budget.iter().collect::<Vec<_>>(), |_| Vec::new());
    let levels = [(Level::Error, "error"), (Level::Warning, "warning")].into_iter();
    let problems = levels.map(|(level, word)| {
        let count = snapshot.problems.iter().filter(|found| found.level == level).count();
        (vec![("level", word)], Value::Count(count as u64))
    });
    text.family("problems", Unit::None, Kind::Gauge, "Problems found, by level.", problems);
    if dialect == Dialect::OpenMetrics {
        text.out.push_str("# EOF\n");
    }
    text.out
}

/// Label names and values of a series.
type Labels<'a> = Vec<(&'static str, &'a str)>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    /// The value is always 1; the labels have the information.
    Info,
}

/// The output.
struct Text {
    dialect: Dialect,
    out: String,
}

impl Text {
    /// Appends these metrics for all things.
    fn metrics<'a, 'm, T: 'm>(
        &mut self,
        metrics: impl IntoIterator<Item = &'m Metric<T>>,
        things: &[&'a T],
        labels: fn(&'a T) -> Labels<'a>,
    ) {
        for metric in metrics {
            let kind = if metric.counter { Kind::Counter } else { Kind::Gauge };
            let values = things.iter().filter_map(|thing| Some((labels(thing), (metric.value)(thing)?)));
            self.family(metric.name, metric.unit, kind, metric.help, values);
        }
    }

    /// Appends all series of one metric, with its declaration if there are any.
    fn family<'a>(
        &mut self,
        name: &str,
        unit: Unit,
        kind: Kind,
        help: &str,
        series: impl Iterator<Item = (Labels<'a>, Value)>,
    ) {
        let mut series = series.peekable();
        if series.peek().is_none() {
            return;
        }
        let (unit, separator) = (unit.word(), if unit == Unit::None { "" } else { "_" });
        let family = format!("{PREFIX}_{name}{separator}{unit}");
        let (word, suffix) = match kind {
            Kind::Counter => ("counter", "_total"),
            Kind::Gauge => ("gauge", ""),
            Kind::Info => ("info", "_info"),
        };
        let sample = format!("{family}{suffix}");
        let (announced, word) = match self.dialect {
            Dialect::OpenMetrics => (&family, word),
            Dialect::Prometheus => (&sample, if kind == Kind::Info { "gauge" } else { word }),
        };
        let out = &mut self.out;
        // Writing to a string cannot fail.
        writeln!(out, "# HELP {announced} {help}\n# TYPE {announced} {word}").ok();
        if self.dialect == Dialect::OpenMetrics && !unit.is_empty() {
            writeln!(out, "# UNIT {announced} {unit}").ok();
        }
        for (labels, value) in series {
            out.push_str(&sample);
            for (index, (key, value)) in labels.iter().enumerate() {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                write!(out, "{}{key}=\"{value}\"", if index == 0 { '{' } else { ',' }).ok();
            }
            let end = if labels.is_empty() { "" } else { "}" };
            match value {
                Value::Count(count) => writeln!(out, "{end} {count}").ok(),
                Value::Real(real) => writeln!(out, "{end} {real:?}").ok(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::fixture;

    fn shown(dialect: Dialect) -> String {
        let mut machine = fixture::machine();
        machine.devices[1].algorithm = "a \"quoted\\\n".to_owned();
        exposition(&machine, &Row::all(&machine), &fixture::policies(), dialect)
    }

    /// Name, labels and value of a sample line; `None` if a strict parser would refuse it.
    fn sample(line: &str) -> Option<(String, BTreeMap<String, String>, f64)> {
        let is_name = |name: &str| {
            name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
                && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        let mut labels = BTreeMap::new();
        let Some((name, rest)) = line.split_once('{') else {
            let (name, value) = line.split_once(' ')?;
            return is_name(name).then_some((name.to_owned(), labels, value.parse().ok()?));
        };
        let mut rest = rest;
        loop {
            let (key, after) = rest.split_once("=\"")?;
            let mut value = String::new();
            let mut letters = after.char_indices();
            let end = loop {
                match letters.next()? {
                    (at, '"') => break at,
                    (_, '\\') => value.push(match letters.next()?.1 {
                        'n' => '\n',
                        letter @ ('"' | '\\') => letter,
                        _ => return None,
                    }),
                    (_, letter) => value.push(letter),
                }
            };
            let known = labels.insert(key.to_owned(), value);
            if !is_name(key) || known.is_some() {
                return None;
            }
            let after = &after[end + 1..];
            match after.strip_prefix(',') {
                Some(after) => rest = after,
                None => {
                    let value = after.strip_prefix("} ")?.parse().ok()?;
                    return is_name(name).then(|| (name.to_owned(), labels, value));
                }
            }
        }
    }

    /// A parser as strict as that of Prometheus: samples of a metric are consecutive, declared before, and unique.
    fn read(text: &str, dialect: Dialect) -> BTreeMap<String, (String, usize)> {
        let mut families: BTreeMap<String, (String, usize)> = BTreeMap::new();
        let mut series = BTreeSet::new();
        let mut current = String::new();
        assert!(text.ends_with('\n'));
        let text = match dialect {
            Dialect::OpenMetrics => text.strip_suffix("# EOF\n").unwrap(),
            Dialect::Prometheus => text,
        };
        for line in text.lines() {
            let Some(comment) = line.strip_prefix("# ") else {
                let (name, labels, value) = sample(line).unwrap_or_else(|| panic!("{line}"));
                let kind = families[&current].0.as_str();
                let expected = match (dialect, kind) {
                    (Dialect::OpenMetrics, "counter") => format!("{current}_total"),
                    (Dialect::OpenMetrics, "info") => format!("{current}_info"),
                    _ => current.clone(),
                };
                assert_eq!(name, expected, "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                assert!(value.is_finite() && value >= 0.0, "{line}");
                assert!(series.insert((name, labels)), "{line} again");
                families.get_mut(&current).unwrap().1 += 1;
                continue;
            };
            let mut words = comment.splitn(3, ' ');
            let (what, name, text) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            match what {
                "HELP" => {
                    assert!(!families.contains_key(name), "{name} again");
                    assert!(text.ends_with('.') && !text.contains('\\'), "{line}");
                    current = name.to_owned();
                }
                "TYPE" => {
                    assert_eq!(name, current);
                    let known = ["counter", "gauge"].contains(&text);
                    assert!(known || (dialect == Dialect::OpenMetrics && text == "info"), "{line}");
                    families.insert(name.to_owned(), (text.to_owned(), 0));
                }
                "UNIT" => {
                    assert_eq!((dialect, name), (Dialect::OpenMetrics, current.as_str()));
                    assert!(name.ends_with(&format!("_{text}")), "{line}");
                }
                _ => panic!("{line}"),
            }
        }
        assert!(families.values().all(|(_, samples)| *samples > 0), "{families:?}");
        families
    }

    #[test]
    fn strict_readers_accept_both_formats() {
        let prometheus = read(&shown(Dialect::Prometheus), Dialect::Prometheus);
        assert_eq!(prometheus["zramd_device_info"], ("gauge".to_owned(), 4));
        assert_eq!(prometheus["zramd_device_read_bytes_total"], ("counter".to_owned(), 4));
        assert_eq!(prometheus["zramd_device_backing_bytes"], ("gauge".to_owned(), 1));
        assert_eq!(prometheus["zramd_device_swap_used_bytes"], ("gauge".to_owned(), 2));
        let open = read(&shown(Dialect::OpenMetrics), Dialect::OpenMetrics);
        assert_eq!(open["zramd_device"], ("info".to_owned(), 4));
        assert_eq!(open["zramd_device_read_bytes"], ("counter".to_owned(), 4));
        assert_eq!(open.len(), prometheus.len());
        assert_eq!(sample("a{b=\"c\\\"d\"} 1").unwrap().1["b"], "c\"d");
        for broken in
            ["a", "1 1", "a b", "a{} 1", "a{b=\"c} 1", "a{b=\"c\"}", "a{b=\"c\",b=\"d\"} 1", "a-b{c=\"d\"} 1"]
        {
            assert!(sample(broken).is_none(), "{broken}");
        }
    }

    #[test]
    fn the_sample_is_as_in_the_golden_files() {
        let machine = fixture::machine();
        let rows = Row::all(&machine);
        for (name, dialect) in [("stats", Dialect::Prometheus), ("stats-openmetrics", Dialect::OpenMetrics)] {
            fixture::golden(name, &exposition(&machine, &rows, &fixture::policies(), dialect));
        }
    }

    #[test]
    fn a_machine_without_devices_has_no_metric_of_devices() {
        let text = exposition(&Snapshot::default(), &[], &Policies::new(), Dialect::Prometheus);
        let names: Vec<String> = read(&text, Dialect::Prometheus).into_keys().collect();
        assert_eq!(names, ["zramd_problems"]);
    }

    #[test]
    fn json_has_every_counter() {
        let machine = fixture::machine();
        let value: serde_json::Value = serde_json::to_value(document(&machine, &Row::all(&machine))).unwrap();
        assert_eq!(value["devices"][0]["stats"]["memory"]["same_pages"], 5000);
        assert_eq!(value["devices"][0]["swap_used_bytes"], 1300u64 << 20);
        assert_eq!(value["devices"].as_array().unwrap().len(), 5);
    }
}
