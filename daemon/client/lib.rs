//! `zramdctl`: reads the kernel without daemon and privileges, and calls the daemon for changes.

mod adopt;
mod amount;
pub mod args;
pub mod benchmark;
mod bus_value;
pub mod cell;
mod changes;
mod clock;
pub mod columns;
mod complete;
mod conditions;
pub mod config;
mod connect;
pub mod doctor;
mod ended;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod hostile;
mod http;
pub mod import;
mod init;
mod job;
#[cfg(test)]
mod json_schema;
mod lasting;
pub mod list;
pub mod maintain;
pub mod man;
pub mod metrics;
mod monitor;
mod monitored;
mod off;
mod options;
pub mod out;
mod overrides;
mod pager;
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
mod top_rows;
mod worker;
mod zramctl;

pub use run::main;
