//! The table of keys: name, type, default, example and description of each. The parser uses it; the example file, the
//! manual page and the JSON schema are generated from it. `zramdctl create --set` takes the keys of a device.

use super::key::DefaultValue::{Bool, Integer, Text, Unset};
use super::key::{Key, Type, key};
use crate::proc::HIGHEST_DEVICE;

/// `[zramN]`, and the keys that it shares with `[defaults]`.
#[rustfmt::skip]
pub mod device {
    use super::{Bool, Integer, Key, Text, Type, Unset, key};

    pub const ENABLED: Key = key("enabled", Type::Bool, Bool(true), "false", "Whether the section is used; false disables one of a file with lower precedence.");
    pub const ZRAM_SIZE: Key = key("zram-size", Type::Size { none: false }, Text("min(ram / 2, 4GiB)"), "\"min(ram / 2, 4GiB)\"", "Uncompressed size of the device: how much can be stored, not how much memory it takes.");
    pub const ZRAM_FRACTION: Key = key("zram-fraction", Type::Number, Unset("none"), "0.5", "Size as a share of RAM, in whole MiB. Instead of zram-size.");
    pub const MAX_ZRAM_SIZE: Key = key("max-zram-size", Type::Size { none: true }, Unset("none"), "\"8GiB\"", "Upper bound of the size, whichever way it is given. Alone it caps half of the RAM.");
    pub const HOST_MEMORY_LIMIT: Key = key("host-memory-limit", Type::Size { none: true }, Unset("none"), "\"16GiB\"", "Skip the device on machines with more RAM than this.");
    pub const YIELD: Key = key("yield", Type::Bool, Bool(false), "true", "Skip the device if another program, such as zram-generator, is set up to create zram devices.");
    pub const ZRAM_RESIDENT_LIMIT: Key = key("zram-resident-limit", Type::Size { none: true }, Unset("none"), "\"2GiB\"", "Upper bound of the memory that the compressed data may take (mem_limit). Writes fail when it is reached.");
    pub const FORCE_RESIDENT_LIMIT: Key = key("force-resident-limit", Type::Bool, Bool(false), "true", "Accept zram-resident-limit on a mounted file system, where reaching it loses data without an error.");
    pub const COMPRESSION_ALGORITHM: Key = key("compression-algorithm", Type::Algorithms, Unset("the kernel's"), "[\"zstd\", \"auto\"]", "The first of the list that this kernel offers; \"auto\" lets zramd choose, also as the last of a list.");
    pub const RECOMPRESSION_ALGORITHM: Key = key("recompression-algorithm", Type::Secondary, Unset("none"), "[\"zstd(level=3)\"]", "Secondary algorithms with priorities 1, 2 and 3, for recompress in [maintenance]. Skipped with a warning if the kernel cannot recompress.");
    pub const WRITEBACK_DEVICE: Key = key("writeback-device", Type::Path, Unset("none"), "\"/dev/disk/by-partlabel/zram-wb\"", "Block device for pages that are written back. It must be empty.");
    pub const WRITEBACK_FILE: Key = key("writeback-file", Type::Path, Unset("none"), "\"/var/lib/zramd/zram0.writeback\"", "Instead of a device: a file that zramd creates on a disk. It has no name and is freed when the device is removed.");
    pub const WRITEBACK_SIZE: Key = key("writeback-size", Type::Size { none: false }, Unset("1 GiB, and at most 15 % of what is free"), "\"2GiB\"", "Size of the writeback-file. A tenth of the file system, and at most 1.5 GiB of it, is always left free.");
    pub const WRITEBACK_ENCRYPTION: Key = key("writeback-encryption", Type::Word(&["random-key", "none"]), Text("random-key"), "\"none\"", "Pages are written back encrypted with a random key that is never stored; \"none\" writes plain text.");
    pub const SWAP_PRIORITY: Key = key("swap-priority", Type::integer(-1, 32_767), Integer(100), "100", "Swap with a higher priority is used first; -1 lets the kernel choose. On reload, a change switches the swap off and on again.");
    pub const MOUNT_POINT: Key = key("mount-point", Type::Path, Unset("none"), "\"/var/cache/build\"", "Makes the device a mounted file system instead of swap.");
    pub const FS_TYPE: Key = key("fs-type", Type::Text, Unset("\"ext4\" with a mount-point, else \"swap\""), "\"ext4\"", "File system type, \"swap\", or \"none\". With a type but no mount-point the device is formatted but not mounted.");
    pub const MKFS_OPTIONS: Key = key("mkfs-options", Type::Words, Unset("none"), "[\"-N\", \"100000\"]", "Additional arguments for mkfs.");
    pub const OPTIONS: Key = key("options", Type::Options, Text("discard"), "\"discard,noatime\"", "Options for swapon or mount, as in fstab.");
    pub const MODE: Key = key("mode", Type::Octal, Unset("that of mkfs"), "\"0755\"", "Permission bits of the root directory, set before the file system is mounted. 1777 for /tmp and /var/tmp if not set.");
    pub const OWNER: Key = key("owner", Type::Principal, Unset("root"), "\"build\"", "Owner of the root directory.");
    pub const GROUP: Key = key("group", Type::Principal, Unset("root"), "\"build\"", "Group of the root directory.");
    pub const LABEL: Key = key("label", Type::Text, Unset("the name of the device"), "\"fast\"", "Label of the swap area or file system.");

