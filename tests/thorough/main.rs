//! Tests that take minutes: a fault or a kill at every call, adversarial trees, many clients, and every command twice. CI runs
//! them; `cargo test` alone does not. Most need root; tests that cannot run are skipped with the reason.
#![allow(clippy::unwrap_used, clippy::format_collect, clippy::print_stdout)]

#[path = "../support/mod.rs"]
mod support;

mod daemon_killed;
mod disk_adversarial;
mod disk_faults;
mod disk_snapshot_faults;
mod faults;
mod kernel_killed;
mod load;
mod maintenance_faults;
mod texts;
