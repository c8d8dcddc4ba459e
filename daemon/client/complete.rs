//! Completion in shells: commands and options from the command line's definition, names from this machine.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;

use super::args::Cli;
use super::columns::{self, Row};
use super::{out, read, show};
use engine::sample::Detail;
use engine::{Error, ErrorKind};
use logic::config::lasting;
use logic::exit::ExitStatus;
use logic::sample::Snapshot;

/// Set by the shell functions when they ask for candidates.
const VARIABLE: &str = "ZRAMDCTL_COMPLETE";

/// Answers a shell function, if one has asked.
pub fn answer() -> Option<ExitStatus> {
    let asked = std::env::var_os(VARIABLE).filter(|shell| !shell.is_empty() && shell != "0")?;
    let name = Path::new(&asked).file_stem()?.to_string_lossy();
    Some(respond(&name).unwrap_or_else(|error| {
        out::error(&error.message);
        error.exit_status()
    }))
}

fn respond(name: &str) -> Result<ExitStatus, Error> {
    let shells = Shells::builtins();
    let shell = shells.completer(name).ok_or_else(|| {
        let known: Vec<&str> = shells.names().collect();
        Error::new(
            ErrorKind::InvalidArgument,
            format!("`{name}` is no known shell; {VARIABLE} is one of {}", known.join(", ")),
        )
    })?;
    let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    if words.is_empty() {
        return script(name);
    }
    let mut command = command();
    command.build();
    let mut text = Vec::new();
    shell
        .write_complete(&mut command, words, std::env::current_dir().ok().as_deref(), &mut text)
        .map_err(|error| Error::failed(format!("cannot complete: {error}")))?;
    out::data(&String::from_utf8_lossy(&text));
    Ok(ExitStatus::Success)
}

/// Prints the completion script for a shell.
pub fn script(shell: &str) -> Result<ExitStatus, Error> {
    let shells = Shells::builtins();
    let name = "zramdctl";
    let mut text = Vec::new();
    if let Some(shell) = shells.completer(shell) {
        shell
            .write_registration(VARIABLE, name, name, name, &mut text)
            .map_err(|error| Error::failed(format!("cannot write the script: {error}")))?;
    }
    if shell == "zsh" {
        // The first completion loads the file as the function _zramdctl, which has to complete, too.
        writeln!(text, "[[ ${{funcstack[1]}} != _{name} ]] || _clap_dynamic_completer_{name} \"$@\"").ok();
    }
    out::data(&String::from_utf8_lossy(&text));
    Ok(ExitStatus::Success)
}

/// The command line, with candidates for names.
fn command() -> Command {
    Cli::command().mut_subcommands(|command| {
        let names = match command.get_name() {
            "list" | "status" | "show" | "set" | "unset" => devices_and_disks,
            "ramdisk" => return command.mut_subcommands(|command| with_names(command, disks)),
            "swap" => return command.mut_subcommands(|command| with_names(command, devices)),
            _ => devices,
        };
        with_names(command, names)
    })
}

fn with_names(command: Command, names: fn() -> Vec<CompletionCandidate>) -> Command {
    let is_new_device = command.get_name() == "create";
    command.mut_args(|arg| match arg.get_id().as_str() {
        "name" | "names" | "patterns" if !is_new_device => arg.add(ArgValueCandidates::new(names)),
        "assignments" => arg.add(ArgValueCandidates::new(assignments)),
        "snapshot" => arg.add(ArgValueCandidates::new(snapshots)),
        "output" => completed(arg, columns),
        "property" => completed(arg, properties),
        _ => arg,
    })
}

/// Completes the last word of a list with commas, which may begin with a plus.
fn completed(arg: Arg, words: fn(&str) -> Vec<String>) -> Arg {
    arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
        let typed = typed.to_string_lossy();
        let (before, word) = typed.split_at(typed.rfind([',', '+']).map_or(0, |at| at + 1));
        let names = words(word).into_iter().filter(|name| name.starts_with(word));
        names.map(|name| CompletionCandidate::new(format!("{before}{name}"))).collect()
    }))
}

/// Columns, in lower case if the word begins so: `list` takes both.
fn columns(word: &str) -> Vec<String> {
    let names = columns::COLUMNS.iter().map(|column| column.name);
    if word.starts_with(|letter: char| letter.is_ascii_lowercase()) {
        names.map(str::to_lowercase).collect()
    } else {
        names.map(str::to_owned).collect()
    }
}

fn properties(_: &str) -> Vec<String> {
    show::names().map(str::to_owned).collect()
}

/// Devices and RAM disks; none if they cannot be read, because a completion has nowhere to complain.
fn machine() -> Snapshot {
    read::figures(None, Detail::Listed).unwrap_or_default()
}

fn devices_and_disks() -> Vec<CompletionCandidate> {
    let machine = machine();
    Row::all(&machine).into_iter().map(|row| CompletionCandidate::new(row.name())).collect()
}

fn devices() -> Vec<CompletionCandidate> {
    machine().devices.iter().map(|view| CompletionCandidate::new(&view.name)).collect()
}

fn disks() -> Vec<CompletionCandidate> {
    machine().ramdisks.iter().map(|view| CompletionCandidate::new(&view.name)).collect()
}

/// Keys of the section on the command line.
fn assignments() -> Vec<CompletionCandidate> {
    let words: Vec<String> = std::env::args().collect();
    let keys = words.iter().find_map(|word| lasting::keys(word).ok());
    let keys = keys.or_else(|| lasting::keys("ramdisk.").ok()).unwrap_or_default();
    keys.iter().map(|key| CompletionCandidate::new(format!("{key}="))).collect()
}

/// Snapshots of the RAM disk on the command line.
fn snapshots() -> Vec<CompletionCandidate> {
    let words: Vec<String> = std::env::args().collect();
    let machine = machine();
    let disk = machine.ramdisks.iter().find(|disk| words.contains(&disk.name));
    let lines = disk.map(|disk| disk.status.snapshots.as_slice()).unwrap_or_default();
    lines.iter().map(|line| CompletionCandidate::new(line.generation.to_string())).collect()
}
