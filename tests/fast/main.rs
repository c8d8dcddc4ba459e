//! Tests that need neither root nor a network, and change nothing outside of temporary directories.
#![allow(
    clippy::unwrap_used,
    clippy::format_collect,
    clippy::format_push_string,
    clippy::print_stdout,
    clippy::print_stderr
)]

#[path = "../support/mod.rs"]
mod support;

mod apart;
mod check;
mod cli;
mod client;
mod completions;
mod config;
mod config_hints;
mod config_maintenance;
mod conformance_rules;
mod documents;
mod drain;
mod fuzz;
mod golden_plans;
mod growth;
mod import;
mod import_command;
mod import_original;
mod import_units;
mod incompressible;
mod init;
mod lasting;
mod layers;
mod links;
mod log;
mod long_results;
mod maintenance;
mod maintenance_budget;
mod maintenance_ends;
mod maintenance_marks;
mod maintenance_memory;
mod monitoring;
mod neighbours;
mod nix;
mod odd_bytes;
mod off;
mod output;
mod packaging;
mod plan;
mod promises;
mod ramdisk_draft;
mod ramdisk_full;
mod ramdisk_held;
mod ramdisk_hostile;
mod ramdisk_rules;
mod ramdisk_store;
mod reload;
mod reload_direct;
mod schema;
mod taken_over;
mod translations;
mod units;
mod vm;
mod words;
mod writeback;
mod zswap;

use apart::command_for;
