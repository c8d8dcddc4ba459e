//! Which of zram, zswap and zram with write-back suits a machine, with the row of `packaging/docs/zram-or-zswap.md` that
//! supports it. And how to create the swap on a disk that zswap needs: zramd creates none.

use super::human::human;

/// The document with the rows.
pub const DOCUMENT: &str = "/usr/share/doc/zramd/zram-or-zswap.md";

/// What the choice depends on.
#[allow(clippy::struct_excessive_bools)] // Facts that are independent of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Conditions {
    /// `MemTotal` in bytes.
    pub memory_bytes: u64,
    /// Bytes of all active swap that is not on zram; 0 without.
    pub disk_swap_bytes: u64,
    /// Whether a disk with that swap is rotational, if known.
    pub rotates: Option<bool>,
    /// Whether that swap is not encrypted although the root file system is.
    pub in_the_clear: bool,
    /// Whether hibernation to a disk is configured.
    pub hibernates: bool,
    /// Whether the kernel has zswap.
    pub has_zswap: bool,
    /// Whether zswap can write cold pages back before it is full (Linux 6.8).
    pub has_shrinker: bool,
    /// Whether write-back is configured.
    pub writes_back: bool,
    /// Whether zswap is on.
    pub zswap_is_on: bool,
    /// Whether swap on zram is on.
    pub zram_is_on: bool,
}

/// The ways to compress swapped memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Zram,
    Zswap,
    WriteBack,
}

impl Way {
    /// As in a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Way::Zram => "zram",
            Way::Zswap => "zswap",
            Way::WriteBack => "zram with write-back",
        }
    }
}

/// A row of the table. Its first cell is the heading there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The first cell, by which it is found.
    pub name: &'static str,
    pub way: Way,
    /// The reason: a sentence without a full stop.
    pub why: &'static str,
}

const fn row(name: &'static str, way: Way, why: &'static str) -> Row {
    Row { name, way, why }
}

pub const NO_DISK: Row = row(
    "no swap on a disk",
    Way::Zram,
    "there is no swap on a disk, and zswap stores only pages that have a place there",
);
pub const NO_ZSWAP: Row = row("kernel without zswap", Way::Zram, "this kernel has no zswap");
pub const IN_THE_CLEAR: Row = row(
    "nothing may reach a disk in the clear",
    Way::Zram,
    "the swap on the disk is not encrypted, and the root file system is: with zswap, memory of programs would reach the disk in the clear",
);
pub const NO_SHRINKER: Row = row(
    "before Linux 6.8",
    Way::Zram,
    "before Linux 6.8, zswap keeps cold pages until it is full, which was not measured",
);
pub const SMALL: Row = row(
    "swap on a disk smaller than the memory",
    Way::Zram,
    "zswap stores no more than fits into the swap on the disk, which is smaller than the memory",
);
pub const HARD_DISK: Row = row(
    "swap on a hard disk",
    Way::Zswap,
    "on a disk with 100 requests a second, a program had 48 times the accesses of zram with write-back, and 600 times those of zram beside the swap",
);
pub const SOLID_STATE: Row = row(
    "swap on a solid-state disk",
    Way::Zswap,
    "a program had 1.5 times the accesses of zram with write-back, and 120 to 400 times those of zram beside the swap",
);
pub const WRITE_BACK: Row = row(
    "write-back to a solid-state disk",
    Way::WriteBack,
    "write-back is configured: a program has 0.65 times the accesses of zswap, with 0.7 to 0.8 times the data written to the disk, which can be encrypted with a key that is not stored",
);

/// All rows that support a choice.
pub const ROWS: [Row; 8] =
    [NO_DISK, NO_ZSWAP, IN_THE_CLEAR, NO_SHRINKER, SMALL, HARD_DISK, SOLID_STATE, WRITE_BACK];

impl Conditions {
    /// The row that applies.
    pub fn row(&self) -> Row {
        match self {
            Conditions { writes_back: true, rotates, .. } if *rotates != Some(true) => WRITE_BACK,
            Conditions { disk_swap_bytes: 0, .. } => NO_DISK,
            Conditions { has_zswap: false, .. } => NO_ZSWAP,
            Conditions { in_the_clear: true, .. } => IN_THE_CLEAR,
            Conditions { has_shrinker: false, .. } => NO_SHRINKER,
            // The kernel does not count the header, and reserves memory for itself.
            Conditions { disk_swap_bytes, memory_bytes, .. } if *disk_swap_bytes < memory_bytes / 10 * 9 => {
                SMALL
            }
            Conditions { rotates: Some(true), .. } => HARD_DISK,
            _ => SOLID_STATE,
        }
    }

