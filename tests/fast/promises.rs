//! What 0.1 promises (packaging/docs/stability.md): names on which users, scripts and clients depend only become more.

use std::collections::BTreeSet;
use std::fs;

use crate::support::{golden, repository};
use client::columns::COLUMNS;
use logic::config;
use logic::config::locate::{MAIN, ROOTS, drop_in_prefix};
use logic::config::schema::SectionKind;
use logic::error::ErrorKind;
use logic::exit::STATUSES;
use logic::record::Record;
use serde_json::Value;
use sim::SimMachine;
use sim::kernel::KernelConfig;

/// One promise a line.
const PROMISES: &str = "tests/golden/promises";

fn text(path: &str) -> String {
    fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn promises() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for kind in SectionKind::ALL {
        let section = kind.header();
        for key in kind.keys() {
            all.insert(format!("key {section} {}, by default {}", key.name, key.default));
            all.extend(key.kind.words().iter().map(|word| format!("value {section} {} = {word}", key.name)));
        }
    }
    for root in ROOTS {
        all.insert(format!("path {root}/{MAIN}"));
        all.insert(format!("path {}*.toml", drop_in_prefix(root)));
    }
    all.extend(STATUSES.iter().map(|(status, _)| format!("exit status {} {status:?}", status.code())));
    all.extend(ErrorKind::all().map(|(_, name)| format!("error {name}")));
    all.extend(COLUMNS.iter().map(|column| format!("column {}", column.name)));
    all.extend(between("units/zramd.catalog", "\n-- ", "\n").map(|id| format!("message {id}")));
    all.extend(between("units/org.zramd1.policy", "<action id=\"", "\"").map(|id| format!("action {id}")));
    all.extend(
        between("tests/golden/client/stats.txt", "\n# TYPE ", "\n").map(|one| format!("metric {one}")),
    );
    all.extend(installed());
    all.extend(commands());
    all.extend(setup_commands());
    all.extend(json());
    all
}

/// What is between two texts, at each place.
fn between(path: &str, start: &str, end: &str) -> impl Iterator<Item = String> {
    let found: Vec<String> =
        text(path).split(start).skip(1).map(|rest| rest.split(end).next().unwrap().to_owned()).collect();
    assert!(!found.is_empty(), "{path}: no {start}");
    found.into_iter()
}

/// Programs, and units that administrators enable or name in other units.
fn installed() -> Vec<String> {
    let manifest = text("packaging/manifest");
    let rows = manifest.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter_map(|row| match row[..] {
        [source, place, "0644"] if place.starts_with("/usr/lib/systemd/system/") => {
            let enabled = text(source).contains("\n[Install]\n") || source.ends_with("/zramd-setup@.service");
            enabled.then(|| format!("unit {}", place.rsplit('/').next().unwrap()))
        }
        [_, place @ ("/usr/bin/zramdctl" | "/usr/lib/zramd/zramd-setup"), _] => Some(format!("path {place}")),
        _ => None,
    })
    .collect()
}

/// Commands and options of zramdctl, from its manual page.
fn commands() -> Vec<String> {
    let page = text("packaging/man/zramdctl.1").replace("\\-", "-");
    let (_, rest) = page.split_once("\n.SH COMMANDS\n").unwrap();
    let (commands, _) = rest.split_once("\n.SH EXIT STATUS\n").unwrap();
    let mut found = Vec::new();
    let mut command = "";
    let mut tag = false;
    for line in commands.lines() {
        if let Some(name) = line.strip_prefix(".SS ") {
            command = name;
            found.push(format!("command {command}"));
        } else if line.starts_with(".SH ") {
            // Options that all of them have.
            command = "*";
        } else if tag && line.starts_with("\\fB-") {
            let options =
                line.split("\\fB").skip(1).map(|rest| rest.split("\\fR").next().unwrap().to_owned());
            found.extend(options.map(|option| format!("option {command} {option}")));
        }
        tag = line == ".TP";
    }
    assert!(found.len() > 100, "{found:?}");
    found
}

/// Commands of zramd-setup for people and init scripts, from its help.
fn setup_commands() -> Vec<String> {
    let help = text("daemon/bin/zramd_setup/args.rs");
    let (_, rest) = help.split_once("\nCommands that change the machine").unwrap();
    let (commands, _) = rest.split_once("\nCommands that the daemon uses").unwrap();
    let names = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split([' ', '[']).next());
    let found: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    assert!(found.len() > 5, "{found:?}");
    found.into_iter().map(|name| format!("command zramd-setup {name}")).collect()
}

