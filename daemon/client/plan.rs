//! `plan`: the changes that a reload would make.

use std::path::PathBuf;

use serde::Serialize;

use super::args::{Cli, Json};
use super::connect::{self, Bus};
use super::style::Style;
use super::{benchmark, changes, out, read};
use engine::reload::Scope;
use engine::{Error, ErrorKind};
use logic::change::{Action, Change, OnTheBus as Row};
use logic::exit::ExitStatus;
use logic::finding::{Code, Finding, has_errors};
use logic::following::Follower;
use logic::plan::report::SCHEMA_VERSION;
use logic::plan::{Decision, Item, Plan};
use logic::render;
use logic::table;

/// What `reload` would change.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "plan"))]
pub(super) struct Document<'a> {
    /// Version of this form, incremented when a field is removed or changes its meaning.
    schema_version: u32,
    /// What `reload` would change, in order.
    changes: Vec<Entry<'a>>,
    /// Sections that are not for this machine.
    skipped: Vec<Skipped<'a>>,
    /// What the devices have to do with the verdict of the benchmark; empty without one.
    followers: &'a [Follower],
    /// Mistakes, refusals, and what is in the way. After a mistake, `reload` refuses the configuration: then nothing changes.
    problems: Vec<&'a Finding>,
}

/// A section without effect on this machine.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "SkippedEntry"))]
struct Skipped<'a> {
    /// The target, for example `zram0`.
    object: String,
    /// Why.
    reason: &'a str,
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
pub fn run(cli: &Cli, force: bool, json: Json) -> Result<ExitStatus, Error> {
    if cli.config.is_some() {
        return here(cli, cli.config.as_ref(), force, json);
    }
    match connect::wait(asked(!cli.no_ask_password, force)) {
        // The daemon tells the changes; what is skipped, and where refusals come from, is in the files that it reads.
        Ok(rows) => {
            let mut plan = read::check(&read::config(read::daemons_file(cli).as_ref()));
            plan.problems.retain(|found| found.code != Code::Refused);
            show(cli, &rows, &plan, &benchmark::followers(cli), json)
        }
        Err(failure) if failure.kind == ErrorKind::NotRunning => {
            out::note("zramd.service cannot be reached; this plan was made without it");
            here(cli, None, force, json)
        }
        Err(failure) if failure.kind == ErrorKind::Config => {
            here(cli, read::daemons_file(cli).as_ref(), force, json)
        }
        Err(failure) => Err(failure),
    }
}

async fn asked(ask: bool, force: bool) -> Result<Vec<Row>, Error> {
    let bus = Bus::open(ask).await?;
    bus.manager("Plan", &changes::forced(force)).await
}

/// Plans without the daemon.
fn here(cli: &Cli, file: Option<&PathBuf>, forced: bool, json: Json) -> Result<ExitStatus, Error> {
    let loaded = read::readable_config(file)?;
    if has_errors(&loaded.problems) {
        // Also what this machine refuses, so that all can be corrected at once.
        let plan = read::check(&loaded);
        tell(cli, plan.findings(), json);
        let document = document(&[], &[], &[], plan.findings());
        let text = "a reload refuses this configuration because of the mistakes, and changes nothing\n";
        out::result(json, &document, || text.to_owned())?;
        return Ok(ExitStatus::Failure);
    }
    let survey = read::survey(file, &loaded, Scope { forced, ..Scope::default() })?;
    let followers = survey.followers(&read::host(), &loaded);
    let changes = survey.changes.into_iter().filter(|change| change.action != Action::Keep);
    let rows: Vec<Row> = changes.map(Change::on_the_bus).collect();
    show(cli, &rows, &survey.plan, &followers, json)
}

/// Prints findings to standard error, unless they are in the JSON form.
fn tell<'a>(cli: &Cli, findings: impl IntoIterator<Item = &'a Finding>, json: Json) {
    let text = render::render(findings, Style::stderr(cli.color).has_colour());
    if json == Json::Off && !text.trim_end().is_empty() {
        out::note(text.trim_end());
    }
}

