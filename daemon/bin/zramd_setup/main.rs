//! `zramd-setup`: generator, set-up and teardown, in one small program without D-Bus or async runtime.

mod args;
mod commands;
mod serve;
mod show;

use std::process::ExitCode;

use args::Parsed;
use host::out;
use logic::exit::ExitStatus;

fn main() -> ExitCode {
    host::linux::test_letters::begin();
    let status = match args::parse(std::env::args_os()) {
        Ok(Parsed::Help) => {
            out::text(args::HELP);
            ExitStatus::Success
        }
        Ok(Parsed::Version) => {
            out::line(concat!("zramd-setup ", env!("CARGO_PKG_VERSION")));
            ExitStatus::Success
        }
        Ok(Parsed::Run(invocation)) => commands::run(&invocation),
        Err(message) => {
            out::note(&format!("zramd-setup: {message}\nTry `zramd-setup --help`."));
            ExitStatus::Usage
        }
    };
    out::end(status)
}
