//! The outputs in README and the tour, which `tests/captures` writes as root.

use std::path::Path;
use std::process::Command;

use crate::support::{can_use_real_kernel, repository};

/// The programs still print what `tests/captures` wrote, except for amounts.
#[test]
fn the_outputs_in_documents_are_current() {
    if !can_use_real_kernel() {
        return;
    }
    let programs = Path::new(env!("CARGO_BIN_EXE_zramdctl"));
    let output = Command::new(repository("tests/captures"))
        .arg("--check")
        .env("ZRAMD_PROGRAMS", programs.parent().unwrap())
        // Other tests may hold the lock for long.
        .env("ZRAMD_LOCK_SECONDS", "3600")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}
