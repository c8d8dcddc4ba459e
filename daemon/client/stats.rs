//! `stats`: one sample of every counter, for monitoring.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit as NamedUnit};
use serde::Serialize;

use super::args::{Cli, Json, StatsFormat};
use super::columns::Row;
use super::metrics::{BUDGET, DEVICE, DISK, Metric, POLICY, Unit, Value, seconds};
use super::read::Policies;
use super::{out, read, select};
use crate::engine::Error;
use crate::logic::exit::ExitStatus;
use crate::logic::health::Level;
use crate::logic::policy::report::{Budget, Total};
use crate::logic::snapshot::{DeviceView, DiskView, SCHEMA_VERSION, Snapshot, Stats};

/// What all names begin with.
const PREFIX: &str = "zramd";

/// Runs `stats`.
pub fn run(cli: &Cli, names: &[String], format: StatsFormat) -> Result<ExitStatus, Error> {
    let (snapshot, _) = read::snapshot(cli.config.as_ref())?;
    let policies = read::policies();
    let (rows, unknown) = select::select(Row::all(&snapshot), names);
    let text = match format {
        StatsFormat::Prometheus => exposition(&snapshot, &rows, &policies, Dialect::Prometheus),
        StatsFormat::Openmetrics => exposition(&snapshot, &rows, &policies, Dialect::OpenMetrics),
        StatsFormat::Json => json(&snapshot, &rows),
    }?;
    out::print(&text)?;
    Ok(select::report(&unknown))
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    schema_version: u32,
    timestamp_monotonic_usec: u64,
    devices: Vec<Sample<'a>>,
}

#[derive(Debug, Serialize)]
struct Sample<'a> {
    name: &'a str,
    swap_used_bytes: Option<u64>,
    stats: &'a Stats,
}

fn json(snapshot: &Snapshot, rows: &[Row<'_>]) -> Result<String, Error> {
    let sample = |row: &Row<'_>| {
        let Row::Device(view) = row else { return None };
        let view = snapshot.device(&view.name)?;
        let swap_used_bytes = view.swap.map(|swap| swap.used_bytes);
        Some(Sample { name: &view.name, swap_used_bytes, stats: &view.stats })
    };
    let document = Document {
        schema_version: SCHEMA_VERSION,
        timestamp_monotonic_usec: snapshot.timestamp_monotonic_usec,
        devices: rows.iter().filter_map(sample).collect(),
    };
    out::json(&document, Json::Pretty)
}

/// Which of the two text formats.
///
/// They exclude each other: OpenMetrics announces a counter without `_total`, and has a type `info`. A reader of
/// Prometheus' own format takes the former for a metric that never appears, and the latter for an error in the whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Prometheus' text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// One sample of these rows as text.
pub fn exposition(
    snapshot: &Snapshot,
    rows: &[Row<'_>],
    policies: &Policies,
    dialect: Dialect,
) -> Result<String, Error> {
    let mut samples = Samples {
        dialect,
        devices: Vec::new(),
        disks: Vec::new(),
        problems: [0, 0],
        policies: policies.clone().into_iter().collect(),
        budget: snapshot.maintenance.budget.into_iter().collect(),
        now_usec: snapshot.timestamp_monotonic_usec,
    };
    for row in rows {
        match row {
            // What is not set up has no figures.
            Row::Device(view) if view.disk_size_bytes > 0 => samples.devices.push((*view).clone()),
            Row::Disk(view) if view.mounted => samples.disks.push((*view).clone()),
            _ => {}
        }
    }
    for problem in &snapshot.problems {
        match problem.level {
            Level::Error => samples.problems[0] += 1,
            Level::Warning => samples.problems[1] += 1,
            Level::Note => {}
        }
    }
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(samples));
    let mut out = String::new();
    let written = match dialect {
        Dialect::Prometheus => text::encode_registry(&mut out, &registry),
        Dialect::OpenMetrics => text::encode(&mut out, &registry),
    };
    written.map_err(|_| Error::failed("cannot write the sample as text"))?;
    Ok(out)
}

/// What was sampled.
#[derive(Debug)]
struct Samples {
    dialect: Dialect,
    devices: Vec<DeviceView>,
    disks: Vec<DiskView>,
    /// Errors and warnings.
    problems: [u64; 2],
    policies: Vec<(String, Total)>,
    budget: Vec<Budget>,
    /// When, in microseconds since boot.
    now_usec: u64,
}

impl Collector for Samples {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.info(&mut encoder)?;
        for metric in DEVICE {
            family(&mut encoder, self.dialect, metric, &self.devices, |view| Some(("device", &view.name)))?;
        }
        for metric in DISK {
            family(&mut encoder, self.dialect, metric, &self.disks, |view| Some(("disk", &view.name)))?;
        }
        for metric in POLICY {
            family(&mut encoder, self.dialect, metric, &self.policies, |(name, _)| Some(("policy", name)))?;
        }
        self.last_runs(&mut encoder)?;
        for metric in BUDGET {
            family(&mut encoder, self.dialect, metric, &self.budget, |_| None)?;
        }
        let help = "Problems found, by level.";
        let mut problems = encoder.encode_descriptor("problems", help, None, MetricType::Gauge)?;
        for (count, level) in self.problems.iter().zip(["error", "warning"]) {
            problems.encode_family(&[("level", level)])?.encode_gauge(count)?;
        }
        Ok(())
    }
}

