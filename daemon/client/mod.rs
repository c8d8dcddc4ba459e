//! `zramdctl`: shows, and asks the daemon to change. Reading is done here, without the daemon and without rights.

pub mod args;
pub mod columns;
mod main;
pub mod style;

pub use main::main;
