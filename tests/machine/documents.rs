//! The outputs in README, which `tests/captures` writes anew, as root.

use std::path::Path;
use std::process::Command;

use crate::support::{can_use_real_kernel, repository};

/// What `tests/captures` put into README is what the programs still print, but for amounts.
#[test]
fn the_outputs_in_readme_are_current() {
    if !can_use_real_kernel() {
        return;
    }
    let programs = Path::new(env!("CARGO_BIN_EXE_zramdctl"));
    let output = Command::new(repository("tests/captures"))
        .arg("--check")
        .env("ZRAMD_PROGRAMS", programs.parent().unwrap())
        // Other tests of the kernel may be long; they wait for each other without a limit.
        .env("ZRAMD_LOCK_SECONDS", "3600")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}
