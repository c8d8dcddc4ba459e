//! Measuring compression on a device of our own, with requests as swapping makes them.
//!
//! [`measure::pass`] times requests one by one and is the same for everything that is measured; [`super::scratch`] has the device.

pub mod keep;
pub mod measure;
mod run;
pub mod sample;

pub use run::{Measured, Options, run};
