//! What Prometheus is given: counters and alert rules, checked by its own `promtool`.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::{has_program, repository, skip};

const RULES: &str = "packaging/monitoring/zramd.rules.yml";

/// Whether `promtool` is installed; otherwise says that the test is skipped.
fn has_promtool() -> bool {
    let has = has_program("promtool");
    if !has {
        skip("needs promtool");
    }
    has
}

#[test]
fn counters_follow_the_conventions_of_prometheus() {
    if !has_promtool() {
        return;
    }
    let stats = fs::File::open(repository("tests/golden/client/stats.txt")).unwrap();
    let output =
        Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::from(stats)).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn alerts_fire_and_resolve() {
    if !has_promtool() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for file in [RULES, "tests/golden/zramd.rules.test.yml"] {
        let path = repository(file);
        fs::copy(&path, directory.path().join(path.file_name().unwrap())).unwrap();
    }
    let mut command = Command::new("promtool");
    command.args(["test", "rules", "zramd.rules.test.yml"]).current_dir(directory.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn alerts_use_counters_that_exist_and_each_has_a_test() {
    let rules = fs::read_to_string(repository(RULES)).unwrap();
    let stats = fs::read_to_string(repository("tests/golden/client/stats.txt")).unwrap();
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let used = rules.split(|letter| !is_name(letter)).filter(|word| word.starts_with("zramd_"));
    let mut count = 0;
    for name in used {
        assert!(stats.contains(&format!("# TYPE {name} ")), "{name}");
        count += 1;
    }
    assert!(count > 5, "{count}");
    let tests = fs::read_to_string(repository("tests/golden/zramd.rules.test.yml")).unwrap();
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert}");
    }
}
