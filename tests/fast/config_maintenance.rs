//! `[maintenance]`: settings, and messages about mistakes.

use crate::support::{golden, mistake};
use logic::config::{self, Loaded};
use logic::facts::Facts;
use logic::maintain::age::Range;
use logic::plan::{self, Activation};
use logic::proc::Memory;
use logic::record::Target;
use logic::request::Request;

fn load(texts: &[&str]) -> Loaded {
    let files: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| (format!("{index}.toml").into(), (*text).to_owned()))
        .collect();
    config::load(&files, "")
}

#[test]
fn maintenance_is_off_unless_it_is_asked_for() {
    let asked = |text: &str| {
        let loaded = load(&[text]);
        assert_eq!(loaded.problems, [], "{text}");
        loaded.settings
    };
    let hours = |hours: u64| std::time::Duration::from_secs(hours * 3600);
    assert_eq!(asked("[zram0]").maintenance, None);
    let empty = asked("[zram0]\n[maintenance]").maintenance.unwrap();
    assert!(!empty.needs_timer());
    assert_eq!((empty.recompress, empty.writeback, empty.pressure), (None, None, None));
    assert_eq!(asked("[maintenance]\nenabled = false\nrecompress = true").maintenance, None);

    // Only written settings cause runs, not defaults.
    for word in ["report", "apply"] {
        let text = format!("[zram0]\n[maintenance]\non-memory-change = \"{word}\"");
        assert!(asked(&text).maintenance.unwrap().needs_timer(), "{word}");
    }

    // Three spellings, and a key of another file.
    for text in
        ["recompress = true", "recompress = {}", "recompress.enabled = true", "[maintenance.recompress]"]
    {
        let settings = asked(&format!("[zram0]\n[maintenance]\n{text}\n"));
        let recompress = settings.maintenance.unwrap().recompress.unwrap();
        assert_eq!((recompress.age.least, recompress.age.most), (hours(2), hours(4)), "{text}");
        assert_eq!(settings.devices[0].recompression[0].to_string(), "zstd", "{text}");
    }
    let merged = load(&[
        "[zram0]\n[maintenance]\nrecompress = { algorithm = \"lz4hc\", idle-age = \"1h\" }",
        "[maintenance]\nrecompress.max-idle-age = 18000",
    ]);
    let recompress = merged.settings.maintenance.unwrap().recompress.unwrap();
    assert_eq!((recompress.age.least, recompress.age.most), (hours(1), hours(5)));
    assert_eq!(merged.settings.devices[0].recompression[0].to_string(), "lz4hc");
    let off = load(&["[maintenance]\nrecompress.idle-age = \"1h\"", "[maintenance]\nrecompress = false"]);
    assert_eq!(off.settings.maintenance.unwrap().recompress, None);
}

#[test]
fn one_idle_age_follows_the_other_if_only_one_is_written() {
    let policies = |keys: &str| {
        let loaded = load(&[&format!("[zram0]\n[maintenance]\n{keys}\n")]);
        assert_eq!(loaded.problems, [], "{keys}");
        loaded.settings.maintenance.unwrap()
    };
    let hours = |age: Range| [age.least, age.most].map(|age| age.as_secs() / 3600);
    let ages = |keys: &str| hours(policies(keys).recompress.unwrap().age);
    assert_eq!(ages("recompress.idle-age = \"6h\""), [6, 8]);
    assert_eq!(ages("recompress.max-idle-age = \"3h\""), [2, 3]);
    assert_eq!(ages("recompress.max-idle-age = \"1h\""), [1, 1], "below the default of the other");
    assert_eq!(ages("recompress = { idle-age = \"1h\", max-idle-age = \"1h\" }"), [1, 1]);
    let ages = |keys: &str| hours(policies(keys).writeback.unwrap().age);
    assert_eq!(ages("writeback.device = \"/dev/a\""), [20, 25]);
    assert_eq!(ages("writeback = { device = \"/dev/a\", idle-age = \"6h\" }"), [6, 11]);
}

#[test]
fn a_few_seconds_without_a_unit_are_doubtful() {
    let doubts = |age: &str| {
        let text = format!("[zram0]\n[maintenance]\nrecompress.idle-age = {age}\n");
        load(&[&text])
            .problems
            .iter()
            .map(|found| format!("{} ({})", found.message, found.remedy))
            .collect::<Vec<_>>()
    };
    assert_eq!(doubts("2"), ["2 without a unit is 2 seconds (write \"2h\", or \"2s\" if that is meant)"]);
    for meant in ["\"2s\"", "7200", "\"2h\""] {
        assert_eq!(doubts(meant), [""; 0], "{meant}");
    }
}

