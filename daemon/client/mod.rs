//! `zramdctl`: shows, and asks the daemon to change. Reading is done here, without the daemon and without rights.

pub mod args;
mod connect;
mod main;

pub use main::main;
