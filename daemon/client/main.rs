//! From the command line to one of the commands.

use clap::{CommandFactory, Parser};

use super::args::{Cli, Command, List, Swap};
use super::monitor::{self, Form};
use super::{act, connect, plan, top};
use crate::logic::exit::ExitStatus;
use crate::logic::view::View;

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
    let ask = !cli.no_ask_password;
    match cli.command.unwrap_or(Command::List(List::default())) {
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "zramdctl", &mut std::io::stdout());
            ExitStatus::Success
        }
        Command::Plan(change) => connect::run(plan::run(ask, cli.config.as_ref(), change.force)),
        Command::Top { interval, iterations } => {
            let view = View::of(&plan::load(cli.config.as_ref()), Vec::new());
            connect::run(top::run(interval, iterations, view))
        }
        Command::Monitor { json, stats } => connect::run(monitor::run(ask, Form { json, stats })),
        Command::Reload(change) => connect::run(act::reload(ask, change)),
        Command::Create(words) => connect::run(act::create(ask, &words)),
        Command::Remove { names, change } => connect::run(act::remove(ask, &names, change)),
        Command::Resize { name, size, change } => connect::run(act::resize(ask, &name, &size, change)),
        Command::Swap { command: Swap::On { name, change } } => {
            connect::run(act::swap_on(ask, &name, change))
        }
        Command::Swap { command: Swap::Off { name, change } } => {
            connect::run(act::swap_off(ask, &name, change))
        }
        Command::Limit { name, limit } => connect::run(act::limit(ask, &name, &limit)),
        Command::Compact { names } => connect::run(act::compact(ask, &names)),
        _ => ExitStatus::Failure,
    }
}
