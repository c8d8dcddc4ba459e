//! The objects on the bus as `monitor` knows them, and the lines for their changes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::args::Json;
use super::job::Finished;
use super::{bus_value, out};
use logic::error::ErrorKind;
use logic::human::human;
use logic::sample::StateView;
use service::ROOT;

/// Properties of an interface, by name.
pub type Properties = Map<String, Value>;
/// Interfaces of objects, by path.
pub type Objects = BTreeMap<String, BTreeMap<String, Properties>>;

/// A signal from the bus.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// An object or interface was added.
    Added(String, BTreeMap<String, Properties>),
    /// An object or some of its interfaces were removed.
    Removed(String, Vec<String>),
    /// Properties of an interface have changed.
    Changed(String, String, Properties),
    /// A job has ended.
    Finished(String, Finished),
    /// Counters of a device.
    Stats(String, Properties),
    /// The daemon has left the bus.
    Left,
    /// The daemon is there again, with these objects.
    Came(Objects),
}

/// One line of output.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Stable identifier of the kind of event.
    pub kind: &'static str,
    /// Its object: `zram0`, `ramdisk.NAME`, `job 3`, or `zramd` for the daemon.
    pub object: String,
    /// The rest of the line as text.
    pub text: String,
    /// The same as JSON.
    pub details: Properties,
}

/// A line as JSON.
#[derive(serde::Serialize)]
struct Line<'a> {
    time: &'a str,
    event: &'a str,
    object: &'a str,
    #[serde(flatten)]
    details: &'a Properties,
}

/// The known objects.
#[derive(Debug, Default)]
pub struct Monitored {
    objects: Objects,
}

const MANAGER: &str = "org.zramd1.Manager";
const DEVICE: &str = "org.zramd1.Device";
const SWAP: &str = "org.zramd1.Swap";
const FILESYSTEM: &str = "org.zramd1.Filesystem";
const RAMDISK: &str = "org.zramd1.RamDisk";
const BENCHMARK: &str = "org.zramd1.Benchmark";
const JOB: &str = "org.zramd1.Job";

impl Event {
    fn new(kind: &'static str, object: String, text: impl Into<String>, details: Value) -> Event {
        let details = match details {
            Value::Object(details) => details,
            _ => Properties::new(),
        };
        Event { kind, object, text: text.into(), details }
    }

    /// The line as text.
    pub fn line(&self, clock: &str) -> String {
        out::escaped(&format!("{clock} {:<6} {}", self.object, self.text), false)
    }

    /// The line as JSON.
    pub fn json(&self, time: &str, form: Json) -> String {
        let line = Line { time, event: self.kind, object: &self.object, details: &self.details };
        // Serializing cannot fail: keys are strings, and values are JSON already.
        out::json(&line, form).unwrap_or_default()
    }
}

impl Monitored {
    /// The initial state.
    pub fn new(objects: Objects) -> Monitored {
        Monitored { objects }
    }

    /// The first line; changes after it are reported.
    pub fn greeting(&self) -> Event {
        let count =
            |interface: &str| self.objects.values().filter(|object| object.contains_key(interface)).count();
        let (devices, disks) = (count(DEVICE), count(RAMDISK));
        let text = format!("watching {devices} zram devices and {disks} RAM disks");
        Event::new("watching", "zramd".to_owned(), text, json!({"devices": devices, "ramdisks": disks}))
    }

    /// Applies a signal, and returns the events.
    pub fn hear(&mut self, news: News) -> Vec<Event> {
        match news {
            News::Added(path, interfaces) => self.added(&path, interfaces),
            News::Removed(path, interfaces) => self.removed(&path, &interfaces),
            News::Changed(path, interface, properties) => self.changed(&path, &interface, properties),
            News::Finished(path, Finished { result, message, error, .. }) => {
                let text = format!("{result}: {message}");
                let error = error.map_or("", ErrorKind::on_the_bus);
                let details = json!({"result": result, "message": message, "error": error});
                vec![Event::new("job-ended", self.name(&path), text, details)]
            }
            News::Stats(path, stats) => {
                let text = stats_text(&stats);
                vec![Event::new("stats", self.name(&path), text, json!({"stats": stats}))]
            }
            News::Left => {
                vec![Event::new(
                    "daemon-gone",
                    "zramd".to_owned(),
                    "left the bus; devices are not affected",
                    Value::Null,
                )]
            }
            News::Came(objects) => {
                self.objects = objects;
                vec![Event::new("daemon-back", "zramd".to_owned(), "is on the bus again", Value::Null)]
            }
        }
    }

