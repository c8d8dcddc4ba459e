//! Paths of RAM disks, for units, engine and programs alike.

use std::path::Path;

use crate::proc::{MountLine, top};

/// Directory of the private mount points, where RAM disks are filled.
pub const PLACES: &str = "/run/zramd/ramdisk";
/// Default directory of snapshots, with a directory per RAM disk.
pub const STORES: &str = "/var/lib/zramd/disks";

/// The private mount point of a RAM disk.
pub fn place(name: &str) -> String {
    format!("{PLACES}/{name}")
}

/// The flag file that makes units use the directory on disk instead of the RAM disk, because no snapshot could be
/// loaded.
pub fn passthrough(name: &str) -> String {
    format!("/run/zramd/passthrough/{name}")
}

/// The RAM disk with this private mount point.
pub fn ramdisk_at(place: &str) -> Option<&str> {
    place.strip_prefix(PLACES)?.strip_prefix('/').filter(|name| !name.is_empty() && !name.contains('/'))
}

/// Whether `path` is `directory` or below it.
pub fn is_at_or_below(path: &str, directory: &str) -> bool {
    let directory = directory.trim_end_matches('/');
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// `path` and the directories above it, from the deepest to `/`.
pub fn at_or_above(path: &str) -> impl Iterator<Item = &str> {
    Path::new(path).ancestors().filter_map(Path::to_str)
}

/// Whether `path` is strictly below `directory`.
pub fn is_below(path: impl AsRef<[u8]>, directory: impl AsRef<[u8]>) -> bool {
    let directory = directory.as_ref();
    let directory = directory.strip_suffix(b"/").unwrap_or(directory);
    path.as_ref().strip_prefix(directory).is_some_and(|rest| rest.len() > 1 && rest.starts_with(b"/"))
}

/// The visible mount of RAM disk `name` at `path`: the topmost one there, if it is a tmpfs or that of the private
/// place.
pub fn ramdisk_mount<'a>(mounts: &'a [MountLine], name: &str, path: &str) -> Option<&'a MountLine> {
    let place = top(mounts, &place(name)).map(|mount| mount.device);
    top(mounts, path).filter(|mount| mount.fs_type == "tmpfs" || Some(mount.device) == place)
}

#[cfg(test)]
mod tests {
    use crate::proc::parse_mountinfo;
    use crate::ramdisk::place::*;

    #[test]
    fn a_place_names_its_disk() {
        assert_eq!(ramdisk_at(&place("logs")), Some("logs"));
        for path in
            ["/run/zramd/ramdisk", "/run/zramd/ramdisk/", "/run/zramd/ramdisk/a/b", "/run/zramd/ramdisks/a"]
        {
            assert_eq!(ramdisk_at(path), None, "{path}");
        }
    }

    #[test]
    fn a_ramdisk_is_visible_where_its_mount_is_the_topmost() {
        let mounts = parse_mountinfo(
            b"25 1 253:0 / /run/zramd/ramdisk/logs rw - ext4 /dev/zram0 rw
26 1 253:0 / /var/log rw - ext4 /dev/zram0 rw
27 1 0:40 / /tmp rw - tmpfs tmpfs rw
28 1 0:41 / /hidden rw - tmpfs tmpfs rw
29 1 8:1 / /hidden rw - ext4 /dev/sda1 rw
",
        );
        for (name, path, id) in [
            ("logs", "/var/log", Some(26)),
            ("logs", "/tmp", Some(27)),
            ("logs", "/hidden", None),
            ("logs", "/srv", None),
            ("other", "/tmp", Some(27)),
            ("other", "/var/log", None),
        ] {
            assert_eq!(ramdisk_mount(&mounts, name, path).map(|mount| mount.id), id, "{name} at {path}");
        }
    }

    #[test]
    fn directories_above_are_found_from_the_deepest() {
        assert_eq!(at_or_above("/a/bc/d").collect::<Vec<_>>(), ["/a/bc/d", "/a/bc", "/a", "/"]);
    }

    #[test]
    fn a_directory_is_not_above_its_namesakes() {
        assert!(is_at_or_below("/a/b", "/a") && is_at_or_below("/a", "/a") && is_at_or_below("/a", "/"));
        assert!(!is_at_or_below("/ab", "/a") && !is_at_or_below("/", "/a"));
        assert!(is_below("/a/b", "/a") && is_below("/a/b", "/a/") && is_below("/a", "/"));
        for path in ["/a", "/a/", "/ab", "/abc", "/"] {
            assert!(!is_below(path, "/a"), "{path}");
        }
    }
}
