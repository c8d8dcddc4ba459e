//! The benchmark: which algorithm is best for the pages that this machine swaps. Decisions only; `engine/benchmark` measures.
//!
//! [`candidates`] are measured on a real sample or a [`synthetic`] one, which [`calibrate`] mixes, [`statistics`] says how sure the
//! figures are, [`score`] makes one number of them, [`verdict`] chooses and does not waver, [`cache`] keeps the verdict for this kernel
//! and CPU only, [`advice`] is about the kernel's own settings, [`report`] is all of it as JSON.

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
