//! Validates the path of a store.

use crate::ramdisk::place::is_at_or_below;

/// A component of the path of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A directory above the store.
    Above,
    /// A symbolic link in the path.
    Link,
    /// The store.
    Last,
}

/// Who else could change the target of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// The owner, this user.
    Owner(u32),
    /// A group or all users, by write permission.
    Writable,
}

/// Whether users other than root and `us` could change the target of a path at this component, by its owner and mode.
/// Above the store, write permission is accepted with the sticky bit, which prevents renaming files of other users.
pub fn foreign(part: Part, uid: u32, mode: u32, us: u32) -> Option<Foreign> {
    let is_open = match part {
        Part::Above => mode & 0o022 != 0 && mode & 0o1000 == 0,
        // The mode of a link has no effect.
        Part::Link => false,
        Part::Last => mode & 0o022 != 0,
    };
    if uid != 0 && uid != us { Some(Foreign::Owner(uid)) } else { is_open.then_some(Foreign::Writable) }
}

/// A layer of storage below a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layer {
    /// A file system, by its type in statfs(2), with the path concerned: the store, or a file used as a disk.
    FileSystem {
        /// The store or the file.
        path: String,
        /// `f_type`.
        magic: u64,
    },
    /// A block device, by its name in sysfs.
    Device(String),
}

/// Why a store must not be at this path, given the layers of storage below it and the mount points of the RAM disk.
pub fn refuse_store(store: &str, layers: &[Layer], disks: &[&str]) -> Option<String> {
    layers.iter().find_map(|layer| refuse_layer(store, layer, disks))
}

fn refuse_layer(store: &str, layer: &Layer, disks: &[&str]) -> Option<String> {
    let (path, magic) = match layer {
        Layer::Device(device) if device.starts_with("zram") || device.starts_with("ram") => {
            return Some(format!("{store} is on {device}, which is memory and lost at a reboot"));
        }
        Layer::Device(_) => return None,
        Layer::FileSystem { path, magic } => (path, *magic),
    };
    let what = if path == store { store.to_owned() } else { format!("{store} is in {path}, which") };
    let kind = match magic {
        0x0102_1994 => Some("a tmpfs"),
        0x8584_58f6 => Some("a ramfs"),
        0x794c_7630 => Some("an overlay, whose upper layer may be in memory"),
        0x9fa0 | 0x6265_6572 => Some("a file system of the kernel"),
        _ => None,
    };
    if let Some(kind) = kind {
        return Some(format!("{what} is on {kind}, which may be lost at a reboot"));
    }
    let below = disks.iter().find(|disk| is_at_or_below(path, disk))?;
    Some(format!("{what} is on the RAM disk {below} that it should keep"))
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::paths::*;

    #[test]
    fn a_store_is_on_what_outlives_a_reboot() {
        let ext4 = 0xef53;
        let store = "/var/lib/zramd/disks/a";
        let at = |path: &str, magic| Layer::FileSystem { path: path.to_owned(), magic };
        let on = |name: &str| Layer::Device(name.to_owned());
        assert_eq!(refuse_store(store, &[at(store, ext4), on("sda1"), on("sda")], &["/var/log"]), None);
        assert_eq!(refuse_store(store, &[at(store, ext4)], &["/var/li"]), None);
        let loops = [at(store, ext4), on("loop0"), at("/srv/image", ext4), on("dm-0"), on("sda")];
        assert_eq!(refuse_store(store, &loops, &["/var/log"]), None);
        for (layers, disk, names) in [
            (
                vec![at(store, ext4), on("loop0"), at("/tmp/image", 0x0102_1994)],
                "/x",
                ["/tmp/image", "tmpfs"],
            ),
            (vec![at(store, ext4), on("dm-0"), on("zram1")], "/x", [store, "zram1"]),
            (loops.to_vec(), "/srv", ["/srv/image", "/srv "]),
        ] {
            let reason = refuse_store(store, &layers, &[disk]).unwrap();
            assert!(names.iter().all(|name| reason.contains(name)), "{reason}");
        }
        for (magic, device, disk) in [
            (0x0102_1994, None, "/x"),
            (0x8584_58f6, None, "/x"),
            (0x794c_7630, None, "/x"),
            // proc and sysfs.
            (0x9fa0, None, "/x"),
            (0x6265_6572, None, "/x"),
            (ext4, Some("zram3"), "/x"),
            (ext4, Some("ram0"), "/x"),
            (ext4, Some("sda1"), "/var/lib"),
            (ext4, Some("sda1"), "/var/lib/zramd/disks/a"),
            (ext4, None, "/"),
        ] {
            let layers: Vec<Layer> = [at(store, magic)].into_iter().chain(device.map(on)).collect();
            let reason = refuse_store(store, &layers, &[disk]);
            assert!(reason.is_some(), "{magic:x} {device:?} {disk}");
        }
    }

    #[test]
    fn only_root_and_we_may_change_where_a_store_is() {
        for (part, uid, mode) in [
            (Part::Above, 0, 0o755),
            (Part::Above, 7, 0o700),
            (Part::Above, 0, 0o1777),
            (Part::Link, 0, 0o777),
            (Part::Last, 0, 0o755),
            (Part::Last, 7, 0o700),
        ] {
            assert_eq!(foreign(part, uid, mode, 7), None, "{part:?} {uid} {mode:o}");
        }
        for part in [Part::Above, Part::Link, Part::Last] {
            assert_eq!(foreign(part, 8, 0o700, 7), Some(Foreign::Owner(8)));
        }
        for (part, mode) in [
            (Part::Above, 0o775),
            (Part::Above, 0o757),
            (Part::Last, 0o720),
            (Part::Last, 0o702),
            (Part::Last, 0o1777),
        ] {
            assert_eq!(foreign(part, 0, mode, 7), Some(Foreign::Writable), "{part:?} {mode:o}");
        }
    }
}
