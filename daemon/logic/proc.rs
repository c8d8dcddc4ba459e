//! Tolerant parsers of the kernel's text files that provisioning depends on.
//!
//! Invalid lines are ignored: the format of these files is extended over time, and a new column must not make a boot
//! fail. Names are bytes: those of mounts are chosen by users.

use std::str::FromStr;

use super::raw_path::RawPath;

/// Contents of `/proc/meminfo`, in KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// `MemTotal`.
    pub total_kib: u64,
    /// `MemAvailable`.
    pub available_kib: u64,
    /// `AnonPages`.
    pub anonymous_kib: u64,
    /// `Active(anon)`.
    pub active_anonymous_kib: u64,
    /// `SwapTotal`.
    pub swap_total_kib: u64,
    /// `SwapFree`.
    pub swap_free_kib: u64,
    /// `Zswap`: memory that zswap takes (Linux 5.19).
    pub zswap_kib: u64,
    /// `Zswapped`: what it holds, uncompressed (Linux 5.19).
    pub zswapped_kib: u64,
    /// `Hugetlb`: memory reserved as huge pages of all sizes.
    pub hugetlb_kib: u64,
}

impl Memory {
    /// The memory that is not reserved as huge pages, which are neither swapped nor compressed.
    pub fn ordinary_kib(&self) -> u64 {
        self.total_kib.saturating_sub(self.hugetlb_kib)
    }
}

/// Parses `/proc/meminfo` (proc_meminfo(5)). Missing lines count as 0.
pub fn parse_meminfo(text: &str) -> Memory {
    let mut memory = Memory::default();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let field = match name {
            "MemTotal" => &mut memory.total_kib,
            "MemAvailable" => &mut memory.available_kib,
            "AnonPages" => &mut memory.anonymous_kib,
            "Active(anon)" => &mut memory.active_anonymous_kib,
            "SwapTotal" => &mut memory.swap_total_kib,
            "SwapFree" => &mut memory.swap_free_kib,
            "Zswap" => &mut memory.zswap_kib,
            "Zswapped" => &mut memory.zswapped_kib,
            "Hugetlb" => &mut memory.hugetlb_kib,
            _ => continue,
        };
        if let Some(value) = rest.split_whitespace().next().and_then(|word| word.parse().ok()) {
            *field = value;
        }
    }
    memory
}

/// A line of `/proc/swaps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwapLine {
    /// The path as shown by the kernel. It may be wrong for swap activated in another mount namespace; compare device
    /// numbers instead.
    pub path: RawPath,
    pub size_kib: u64,
    /// In use, in KiB.
    pub used_kib: u64,
    pub priority: i32,
}

impl SwapLine {
    /// N if the path names `zramN`, in any directory.
    pub fn zram_number(&self) -> Option<u32> {
        let path = self.path.as_bytes();
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        zram_number(str::from_utf8(path.rsplit(|byte| *byte == b'/').next()?).ok()?)
    }
}

/// The highest number of a device that zramd creates. The kernel assigns the lowest free number, so all lower ones have
/// to be created first.
pub const HIGHEST_DEVICE: u32 = 255;

/// N of `zramN`, in exactly this form.
pub fn zram_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("zram")?;
    let canonical = digits == "0" || !digits.starts_with(['0', '+']);
    if canonical { digits.parse().ok() } else { None }
}

/// N of `zramN` or `/dev/zramN`, as written by users.
pub fn device_number(name: &str) -> Option<u32> {
    zram_number(name.strip_prefix("/dev/").unwrap_or(name))
}

/// Whether a kernel event (`ACTION@DEVPATH` and further strings, each ending with NUL) concerns a zram device.
pub fn is_zram_event(event: &[u8]) -> bool {
    let head = event.split(|byte| *byte == 0).next().unwrap_or_default();
    let Some(path) = std::str::from_utf8(head).ok().and_then(|head| head.split_once('@')) else {
        return false;
    };
    let mut parts = path.1.rsplit('/');
    let name = parts.next().unwrap_or_default();
    parts.next() == Some("block") && zram_number(name).is_some()
}

