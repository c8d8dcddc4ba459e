//! `zramdctl`: the command line tool.

use std::process::ExitCode;

fn main() -> ExitCode {
    host::linux::letters::begin();
    ExitCode::from(client::main().code())
}
