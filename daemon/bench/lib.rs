//! The benchmark: finds the best algorithm for the pages that this machine swaps, and compares media for RAM disks and swap.
//!
//! Decisions: [`candidates`] are measured on a sample of real or of [`synthetic`] pages, mixed by [`calibrate`].
//! [`statistics`] computes the uncertainty, [`score`] one number per algorithm; [`choice`] chooses with hysteresis; [`advice`]
//! suggests kernel settings; [`quiet`] says whether the machine is quiet enough; [`frequency`] says whether the CPU is held
//! back; [`report`] is the result as JSON.
//!
//! Measurements: [`run()`] is a whole benchmark on a scratch device, with requests like those of swapping. [`measure::pass`] times
//! single requests and is shared by all. [`keep`] stores the verdict, which `logic::verdict` reads: the planner needs no more of it.

pub mod advice;
pub mod calibrate;
mod calibrated;
pub mod candidates;
pub mod choice;
pub mod frequency;
pub mod keep;
pub mod latency;
pub mod maps;
pub mod measure;
mod options;
mod page_buffer;
pub mod quiet;
pub mod ramdisk;
pub mod report;
mod run;
pub mod sample;
pub mod score;
pub mod statistics;
pub mod swap;
mod swap_contents;
pub mod synthetic;
mod trial;
pub mod weights;

pub use options::Options;
pub use run::{Measured, run};
