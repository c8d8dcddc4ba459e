//! From the command line to one of the commands.

use clap::{CommandFactory, Parser};

use super::args::{Cli, Command, List};
use crate::logic::exit::ExitStatus;

/// Runs `zramdctl`.
pub fn main() -> ExitStatus {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let wrong = error.use_stderr();
            // Neither a closed pipe nor a full disk is worth a second message.
            error.print().ok();
            return if wrong { ExitStatus::Usage } else { ExitStatus::Success };
        }
    };
    match cli.command.unwrap_or(Command::List(List::default())) {
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "zramdctl", &mut std::io::stdout());
            ExitStatus::Success
        }
        _ => ExitStatus::Failure,
    }
}