/// Fields of JSON with their types, and the words in them.
fn json() -> Vec<String> {
    let schema: Value = serde_json::from_str(&text("config/zramdctl.schema.json")).unwrap();
    let mut found = Vec::new();
    for (name, definition) in schema["definitions"].as_object().unwrap() {
        let words = definition["oneOf"].as_array().into_iter().flatten();
        found.extend(
            words.filter_map(|word| word["const"].as_str()).map(|word| format!("json {name} = \"{word}\"")),
        );
        for (field, kind) in definition["properties"].as_object().into_iter().flatten() {
            found.push(format!("json {name}.{field} {}", without_texts(kind)));
        }
        for field in definition["required"].as_array().into_iter().flatten() {
            found.push(format!("json {name}.{} is never missing", field.as_str().unwrap()));
        }
    }
    assert!(found.len() > 300, "{found:?}");
    found
}

/// A type of the schema, without description, bounds and default.
fn without_texts(kind: &Value) -> Value {
    match kind {
        Value::Object(fields) => {
            let left = fields.iter().filter(|(name, _)| {
                !["default", "description", "format", "minimum", "maximum"].contains(&name.as_str())
            });
            left.map(|(name, value)| (name.clone(), without_texts(value))).collect()
        }
        Value::Array(values) => values.iter().map(without_texts).collect(),
        other => other.clone(),
    }
}

/// `UPDATE_GOLDEN=1` adds lines. To take a promise back, its line has to be removed by hand, only before the first release.
#[test]
fn nothing_that_is_promised_is_taken_back() {
    let now = promises();
    let before = fs::read_to_string(repository(PROMISES)).unwrap_or_default();
    let gone: Vec<&str> = before.lines().filter(|line| !now.contains(*line)).collect();
    assert!(gone.is_empty(), "not kept any more:\n{}", gone.join("\n"));
    golden(PROMISES, &now.iter().map(|line| format!("{line}\n")).collect::<String>());
}

/// Whether everything in `before` is also in `now`.
fn has_all(now: &Value, before: &Value) -> bool {
    match (now, before) {
        (Value::Object(now), Value::Object(before)) => {
            before.iter().all(|(name, value)| now.get(name).is_some_and(|now| has_all(now, value)))
        }
        (Value::Array(now), Value::Array(before)) => {
            now.len() == before.len() && now.iter().zip(before).all(|(now, before)| has_all(now, before))
        }
        _ => now == before,
    }
}

/// A configuration with each kind of record.
const SECTIONS: &str = r#"
[zram0]
zram-size = "64MiB"
zram-resident-limit = "32MiB"
compression-algorithm = "zstd(level=3)"
recompression-algorithm = "zstd(level=12)"
swap-priority = 100
[zram1]
zram-size = "64MiB"
mount-point = "/srv/build"
mode = "0750"
[zram2]
zram-size = "64MiB"
fs-type = "none"
[ramdisk.logs]
mount-point = "/srv/logs"
size = "16MiB"
persist = "snapshot"
[vm]
tune = true
swappiness = 150
"#;

/// After an upgrade, devices are managed by the records that the version before has written. `UPDATE_GOLDEN=1` writes those of
/// kinds that are new.
#[test]
fn records_of_the_first_release_are_read() {
    let machine = SimMachine::new(KernelConfig::full());
    machine.change().add_directories("/srv");
    let loaded = config::load(&[("/etc/zramd/zramd.toml".into(), SECTIONS.to_owned())], "");
    assert_eq!(loaded.problems, []);
    for outcome in engine::apply(&mut machine.process(), &loaded).unwrap().outcomes {
        assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
    }
    let made = machine.look().records.clone();
    assert!(made.len() >= 5, "{:?}", made.keys());
    for (name, new) in made {
        let path = repository("tests/golden/records").join(&name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() && !path.exists() {
            fs::write(&path, new).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let record = Record::parse(&name, Ok(&text)).unwrap_or_else(|error| panic!("{error}"));
        let (now, before) = (serde_json::to_value(&record).unwrap(), serde_json::from_str(&text).unwrap());
        assert!(has_all(&now, &before), "{name}: something is lost\n{now:#}");
    }
}