    /// In the order of the example file.
    pub const KEYS: &[&Key] = &[
        &ENABLED, &ZRAM_SIZE, &ZRAM_FRACTION, &MAX_ZRAM_SIZE, &HOST_MEMORY_LIMIT, &YIELD,
        &ZRAM_RESIDENT_LIMIT, &FORCE_RESIDENT_LIMIT, &COMPRESSION_ALGORITHM, &RECOMPRESSION_ALGORITHM,
        &WRITEBACK_DEVICE, &WRITEBACK_FILE, &WRITEBACK_SIZE, &WRITEBACK_ENCRYPTION, &SWAP_PRIORITY,
        &MOUNT_POINT, &FS_TYPE, &MKFS_OPTIONS, &OPTIONS, &MODE, &OWNER, &GROUP, &LABEL,
    ];

    /// Keys of `[defaults]`.
    pub const SHARED: &[&Key] = &[
        &ZRAM_SIZE,
        &ZRAM_FRACTION,
        &MAX_ZRAM_SIZE,
        &HOST_MEMORY_LIMIT,
        &ZRAM_RESIDENT_LIMIT,
        &COMPRESSION_ALGORITHM,
        &RECOMPRESSION_ALGORITHM,
        &SWAP_PRIORITY,
    ];
}

/// `[ramdisk.NAME]`.
#[rustfmt::skip]
pub mod ramdisk {
    use super::device::{GROUP, OWNER};
    use super::{Bool, HIGHEST_DEVICE, Integer, Key, Text, Type, Unset, key};

