//! `zramd-setup`: generator, set-up and teardown, in one small program without D-Bus or async runtime.

mod args;
mod commands;
mod serve;
mod show;

use std::path::Path;
use std::process::ExitCode;

use args::{Command, Invocation, Parsed};
use host::linux::log;
use host::out;
use logic::exit::ExitStatus;
use logic::record::Target;

fn open_log(invocation: &Invocation) {
    let (generator, target) = match &invocation.command {
        Command::Generate { by_systemd, .. } => (*by_systemd, None),
        Command::Up(number) => (false, Some(Target::Device(*number))),
        Command::UpVm(target) | Command::Down(target) => (false, Some(target.clone())),
        _ => (false, None),
    };
    let context = target.as_ref().and_then(log::context_of_change);
    let root = invocation.root.as_deref().unwrap_or(Path::new("/"));
    log::open(
        "zramd-setup",
        root,
        log::Options { level: invocation.log_level, context, generator, ..log::Options::default() },
    );
    if target.is_some() {
        log::hand_over();
    }
}

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
        Ok(Parsed::Run(invocation)) => {
            open_log(&invocation);
            let status = commands::run(&invocation);
            log::close();
            status
        }
        Err(message) => {
            out::note(&format!("zramd-setup: {message}\nTry `zramd-setup --help`."));
            ExitStatus::Usage
        }
    };
    out::end(status)
}
