//! Decisions, and nothing else: text and plain data in, plain data out.
//!
//! Nothing below this module does I/O, reads a clock, starts a thread or a process, or knows about a bus.
//! That is what lets every decision be tested with a table of inputs, and `tests/fast/layers.rs` keeps it so.

pub mod algorithm;
pub mod attribute;
pub mod benchmark;
pub mod change;
pub mod config;
pub mod derived;
pub mod disk;
mod disk_health;
pub mod disk_place;
pub mod disk_status;
pub mod drain;
pub mod duration;
pub mod error;
pub mod exit;
pub mod expr;
pub mod facts;
pub mod figure;
pub mod finding;
pub mod health;
pub mod import;
pub mod outcome;
pub mod overlay;
pub mod plan;
pub mod policy;
pub mod proc;
pub mod raw_path;
pub mod record;
pub mod signature;
pub mod snapshot;
pub mod space;
pub mod stat;
pub mod swap_header;
pub mod table;
pub mod text;
pub mod unit_disk;
pub mod unit_text;
pub mod units;
pub mod view;
pub mod vm;
pub mod work;
