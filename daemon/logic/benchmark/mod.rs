//! The benchmark: finds the best algorithm for the pages that this machine swaps. Decisions only; `engine/benchmark`
//! measures.
//!
//! [`candidates`] are measured on a sample of real or of [`synthetic`] pages, mixed by [`calibrate`]. [`statistics`]
//! computes the uncertainty, [`score`] one number per algorithm; [`verdict`] chooses with hysteresis; [`cache`] stores
//! the verdict for this kernel and CPU; [`advice`] suggests kernel settings; [`report`] is the result as JSON.

pub mod advice;
pub mod cache;
pub mod calibrate;
pub mod candidates;
pub mod latency;
pub mod maps;
pub mod quiet;
pub mod ramdisk;
pub mod report;
pub mod score;
pub mod statistics;
pub mod swap;
pub mod synthetic;
pub mod verdict;
