//! `zramdctl`: shows, and asks the daemon to change. Reading is done here, without the daemon and without rights.

pub mod args;
pub mod columns;
pub mod config;
pub mod doctor;
#[cfg(test)]
mod fixture;
pub mod list;
mod main;
pub mod man;
pub mod metrics;
pub mod output;
pub mod problems;
pub mod read;
pub mod select;
pub mod show;
pub mod stats;
pub mod status;
pub mod style;

pub use main::main;
