//! `zramd-setup`: generator, set-up and teardown, in one small program without D-Bus or async runtime.
#![allow(clippy::print_stdout)]

mod args;
mod commands;
mod serve;
mod show;

use std::process::ExitCode;

use args::Parsed;

fn main() -> ExitCode {
    host::linux::letters::begin();
    let status = match args::parse(std::env::args_os()) {
        Ok(Parsed::Help) => {
            print!("{}", args::HELP);
            logic::exit::ExitStatus::Success
        }
        Ok(Parsed::Version) => {
            println!("zramd-setup {}", env!("CARGO_PKG_VERSION"));
            logic::exit::ExitStatus::Success
        }
        Ok(Parsed::Run(invocation)) => commands::run(&invocation),
        Err(message) => {
            eprintln!("zramd-setup: {message}\nTry `zramd-setup --help`.");
            logic::exit::ExitStatus::Usage
        }
    };
    ExitCode::from(status.code())
}
