//! `zramd-worker`: work that takes long or needs large libraries: benchmark, archives, passes over a device. A short-lived
//! program, started by units, by the daemon, and by `zramdctl` without a daemon.

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
use host::out;
use logic::exit::ExitStatus;

/// A verb: its name, its help, and its function, which takes the other arguments.
struct Verb {
    name: &'static str,
    help: &'static str,
    run: fn(Vec<OsString>) -> Result<ExitStatus, String>,
}

/// All verbs, each in a file of its own. `Err` is wrong usage.
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

/// Replaces `--asked NAME` at the beginning by the stored arguments of the work of this name: PID 1 starts the worker
/// without arguments of the request.
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
        "-h" | "--help" => out::text(&help()),
        "-V" | "--version" => out::line(concat!("zramd-worker ", env!("CARGO_PKG_VERSION"))),
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
    let is_called = words.next_if(|word| word == "--reply").is_some();
    if is_called {
        frame::reply();
    }
    let status = run(words).unwrap_or_else(|mut message| {
        if !is_called {
            message.push_str("\nTry `zramd-worker --help`.");
        }
        frame::report(&Err(Error::new(ErrorKind::InvalidArgument, message)))
    });
    out::end(status)
}
