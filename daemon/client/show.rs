//! `show`: properties as `Key=Value`, with the names and values of the bus, in a stable order.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, json};

use super::args::{Cli, Json};
use super::columns::Row;
use super::out::escaped;
use super::{connect, out, read, select};
use engine::Error;
use logic::exit::ExitStatus;
use logic::overlay::Override;
use logic::property::{Machine, Properties, Value};
use logic::sample::{DeviceView, MountView, RamdiskView, RoleView, Snapshot, SwapView};
use logic::text::nearest;
use logic::view::View;
use service::names::{device_path_or_none, ramdisk_path_or_none};

/// Properties in their order: name and value.
pub type Lines = Vec<(&'static str, Value)>;

/// Form of the result.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// Only the values.
    pub bare: bool,
    pub json: Json,
}

pub fn run(cli: &Cli, name: Option<&str>, wanted: &[String], form: Form) -> Result<ExitStatus, Error> {
    if let Some(unknown) = wanted.iter().find(|name| !is_known(name)) {
        out::error(&format!("there is no property {unknown:?}{}", meant(unknown)));
        return Ok(ExitStatus::Usage);
    }
    let (snapshot, loaded) = read::snapshot(cli.config.as_ref())?;
    let properties = match name {
        None => machine(snapshot, &loaded.files, &loaded.merged.overrides),
        Some(name) => {
            let row = Row::all(&snapshot).into_iter().find(|row| select::is(name, *row));
            let Some(row) = row else {
                return Ok(select::report(&[name]));
            };
            match row {
                Row::Device(view) => device(view),
                Row::Zswap(_) => {
                    let all = machine(snapshot, &[], &[]);
                    all.into_iter().filter(|(name, _)| name.starts_with("Zswap")).collect()
                }
                Row::Ramdisk(view) => {
                    let next_save_usec = connect::next_save(view);
                    lines(&RamdiskView { next_save_usec, ..view.clone() }).collect()
                }
            }
        }
    };
    out::result(form.json, &document(&properties, wanted), || render(&properties, wanted, form.bare))?;
    Ok(ExitStatus::Success)
}

/// `Key=Value` lines: all, or the wanted ones in the order in which they are named. A list with columns has several, an empty one too.
pub fn render(properties: &Lines, wanted: &[String], bare: bool) -> String {
    let lines = |(name, value): &(&str, Value)| -> String {
        let mut values = texts(value);
        if values.is_empty() {
            values.push(String::new());
        }
        let line = |value: String| if bare { format!("{value}\n") } else { format!("{name}={value}\n") };
        values.into_iter().map(line).collect()
    };
    if wanted.is_empty() {
        return properties.iter().map(lines).collect();
    }
    let named = |wanted: &String| -> String {
        properties.iter().filter(|(name, _)| name == wanted).map(lines).collect()
    };
    wanted.iter().map(named).collect()
}

/// The same as JSON, with the types of the bus.
fn document(properties: &Lines, wanted: &[String]) -> Map<String, serde_json::Value> {
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let properties = properties.iter().filter(|(name, _)| is_wanted(name));
    properties.map(|(name, value)| ((*name).to_owned(), json(value))).collect()
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Bool(value) => json!(value),
        Value::I32(number) => json!(number),
        Value::U32(number) => json!(number),
        Value::U64(number) => json!(number),
        Value::F64(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::Device(name) => json!(device_path_or_none(name)),
        Value::Ramdisk(name) => json!(ramdisk_path_or_none(name)),
        Value::Texts(items) => json!(items),
        Value::Numbered(items) => json!(items),
        Value::Named(items) => json!(items),
        Value::Counts(items) => json!(items),
        Value::Threes(rows) => json!(rows),
        Value::Fours(rows) => json!(rows),
        Value::Fives(rows) => json!(rows),
        Value::Settings(settings) => json!(settings),
    }
}

