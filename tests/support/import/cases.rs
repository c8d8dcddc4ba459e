//! The acceptance cases and their expected results.

/// The result of zram-generator for the same files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Original {
    /// The same devices with the same sizes and limits.
    Same,
    /// Intentionally different, for this reason.
    Differs(&'static str),
}
use Original::{Differs, Same};

const REFUSES: Original = Differs("it refuses the whole configuration");
const OTHER: Original = Differs("it is another program");

/// Case, MemTotal in KiB, kernel command line, devices.
pub type Row = (&'static str, u64, &'static str, Original, &'static [&'static str]);

/// The acceptance cases. `F` are from zram-generator's own fixtures, `P` from probes of it.
pub const ROWS: &[Row] = &[
    ("F01", 801_322, "", Same, &["zram0 409993216 swap 100 discard default"]),
    ("F02", 801_322, "", Same, &["zram0 614989824 swap 100 discard zstd,auto limit=10484711424"]),
    ("F03", 8_013_220, "", Same, &[]),
    (
        "F04",
        801_322,
        "",
        Same,
        &["zram0 409993216 swap 100 discard default", "zram2 655989145 swap 200  default"],
    ),
    // F05
    ("P01", 8_013_220, "systemd.zram=0", Same, &[]),
    ("F06", 8_013_220, "a\nsystemd.zram\nb", Same, &["zram0 4102553600 swap 100 discard default"]),
    (
        "F07",
        801_322,
        "",
        Same,
        &[
            "zram11 409993216 ext4 /var/compressed discard default",
            "zram12 409993216 ext4 /var/folded discard,casefold default",
            "zram13 409993216 ext4 /foo/bar/baz discard default",
            "zram15 409993216 ext4 / discard default",
        ],
    ),
    ("F07a", 801_322, "", Same, &["zram14 409993216 ext4 /.żupan-ci3pły discard default"]),
    ("F08", 801_322, "", Same, &["zram11 409993216 ext2 default"]),
    ("F09", 801_322, "", Same, &["zram0 614989824 swap 100 discard zstd(dict=/etc/gaming, level=9),auto"]),
    (
        "F10",
        801_322,
        "",
        Differs("its program is not there"),
        &[
            "zram0 81998643 swap 100  lzo-rle,auto limit=6442450944 then=zstd(level=3) wb=/dev/zvol/tank/swap-writeback",
            "zram1 81998643 ext2 /run/compressed-mount-point discard default",
        ],
    ),
    (
        "F10-program",
        801_322,
        "",
        Differs("its program is not there"),
        &["zram0 81998643 swap 100 discard default"],
    ),
    (
        "F11",
        801_322,
        "",
        Same,
        &["zram0 81788928 swap 100 discard default", "zram1 81788928 swap 100 discard default"],
    ),
    ("P01", 1_048_576, "", Same, &["zram0 536870912 swap 100 discard default"]),
    // P02
    ("P01", 16_384_000, "", Same, &["zram0 4294967296 swap 100 discard default"]),
    ("P03", 16_384_000, "", Same, &["zram0 8589934592 swap 100 discard default"]),
    // P04
    ("P03", 4_028_000, "", Same, &["zram0 4124049408 swap 100 discard default"]),
    ("P05", 32_768_000, "", Same, &["zram0 16777216000 swap 100 discard zstd,auto"]),
    ("P07", 5_120_000, "", Same, &["zram0 524288000000 swap 100 discard default"]),
    (
        "P08",
        8_013_220,
        "",
        Same,
        &["zram0 524288 swap 100 discard default", "zram1 1 swap 100 discard default"],
    ),
    (
        "P09",
        8_013_220,
        "",
        REFUSES,
        &[
            "zram1 2147483648 swap 100 discard default",
            "zram2 4102553600 swap 100 discard default",
            "zram5 4102553600 swap 100 discard default",
            "zram6 4102553600 swap 100 discard default",
            "zram9 1025638400 swap 100 discard default",
        ],
    ),
    (
        "P12",
        16_384_000,
        "",
        Same,
        &[
            "zram0 16777216000 swap 100 discard default",
            "zram1 1048576000 swap 100 discard default",
            "zram2 8388608000 swap 100 discard default",
            "zram3 4194304000 swap 100 discard default",
        ],
    ),
    (
        "P14",
        8_012_800,
        "",
        REFUSES,
        &["zram0 4102553600 swap 100 discard default", "zram2 4102553600 swap 100 discard default"],
    ),
    ("P15", 8_013_220, "", Same, &["zram0 4102553600 swap 100 discard default"]),
    (
        "P16",
        1_048_576,
        "",
        REFUSES,
        &[
            "zram0 536870912 swap -1 discard default",
            "zram1 536870912 swap 0 discard default",
            "zram2 536870912 swap 32767 discard default",
            "zram3 536870912 swap 100 discard default",
            "zram4 536870912 swap 100 discard default",
        ],
    ),
    ("P18", 1_048_576, "", Same, &["zram0 536870912 swap 100 discard default"]),
    (
        "P20",
        8_013_220,
        "",
        Same,
        &[
            "zram0 4102553600 swap 100 discard default limit=2051276800",
            "zram1 4102553600 ext4 /var/cache/build discard default limit=2051276800",
            "zram2 4102553600 swap 100 discard default limit=2097152000000000",
        ],
    ),
    (
        "P21",
        1_048_576,
        "",
        Same,
        &["zram0 536870912 swap 100 discard default wb=/dev/disk/by-partuuid/2d54ffa0-01"],
    ),
    ("P22", 1_048_576, "", REFUSES, &["zram0 536870912 swap 100 discard default"]),
    ("P23", 1_048_576, "", Same, &["zram0 536870912 ext2 /var/my cache discard default"]),
    ("P24", 1_048_576, "", Same, &["zram0 536870912 ext2 /var/100%full discard default"]),
    (
        "P25",
        1_048_576,
        "",
        Differs("it makes units that never work"),
        &["zram1 536870912 swap 100 discard default"],
    ),
    (
        "P26",
        1_048_576,
        "",
        Differs("it waits for devices that cannot be"),
        &["zram1 536870912 swap 100 discard default", "zram2 134217728 swap 100 discard default"],
    ),
    // P30
    ("P01", 1_048_576, "systemd.zram=0 systemd.zram", Same, &["zram0 536870912 swap 100 discard default"]),
    ("P01", 1_048_576, "systemd.zram=1 systemd.zram=no", Same, &[]),
    ("P01", 1_048_576, "systemd.zram=0 systemd.zram=maybe", Same, &[]),
    ("P01", 1_048_576, "systemd.zram=Yes", Same, &["zram0 536870912 swap 100 discard default"]),
    (
        "P31",
        8_013_220,
        "systemd.zram=1",
        Same,
        &["zram0 4102553600 swap 100 discard default", "zram1 4102553600 swap 100 discard default"],
    ),
    ("P32", 8_013_220, "systemd.zram=1", Same, &[]),
    ("P33", 1_048_576, "", Same, &["zram0 536870912 swap 100 discard default"]),
    ("P33-run", 1_048_576, "", Same, &["zram0 536870912 swap 100 discard default"]),
    ("P34", 1_048_576, "", Same, &[]),
    ("P34-null", 1_048_576, "", Same, &[]),
    ("P35", 1_048_576, "", Same, &["zram0 536870912 swap 100 discard default"]),
    ("P36", 1_048_576, "", Same, &["zram0 268435456 swap 7 discard default"]),
    ("P38", 1_048_576, "", Same, &["zram0 536870912 swap 100 discard default"]),
    ("P39", 1_048_576, "", Same, &["zram0 536870912 swap 100 discard default"]),
    ("P39-link", 1_048_576, "", Same, &["zram0 268435456 swap 100 discard default"]),
    ("P42", 1_048_576, "", REFUSES, &[]),
    (
        "P43",
        8_013_220,
        "",
        Same,
        &[
            "zram0 2051276800 swap 100 discard default",
            "zram1 2051276800 swap 100 discard default",
            "zram2 2051276800 swap 100 discard default",
        ],
    ),
    (
        "comments",
        1_048_576,
        "",
        REFUSES,
        &[
            "zram0 536870912 swap 50 discard zstd,auto",
            "zram1 536870912 ext2 /var/scratch discard,nosuid,#,not,a,comment default",
        ],
    ),
    (
        "stray",
        1_048_576,
        "",
        Differs("it loses a section without a word"),
        &["zram0 268435456 swap 100 discard default", "zram1 134217728 swap 100 discard default"],
    ),
    ("twice", 1_048_576, "", Same, &["zram0 134217728 swap 100 discard default"]),
    (
        "units",
        1_048_576,
        "",
        REFUSES,
        &[
            "zram0 33554432000000000 swap 100 discard default",
            "zram1 1073741824 swap 100 discard default",
            "zram2 805306368 swap 100 discard default",
            "zram3 536870912 swap 100 discard default",
            "zram4 315652828 swap 100 discard default",
        ],
    ),
    (
        "parameters",
        1_048_576,
        "",
        Same,
        &[
            // A secondary algorithm that is no stronger than the first is left out, with a warning.
            "zram0 536870912 swap 100 discard zstd(level=3, dict=/etc/zram.dict),auto",
            "zram1 536870912 swap 100 discard default then=lz4",
            "zram2 536870912 swap 100 discard lz4,auto then=zstd,lzo,lzo-rle",
        ],
    ),
    ("zram-tools", 1_048_576, "", OTHER, &["zram0 644245094 swap 100 discard zstd,auto"]),
    ("zram-tools-default", 1_048_576, "", OTHER, &["zram0 268435456 swap 100 discard lz4,auto"]),
    ("zram-tools-odd", 1_048_576, "", OTHER, &["zram0 2147483648 swap 100 discard lz4,auto"]),
    ("log2ram", 1_048_576, "", OTHER, &[]),
    (
        "log2ram-zram",
        1_048_576,
        "",
        OTHER,
        &["zram0 104857600 ext4 /run/zramd/ramdisk/var-log discard,nosuid,nodev,noexec,noatime zstd,auto"],
    ),
    ("pop-zram", 1_048_576, "", OTHER, &["zram0 1610612736 swap 1000 discard lz4,auto"]),
    ("pop-zram", 33_554_432, "", OTHER, &["zram0 8589934592 swap 1000 discard lz4,auto"]),
    (
        "rpi-swap",
        1_048_576,
        "",
        OTHER,
        &["zram0 536870912 swap 100 discard zstd,auto wb=/mnt/usb/zram0.writeback"],
    ),
    (
        "rpi-swap-default",
        8_388_608,
        "",
        OTHER,
        &["zram0 2147483648 swap 100 discard zstd,auto wb=/var/lib/zramd/zram0.writeback"],
    ),
    ("type-huge", 1_048_576, "", Same, &["zram0 1073741824 swap 100 discard zstd,auto"]),
    (
        "type-idle",
        1_048_576,
        "",
        Same,
        &[
            "zram0 536870912 swap 100 discard lzo-rle,auto then=zstd(level=3)",
            "zram1 268435456 swap 100 discard lz4,auto then=zstd",
        ],
    ),
    (
        "mount-mode",
        1_048_576,
        "",
        Differs("X-mount.mode is a key here"),
        &[
            "zram0 536870912 ext4 /tmp rw,nosuid default",
            "zram1 536870912 ext2 /var/cache/build  default",
            "zram2 536870912 ext2 /var/cache/odd noatime default",
        ],
    ),
    ("fstab", 1_048_576, "", OTHER, &[]),
    ("fstab-odd", 1_048_576, "", OTHER, &[]),
    ("pop-zram-default", 1_048_576, "", OTHER, &["zram0 536870912 swap 1000 discard zstd,auto"]),
];
