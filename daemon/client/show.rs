//! `show`: properties as `Key=Value`, with the names and values of the bus, in a stable order.

use std::path::PathBuf;

use super::args::Cli;
use super::columns::Row;
use super::out::escaped;
use super::{connect, out, read, select};
use engine::Error;
use logic::exit::ExitStatus;
use logic::figure::{FIGURES, Value};
use logic::overlay::{Command, Override};
use logic::sample::{DeviceView, DiskView, MountView, RoleView, Snapshot, SwapView};
use logic::text::nearest;
use logic::upkeep::Action;
use logic::vm::VmView;
use service::names::device_path_or_none;

/// Properties in their order: name and value.
pub type Properties = Vec<(&'static str, String)>;

pub fn run(cli: &Cli, name: Option<&str>, wanted: &[String], bare: bool) -> Result<ExitStatus, Error> {
    if let Some(unknown) = wanted.iter().find(|name| !is_known(name)) {
        out::error(&format!("there is no property {unknown:?}{}", meant(unknown)));
        return Ok(ExitStatus::Usage);
    }
    let (snapshot, loaded) = read::snapshot(cli.config.as_ref())?;
    let properties = match name {
        None => machine(&snapshot, &loaded.files, &loaded.merged.overrides),
        Some(name) => {
            let row = Row::all(&snapshot).into_iter().find(|row| select::is(name, *row));
            let Some(row) = row else {
                return Ok(select::report(&[name]));
            };
            match row {
                Row::Device(view) => device(view),
                Row::Disk(view) => disk(view, connect::next_save(view)),
            }
        }
    };
    out::text(&render(&properties, wanted, bare));
    Ok(ExitStatus::Success)
}

/// `Key=Value` lines: all, or the wanted ones in the order in which they are named.
pub fn render(properties: &Properties, wanted: &[String], bare: bool) -> String {
    let line = |(name, value): &(&str, String)| {
        if bare { format!("{value}\n") } else { format!("{name}={value}\n") }
    };
    if wanted.is_empty() {
        return properties.iter().map(line).collect();
    }
    let named = |wanted: &String| -> String {
        properties.iter().filter(|(name, _)| name == wanted).map(line).collect()
    };
    wanted.iter().map(named).collect()
}

/// Properties of the machine, as in `org.zramd1.Manager`, without the state of the daemon.
pub fn machine(snapshot: &Snapshot, config_files: &[PathBuf], overrides: &[Override]) -> Properties {
    let mut all = vec![("Version", env!("CARGO_PKG_VERSION").to_owned())];
    for found in &snapshot.problems {
        let object = if found.object.is_empty() { "-".to_owned() } else { escaped(&found.object, true) };
        all.push(("Problems", format!("{} {object} {}", found.code, escaped(&found.message, false))));
    }
    if snapshot.problems.is_empty() {
        all.push(("Problems", String::new()));
    }
    let algorithms = snapshot.devices.first().map(|device| device.available_algorithms.as_slice());
    let files: Vec<String> = config_files.iter().map(|path| path.display().to_string()).collect();
    let report = &snapshot.maintenance;
    let skipped: Vec<String> =
        report.skipped.iter().map(|(device, policy, why)| format!("{device}:{policy}:{why}")).collect();
    all.extend([
        ("Capabilities", words(&snapshot.capabilities)),
        ("SupportedAlgorithms", words(algorithms.unwrap_or_default())),
        ("ConfigFiles", words(&files)),
        ("Overrides", words(&overrides.iter().map(overridden).collect::<Vec<_>>())),
        ("VmSettings", words(&snapshot.vm.iter().map(setting).collect::<Vec<_>>())),
        ("PressureLevel", snapshot.pressure.word().to_owned()),
        ("PressureReason", snapshot.pressure_reason.clone()),
        ("LastMaintenanceMonotonic", report.ended_monotonic_usec.to_string()),
        ("MaintenanceActions", words(&report.actions.iter().map(action).collect::<Vec<_>>())),
        ("MaintenanceSkipped", words(&skipped)),
        ("WritebackBudgetLeftBytes", limit(report.budget.map(|budget| budget.left_bytes))),
        ("WritebackTotalBytes", report.budget.map_or(0, |budget| budget.total_bytes).to_string()),
        ("TotalOriginalBytes", snapshot.total(|stats| stats.memory.orig_data_size).to_string()),
        ("TotalCompressedBytes", snapshot.total(|stats| stats.memory.compr_data_size).to_string()),
        ("TotalMemoryUsedBytes", snapshot.total(|stats| stats.memory.mem_used_total).to_string()),
    ]);
    all
}

/// `zram0:recompress:idle:REASON:RESULT`.
fn action(action: &Action) -> String {
    let Action { device, action, pages, reason, result, .. } = action;
    format!("{device}:{action}:{pages}:{reason}:{result}")
}

/// A limit; `infinity` for none, as in systemctl.
fn limit(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "infinity".to_owned(), |bytes| bytes.to_string())
}

