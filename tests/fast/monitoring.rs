//! What Prometheus is given: counters and alert rules, checked by its own `promtool`; the dashboard; the file of the timer.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use crate::apart::{command_for, outside};
use crate::support::{has_program, repository, skip, write_program};

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
    let output = outside("promtool").args(["check", "metrics"]).stdin(Stdio::from(stats)).output().unwrap();
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
    let mut command = outside("promtool");
    command.args(["test", "rules", "zramd.rules.test.yml"]).current_dir(directory.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The metrics that a text names. Each must be one of `stats`.
fn metrics_in(text: &str) -> usize {
    let stats = fs::read_to_string(repository("tests/golden/client/stats.txt")).unwrap();
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let used = text.split(|letter| !is_name(letter)).filter(|word| word.starts_with("zramd_"));
    used.inspect(|name| assert!(stats.contains(&format!("# TYPE {name} ")), "{name}")).count()
}

#[test]
fn each_query_of_the_dashboard_uses_metrics_that_exist() {
    let text = fs::read_to_string(repository("packaging/monitoring/zramd.dashboard.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let is_variable = |name: &str| variables.iter().any(|variable| variable["name"] == name);
    assert!(is_variable("datasource") && is_variable("instance"));
    metrics_in(&text);
    let panels = dashboard["panels"].as_array().unwrap();
    for (index, panel) in panels.iter().enumerate() {
        // Grafana shows only one of two panels with the same number.
        assert_eq!(panel["id"], index + 1);
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let count = metrics_in(expression);
            assert!(count > 0, "{expression}");
            assert_eq!(expression.matches("{instance=~\"$instance\"}").count(), count, "{expression}");
        }
    }
    assert!(panels.len() > 5);
}

#[test]
fn alerts_use_counters_that_exist_and_each_has_a_test() {
    let rules = fs::read_to_string(repository(RULES)).unwrap();
    assert!(metrics_in(&rules) > 5);
    let tests = fs::read_to_string(repository("tests/golden/zramd.rules.test.yml")).unwrap();
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert}");
    }
}

/// The script of zramd-textfile.service replaces the file, and follows no link that a user left in the directory.
#[test]
fn the_textfile_is_replaced_and_no_link_is_followed() {
    let unit = fs::read_to_string(repository("units/zramd-textfile.service")).unwrap();
    let script = unit.split("/bin/sh -eCc '").nth(1).unwrap().split('\'').next().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("stats");
    let script = script.replace("/usr/bin/zramdctl", program.to_str().unwrap());
    let run = |lines: &str| {
        write_program(&program, &format!("#!/bin/sh\n{lines}\n"));
        let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
        let mut command = command_for("/bin/sh");
        command
            .env("PATH", path)
            .args(["-eCc", &format!("cd {}\n{script}", directory.path().display())])
            .output()
            .unwrap()
            .status
            .success()
    };
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    assert!(run("echo one"));
    assert_eq!(read("zramd.prom"), "one\n");
    // What a failed or killed run wrote is not read, and not in the way of the next one.
    assert!(!run("echo half; exit 1"));
    assert_eq!((read("zramd.prom").as_str(), read("zramd.prom.new").as_str()), ("one\n", "half\n"));
    fs::write(directory.path().join("other"), "mine").unwrap();
    for name in ["zramd.prom", "zramd.prom.new"] {
        fs::remove_file(directory.path().join(name)).unwrap();
        symlink("other", directory.path().join(name)).unwrap();
    }
    assert!(run("echo two"));
    assert_eq!((read("zramd.prom").as_str(), read("other").as_str()), ("two\n", "mine"));
    // A link that appears after the removal.
    let rm = directory.path().join("rm");
    write_program(&rm, "#!/bin/sh\n/bin/rm \"$@\"; ln -s other zramd.prom.new\n");
    assert!(!run("echo three"));
    assert_eq!((read("zramd.prom").as_str(), read("other").as_str()), ("two\n", "mine"));
}
