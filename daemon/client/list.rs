//! `list`: one line per device and RAM disk.

use serde::Serialize;

use super::args::{Cli, Json, List};
use super::cell::{Amounts, Cell};
use super::columns::{self, COLUMNS, Chosen, Row};
use super::style::Style;
use super::{out, read, select};
use engine::Error;
use engine::sample::Detail;
use logic::exit::ExitStatus;
use logic::finding::Finding;
use logic::sample::{DeviceView, RamdiskView, SCHEMA_VERSION, Snapshot, StateView};
use logic::table;
use logic::zswap::ZswapView;

/// Form of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Form {
    /// How amounts are written.
    pub amounts: Amounts,
    /// Without headings.
    pub bare: bool,
    /// Columns separated by one blank, blanks in cells escaped.
    pub raw: bool,
    /// Colours.
    pub style: Style,
}

/// The JSON form.
#[derive(Debug, Serialize)]
struct Document<'a> {
    schema_version: u32,
    devices: Vec<&'a DeviceView>,
    zswap: Option<&'a ZswapView>,
    ramdisks: Vec<&'a RamdiskView>,
    problems: &'a [Finding],
}

pub fn run(cli: &Cli, list: &List) -> Result<ExitStatus, Error> {
    let chosen = match columns::choose(list.output.as_deref(), list.output_all) {
        Ok(chosen) => chosen,
        Err(name) => {
            let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
            out::error(&format!("unknown column {name:?}; there are {}", names.join(", ")));
            return Ok(ExitStatus::Usage);
        }
    };
    // Only the JSON form includes the problems.
    let snapshot = match list.form.json {
        Json::Pretty | Json::Short => read::snapshot(cli.config.as_ref())?.0,
        Json::Off if chosen.iter().all(|chosen| chosen.column.default) => {
            read::figures(cli.config.as_ref(), Detail::Listed)?
        }
        Json::Off => read::figures(cli.config.as_ref(), Detail::Full)?,
    };
    let mut rows = Row::all(&snapshot);
    if list.patterns.is_empty() && !list.all {
        rows.retain(is_set_up);
    }
    let (rows, unknown) = select::select(rows, &list.patterns);
    let amounts = if list.bytes { Amounts::Exact } else { Amounts::Short };
    let form = Form { amounts, bare: list.noheadings, raw: list.raw, style: Style::stdout(cli.color) };
    if list.form.json == Json::Off && rows.is_empty() {
        if unknown.is_empty() {
            out::note("There is no zram device in use, no zswap, and no RAM disk of zramd.");
        }
    } else {
        out::result(list.form.json, &document(&snapshot, &rows), || render(&rows, &chosen, form))?;
    }
    Ok(select::report(&unknown))
}

/// Whether zramd or another program has set it up: loading the kernel module creates a device that is not.
fn is_set_up(row: &Row<'_>) -> bool {
    !matches!(row, Row::Device(device) if device.state == StateView::Unused && !device.managed)
}

fn document<'a>(snapshot: &'a Snapshot, rows: &[Row<'a>]) -> Document<'a> {
    let (devices, ramdisks) = Row::split(rows);
    let zswap = rows.iter().find_map(|row| row.zswap());
    Document { schema_version: SCHEMA_VERSION, devices, zswap, ramdisks, problems: &snapshot.problems }
}

/// The list as text.
pub fn render(rows: &[Row<'_>], columns: &[Chosen], form: Form) -> String {
    let cell = |row: &Row<'_>, chosen: &Chosen| match chosen.column.cell(*row) {
        // `[ -z "$(zramdctl -no MOUNTPOINT zram0)" ]`
        Cell::Empty if columns.len() == 1 => String::new(),
        cell => out::escaped(&cell.text(form.amounts), form.raw),
    };
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| columns.iter().map(|chosen| cell(row, chosen)).collect()).collect();
    let heading: Vec<&str> =
        columns.iter().map(|chosen| if form.bare { "" } else { chosen.heading }).collect();
    if form.raw {
        let heading = (!form.bare).then(|| heading.join(" ") + "\n");
        let lines = cells.iter().map(|row| row.join(" ") + "\n");
        return heading.into_iter().chain(lines).collect();
    }
    let right: Vec<usize> = (0..columns.len()).filter(|&at| columns[at].column.right).collect();
    // One blank, as in zramctl, so that the default fits into 80 columns.
    let text = table::render_with_gap(" ", &heading, &right, &cells);
    let mut lines = text.lines();
    let mut out = String::new();
    if let Some(heading) = lines.next().filter(|_| !form.bare) {
        out.push_str(&form.style.bold(heading));
        out.push('\n');
    }
    for (line, row) in lines.zip(rows) {
        // Devices of other programs are dimmed.
        out.push_str(&if row.managed() { line.to_owned() } else { form.style.dim(line) });
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn shown(columns: &[Chosen], form: Form) -> String {
        render(&Row::all(&fixture::machine()), columns, form)
    }

    #[test]
    fn the_list_is_as_in_the_golden_files() {
        let default = columns::choose(None, false).unwrap();
        let all = columns::choose(None, true).unwrap();
        fixture::golden("list", &shown(&default, Form::default()));
        fixture::golden("list-all-bytes", &shown(&all, Form { amounts: Amounts::Exact, ..Form::default() }));
        fixture::golden("list-raw", &shown(&all, Form { raw: true, ..Form::default() }));
        fixture::golden("list-colour", &shown(&default, Form { style: Style::new(true), ..Form::default() }));
    }

    #[test]
    fn a_single_empty_cell_is_empty() {
        let one = columns::choose(Some("mountpoint"), false).unwrap();
        let form = Form { bare: true, raw: true, ..Form::default() };
        assert!(shown(&one, form).lines().any(str::is_empty));
    }

    #[test]
    fn devices_that_are_not_set_up_are_hidden() {
        let machine = fixture::machine();
        let hidden: Vec<&str> =
            Row::all(&machine).iter().filter(|row| !is_set_up(row)).map(|row| row.name()).collect();
        assert_eq!(hidden, ["zram3"]);
    }

    #[test]
    fn without_a_heading_columns_are_as_wide_as_their_cells() {
        let columns = columns::choose(Some("NAME,DATA"), false).unwrap();
        let text = shown(&columns, Form { bare: true, ..Form::default() });
        assert_eq!(text.lines().next(), Some("/dev/zram0  1.2G"), "{text}");
        let text = shown(&columns, Form { bare: true, raw: true, ..Form::default() });
        assert_eq!(text.lines().next(), Some("/dev/zram0 1.2G"), "{text}");
    }

    #[test]
    fn json_holds_what_was_selected_and_numbers_are_numbers() {
        let snapshot = fixture::machine();
        let words = ["zram0".to_owned(), "scratch".to_owned()];
        let (rows, _) = select::select(Row::all(&snapshot), &words);
        let text = out::json(&document(&snapshot, &rows), Json::Short).unwrap();
        assert_eq!(text.lines().count(), 1);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema_version"], 1);
        assert_eq!(value["devices"].as_array().unwrap().len(), 1);
        assert_eq!(value["devices"][0]["disk_size_bytes"], 4u64 << 30);
        assert_eq!(value["ramdisks"][0]["name"], "scratch");
        assert_eq!(value["problems"][0]["code"], "writes-failed");
        assert_eq!(text.parse::<serde_json::Value>().unwrap(), value);
    }
}
