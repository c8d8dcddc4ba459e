//! Measures compression on a scratch device, with requests like those of swapping.
//!
//! [`measure::pass`] times single requests and is shared by all benchmarks; [`super::scratch`] provides the device.

mod calibrated;
pub mod keep;
pub mod measure;
mod options;
mod page_buffer;
pub mod ramdisk;
mod run;
pub mod sample;
pub mod swap;
mod swap_contents;
mod trial;

pub use options::Options;
pub use run::{Measured, run};