    pub const ENABLED: Key = key("enabled", Type::Bool, Bool(true), "false", "Whether the section is used.");
    pub const MOUNT_POINT: Key = key("mount-point", Type::Path, Unset("required"), "\"/var/cache/scratch\"", "Where the RAM disk appears.");
    pub const BACKEND: Key = key("backend", Type::Word(&["tmpfs", "zram"]), Text("tmpfs"), "\"zram\"", "tmpfs, which can be swapped out and enlarged while mounted, or a compressed file system of fixed size.");
    pub const SIZE: Key = key("size", Type::Size { none: false }, Text("50%"), "\"20%\"", "Upper bound of what can be stored; memory is taken as it fills.");
    pub const INODES: Key = key("inodes", Type::integer(1, i64::MAX), Unset("the kernel's"), "100000", "Upper bound of files and directories.");
    pub const OPTIONS: Key = key("options", Type::Options, Text("nosuid,nodev"), "\"nosuid,nodev,noexec\"", "Mount options, as in fstab.");
    pub const MODE: Key = key("mode", Type::Octal, Text("0755"), "\"1777\"", "Permission bits of the root directory; 1777 for /tmp and /var/tmp if not set. With snapshots, mode, owner and group of the one that is loaded, or of the directory below, take precedence.");
    pub const HUGE_PAGES: Key = key("huge-pages", Type::Word(&["never", "always", "within_size", "advise"]), Unset("the kernel's"), "\"within_size\"", "When a tmpfs uses huge pages (huge= of tmpfs).");
    pub const FS_TYPE: Key = key("fs-type", Type::Word(&["ext4", "btrfs", "xfs"]), Text("ext4"), "\"btrfs\"", "File system on zram: ext4 has no journal; btrfs (at least 45 MiB) is saved atomically; xfs takes at least 300 MiB.");
    pub const COMPRESSION_ALGORITHM: Key = key("compression-algorithm", Type::Algorithms, Unset("that of [defaults]"), "[\"zstd\", \"auto\"]", "Algorithm of the zram device.");
    pub const ZRAM_DEVICE: Key = key("zram-device", Type::integer(0, HIGHEST_DEVICE as i64), Unset("the next after the last [zramN]"), "7", "N of the /dev/zramN that holds it.");
    pub const ZRAM_RESIDENT_LIMIT: Key = key("zram-resident-limit", Type::Size { none: true }, Unset("none"), "\"1GiB\"", "Upper bound of the memory of the zram device; only with force-resident-limit.");
    pub const FORCE_RESIDENT_LIMIT: Key = key("force-resident-limit", Type::Bool, Bool(false), "true", "Accept zram-resident-limit, although reaching it loses data without an error.");
    pub const SPACE_WATCH: Key = key("space-watch", Type::Bool, Unset("true for what is kept, else false"), "true", "Warn (journal, and SpaceLow on the bus) at 80 and 95 percent of bytes or inodes in use; needs a timer in the daemon.");
    pub const REQUIRED: Key = key("required", Type::Bool, Bool(false), "true", "Whether boot fails if the RAM disk cannot be mounted.");
    pub const PERSIST: Key = key("persist", Type::Word(&["none", "skeleton", "snapshot"]), Text("none"), "\"snapshot\"", "What is kept over a reboot: nothing, directories and empty files with their owners and modes, or everything.");
    pub const SAVE_INTERVAL: Key = key("save-interval", Type::Span { least: 10, never: true }, Unset("\"1h\" with \"snapshot\", else \"never\""), "\"15min\"", "How often it is saved, in addition to shutdown and sleep. A power cut costs at most one interval.");
    pub const KEEP: Key = key("keep", Type::integer(1, 1000), Integer(2), "5", "How many good snapshots are kept, in addition to pinned ones.");
    pub const STORE: Key = key("store", Type::Path, Unset("\"/var/lib/zramd/disks/NAME\""), "\"/srv/snapshots/logs\"", "Directory of the snapshots, on storage that survives a reboot.");
    pub const STORE_LIMIT: Key = key("store-limit", Type::Size { none: true }, Unset("none"), "\"2GiB\"", "Upper bound of all snapshots together. Older ones are deleted first; the newest good one is never deleted.");
    pub const DAILY_BUDGET: Key = key("daily-budget", Type::Size { none: true }, Unset("none"), "\"500MiB\"", "Upper bound of what saves should write in any 24 hours. Above it, contents are no longer copied from old files, so that the store grows, and `zramdctl doctor` warns. What has changed is always saved.");
    pub const ON_FAILURE: Key = key("on-failure", Type::Word(&["empty", "passthrough", "fail"]), Unset("\"passthrough\" when the directory below has contents, else \"empty\""), "\"fail\"", "If no snapshot can be loaded: start empty, use the directory on disk instead, or do not mount.");
    pub const SEED: Key = key("seed", Type::Bool, Bool(true), "false", "Start the first time with a copy of the directory below, which is not changed.");
    pub const PRE_SAVE: Key = key("pre-save", Type::Command, Unset("none"), "[\"/usr/local/bin/checkpoint\", \"--all\"]", "Command to run before each save, for example to quiesce a database.");
    pub const POST_RESTORE: Key = key("post-restore", Type::Command, Unset("none"), "\"/usr/local/bin/warm-up\"", "Command to run after the RAM disk is loaded, before it is mounted at its mount point.");
    pub const HOOK_TIME_LIMIT: Key = key("hook-time-limit", Type::Span { least: 1, never: false }, Text("30s"), "\"10s\"", "How long each of these commands may take. systemd runs them in zramd-hook@NAME.service, whose other limits a drop-in can set.");
    pub const TIME_LIMIT: Key = key("time-limit", Type::Span { least: 1, never: false }, Text("5min"), "\"15min\"", "How long loading or saving may take; a save that takes longer is aborted, and the last snapshot is kept.");

