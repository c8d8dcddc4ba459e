//! `zramd-worker`: what takes long or large libraries: measuring, archives, passes over a whole device. Started by units,
//! by the daemon, and by `zramdctl` where there is no daemon; there for moments only.
#![allow(clippy::print_stdout)]

mod benchmark;
mod configured;
mod drain;
mod frame;
mod maintain;
mod places;
mod ramdisk;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use benchmark::compare::{RAMDISK, SWAP};
use engine::{Error, ErrorKind};
use host::linux::{letters, work};
use logic::exit::ExitStatus;

/// One thing it can do: its verb, what `--help` says of it, and what does it with the words that follow.
struct Verb {
    name: &'static str,
    help: &'static str,
    run: fn(Vec<OsString>) -> Result<ExitStatus, String>,
}

/// Every verb; each has a file of its own beside this one. `Err` is wrong usage.
const VERBS: &[Verb] = &[
    RAMDISK,
    SWAP,
    Verb { name: "benchmark", help: benchmark::HELP, run: benchmark::run },
    Verb { name: "maintain", help: "recompress and write back idle pages as configured", run: maintain::run },
    Verb { name: "kept", help: ramdisk::HELP, run: ramdisk::run },
    Verb { name: "places", help: places::HELP, run: places::run },
    Verb { name: "hook", help: ramdisk::hooks::HELP, run: ramdisk::hooks::run },
    Verb { name: "drain", help: drain::HELP, run: drain::run },
    Verb { name: "refill", help: drain::REFILL_HELP, run: drain::refill },
];

fn help() -> String {
    let mut out = "Usage: zramd-worker VERB [WORD]...\n\nRuns long operations for zramd. Administrators use `zramdctl`.\n\n".to_owned();
    for verb in VERBS {
        out.push_str(&format!("  {:<20} {}\n", verb.name, verb.help));
    }
    out
}

/// `--asked NAME` at the beginning stands for the words that the daemon has left for the work of this name: PID 1, which
/// starts us then, cannot hand words on.
fn complete(words: Vec<OsString>) -> Result<Vec<OsString>, String> {
    match words.as_slice() {
        [asked, name, rest @ ..] if asked == "--asked" => {
            let left = work::asked(Path::new("/"), &name.to_string_lossy())?;
            Ok(left.into_iter().map(OsString::from).chain(rest.iter().cloned()).collect())
        }
        _ => Ok(words),
    }
}

fn run(mut words: impl Iterator<Item = OsString>) -> Result<ExitStatus, String> {
    let verb = words.next().ok_or("which verb?")?;
    let verb = verb.to_string_lossy();
    match verb.as_ref() {
        "-h" | "--help" => print!("{}", help()),
        "-V" | "--version" => println!("zramd-worker {}", env!("CARGO_PKG_VERSION")),
        name => {
            let verb = VERBS.iter().find(|verb| verb.name == name);
            let verb = verb.ok_or_else(|| format!("there is no verb `{name}`"))?;
            return (verb.run)(complete(words.collect())?);
        }
    }
    Ok(ExitStatus::Success)
}

fn main() -> ExitCode {
    letters::begin();
    let mut words = std::env::args_os().skip(1).peekable();
    if words.next_if(|word| word == "--reply").is_some() {
        frame::reply();
    }
    let status = run(words).unwrap_or_else(|message| {
        let message = format!("{message}\nTry `zramd-worker --help`.");
        frame::report(&Err(Error::new(ErrorKind::InvalidArgument, message)))
    });
    ExitCode::from(status.code())
}