    fn property(&self, path: &str, interface: &str, name: &str) -> Option<&Value> {
        self.objects.get(path)?.get(interface)?.get(name)
    }

    /// The printed name of an object.
    fn name(&self, path: &str) -> String {
        let below = path.strip_prefix(ROOT).unwrap_or(path);
        match below.trim_start_matches('/').split_once('/') {
            Some(("device", name)) => name.to_owned(),
            Some(("job", number)) => format!("job {number}"),
            Some(("ramdisk", escaped)) => {
                let name = self.property(path, RAMDISK, "Name").and_then(Value::as_str);
                format!("ramdisk.{}", name.unwrap_or(escaped))
            }
            _ => "zramd".to_owned(),
        }
    }

    fn added(&mut self, path: &str, interfaces: BTreeMap<String, Properties>) -> Vec<Event> {
        let mut events = Vec::new();
        for (interface, properties) in interfaces {
            let object = self.objects.entry(path.to_owned()).or_default();
            // Received twice: in the initial list, and as a signal.
            if object.insert(interface.clone(), properties.clone()).is_some() {
                continue;
            }
            if let Some((kind, text)) = appearance(&interface, &properties) {
                events.push(Event::new(kind, self.name(path), text, json!({"properties": properties})));
            }
        }
        events
    }

    fn removed(&mut self, path: &str, interfaces: &[String]) -> Vec<Event> {
        let name = self.name(path);
        let Some(object) = self.objects.get_mut(path) else { return Vec::new() };
        let gone: Vec<&str> = interfaces
            .iter()
            .filter(|interface| object.remove(interface.as_str()).is_some())
            .map(String::as_str)
            .collect();
        if object.is_empty() {
            self.objects.remove(path);
        }
        // The end of a job is reported by Finished, and a removed swap or file system by the change of the role.
        if gone.contains(&DEVICE) || gone.contains(&RAMDISK) {
            return vec![Event::new("gone", name, "is gone", Value::Null)];
        }
        Vec::new()
    }

    fn changed(&mut self, path: &str, interface: &str, properties: Properties) -> Vec<Event> {
        let name = self.name(path);
        let known = self.objects.entry(path.to_owned()).or_default().entry(interface.to_owned()).or_default();
        let mut events = Vec::new();
        for (property, after) in properties {
            let before = known.insert(property.clone(), after.clone()).unwrap_or(Value::Null);
            if before == after {
                continue;
            }
            match (interface, property.as_str()) {
                (MANAGER, "Problems") => events.extend(problems(&before, &after)),
                (JOB, "Progress") => events.extend(progress(&name, &after)),
                // Reported by the events of Problems, Chosen and Finished.
                (MANAGER, "ProblemDetails") | (BENCHMARK, "Results") | (JOB, _) => {}
                _ => {
                    let of = |value| bus_value::of_property(&property, value);
                    let text = match before {
                        Value::Null => format!("{property} {}", of(&after)),
                        _ => format!("{property} {} -> {}", of(&before), of(&after)),
                    };
                    let details = json!({"interface": interface, "property": property, "before": before, "after": after});
                    events.push(Event::new("changed", name.clone(), text, details));
                }
            }
        }
        events
    }
}

/// The event for an added interface.
fn appearance(interface: &str, properties: &Properties) -> Option<(&'static str, String)> {
    let text = |name: &str| properties.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(match interface {
        DEVICE => match properties.get("State").and_then(|word| StateView::deserialize(word).ok()) {
            Some(StateView::Unused) => ("appeared", "appeared, not set up".to_owned()),
            Some(StateView::Unfinished) => ("appeared", "appeared, being set up".to_owned()),
            _ => {
                let size = properties.get("DiskSizeBytes").and_then(Value::as_u64).unwrap_or(0);
                let words = [text("State"), &human(size), text("Algorithm")].join(", ");
                ("appeared", format!("appeared: {}, {words}", text("Role")))
            }
        },
        RAMDISK => ("appeared", format!("appeared on {}", text("MountPoint"))),
        FILESYSTEM => ("interface", format!("mounted on {} as {}", text("MountPoint"), text("FsType"))),
        SWAP => {
            let active = properties.get("Active") == Some(&Value::Bool(true));
            let priority = properties.get("Priority").and_then(Value::as_i64).unwrap_or(-1);
            let state = if active { format!("on, priority {priority}") } else { "off".to_owned() };
            ("interface", format!("is swap ({state})"))
        }
        JOB => match text("Object") {
            "" => ("job-started", format!("{} begins", text("Type"))),
            object => ("job-started", format!("{} of {object} begins", text("Type"))),
        },
        _ => return None,
    })
}

