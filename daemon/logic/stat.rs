//! Statistics of a zram device: tolerant parsers of the kernel's one-line files.

use serde::Serialize;

/// `mm_stat`. Columns that a kernel does not have are 0.
///
/// Source: Documentation/admin-guide/blockdev/zram.rst, "mm_stat".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct MmStat {
    /// Uncompressed bytes stored, same-filled and written-back pages included.
    pub orig_data_size: u64,
    /// Compressed payload in bytes.
    pub compr_data_size: u64,
    /// Memory that the allocator uses, in bytes; without the table of pages.
    pub mem_used_total: u64,
    /// Limit of that memory in bytes; 0 is none.
    pub mem_limit: u64,
    /// Its peak in bytes.
    pub mem_used_max: u64,
    /// Pages that hold one repeated word and need no memory.
    pub same_pages: u64,
    /// Pages freed by compaction.
    pub pages_compacted: u64,
    /// Incompressible pages.
    pub huge_pages: u64,
    /// Incompressible pages since the device was set up.
    pub huge_pages_since: u64,
}

impl MmStat {
    /// Parses the line; nothing when there are fewer than the seven columns that every kernel has.
    pub fn parse(text: &str) -> Option<MmStat> {
        // Columns may be signed in the kernel; a negative peak is a kernel's rounding, not an error.
        let columns: Vec<u64> = text
            .split_whitespace()
            .map(|word| word.parse::<i128>().map(|value| u64::try_from(value.max(0)).unwrap_or(u64::MAX)))
            .collect::<Result<_, _>>()
            .ok()?;
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
