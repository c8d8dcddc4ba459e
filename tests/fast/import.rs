//! Imports of the acceptance cases of zram-generator and of the other programs: output, resulting devices, and messages.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::support::import::cases::ROWS;
use crate::support::import::{devices, fixtures, imported};
use import::peer::Imported;
use logic::config;
use logic::request::{DeviceRequest, Purpose};

fn text(imported: &Imported) -> String {
    let mut out = String::new();
    for warning in &imported.warnings {
        let line = warning.line.map_or(String::new(), |line| format!(":{line}"));
        writeln!(out, "{}{line}: {}", warning.file.display(), warning.text).unwrap();
    }
    out.push('\n');
    for row in &imported.table {
        writeln!(out, "{} | {} | {}", row.was, row.is, row.note).unwrap();
    }
    out
}

fn golden(path: &Path, found: &str) {
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, found).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, expected, "{} is not current; UPDATE_GOLDEN=1 writes it anew", path.display());
}

/// One line per device.
fn describe(request: &DeviceRequest) -> String {
    let mut out = format!("zram{} {}", request.number, request.disk_size);
    match &request.purpose {
        Purpose::Swap { priority, options } => write!(out, " swap {priority} {options}").unwrap(),
        Purpose::Filesystem { fs_type, mount, .. } => {
            write!(out, " {fs_type} {} {}", mount.mount_point, mount.options).unwrap();
        }
        Purpose::Raw { fs_type, .. } => write!(out, " {}", fs_type.as_deref().unwrap_or("none")).unwrap(),
    }
    let mut choices: Vec<String> = request.algorithms.iter().map(ToString::to_string).collect();
    if choices.is_empty() {
        choices.push("default".to_owned());
    }
    write!(out, " {}", choices.join(",")).unwrap();
    if request.memory_limit > 0 {
        write!(out, " limit={}", request.memory_limit).unwrap();
    }
    let secondary: Vec<String> = request.recompression.iter().map(ToString::to_string).collect();
    if !secondary.is_empty() {
        write!(out, " then={}", secondary.join(",")).unwrap();
    }
    if let Some(writeback) = &request.writeback {
        write!(out, " wb={}", writeback.store.path()).unwrap();
    }
    out
}

#[test]
fn every_case_is_written_as_expected() {
    let mut cases: Vec<PathBuf> =
        fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    for case in cases {
        let imported = imported(case.file_name().unwrap().to_str().unwrap());
        golden(&case.join("expected.toml"), &imported.toml);
        golden(&case.join("expected.txt"), &text(&imported));
    }
}

#[test]
fn every_case_becomes_the_devices_that_it_asks_for() {
    for (case, mem_total_kib, cmdline, _, expected) in ROWS {
        let devices = devices(&imported(case).toml, *mem_total_kib, cmdline);
        let described: Vec<String> = devices.iter().map(describe).collect();
        assert_eq!(described, *expected, "{case} with {mem_total_kib} KiB and `{cmdline}`");
    }
}

#[test]
fn the_section_that_is_offered_switches_recompression_on() {
    let toml = imported("type-idle").toml;
    assert!(toml.contains("\n# [maintenance]\n"), "{toml}");
    let toml = toml.replace("\n# [", "\n[").replace("\n# recompress", "\nrecompress");
    let loaded = config::load(&[("zramd.toml".into(), toml)], "");
    assert_eq!(loaded.problems, []);
    assert!(loaded.settings.maintenance.unwrap().recompress.is_some());
}

#[test]
fn every_warning_is_one_sentence_with_its_place() {
    for case in fs::read_dir(fixtures()).unwrap() {
        let case = case.unwrap().file_name().into_string().unwrap();
        for warning in imported(&case).warnings {
            let text = &warning.text;
            let first = text.chars().next().unwrap();
            assert!(!first.is_uppercase() && !text.ends_with('.') && !text.contains('\n'), "{case}: {text}");
            assert!(warning.file.is_absolute(), "{case}: {text}");
        }
    }
}
