//! `zramdctl`: the program for people.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(zramd::client::main().code())
}
