//! `maintain`: one run of maintenance, with the result of each policy.

use std::path::Path;

use zbus::Variant;

use super::args::{self, Cli};
use super::connect::{self, Bus};
use super::job::Jobs;
use super::style::Style;
use super::{out, read, worker};
use engine::maintain::{self, Unwatched};
use engine::work::Stopped;
use engine::{Error, ErrorKind};
use host::Host;
use host::linux::work;
use logic::duration::micros;
use logic::exit::ExitStatus;
use logic::human::human;
use logic::maintain::Cause;
use logic::maintain_report::{Action, Report};
use logic::order::{MAINTENANCE, Maintain, Order};
use logic::proc::device_number;
use logic::text::shown;
use logic::work::Work;

/// Label of the progress bar.
const DOING: &str = "maintaining";

pub fn run(cli: &Cli, words: &args::Maintain) -> Result<ExitStatus, Error> {
    let mut numbers = Vec::new();
    for name in &words.names {
        let number = device_number(name);
        let Some(number) = number else {
            out::error(&format!("{name:?} is no zram device; write for example `zram0`"));
            return Ok(ExitStatus::Usage);
        };
        numbers.push(number);
    }
    if words.dry_run {
        return dry_run(cli, words, numbers);
    }
    let begun = now();
    let ended = if cli.config.is_some() {
        // The daemon would use its own configuration, not the named file.
        by_worker(cli, &numbers)
    } else {
        Ok(connect::run(async {
            match by_daemon(!cli.no_ask_password, &numbers).await {
                Err(failure) if failure.kind == ErrorKind::NotRunning && read::host().is_privileged() => {
                    by_worker(cli, &numbers)
                }
                other => other,
            }
        }))
    };
    // Also after an early end, because completed actions stay.
    if let Some(report) = last(begun) {
        show(&report, words, Style::stdout(cli.color))?;
    }
    ended
}

/// `--dry-run`: planned here, without daemon or privileges.
fn dry_run(cli: &Cli, words: &args::Maintain, devices: Vec<u32>) -> Result<ExitStatus, Error> {
    let loaded = read::readable_config(cli.config.as_ref())?;
    let order = Maintain { devices, dry_run: true, ..Maintain::all(Cause::Request) };
    let (report, ended) = maintain::run(&mut read::host(), &loaded, &order, &mut Unwatched);
    match ended {
        Ok(()) => {}
        Err(Stopped::Failed(error)) => return Err(error),
        Err(Stopped::Cancelled(message) | Stopped::Postponed(message)) => out::note(&message),
    }
    show(&report, words, Style::stdout(cli.color))?;
    Ok(ExitStatus::Success)
}

async fn by_daemon(ask_password: bool, numbers: &[u32]) -> Result<ExitStatus, Error> {
    let bus = Bus::open(ask_password).await?;
    let mut jobs = Jobs::listen(&bus).await?;
    let mut options = super::changes::forced(false);
    if !numbers.is_empty() {
        let names: Vec<String> = numbers.iter().map(|number| format!("zram{number}")).collect();
        options.insert("devices", Variant::from(names));
    }
    let job = bus.manager("Maintain", &options).await?;
    jobs.wait(&job, DOING).await?;
    Ok(ExitStatus::Success)
}

fn by_worker(cli: &Cli, numbers: &[u32]) -> Result<ExitStatus, Error> {
    let config = cli.config.as_deref().map(worker::absolute).transpose()?;
    let order = Maintain { devices: numbers.to_vec(), config, ..Maintain::all(Cause::Request) };
    let _: Report = worker::run(&Order::Maintain(order), DOING)?;
    Ok(ExitStatus::Success)
}

fn now() -> u64 {
    micros(read::host().monotonic())
}

/// The report of a run that began after `begun`.
fn last(begun: u64) -> Option<Report> {
    let work: Work<Report> = serde_json::from_str(&work::read(Path::new("/"), MAINTENANCE)?).ok()?;
    (work.started_monotonic_usec >= begun && work.detail.ended_monotonic_usec >= begun).then_some(work.detail)
}

fn show(report: &Report, words: &args::Maintain, style: Style) -> Result<(), Error> {
    out::result(words.form.json, report, || text(report, words.dry_run, style))
}

/// The report as text: a paragraph per device, and one for all.
pub fn text(report: &Report, dry: bool, style: Style) -> String {
    let mut out = String::new();
    for (_, policy, reason) in report.skipped.iter().filter(|(device, ..)| device.is_empty()) {
        out.push_str(&format!("{policy}: {}\n", shown(reason)));
    }
    for device in devices(report) {
        let used = report.memory.iter().find(|used| used.device == device);
        let used = used.map_or_else(String::new, |used| {
            let before = human(used.before_bytes);
            if dry {
                format!(": {before} of memory")
            } else {
                format!(": {before} -> {} of memory", human(used.after_bytes))
            }
        });
        out.push_str(&format!("{}{used}\n", style.bold(&shown(device))));
        for action in report.actions.iter().filter(|action| action.device == device) {
            out.push_str(&format!("  {}\n", line(action)));
        }
        for (_, policy, reason) in report.skipped.iter().filter(|(name, ..)| name == device) {
            out.push_str(&format!(
                "  {policy}: {}: {}\n",
                if dry { "would not be done" } else { "not done" },
                shown(reason)
            ));
        }
    }
    if let Some(budget) = report.budget {
        out.push_str(&format!(
            "Write-back: {} of {} in 24 hours left\n",
            human(budget.left_bytes),
            human(budget.daily_bytes)
        ));
    }
    for resize in &report.resizes {
        out.push_str(&format!("zram{}: {}\n", resize.number, shown(resize.reason.as_str())));
    }
    out
}

/// The devices in the report, in its order.
fn devices(report: &Report) -> Vec<&str> {
    let told = report.memory.iter().map(|used| used.device.as_str());
    let skipped = report.skipped.iter().map(|(device, ..)| device.as_str());
    let mut names: Vec<&str> = Vec::new();
    for name in told.chain(skipped).filter(|name| !name.is_empty()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn line(action: &Action) -> String {
    shown(format!("{}: {} ({})", action.what(), action.result, action.reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn each_device_has_its_paragraph() {
        let report = fixture::machine().maintenance;
        fixture::golden("maintain", &text(&report, false, Style::default()));
    }

    #[test]
    fn lines_without_a_device_are_printed_first() {
        let skipped = (String::new(), "maintenance".to_owned(), "zramd has set up no device".to_owned());
        let report = Report { skipped: vec![skipped], ..Report::default() };
        assert_eq!(text(&report, true, Style::default()), "maintenance: zramd has set up no device\n");
    }
}
