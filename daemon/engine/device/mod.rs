//! One zram device: controlling, draining.

pub mod control;
pub mod drain;
