//! `overrides` and `unset --runtime`: changes that override the configuration until the next boot.

use serde::Serialize;
use zbus::OwnedObjectPath;

use super::args::{Change, Cli, Json};
use super::connect::Bus;
use super::job::Jobs;
use super::style::Style;
use super::{changes, out, problems, read};
use engine::{Error, ErrorKind};
use logic::config::schema::SectionKind;
use logic::exit::ExitStatus;
use logic::overlay::{self, Override, Standing};
use logic::table;

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Placeholder for a missing value.
const NONE: &str = "-";

pub fn run(cli: &Cli, json: Json) -> Result<ExitStatus, Error> {
    let overrides = read::readable_config(read::used_file(cli).as_ref())?.merged.overrides;
    let document = Document { schema_version: SCHEMA_VERSION, overrides: &overrides };
    out::result(json, &document, || text(&overrides, Style::stdout(cli.color)))?;
    Ok(ExitStatus::Success)
}

/// The JSON form.
#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    overrides: &'a [Override],
}

pub(super) fn text(overrides: &[Override], style: Style) -> String {
    if overrides.is_empty() {
        return "no overrides\n".to_owned();
    }
    let rows: Vec<Vec<String>> = overrides.iter().map(row).collect();
    let table = table::render(&["OBJECT", "KEY", "RUNTIME", "CONFIGURED", "COMMAND"], &[], &rows);
    let (heading, rows) = table.split_once('\n').unwrap_or((&table, ""));
    format!("{}\n{rows}", style.bold(heading))
}

fn row(found: &Override) -> Vec<String> {
    let configured = match (&found.configured, &found.configured_at, found.standing) {
        (_, _, Standing::Broken) => "section has a mistake".to_owned(),
        (Some(value), Some(place), _) => format!("{value} ({place})"),
        (Some(value), None, _) => value.clone(),
        (None, _, Standing::Orphaned) => "section removed".to_owned(),
        (None, _, Standing::InForce | Standing::Created) => NONE.to_owned(),
    };
    let command = found.command.map_or(NONE, overlay::Command::words);
    [&found.object, &found.key, &found.value, &configured, command]
        .map(|cell| out::escaped(cell, false))
        .to_vec()
}

/// Whether `swap off` has switched this device off.
pub fn is_switched_off(cli: &Cli, name: &str) -> bool {
    let off = |found: &Override| {
        found.object == changes::bare(name) && found.command == Some(overlay::Command::SwapOff)
    };
    read::config(read::daemons_file(cli).as_ref()).merged.overrides.iter().any(off)
}

/// Prints notes about overrides that are in effect.
pub fn note(overrides: &[Override], cli: &Cli) {
    let notes = overlay::findings(overrides);
    // On standard error, because it is no part of the result.
    if !notes.is_empty() {
        out::note(problems::render(&notes, Style::stderr(cli.color)).trim_end());
    }
}

/// Runs `unset --runtime`.
pub async fn unset(cli: &Cli, names: &[String], change: Change) -> Result<ExitStatus, Error> {
    let bus = Bus::open(!cli.no_ask_password).await?;
    let mut jobs = Jobs::listen(&bus).await?;
    let mut ends = Vec::new();
    for name in names {
        let end = async {
            let job: OwnedObjectPath =
                bus.manager("UnsetOverride", &(name, changes::forced(change.force))).await?;
            changes::finish(&mut jobs, &job, change.no_block, &format!("unsetting {name}")).await
        };
        ends.push(end.await);
    }
    changes::together(ends)
}

/// Refuses a key beside a name: `unset --runtime` removes all overrides of an object.
pub fn check_names(names: &[String]) -> Result<(), Error> {
    let Some((name, others)) = names.split_first() else { return Ok(()) };
    let kind = SectionKind::of(changes::bare(name)).unwrap_or(SectionKind::Ramdisk);
    match others.iter().find(|other| kind.key(other).is_some()) {
        Some(key) => {
            let message = format!(
                "`{key}` is a key: --runtime removes all overrides of a device or RAM disk; to change one, run \
                 `zramdctl set --runtime {name} {key}=VALUE`"
            );
            Err(Error::new(ErrorKind::InvalidArgument, message))
        }
        None => Ok(()),
    }
}

/// Names of all objects with an override.
pub fn objects(cli: &Cli) -> Result<Vec<String>, Error> {
    let overrides = read::readable_config(read::daemons_file(cli).as_ref())?.merged.overrides;
    let mut objects: Vec<String> = overrides.into_iter().map(|found| found.object).collect();
    objects.dedup();
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use logic::config;

    #[test]
    fn a_key_is_not_taken_for_a_name() {
        let check =
            |names: &[&str]| check_names(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert!(check(&["zram0", "zram1", "logs"]).is_ok() && check(&[]).is_ok());
        for names in [["/dev/zram0", "swap-priority"], ["logs", "size"]] {
            assert!(check(&names).unwrap_err().message.contains(names[1]));
        }
    }

    fn overrides() -> Vec<Override> {
        let run = |name: &str| format!("/run/zramd/zramd.toml.d/zz-runtime-{name}.toml").into();
        let files = [
            (
                "/etc/zramd/zramd.toml".into(),
                "[zram0]\nzram-size = \"64MiB\"\n[ramdisk.logs]\nmount-point = \"/srv/logs\"\nsize = \"1GiB\"\n"
                    .to_owned(),
            ),
            (
                run("ramdisk.logs"),
                "# x\n[ramdisk.logs]\nsize = \"2GiB\" # ramdisk resize\n".to_owned(),
            ),
            (
                run("zram0"),
                "[zram0]\nmax-zram-size = \"96MiB\" # resize\nzram-size = \"96MiB\" # resize\n".to_owned(),
            ),
            (
                run("zram1"),
                "# transient\n[zram1]\nzram-size = \"1GiB\" # create\n".to_owned(),
            ),
            (run("zram2"), "[zram2]\nenabled = false\n".to_owned()),
        ];
        config::load(&files, "").merged.overrides
    }

    #[test]
    fn overrides_are_as_in_the_golden_files() {
        let found = overrides();
        fixture::golden("overrides", &text(&found, Style::default()));
        let document = Document { schema_version: SCHEMA_VERSION, overrides: &found };
        fixture::golden("overrides-json", &out::json(&document, Json::Pretty).unwrap());
        fixture::golden("overrides-notes", &problems::render(&overlay::findings(&found), Style::default()));
        assert_eq!(text(&[], Style::default()), "no overrides\n");
    }
}
