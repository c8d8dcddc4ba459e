//! Read-only commands of `zramdctl`: output, messages, exit statuses. Needs neither the daemon nor privileges.

use std::fs;
use std::process::{Output, Stdio};

use crate::apart::command_for;
use crate::support::{CTL, repository, setup, texts};

use client::style::Style;
use host::linux::files;
use logic::config;
use serde_json::json;

/// Runs `zramdctl` with these arguments, without variables that select colours.
fn ctl(words: &[&str]) -> Output {
    command_for(CTL).args(words).env_remove("NO_COLOR").output().unwrap()
}

fn example() -> String {
    repository("config/example.toml").to_str().unwrap().to_owned()
}

fn five_mistakes() -> String {
    repository("tests/golden/diagnostics/five-mistakes.toml").to_str().unwrap().to_owned()
}

/// The exit status, and the lines of the message.
fn refused(words: &[&str]) -> (Option<i32>, Vec<String>) {
    let output = ctl(words);
    let (_, messages) = texts(&output);
    (output.status.code(), messages.lines().map(str::to_owned).collect())
}

#[test]
fn read_only_commands_need_no_privileges() {
    for words in [
        &[][..],
        &["list"],
        &["ls", "--output-all", "-b", "-n", "--raw"],
        &["list", "--json"],
        &["status"],
        &["show"],
        &["stats"],
        &["stats", "--format=openmetrics"],
        &["stats", "--json"],
        &["show", "-J"],
        &["top", "-n", "1", "--json=short"],
        &["cat-config", "--json=short"],
        &["-q", "--no-pager", "status"],
        &["list", "--no-pager", "--quiet"],
        &["maintain", "--dry-run"],
        &["maintain", "-n", "--json"],
        &["cat-config"],
        &["man"],
        &["completions", "bash"],
        &["completions", "zsh"],
        &["completions", "fish"],
        &["--help"],
        &["list", "--help"],
        &["--version"],
    ] {
        let output = ctl(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
}

#[test]
fn what_does_not_exist_ends_with_4_and_is_named() {
    for words in [["list", "gibts*"], ["status", "gibts*"], ["show", "gibts*"], ["stats", "gibts*"]] {
        let (code, lines) = refused(&words);
        assert_eq!(code, Some(4), "{words:?}");
        assert!(lines.len() == 1 && lines[0].contains("gibts*"), "{words:?}: {lines:?}");
    }
    let output = ctl(&["list", "gibts*", "--json=short"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), value["devices"].as_array().unwrap().len()), (Some(4), 0));
}

#[test]
fn what_is_configured_but_not_set_up_ends_with_3() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("z.toml");
    fs::write(&file, "[zram247]\n").unwrap();
    let file = file.to_str().unwrap();
    for name in ["zram247", "/dev/zram247"] {
        let (code, lines) = refused(&["-c", file, "status", name]);
        assert_eq!((code, lines.len()), (Some(3), 1), "{lines:?}");
        assert!(lines[0].contains("zram247"), "{lines:?}");
    }
    assert_eq!(refused(&["-c", file, "status", "zram247", "zram248"]).0, Some(4), "the worse of two");
}

#[test]
fn check_prints_what_is_configured_and_each_problem_as_json() {
    let check = |file: &str| {
        let output = ctl(&["check", "--json=short", repository(file).to_str().unwrap()]);
        assert_eq!(output.stderr, b"", "{file}");
        (output.status.code(), serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap())
    };
    let (code, found) = check("tests/golden/diagnostics/pasted.toml");
    assert_eq!(code, Some(1));
    let mut problems = found["problems"].as_array().unwrap().clone();
    // The temporary directory is mounted on the machine apart.
    problems.retain(|problem| problem["place"]["key"] != "zram4.mount-point");
    let keys: Vec<&str> = problems.iter().map(|problem| problem["place"]["key"].as_str().unwrap()).collect();
    let algorithm = |device: &str| format!("{device}.compression-algorithm");
    let algorithms = ["zram0", "zram1", "zram2"].map(algorithm);
    assert_eq!(keys[..3], algorithms);
    assert_eq!(keys[3..], ["zram3.options", "zram4.options"]);
    assert!(
        problems
            .iter()
            .all(|problem| problem["kind"] == "config" && problem["place"]["line"].as_u64() > Some(1))
    );
    let (code, found) = check("config/example.toml");
    assert_eq!((code, &found["problems"]), (Some(0), &serde_json::json!([])));
    assert_eq!((&found["devices"][0]["name"], found["schema_version"].as_u64()), (&"zram0".into(), Some(1)));
}

