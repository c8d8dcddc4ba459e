//! The one table of keys. The commented example file and the check for unknown keys come from it.

use std::fmt::Write;

/// Which sections a key belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// `[zramN]` and `[defaults]`.
    Device,
    /// `[zramN]` only.
    OneDevice,
    /// `[ramdisk.NAME]`.
    RamDisk,
    /// `[vm]`.
    Vm,
    /// `[maintenance]`.
    Maintenance,
    /// `[benchmark]`.
    Benchmark,
}

/// One key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Where it is allowed.
    pub scope: Scope,
    /// What values it takes.
    pub values: &'static str,
    /// What holds when it is left out.
    pub default: &'static str,
    /// A value to show, in TOML.
    pub example: &'static str,
    /// The version of zramd that brought it.
    pub since: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

const fn key(
    scope: Scope,
    name: &'static str,
    values: &'static str,
    default: &'static str,
    example: &'static str,
    meaning: &'static str,
) -> Key {
    Key { name, scope, values, default, example, since: "0.1", meaning }
}

use Scope::{Benchmark, Device, Maintenance, OneDevice, RamDisk, Vm};

/// Every key, in the order of the example file.
pub const KEYS: &[Key] = &[
    key(
        Device,
        "enabled",
        "true or false",
        "true",
        "false",
        "Whether the section is used. Switches off a section that a lower file brings.",
    ),
    key(
        Device,
        "zram-size",
        "size",
        "\"min(ram / 2, 4GiB)\"",
        "\"min(ram / 2, 4GiB)\"",
        "Uncompressed size of the device: how much can be stored, not how much memory it takes.",
    ),
    key(
        Device,
        "zram-fraction",
        "number, 0 or more",
        "none",
        "0.5",
        "Size as a share of RAM, in whole MiB. Instead of zram-size.",
    ),
    key(
        Device,
        "max-zram-size",
        "size or \"none\"",
        "none",
        "\"8GiB\"",
        "Upper bound of the size, whichever way it is given. Alone it caps half of the RAM.",
    ),
    key(
        Device,
        "host-memory-limit",
        "size or \"none\"",
        "none",
        "\"16GiB\"",
        "Leave the device out on machines with more RAM than this.",
    ),
    key(
        Device,
        "zram-resident-limit",
        "size, 0 is none",
        "0",
        "\"2GiB\"",
        "Upper bound of the memory that the compressed data may take (mem_limit). Writes fail when it is reached.",
    ),
    key(
        OneDevice,
        "force-resident-limit",
        "true or false",
        "false",
        "true",
        "Accept zram-resident-limit on a mounted file system, where reaching it loses data without an error.",
    ),
    key(
        Device,
        "compression-algorithm",
        "name, name with parameters, list, or \"auto\"",
        "\"auto\"",
        "[\"zstd(level=3)\", \"lz4\"]",
        "The first of the list that this kernel offers; \"auto\" lets zramd choose, also as the last of a list.",
    ),
    key(
        Device,
        "recompression-algorithm",
        "as above, at most 3",
        "none",
        "[\"zstd(level=3)\"]",
        "Secondary algorithms with priorities 1, 2 and 3. Left out with a warning where the kernel cannot recompress.",
    ),
    key(
        OneDevice,
        "writeback-device",
        "absolute path",
        "none",
        "\"/dev/disk/by-partlabel/zram-wb\"",
        "Block device for pages that are written back. It must be empty.",
    ),
    key(
        OneDevice,
        "writeback-file",
        "absolute path",
        "none",
        "\"/var/lib/zramd/zram0.writeback\"",
        "Instead of a device: a file that zramd makes for that, on a disk. It has no name while in use, and ends with it.",
    ),
    key(
        OneDevice,
        "writeback-size",
        "size",
        "1 GiB, and at most 15 % of what is free",
        "\"2GiB\"",
        "Size of the writeback-file. A tenth of the file system, and at most 1.5 GiB of it, is always left free.",
    ),
    key(
        OneDevice,
        "writeback-encryption",
        "\"random-key\" or \"none\"",
        "\"random-key\"",
        "\"none\"",
        "Pages are written back encrypted, with a key that is made anew each time and kept nowhere; \"none\" writes plain text.",
    ),
    key(
        Device,
        "swap-priority",
        "-1 to 32767",
        "100",
        "100",
        "Swap with a higher priority is used first; -1 lets the kernel choose.",
    ),
    key(
        OneDevice,
        "mount-point",
        "absolute path",
        "none",
        "\"/var/cache/build\"",
        "Makes the device a mounted file system instead of swap.",
    ),
    key(
        OneDevice,
        "fs-type",
        "type, \"swap\" or \"none\"",
        "\"ext4\" with a mount-point, else \"swap\"",
        "\"ext4\"",
        "File system type. With a type but no mount-point the device is formatted and otherwise left alone.",
    ),
    key(OneDevice, "mkfs-options", "text or list", "none", "[\"-N\", \"100000\"]", "Further words for mkfs."),
    key(
        OneDevice,
        "options",
        "text or list",
        "\"discard\"",
        "\"discard,noatime\"",
        "Options for swapon or mount, as in fstab.",
    ),
    key(
        OneDevice,
        "mode",
        "octal text or 0o number",
        "that of mkfs",
        "\"0755\"",
        "Permission bits of the root directory, set before anyone can see it.",
    ),
    key(OneDevice, "owner", "name or number", "root", "\"build\"", "Owner of the root directory."),
    key(OneDevice, "group", "name or number", "root", "\"build\"", "Group of the root directory."),
    key(
        OneDevice,
        "label",
        "text",
        "the name of the device",
        "\"fast\"",
        "Label of the swap area or file system.",
    ),
    key(RamDisk, "enabled", "true or false", "true", "false", "Whether the section is used."),
    key(
        RamDisk,
        "mount-point",
        "absolute path",
        "required",
        "\"/var/cache/scratch\"",
        "Where the disk appears.",
    ),
    key(
        RamDisk,
        "backend",
        "\"tmpfs\" or \"zram\"",
        "\"tmpfs\"",
        "\"zram\"",
        "What holds it: memory that can be swapped out and grows live, or a compressed file system of a fixed size.",
    ),
    key(
        RamDisk,
        "size",
        "size",
        "\"50%\"",
        "\"20%\"",
        "Upper bound of what can be stored; memory is taken as it fills.",
    ),
    key(RamDisk, "inodes", "whole number", "the kernel's", "100000", "Upper bound of files and folders."),
    key(
        RamDisk,
        "options",
        "text or list",
        "\"nosuid,nodev\"",
        "\"nosuid,nodev,noexec\"",
        "Mount options, as in fstab.",
    ),
    key(
        RamDisk,
        "mode",
        "octal text or 0o number",
        "\"0755\"",
        "\"1777\"",
        "Permission bits of the root directory. A snapshot brings its own, as with owner and group, and so does the folder below.",
    ),
    key(RamDisk, "owner", "name or number", "root", "\"build\"", "Owner of the root directory."),
    key(RamDisk, "group", "name or number", "root", "\"build\"", "Group of the root directory."),
    key(
        RamDisk,
        "huge-pages",
        "\"never\", \"always\", \"within_size\" or \"advise\"",
        "the kernel's",
        "\"within_size\"",
        "When a tmpfs uses huge pages (huge= of tmpfs).",
    ),
    key(
        RamDisk,
        "fs-type",
        "\"ext4\", \"btrfs\" or \"xfs\"",
        "\"ext4\"",
        "\"btrfs\"",
        "File system on zram: ext4 has no journal; btrfs (from 45 MiB) is saved as it is at one moment; xfs takes at least 300 MiB.",
    ),
    key(
        RamDisk,
        "compression-algorithm",
        "as for [zramN]",
        "that of [defaults]",
        "[\"zstd\", \"auto\"]",
        "Algorithm of the zram device.",
    ),
    key(
        RamDisk,
        "zram-device",
        "whole number",
        "the next after the last [zramN]",
        "7",
        "N of the /dev/zramN that holds it.",
    ),
    key(
        RamDisk,
        "zram-resident-limit",
        "size, 0 is none",
        "0",
        "\"1GiB\"",
        "Upper bound of the memory of the zram device; only with force-resident-limit.",
    ),
    key(
        RamDisk,
        "force-resident-limit",
        "true or false",
        "false",
        "true",
        "Accept zram-resident-limit, although reaching it loses data without an error.",
    ),
    key(
        RamDisk,
        "space-watch",
        "true or false",
        "true for what is kept, else false",
        "true",
        "Tell (journal, and SpaceLow on the bus) when 80 and 95 percent of its bytes, or of its inodes, are in use; takes a timer in the daemon.",
    ),
    key(
        RamDisk,
        "required",
        "true or false",
        "false",
        "true",
        "Whether boot stops when the disk cannot be mounted.",
    ),
    key(
        RamDisk,
        "persist",
        "\"none\", \"skeleton\" or \"snapshot\"",
        "\"none\"",
        "\"snapshot\"",
        "What is kept over a reboot: nothing, folders and empty files with their owners and modes, or everything.",
    ),
    key(
        RamDisk,
        "save-interval",
        "span of time or \"never\"",
        "\"1h\" with \"snapshot\", else \"never\"",
        "\"15min\"",
        "How often it is saved besides at shutdown and before sleep. A power cut costs at most one interval.",
    ),
    key(RamDisk, "keep", "1 to 1000", "2", "5", "How many good snapshots are kept besides pinned ones."),
    key(
        RamDisk,
        "store",
        "absolute path",
        "\"/var/lib/zramd/disks/NAME\"",
        "\"/srv/snapshots/logs\"",
        "Folder of the snapshots, on storage that survives a reboot.",
    ),
    key(
        RamDisk,
        "store-limit",
        "size or \"none\"",
        "none",
        "\"2GiB\"",
        "Upper bound of what the snapshots take together: older ones go first, the newest good one never.",
    ),
    key(
        RamDisk,
        "on-failure",
        "\"empty\", \"passthrough\" or \"fail\"",
        "\"passthrough\" when the folder below has contents, else \"empty\"",
        "\"fail\"",
        "When no snapshot can be loaded: begin empty, leave the folder on disk visible, or do not mount.",
    ),
    key(
        RamDisk,
        "seed",
        "true or false",
        "true",
        "false",
        "Begin the first time with a copy of what is in the folder below, which stays as it is.",
    ),
    key(
        RamDisk,
        "pre-save",
        "command as a list, or the path of a program",
        "none",
        "[\"/usr/local/bin/checkpoint\", \"--all\"]",
        "Run before each save, for example to bring a database into a state of rest.",
    ),
    key(
        RamDisk,
        "post-restore",
        "command as a list, or the path of a program",
        "none",
        "\"/usr/local/bin/warm-up\"",
        "Run after the disk was loaded, before anybody sees it.",
    ),
    key(
        RamDisk,
        "hook-time-limit",
        "span of time",
        "\"30s\"",
        "\"10s\"",
        "How long each of these commands may take. systemd runs them in zramd-hook@NAME.service, whose other limits a drop-in can set.",
    ),
    key(
        RamDisk,
        "time-limit",
        "span of time",
        "\"5min\"",
        "\"15min\"",
        "How long loading or saving may take; a save that takes longer is given up, and the last snapshot stays.",
    ),
    key(
        Benchmark,
        "when",
        "\"idle\", \"boot\" or \"never\"",
        "\"idle\"",
        "\"idle\"",
        "When it is measured which algorithm \"auto\" stands for: once the machine is quiet after boot, and again on a later day \
         when more is known about the pages to measure with; before devices are set up (which then waits for up to two seconds); or only by \
         `zramdctl bench run`.",
    ),
    key(
        Benchmark,
        "profile",
        "\"latency\", \"balanced\" or \"capacity\"",
        "\"balanced\"",
        "\"balanced\"",
        "What counts: little time for each page, little time unless memory is short, or much memory.",
    ),
    key(
        Benchmark,
        "sample",
        "\"public\", \"swap\" or \"processes\"",
        "\"public\"",
        "\"public\"",
        "Which pages are compressed: generated ones and files that every user may read, mixed so that they compress like what the \
         swap stores; pages in the swap; or pages in the memory of running processes. The last two are private data.",
    ),
    key(
        Vm,
        "tune",
        "true or false",
        "false",
        "true",
        "Make the settings below while compressed swap is used first; they return when it stops, but for what others have changed.",
    ),
    key(
        Vm,
        "swappiness",
        "0 to 200, \"auto\" or \"keep\"",
        "\"auto\"",
        "\"auto\"",
        "vm.swappiness. \"auto\" is 100 to 180, from the measured cost of reading a page back; 150 where nothing was measured.",
    ),
    key(
        Vm,
        "page-cluster",
        "0 to 10 or \"keep\"",
        "0",
        "0",
        "vm.page-cluster: how many pages are read ahead from swap, as a power of two.",
    ),
    key(
        Vm,
        "watermark-boost-factor",
        "0 to 100000 or \"keep\"",
        "\"keep\"",
        "0",
        "vm.watermark_boost_factor. 0 avoids bursts of reclaim, and makes huge pages rarer.",
    ),
    key(
        Vm,
        "watermark-scale-factor",
        "1 to 3000, \"auto\" or \"keep\"",
        "\"keep\"",
        "\"auto\"",
        "vm.watermark_scale_factor. \"auto\" is 125 (1.25 % of RAM), but at most 512 MiB of RAM.",
    ),
    key(
        Vm,
        "zswap",
        "\"auto\", \"off\" or \"keep\"",
        "\"auto\"",
        "\"off\"",
        "zswap takes pages before zram sees them. \"off\" switches it off while compressed swap is on; \"auto\" with tune = true only.",
    ),
    key(Maintenance, "enabled", "true or false", "true", "false", "Whether the section is used."),
    key(
        Maintenance,
        "interval",
        "span of time",
        "\"1h\"",
        "\"1h\"",
        "Time between two passes, at least a minute. A machine that is busy, on a low battery or just resumed is left alone until the next.",
    ),
    key(
        Maintenance,
        "recompress.enabled",
        "true or false",
        "false, true with another of its keys",
        "true",
        "Whether pages that have not been used for a while are compressed again with a denser algorithm.",
    ),
    key(
        Maintenance,
        "recompress.algorithm",
        "as above, at most 3",
        "\"zstd\"",
        "\"zstd\"",
        "Secondary algorithms of devices that have no recompression-algorithm of their own. One that does not pack tighter than the primary is refused.",
    ),
    key(
        Maintenance,
        "recompress.idle-age",
        "span of time",
        "\"2h\"",
        "\"2h\"",
        "How long a page must not have been used when memory is full; time in suspend does not count.",
    ),
    key(
        Maintenance,
        "recompress.max-idle-age",
        "span of time",
        "2 hours above idle-age",
        "\"4h\"",
        "The same on an empty machine. In between it follows an exponential curve.",
    ),
    key(
        Maintenance,
        "recompress.threshold",
        "1 to 65536",
        "any that saves memory",
        "3072",
        "Bytes that an incompressible page has to shrink below when it is compressed again without being idle.",
    ),
    key(
        Maintenance,
        "writeback.enabled",
        "true or false",
        "false, true with another of its keys",
        "true",
        "Whether pages are written to the backing device: idle ones, and of those the incompressible first.",
    ),
    key(
        Maintenance,
        "writeback.device",
        "absolute path",
        "none",
        "\"/dev/disk/by-partlabel/zram-wb\"",
        "Backing device of the first compressed swap that has no writeback-device of its own.",
    ),
    key(
        Maintenance,
        "writeback.daily-budget",
        "size",
        "\"1GiB\"",
        "\"1GiB\"",
        "Most that is written in any 24 hours, over restarts; as if it were spent when that cannot be known.",
    ),
    key(
        Maintenance,
        "writeback.run-budget",
        "size",
        "\"300MiB\"",
        "\"300MiB\"",
        "Most that one pass writes, times the share of memory in use.",
    ),
    key(
        Maintenance,
        "writeback.idle-age",
        "span of time",
        "\"20h\"",
        "\"20h\"",
        "How long a page must not have been used when memory is full; time in suspend does not count.",
    ),
    key(
        Maintenance,
        "writeback.max-idle-age",
        "span of time",
        "5 hours above idle-age",
        "\"25h\"",
        "The same on an empty machine.",
    ),
    key(
        Maintenance,
        "writeback.huge",
        "true or false",
        "false",
        "true",
        "Whether incompressible pages are written without being idle. Under severe pressure they always are.",
    ),
    key(
        Maintenance,
        "pressure.enabled",
        "true or false",
        "false, true with another of its keys",
        "true",
        "Whether zramd follows how short memory is, shortens the ages above, compacts, and warns of swap that is full or fails. The kernel adds up every two seconds who waits for memory: nobody is warned of what takes less. Takes Linux 6.5.",
    ),
    key(
        Maintenance,
        "pressure.moderate",
        "1 to 100",
        "20",
        "20",
        "Percent of time in which some task waits for memory, from which on pressure is moderate.",
    ),
    key(
        Maintenance,
        "pressure.severe",
        "1 to 100",
        "5",
        "5",
        "Percent of time in which all tasks wait for memory, from which on it is severe.",
    ),
    key(Maintenance, "pressure.critical", "1 to 100", "50", "50", "The same for critical."),
    key(
        Maintenance,
        "on-memory-change",
        "\"report\" or \"apply\"",
        "\"report\"",
        "\"apply\"",
        "What happens when the machine's memory has grown or shrunk so that sizes change: say so, or set empty swap up again and add a second device to one that is in use. It is looked at once an interval.",
    ),
];