impl Samples {
    /// How long ago each policy had its turn, with how that went as a label.
    fn last_runs(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.policies.is_empty() {
            return Ok(());
        }
        let help = "Waking time since the policy last had its turn, with how that went.";
        let (name, unit) = match self.dialect {
            Dialect::Prometheus => ("maintenance_last_run_age_seconds", None),
            Dialect::OpenMetrics => ("maintenance_last_run_age", Some(NamedUnit::Seconds)),
        };
        let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        for (policy, total) in &self.policies {
            let age = seconds(self.now_usec.saturating_sub(total.last_monotonic_usec));
            let labels = [("policy", policy.as_str()), ("result", total.last_result.as_str())];
            family.encode_family(&labels)?.encode_gauge(&age)?;
        }
        Ok(())
    }

    /// What a device is, as labels of a metric that is always 1.
    fn info(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.devices.is_empty() {
            return Ok(());
        }
        let labels = |view: &DeviceView| {
            [
                ("device", view.name.clone()),
                ("algorithm", view.algorithm.clone()),
                ("role", view.role.word().to_owned()),
                ("managed", view.managed.to_string()),
            ]
        };
        let help = "What the device is.";
        match self.dialect {
            Dialect::Prometheus => {
                let mut family = encoder.encode_descriptor("device_info", help, None, MetricType::Gauge)?;
                for view in &self.devices {
                    family.encode_family(&labels(view))?.encode_gauge(&1u64)?;
                }
            }
            Dialect::OpenMetrics => {
                let mut family = encoder.encode_descriptor("device", help, None, MetricType::Info)?;
                for view in &self.devices {
                    family.encode_info(&labels(view))?;
                }
            }
        }
        Ok(())
    }
}

/// What tells one thing from another; nothing where there is only one.
type Label<'a> = Option<(&'static str, &'a String)>;

/// All values of one metric; nothing at all when there are none.
fn family<'a, T>(
    encoder: &mut DescriptorEncoder<'_>,
    dialect: Dialect,
    metric: &Metric<T>,
    things: &'a [T],
    label: impl Fn(&'a T) -> Label<'a>,
) -> fmt::Result {
    let values: Vec<_> =
        things.iter().filter_map(|thing| Some((label(thing), (metric.value)(thing)?))).collect();
    if values.is_empty() {
        return Ok(());
    }
    let kind = if metric.counter { MetricType::Counter } else { MetricType::Gauge };
    let unit = match metric.unit {
        Unit::Bytes => Some(NamedUnit::Bytes),
        Unit::Pages => Some(NamedUnit::Other("pages".to_owned())),
        Unit::Seconds => Some(NamedUnit::Seconds),
        Unit::None => None,
    };
    match dialect {
        Dialect::OpenMetrics => {
            let mut family = encoder.encode_descriptor(metric.name, metric.help, unit.as_ref(), kind)?;
            let encode = if metric.counter { as_counter } else { as_gauge };
            encode_all(&mut family, values, encode)?;
        }
        Dialect::Prometheus => {
            let unit = unit.map_or_else(String::new, |unit| format!("_{}", unit.as_str()));
            let total = if metric.counter { "_total" } else { "" };
            let name = format!("{}{unit}{total}", metric.name);
            let mut family = encoder.encode_descriptor(&name, metric.help, None, kind)?;
            // The name is complete already, and a gauge is written as it is.
            encode_all(&mut family, values, as_gauge)?;
        }
    }
    Ok(())
}

fn encode_all(
    family: &mut MetricEncoder<'_>,
    values: Vec<(Label<'_>, Value)>,
    encode: fn(&mut MetricEncoder<'_>, Value) -> fmt::Result,
) -> fmt::Result {
    for (label, value) in values {
        match label {
            Some((key, name)) => encode(&mut family.encode_family(&[(key, name.as_str())])?, value)?,
            None => encode(family, value)?,
        }
    }
    Ok(())
}

fn as_gauge(series: &mut MetricEncoder<'_>, value: Value) -> fmt::Result {
    match value {
        Value::Count(count) => series.encode_gauge(&count),
        Value::Real(real) => series.encode_gauge(&real),
    }
}

fn as_counter(series: &mut MetricEncoder<'_>, value: Value) -> fmt::Result {
    type NoLabels = [(&'static str, &'static str); 0];
    match value {
        Value::Count(count) => series.encode_counter::<NoLabels, _, f64>(&count, None),
        Value::Real(real) => series.encode_counter::<NoLabels, _, f64>(&real, None),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::client::fixture;

    fn shown(dialect: Dialect) -> String {
        let mut machine = fixture::machine();
        machine.devices[1].algorithm = "a \"quoted\\\n".to_owned();
        exposition(&machine, &Row::all(&machine), &fixture::policies(), dialect).unwrap()
    }

    /// Name and labels of a sample line, and its value; nothing when a strict reader would refuse it.
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

    /// Reads as strictly as Prometheus' own readers: what belongs to one name is together, announced before, and unique.
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
            fixture::golden(name, &exposition(&machine, &rows, &fixture::policies(), dialect).unwrap());
        }
    }

    #[test]
    fn a_machine_without_devices_has_no_metric_of_devices() {
        let text = exposition(&Snapshot::default(), &[], &Policies::new(), Dialect::Prometheus).unwrap();
        let names: Vec<String> = read(&text, Dialect::Prometheus).into_keys().collect();
        assert_eq!(names, ["zramd_problems"]);
    }

    #[test]
    fn json_has_every_counter() {
        let machine = fixture::machine();
        let value: serde_json::Value =
            serde_json::from_str(&json(&machine, &Row::all(&machine)).unwrap()).unwrap();
        assert_eq!(value["devices"][0]["stats"]["memory"]["same_pages"], 5000);
        assert_eq!(value["devices"][0]["swap_used_bytes"], 1300u64 << 20);
        assert_eq!(value["devices"].as_array().unwrap().len(), 5);
    }
}
