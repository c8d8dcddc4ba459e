//! From the command line to one of the commands.

use clap::{CommandFactory, Parser};

use super::args::{Cli, Command, List};
use super::{config, doctor, list, man, output, show, stats, status};
use crate::engine::Error;
use crate::logic::exit::ExitStatus;

/// Runs `zramdctl`.
pub fn main() -> ExitStatus {
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let wrong = error.use_stderr();
            // Neither a closed pipe nor a full disk is worth a second message.
            error.print().ok();
            return if wrong { ExitStatus::Usage } else { ExitStatus::Success };
        }
    };
    let command = cli.command.take().unwrap_or_else(|| Command::List(List::default()));
    run(&cli, command).unwrap_or_else(|error| {
        output::error(&error.message);
        error.exit_status()
    })
}

fn run(cli: &Cli, command: Command) -> Result<ExitStatus, Error> {
    match command {
        Command::List(list) => list::run(cli, &list),
        Command::Status { names } => status::run(cli, &names),
        Command::Show { name, property, value } => show::run(cli, name.as_deref(), &property, value),
        Command::Stats { names, format } => stats::run(cli, &names, format),
        Command::Doctor { json } => doctor::run(cli, json),
        Command::Check { files } => config::check(cli, &files),
        Command::CatConfig => config::cat(cli),
        Command::Completions { shell } => completions(shell),
        Command::Man => man::run(),
        _ => Ok(ExitStatus::Failure),
    }
}

fn completions(shell: clap_complete::Shell) -> Result<ExitStatus, Error> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "zramdctl", &mut text);
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitStatus::Success)
}