/// The kinds of sections there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionKind {
    /// `[zramN]`.
    Device,
    /// `[defaults]`.
    Defaults,
    /// `[ramdisk.NAME]`.
    RamDisk,
    /// `[vm]`.
    Vm,
    /// `[maintenance]`.
    Maintenance,
    /// `[benchmark]`.
    Benchmark,
}

impl SectionKind {
    /// The keys that such a section can have.
    pub fn keys(self) -> impl Iterator<Item = &'static Key> {
        KEYS.iter().filter(move |key| match self {
            SectionKind::Device => matches!(key.scope, Scope::Device | Scope::OneDevice),
            SectionKind::Defaults => key.scope == Scope::Device && key.name != "enabled",
            SectionKind::RamDisk => key.scope == Scope::RamDisk,
            SectionKind::Vm => key.scope == Scope::Vm,
            SectionKind::Maintenance => key.scope == Scope::Maintenance,
            SectionKind::Benchmark => key.scope == Scope::Benchmark,
        })
    }
}

const HEAD: &str = "\
#:schema /usr/share/zramd/zramd.schema.json
# zramd.toml: compressed swap and RAM disks.
#
# Read from /usr/lib/zramd, /etc/zramd and /run/zramd, then from zramd.toml.d/*.toml beside each, sorted by file name. Per key the
# last assignment wins. An empty file or a link to /dev/null hides files of the same name in lower folders.
# `zramd-setup check` looks for mistakes, `zramd-setup plan` shows what would be done.
#
# A size is a number of MiB, or text: \"512MiB\", \"4GiB\", \"50%\" (of RAM), or an expression with ram, swap, cpus, + - * / % ^,
# min, max, round, floor, ceil, comparisons and `condition ? a : b`, for example \"ram < 4GiB ? ram : 4GiB\".
#
# Every key is shown below with an example; nothing is configured until a line without # is added.
";

