//! The JSON schema for editors and the example configurations, read by zramd and by an independent validator.

use std::fs;
use std::path::PathBuf;

use crate::apart::command_for;
use crate::support::validator::{definition, validated};
use crate::support::{CTL, golden, repository, texts};
use logic::config::json_schema::json_schema;
use logic::config::key::Key;
use logic::config::schema::{SECTIONS, example_file};
use logic::config::{Loaded, load};
use serde_json::json;

const SCHEMA: &str = "config/zramd.schema.json";

fn examples() -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(repository("config/examples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.push(repository("config/example.toml"));
    paths.sort();
    paths.iter().map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap())).collect()
}

fn loaded(text: &str) -> Loaded {
    load(&[("zramd.toml".into(), text.to_owned())], "")
}

/// A file with one key and its example value.
fn with_one(section: &str, key: &Key) -> String {
    format!("[{section}]\n{} = {}\n", key.name, key.example)
}

#[test]
fn the_schema_is_current() {
    golden(SCHEMA, &format!("{}\n", serde_json::to_string_pretty(&json_schema()).unwrap()));
}

#[test]
fn examples_have_no_mistakes() {
    let examples = examples();
    assert!(examples.len() > 6, "{examples:?}");
    for (name, text) in examples {
        let loaded = loaded(&text);
        assert_eq!(loaded.problems, [], "{name}");
        let settings = &loaded.settings;
        assert!(!settings.devices.is_empty() || !settings.ramdisks.is_empty(), "{name} sets nothing up");
        let first = text.lines().next().unwrap();
        assert!(
            name.ends_with("example.toml") || first == example_file().lines().next().unwrap(),
            "{name}: {first}"
        );
    }
}

#[test]
fn every_example_is_packaged() {
    let manifest = fs::read_to_string(repository("packaging/manifest")).unwrap();
    for (name, _) in examples() {
        let file = name.rsplit_once("/config/").unwrap().1;
        assert!(manifest.contains(&format!("config/{file} ")), "{name}");
    }
}

#[test]
fn a_validator_agrees() {
    let mut good = examples();
    good.push(("nothing".to_owned(), example_file()));
    let keys =
        SECTIONS.iter().flat_map(|(section, _, kind)| kind.keys().iter().map(move |key| (section, key)));
    good.extend(keys.map(|(section, key)| (format!("[{section}] {}", key.name), with_one(section, key))));
    assert!(good.len() > 70);
    let bad = [
        ("[zram0]\nzram-sise = 1\n", "'zram-sise' was unexpected"),
        ("[zram01]\n", "zram01"),
        ("[swap0]\n", "'swap0' does not match"),
        ("[zram0]\nenabled = 1\n", "not of type 'boolean'"),
        ("[zram0]\nswap-priority = 40000\n", "greater than the maximum"),
        ("[zram0]\nzram-size = true\n", "not valid under any"),
        ("[ramdisk.a]\nzram-fraction = 0.5\n", "'zram-fraction' was unexpected"),
        ("[ramdisk.a]\nmount-point = \"a\"\n", "does not match"),
        ("[zram0]\n[maintenance]\nrecompress = { idle-aeg = 5 }\n", "'idle-aeg' was unexpected"),
        ("[zram0]\n[maintenance]\npressure = 5\n", "not of type 'object', 'boolean'"),
        ("[defaults]\nmount-point = \"/a\"\n", "'mount-point' was unexpected"),
    ];
    let bad_documents = bad.iter().map(|(text, _)| ((*text).to_owned(), (*text).to_owned()));
    let documents: Vec<(String, String)> = good.iter().cloned().chain(bad_documents).collect();
    let Some(found) = validated(&json_schema(), &documents) else { return };
    let (about_good, about_bad) = found.split_at(good.len());
    for (name, complaint) in about_good {
        assert_eq!(complaint, &None, "{name}");
    }
    for ((name, complaint), (_, expected)) in about_bad.iter().zip(bad) {
        assert!(
            complaint.as_ref().is_some_and(|complaint| complaint.contains(expected)),
            "{name}: {complaint:?}"
        );
        assert!(!loaded(name).problems.is_empty(), "{name}: zramd lets it through");
    }
}

#[test]
fn what_zramdctl_prints_as_json_is_as_its_schema_says() {
    let config = repository("config/example.toml");
    let mistakes = repository("tests/golden/diagnostics/five-mistakes.toml");
    for (name, file) in [
        ("check", &config),
        ("check", &mistakes),
        ("plan", &config),
        ("status", &config),
        ("doctor", &mistakes),
        ("report", &config),
        ("stats", &config),
        ("cat-config", &config),
    ] {
        let form = match name {
            "report" => "-",
            _ => "--json",
        };
        let mut command = command_for(CTL);
        let printed = command.arg("--config").arg(file).args([name, form]).output().unwrap();
        let printed = texts(&printed).0;
        assert!(printed.starts_with('{'), "{name}: {printed}");
        let wrong = json!({"schema_version": "1"}).to_string();
        let documents = [(name.to_owned(), printed), ("wrong".to_owned(), wrong)];
        let Some(found) = validated(&definition(name), &documents) else { return };
        assert_eq!(found[0].1, None, "{name}");
        assert!(found[1].1.is_some(), "{name}: the schema accepts anything");
    }
}