/// Whether a kernel event says that a zram device, a CPU or memory has come or gone.
pub fn is_hotplug_event(event: &[u8]) -> bool {
    let path = event.iter().position(|byte| *byte == b'@').map(|at| &event[at + 1..]).unwrap_or_default();
    path.starts_with(b"/devices/system/cpu/")
        || path.starts_with(b"/devices/system/memory/")
        || is_zram_event(event) && !event.starts_with(b"change@")
}

/// Parses `/proc/swaps` (proc_swaps(5)).
pub fn parse_swaps(text: &[u8]) -> Vec<SwapLine> {
    lines(text)
        .skip(1)
        .filter_map(|line| {
            // Only blanks and tabs separate columns; other white space is not escaped and may be part of a path. Split
            // from the right, where the last four columns are fixed.
            let words = line.split(|byte| matches!(byte, b' ' | b'\t'));
            let words: Vec<&[u8]> = words.filter(|word| !word.is_empty()).collect();
            let [path, .., _kind, size_kib, used_kib, priority] = *words.as_slice() else { return None };
            Some(SwapLine {
                path: unescape(path).into(),
                size_kib: number(size_kib)?,
                used_kib: number(used_kib)?,
                priority: number(priority)?,
            })
        })
        .collect()
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

fn number<T: FromStr>(word: &[u8]) -> Option<T> {
    str::from_utf8(word).ok()?.parse().ok()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// File systems that no server has to answer for.
const LOCAL: [&str; 17] = [
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "nilfs2", "overlay",
    "ramfs", "reiserfs", "tmpfs", "vfat", "xfs", "zfs",
];

/// A line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountLine {
    /// ID, valid in this mount namespace until it is unmounted.
    pub id: u64,
    /// Device number `major:minor`.
    pub device: (u32, u32),
    /// Path within the mounted file system; `/` unless it is a bind mount.
    pub root: RawPath,
    pub mount_point: RawPath,
    /// File system type. In this and the following fields, invalid UTF-8 is replaced.
    pub fs_type: String,
    /// Source as given to mount(2).
    pub source: String,
    /// Options of the file system itself.
    pub super_options: String,
}

impl MountLine {
    /// Whether it is the file system on zram device `number` with device number `device`. btrfs has its own device
    /// numbers, but a reliable source; with FUSE, the source is chosen by the user.
    pub fn is_on(&self, number: u32, device: (u32, u32)) -> bool {
        let tells_source = self.device.0 == 0 && !self.fs_type.starts_with("fuse");
        self.device == device || (tells_source && self.source == format!("/dev/zram{number}"))
    }

    /// Whether this absolute path is the mount point or below it.
    pub fn covers(&self, path: &[u8]) -> bool {
        let point = self.mount_point.as_bytes();
        let point = point.strip_suffix(b"/").unwrap_or(point);
        path.strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }
}

/// Whether no server has to answer for a file system of this type: one of a disk, or in memory. Unknown types may need one.
pub fn is_local(fs_type: &str) -> bool {
    LOCAL.contains(&fs_type)
}

/// The topmost mount at exactly this path: the one that the path leads to.
pub fn top<'a, P: ?Sized>(mounts: &'a [MountLine], path: &P) -> Option<&'a MountLine>
where
    RawPath: PartialEq<P>,
{
    mounts.iter().rfind(|mount| mount.mount_point == *path)
}

/// The mount that an absolute path without symbolic links is on.
pub fn mount_of_path<'a>(mounts: &'a [MountLine], path: &[u8]) -> Option<&'a MountLine> {
    // Of two mounts on the same directory, the last one is visible.
    mounts.iter().filter(|mount| mount.covers(path)).max_by_key(|mount| mount.mount_point.as_bytes().len())
}

/// Whether this mount is the topmost one at its mount point.
pub fn is_top(mounts: &[MountLine], mount: &MountLine) -> bool {
    top(mounts, &mount.mount_point).is_none_or(|top| top.device == mount.device)
}

/// The mount of zram device `number` with device number `device`.
pub fn mount_of(mounts: &[MountLine], number: u32, device: Option<(u32, u32)>) -> Option<&MountLine> {
    let device = device?;
    mounts.iter().find(|mount| mount.is_on(number, device))
}