#[test]
fn plan_prints_the_changes_as_json() {
    let output = ctl(&["-c", &example(), "plan", "--json=short"]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["schema_version"], 1);
    let changes = found["changes"].as_array().unwrap();
    let planned: Vec<_> = changes.iter().map(|change| (&change["object"], &change["action"])).collect();
    assert_eq!(
        json!(planned),
        json!([["zram0", "create"], ["zram1", "create"], ["ramdisk.scratch", "create"]])
    );
}

/// A plan for this file, as text and as JSON: standard output, standard error, exit status.
fn planned(text: &str) -> (String, String, Option<i32>, serde_json::Value) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("z.toml");
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let output = ctl(&["-c", file, "plan"]);
    let json = ctl(&["-c", file, "plan", "--json"]);
    assert_eq!((json.status.code(), json.stderr.as_slice()), (output.status.code(), &b""[..]));
    let (result, messages) = texts(&output);
    (result, messages, output.status.code(), serde_json::from_slice(&json.stdout).unwrap())
}

/// A reload refuses such a file as a whole.
#[test]
fn a_plan_for_a_file_with_a_mistake_has_no_changes() {
    for text in
        ["[zram247]\nzram-size = ram / 2\n", "[zram247\n", "[zram247]\nzram-size = \"oops(\"\n[zram248]\n"]
    {
        let (result, messages, code, json) = planned(text);
        assert_eq!(
            result, "a reload refuses this configuration because of the mistakes, and changes nothing\n",
            "{text}"
        );
        assert!(messages.starts_with("error: ") && messages.contains("z.toml:"), "{text}: {messages}");
        assert_eq!((code, &json["changes"]), (Some(1), &serde_json::json!([])), "{text}");
        assert_eq!(json["problems"][0]["level"], "error", "{text}");
    }
}

