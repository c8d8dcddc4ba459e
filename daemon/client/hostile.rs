//! Names from elsewhere in everything that is printed: they begin no line, and have no escape sequences.

use proptest::prelude::*;

use super::cell::Amounts;
use super::columns::{self, Row};
use super::list::{self, Form};
use super::style::Style;
use super::top_rows::Look;
use super::{fixture, maintain, out, overrides, plan, problems, ramdisk, show, status};
use logic::config::Loaded;
use logic::finding::{Code, Finding, Level};
use logic::origin::Origin;
use logic::overlay::Override;
use logic::plan::Plan;
use logic::ramdisk::Persist;
use logic::ramdisk::status::SaveResult;
use logic::render;
use logic::sample::Snapshot;
use logic::text::printable;

/// Parts of names that hide, colour or break lines, and harmless ones.
fn hostile() -> impl Strategy<Value = String> {
    let parts = [
        "a",
        "ü",
        " ",
        "\\",
        "\n",
        "\r",
        "\t",
        "\x1b[31m",
        "\x1b[0m",
        "\x1b[8m",
        "\x1b]0;x\x07",
        "\x7f",
        "\u{9b}2J",
        "\u{202e}",
        "\u{2066}",
        "\u{200f}",
        "\u{2028}",
        "\u{fffd}",
        "error: ",
        "\n  help: ",
    ];
    proptest::collection::vec(proptest::sample::select(parts.to_vec()), 1..8).prop_map(|parts| parts.concat())
}

/// The machine of the golden files, with this name wherever a name is not from us.
fn machine(name: &str) -> Snapshot {
    let mut snapshot = fixture::machine();
    let text = || name.to_owned();
    for device in &mut snapshot.devices {
        device.algorithm = text();
        device.taken_over = text();
        device.config_section = text();
        device.recompression_algorithms = vec![(1, text())];
        device.backing_device = text();
        if let Some(mount) = &mut device.mount {
            (mount.mount_point, mount.fs_type, mount.options) = (text(), text(), text());
        }
    }
    for disk in &mut snapshot.ramdisks {
        (disk.name, disk.mount_point, disk.fs_type, disk.options) = (text(), text(), text(), text());
        disk.persistence = Persist::Snapshot;
        disk.status.last_save_result = SaveResult::Failed;
        (disk.status.last_save_message, disk.status.load_message) = (text(), text());
        disk.status.set_aside = vec![text(), text()];
    }
    if let Some(zswap) = &mut snapshot.zswap {
        zswap.algorithm = text();
    }
    snapshot.pressure_reason = text();
    for action in &mut snapshot.maintenance.actions {
        (action.reason, action.result) = (text(), text());
    }
    for (_, _, reason) in &mut snapshot.maintenance.skipped {
        *reason = text();
    }
    for setting in &mut snapshot.vm {
        setting.value = text();
    }
    let place = Origin { file: name.into(), key: text(), ..Origin::default() };
    // One of another program on the bus was not made by `new`.
    let received = Finding {
        message: text(),
        remedy: text(),
        ..Finding::new(Level::Warning, Code::FstabLine, name, "", "")
    };
    snapshot.problems = vec![
        Finding::new(Level::Error, Code::WritesFailed, name, name, name),
        Finding::error(place, name).remedy(name),
        received,
    ];
    snapshot
}

/// What each printer makes of it, without colours.
fn printed(name: &str) -> Vec<(&'static str, String)> {
    let (snapshot, style) = (machine(name), Style::default());
    let rows = Row::all(&snapshot);
    let all = columns::choose(None, true).unwrap();
    let (loaded, nothing) = (Loaded::default(), Plan::default());
    let change = (name.to_owned(), name.to_owned(), name.to_owned());
    let overridden = Override {
        object: name.to_owned(),
        key: name.to_owned(),
        value: name.to_owned(),
        configured: Some(name.to_owned()),
        configured_at: Some(name.to_owned()),
        ..Override::default()
    };
    let shown = |properties| show::render(&properties, &[], false);
    let devices = snapshot.devices.iter().map(|device| shown(show::device(device)));
    let mut out = vec![
        ("list", list::render(&rows, &all, Form::default())),
        ("list --bytes", list::render(&rows, &all, Form { amounts: Amounts::Exact, ..Form::default() })),
        ("list --raw", list::render(&rows, &all, Form { raw: true, ..Form::default() })),
        ("status", status::render(&snapshot, &rows, &loaded, &nothing, Some(&fixture::policies()), style)),
        ("top -n", Look::new(None, &snapshot, None).text("12:00:00")),
        ("show", shown(show::machine(snapshot.clone(), &[name.into()], std::slice::from_ref(&overridden)))),
        ("show NAME", devices.collect()),
        ("problems", problems::render(&snapshot.problems, style)),
        ("check", render::render(&snapshot.problems, false)),
        ("plan", plan::text(&[change], &[], &[], style)),
        ("overrides", overrides::text(&[overridden], style)),
        ("maintain", maintain::text(&snapshot.maintenance, false, style)),
        ("ramdisk list", ramdisk::list(&snapshot)),
    ];
    for disk in &snapshot.ramdisks {
        out.push(("ramdisk status", ramdisk::status(disk, 0)));
        out.push(("ramdisk snapshots", ramdisk::snapshots(disk)));
    }
    out
}

proptest! {
    #[test]
    fn a_name_begins_no_line_and_hides_nothing(name in hostile()) {
        for ((printer, text), (_, plain)) in printed(&name).into_iter().zip(printed("x")) {
            // `printable` passes colours: nothing of a name may have come so far.
            prop_assert_eq!(&printable(&text), &text, "{} with {:?}", printer, name);
            prop_assert!(!text.contains(['\x1b', '\t', '\r']), "{} with {:?}: {:?}", printer, name, text);
            prop_assert_eq!(
                text.lines().count(), plain.lines().count(), "{} with {:?}:\n{}\ninstead of\n{}", printer, name, text, plain
            );
        }
    }

    #[test]
    fn json_has_the_name_itself(name in hostile()) {
        let text = out::json(&machine(&name), super::args::Json::Short).unwrap();
        prop_assert_eq!(text.lines().count(), 1);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(value["devices"][1]["mount"]["mount_point"].as_str(), Some(name.as_str()));
        prop_assert_eq!(value["ramdisks"][0]["name"].as_str(), Some(name.as_str()));
    }
}
