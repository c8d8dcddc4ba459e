//! Names on the bus: of the bus itself, and of objects.

use zbus::Connection;

use super::ROOT;

/// Name of the bus itself, and of its interface.
pub(super) const BUS: &str = "org.freedesktop.DBus";

/// Object path and interface of PID 1 (org.freedesktop.systemd1(5)).
pub(super) const OBJECT: &str = "/org/freedesktop/systemd1";
pub(super) const MANAGER: &str = "org.freedesktop.systemd1.Manager";

/// Asks the bus about the owner of a name. zbus' proxies are not used, because they would be most of this program's code.
pub(super) async fn ask(connection: &Connection, method: &str, name: &str) -> zbus::Result<u32> {
    let path = "/org/freedesktop/DBus";
    let answer = connection.call_method(Some(BUS), path, Some(BUS), method, &name).await?;
    answer.body().deserialize()
}

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

/// Object path of a RAM disk. Other characters than letters and digits become `_` and two hexadecimal digits, as in systemd.
pub fn ramdisk_path(name: &str) -> String {
    format!("{ROOT}/ramdisk/{}", label(name))
}

/// Object path of an optional RAM disk; `/` if there is none.
pub fn ramdisk_path_or_none(name: &str) -> String {
    if name.is_empty() { "/".to_owned() } else { ramdisk_path(name) }
}

/// What an object path names: `device`, `ramdisk` or `job`, and its name.
pub(crate) fn name_in_path(path: &str) -> Option<(&'static str, String)> {
    let (kind, name) = path.strip_prefix(ROOT)?.strip_prefix('/')?.split_once('/')?;
    match kind {
        "device" => Some(("device", name.to_owned())),
        "ramdisk" => Some(("ramdisk", unlabel(name))),
        "job" => Some(("job", name.to_owned())),
        _ => None,
    }
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

/// The name of such a component.
pub fn unlabel(label: &str) -> String {
    let mut name = Vec::new();
    let mut rest = label.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        let digits = after.get(..2).filter(|two| *byte == b'_' && two.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                name.push(code);
                rest = &after[2..];
            }
            None if label == "_" => {}
            None => name.push(*byte),
        }
    }
    String::from_utf8_lossy(&name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_becomes_a_valid_path_of_its_own() {
        assert_eq!(ramdisk_path("logs"), "/org/zramd1/ramdisk/logs");
        assert_eq!(ramdisk_path("var-log_1"), "/org/zramd1/ramdisk/var_2dlog_5f1");
        assert_eq!(ramdisk_path("1"), "/org/zramd1/ramdisk/_31");
        for name in ["", "ä", "a.b", "_"] {
            assert!(zbus::ObjectPath::try_from(ramdisk_path(name)).is_ok(), "{name}");
        }
        assert_ne!(ramdisk_path("a_2d"), ramdisk_path("a-"));
        for name in ["", "ä", "a.b", "_", "var-log_1", "1"] {
            assert_eq!(name_in_path(&ramdisk_path(name)), Some(("ramdisk", name.to_owned())));
        }
        assert_eq!(name_in_path(&device_path("zram0")), Some(("device", "zram0".to_owned())));
        assert_eq!(name_in_path(ROOT), None);
    }

    #[test]
    fn a_name_is_read_back_from_its_path() {
        for name in ["", "session-3.scope", "user@1000.service", "a_b", "ä", "1"] {
            assert_eq!(unlabel(&label(name)), name);
        }
        // Of another program.
        for (label, name) in [("a_", "a_"), ("_zz", "_zz"), ("_+1", "_+1"), ("_0a", "\n")] {
            assert_eq!(unlabel(label), name);
        }
    }
}
