//! What `bench ramdisk` found: tmpfs, compressed memory and disks in one table.

use serde::{Deserialize, Serialize};

use super::latency::Latency;
use crate::human::human;

/// Version of the form of [`Report`].
pub const SCHEMA_VERSION: u32 = 2;
/// Name of the work, hence of its file.
pub const WORK: &str = "bench-ramdisk";
/// Bytes of one sequential request.
pub const BLOCK: u64 = 1 << 20;
/// Least that a measurement makes sense with.
pub const LEAST: u64 = 16 << 20;
/// What is used when the user gives no size, where memory allows it.
pub const USUAL: u64 = 128 << 20;
/// Share of the available memory for each of: what is stored, the same in the page cache, and the data; half remains free.
const MEMORY_SHARE: u64 = 6;

/// How a medium was reached, which decides what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// tmpfs: its pages are the page cache, and there is no device below.
    Memory,
    /// `O_DIRECT`: past the page cache.
    Direct,
    /// The file system takes no `O_DIRECT`: written until it is on the device, and dropped from the page cache before reading.
    Dropped,
    /// Through the page cache.
    Cache,
}

impl Access {
    /// What its figures are about, for people.
    pub const fn label(self) -> &'static str {
        match self {
            Access::Memory => "memory (a tmpfs is page cache)",
            Access::Direct => "the device (direct)",
            Access::Dropped => "the device (cache dropped)",
            Access::Cache => "page cache, NOT the device",
        }
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contents {
    /// Zero bytes only.
    Zero,
    /// The data of [`Report::data`].
    Real,
}

/// One pass over the whole size in requests of [`BLOCK`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// Bytes per second.
    pub bytes_per_second: u64,
    /// The longest request, in nanoseconds.
    pub slowest_block_ns: u64,
}

impl Pass {
    /// Of the times of its requests, and what came after the last (`total_ns` is more than their sum then).
    pub fn of(blocks: &[u64], total_ns: u64) -> Pass {
        let bytes = u128::from(BLOCK) * blocks.len() as u128;
        let rate = bytes * 1_000_000_000 / u128::from(total_ns.max(1));
        Pass {
            bytes_per_second: u64::try_from(rate).unwrap_or(u64::MAX),
            slowest_block_ns: blocks.iter().copied().max().unwrap_or(0),
        }
    }
}

/// One line of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// `tmpfs`, `zram (lz4), ext4`, `zram (lz4), raw`, or the path and its file system.
    pub medium: String,
    /// How it was reached.
    pub access: Access,
    /// What was written.
    pub contents: Contents,
    /// The first write, which allocates.
    pub first_write: Pass,
    /// The second write over it, which allocates nothing.
    pub second_write: Pass,
    /// Reading from beginning to end.
    pub read: Pass,
    /// 4 KiB at random places, one after the other.
    pub random_read: Latency,
    /// Stored bytes per byte of memory used, on zram.
    pub ratio: Option<f64>,
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Bytes written and read in each pass.
    pub size_bytes: u64,
    /// Where real data came from.
    pub data: String,
    /// One per medium, access and contents.
    pub results: Vec<Row>,
    /// What could not be measured, and why.
    pub remarks: Vec<String>,
}

/// How many bytes to measure with, in multiples of [`BLOCK`]: what the user wants, or [`USUAL`]. `Err` says why that cannot be.
pub fn size(wanted: Option<u64>, available: u64) -> Result<u64, String> {
    let most = available / MEMORY_SHARE / BLOCK * BLOCK;
    let size = wanted.unwrap_or_else(|| USUAL.min(most)) / BLOCK * BLOCK;
    if size < LEAST {
        return Err(match wanted {
            Some(_) => format!("at least {} are needed to measure anything", human(LEAST)),
            None => format!("{} of available memory are too little to measure with", human(available)),
        });
    }
    if size > most {
        return Err(format!(
            "{} are too much: {} of memory are available, of which at most {} can be used",
            human(size),
            human(available),
            human(most)
        ));
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_rate_is_of_the_whole_time() {
        let pass = Pass::of(&[MS, 3 * MS], 8 * MS);
        assert_eq!((pass.bytes_per_second, pass.slowest_block_ns), (2 * BLOCK * 125, 3 * MS));
    }

    #[test]
    fn the_size_leaves_memory_for_other_programs() {
        let gib = 1 << 30;
        assert_eq!(size(None, 8 * gib), Ok(USUAL));
        assert_eq!(size(None, 384 << 20), Ok(64 << 20));
        assert_eq!(size(Some((100 << 20) + 17), 8 * gib), Ok(100 << 20));
        assert!(size(None, 50 << 20).unwrap_err().contains("too little"));
        assert!(size(Some(2 * gib), 8 * gib).unwrap_err().contains("2.0 GiB are too much"));
        assert!(size(Some(1 << 20), 8 * gib).unwrap_err().contains("at least"));
    }
}
