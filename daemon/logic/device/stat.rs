//! Statistics of a zram device: tolerant parsers of the kernel's files.
//!
//! Fields have the kernel's names; in JSON they have those of the bus.

use serde::{Deserialize, Serialize};

/// `mm_stat`. Columns that the kernel lacks are 0.
///
/// Source: Documentation/admin-guide/blockdev/zram.rst, "mm_stat".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MmStat {
    /// Uncompressed bytes stored, same-filled and written-back pages included.
    #[serde(rename = "original_data_bytes")]
    pub orig_data_size: u64,
    /// Compressed payload in bytes.
    #[serde(rename = "compressed_data_bytes")]
    pub compr_data_size: u64,
    /// Memory used by the allocator, in bytes; without the slot table.
    #[serde(rename = "memory_used_bytes")]
    pub mem_used_total: u64,
    /// Limit of that memory in bytes; 0 for none.
    #[serde(rename = "memory_limit_bytes")]
    pub mem_limit: u64,
    /// Its peak in bytes.
    #[serde(rename = "memory_peak_bytes")]
    pub mem_used_max: u64,
    /// Same-filled pages, which need no memory.
    pub same_pages: u64,
    /// Pages freed by compaction.
    pub pages_compacted: u64,
    /// Incompressible pages.
    pub huge_pages: u64,
    /// Incompressible pages since the device was set up.
    pub huge_pages_since: u64,
}

impl MmStat {
    /// Parses the line; `None` with fewer than the seven columns that every kernel has.
    pub fn parse(text: &str) -> Option<MmStat> {
        let columns = counters(text)?;
        let [
            orig_data_size,
            compr_data_size,
            mem_used_total,
            mem_limit,
            mem_used_max,
            same_pages,
            pages_compacted,
        ] = *columns.first_chunk()?;
        Some(MmStat {
            orig_data_size,
            compr_data_size,
            mem_used_total,
            mem_limit,
            mem_used_max,
            same_pages,
            pages_compacted,
            huge_pages: columns.get(7).copied().unwrap_or(0),
            huge_pages_since: columns.get(8).copied().unwrap_or(0),
        })
    }
}

/// `io_stat`. Columns that the kernel lacks are 0.
///
/// Source: Documentation/admin-guide/blockdev/zram.rst, "io_stat". The third column is a constant 0 since Linux 6.12.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IoStat {
    /// Failed reads: pages lost to the processes that own them.
    pub failed_reads: u64,
    /// Failed writes, for lack of memory or because of the memory limit.
    pub failed_writes: u64,
    /// Requests not made of whole pages.
    pub invalid_io: u64,
    /// Pages freed because the swap or the file system no longer needs them.
    pub notify_free: u64,
}

impl IoStat {
    /// Parses the line; `None` if it is not made of numbers.
    pub fn parse(text: &str) -> Option<IoStat> {
        let columns = counters(text)?;
        let [failed_reads, failed_writes, invalid_io, notify_free] = *columns.first_chunk()?;
        Some(IoStat { failed_reads, failed_writes, invalid_io, notify_free })
    }
}

/// Bytes per block in `bd_stat` and `writeback_limit`, for any page size.
pub const BACKING_BLOCK: u64 = 4096;

/// `bd_stat`: data on the backing device, in bytes.
///
/// Source: Documentation/admin-guide/blockdev/zram.rst, "bd_stat"; the kernel counts in units of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BdStat {
    /// Bytes in use.
    #[serde(rename = "backing_bytes")]
    pub used_bytes: u64,
    /// Bytes read back since the device was set up.
    #[serde(rename = "backing_reads")]
    pub read_bytes: u64,
    /// Bytes written since the device was set up.
    #[serde(rename = "backing_writes")]
    pub written_bytes: u64,
}

impl BdStat {
    /// Parses the line; `None` with fewer than three numbers.
    pub fn parse(text: &str) -> Option<BdStat> {
        let columns = counters(text)?;
        let [used, read, written] = *columns.first_chunk()?;
        let bytes = |blocks: u64| blocks.saturating_mul(BACKING_BLOCK);
        Some(BdStat { used_bytes: bytes(used), read_bytes: bytes(read), written_bytes: bytes(written) })
    }
}

/// Counters of the block layer, from `/sys/block/zramN/stat`.
///
/// Source: Documentation/block/stat.rst; sectors are 512 bytes there, for any device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockStat {
    /// Read requests completed.
    #[serde(rename = "read_requests")]
    pub reads: u64,
    /// Bytes read, uncompressed.
    pub read_bytes: u64,
    /// Write requests completed.
    #[serde(rename = "write_requests")]
    pub writes: u64,
    /// Bytes written, uncompressed.
    pub written_bytes: u64,
    /// Bytes discarded.
    pub discarded_bytes: u64,
}

impl BlockStat {
    /// Parses the line; `None` with fewer than the eleven numbers that every kernel has.
    pub fn parse(text: &str) -> Option<BlockStat> {
        let columns = counters(text)?;
        if columns.len() < 11 {
            return None;
        }
        let bytes = |index: usize| columns.get(index).copied().unwrap_or(0).saturating_mul(512);
        Some(BlockStat {
            reads: columns[0],
            read_bytes: bytes(2),
            writes: columns[4],
            written_bytes: bytes(6),
            discarded_bytes: bytes(13),
        })
    }
}

/// The numbers of a line; `None` if a word is not a number.
fn counters(text: &str) -> Option<Vec<u64>> {
    // Columns may be signed in the kernel; a negative peak is a rounding of the kernel, not an error.
    text.split_whitespace()
        .map(|word| word.parse::<i128>().map(|value| u64::try_from(value.max(0)).unwrap_or(u64::MAX)))
        .collect::<Result<_, _>>()
        .ok()
}

#[cfg(test)]
mod tests {
    use crate::device::stat::*;

    #[test]
    fn short_long_and_negative_lines_are_understood() {
        let line = "  4096   74   12288  0  -1  2  3";
        let stat = MmStat::parse(line).unwrap();
        assert_eq!((stat.orig_data_size, stat.mem_used_max, stat.pages_compacted), (4096, 0, 3));
        let stat = MmStat::parse("1 2 3 4 5 6 7 8 9 10\n").unwrap();
        assert_eq!((stat.huge_pages, stat.huge_pages_since), (8, 9));
        for broken in ["", "1 2 3 4 5 6", "1 2 3 4 5 6 x"] {
            assert_eq!(MmStat::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn io_backing_and_block_counters_have_their_units() {
        assert_eq!(
            IoStat::parse("  1 2 0 4\n"),
            Some(IoStat { failed_reads: 1, failed_writes: 2, invalid_io: 0, notify_free: 4 })
        );
        assert_eq!(
            BdStat::parse("1 2 3"),
            Some(BdStat { used_bytes: 4096, read_bytes: 8192, written_bytes: 12288 })
        );
        let line = "3 0 24 1 5 0 40 2 0 3 3 7 0 16 0 0 0";
        assert_eq!(
            BlockStat::parse(line),
            Some(BlockStat {
                reads: 3,
                read_bytes: 24 * 512,
                writes: 5,
                written_bytes: 40 * 512,
                discarded_bytes: 16 * 512
            })
        );
        assert_eq!(BlockStat::parse("3 0 24 1 5 0 40 2 0 3 3").map(|stat| stat.discarded_bytes), Some(0));
        assert_eq!((IoStat::parse("1 2"), BdStat::parse("x 1 2"), BlockStat::parse("1")), (None, None, None));
    }
}
