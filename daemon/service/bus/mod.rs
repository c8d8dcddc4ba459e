//! The objects on the bus. `#[interface]` is the only definition of each interface: server, introspection and documentation
//! are generated from it. The descriptions of counters are in [`logic::figure`].

pub mod auth;
pub mod benchmark;
pub(crate) mod caller;
pub mod device;
pub mod error;
pub mod filesystem;
pub mod introspection;
pub mod job;
pub mod manager;
pub mod options;
pub mod ramdisk;
pub mod swap;
pub mod turn;

use zbus::Connection;

use super::ROOT;

/// Name of the bus itself, and of its interface.
pub(super) const BUS: &str = "org.freedesktop.DBus";

/// Asks the bus about the owner of a name. zbus' proxies are not used, because they would be most of this program's code.
pub(super) async fn ask(connection: &Connection, method: &str, name: &str) -> zbus::Result<u32> {
    let path = "/org/freedesktop/DBus";
    let answer = connection.call_method(Some(BUS), path, Some(BUS), method, &name).await?;
    answer.body().deserialize()
}

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

/// Beginning of the object paths of devices.
pub(super) const DEVICES: &str = "/org/zramd1/device/";

/// Object path of a device.
pub fn device_path(name: &str) -> String {
    format!("{DEVICES}{name}")
}

/// Object path of an optional device; `/` if there is none.
pub fn device_path_or_none(name: &str) -> String {
    if name.is_empty() { "/".to_owned() } else { device_path(name) }
}

/// Object path of a disk. Other characters than letters and digits become `_` and two hexadecimal digits, as in systemd.
pub fn disk_path(name: &str) -> String {
    format!("{ROOT}/disk/{}", label(name))
}

/// A name as a component of an object path, escaped as in systemd (sd_bus_path_encode(3)).
pub fn label(name: &str) -> String {
    let mut path = String::new();
    for (index, byte) in name.bytes().enumerate() {
        let plain = byte.is_ascii_alphabetic() || (byte.is_ascii_digit() && index > 0);
        if plain {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("_{byte:02x}"));
        }
    }
    if name.is_empty() {
        path.push('_');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_becomes_a_valid_path_of_its_own() {
        assert_eq!(disk_path("logs"), "/org/zramd1/disk/logs");
        assert_eq!(disk_path("var-log_1"), "/org/zramd1/disk/var_2dlog_5f1");
        assert_eq!(disk_path("1"), "/org/zramd1/disk/_31");
        for name in ["", "ä", "a.b", "_"] {
            assert!(zbus::ObjectPath::try_from(disk_path(name)).is_ok(), "{name}");
        }
        assert_ne!(disk_path("a_2d"), disk_path("a-"));
    }
}