/// The properties of the machine, without the state of the daemon and what `doctor` shows.
pub fn machine(snapshot: Snapshot, config_files: &[PathBuf], overrides: &[Override]) -> Lines {
    let files = config_files.iter().map(|path| path.display().to_string()).collect();
    let view = View { files, overrides: overrides.to_vec(), ..View::default() };
    let machine = Machine { snapshot: Arc::new(snapshot), view: Arc::new(view), ..Machine::default() };
    lines(&machine).filter(|(name, _)| !ONLY_ON_THE_BUS.contains(name)).collect()
}

const ONLY_ON_THE_BUS: [&str; 3] = ["State", "ProblemDetails", "Configuration"];

/// The properties of a device, and of the swap or file system on it.
pub fn device(view: &DeviceView) -> Lines {
    let swap = (view.role == RoleView::Swap).then_some(view.swap);
    lines(view).chain(swap.iter().flat_map(lines)).chain(view.mount.iter().flat_map(lines)).collect()
}

/// The values of a table of properties.
fn lines<T: Properties>(state: &T) -> impl Iterator<Item = (&'static str, Value)> {
    T::all().map(|property| (property.name, property.value(state)))
}

/// A value as text; several for a list with columns, the last of which may contain blanks.
fn texts(value: &Value) -> Vec<String> {
    let text = match value {
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::I32(number) => number.to_string(),
        Value::U32(number) => number.to_string(),
        // As in systemctl.
        Value::U64(u64::MAX) => "infinity".to_owned(),
        Value::U64(number) => number.to_string(),
        Value::F64(number) => number.to_string(),
        Value::Text(text) => escaped(text, false),
        Value::Device(name) => device_path_or_none(name),
        Value::Ramdisk(name) => ramdisk_path_or_none(name),
        Value::Texts(items) => words(items),
        Value::Numbered(items) => words(items.iter().map(|(number, item)| format!("{number}:{item}"))),
        Value::Named(items) => words(items.iter().map(|(name, value)| format!("{name}={value}"))),
        Value::Counts(items) => words(items.iter().map(|(name, count)| format!("{name}={count}"))),
        Value::Threes(rows) => return rows.iter().map(|(a, b, c)| row([a, b, c])).collect(),
        Value::Fours(rows) => return rows.iter().map(|(a, b, c, d)| row([a, b, c, d])).collect(),
        Value::Fives(rows) => return rows.iter().map(|(a, b, c, d, e)| row([a, b, c, d, e])).collect(),
        // `cat-config` shows them.
        Value::Settings(_) => return Vec::new(),
    };
    vec![text]
}

/// Columns of a row; an empty one is `-`.
fn row<const N: usize>(columns: [&String; N]) -> String {
    let last = N - 1;
    let column = |(index, text): (usize, &&String)| {
        if text.is_empty() { "-".to_owned() } else { escaped(text, index < last) }
    };
    columns.iter().enumerate().map(column).collect::<Vec<_>>().join(" ")
}

/// A list on one line; blanks in items are escaped.
fn words(items: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    items.into_iter().map(|item| escaped(item.as_ref(), true)).collect::<Vec<_>>().join(" ")
}

/// The names of all properties.
pub fn names() -> impl Iterator<Item = &'static str> {
    let machine = Machine::all().map(|property| property.name);
    machine
        .filter(|name| !ONLY_ON_THE_BUS.contains(name))
        .chain(DeviceView::all().map(|property| property.name))
        .chain(Option::<SwapView>::all().map(|property| property.name))
        .chain(MountView::all().map(|property| property.name))
        .chain(RamdiskView::all().map(|property| property.name))
}

fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// A hint with the properties that contain the word, or else the most similar one.
fn meant(name: &str) -> String {
    let word = name.to_lowercase();
    let is_it = |known: &&str| known.eq_ignore_ascii_case(name);
    let contains = |known: &&str| !word.is_empty() && known.to_lowercase().contains(&word);
    let mut meant: Vec<&str> = match names().find(is_it) {
        Some(known) => vec![known],
        None => names().filter(contains).collect(),
    };
    if meant.is_empty() {
        meant = nearest(name, names()).into_iter().collect();
    }
    meant.dedup();
    if meant.is_empty() { String::new() } else { format!("; did you mean {}?", meant.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use logic::overlay::Command;
    use logic::ramdisk::omitted::Reason;

    #[test]
    fn properties_are_as_in_the_golden_files() {
        let snapshot = fixture::machine();
        let found = Override {
            object: "zram0".to_owned(),
            key: "zram-size".to_owned(),
            value: "\"96MiB\"".to_owned(),
            command: Some(Command::Resize),
            ..Override::default()
        };
        let files = ["/etc/zramd/zramd.toml".into(), "/etc/zramd/zramd.toml.d/a b.toml".into()];
        fixture::golden("show", &render(&machine(snapshot.clone(), &files, &[found]), &[], false));
        fixture::golden("show-swap", &render(&device(&fixture::swap()), &[], false));
        fixture::golden("show-filesystem", &render(&device(&fixture::filesystem()), &[], false));
        fixture::golden("show-ramdisk", &render(&lines(&snapshot.ramdisks[1]).collect(), &[], false));
    }

    #[test]
    fn as_json_values_have_the_types_of_the_bus() {
        let document = document(&device(&fixture::swap()), &[]);
        assert_eq!((&document["Name"], &document["Managed"]), (&json!("zram0"), &json!(true)));
        assert!(document["SavedBytes"].is_u64() && document["CompressionRatio"].is_f64(), "{document:?}");
        let wanted = ["Role".to_owned()];
        assert_eq!(
            super::document(&device(&fixture::swap()), &wanted),
            Map::from_iter([("Role".to_owned(), json!("swap"))])
        );
    }

    #[test]
    fn omitted_entries_are_counted_by_reason() {
        let mut view = RamdiskView::default();
        view.status.last_save_omitted = [(Reason::Unreadable, 1), (Reason::Lease, 2)].into();
        let wanted = ["LastSaveOmitted".to_owned()];
        assert_eq!(render(&lines(&view).collect(), &wanted, true), "lease=2 unreadable=1\n");
    }

    #[test]
    fn requested_properties_keep_their_order() {
        let wanted = ["Role".to_owned(), "Name".to_owned(), "MountPoint".to_owned()];
        let properties = device(&fixture::swap());
        assert_eq!(render(&properties, &wanted, false), "Role=swap\nName=zram0\n");
        assert_eq!(render(&properties, &wanted, true), "swap\nzram0\n");
    }

    #[test]
    fn names_that_do_not_exist_are_noticed() {
        assert!(is_known("SavedBytes") && is_known("FreeInodes") && is_known("Priority"));
        assert!(!is_known("savedbytes"));
        assert_eq!(meant("savedbytes"), "; did you mean SavedBytes?");
        assert_eq!(meant("PeakBytes"), "; did you mean MemoryPeakBytes?");
        assert_eq!(meant("Frobnication"), "");
    }

    /// Names in JSON are those of the bus, in lower case: the end of the path to the value.
    #[test]
    fn names_are_those_of_json() {
        fn paths(value: &serde_json::Value, path: &str, found: &mut Vec<String>) {
            match value {
                serde_json::Value::Object(members) => members.iter().for_each(|(key, value)| {
                    let path = format!("{path}_{key}");
                    paths(value, &path, found);
                    found.push(path);
                }),
                serde_json::Value::Array(items) => items.iter().for_each(|item| paths(item, path, found)),
                _ => {}
            }
        }
        // Sums, counts and presence of what is in JSON, and what is not part of it.
        let others = [
            "TotalOriginalBytes",
            "TotalCompressedBytes",
            "TotalMemoryUsedBytes",
            "SnapshotCount",
            "Active",
            "Backend",
            "NextSaveTimestamp",
            "Version",
            "ConfigFiles",
            "Overrides",
        ];
        let mut found = Vec::new();
        paths(&serde_json::to_value(fixture::machine()).unwrap(), "", &mut found);
        for name in names().filter(|name| !others.contains(name)) {
            let key = name.to_lowercase();
            assert!(found.iter().any(|path| path.replace('_', "").ends_with(&key)), "{name}");
        }
    }
}
