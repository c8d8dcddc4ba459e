//! Dispatches the command line to the commands.

use std::ffi::OsString;
use std::path::Path;

use clap::{CommandFactory, Parser};

use super::args::{Bench, Cli, Colour, Command, List, Ramdisk, Swap, Zramctl, help_template};
use super::monitor::{self, Form};
use super::pager::Pager;
use super::style::Style;
use super::{
    adopt, benchmark, changes, complete, config, connect, doctor, http, import, init, lasting, list,
    maintain, man, off, out, overrides, plan, ramdisk, read, report, show, stats, status, top, zramctl,
};
use engine::{Error, ErrorKind, gather};
use host::linux::log;
use logic::exit::ExitStatus;
use logic::proc::device_number;
use logic::view::View;

/// Runs `zramdctl`.
pub fn main() -> ExitStatus {
    if let Some(status) = complete::answer() {
        return status;
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let mut cli = match parse(&words) {
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
            return ExitStatus::Usage;
        }
    };
    log::open("zramdctl", Path::new("/"), log::Options { level: cli.log_level, ..log::Options::default() });
    let command = cli.command.take().unwrap_or_else(|| Command::List(List::default()));
    if cli.quiet {
        out::be_quiet();
    }
    let _pager = if is_paged(&command) && !cli.no_pager { Pager::start() } else { None };
    run(&cli, command).unwrap_or_else(|error| {
        out::error(&error.message);
        error.exit_status()
    })
}

/// Parses the command line. As with zramctl, the options of `list`, those that set up devices, and names of devices need no command.
fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let with = |command: &str| {
        let mut words = words.to_vec();
        words.insert(words.len().min(1), command.into());
        Cli::try_parse_from(words)
    };
    Cli::try_parse_from(words).or_else(|error| {
        if !error.use_stderr() {
            let grouped = Cli::command().help_template(help_template());
            return Err(grouped.try_get_matches_from(words).err().unwrap_or(error));
        }
        let first = words.get(1).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        if sets_up(&first) {
            return with("zramctl");
        }
        let mut found = ["list", "zramctl"].into_iter().filter_map(|command| with(command).ok());
        // A mistake in a command is not taken for a pattern.
        found.find(names_devices).ok_or(error)
    })
}

/// Also for names of other devices, which are reported.
fn names_devices(cli: &Cli) -> bool {
    let is_device = |name: &String| device_number(name).is_some() || name.contains('/');
    match &cli.command {
        Some(
            Command::List(List { patterns: names, .. }) | Command::Zramctl(Zramctl { devices: names, .. }),
        ) => names.iter().all(is_device),
        _ => false,
    }
}

/// Whether an option is one with which zramctl sets up or resets devices.
fn sets_up(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    match word.get(..2) {
        Some("-f" | "-s" | "-a" | "-t" | "-r") => true,
        _ => ["--find", "--size", "--algorithm", "--streams", "--reset"].contains(&name),
    }
}

/// Whether a command has long output, as those that use a pager in systemd: it only shows something, once.
fn is_paged(command: &Command) -> bool {
    match command {
        Command::List(_)
        | Command::Status { .. }
        | Command::Show { .. }
        | Command::Stats { http: false, .. }
        | Command::Doctor(_)
        | Command::CatConfig(_)
        | Command::Plan { .. }
        | Command::Overrides(_)
        | Command::Bench { command: Bench::Show(_) } => true,
        Command::Ramdisk(command) => {
            matches!(command, Ramdisk::List(_) | Ramdisk::Status { .. } | Ramdisk::Snapshots { .. })
        }
        _ => false,
    }
}

