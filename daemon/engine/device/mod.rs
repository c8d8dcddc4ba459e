//! One zram device: made, controlled, drained.

pub mod control;
pub(crate) mod create;
pub mod drain;
