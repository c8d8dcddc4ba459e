//! Configuration files and the kernel command line, from text to units.

use std::path::PathBuf;

use logic::config::settings::{BackingSettings, MountSettings, Settings};
use logic::config::{self, Loaded, edit, enabled_by_cmdline};
use logic::facts::Facts;
use logic::finding::Level;
use logic::origin::Origin;
use logic::overlay::{self, Overlay};
use logic::plan::{self, Activation, Decision, report};
use logic::proc::Memory;
use logic::render;
use logic::request::{Purpose, Request};
use logic::unit::ramdisk::ramdisk_of_unit;
use logic::unit::{Contents, HEAD, activating_unit, unit_files};

/// Files separated by NUL bytes, read in this order.
pub fn config(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let files: Vec<(PathBuf, String)> = text
        .split('\0')
        .enumerate()
        .map(|(index, text)| (format!("{index}.toml").into(), text.to_owned()))
        .collect();
    let loaded = config::load(&files, "");
    assert_eq!(config::load(&files, ""), loaded);
    for problem in &loaded.problems {
        assert!(!problem.message.is_empty() && problem.line() > 0, "{problem:?}");
        is_inside(problem.place.as_ref().unwrap(), &files);
        assert!(!problem.one_line().contains(char::is_control), "{problem:?}");
    }
    for colour in [false, true] {
        assert!(!render::render(&loaded.problems, colour).is_empty());
    }
    only_sound_sections(&loaded);
    sound(&loaded.settings, &files);
    planned(&loaded);
    for (_, text) in &files {
        edited(text);
    }
}

/// A key that is added leaves all lines as they are, and can be removed again.
fn edited(text: &str) {
    for section in ["zram0", "ramdisk.a b"] {
        let Ok(added) = edit::change(text, section, "added", Some("5")) else { continue };
        let mut lines = added.lines();
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        assert!(text.lines().all(|line| lines.any(|found| found == line)), "{text:?}: {added:?}");
        edit::change(&added, section, "added", None).unwrap();
    }
    edit::change(text, "zram0", "zram-size", None).ok();
}

/// The place is inside the file, and the quoted line is the line there.
fn is_inside(origin: &Origin, files: &[(PathBuf, String)]) {
    let (_, text) = files.iter().find(|(file, _)| *file == origin.file).unwrap();
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let line = text.split('\n').nth(origin.line as usize - 1).unwrap();
    assert_eq!(line.strip_suffix('\r').unwrap_or(line), &*origin.source_line);
    let width = origin.source_line.chars().count();
    assert!(origin.column >= 1 && origin.column as usize <= width + 1, "{origin:?}");
    // At least one character is underlined, also at the end of a line.
    assert!(origin.width >= 1, "{origin:?}");
    assert!((origin.column + origin.width - 1) as usize <= width.max(origin.column as usize), "{origin:?}");
}

/// Sections with an error are not used.
fn only_sound_sections(loaded: &Loaded) {
    for problem in loaded.problems.iter().filter(|problem| problem.level == Level::Error) {
        let names = |section: &str| {
            let key = problem.key();
            key == section || key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'))
        };
        for device in &loaded.settings.devices {
            assert!(!names(&format!("zram{}", device.number)), "{problem:?}");
        }
        for disk in &loaded.settings.ramdisks {
            assert!(!names(&format!("ramdisk.{}", disk.name)), "{problem:?}");
        }
    }
}

/// Assumptions of the planner and of the host.
fn sound(settings: &Settings, files: &[(PathBuf, String)]) {
    assert!(settings.devices.is_sorted_by(|a, b| a.number < b.number));
    assert!(settings.ramdisks.is_sorted_by(|a, b| a.name < b.name));
    for device in &settings.devices {
        is_inside(&device.origin, files);
        is_inside(&device.algorithms_origin, files);
        assert!(device.recompression.len() <= 3);
        assert!(device.label.as_ref().is_none_or(|label| !label.is_empty()));
        if let Some(BackingSettings { store, origin, .. }) = &device.writeback {
            is_inside(origin, files);
            is_normal(store.path());
        }
        match &device.purpose {
            Purpose::Swap { priority, .. } => assert!((-1..=32767).contains(priority)),
            Purpose::Filesystem { fs_type, mount, .. } => {
                assert!(fs_type != "swap" && fs_type != "none" && !fs_type.is_empty());
                sound_mount(mount, files);
            }
            Purpose::Raw { fs_type, .. } => assert!(fs_type.as_ref().is_none_or(|name| name != "swap")),
        }
    }
    for disk in &settings.ramdisks {
        is_inside(&disk.origin, files);
        assert!(!disk.name.is_empty() && !disk.name.contains(['/', '.']));
        sound_mount(&disk.mount, files);
    }
}

fn sound_mount(mount: &MountSettings, files: &[(PathBuf, String)]) {
    is_inside(&mount.origin, files);
    is_normal(&mount.mount_point);
    assert!(mount.mode.is_none_or(|mode| mode <= 0o7777));
}

fn is_normal(path: &str) {
    let parts: Vec<&str> = path.strip_prefix('/').unwrap().split('/').collect();
    let normal = path == "/" || parts.iter().all(|part| !["", ".", ".."].contains(part));
    assert!(normal && !path.contains('\0'), "{path:?}");
}