    /// In the order of the example file.
    pub const KEYS: &[&Key] = &[
        &ENABLED, &MOUNT_POINT, &BACKEND, &SIZE, &INODES, &OPTIONS, &MODE, &OWNER, &GROUP, &HUGE_PAGES,
        &FS_TYPE, &COMPRESSION_ALGORITHM, &ZRAM_DEVICE, &ZRAM_RESIDENT_LIMIT, &FORCE_RESIDENT_LIMIT,
        &SPACE_WATCH, &REQUIRED, &PERSIST, &SAVE_INTERVAL, &KEEP, &STORE, &STORE_LIMIT, &DAILY_BUDGET, &ON_FAILURE, &SEED,
        &PRE_SAVE, &POST_RESTORE, &HOOK_TIME_LIMIT, &TIME_LIMIT,
    ];
}

/// `[benchmark]`.
#[rustfmt::skip]
pub mod benchmark {
    use super::{Key, Text, Type, key};

    pub const WHEN: Key = key("when", Type::Word(&["idle", "boot", "never"]), Text("idle"), "\"idle\"", "When to measure which algorithm \"auto\" stands for: when the machine is idle after boot, and again on a later day with better sample pages; before devices are set up, which delays them by about two seconds, longer on a slow processor; or only by `zramdctl bench run`.");
    pub const PROFILE: Key = key("profile", Type::Word(&["latency", "balanced", "capacity"]), Text("balanced"), "\"balanced\"", "What a page of memory is worth, as processor time, when algorithms are compared: \"balanced\" 1 ms, \"capacity\" 10 ms, \"latency\" 0.1 ms. On a machine that has been short of memory, \"balanced\" counts as \"capacity\"; on one that swaps in all the time although swap has room, as \"latency\".");
    pub const SAMPLE: Key = key("sample", Type::Word(&["public", "swap", "processes"]), Text("public"), "\"public\"", "Which pages are compressed: generated ones and files that every user may read, mixed so that they compress like what the swap stores; pages in the swap; or pages in the memory of running processes. The last two read private data.");

    /// In the order of the example file.
    pub const KEYS: &[&Key] = &[&WHEN, &PROFILE, &SAMPLE];
}

/// `[vm]`.
#[rustfmt::skip]
pub mod vm {
    use super::{Bool, Integer, Key, Text, Type, key};

    pub const TUNE: Key = key("tune", Type::Bool, Bool(false), "true", "Apply the settings below while compressed swap has the highest priority. They are restored afterwards, unless changed by others.");
    pub const SWAPPINESS: Key = key("swappiness", Type::Integer { least: 0, most: 200, words: &["auto", "keep"] }, Text("auto"), "\"auto\"", "vm.swappiness. \"auto\" is 100 to 180, from the measured cost of reading a page back; 150 without a measurement.");
    pub const PAGE_CLUSTER: Key = key("page-cluster", Type::Integer { least: 0, most: 10, words: &["keep"] }, Integer(0), "0", "vm.page-cluster: how many pages are read ahead from swap, as a power of two.");
    pub const WATERMARK_BOOST_FACTOR: Key = key("watermark-boost-factor", Type::Integer { least: 0, most: 100_000, words: &["keep"] }, Integer(0), "0", "vm.watermark_boost_factor: how much is reclaimed at once after fragmentation. 0 avoids these bursts, and makes huge pages rarer.");
    pub const WATERMARK_SCALE_FACTOR: Key = key("watermark-scale-factor", Type::Integer { least: 1, most: 3000, words: &["auto", "keep"] }, Text("auto"), "\"auto\"", "vm.watermark_scale_factor: how much memory is kept free, so that programs wait less. \"auto\" is 125 (1.25 % of RAM), but at most 512 MiB of RAM.");
    pub const INCOMPRESSIBLE: Key = key("incompressible", Type::Word(&["stop", "swap"]), Text("stop"), "\"swap\"", "While nine of ten pages that are swapped out do not compress, swapping frees no memory: \"stop\" then sets vm.swappiness to 0, for 30 s at a time, if less than a tenth of the memory is available. With tune = true, and not beside other swap.");
    pub const PROTECT_SESSIONS: Key = key("protect-sessions", Type::Size { none: true }, Text("none"), "\"min(ram / 8, 256MiB)\"", "Memory that user sessions keep when it is short (MemoryMin= of user.slice; within it, of session.slice), and half as much each for system services (system.slice) and systemd (init.scope), while compressed swap is configured. More than a quarter of the memory is refused.");