    /// The advice, in one sentence or two.
    pub fn sentence(&self) -> String {
        let row = self.row();
        let both = self.zswap_is_on && self.zram_is_on;
        let gone = if row.way == Way::Zswap { "zram" } else { "zswap" };
        let start = if both {
            format!("Both zram and zswap are on, and {gone} is to go")
        } else {
            format!("{} suits this machine", capital(row.way.words()))
        };
        let hibernation = match (self.hibernates, row.way) {
            (true, Way::Zswap) => " Hibernation needs that swap, too, and keeps working.",
            _ => "",
        };
        format!("{start}: {} (\"{}\" in {DOCUMENT}).{hibernation}", row.why, row.name)
    }
}

fn capital(words: &str) -> &str {
    match words {
        "zram with write-back" => "Zram with write-back",
        other => other,
    }
}

/// A machine on which swap on a disk is to be created.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// Type of the root file system.
    pub fs_type: String,
    /// Version of util-linux: major, minor; 0.0 if unknown.
    pub util_linux: (u32, u32),
    /// Bytes that the swap should have: those of the memory.
    pub bytes: u64,
}

/// The commands that create a swap file on the root file system, and those for a partition. Each is a line.
///
/// `mkswap --file` creates a file without holes since util-linux 2.40, and one that btrfs accepts since 2.41.
pub fn commands(place: &Place) -> Vec<String> {
    let gib = place.bytes.div_ceil(1 << 30).max(1);
    let lines: &[&str] = match (place.fs_type.as_str(), place.util_linux) {
        ("btrfs", (2, 41..) | (3.., _)) => &["mkswap --file /swap/swapfile --size SIZEG"],
        ("btrfs", _) => &["btrfs filesystem mkswapfile --size SIZEg /swap/swapfile"],
        ("ext4" | "ext3" | "xfs", (2, 40..) | (3.., _)) => &["mkswap --file /swapfile --size SIZEG"],
        ("ext4" | "ext3" | "xfs", _) => {
            &["fallocate --length SIZEG /swapfile", "chmod 600 /swapfile", "mkswap /swapfile"]
        }
        _ => &[],
    };
    let mut found: Vec<String> = Vec::new();
    if lines.is_empty() {
        found.push("# A file on this file system cannot be swap; PARTITION is a free one, encrypted with a new key at each boot:".to_owned());
        found.push(
            "echo 'swap PARTITION /dev/urandom swap,cipher=aes-xts-plain64,size=512' >>/etc/crypttab"
                .to_owned(),
        );
        found.push("echo '/dev/mapper/swap none swap defaults 0 0' >>/etc/fstab".to_owned());
        found.push("systemctl daemon-reload".to_owned());
        found.push("systemctl start dev-mapper-swap.swap".to_owned());
        return found;
    }
    let file = if place.fs_type == "btrfs" { "/swap/swapfile" } else { "/swapfile" };
    if place.fs_type == "btrfs" {
        // A snapshot of the root would make the file unusable.
        found.push("btrfs subvolume create /swap".to_owned());
    }
    found.extend(lines.iter().map(|line| line.replace("SIZE", &gib.to_string())));
    found.push(format!("echo '{file} none swap defaults 0 0' >>/etc/fstab"));
    found.push(format!("swapon {file}"));
    found
}

