//! `zramdctl`: the command line tool.

use std::process::ExitCode;

fn main() -> ExitCode {
    host::linux::test_letters::begin();
    host::out::end(client::main())
}