/// The mounts of a mount namespace with their ids.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mounts(Vec<MountLine>);

impl Mounts {
    /// Parses `/proc/PID/mountinfo` (proc_pid_mountinfo(5)).
    pub fn parse(text: &[u8]) -> Mounts {
        Mounts(parse_mountinfo(text))
    }

    /// The ids of the mounts of the file system with this device number.
    pub fn ids(&self, device: (u32, u32)) -> impl Iterator<Item = u64> {
        self.0.iter().filter(move |mount| mount.device == device).map(|mount| mount.id)
    }

    /// The device number of the mount with this id.
    pub fn device(&self, id: u64) -> Option<(u32, u32)> {
        self.0.iter().find(|mount| mount.id == id).map(|mount| mount.device)
    }

    /// The mount that an absolute path without symbolic links is on.
    pub fn of_path(&self, path: &[u8]) -> Option<&MountLine> {
        mount_of_path(&self.0, path)
    }
}

/// Parses `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
pub fn parse_mountinfo(text: &[u8]) -> Vec<MountLine> {
    lines(text).filter_map(parse_mount).collect()
}

fn parse_mount(line: &[u8]) -> Option<MountLine> {
    let mut words = line.split(|byte| *byte == b' ');
    let id = number(words.next()?)?;
    let device = parse_device_number(str::from_utf8(words.nth(1)?).ok()?)?;
    let root = unescape(words.next()?).into();
    let mount_point = unescape(words.next()?).into();
    // Mount options, and optional fields, which end with a single hyphen.
    words.find(|word| *word == b"-")?;
    Some(MountLine {
        id,
        device,
        root,
        mount_point,
        fs_type: lossy(words.next()?),
        source: lossy(&unescape(words.next()?)),
        super_options: lossy(words.next().unwrap_or_default()),
    })
}

/// The source of the mount with this ID in `/proc/self/mountinfo`.
pub fn mount_source(text: &[u8], mount: u64) -> Option<String> {
    let found = lines(text).filter_map(parse_mount).find(|line| line.id == mount);
    found.map(|line| line.source)
}

/// Parses `major:minor`.
pub fn parse_device_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The leading numbers of a kernel release (`/proc/sys/kernel/osrelease`): `6.1.0-31-amd64` has 6, 1, 0 and 31.
pub fn kernel_version(osrelease: &str) -> Vec<u32> {
    let words = osrelease.trim().split(|letter: char| !letter.is_ascii_digit());
    words.map_while(|word| word.parse().ok()).collect()
}

/// The numeric ID of `name` in the text of passwd(5) or group(5): it is the third field of both.
pub fn parse_account(text: &[u8], name: &str) -> Option<u32> {
    lines(text).find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        if fields.next()? != name.as_bytes() {
            return None;
        }
        number(fields.nth(1)?)
    })
}

