//! `zramdctl`: shows, and asks the daemon to change. Reading is done here, without the daemon and without rights.

mod act;
pub mod args;
mod connect;
mod job;
mod main;
mod options;
mod out;
mod plan;

pub use main::main;
