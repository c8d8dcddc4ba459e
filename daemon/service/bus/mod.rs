//! The objects on the bus. `#[interface]` and a table of properties are the only definition of each interface: server, introspection and documentation
//! are generated from it, and from the tables of properties in [`logic::property`].

// Introspection and org.zramd1(5) are generated from their comments.
#![warn(missing_docs)]

pub mod benchmark;
pub mod device;
pub mod filesystem;
pub mod introspection;
pub(crate) mod log_control;
pub mod manager;
pub mod options;
mod prompt;
pub mod ramdisk;
pub mod swap;
pub(crate) mod table;
