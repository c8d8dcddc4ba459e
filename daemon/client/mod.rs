//! `zramdctl`: shows, and asks the daemon to change. Reading is done here, without the daemon and without rights.

mod act;
pub mod args;
mod connect;
mod job;
mod looks;
mod main;
mod monitor;
mod options;
mod out;
mod plan;

mod top;
mod value;
mod world;

pub use main::main;