#[test]
fn a_plan_names_the_place_of_a_refusal_and_what_is_skipped() {
    let (result, messages, code, json) =
        planned("[zram247]\nzram-size = \"1024TiB\"\n[zram248]\nzram-size = 0\n");
    assert!(
        result.contains("refuse  zram247  a device of ") && !result.contains("nothing to change"),
        "{result}"
    );
    assert!(result.contains("\nskip    zram248  its size is 0\n"), "{result}");
    assert!(messages.contains("z.toml:2:") && messages.contains("= help: "), "{messages}");
    assert_eq!(
        (&json["problems"][0]["place"]["line"], &json["problems"][0]["place"]["key"]),
        (&2.into(), &"zram247.zram-size".into())
    );
    assert_eq!(json["skipped"], serde_json::json!([{"object": "zram248", "reason": "its size is 0"}]));
    assert_eq!(code, Some(7));
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_there_is() {
    let (code, lines) = refused(&["list", "-o", "NAME,STREAM"]);
    assert_eq!((code, lines.len()), (Some(2), 1), "{lines:?}");
    assert!(lines[0].contains("\"STREAM\"") && lines[0].contains("COMP-RATIO"), "{lines:?}");
    let (code, lines) = refused(&["show", "-p", "TotalOriginalByte"]);
    assert_eq!(code, Some(2));
    assert!(lines[0].contains("TotalOriginalBytes?"), "{lines:?}");
    for words in [
        &["frobnicate"][..],
        &["list", "--json=yes"],
        &["stats", "--format=xml"],
        &["maintain", "sda"],
        &["top", "-n", "0"],
    ] {
        assert_eq!(refused(words).0, Some(2), "{words:?}");
    }
}

#[test]
fn a_request_is_read_from_a_socket_only() {
    let mut command = command_for(CTL);
    let output = command.args(["stats", "--http"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty() && texts(&output).1.contains("zramd-metrics.socket"), "{output:?}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    for command in ["list", "status", "show", "stats", "doctor", "cat-config"] {
        let (code, lines) = refused(&["-c", "/nonexistent/z.toml", command]);
        assert_eq!(code, Some(1), "{command}");
        assert!(lines.len() == 1 && lines[0].contains("/nonexistent/z.toml"), "{command}: {lines:?}");
    }
    assert_eq!(refused(&["check", "/nonexistent/z.toml"]).0, Some(1));
}

/// `zramdctl man | head`: the pipe is closed before all is written.
#[test]
fn a_closed_pipe_is_no_failure() {
    let commands = [
        &["man"][..],
        &["list"],
        &["list", "--json"],
        &["status"],
        &["show"],
        &["stats"],
        &["cat-config"],
        &["completions", "zsh"],
        &["--help"],
    ];
    for words in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command_for(CTL).args(words).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
}

#[test]
fn colours_are_used_only_where_they_are_wanted() {
    let coloured = |words: &[&str]| ctl(words).stdout.contains(&0x1b);
    let file = example();
    assert!(!coloured(&["-c", &file, "cat-config"]), "not a terminal");
    assert!(coloured(&["-c", &file, "cat-config", "--color=always"]));
    assert!(!coloured(&["-c", &file, "cat-config", "--color=never"]));
}

#[test]
fn a_check_fails_for_each_mistake_and_says_the_same_as_that_of_setup() {
    let file = five_mistakes();
    let output = ctl(&["check", &file]);
    let (result, messages) = texts(&output);
    assert_eq!(
        (output.status.code(), result.as_str()),
        (
            Some(1),
            "still usable: 2 zram devices, 0 RAM disks; 4 not usable: ramdisk.cache, zram1, zram2, zram3\n"
        )
    );
    let count = |level: &str| messages.lines().filter(|line| line.starts_with(level)).count();
    assert_eq!((count("error: "), count("warning: ")), (4, 1), "{messages}");
    assert_eq!(messages, texts(&setup(&["check", &file])).1);
    let output = ctl(&["check", &example()]);
    assert_eq!(texts(&output).0, "no mistakes found: 2 zram devices, 1 RAM disk\n");
    assert!(output.status.success());
    let output = ctl(&["-c", &file, "check"]);
    assert_eq!(output.status.code(), Some(1), "--config counts as well");
}

/// A named file does not hide overrides until the next boot.
#[test]
fn the_configuration_is_shown_with_origins() {
    let root = tempfile::tempdir().unwrap();
    let shown = || {
        let sources = files::sources(root.path(), Some(&repository("config/example.toml")));
        let loaded = config::load_sources(sources, "");
        assert_eq!(loaded.problems, []);
        client::config::text(&loaded, Style::default())
    };
    let text = shown();
    assert!(text.contains(&format!("swap-priority = 100             # {}:9\n", example())), "{text}");
    files::write_overlay(root.path(), "50-zram0.toml", Some("[zram0]\nswap-priority = 7\n")).unwrap();
    let text = shown();
    assert!(text.contains("swap-priority = 7 "), "{text}");
    assert!(text.contains("/run/zramd/zramd.toml.d/50-zram0.toml:2\n"), "{text}");

    let (result, _) = texts(&ctl(&["-c", &example(), "cat-config"]));
    assert!(result.contains(&format!("# {}:", example())), "{result}");
    let (_, messages) = texts(&ctl(&["-c", &five_mistakes(), "cat-config"]));
    assert!(messages.contains("zramdctl check"), "{messages}");
}

#[test]
fn a_doctor_finds_mistakes_and_names_fixes() {
    assert_eq!(ctl(&["-c", &five_mistakes(), "doctor"]).status.code(), Some(1));
    let output = ctl(&["-c", &five_mistakes(), "doctor", "--json=short"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((value["schema_version"].as_u64(), output.status.code()), (Some(1), Some(1)));
    let problems = value["problems"].as_array().unwrap();
    assert_eq!(problems[0]["code"], "config-invalid");
    let found = problems.iter().find(|found| found["place"]["key"] == "zram1.zram-size").unwrap();
    assert!(
        found["message"].as_str().unwrap().contains("`RAM`")
            && found["remedy"].as_str().unwrap().contains("`ram`"),
        "{found}"
    );
}

#[test]
fn one_property_is_one_line() {
    let output = ctl(&["show", "-p", "Version", "--value"]);
    assert_eq!(texts(&output).0, concat!(env!("CARGO_PKG_VERSION"), "\n"));
    let output = ctl(&["show", "-p", "TotalOriginalBytes,Version"]);
    let (result, _) = texts(&output);
    assert!(
        result.starts_with("TotalOriginalBytes=")
            && result.ends_with(concat!("Version=", env!("CARGO_PKG_VERSION"), "\n")),
        "{result}"
    );
}
