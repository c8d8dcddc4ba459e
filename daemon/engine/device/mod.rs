//! One zram device: creating, controlling, draining.

pub mod control;
pub(crate) mod create;
pub mod drain;
