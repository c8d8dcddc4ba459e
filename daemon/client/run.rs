//! Dispatches the command line to the commands.

use std::ffi::OsString;

use clap::Parser;

use super::args::{Bench, Cli, Colour, Command, List, Swap};
use super::monitor::{self, Form};
use super::style::Style;
use super::{
    adopt, benchmark, changes, complete, config, connect, doctor, http, import, init, lasting, list,
    maintain, man, off, out, overrides, plan, ramdisk, read, report, show, stats, status, top,
};
use engine::{Error, ErrorKind, gather};
use logic::exit::ExitStatus;
use logic::proc::device_number;
use logic::view::View;

/// Runs `zramdctl`.
pub fn main() -> ExitStatus {
    if let Some(status) = complete::answer() {
        return status;
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let first = words.get(1).map(|word| word.to_string_lossy().into_owned());
    let mut cli = match parse(words) {
        Ok(cli) => cli,
        Err(error) => {
            let shown = error.render();
            let styled = |style: Style| {
                if style.has_colour() { shown.ansi().to_string() } else { shown.to_string() }
            };
            if !error.use_stderr() {
                out::text(&styled(Style::stdout(Colour::Auto)));
                return ExitStatus::Success;
            }
            out::note(styled(Style::stderr(Colour::Auto)).trim_end());
            if let Some(instead) = first.as_deref().and_then(instead) {
                out::note(instead);
            }
            return ExitStatus::Usage;
        }
    };
    let command = cli.command.take().unwrap_or_else(|| Command::List(List::default()));
    run(&cli, command).unwrap_or_else(|error| {
        out::error(&error.message);
        error.exit_status()
    })
}

/// Parses the command line. As with zramctl, the options of `list` and names of devices need no command.
fn parse(mut words: Vec<OsString>) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(&words).or_else(|error| {
        words.insert(words.len().min(1), "list".into());
        match Cli::try_parse_from(&words) {
            Ok(cli) if error.use_stderr() && lists_devices(&cli) => Ok(cli),
            // A mistake in a command is not taken for a pattern.
            _ => Err(error),
        }
    })
}

/// Also for names of other devices, which the list reports.
fn lists_devices(cli: &Cli) -> bool {
    let is_device = |name: &String| device_number(name).is_some() || name.contains('/');
    matches!(&cli.command, Some(Command::List(list)) if list.patterns.iter().all(is_device))
}

/// What replaces an option with which zramctl changes devices.
fn instead(word: &str) -> Option<&'static str> {
    let name = word.split('=').next().unwrap_or_default();
    match (name, word.get(..2)?) {
        ("--reset", _) | (_, "-r") => Some("`zramdctl remove` removes a device."),
        ("--find" | "--size" | "--algorithm" | "--streams", _) | (_, "-f" | "-s" | "-a" | "-t") => {
            Some("`zramdctl create` sets a device up.")
        }
        _ => None,
    }
}

