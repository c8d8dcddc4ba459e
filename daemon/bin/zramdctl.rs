//! `zramdctl`: the program for people.

use std::process::ExitCode;

fn main() -> ExitCode {
    host::linux::letters::begin();
    ExitCode::from(client::main().code())
}
