//! State of a zram device, as the kernel shows it.

use std::collections::BTreeSet;

use super::attribute::Attribute;
use super::signature::Signature;

/// State of a zram device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceFacts {
    /// Device number `major:minor`.
    pub device: Option<(u32, u32)>,
    /// Tells it from other devices with the same number (`diskseq` of a record).
    pub diskseq: Option<u64>,
    /// `initstate`.
    pub initialised: bool,
    /// `disksize` in bytes.
    pub disk_size: u64,
    /// `mem_limit` in bytes, as in `mm_stat`; 0 for none.
    pub memory_limit: u64,
    /// Memory of the allocator in bytes, as in `mm_stat`.
    pub memory_used: u64,
    /// Pages that it stores.
    pub pages: u64,
    /// Attributes that this kernel has.
    pub attributes: BTreeSet<Attribute>,
    /// Algorithms in the order of the kernel.
    pub algorithms: Vec<String>,
    /// The selected one.
    pub algorithm: Option<String>,
    /// What it carries.
    pub seen: Seen,
}

/// What is stored on a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Seen {
    /// It was not looked at: only root can.
    #[default]
    Unknown,
    Nothing,
    /// This.
    Signature(Signature),
}