fn run(cli: &Cli, command: Command) -> Result<ExitStatus, Error> {
    let ask = !cli.no_ask_password;
    match command {
        Command::List(list) => list::run(cli, &list),
        Command::Status { names, form } => status::run(cli, &names, form.json),
        Command::Show { name, property, value } => show::run(cli, name.as_deref(), &property, value),
        Command::Stats { http: true, .. } => {
            let config = cli.config.clone();
            http::run(move || stats::text(config.as_ref()))
        }
        Command::Stats { names, format, http: false } => stats::run(cli, &names, format),
        Command::Doctor(form) => doctor::run(cli, form.json),
        Command::Report { file } => report::run(cli, file.as_deref()),
        Command::Check { files, form } => config::check(cli, &files, form.json),
        Command::CatConfig(form) => config::cat(cli, form.json),
        Command::Bench { command: Bench::Run(words) } => benchmark::run(cli, &words),
        Command::Bench { command: Bench::Show(words) } => benchmark::show(cli, &words),
        Command::Bench { command: Bench::Forget } => benchmark::forget(ask),
        Command::Bench { command: Bench::Adopt } => Ok(benchmark::adopt(ask)),
        Command::Bench { command: Bench::Ramdisk(words) } => benchmark::ramdisk::run(&words),
        Command::Bench { command: Bench::Swap(words) } => benchmark::swap::run(&words),
        Command::Ramdisk(command) => ramdisk::run(cli, &command),
        Command::Maintain(words) => maintain::run(cli, &words),
        Command::Import(words) => import::run(cli, &words),
        Command::Init(words) => init::run(cli, &words),
        Command::Off(words) => off::run(cli, &words),
        Command::Completions { shell } => complete::script(&shell.to_string()),
        Command::Man => man::run(),
        Command::Plan { change, form } => {
            plan::run(cli, change.force, form.json).map(|status| noted(cli, status))
        }
        Command::Overrides(form) => overrides::run(cli, form.json),
        Command::Set(words) => Ok(sized(cli, noted(cli, connect::run(lasting::set(ask, &words))))),
        Command::Edit(change) => Ok(noted(cli, lasting::edit(cli, change)?)),
        Command::Unset(words) if !words.runtime => match words.names.as_slice() {
            [name, keys @ ..] if !keys.is_empty() => {
                Ok(noted(cli, connect::run(lasting::unset(ask, name, keys, words.change))))
            }
            _ => {
                let message = "name the keys, for example `zramdctl unset zram0 zram-size`, or add --runtime";
                Err(Error::new(ErrorKind::InvalidArgument, message))
            }
        },
        Command::Unset(words) => {
            overrides::check_names(&words.names)?;
            let names = if words.all { overrides::objects(cli)? } else { words.names };
            Ok(connect::run(overrides::unset(cli, &names, words.change)))
        }
        Command::Top { interval, iterations } => {
            Ok(connect::run(top::run(interval, iterations, View::of(&read::config(cli.config.as_ref())))))
        }
        Command::Monitor { json, stats } => Ok(connect::run(monitor::run(ask, Form { json, stats }))),
        Command::Reload(change) => Ok(noted(cli, connect::run(changes::reload(ask, change)))),
        Command::Create(words) => Ok(sized(cli, connect::run(changes::create(ask, &words)))),
        Command::Remove { names, change } => Ok(connect::run(changes::remove(ask, &names, change))),
        Command::Resize { name, size, change } => {
            Ok(sized(cli, connect::run(changes::resize(ask, &name, &size, change))))
        }
        Command::Swap { command: Swap::On { name, change } } => {
            Ok(connect::run(changes::swap_on(ask, &name, change)))
        }
        Command::Swap { command: Swap::Off { name, change } } => {
            let is_off = overrides::is_switched_off(cli, &name);
            Ok(connect::run(changes::swap_off(ask, &name, change, is_off)))
        }
        Command::Limit { name, limit } => Ok(connect::run(changes::limit(ask, &name, &limit))),
        Command::Adopt { name } => adopt::run(cli, &name),
        Command::Compact { names } => Ok(connect::run(changes::compact(ask, &names))),
    }
}

/// After a command that uses the configuration: prints which keys are overridden.
fn noted(cli: &Cli, status: ExitStatus) -> ExitStatus {
    let loaded = read::config(read::daemons_file(cli).as_ref());
    overrides::note(&loaded.merged.overrides, cli);
    status
}

/// After a command that changes a size: warns about the sizes of all devices together, as `check` does.
fn sized(cli: &Cli, status: ExitStatus) -> ExitStatus {
    if status != ExitStatus::Success {
        return status;
    }
    let host = read::host();
    let plan = engine::check_elsewhere(&host, &read::config(read::daemons_file(cli).as_ref()));
    if let Some((_, message)) = logic::plan::excess(&plan.items, &gather::machine(&host)) {
        out::note(&format!("warning: {message}"));
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Cli, clap::Error> {
        parse(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn a_list_needs_no_command() {
        for line in [
            "zramdctl -bn --raw",
            "zramdctl -o NAME,DISKSIZE /dev/zram0 zram1",
            "zramdctl -c /a --json",
            "zramdctl /dev/sda",
        ] {
            let Ok(Cli { command: Some(Command::List(_)), .. }) = parsed(line) else { panic!("{line}") };
        }
        assert!(parsed("zramdctl").unwrap().command.is_none());
    }

    #[test]
    fn a_mistake_is_not_a_list() {
        for line in ["zramdctl stauts", "zramdctl zram*", "zramdctl --frob", "zramdctl status --raw"] {
            let asked = parsed(line).unwrap_err();
            // The message is about the words that were given.
            assert_eq!(asked.to_string(), Cli::try_parse_from(line.split(' ')).unwrap_err().to_string());
        }
        assert!(!parsed("zramdctl --help").unwrap_err().use_stderr());
    }

    #[test]
    fn options_of_zramctl_have_a_replacement() {
        for (word, expected) in [
            ("-r", Some("remove")),
            ("--reset", Some("remove")),
            ("-f", Some("create")),
            ("-s5M", Some("create")),
            ("--size=5M", Some("create")),
            ("--raw", None),
            ("stauts", None),
            ("ä", None),
        ] {
            let found = instead(word).map(|text| text.contains("remove"));
            assert_eq!(found, expected.map(|command| command == "remove"), "{word}");
        }
    }
}
