//! The attributes below `/sys/block/zramN`, by their names in the kernel.

use std::fmt;

/// An attribute of a zram device.
///
/// Source: Documentation/admin-guide/blockdev/zram.rst and Documentation/ABI/testing/sysfs-block-zram. Whether a kernel
/// has an attribute is determined by checking for the file, never by its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribute {
    /// Parameters of one algorithm slot; each write replaces the whole set.
    AlgorithmParams,
    /// Block device that takes written-back pages.
    BackingDev,
    /// Blocks in use, read and written on the backing device, in 4 KiB units.
    BdStat,
    /// Write pages back as they are stored, without decompressing them: 0 or 1, before initialisation. From Linux 7.0.
    CompressedWriteback,
    /// The same under another name.
    WritebackCompressed,
    /// Primary algorithm; reads as a list with the selected one in brackets.
    CompAlgorithm,
    /// Start compaction of the zsmalloc pool.
    Compact,
    /// Device number `major:minor`.
    Dev,
    /// Uncompressed size in bytes; writing it initialises the device.
    DiskSize,
    /// Sequence number of the block device; the kernel never reuses it.
    DiskSeq,
    /// Mark pages as idle.
    Idle,
    /// 1 once the device is initialised.
    InitState,
    /// Failed reads and writes, invalid I/O, freed slots.
    IoStat,
    /// Number of concurrent compressions: the CPUs that are online. Only before Linux 6.15.
    MaxCompStreams,
    /// Limit of the memory used, in bytes; 0 for none.
    MemLimit,
    /// Writing 0 resets the peak of the memory used.
    MemUsedMax,
    /// Memory statistics.
    MmStat,
    /// Secondary algorithms with their priorities.
    RecompAlgorithm,
    /// Recompress pages.
    Recompress,
    /// Discard all contents and become uninitialised.
    Reset,
    /// Counters of the block layer.
    Stat,
    /// Write pages back to the backing device.
    Writeback,
    /// Number of pages that write-back writes at the same time. From Linux 6.19: before, each waits for the one before.
    WritebackBatchSize,
    /// Write-back budget left, in 4 KiB units.
    WritebackLimit,
    /// Whether the write-back budget is enforced.
    WritebackLimitEnable,
}

impl Attribute {
    /// All attributes that zramd uses.
    pub const ALL: [Attribute; 25] = [
        Attribute::AlgorithmParams,
        Attribute::BackingDev,
        Attribute::BdStat,
        Attribute::CompressedWriteback,
        Attribute::WritebackCompressed,
        Attribute::CompAlgorithm,
        Attribute::Compact,
        Attribute::Dev,
        Attribute::DiskSize,
        Attribute::DiskSeq,
        Attribute::Idle,
        Attribute::InitState,
        Attribute::IoStat,
        Attribute::MaxCompStreams,
        Attribute::MemLimit,
        Attribute::MemUsedMax,
        Attribute::MmStat,
        Attribute::RecompAlgorithm,
        Attribute::Recompress,
        Attribute::Reset,
        Attribute::Stat,
        Attribute::Writeback,
        Attribute::WritebackBatchSize,
        Attribute::WritebackLimit,
        Attribute::WritebackLimitEnable,
    ];

    /// Name of the file.
    pub const fn file_name(self) -> &'static str {
        match self {
            Attribute::AlgorithmParams => "algorithm_params",
            Attribute::BackingDev => "backing_dev",
            Attribute::BdStat => "bd_stat",
            Attribute::CompressedWriteback => "compressed_writeback",
            Attribute::WritebackCompressed => "writeback_compressed",
            Attribute::CompAlgorithm => "comp_algorithm",
            Attribute::Compact => "compact",
            Attribute::Dev => "dev",
            Attribute::DiskSize => "disksize",
            Attribute::DiskSeq => "diskseq",
            Attribute::Idle => "idle",
            Attribute::InitState => "initstate",
            Attribute::IoStat => "io_stat",
            Attribute::MaxCompStreams => "max_comp_streams",
            Attribute::MemLimit => "mem_limit",
            Attribute::MemUsedMax => "mem_used_max",
            Attribute::MmStat => "mm_stat",
            Attribute::RecompAlgorithm => "recomp_algorithm",
            Attribute::Recompress => "recompress",
            Attribute::Reset => "reset",
            Attribute::Stat => "stat",
            Attribute::Writeback => "writeback",
            Attribute::WritebackBatchSize => "writeback_batch_size",
            Attribute::WritebackLimit => "writeback_limit",
            Attribute::WritebackLimitEnable => "writeback_limit_enable",
        }
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.file_name())
    }
}
