//! Zram devices: what the kernel offers, takes and counts.

pub mod algorithm;
pub mod attribute;
pub mod derived;
pub mod drain;
pub mod signature;
pub mod stat;
pub mod swap_header;