/// A sentence before [`commands`].
pub fn before_commands(place: &Place) -> String {
    format!(
        "For zswap, as root, with swap of {} on the disk:",
        human(place.bytes.div_ceil(1 << 30).max(1) << 30)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// 16 GiB with as much encrypted swap on a solid-state disk, and a recent kernel.
    const LAPTOP: Conditions = Conditions {
        memory_bytes: 16 * GIB,
        disk_swap_bytes: 16 * GIB,
        rotates: Some(false),
        in_the_clear: false,
        hibernates: false,
        has_zswap: true,
        has_shrinker: true,
        writes_back: false,
        zswap_is_on: false,
        zram_is_on: false,
    };

    #[test]
    fn each_machine_has_one_row() {
        for (conditions, expected) in [
            (LAPTOP, SOLID_STATE),
            (Conditions { rotates: None, ..LAPTOP }, SOLID_STATE),
            (Conditions { rotates: Some(true), ..LAPTOP }, HARD_DISK),
            (Conditions { disk_swap_bytes: 0, ..LAPTOP }, NO_DISK),
            (Conditions { disk_swap_bytes: 15 * GIB, ..LAPTOP }, SOLID_STATE),
            (Conditions { disk_swap_bytes: 16 * GIB / 10 * 9, ..LAPTOP }, SOLID_STATE),
            (Conditions { disk_swap_bytes: 16 * GIB / 10 * 9 - 1, ..LAPTOP }, SMALL),
            (Conditions { disk_swap_bytes: 8 * GIB, ..LAPTOP }, SMALL),
            (Conditions { in_the_clear: true, ..LAPTOP }, IN_THE_CLEAR),
            (Conditions { has_shrinker: false, ..LAPTOP }, NO_SHRINKER),
            (Conditions { has_zswap: false, has_shrinker: false, ..LAPTOP }, NO_ZSWAP),
            (Conditions { writes_back: true, ..LAPTOP }, WRITE_BACK),
            (Conditions { writes_back: true, rotates: Some(true), ..LAPTOP }, HARD_DISK),
            (Conditions { writes_back: true, disk_swap_bytes: 0, rotates: None, ..LAPTOP }, WRITE_BACK),
        ] {
            assert_eq!(conditions.row(), expected, "{conditions:?}");
        }
    }

    #[test]
    fn where_both_are_on_one_is_to_go() {
        let both = Conditions { zswap_is_on: true, zram_is_on: true, ..LAPTOP };
        assert!(both.sentence().starts_with("Both zram and zswap are on, and zram is to go: "));
        let none = Conditions { disk_swap_bytes: 0, ..both };
        assert!(none.sentence().starts_with("Both zram and zswap are on, and zswap is to go: "));
        let one = Conditions { zram_is_on: true, ..LAPTOP };
        assert!(one.sentence().starts_with("zswap suits this machine: "));
        let hibernates = Conditions { hibernates: true, ..LAPTOP };
        assert!(hibernates.sentence().ends_with("and keeps working."));
    }

    #[test]
    fn swap_on_a_disk_is_created_by_what_this_machine_has() {
        let place = |fs_type: &str, util_linux| Place {
            fs_type: fs_type.to_owned(),
            util_linux,
            bytes: 16 * GIB - 1,
        };
        for (fs_type, version, expected) in [
            ("ext4", (2, 41), "mkswap --file /swapfile --size 16G"),
            ("xfs", (2, 40), "mkswap --file /swapfile --size 16G"),
            ("ext4", (2, 39), "fallocate --length 16G /swapfile"),
            ("ext4", (0, 0), "fallocate --length 16G /swapfile"),
            ("btrfs", (2, 41), "mkswap --file /swap/swapfile --size 16G"),
            ("btrfs", (2, 40), "btrfs filesystem mkswapfile --size 16g /swap/swapfile"),
            (
                "zfs",
                (2, 41),
                "echo 'swap PARTITION /dev/urandom swap,cipher=aes-xts-plain64,size=512' >>/etc/crypttab",
            ),
        ] {
            let lines = commands(&place(fs_type, version));
            assert!(lines.contains(&expected.to_owned()), "{fs_type} {version:?}: {lines:#?}");
            assert!(lines.iter().any(|line| line.contains(">>/etc/fstab")), "{lines:#?}");
        }
        let file = "echo '/swapfile none swap defaults 0 0' >>/etc/fstab";
        let created = "mkswap --file /swapfile --size 16G";
        assert_eq!(commands(&place("ext4", (2, 41))), [created, file, "swapon /swapfile"]);
        // On btrfs, it is in a subvolume of its own.
        let expected = [
            "btrfs subvolume create /swap",
            "mkswap --file /swap/swapfile --size 16G",
            "echo '/swap/swapfile none swap defaults 0 0' >>/etc/fstab",
            "swapon /swap/swapfile",
        ];
        assert_eq!(commands(&place("btrfs", (2, 41))), expected);
    }

    /// The document has each row, with the way that is chosen.
    #[test]
    fn the_table_has_all_rows() {
        let document = include_str!("../../packaging/docs/zram-or-zswap.md");
        for Row { name, way, .. } in ROWS {
            let line = document.lines().find(|line| line.starts_with(&format!("| {name} |")));
            let chosen = line.and_then(|line| line.split('|').nth(2)).map(str::trim);
            assert_eq!(chosen, Some(format!("**{}**", way.words()).as_str()), "{name}");
        }
    }
}
