//! Decisions, and nothing else: text and plain data in, plain data out.
//!
//! Nothing below this module does I/O, reads a clock, starts a thread or a process, or knows about a bus.
//! That is what lets every decision be tested with a table of inputs, and `tests/fast/layers.rs` keeps it so.

pub mod benchmark;
pub mod change;
pub mod config;
pub mod device;
pub mod duration;
pub mod error;
pub mod exit;
pub mod expr;
pub mod facts;
pub mod figure;
pub mod finding;
pub mod health;
pub mod human;
pub mod import;
pub mod maintain;
pub mod outcome;
pub mod overlay;
pub mod plan;
pub mod proc;
pub mod ramdisk;
pub mod raw_path;
pub mod record;
pub mod request;
pub mod sample;
pub mod table;
pub mod text;
pub mod unit;
pub mod view;
pub mod vm;
pub mod work;