/// `zram0:zram-size:VALUE:CONFIGURED:COMMAND`.
fn overridden(found: &Override) -> String {
    let configured = found.configured.as_deref().unwrap_or_default();
    let command = found.command.map_or("", Command::words);
    [&found.object, &found.key, &found.value, configured, command].join(":")
}

/// `vm.swappiness=150,150,60`: current value, value set by zramd, previous value.
fn setting(view: &VmView) -> String {
    format!("{}={},{},{}", view.name, view.value, view.set_to, view.before)
}

/// Properties of a device: those of `org.zramd1.Device` and GetStats, and of `org.zramd1.Swap` or `org.zramd1.Filesystem`.
pub fn device(view: &DeviceView) -> Properties {
    let parameters: Vec<String> =
        view.algorithm_parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let secondary: Vec<String> =
        view.recompression_algorithms.iter().map(|(priority, name)| format!("{priority}:{name}")).collect();
    let mut all = vec![
        ("Name", view.name.clone()),
        ("DeviceNumber", view.device_number.to_string()),
        ("Managed", yes_no(view.managed)),
        ("Role", view.role.word().to_owned()),
        ("State", view.state.word().to_owned()),
        ("ConfigSection", view.config_section.clone()),
        ("DiskSizeBytes", view.disk_size_bytes.to_string()),
        ("MemoryLimitBytes", view.memory_limit_bytes.to_string()),
        ("Algorithm", view.algorithm.clone()),
        ("AlgorithmReason", view.algorithm_reason.word().to_owned()),
        ("AlgorithmParameters", words(&parameters)),
        ("RecompressionAlgorithms", words(&secondary)),
        ("BackingDevice", escaped(&view.backing_device, false)),
        ("WritebackLimitBytes", limit(view.writeback_limit_bytes)),
    ];
    all.extend(FIGURES.iter().map(|figure| (figure.name, value(figure.value(view)))));
    if view.role == RoleView::Swap {
        all.extend(swap(view.swap));
    }
    if let Some(mount) = &view.mount {
        all.extend(filesystem(mount));
    }
    all
}

fn value(value: Value) -> String {
    match value {
        Value::Count(count) => count.to_string(),
        Value::Real(quotient) => quotient.to_string(),
    }
}

/// As in `org.zramd1.Swap`.
fn swap(view: Option<SwapView>) -> Properties {
    vec![
        ("Active", yes_no(view.is_some())),
        ("Priority", view.map_or(-1, |swap| swap.priority).to_string()),
        ("UsedBytes", view.map_or(0, |swap| swap.used_bytes).to_string()),
        ("SizeBytes", view.map_or(0, |swap| swap.size_bytes).to_string()),
    ]
}

/// As in `org.zramd1.Filesystem`.
fn filesystem(view: &MountView) -> Properties {
    vec![
        ("MountPoint", escaped(&view.mount_point, false)),
        ("FsType", view.fs_type.clone()),
        ("Options", escaped(&view.options, false)),
        ("SizeBytes", view.size_bytes.to_string()),
        ("UsedBytes", view.used_bytes.to_string()),
    ]
}

