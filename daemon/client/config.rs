//! `check` and `cat-config`: the configuration, its mistakes, and the origin of each key.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args::{Cli, Json};
use super::read;
use super::style::Style;
use super::{out, overrides};
use engine::{Error, gather};
use host::linux::files;
use logic::config::edit::bare_or_quoted;
use logic::config::fragment::Section;
use logic::config::locate::{CREDENTIALS, DROP_INS, MAIN, ROOTS};
use logic::config::setting::{Setting, settings};
use logic::config::{self, Loaded};
use logic::exit::ExitStatus;
use logic::expr::Variables;
use logic::origin::Origin;
use logic::plan::report;
use logic::plan::wanted::variables;
use logic::render;
use logic::sample::SCHEMA_VERSION;

/// Runs `check`. Stricter than other commands: what they ignore with a warning is an error here.
pub fn check(cli: &Cli, named: &[PathBuf], json: Json) -> Result<ExitStatus, Error> {
    let loaded = if named.is_empty() {
        read::config(read::used_file(cli).as_ref())
    } else {
        config::load_sources(files::read_sources(named), "")
    };
    let plan = read::check(&loaded);
    let text = render::render(plan.findings(), Style::stderr(cli.color).has_colour());
    if json == Json::Off && !text.trim_end().is_empty() {
        out::note(text.trim_end());
    }
    overrides::note(&loaded.merged.overrides, cli);
    let (line, status) = render::verdict(&plan, &loaded);
    out::result(json, &report::checked(&plan), || format!("{line}\n"))?;
    Ok(status)
}

/// Runs `cat-config`.
pub fn cat(cli: &Cli, json: Json) -> Result<ExitStatus, Error> {
    let loaded = read::readable_config(cli.config.as_ref())?;
    let variables = variables(&gather::machine(&read::host()));
    out::result(json, &document(&loaded, &variables), || text(&loaded, Style::stdout(cli.color)))?;
    if !loaded.problems.is_empty() {
        out::note("There are mistakes; `zramdctl check` shows them.");
    }
    Ok(ExitStatus::Success)
}

/// The configuration as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "cat-config"))]
pub(super) struct Document<'a> {
    /// Version of this form, incremented when a field is removed or changes its meaning.
    schema_version: u32,
    /// The files, lowest precedence first.
    files: &'a [PathBuf],
    /// Whether nothing of this is used, because the kernel command line says systemd.zram=0.
    disabled_by_cmdline: bool,
    /// Sections that are not used because of a mistake.
    broken: &'a BTreeSet<String>,
    /// The keys of the other sections: those that are assigned, and those with a default.
    settings: Vec<Setting>,
}

fn document<'a>(loaded: &'a Loaded, variables: &Variables) -> Document<'a> {
    Document {
        schema_version: SCHEMA_VERSION,
        files: &loaded.files,
        disabled_by_cmdline: loaded.disabled_by_cmdline,
        broken: &loaded.merged.broken,
        settings: settings(loaded, variables),
    }
}

/// All sections as TOML, each key with the place where it was assigned.
pub fn text(loaded: &Loaded, style: Style) -> String {
    let mut out = String::new();
    let mut comment = |text: &str| out.push_str(&(style.dim(&format!("# {text}")) + "\n"));
    match loaded.files.as_slice() {
        [] => comment(&format!(
            "There is no configuration: neither {MAIN} nor {DROP_INS}/*.toml in {}.",
            ROOTS.into_iter().filter(|root| *root != CREDENTIALS).collect::<Vec<_>>().join(", ")
        )),
        [file] => comment(&one_line(file)),
        files => {
            comment("Read in this order; the last assignment of a key is used:");
            for file in files {
                comment(&format!("  {}", one_line(file)));
            }
        }
    }
    if loaded.disabled_by_cmdline {
        comment("Nothing of this is used: the kernel command line says systemd.zram=0.");
    }
    for name in &loaded.merged.broken {
        comment(&format!("[{name}] is not used because of a mistake that `zramdctl check` shows."));
    }
    let mut sections: Vec<(&String, &Section)> = loaded.merged.sections.iter().collect();
    sections.sort_by_key(|(name, _)| order(name));
    for (name, section) in sections {
        out.push('\n');
        out.push_str(&self::section(name, section, style));
    }
    out
}