/// Decodes the octal escapes (`\040`) that the kernel uses for blanks, tabs, newlines and backslashes.
pub fn unescape(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits =
            bytes.get(at + 1..at + 4).filter(|digits| digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        match digits {
            Some(digits) if bytes[at] == b'\\' && digits[0] <= b'3' => {
                out.push(digits.iter().fold(0, |byte, digit| byte * 8 + (digit - b'0')));
                at += 4;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_by_name_and_odd_lines_are_left_out() {
        let text = "MemTotal:  801322 kB\nMemAvailable: 700 kB\nAnonPages: 90 kB\nActive(anon): 60 kB\nnonsense\nHugePages_Total: 0\nHugetlb: 6 kB\nSwapTotal: x kB\nZswapped: 5 kB\n";
        assert_eq!(
            parse_meminfo(text),
            Memory {
                total_kib: 801_322,
                available_kib: 700,
                anonymous_kib: 90,
                active_anonymous_kib: 60,
                swap_total_kib: 0,
                swap_free_kib: 0,
                zswap_kib: 0,
                zswapped_kib: 5,
                hugetlb_kib: 6
            }
        );
        assert_eq!(
            parse_meminfo("SwapTotal: 9 kB\nSwapFree: 8 kB\nZswap: 7 kB\n"),
            Memory { swap_total_kib: 9, swap_free_kib: 8, zswap_kib: 7, ..Memory::default() }
        );
    }

    #[test]
    fn swaps_are_matched_whatever_directory_they_are_shown_in() {
        let text = "Filename\tType\tSize\tUsed\tPriority\n\
                    /dev/zram0 partition 4194300 12 100\n\
                    /zram1 partition 4 0 -2\n\
                    /dev/zram7\\040(deleted) partition 4 0 5\n\
                    /swap\\040file file 8 0 -3\n\
                    /swap\u{a0}\rfile file 8 0 -4\n";
        let mut text = text.as_bytes().to_vec();
        text.extend(b"/\xff/zram9 file 8 0 -5\n/\xfe/zram\xff9 file 8 0 -6\n");
        let swaps = parse_swaps(&text);
        let numbers: Vec<_> = swaps.iter().map(SwapLine::zram_number).collect();
        assert_eq!(numbers, [Some(0), Some(1), Some(7), None, None, Some(9), None]);
        assert_eq!(
            swaps[0],
            SwapLine { path: "/dev/zram0".into(), size_kib: 4_194_300, used_kib: 12, priority: 100 }
        );
        assert_eq!(swaps[2].path, "/dev/zram7 (deleted)");
        assert_eq!(swaps[3].path, "/swap file");
        assert_eq!(swaps[4].path, "/swap\u{a0}\rfile");
        assert_eq!(swaps[6].path.as_bytes(), b"/\xfe/zram\xff9");
    }

    #[test]
    fn events_of_zram_devices_are_told_from_others() {
        for (event, expected) in [
            (&b"add@/devices/virtual/block/zram1\0ACTION=add\0"[..], true),
            (b"change@/devices/virtual/block/zram0\0", true),
            (b"add@/devices/virtual/block/loop0\0", false),
            (b"add@/devices/virtual/bdi/252:0\0", false),
            (b"add@/class/zram0\0", false),
            (b"libudev\0\xfe\xed", false),
            (b"", false),
        ] {
            assert_eq!(is_zram_event(event), expected, "{}", event.escape_ascii());
        }
    }

    #[test]
    fn what_comes_and_goes_is_told_from_what_changes() {
        for (event, expected) in [
            (&b"add@/devices/virtual/block/zram1\0"[..], true),
            (b"remove@/devices/virtual/block/zram1\0", true),
            (b"change@/devices/virtual/block/zram1\0", false),
            (b"offline@/devices/system/cpu/cpu3\0", true),
            (b"online@/devices/system/memory/memory33\0", true),
            (b"add@/devices/virtual/block/loop0\0", false),
            (b"", false),
        ] {
            assert_eq!(is_hotplug_event(event), expected, "{}", event.escape_ascii());
        }
    }

    #[test]
    fn only_the_exact_spelling_is_a_zram_device() {
        for (name, number) in [
            ("zram0", Some(0)),
            ("zram12", Some(12)),
            ("zram01", None),
            ("zram+1", None),
            ("zram", None),
            ("xzram1", None),
        ] {
            assert_eq!(zram_number(name), number, "{name}");
        }
    }

    #[test]
    fn mountinfo_survives_blanks_and_optional_fields() {
        let text = "36 35 252:1 / /mnt/my\\040disk rw,noatime shared:1 master:2 - ext4 /dev/zram1 rw,discard\nshort line\n";
        assert_eq!(
            parse_mountinfo(text.as_bytes()),
            [MountLine {
                id: 36,
                device: (252, 1),
                root: "/".into(),
                mount_point: "/mnt/my disk".into(),
                fs_type: "ext4".into(),
                source: "/dev/zram1".into(),
                super_options: "rw,discard".into(),
            }]
        );
    }

    #[test]
    fn names_are_decoded_as_the_kernel_writes_them() {
        for (text, name) in [
            ("a\\040b", "a b"),
            ("a\\011\\012b", "a\t\nb"),
            ("a\\134040b", "a\\040b"),
            ("\\134", "\\"),
            ("a1040", "a1040"),
            ("a\\04", "a\\04"),
            ("a\\048", "a\\048"),
            ("a\\400", "a\\400"),
        ] {
            assert_eq!(unescape(text.as_bytes()), name.as_bytes(), "{text}");
        }
    }

    /// `ID MAJOR:MINOR MOUNT-POINT TYPE SOURCE`.
    fn mounted(lines: &[&str]) -> Mounts {
        let line = |line: &&str| {
            let [id, device, point, fs_type, source] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            format!("{id} 1 {device} / {point} rw - {fs_type} {source} rw\n")
        };
        Mounts::parse(lines.iter().map(line).collect::<String>().as_bytes())
    }

    #[test]
    fn a_mount_is_on_a_device_by_number_or_where_it_has_none_by_its_source() {
        for (line, expected) in [
            ("1 252:3 /a ext4 /dev/zram3", true),
            // Its device has been removed, and another one has its name now.
            ("1 252:4 /a ext4 /dev/zram3", false),
            ("1 0:40 /a btrfs /dev/zram3", true),
            ("1 0:40 /a btrfs /dev/zram4", false),
            ("1 0:40 /a fuse.sshfs /dev/zram3", false),
        ] {
            let Mounts(mounts) = mounted(&[line]);
            assert_eq!(mount_of(&mounts, 3, Some((252, 3))).is_some(), expected, "{line}");
            assert_eq!(mount_of(&mounts, 3, None), None, "{line}");
        }
    }

    #[test]
    fn a_path_is_on_the_visible_mount_with_the_longest_name() {
        let mounts = mounted(&[
            "20 8:1 / ext4 /dev/sda1",
            "21 8:2 /var ext4 /dev/sda2",
            "22 8:3 /var/lib ext4 /dev/sda3",
            "23 0:50 /var/lib tmpfs tmpfs",
            "24 8:2 /mnt ext4 /dev/sda2",
        ]);
        for (path, id) in [
            ("/", 20),
            ("/variable", 20),
            ("/var", 21),
            ("/var/li", 21),
            ("/var/lib", 23),
            ("/var/lib/x", 23),
        ] {
            assert_eq!(mounts.of_path(path.as_bytes()).map(|mount| mount.id), Some(id), "{path}");
        }
        assert_eq!(mounts.ids((8, 2)).collect::<Vec<_>>(), [21, 24]);
        assert_eq!((mounts.device(23), mounts.device(19)), (Some((0, 50)), None));
        let Mounts(mounts) = mounts;
        let covered: Vec<u64> =
            mounts.iter().filter(|mount| !is_top(&mounts, mount)).map(|mount| mount.id).collect();
        assert_eq!(covered, [22]);
        assert!(is_local("ext4") && is_local("tmpfs") && !is_local("nfs4"));
    }

    #[test]
    fn the_source_of_a_mount_is_found_by_its_id() {
        let text = b"36 35 252:1 / /a rw - ext4 /dev/zram1 rw\n37 35 0:40 / /b rw - tmpfs a\\040b rw\n";
        assert_eq!(mount_source(text, 37).as_deref(), Some("a b"));
        assert_eq!(mount_source(text, 38), None);
    }

    #[test]
    fn a_release_has_the_numbers_before_its_first_word() {
        for (release, numbers) in
            [("6.1.0-31-amd64\n", &[6, 1, 0, 31][..]), ("6.12.2-simulated", &[6, 12, 2]), ("next-6", &[])]
        {
            assert_eq!(kernel_version(release), numbers, "{release}");
        }
    }

    #[test]
    fn accounts_are_found_by_exact_name() {
        let text = "root:x:0:0::/root:/bin/sh\nbuild:x:1000:1000::/:/bin/sh\nbroken\n";
        let text = [b"m\xfcller:x:999:999:M\xfcller:/:/bin/sh\n", text.as_bytes()].concat();
        assert_eq!(parse_account(&text, "build"), Some(1000));
        assert_eq!(parse_account(&text, "buil"), None);
        assert_eq!(parse_account(&text, "m\u{fffd}ller"), None);
    }
}
