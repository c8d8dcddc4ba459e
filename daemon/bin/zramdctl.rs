//! `zramdctl`: the command line tool.

use std::process::ExitCode;

fn main() -> ExitCode {
    host::linux::letters::begin();
    host::out::end(client::main())
}