#[test]
fn write_back_follows_pressure_unless_that_is_off() {
    let follows = |policies: &str| {
        let settings = load(&[&format!("[zram0]\n[maintenance]\n{policies}\n")]).settings;
        settings.maintenance.unwrap().pressure.is_some()
    };
    assert!(follows("writeback.device = \"/dev/a\"\nwriteback.enabled = true"));
    assert!(!follows("writeback.device = \"/dev/a\"\npressure = false"));
    assert!(!follows("recompress = true"));
    assert!(follows("recompress = true\npressure = true"));
}

#[test]
fn maintenance_sets_missing_keys_of_devices() {
    let text = "[zram0]\nrecompression-algorithm = \"lz4hc\"\nwriteback-device = \"/dev/a\"\n[zram1]\n\
        [maintenance]\nrecompress = true\nwriteback = { device = \"/dev/b\", daily-budget = \"2GiB\" }";
    let settings = load(&[text]).settings;
    let names: Vec<String> =
        settings.devices.iter().map(|device| device.recompression[0].to_string()).collect();
    assert_eq!(names, ["lz4hc", "zstd"]);
    let devices: Vec<&str> =
        settings.devices.iter().map(|device| device.writeback.as_ref().unwrap().store.path()).collect();
    assert_eq!(devices, ["/dev/a", "/dev/b"]);
}

#[test]
fn mistakes_in_maintenance_name_line_key_and_remedy() {
    let mut told = String::new();
    for (text, key) in [
        ("interval = \"10s\"", "interval"),
        ("interval = \"soon\"", "interval"),
        ("recompress = \"zstd\"", "recompress.enabled"),
        ("recompress = { algorithm = \"zst\" }", "recompress.algorithm"),
        ("recompress = { idle-age = \"2h\", max-idle-age = \"1h\" }", "recompress.max-idle-age"),
        ("recompress = { idle-aeg = \"2h\" }", "recompress.idle-aeg"),
        ("recompress.threshold = 0", "recompress.threshold"),
        ("writeback.daily-budget = \"1GB\"", "writeback.daily-budget"),
        ("writeback.daily-budget = \"4MiB\"", "writeback.daily-budget"),
        ("writeback.run-budget = 0", "writeback.run-budget"),
        ("writeback = true", "writeback.enabled"),
        ("writeback.device = \"/dev/a\"", "writeback.device"),
        ("pressure.severe = 60", "pressure.severe"),
        ("pressure.moderate = 101", "pressure.moderate"),
        ("on-memory-change = \"grow\"", "on-memory-change"),
    ] {
        let loaded = load(&[&format!("[maintenance]\n{text}\n")]);
        assert_eq!(loaded.problems.len(), 1, "{text}: {:#?}", loaded.problems);
        let found = &loaded.problems[0];
        assert_eq!((found.key(), found.line()), (format!("maintenance.{key}").as_str(), 2));
        told += &mistake(text, &loaded.problems);
    }
    golden("tests/golden/diagnostics/maintenance.txt", &told);
}

#[test]
fn a_secondary_algorithm_that_is_not_denser_is_refused() {
    let text = "[zram0]\ncompression-algorithm = \"zstd\"\nrecompression-algorithm = [\"lz4\", \"zstd(level=15)\"]\n\
         [maintenance]\nrecompress = true";
    let loaded = load(&[text]);
    let machine = Facts {
        memory: Memory { total_kib: 4 << 20, available_kib: 4 << 20, ..Memory::default() },
        cpus: 4,
        page_size: 4096,
        ..Facts::default()
    };
    let plan = plan::plan(&loaded.settings, loaded.problems.clone(), &machine, Activation::Direct);
    let Some(Request::Device(request)) = &plan.item(&Target::Device(0)).unwrap().request else { panic!() };
    assert_eq!(request.recompression.len(), 1);
    assert_eq!(request.recompression[0].to_string(), "zstd(level=15)");
    let found = plan.problems.iter().map(|problem| (problem.key(), problem.line()));
    assert_eq!(found.collect::<Vec<_>>(), [("zram0.recompression-algorithm", 3)]);
}
