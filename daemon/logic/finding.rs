//! A finding: a problem of the machine, or something worth knowing.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::worded;

/// Percentage in use from which a device, its memory limit or a RAM disk counts as nearly full.
pub const NEARLY_FULL_PERCENT: u64 = 95;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FindingLevel"))]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Something does not work, or data was lost.
    #[default]
    Error,
    /// It works, but worse than it could, or only for a limited time.
    Warning,
    /// Intended, but worth knowing.
    Note,
}

/// Its name in JSON and on the bus.
impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Kind of a finding, for programs. The meaning of a code never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FindingCode"))]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A section of the configuration is not used.
    ConfigInvalid,
    /// A setting is ignored or harmful.
    ConfigDoubtful,
    /// A managed device is gone, or was reset.
    DeviceLost,
    /// Another program has set up a managed device since zramd did.
    DeviceTakenOver,
    /// A record in `/run/zramd` is damaged.
    RecordDamaged,
    /// A configured device is set up by another program, or its record is lost.
    DeviceUnmanaged,
    /// The machine has more or less memory than when the device was set up.
    MemoryChanged,
    /// The set-up of a device was interrupted.
    Unfinished,
    /// A swap device is not active.
    SwapOff,
    /// A device lacks its configured backing device.
    WritebackMissing,
    /// Reads of a device failed.
    ReadsFailed,
    /// Writes to a device failed.
    WritesFailed,
    /// Swap is full.
    SwapFull,
    /// Swap is nearly full.
    SwapNearlyFull,
    /// The size of a swap device does not fit what it stores.
    SizeDoubtful,
    /// A file system on a device is nearly full.
    FilesystemNearlyFull,
    /// A device has nearly reached its memory limit.
    MemoryLimitNear,
    /// Most pages of a device do not compress.
    Incompressible,
    /// zswap is on.
    ZswapActive,
    /// Other swap is preferred.
    PriorityInverted,
    /// Swap on a disk is used when compressed swap is full.
    DiskSwapBelow,
    /// Another program's configuration can be imported.
    ImportOffered,
    /// Another program sets up zram, too.
    ForeignManager,
    /// A kernel setting changed by zramd was changed again.
    SettingChanged,
    /// Hibernation has no swap on a disk.
    NoDiskSwapForHibernation,
    /// `resume=` names a zram device.
    ResumeOnZram,
    /// A RAM disk is nearly full.
    DiskNearlyFull,
    /// A RAM disk could not be loaded.
    DiskNotLoaded,
    /// The directory on disk is used instead of a RAM disk.
    DiskPassthrough,
    /// A RAM disk was loaded from an older snapshot.
    DiskFallback,
    /// A RAM disk is empty, because its snapshot could not be loaded.
    DiskBeganEmpty,
    /// The previous boot ended without a last save.
    DiskUnclean,
    /// Snapshots cannot be written.
    StoreNotWritable,
    /// The last save failed.
    SaveFailed,
    /// The store has no room for the next save.
    StoreNearlyFull,
    /// A snapshot cannot be loaded.
    SnapshotBroken,
    /// An intact snapshot was not loaded, or would not be, for a reason of this machine.
    SnapshotHeld,
    /// A damaged snapshot was set aside.
    SnapshotCorrupt,
    /// RAM disks can hold more than there is memory.
    DisksExceedMemory,
    /// A key is overridden at runtime.
    Overridden,
    /// The section of an override no longer exists.
    OverrideOrphaned,
    /// A device was created at runtime.
    CreatedAtRuntime,
    /// The kernel's figures cannot be read.
    Unreadable,
    /// zram-generator sets up the same device.
    DeviceClaimedTwice,
    /// The verdict of the benchmark cannot be read.
    VerdictDamaged,
    /// A change is refused.
    Refused,
    /// A configured device does not exist.
    NotSetUp,
    /// A device is not as configured.
    NotInLine,
    /// Swap is drained for hibernation.
    SwapDrained,
    /// This is a container.
    Container,
    /// The kernel has no zram.
    ZramMissing,
    /// The kernel cannot load RAM disks.
    KernelTooOld,
    /// The kernel does not report memory pressure.
    PressureUnknown,
    /// The kernel reports memory pressure to privileged programs only.
    PressureNeedsRights,
    /// The generator is not installed.
    GeneratorMissing,
    /// `zramd.service` is not enabled.
    NotEnabled,
    /// `zramd.service` does not run.
    DaemonNotRunning,
}

/// Its name in JSON, on the bus and in the journal.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Severity.
    pub level: Level,
    /// Code.
    pub code: Code,
    /// The object concerned: a device, a file; empty for the machine.
    pub object: String,
    /// The message: one sentence, which names the object.
    pub message: String,
    /// What to do, in one line.
    pub remedy: String,
}

impl Finding {
    /// Creates a finding.
    pub fn new(
        level: Level,
        code: Code,
        object: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding { level, code, object: object.to_owned(), message: worded(message), remedy: worded(remedy) }
    }

    /// Whether both have the same code and object.
    pub fn is_same(&self, other: &Finding) -> bool {
        (self.code, &self.object) == (other.code, &other.object)
    }
}