fn run(cli: &Cli, command: Command) -> Result<ExitStatus, Error> {
    let ask = !cli.no_ask_password;
    match command {
        Command::List(list) => list::run(cli, &list),
        Command::Status { names, form } => status::run(cli, &names, form.json),
        Command::Show { name, property, value, form } => {
            show::run(cli, name.as_deref(), &property, show::Form { bare: value, json: form.json })
        }
        Command::Stats { http: true, .. } => {
            let config = cli.config.clone();
            http::run(move || stats::text(config.as_ref()))
        }
        Command::Stats { names, format, http: false, form } => stats::run(cli, &names, format, form.json),
        Command::Zramctl(words) => zramctl::run(cli, &words),
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
            [name, keys @ ..] => Ok(noted(cli, connect::run(lasting::unset(ask, name, keys, words.change)))),
            [] => {
                let message =
                    "name a device or RAM disk, for example `zramdctl unset zram0`, or add --runtime";
                Err(Error::new(ErrorKind::InvalidArgument, message))
            }
        },
        Command::Unset(words) => {
            overrides::check_names(&words.names)?;
            let names = if words.all { overrides::objects(cli)? } else { words.names };
            Ok(connect::run(overrides::unset(cli, &names, words.change)))
        }
        Command::Top { interval, iterations, form } => {
            let config = View::of(&read::config(cli.config.as_ref()));
            Ok(connect::run(top::run(interval, iterations, form.json, config)))
        }
        Command::Monitor { form, stats } => {
            Ok(connect::run(monitor::run(ask, Form { json: form.json, stats })))
        }
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
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
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
    fn devices_are_set_up_and_reset_with_the_options_of_zramctl() {
        for (line, expected) in [
            ("zramdctl -f -s 512M -a lz4", (0, true, Some("512M"), Some("lz4"), false)),
            ("zramdctl --find --size=512M", (0, true, Some("512M"), None, false)),
            ("zramdctl -f", (0, true, None, None, false)),
            ("zramdctl /dev/zram1 -s5M -t 4", (1, false, Some("5M"), None, false)),
            ("zramdctl -r zram0 /dev/zram1", (2, false, None, None, true)),
            ("zramdctl --no-pager zram0 --reset", (1, false, None, None, true)),
        ] {
            let Ok(Cli { command: Some(Command::Zramctl(words)), .. }) = parsed(line) else {
                panic!("{line}")
            };
            let Zramctl { devices, find, size, algorithm, reset, .. } = &words;
            assert_eq!(
                (devices.len(), *find, size.as_deref(), algorithm.as_deref(), *reset),
                expected,
                "{line}"
            );
        }
        for line in [
            "zramdctl -r",
            "zramdctl -s 5M",
            "zramdctl -f zram0",
            "zramdctl -f -a lz4",
            "zramdctl -r zram0 -s 5M",
        ] {
            assert!(parsed(line).unwrap_err().to_string().contains("zramdctl -r DEVICE..."), "{line}");
        }
    }

    #[test]
    fn options_that_scripts_pass_are_accepted_everywhere() {
        use clap::CommandFactory;
        let mut command = Cli::command();
        command.build();
        for one in command.get_subcommands().filter(|one| one.get_name() != "help") {
            let has = |name: &str| one.get_arguments().any(|argument| argument.get_long() == Some(name));
            assert!(has("no-pager") && has("quiet"), "{}", one.get_name());
            // JSON is asked for in one way.
            for json in one.get_arguments().filter(|argument| argument.get_long() == Some("json")) {
                assert_eq!(json.get_short(), Some('J'), "{}", one.get_name());
                let words: Vec<_> =
                    json.get_possible_values().iter().map(|word| word.get_name().to_owned()).collect();
                assert_eq!(words, ["pretty", "short", "off"], "{}", one.get_name());
            }
        }
    }

    #[test]
    fn what_only_shows_something_uses_a_pager() {
        let is_paged = |line: &str| is_paged(&parsed(line).unwrap().command.unwrap());
        for line in [
            "list",
            "status zram0",
            "show",
            "stats",
            "doctor",
            "cat-config",
            "bench show",
            "ramdisk snapshots a",
        ] {
            assert!(is_paged(&format!("zramdctl {line}")), "{line}");
        }
        for line in
            ["top", "monitor", "stats --http", "bench run", "ramdisk save a", "reload", "init -n", "man"]
        {
            assert!(!is_paged(&format!("zramdctl {line}")), "{line}");
        }
    }
}
