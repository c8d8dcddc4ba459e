//! `plan`: the changes that a reload would make.

use serde::Serialize;

use super::args::{Cli, Json};
use super::connect::Bus;
use super::style::Style;
use super::{act, out, read};
use engine::{Error, ErrorKind};
use logic::change::Action;
use logic::config::problem::Severity;
use logic::config::render;
use logic::exit::ExitStatus;
use logic::plan::report::SCHEMA_VERSION;
use logic::table;

/// Action, object and detail.
type Row = (String, String, String);

/// What `reload` would change.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "plan"))]
pub(super) struct Document<'a> {
    /// Version of this form, incremented when a field is removed or changes its meaning.
    schema_version: u32,
    /// What `reload` would change, in order.
    changes: Vec<Entry<'a>>,
}

/// A change of a target.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "PlanEntry"))]
struct Entry<'a> {
    /// remove, recreate, reactivate, create, activate, adapt or refuse.
    action: &'a str,
    /// The target, for example `zram0` or `ramdisk.logs`.
    object: &'a str,
    /// The differences, or the reason.
    detail: &'a str,
}

/// Asks the daemon. Plans here for a named file, and without a daemon.
pub async fn run(cli: &Cli, force: bool, json: Json) -> Result<ExitStatus, Error> {
    if cli.config.is_some() {
        return here(cli, force, json);
    }
    match asked(!cli.no_ask_password, force).await {
        Ok(rows) => show(cli, &rows, json),
        Err(failure) if failure.kind == ErrorKind::NotRunning => {
            out::note("zramd.service cannot be reached; this plan was made without it");
            here(cli, force, json)
        }
        Err(failure) => Err(failure),
    }
}

async fn asked(ask: bool, force: bool) -> Result<Vec<Row>, Error> {
    let bus = Bus::open(ask).await?;
    bus.manager("Plan", &act::forced(force)).await
}

/// Plans without the daemon.
fn here(cli: &Cli, forced: bool, json: Json) -> Result<ExitStatus, Error> {
    let file = cli.config.as_ref();
    let loaded = read::readable_config(file)?;
    if !loaded.problems.is_empty() {
        let colour = Style::stderr(cli.color).has_colour();
        out::note(render::render(&loaded.problems, colour).trim_end());
    }
    let survey = read::survey(file, &loaded, forced)?;
    let changes = survey.changes.into_iter().filter(|change| change.action != Action::Keep);
    let rows: Vec<Row> = changes
        .map(|change| (change.action.word().to_owned(), change.target.to_string(), change.detail))
        .collect();
    let status = show(cli, &rows, json)?;
    let wrong = loaded.problems.iter().any(|problem| problem.severity == Severity::Error);
    Ok(if wrong { ExitStatus::Failure } else { status })
}

fn show(cli: &Cli, rows: &[Row], json: Json) -> Result<ExitStatus, Error> {
    let changes = rows.iter().map(|(action, object, detail)| Entry { action, object, detail }).collect();
    let document = Document { schema_version: SCHEMA_VERSION, changes };
    out::result(json, &document, || text(rows, Style::stdout(cli.color)))?;
    Ok(status(rows))
}

/// The table; refusals are emphasised.
fn text(rows: &[Row], style: Style) -> String {
    if rows.is_empty() {
        return "nothing to change\n".to_owned();
    }
    let cells = rows.iter().cloned().map(|(action, object, detail)| vec![action, object, detail]);
    let table = table::render(&["ACTION", "OBJECT", "DETAIL"], &[], &cells.collect::<Vec<_>>());
    let mut lines = table.lines();
    let mut out = lines.next().map_or_else(String::new, |heading| style.bold(heading) + "\n");
    for (line, (action, ..)) in lines.zip(rows) {
        out += &if action == Action::Refuse.word() { style.warning(line) } else { line.to_owned() };
        out.push('\n');
    }
    out
}

/// Exit status: a refusal is not success.
fn status(rows: &[Row]) -> ExitStatus {
    match rows.iter().filter(|(action, ..)| action == Action::Refuse.word()).count() {
        0 => ExitStatus::Success,
        refused if refused < rows.len() => ExitStatus::Partly,
        _ => ExitStatus::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(action: &str, object: &str, detail: &str) -> Row {
        (action.to_owned(), object.to_owned(), detail.to_owned())
    }

    #[test]
    fn a_plan_is_a_table() {
        let rows = [
            row("recreate", "zram0", "size 1.0 GiB → 2.0 GiB"),
            row("create", "ramdisk.a", "64.0 MiB tmpfs"),
        ];
        let expected = "ACTION    OBJECT     DETAIL\n\
                        recreate  zram0      size 1.0 GiB → 2.0 GiB\n\
                        create    ramdisk.a  64.0 MiB tmpfs\n";
        assert_eq!(text(&rows, Style::default()), expected);
        assert_eq!(text(&[], Style::default()), "nothing to change\n");
        let refused = [row("refuse", "zram1", "no")];
        assert!(text(&refused, Style::new(true)).contains("\x1b[1;33mrefuse  zram1   no\x1b[0m\n"));
    }

    #[test]
    fn refusals_set_the_exit_status() {
        let (create, refuse) =
            (row("create", "zram0", ""), row("refuse", "zram1", "would lose its contents"));
        assert_eq!(status(&[]), ExitStatus::Success);
        assert_eq!(status(std::slice::from_ref(&create)), ExitStatus::Success);
        assert_eq!(status(&[create, refuse.clone()]), ExitStatus::Partly);
        assert_eq!(status(&[refuse]), ExitStatus::Refused);
    }
}
