//! Output: results to standard output, problems to standard error.

use engine::Error;
use engine::provision::Applied;
use engine::status::Row;
use host::out;
use logic::config::Loaded;
use logic::finding::{Finding, Level};
use logic::human::human;
use logic::log::Level::Notice;
use logic::outcome::Outcome;
use logic::plan::Decision;
use logic::record::Target;
use logic::render;
use logic::table;
use serde::Serialize;

/// Prints a note on standard error.
pub fn note(text: &str) {
    out::note(&format!("zramd-setup: {text}"));
}

/// Prints an error.
pub fn error(error: &Error) {
    out::error(&error.to_string());
}

/// A document as JSON with a final line break.
pub fn json<T: Serialize>(value: &T) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|error| Error::failed(format!("write JSON: {error}")))
}

/// Prints findings with their source lines.
pub fn findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) {
    let text = render::render(findings, out::notes_have_terminal());
    if !text.trim_end().is_empty() {
        out::note(text.trim_end());
    }
}

/// Logs findings, one line each: as messages of a generator or a service, which people read in a log.
pub fn short<'a>(findings: impl IntoIterator<Item = &'a Finding>) {
    let (findings, rest) = render::shown(findings);
    for finding in findings {
        let text = finding.one_line();
        match finding.level {
            Level::Error => tracing::error!("{text}"),
            Level::Warning => tracing::warn!("{text}"),
            Level::Note => tracing::info!(PRIORITY = Notice.priority(), "{text}"),
        }
    }
    if let Some(rest) = rest {
        tracing::info!(PRIORITY = Notice.priority(), "{rest}");
    }
}

/// Prints warnings and errors of an applied plan.
pub fn outcomes(outcomes: &[Outcome]) {
    for outcome in outcomes {
        for warning in &outcome.warnings {
            out::warning(warning);
        }
        for error in &outcome.errors {
            self::error(error);
        }
    }
}

/// Prints the targets with their figures, and after an `apply` the sections that are not used, and below the reasons of choices.
pub fn table(rows: &[Row], applied: Option<(&Applied, &Loaded)>) {
    let size = |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), human);
    let mut cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                row.target.to_string(),
                row.algorithm.clone().unwrap_or_else(|| "-".to_owned()),
                size(row.size),
                size(row.stored),
                size(row.memory),
                row.used_for.clone(),
                row.state.to_owned(),
            ]
        })
        .collect();
    let items = applied.map(|(applied, _)| applied.plan.items.as_slice()).unwrap_or_default();
    let outcomes = applied.map(|(applied, _)| applied.outcomes.as_slice()).unwrap_or_default();
    let unused: Vec<(&str, &str)> =
        applied.into_iter().flat_map(|(applied, loaded)| applied.plan.unused(loaded)).collect();
    // Kernel settings that have their values already have no row.
    let is_unchanged = |target: &Target| {
        matches!(target, Target::Vm | Target::Zswap)
            && !outcomes.iter().any(|outcome| outcome.target == *target && !outcome.errors.is_empty())
    };
    let mut add = |name: String, state: &str| {
        let mut row = vec!["-".to_owned(); 7];
        (row[0], row[6]) = (name, state.to_owned());
        cells.push(row);
    };
    for item in items.iter().filter(|item| !rows.iter().any(|row| row.target == item.target)) {
        let state = match item.decision {
            Decision::Planned if is_unchanged(&item.target) => "unchanged",
            Decision::Planned => "failed",
            Decision::Skipped => "skipped",
            Decision::Refused => "refused",
        };
        add(item.target.to_string(), state);
    }
    // One that is set up from an earlier configuration has a row.
    for (name, _) in unused.iter().filter(|(name, _)| !rows.iter().any(|row| row.target.to_string() == *name))
    {
        add((*name).to_owned(), "not used");
    }
    if cells.is_empty() {
        return out::line(applied.map_or("nothing is configured", |(_, loaded)| loaded.nothing()));
    }
    let heading = ["NAME", "ALGORITHM", "SIZE", "STORED", "MEMORY", "USED FOR", "STATE"];
    out::line(table::render(&heading, &[2, 3, 4], &cells).trim_end());
    for item in items {
        match (item.decision, item.algorithm()) {
            (Decision::Planned, Some(candidate)) => {
                // Without a row, it could not be set up.
                let Some(row) = rows.iter().find(|row| row.target == item.target) else { continue };
                let used = row.algorithm.as_deref();
                // A fallback is in use if the first algorithm failed, about which there is a warning above.
                let expected =
                    candidate.algorithm.as_ref().is_none_or(|first| Some(first.name.as_str()) == used);
                let reason =
                    if expected { candidate.reason.as_str() } else { "the one before it did not work" };
                out::line(&format!("{} uses {} ({reason})", item.target, used.unwrap_or("no algorithm")));
            }
            (Decision::Planned, None) => {}
            _ => out::line(&format!("{}: {}", item.target, item.reason)),
        }
    }
    for (name, why) in unused {
        out::line(&format!("{name}: {why}"));
    }
}