/// Defaults first, then devices by number, RAM disks, and unknown sections.
fn order(name: &str) -> (u8, u32, &str) {
    if name == "defaults" {
        return (0, 0, name);
    }
    match name.strip_prefix("zram").and_then(|number| number.parse().ok()) {
        Some(number) => (1, number, name),
        None if name.starts_with("ramdisk.") => (2, 0, name),
        None => (3, 0, name),
    }
}

fn section(name: &str, section: &Section, style: Style) -> String {
    let parts = match name.split_once('.') {
        Some((kind @ "ramdisk", name)) => vec![kind, name],
        _ => vec![name],
    };
    let header: Vec<String> = parts.into_iter().map(bare_or_quoted).collect();
    let mut rows = Vec::new();
    for (name, assignment) in &section.keys {
        let line = match assignment.value.toml() {
            Ok(value) => format!("{} = {value}", bare_or_quoted(name)),
            Err(kind) => format!("# {} = {kind}", bare_or_quoted(name)),
        };
        rows.push((line, place(&assignment.origin)));
    }
    let header = format!("[{}]", header.join("."));
    let mut out = style.bold(&header);
    if rows.is_empty() {
        out.push_str(&style.dim(&format!("  # {}", place(&section.origin))));
    }
    out.push('\n');
    let width = rows.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    for (line, place) in rows {
        let padding = " ".repeat(width - line.chars().count());
        out.push_str(&format!("{line}{padding}{}\n", style.dim(&format!("  # {place}"))));
    }
    out
}

fn one_line(path: &Path) -> String {
    out::escaped(&path.display().to_string(), false)
}

fn place(origin: &Origin) -> String {
    out::escaped(&origin.place(), false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use logic::config::value::Value;

    const MAIN_FILE: &str = r#"
[defaults]
compression-algorithm = ["zstd(level=3)", "lz4"]

[zram10]
zram-fraction = 0.25

[zram2]
mount-point = "/var/cache/żółw \"b\"\u0007"
mode = 0o755
swap-priority = -1
born = 2020-01-01

[ramdisk.scratch]
mount-point = "/var/cache/scratch"

[ramdisk."a.b c"]
enabled = true
"#;

    fn loaded() -> Loaded {
        let files = [
            ("/usr/lib/zramd/zramd.toml".into(), MAIN_FILE.to_owned()),
            (
                "/etc/zramd/zramd.toml".into(),
                "[zram10]\nzram-fraction = 0.5\n[zram0]\n[zram5]\nzram-size = \n".to_owned(),
            ),
        ];
        config::load(&files, "")
    }

    #[test]
    fn the_configuration_is_as_in_the_golden_files() {
        let loaded = loaded();
        fixture::golden("cat-config", &text(&loaded, Style::default()));
        let machine = Variables { ram_mib: 8192.0, swap_mib: 0.0, cpus: 4.0 };
        fixture::golden("cat-config-json", &out::json(&document(&loaded, &machine), Json::Pretty).unwrap());
        fixture::golden("cat-config-nothing", &text(&Loaded::default(), Style::default()));
        let off = config::load(&[("f".into(), "[zram0]\n".to_owned())], "systemd.zram=0");
        assert!(text(&off, Style::default()).contains("systemd.zram=0"));
    }

    /// The output is itself a configuration, with the same meaning.
    #[test]
    fn the_output_is_a_valid_configuration() {
        let first = loaded();
        let printed = text(&first, Style::default());
        let again = config::load(&[("printed".into(), printed.clone())], "");
        let values = |loaded: &Loaded| -> Vec<(String, String, String)> {
            let keys = loaded.merged.sections.iter().flat_map(|(name, section)| {
                section
                    .keys
                    .iter()
                    .map(move |(key, assignment)| (name.clone(), key.clone(), assignment.value.toml()))
            });
            keys.filter_map(|(name, key, value)| Some((name, key, value.ok()?))).collect()
        };
        assert_eq!(values(&again), values(&first), "{printed}");
        assert_eq!(values(&first).len(), 7);
    }

    #[test]
    fn numbers_keep_their_form() {
        for (given, expected) in [
            (Value::Float(1.0), "1.0"),
            (Value::Float(f64::INFINITY), "inf"),
            (Value::Float(f64::NAN), "nan"),
            (Value::Integer(493, true), "0o755"),
            (Value::Integer(-5, false), "-5"),
            (Value::Boolean(true), "true"),
        ] {
            assert_eq!(given.toml().unwrap(), expected);
        }
        assert_eq!(Value::Array(vec![(Value::Other("a date"), Origin::default())]).toml(), Err("a date"));
    }
}
