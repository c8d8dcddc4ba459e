//! `zramdctl`: the program for people.

use std::process::ExitCode;

fn main() -> ExitCode {
    zramd::host::linux::letters::begin();
    ExitCode::from(zramd::client::main().code())
}
