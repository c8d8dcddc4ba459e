//! Tests of the running kernel, of mounted file systems and of a bus of their own. Most need root; what cannot run says why.
#![allow(clippy::unwrap_used, clippy::format_collect, clippy::print_stdout)]

#[path = "../support/mod.rs"]
mod support;

mod bench_commands;
mod benchmark;
mod benchmark_live;
mod benchmark_truth;
mod bus;
mod bus_figures;
mod client;
mod conformance;
mod control;
mod daemon_killed;
mod disk_adversarial;
mod disk_live;
mod disk_round_trip;
mod disk_rules;
mod disk_store;
mod documents;
mod interop_sdbus;
mod load;
mod odd_bytes;
mod real_disk;
mod real_disk_limits;
mod real_kernel;
mod real_vm;
