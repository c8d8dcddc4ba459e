//! Results of `bench ramdisk`: tmpfs, compressed memory and disks in one table.

use serde::{Deserialize, Serialize};

use crate::latency::Latency;
use logic::human::human;

/// Version of the format of [`Report`].
pub const SCHEMA_VERSION: u32 = 2;
/// Bytes of one sequential request.
pub const BLOCK: u64 = 1 << 20;
/// Minimum size of a measurement.
pub const LEAST: u64 = 16 << 20;
/// Default size, if memory permits.
pub const USUAL: u64 = 128 << 20;
/// Divisor of available memory for each of: stored data, page cache, source data. Half of it remains free.
const MEMORY_SHARE: u64 = 6;

/// How a medium is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// tmpfs: its pages are the page cache, and there is no device below.
    Memory,
    /// `O_DIRECT`: past the page cache.
    Direct,
    /// The file system does not support `O_DIRECT`: data is synced after writing, and dropped from the page cache
    /// before reading.
    Dropped,
    /// Through the page cache.
    Cache,
}

impl Access {
    /// Label of its figures, for people.
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
    pub bytes_per_second: u64,
    /// The longest request, in nanoseconds.
    pub slowest_block_ns: u64,
}

impl Pass {
    /// Computed from the times of the requests; `total_ns` includes the final sync.
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
    /// How it was accessed.
    pub access: Access,
    /// What was written.
    pub contents: Contents,
    /// The first write, which allocates.
    pub first_write: Pass,
    /// The second write over the same data, which allocates nothing.
    pub second_write: Pass,
    /// Sequential read.
    pub read: Pass,
    /// Reads of 4 KiB at random offsets, one after the other.
    pub random_read: Latency,
    /// Stored bytes per byte of memory used, on zram.
    pub ratio: Option<f64>,
}

/// The whole comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Bytes written and read in each pass.
    pub size_bytes: u64,
    /// Source of real data.
    pub data: String,
    /// One per medium, access and contents.
    pub results: Vec<Row>,
    /// Measurements that were not possible, and why.
    pub remarks: Vec<String>,
}

/// Bytes to measure with, a multiple of [`BLOCK`]: as requested, or [`USUAL`]. The error says why that is not possible.
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
        assert!(size(None, 50 << 20).is_err());
        assert!(size(Some(2 * gib), 8 * gib).unwrap_err().contains("2.0 GiB"));
        assert!(size(Some(1 << 20), 8 * gib).is_err());
    }
}
