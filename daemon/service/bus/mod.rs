//! The objects on the bus. `#[interface]` is the only definition of each interface: server, introspection and documentation
//! are generated from it. The descriptions of counters are in [`logic::figure`].

// Introspection and org.zramd1(5) are generated from their comments.
#![warn(missing_docs)]

pub mod benchmark;
pub mod device;
pub mod filesystem;
pub mod introspection;
pub mod manager;
pub mod options;
pub mod ramdisk;
pub mod swap;

/// Properties that emit a signal when they change, per interface; `tests/machine/bus.rs` compares this with the introspection.
pub const EMITTING: [(&str, &[&str]); 6] = [
    (
        "org.zramd1.Manager",
        &[
            "State",
            "Problems",
            "ProblemDetails",
            "Capabilities",
            "SupportedAlgorithms",
            "ConfigFiles",
            "Overrides",
            "PressureLevel",
            "PressureReason",
            "LastMaintenanceMonotonic",
            "MaintenanceActions",
            "MaintenanceSkipped",
            "VmSettings",
        ],
    ),
    (
        "org.zramd1.Device",
        &[
            "Managed",
            "Role",
            "State",
            "ConfigSection",
            "RamDisk",
            "DiskSizeBytes",
            "MemoryLimitBytes",
            "Algorithm",
            "AlgorithmReason",
            "AlgorithmParameters",
            "RecompressionAlgorithms",
            "BackingDevice",
            "WritebackLimitBytes",
        ],
    ),
    (
        "org.zramd1.Benchmark",
        &["Chosen", "Reason", "PageCluster", "Swappiness", "Timestamp", "Profile", "Fresh", "Results"],
    ),
    ("org.zramd1.Swap", &["Active", "Priority", "SizeBytes"]),
    ("org.zramd1.Filesystem", &["MountPoint", "FsType", "Options", "SizeBytes"]),
    (
        "org.zramd1.RamDisk",
        &[
            "MountPoint",
            "Backend",
            "FsType",
            "Options",
            "Device",
            "SizeBytes",
            "Persistence",
            "LoadState",
            "Generation",
            "LastSaveTimestamp",
            "LastSaveResult",
            "LastSaveOmitted",
            "StoreBytes",
            "SnapshotCount",
        ],
    ),
];
