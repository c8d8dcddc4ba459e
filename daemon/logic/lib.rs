//! Decisions only: text and plain data in, plain data out.
//!
//! Nothing in this crate does I/O, reads a clock, starts a thread or a process, or uses a bus, so every decision can be
//! tested with a table of inputs. `tests/fast/layers.rs` enforces this.

pub mod change;
pub mod config;
pub mod device;
pub mod duration;
pub mod ended;
pub mod error;
pub mod exit;
pub mod expr;
pub mod facts;
pub mod figure;
pub mod finding;
pub mod following;
pub mod health;
pub mod hibernation;
pub mod human;
pub mod ledger;
pub mod log;
pub mod maintain;
pub mod maintain_report;
pub mod neighbours;
pub mod oom;
pub mod order;
pub mod origin;
pub mod outcome;
pub mod overlay;
pub mod path_kind;
pub mod plan;
pub mod proc;
pub mod property;
pub mod psi;
pub mod ramdisk;
pub mod ramdisk_health;
pub mod raw_path;
pub mod record;
pub mod render;
pub mod request;
pub mod resize;
pub mod sample;
pub mod table;
pub mod text;
pub mod unit;
pub mod unit_name;
pub mod verdict;
pub mod view;
pub mod vm;
pub mod word;
pub mod work;
pub mod zram_or_zswap;
pub mod zswap;
