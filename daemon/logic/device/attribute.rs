//! The files below `/sys/block/zramN`, by the names that the kernel gives them.

use std::fmt;

/// One attribute of a zram device.
///
/// Source: Documentation/admin-guide/blockdev/zram.rst and Documentation/ABI/testing/sysfs-block-zram. Whether a kernel
/// has an attribute is found out by looking for the file, never from its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribute {
    /// Parameters of one algorithm slot; each write replaces the whole set.
    AlgorithmParams,
    /// Block device that takes written-back pages.
    BackingDev,
    /// Blocks in use, read and written on the backing device, in 4 KiB units.
    BdStat,
    /// Primary algorithm; reads as a list with the selected one in brackets.
    CompAlgorithm,
    /// Start compaction of the zsmalloc pool.
    Compact,
    /// Device number `major:minor`.
    Dev,
    /// Uncompressed size in bytes; writing it initialises the device.
    DiskSize,
    /// Number that the kernel gives each block device once and never again.
    DiskSeq,
    /// Mark pages as idle.
    Idle,
    /// 1 once the device is initialised.
    InitState,
    /// Failed reads and writes, invalid I/O, freed slots.
    IoStat,
    /// Upper bound of the memory used, in bytes; 0 is none.
    MemLimit,
    /// Writing 0 forgets the peak of the memory used.
    MemUsedMax,
    /// Memory statistics.
    MmStat,
    /// Secondary algorithms with their priorities.
    RecompAlgorithm,
    /// Recompress pages.
    Recompress,
    /// Forget everything and become uninitialised.
    Reset,
    /// What the block layer counted.
    Stat,
    /// Write pages back to the backing device.
    Writeback,
    /// Write-back budget left, in 4 KiB units.
    WritebackLimit,
    /// Whether the budget counts.
    WritebackLimitEnable,
}

impl Attribute {
    /// Every attribute that zramd knows.
    pub const ALL: [Attribute; 21] = [
        Attribute::AlgorithmParams,
        Attribute::BackingDev,
        Attribute::BdStat,
        Attribute::CompAlgorithm,
        Attribute::Compact,
        Attribute::Dev,
        Attribute::DiskSize,
        Attribute::DiskSeq,
        Attribute::Idle,
        Attribute::InitState,
        Attribute::IoStat,
        Attribute::MemLimit,
        Attribute::MemUsedMax,
        Attribute::MmStat,
        Attribute::RecompAlgorithm,
        Attribute::Recompress,
        Attribute::Reset,
        Attribute::Stat,
        Attribute::Writeback,
        Attribute::WritebackLimit,
        Attribute::WritebackLimitEnable,
    ];

    /// The file name.
    pub const fn file_name(self) -> &'static str {
        match self {
            Attribute::AlgorithmParams => "algorithm_params",
            Attribute::BackingDev => "backing_dev",
            Attribute::BdStat => "bd_stat",
            Attribute::CompAlgorithm => "comp_algorithm",
            Attribute::Compact => "compact",
            Attribute::Dev => "dev",
            Attribute::DiskSize => "disksize",
            Attribute::DiskSeq => "diskseq",
            Attribute::Idle => "idle",
            Attribute::InitState => "initstate",
            Attribute::IoStat => "io_stat",
            Attribute::MemLimit => "mem_limit",
            Attribute::MemUsedMax => "mem_used_max",
            Attribute::MmStat => "mm_stat",
            Attribute::RecompAlgorithm => "recomp_algorithm",
            Attribute::Recompress => "recompress",
            Attribute::Reset => "reset",
            Attribute::Stat => "stat",
            Attribute::Writeback => "writeback",
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