fn show(
    cli: &Cli,
    rows: &[Row],
    plan: &Plan,
    followers: &[Follower],
    json: Json,
) -> Result<ExitStatus, Error> {
    tell(cli, plan.findings(), json);
    let skipped = skipped(rows, plan);
    let document = document(rows, &skipped, followers, plan.findings());
    out::result(json, &document, || text(rows, &skipped, followers, Style::stdout(cli.color)))?;
    Ok(status(rows))
}

/// The skipped items of a plan, except those with a change: they are removed.
fn skipped<'a>(rows: &[Row], plan: &'a Plan) -> Vec<&'a Item> {
    let is_changed = |item: &Item| rows.iter().any(|(_, object, _)| *object == item.target.to_string());
    let skipped = plan.items.iter().filter(|item| item.decision == Decision::Skipped);
    skipped.filter(|item| !is_changed(item)).collect()
}

fn document<'a>(
    rows: &'a [Row],
    skipped: &[&'a Item],
    followers: &'a [Follower],
    findings: impl IntoIterator<Item = &'a Finding>,
) -> Document<'a> {
    let of_item = |item: &&'a Item| Skipped { object: item.target.to_string(), reason: &item.reason };
    Document {
        schema_version: SCHEMA_VERSION,
        changes: rows.iter().map(|(action, object, detail)| Entry { action, object, detail }).collect(),
        skipped: skipped.iter().map(of_item).collect(),
        followers,
        problems: findings.into_iter().collect(),
    }
}

/// The table; refusals are emphasised.
pub(super) fn text(rows: &[Row], skipped: &[&Item], followers: &[Follower], style: Style) -> String {
    let of_item = |item: &&Item| vec!["skip".to_owned(), item.target.to_string(), item.reason.clone()];
    let cells = rows.iter().cloned().map(|(action, object, detail)| vec![action, object, detail]);
    let cells: Vec<Vec<String>> = cells.chain(skipped.iter().map(of_item)).collect();
    let mut out = String::new();
    if !cells.is_empty() {
        let table = table::render(&["ACTION", "OBJECT", "DETAIL"], &[], &cells);
        let mut lines = table.lines();
        out += &lines.next().map_or_else(String::new, |heading| style.bold(heading) + "\n");
        for (line, cells) in lines.zip(&cells) {
            let is_refused = cells.first().is_some_and(|action| action == Action::Refuse.word());
            out += &if is_refused { style.warning(line) } else { line.to_owned() };
            out.push('\n');
        }
    }
    if rows.is_empty() {
        out += "nothing to change\n";
    }
    for sentence in benchmark::sentences(followers) {
        out += &format!("{sentence}\n");
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
    use logic::config;
    use logic::facts::Facts;
    use logic::plan::Activation;

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
        assert_eq!(text(&rows, &[], &[], Style::default()), expected);
        assert_eq!(text(&[], &[], &[], Style::default()), "nothing to change\n");
        let refused = [row("refuse", "zram1", "no")];
        assert!(text(&refused, &[], &[], Style::new(true)).contains("\x1b[1;33mrefuse  zram1   no\x1b[0m\n"));
    }

    #[test]
    fn a_section_that_makes_no_device_is_shown_with_its_reason() {
        let loaded = config::load(&[("f".into(), "[zram3]\nzram-size = 0\n".to_owned())], "");
        let plan = logic::plan::plan(&loaded.settings, Vec::new(), &Facts::default(), Activation::Direct);
        let items = skipped(&[], &plan);
        let expected = "ACTION  OBJECT  DETAIL\nskip    zram3   its size is 0\nnothing to change\n";
        assert_eq!(text(&[], &items, &[], Style::default()), expected);
        let shown = serde_json::to_value(document(&[], &items, &[], &[])).unwrap();
        assert_eq!(shown["skipped"][0]["reason"], "its size is 0");
        assert_eq!(shown["changes"], serde_json::json!([]));
        let removed = [row("remove", "zram3", "its size is 0")];
        assert_eq!(skipped(&removed, &plan), Vec::<&Item>::new(), "said once");
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