/// The plan, and units with nothing but the intended assignments.
fn planned(loaded: &Loaded) {
    let memory = Memory { total_kib: 8 << 20, ..Memory::default() };
    let facts = Facts { memory, cpus: 4, page_size: 4096, ..Facts::default() };
    let plan = plan::plan(&loaded.settings, loaded.problems.clone(), &facts, Activation::Direct);
    assert_eq!(plan.items.len(), loaded.settings.devices.len() + loaded.settings.ramdisks.len());
    // A record has a suffix until it is complete.
    assert!(plan.items.iter().all(|item| item.target.file_name().len() < 240));
    for item in plan.items.iter().filter(|item| item.decision != Decision::Planned) {
        assert!(!item.reason.is_empty(), "{item:?}");
    }
    assert!(!report::text(&plan, loaded).is_empty());
    serde_json::to_string(&report::report(&plan)).unwrap();
    let files = unit_files(&plan);
    for item in plan.items.iter().filter(|item| item.decision == Decision::Planned) {
        let Some(request) = &item.request else { continue };
        let unit = files.iter().find(|file| file.path == activating_unit(request));
        let text = unit.and_then(|unit| match &unit.contents {
            Contents::Text(text) => Some(text),
            Contents::Link(_) => None,
        });
        let expected = match request {
            Request::Ramdisk(disk) => Some((disk.name.clone(), disk.mount.mount_point.clone())),
            Request::Device(_) | Request::Vm(_) => None,
        };
        let noted = text.and_then(|text| ramdisk_of_unit(text));
        assert_eq!(noted.map(|noted| (noted.name, noted.mount_point)), expected);
        assert!(text.is_none_or(|text| text.starts_with(HEAD)));
    }
    for file in files {
        let name = file.path.rsplit('/').next().unwrap();
        assert!(!name.is_empty() && !file.path.contains(['\0', '\n']) && !file.path.starts_with('/'));
        for part in file.path.split('/') {
            assert!(!["", ".", ".."].contains(&part) && part.len() <= 255, "{}", file.path);
        }
        if let Contents::Text(text) = &file.contents {
            text.lines().for_each(is_unit_line);
        }
    }
}

const UNIT_KEYS: [&str; 37] = [
    "AccuracySec",
    "After",
    "Before",
    "BindsTo",
    "CapabilityBoundingSet",
    "ConditionPathExists",
    "Conflicts",
    "DefaultDependencies",
    "Description",
    "ExecStart",
    "IPAddressDeny",
    "JobRunningTimeoutSec",
    "LockPersonality",
    "MemoryDenyWriteExecute",
    "MemoryMax",
    "NoNewPrivileges",
    "OnActiveSec",
    "OnUnitInactiveSec",
    "Options",
    "Persist",
    "Priority",
    "RandomizedDelaySec",
    "Requires",
    "RequiresMountsFor",
    "RestrictAddressFamilies",
    "RestrictNamespaces",
    "RestrictRealtime",
    "StartLimitIntervalSec",
    "Store",
    "SystemCallArchitectures",
    "SystemCallFilter",
    "TimeoutStartSec",
    "Type",
    "UMask",
    "Wants",
    "What",
    "Where",
];

/// A configured value must not add a line, or continue into the next one.
fn is_unit_line(line: &str) {
    let known = line.is_empty()
        || line.starts_with("# Written by zramd-setup")
        || ["[Unit]", "[Mount]", "[Service]", "[Swap]", "[Timer]", "[X-Zramd]"].contains(&line)
        || line
            .split_once('=')
            .is_some_and(|(key, value)| UNIT_KEYS.contains(&key) && value == value.trim_matches([' ', '\t']));
    assert!(known && !line.contains(char::is_control), "{line:?}");
    assert!(!line.ends_with('\\'), "it would continue in the next line: {line:?}");
}

/// Words are independent, and the last one takes precedence.
pub fn cmdline(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let whole = enabled_by_cmdline(text);
    let by_word = text.split_whitespace().filter_map(enabled_by_cmdline).next_back();
    assert_eq!(whole, by_word);
    assert_eq!(enabled_by_cmdline(&format!("{text} quiet")), whole);
    assert_eq!(enabled_by_cmdline(&format!("{text} systemd.zram")), Some(true));
    assert_eq!(enabled_by_cmdline(&format!("{text} systemd.zram=0")), Some(false));
    let loaded = config::load(&[("f".into(), "[zram1]\n".to_owned())], text);
    let numbers: Vec<u32> = loaded.settings.devices.iter().map(|device| device.number).collect();
    let expected: &[u32] = match whole {
        None => &[1],
        Some(true) => &[0, 1],
        Some(false) => &[],
    };
    assert_eq!(numbers, expected);
    assert_eq!(loaded.disabled_by_cmdline, whole == Some(false));
}

/// Options of a bus call become a drop-in with exactly these settings.
pub fn overlay(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let mut written = Overlay { transient: text.len() % 2 == 0, ..Overlay::default() };
    written.set_text("label", text);
    written.set_bytes("zram-size", 1 << 30);
    assert_eq!(Overlay::parse(&written.text("zram1")), written);
    let loaded = config::load(&[(overlay::file_name("zram1").into(), written.text("zram1"))], "");
    let keys: Vec<&str> = loaded.merged.sections["zram1"].keys.keys().map(String::as_str).collect();
    assert_eq!((loaded.merged.sections.len(), keys), (1, vec!["label", "zram-size"]));
    match loaded.settings.devices.as_slice() {
        [device] => assert_eq!((device.number, device.label.as_deref()), (1, Some(text))),
        _ => assert!(loaded.problems.iter().all(|problem| problem.key() == "zram1.label")),
    }
    // An edited drop-in is the same after reading, writing and reading it.
    let read = Overlay::parse(&text.replace('\r', ""));
    assert_eq!(Overlay::parse(&read.text("zram1")), read);
}
