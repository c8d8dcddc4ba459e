//! Where the properties of the bus are in the JSON of Describe, and the values of both in a common form.

use std::collections::BTreeMap;

use serde_json::Value;
use zbus::{Array, Dict, Variant};

/// Interface, JSON object with its properties, and its properties as JSON pointers into that object.
pub const PLACES: [(&str, &[(&str, &str)]); 5] = [
    (
        "org.zramd1.Manager",
        &[
            ("Capabilities", "/capabilities"),
            ("SupportedAlgorithms", "/devices/0/supported_algorithms"),
            ("PressureLevel", "/pressure_level"),
            ("MemoryTotalBytes", "/memory/total_bytes"),
            ("SwapTotalBytes", "/memory/swap_total_bytes"),
            ("PressureReason", "/pressure_reason"),
            ("LastMaintenanceMonotonic", "/maintenance/last_maintenance_monotonic"),
        ],
    ),
    (
        "org.zramd1.Device",
        &[
            ("Name", "/name"),
            ("DeviceNumber", "/device_number"),
            ("Managed", "/managed"),
            ("Role", "/role"),
            ("State", "/state"),
            ("ConfigSection", "/config_section"),
            ("DiskSizeBytes", "/disk_size_bytes"),
            ("MemoryLimitBytes", "/memory_limit_bytes"),
            ("Algorithm", "/algorithm"),
            ("AlgorithmReason", "/algorithm_reason"),
            ("AlgorithmParameters", "/algorithm_parameters"),
            ("RecompressionAlgorithms", "/recompression_algorithms"),
            ("BackingDevice", "/backing_device"),
            ("Streams", "/streams"),
            ("WritebackLimitBytes", "/writeback_limit_bytes"),
        ],
    ),
    (
        "org.zramd1.Swap",
        &[
            ("Priority", "/swap/priority"),
            ("UsedBytes", "/swap/used_bytes"),
            ("SizeBytes", "/swap/size_bytes"),
        ],
    ),
    (
        "org.zramd1.Filesystem",
        &[
            ("MountPoint", "/mount/mount_point"),
            ("FsType", "/mount/fs_type"),
            ("Options", "/mount/options"),
            ("SizeBytes", "/mount/size_bytes"),
            ("UsedBytes", "/mount/used_bytes"),
        ],
    ),
    (
        "org.zramd1.RamDisk",
        &[
            ("Name", "/name"),
            ("MountPoint", "/mount_point"),
            ("Backend", "/fs_type"),
            ("FsType", "/fs_type"),
            ("Options", "/options"),
            ("SizeBytes", "/size_bytes"),
            ("UsedBytes", "/used_bytes"),
            ("FreeBytes", "/free_bytes"),
            ("FreeInodes", "/free_inodes"),
            ("Persistence", "/persistence"),
            ("LoadState", "/status/load_state"),
            ("Generation", "/status/generation"),
            ("LastSaveTimestamp", "/status/last_save_timestamp"),
            ("LastSaveResult", "/status/last_save_result"),
            ("LastSaveOmitted", "/status/last_save_omitted"),
            ("StoreBytes", "/status/store_bytes"),
            ("WrittenDayBytes", "/status/written_day_bytes"),
            ("WrittenTotalBytes", "/status/written_total_bytes"),
            ("LastVerifyTimestamp", "/status/last_verify_timestamp"),
            ("SnapshotCount", "/status/snapshots"),
        ],
    ),
];

/// Values that change without use of the device: available memory, space used by other programs.
pub const FLEETING: [&str; 4] = ["HeadroomBytes", "StatsTimestampMonotonic", "FreeBytes", "FreeInodes"];

/// A value from the bus as JSON.
pub fn json(value: &Variant<'_>) -> Value {
    match value {
        Variant::Bool(value) => (*value).into(),
        Variant::I32(value) => (*value).into(),
        Variant::I64(value) => (*value).into(),
        Variant::U32(value) => (*value).into(),
        Variant::U64(value) => (*value).into(),
        Variant::F64(value) => (*value).into(),
        Variant::Str(value) => value.as_str().into(),
        Variant::ObjectPath(value) => value.as_str().into(),
        Variant::Variant(value) => json(value),
        Variant::Array(values) => list(values),
        Variant::Dict(values) => dictionary(values),
        Variant::Structure(values) => values.fields().iter().map(json).collect::<Vec<_>>().into(),
        other => panic!("no property has this type: {other:?}"),
    }
}

fn list(values: &Array<'_>) -> Value {
    values.iter().map(json).collect::<Vec<_>>().into()
}

fn dictionary(values: &Dict<'_, '_>) -> Value {
    let name = |key: &Variant<'_>| json(key).as_str().unwrap().to_owned();
    let values: BTreeMap<String, Value> =
        values.iter().map(|(key, value)| (name(key), json(value))).collect();
    serde_json::to_value(values).unwrap()
}

/// Whether two values are equal; numbers that were printed may differ in the last digit.
pub fn same(left: &Value, right: &Value) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) if left.fract() != 0.0 || right.fract() != 0.0 => {
            (left - right).abs() <= 1e-9 * left.abs().max(1.0)
        }
        (Some(left_number), Some(right_number)) if left.is_f64() != right.is_f64() => {
            (left_number - right_number).abs() < 0.5
        }
        _ => left == right,
    }
}

/// The value in Describe of a property, in the form of the bus, which has special numbers for missing values.
pub fn described(object: &Value, name: &str, pointer: &str) -> Value {
    let found = object.pointer(pointer).cloned().unwrap_or(Value::Null);
    match name {
        "WritebackLimitBytes" if found.is_null() => u64::MAX.into(),
        "SupportedAlgorithms" if found.is_null() => Value::Array(Vec::new()),
        "Streams" if found.is_null() => 0.into(),
        "SnapshotCount" => found.as_array().map_or(0, Vec::len).into(),
        _ => found,
    }
}