    /// In the order of the example file.
    pub const KEYS: &[&Key] = &[
        &TUNE, &SWAPPINESS, &PAGE_CLUSTER, &WATERMARK_BOOST_FACTOR, &WATERMARK_SCALE_FACTOR,
        &INCOMPRESSIBLE, &PROTECT_SESSIONS,
    ];
}

/// `[zswap]`.
#[rustfmt::skip]
pub mod zswap {
    use super::{Key, Type, Unset, key};

    pub const ENABLED: Key = key("enabled", Type::Bool, Unset("false with tune = true in [vm], otherwise unchanged"), "true", "true: zswap is enabled before swap is switched on, with the settings below. It needs swap on a disk, which zramd does not create. false: it is disabled while compressed swap is on, because it takes pages before zram sees them. Restored by `revert`, unless changed by others.");
    pub const COMPRESSOR: Key = key("compressor", Type::Algorithms, Unset("the kernel's"), "[\"zstd\", \"lzo\"]", "The first of the list that this kernel has, without parameters. \"auto\" is the verdict of the benchmark without its level: it is measured for zram and inferred for zswap. Another verdict is used from the next boot on.");
    pub const MAX_POOL: Key = key("max-pool", Type::Size { none: false }, Unset("the kernel's, usually 20%"), "\"40%\"", "How much memory the compressed pages may take, with a unit: \"40%\", \"4GiB\". The kernel takes whole percents, so an amount is rounded to these.");
    pub const ACCEPT_THRESHOLD: Key = key("accept-threshold", Type::integer(1, 100), Unset("the kernel's, usually 90"), "90", "After it was full, the pool accepts pages again when it is below this percentage of max-pool.");
    pub const SHRINKER: Key = key("shrinker", Type::Bool, Unset("the kernel's"), "true", "Whether cold pages are written to the disk before the pool is full, and not only then. Needs Linux 6.8.");

    /// In the order of the example file.
    pub const KEYS: &[&Key] = &[&ENABLED, &COMPRESSOR, &MAX_POOL, &ACCEPT_THRESHOLD, &SHRINKER];
}

/// `[maintenance]`.
#[rustfmt::skip]
pub mod maintenance {
    use super::{Bool, Integer, Key, Text, Type, Unset, key};

