//! `plan`: what a reload would change.

use std::io::IsTerminal;
use std::path::PathBuf;

use super::connect::{Bus, Failure};
use super::{act, out, read};
use crate::logic::change::Action;
use crate::logic::config::problem::Severity;
use crate::logic::config::render;
use crate::logic::exit::ExitStatus;
use crate::logic::table;

/// Action, object and detail.
type Row = (String, String, String);

/// Asks the daemon, or works it out here: for another file, and where no daemon is.
pub async fn run(ask: bool, file: Option<&PathBuf>, force: bool) -> Result<ExitStatus, Failure> {
    if file.is_some() {
        return here(file, force);
    }
    match asked(ask, force).await {
        Ok(rows) => Ok(show(&rows)),
        Err(failure) if failure.is_absence() => {
            out::note("zramd.service cannot be asked; this is worked out without it");
            here(None, force)
        }
        Err(failure) => Err(act::by_lines(&failure)),
    }
}

async fn asked(ask: bool, force: bool) -> Result<Vec<Row>, Failure> {
    let bus = Bus::open(ask).await?;
    bus.manager("Plan", &act::forced(force)).await
}

/// Without the daemon.
fn here(file: Option<&PathBuf>, forced: bool) -> Result<ExitStatus, Failure> {
    let loaded = read::config(file).loaded;
    if !loaded.problems.is_empty() {
        out::note(render::render(&loaded.problems, std::io::stderr().is_terminal()).trim_end());
    }
    let survey = read::survey(file, &loaded, forced)
        .map_err(|error| Failure::new(error.exit_status(), error.message))?;
    let changes = survey.changes.into_iter().filter(|change| change.action != Action::Keep);
    let rows: Vec<Row> = changes
        .map(|change| (change.action.word().to_owned(), change.target.to_string(), change.detail))
        .collect();
    let status = show(&rows);
    let wrong = loaded.problems.iter().any(|problem| problem.severity == Severity::Error);
    Ok(if wrong { ExitStatus::Failure } else { status })
}

fn show(rows: &[Row]) -> ExitStatus {
    out::line(text(rows).trim_end());
    status(rows)
}

/// The table.
fn text(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "nothing to change\n".to_owned();
    }
    let cells = rows.iter().cloned().map(|(action, object, detail)| vec![action, object, detail]);
    table::render(&["ACTION", "OBJECT", "DETAIL"], &[], &cells.collect::<Vec<_>>())
}

/// A plan that refuses something is no success, so that scripts need not read it.
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
        assert_eq!(text(&rows), expected);
        assert_eq!(text(&[]), "nothing to change\n");
    }

    #[test]
    fn what_is_refused_is_seen_in_the_status() {
        let (create, refuse) =
            (row("create", "zram0", ""), row("refuse", "zram1", "would lose its contents"));
        assert_eq!(status(&[]), ExitStatus::Success);
        assert_eq!(status(std::slice::from_ref(&create)), ExitStatus::Success);
        assert_eq!(status(&[create, refuse.clone()]), ExitStatus::Partly);
        assert_eq!(status(&[refuse]), ExitStatus::Refused);
    }
}
