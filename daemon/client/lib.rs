//! `zramdctl`: reads the kernel without daemon and privileges, and calls the daemon for changes.

mod act;
mod adopt;
mod amount;
pub mod args;
pub mod benchmark;
pub mod cell;
mod claimed_twice;
pub mod columns;
mod complete;
pub mod config;
mod connect;
pub mod doctor;
mod endpoint;
#[cfg(test)]
mod fixture;
pub mod import;
mod init;
mod job;
#[cfg(test)]
mod json_schema;
mod lasting;
pub mod list;
mod looks;
pub mod maintain;
pub mod man;
pub mod metrics;
mod monitor;
mod off;
mod options;
pub mod out;
mod overrides;
mod plan;
pub mod problems;
pub(crate) mod ramdisk;
pub mod read;
pub mod report;
pub(crate) mod run;
pub mod select;
pub mod show;
pub mod stats;
pub mod status;
pub mod style;
mod top;
mod value;
mod worker;
mod world;

pub use run::main;
