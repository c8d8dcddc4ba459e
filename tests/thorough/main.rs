//! Tests that take minutes or need further programs: a fault or a kill at every call, adversarial trees, many clients, every
//! command twice, generated bindings, Prometheus. CI runs them; `cargo test` alone does not. Most need root; tests that cannot
//! run are skipped with the reason.
#![allow(clippy::unwrap_used, clippy::format_collect, clippy::print_stdout, clippy::print_stderr)]

#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code)]
#[path = "../../packaging/examples/memory.rs"]
mod example;

mod daemon_killed;
mod faults;
mod interop_bindings;
mod kernel_killed;
mod load;
mod maintenance_faults;
mod prometheus;
mod ramdisk_adversarial;
mod ramdisk_faults;
mod ramdisk_snapshot_faults;
mod texts;
mod waiting;

/// A program on this machine.
fn command_for(program: impl AsRef<std::ffi::OsStr>) -> std::process::Command {
    std::process::Command::new(program)
}
