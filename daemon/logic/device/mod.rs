//! Zram devices: attributes, algorithms, counters, contents.

pub mod algorithm;
pub mod attribute;
pub mod derived;
pub mod drain;
pub mod signature;
pub mod stat;
pub mod state;
pub mod swap_header;