/// New problems, and those that are gone. Problems are compared by code and object, because the text has changing figures.
fn problems(before: &Value, after: &Value) -> Vec<Event> {
    let list = |value: &Value| -> BTreeMap<(String, String), String> {
        let rows = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let text =
            |row: &Value, at: usize| row.get(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        rows.iter().map(|row| ((text(row, 0), text(row, 1)), text(row, 2))).collect()
    };
    let (before, after) = (list(before), list(after));
    let event = |kind, (code, object): &(String, String), message: &str, text: String| {
        let name = if object.is_empty() { "machine" } else { object };
        Event::new(kind, name.to_owned(), text, json!({"code": code, "message": message}))
    };
    let come = after
        .iter()
        .filter(|(key, _)| !before.contains_key(*key))
        .map(|(key, message)| event("problem", key, message, format!("problem {}: {message}", key.0)));
    let gone = before
        .iter()
        .filter(|(key, _)| !after.contains_key(*key))
        .map(|(key, message)| event("problem-gone", key, message, format!("no longer a problem: {message}")));
    come.chain(gone).collect()
}

/// Progress of a job, except its end.
fn progress(name: &str, share: &Value) -> Option<Event> {
    let share = share.as_f64().filter(|share| *share > 0.0 && *share < 1.0)?;
    let text = format!("{:.0} %", share * 100.0);
    Some(Event::new("job-progress", name.to_owned(), text, json!({"progress": share})))
}

fn stats_text(stats: &Properties) -> String {
    let number = |name: &str| stats.get(name).and_then(Value::as_u64).unwrap_or(0);
    let bytes = |name: &str| human(number(name));
    let (gain, balance) =
        if number("LossBytes") > 0 { ("lost", "LossBytes") } else { ("saved", "SavedBytes") };
    let ratio = stats.get("CompressionRatio").and_then(Value::as_f64).unwrap_or(0.0);
    format!(
        "stored {} in {}, ratio {ratio:.2}, {gain} {}, read {}, written {}",
        bytes("OriginalDataBytes"),
        bytes("MemoryUsedBytes"),
        bytes(balance),
        bytes("ReadBytes"),
        bytes("WrittenBytes")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Properties {
        match value {
            Value::Object(map) => map,
            _ => Properties::new(),
        }
    }

    fn path(below: &str) -> String {
        format!("{ROOT}{below}")
    }

    fn device(state: &str) -> Properties {
        map(json!({"Role": "swap", "State": state, "DiskSizeBytes": 64 << 20, "Algorithm": "zstd"}))
    }

    /// Lines for a sequence of signals.
    fn lines(news: Vec<News>) -> Vec<String> {
        let objects = [(path("/device/zram0"), [(DEVICE.to_owned(), device("active"))].into())].into();
        let mut monitored = Monitored::new(objects);
        news.into_iter()
            .flat_map(|news| monitored.hear(news))
            .map(|event| event.line("12:00:00.000"))
            .collect()
    }

    #[test]
    fn changed_properties_have_their_previous_value() {
        let changed = |value| News::Changed(path("/device/zram0"), DEVICE.to_owned(), map(value));
        assert_eq!(
            lines(vec![
                changed(json!({"State": "ready", "DiskSizeBytes": 1 << 30})),
                changed(json!({"State": "ready"})),
                changed(json!({"ConfigSection": "zram0"})),
            ]),
            [
                "12:00:00.000 zram0  DiskSizeBytes 64.0 MiB -> 1.0 GiB",
                "12:00:00.000 zram0  State active -> ready",
                "12:00:00.000 zram0  ConfigSection zram0",
            ]
        );
    }

    #[test]
    fn objects_come_and_go_once() {
        let zram1 = path("/device/zram1");
        let disk = path("/ramdisk/a_2db");
        let add = |path: &String, interface: &str, value| {
            News::Added(path.clone(), [(interface.to_owned(), map(value))].into())
        };
        assert_eq!(
            lines(vec![
                add(&path("/device/zram0"), DEVICE, Value::Object(device("active"))),
                add(&zram1, DEVICE, Value::Object(device("active"))),
                add(&zram1, SWAP, json!({"Active": true, "Priority": 100})),
                add(&disk, RAMDISK, json!({"Name": "a-b", "MountPoint": "/srv"})),
                News::Removed(zram1.clone(), vec![SWAP.to_owned()]),
                News::Removed(zram1.clone(), vec![DEVICE.to_owned()]),
                News::Removed(zram1, vec![DEVICE.to_owned()]),
                News::Removed(disk, vec![RAMDISK.to_owned()]),
            ]),
            [
                "12:00:00.000 zram1  appeared: swap, active, 64.0 MiB, zstd",
                "12:00:00.000 zram1  is swap (on, priority 100)",
                "12:00:00.000 ramdisk.a-b appeared on /srv",
                "12:00:00.000 zram1  is gone",
                "12:00:00.000 ramdisk.a-b is gone",
            ]
        );
    }

    #[test]
    fn a_job_is_reported_from_its_beginning_to_its_end() {
        let job = path("/job/7");
        let begun = map(json!({"Type": "resize", "Object": "zram0"}));
        let progress = map(json!({"Progress": 0.25}));
        let result = map(json!({"Progress": 1.0, "Result": "failed"}));
        let ended = Finished {
            result: "failed".into(),
            message: "zram0: no".into(),
            error: Some(ErrorKind::Unsafe),
            outcomes: Vec::new(),
        };
        assert_eq!(
            lines(vec![
                News::Added(job.clone(), [(JOB.to_owned(), begun)].into()),
                News::Changed(job.clone(), JOB.to_owned(), progress),
                News::Changed(job.clone(), JOB.to_owned(), result),
                News::Finished(job.clone(), ended),
                News::Removed(job, vec![JOB.to_owned()]),
            ]),
            [
                "12:00:00.000 job 7  resize of zram0 begins",
                "12:00:00.000 job 7  25 %",
                "12:00:00.000 job 7  failed: zram0: no",
            ]
        );
    }

    #[test]
    fn problems_are_the_same_by_code_and_object() {
        let manager = |value| News::Changed(ROOT.to_owned(), MANAGER.to_owned(), map(value));
        assert_eq!(
            lines(vec![
                manager(json!({"Problems": [["swap-off", "zram0", "zram0 is off"], ["zswap", "", "1 %"]]})),
                manager(json!({"Problems": [["zswap", "", "2 %"]]})),
                manager(json!({"State": "degraded"})),
            ]),
            [
                "12:00:00.000 zram0  problem swap-off: zram0 is off",
                "12:00:00.000 machine problem zswap: 1 %",
                "12:00:00.000 zram0  no longer a problem: zram0 is off",
                "12:00:00.000 zramd  State degraded",
            ]
        );
    }

    #[test]
    fn the_first_line_counts_the_objects() {
        let objects = [(path("/device/zram0"), [(DEVICE.to_owned(), device("active"))].into())].into();
        let line = Monitored::new(objects).greeting().line("12:00:00.000");
        assert_eq!(line, "12:00:00.000 zramd  watching 1 zram devices and 0 RAM disks");
    }

    #[test]
    fn json_lines_have_time_event_and_object() {
        let mut monitored = Monitored::default();
        let changed = News::Changed(path("/device/zram0"), DEVICE.to_owned(), map(json!({"State": "ready"})));
        let event = monitored.hear(changed).remove(0);
        let line: Value =
            serde_json::from_str(&event.json("2026-11-21T12:00:00.000+00:00", Json::Short)).unwrap();
        assert_eq!(
            line,
            json!({
                "time": "2026-11-21T12:00:00.000+00:00", "event": "changed", "object": "zram0",
                "interface": DEVICE, "property": "State", "before": null, "after": "ready"
            })
        );
    }
}