/// Properties of a disk, as in `org.zramd1.RamDisk`.
pub fn disk(view: &DiskView, next_save_usec: u64) -> Properties {
    let omitted: Vec<String> = view
        .status
        .last_save_omitted
        .iter()
        .map(|(reason, count)| format!("{}={count}", reason.word()))
        .collect();
    vec![
        ("Name", view.name.clone()),
        ("MountPoint", escaped(&view.mount_point, false)),
        ("Backend", view.backend().to_owned()),
        ("FsType", view.fs_type.clone()),
        ("Options", escaped(&view.options, false)),
        ("Device", device_path_or_none(&view.device)),
        ("SizeBytes", view.size_bytes.to_string()),
        ("UsedBytes", view.used_bytes.to_string()),
        ("FreeBytes", view.free_bytes.to_string()),
        ("FreeInodes", view.free_inodes.to_string()),
        ("Persistence", view.persistence.word().to_owned()),
        ("LoadState", view.status.load_state.word().to_owned()),
        ("Generation", view.status.generation.to_string()),
        ("LastSaveTimestamp", view.status.last_save_usec.to_string()),
        ("NextSaveTimestamp", next_save_usec.to_string()),
        ("LastSaveResult", view.status.last_save_result.word().to_owned()),
        ("LastSaveOmitted", words(&omitted)),
        ("StoreBytes", view.status.store_bytes.to_string()),
        ("SnapshotCount", view.status.snapshots.len().to_string()),
    ]
}

/// The names of all properties.
pub fn names() -> impl Iterator<Item = &'static str> {
    let all = [
        machine(&Snapshot::default(), &[], &[]),
        device(&DeviceView::default()),
        swap(None),
        filesystem(&MountView::default()),
        disk(&DiskView::default(), 0),
    ];
    all.into_iter().flatten().map(|(name, _)| name)
}

fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// A hint with the most similar property name.
fn meant(name: &str) -> String {
    nearest(name, names()).map(|known| format!("; did you mean {known}?")).unwrap_or_default()
}

fn yes_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// A list on one line; blanks in items are escaped.
fn words(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| escaped(item, true)).collect();
    items.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
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
        fixture::golden("show", &render(&machine(&snapshot, &files, &[found]), &[], false));
        fixture::golden("show-swap", &render(&device(&fixture::swap()), &[], false));
        fixture::golden("show-filesystem", &render(&device(&fixture::filesystem()), &[], false));
        fixture::golden("show-disk", &render(&disk(&snapshot.disks[1], 0), &[], false));
    }

    #[test]
    fn omitted_entries_are_counted_by_reason() {
        let mut view = DiskView::default();
        view.status.last_save_omitted = [(Reason::Unreadable, 1), (Reason::Lease, 2)].into();
        let wanted = ["LastSaveOmitted".to_owned()];
        assert_eq!(render(&disk(&view, 0), &wanted, true), "lease=2 unreadable=1\n");
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
        assert_eq!(meant("Frobnication"), "");
    }

    /// The interfaces on the bus are defined separately, and must have the same names.
    #[test]
    fn names_are_those_of_the_bus() {
        let bus = |text: &str| -> Vec<String> {
            text.split("#[zbus(property").skip(1).map(function_name).collect()
        };
        let of = |properties: &Properties| -> Vec<String> {
            properties.iter().map(|(name, _)| (*name).to_owned()).collect()
        };
        let source = include_str!("../service/bus/device.rs");
        let mut expected = bus(source);
        expected.extend(FIGURES.iter().map(|figure| figure.name.to_owned()));
        let found = of(&device(&DeviceView::default()));
        // A path of an object, which only the bus has.
        for name in expected.iter().filter(|name| *name != "RamDisk") {
            assert!(found.contains(name), "{name} is missing");
        }
        for name in &found {
            assert!(expected.contains(name), "{name} is not on the bus");
        }
        assert_eq!(of(&swap(None)), bus(include_str!("../service/bus/swap.rs")));
        assert_eq!(of(&filesystem(&MountView::default())), bus(include_str!("../service/bus/filesystem.rs")));
        assert_eq!(of(&disk(&DiskView::default(), 0)), bus(include_str!("../service/bus/ramdisk.rs")));
        let mut manager = bus(include_str!("../service/bus/manager.rs"));
        // `doctor` has the details of problems.
        manager.retain(|name| !["State", "ProblemDetails"].contains(&name.as_str()));
        assert_eq!(of(&machine(&Snapshot::default(), &[], &[])), manager);
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
            let mut key = String::new();
            for letter in name.chars() {
                if letter.is_uppercase() {
                    key.push('_');
                }
                key.extend(letter.to_lowercase());
            }
            assert!(found.iter().any(|path| path.ends_with(&key)), "{name}");
        }
    }

    /// `original_data_bytes` after an attribute; zbus derives the property name from it.
    fn function_name(part: &str) -> String {
        let (_, rest) = part.split_once("fn ").unwrap();
        let name = rest.split('(').next().unwrap();
        name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
    }
}