/// The sections of the example file: name, what it is about, kind.
pub const SECTIONS: &[(&str, &str, SectionKind)] = &[
    ("defaults", "What holds for every [zramN] below that does not say otherwise.", SectionKind::Defaults),
    ("zram0", "One device, /dev/zram0: swap, or a file system with a mount-point.", SectionKind::Device),
    (
        "ramdisk.scratch",
        "One RAM disk. A span of time is a number of seconds, or text: \"90s\", \"15min\", \"1h 30min\", \"2d\".",
        SectionKind::RamDisk,
    ),
    ("benchmark", "Which algorithm \"auto\" stands for on this machine.", SectionKind::Benchmark),
    ("vm", "Settings of the kernel that fit compressed swap.", SectionKind::Vm),
    (
        "maintenance",
        "What is done with stored pages now and then. All of it is off unless it is asked for. `recompress.idle-age = \"2h\"`\n# can be written as `recompress = { idle-age = \"2h\" }`, and `recompress.enabled = true` as `recompress = true`.",
        SectionKind::Maintenance,
    ),
];

/// The commented file with every key.
pub fn example_file() -> String {
    let mut out = HEAD.to_owned();
    for (name, about, kind) in SECTIONS {
        // Writing to a String cannot fail.
        write!(out, "\n# {about}\n# [{name}]\n").unwrap_or_default();
        if *kind == SectionKind::Defaults {
            let names: Vec<&str> = kind.keys().map(|key| key.name).collect();
            writeln!(out, "# Keys: {}.", names.join(", ")).unwrap_or_default();
            continue;
        }
        for key in kind.keys() {
            let Key { name, values, default, example, meaning, .. } = key;
            write!(out, "\n# {meaning}\n# Values: {values}. Default: {default}.\n# {name} = {example}\n")
                .unwrap_or_default();
        }
    }
    out
}
