//! zramd: compressed swap and RAM disks on zram.
//!
//! *`logic` decides, `host` touches the machine, `engine` does, `service` serves, `client` shows.*
//!
//! ```text
//! client ──► service (proxies only)
//! service ─► engine ─► logic
//!               └────► host ─► logic (data types only)
//! bin/zramd_setup ─► engine
//! ```
//!
//! `tests/fast/layers.rs` fails when an arrow points the other way.

pub mod client;
pub mod engine;
pub mod host;
pub mod logic;
pub mod service;