    pub const ENABLED: Key = key("enabled", Type::Bool, Bool(true), "false", "Whether the section is used.");
    pub const INTERVAL: Key = key("interval", Type::Span { least: 60, never: false }, Text("1h"), "\"1h\"", "Time between two runs. A run is skipped if the machine is busy, on a low battery or just resumed.");
    pub const RECOMPRESS_ENABLED: Key = key("recompress.enabled", Type::Bool, Unset("false, true with another of its keys"), "true", "Whether idle pages are compressed again with a denser algorithm.");
    pub const RECOMPRESS_ALGORITHM: Key = key("recompress.algorithm", Type::Secondary, Text("zstd"), "\"zstd\"", "Secondary algorithms of devices that have no recompression-algorithm of their own. An algorithm that is not denser than the primary is refused.");
    pub const RECOMPRESS_IDLE_AGE: Key = key("recompress.idle-age", Type::Span { least: 0, never: false }, Text("2h"), "\"2h\"", "How long a page must be idle when memory is full; suspend does not count.");
    pub const RECOMPRESS_MAX_IDLE_AGE: Key = key("recompress.max-idle-age", Type::Span { least: 0, never: false }, Unset("2 hours above idle-age"), "\"4h\"", "The same on an empty machine. In between it follows an exponential curve.");
    pub const RECOMPRESS_THRESHOLD: Key = key("recompress.threshold", Type::integer(1, 65_536), Unset("any that saves memory"), "3072", "Incompressible pages are recompressed without being idle, and kept if they are smaller than this, in bytes.");
    pub const WRITEBACK_ENABLED: Key = key("writeback.enabled", Type::Bool, Unset("false, true with another of its keys"), "true", "Whether idle pages are written to the backing device, incompressible ones first: by the timer, and, unless pressure.enabled is false, when memory is short: under pressure, and when compressed swap takes more than 12 % of the memory and more arrives.");
    pub const WRITEBACK_DEVICE: Key = key("writeback.device", Type::Path, Unset("none"), "\"/dev/disk/by-partlabel/zram-wb\"", "Backing device of the first compressed swap that has no writeback-device of its own.");
    pub const WRITEBACK_DAILY_BUDGET: Key = key("writeback.daily-budget", Type::Size { none: false }, Text("1GiB"), "\"1GiB\"", "Upper bound of what is written in any 24 hours, across restarts. Counts as spent if the amount is unknown.");
    pub const WRITEBACK_RUN_BUDGET: Key = key("writeback.run-budget", Type::Size { none: false }, Text("300MiB"), "\"300MiB\"", "Upper bound of one run. For runs of the timer, it is multiplied by the share of memory in use.");
    pub const WRITEBACK_IDLE_AGE: Key = key("writeback.idle-age", Type::Span { least: 0, never: false }, Text("20h"), "\"20h\"", "How long a page must be idle when memory is full; suspend does not count. Under pressure, younger pages follow the oldest, down to five minutes, under severe pressure one minute, under critical pressure 15 seconds, until run-budget is written or compressed swap takes 10 % of the memory (critical: 5 %). Where the kernel does not track access times, all are written that were not used for the shortest of these times.");
    pub const WRITEBACK_MAX_IDLE_AGE: Key = key("writeback.max-idle-age", Type::Span { least: 0, never: false }, Unset("5 hours above idle-age"), "\"25h\"", "The same on an empty machine.");
    pub const WRITEBACK_HUGE: Key = key("writeback.huge", Type::Bool, Bool(false), "true", "Whether incompressible pages are written without being idle. Under critical pressure they always are, and while memory is otherwise short they never are.");
    pub const PRESSURE_ENABLED: Key = key("pressure.enabled", Type::Bool, Unset("true with writeback or another of its keys, otherwise false"), "true", "Whether zramd watches memory pressure: it reports it, and warns of swap that is full or fails. With recompress or writeback, it shortens the ages above and compacts. Needs Linux 5.13.");
    pub const PRESSURE_MODERATE: Key = key("pressure.moderate", Type::integer(1, 100), Integer(20), "20", "Pressure is moderate from this percentage of time in which some task waits for memory.");
    pub const PRESSURE_SEVERE: Key = key("pressure.severe", Type::integer(1, 100), Integer(5), "5", "Pressure is severe from this percentage of time in which all tasks wait for memory.");
    pub const PRESSURE_CRITICAL: Key = key("pressure.critical", Type::integer(1, 100), Integer(50), "50", "The same for critical.");
    pub const ON_MEMORY_CHANGE: Key = key("on-memory-change", Type::Word(&["report", "apply"]), Unset("\"report\""), "\"apply\"", "What to do when the machine's memory grows or shrinks, which is checked once per interval: report it, or resize empty swap and add a second device to swap in use.");

    /// In the order of the example file.
    pub const KEYS: &[&Key] = &[
        &ENABLED, &INTERVAL, &RECOMPRESS_ENABLED, &RECOMPRESS_ALGORITHM, &RECOMPRESS_IDLE_AGE,
        &RECOMPRESS_MAX_IDLE_AGE, &RECOMPRESS_THRESHOLD, &WRITEBACK_ENABLED, &WRITEBACK_DEVICE,
        &WRITEBACK_DAILY_BUDGET, &WRITEBACK_RUN_BUDGET, &WRITEBACK_IDLE_AGE, &WRITEBACK_MAX_IDLE_AGE,
        &WRITEBACK_HUGE, &PRESSURE_ENABLED, &PRESSURE_MODERATE, &PRESSURE_SEVERE, &PRESSURE_CRITICAL,
        &ON_MEMORY_CHANGE,
    ];
}
