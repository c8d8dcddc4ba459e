//! Tests with the running kernel, mounts and a D-Bus daemon. Most need root; tests that cannot run are skipped with the
//! reason.
//!
//! A test that changes the machine, or is disturbed by changes, first takes `support::real_kernel_lock`.
#![allow(clippy::unwrap_used, clippy::format_collect, clippy::print_stdout, clippy::print_stderr)]

#[path = "../support/mod.rs"]
mod support;

mod bench_commands;
mod benchmark;
mod benchmark_live;
mod benchmark_truth;
mod bus;
mod bus_configuration;
mod bus_figures;
mod bus_signals;
mod client;
mod conformance;
mod control;
mod documents;
mod interop_sdbus;
mod lasting;
mod log;
mod odd_bytes;
mod off;
mod one_plan;
mod output;
mod packages;
mod ramdisk_live;
mod ramdisk_round_trip;
mod ramdisk_rules;
mod ramdisk_run;
mod ramdisk_store;
mod real_kernel;
mod real_ramdisk;
mod real_ramdisk_limits;
mod real_vm;
mod rights;
mod taken_over;
mod waiting;
mod zramctl;

/// A program on this machine.
fn command_for(program: impl AsRef<std::ffi::OsStr>) -> std::process::Command {
    std::process::Command::new(program)
}
