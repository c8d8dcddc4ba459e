//! `maintain`: one run of maintenance, or one action on one device.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use engine::maintain::{self, Only, Order};
use host::linux::LinuxHost;
use logic::exit::ExitStatus;
use logic::maintain::Cause;
use logic::maintain::pass::Pages;
use logic::proc::device_number;
use logic::upkeep::Report;
use service::journal;

use super::{configured, frame};

/// The parsed arguments.
#[derive(Debug, PartialEq, Eq)]
struct Words {
    config: Option<PathBuf>,
    order: Order,
}

/// Runs the verb.
pub fn run(words: Vec<OsString>) -> Result<ExitStatus, String> {
    let Words { config, order } = parse(words)?;
    let loaded = configured::loaded(config.as_ref());
    // Until the end of the run, its file shows the previous report and the budget.
    Ok(frame::run_after("maintenance", "maintain", |reporter| {
        let mut host = LinuxHost::new("/");
        let (mut report, done) = maintain::run(&mut host, &loaded, &order, reporter);
        if order.only == Some(Only::Budget) {
            // Nothing was done, so the previous report is kept.
            report = Report { budget: report.budget, ..reporter.last() };
        }
        journal::open();
        report.actions.iter().for_each(journal::maintained);
        for (device, policy, reason) in &report.skipped {
            let device = if device.is_empty() { String::new() } else { format!("{device}: ") };
            frame::note(&format!("{device}{policy}: not done: {reason}"));
        }
        for resize in &report.resizes {
            frame::note(&format!("zram{}: {}", resize.number, resize.reason));
        }
        reporter.detail(&report)?;
        done.map(|()| report.summary())
    }))
}

fn parse(words: Vec<OsString>) -> Result<Words, String> {
    use lexopt::prelude::Long;
    let mut parser = lexopt::Parser::from_args(words);
    let (mut config, mut cause, mut only, mut pages, mut age) = (None, None, None, None, None);
    let mut devices = Vec::new();
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        let Long(name) = argument else { return Err(argument.unexpected().to_string()) };
        let name = name.to_owned();
        let value = parser.value().map_err(|error| error.to_string())?;
        let text = value.to_string_lossy().into_owned();
        match name.as_str() {
            "config" => config = Some(PathBuf::from(value)),
            "reason" => cause = Some(text.parse::<Cause>()?),
            "device" => {
                let number = device_number(&text);
                devices.push(number.ok_or_else(|| format!("`{text}` is no zram device"))?);
            }
            "only" => only = Some(text),
            "pages" => {
                let found = Pages::of_word(&text);
                pages = Some(
                    found.ok_or_else(|| format!("`{text}` are no pages; write idle, huge or huge-idle"))?,
                );
            }
            "age" => {
                let seconds = text.parse().map_err(|_| format!("`{text}` is no number of seconds"))?;
                age = Some(Duration::from_secs(seconds));
            }
            other => return Err(format!("there is no option --{other}")),
        }
    }
    let only = match only.as_deref() {
        None => None,
        Some("mark-idle") => Some(Only::MarkIdle(age)),
        Some("recompress") => Some(Only::Recompress(pages)),
        Some("write-back") => Some(Only::WriteBack(pages)),
        Some("budget") => Some(Only::Budget),
        Some(other) => {
            return Err(format!(
                "`{other}` cannot be requested; write mark-idle, recompress, write-back or budget"
            ));
        }
    };
    // A single action is always a request of a user.
    let cause = if only.is_some() { Cause::Request } else { cause.unwrap_or(Cause::Timer) };
    Ok(Words { config, order: Order { cause, devices, only, dry_run: false } })
}

#[cfg(test)]
mod tests {
    use logic::maintain::pressure::Level;

    use super::*;

    fn parsed(line: &str) -> Result<Words, String> {
        parse(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn arguments_are_parsed() {
        assert_eq!(parsed("").map(|words| words.order), Ok(Order::all(Cause::Timer)));
        let severe = Order::all(Cause::Pressure(Level::Severe));
        assert_eq!(parsed("--reason pressure=severe").map(|words| words.order), Ok(severe));
        let one = Order {
            cause: Cause::Request,
            devices: vec![3],
            only: Some(Only::Recompress(Some(Pages::HugeIdle))),
            dry_run: false,
        };
        let words = parsed("--device zram3 --only recompress --pages huge-idle --config /a").unwrap();
        assert_eq!((words.order, words.config), (one, Some(PathBuf::from("/a"))));
        let marked = parsed("--only mark-idle --age 60").unwrap().order.only;
        assert_eq!(marked, Some(Only::MarkIdle(Some(Duration::from_secs(60)))));
        assert_eq!(parsed("--only budget").unwrap().order.only, Some(Only::Budget));
    }

    #[test]
    fn wrong_arguments_are_explained() {
        for (line, expected) in [
            ("--reason boredom", "timer"),
            ("--device sda", "sda"),
            ("--pages all", "idle"),
            ("--only eat", "mark-idle"),
            ("--age old", "`old`"),
            ("--frob 1", "--frob"),
            ("now", "now"),
        ] {
            let message = parsed(line).expect_err(line);
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
