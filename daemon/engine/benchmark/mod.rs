//! Measuring compression on a device of our own, with requests as swapping makes them.
//!
//! [`measure::pass`] times requests one by one and is the same for everything that is measured; [`super::scratch`] has the device.

mod basket;
mod calibrated;
mod filled;
pub mod keep;
pub mod measure;
mod options;
pub mod ramdisk;
mod run;
pub mod sample;
pub mod swap;
mod trial;

pub use options::{Options, SECONDS};
pub use run::{Measured, run};
