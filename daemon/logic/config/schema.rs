//! The kinds of sections, and the commented example file, generated from the table of keys.

use std::fmt::Write;

use super::key::Key;
use super::keys;
use crate::proc::zram_number;

/// Tables within `[maintenance]`.
pub(super) const POLICIES: [&str; 3] = ["recompress", "writeback", "pressure"];

/// Kind of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionKind {
    /// `[zramN]`.
    Device,
    /// `[defaults]`.
    Defaults,
    /// `[ramdisk.NAME]`.
    Ramdisk,
    /// `[vm]`.
    Vm,
    /// `[zswap]`.
    Zswap,
    /// `[maintenance]`.
    Maintenance,
    /// `[benchmark]`.
    Benchmark,
}

impl SectionKind {
    pub const ALL: [SectionKind; 7] = [
        SectionKind::Defaults,
        SectionKind::Device,
        SectionKind::Ramdisk,
        SectionKind::Benchmark,
        SectionKind::Vm,
        SectionKind::Zswap,
        SectionKind::Maintenance,
    ];

    /// The keys of such a section.
    pub const fn keys(self) -> &'static [&'static Key] {
        match self {
            SectionKind::Device => keys::device::KEYS,
            SectionKind::Defaults => keys::device::SHARED,
            SectionKind::Ramdisk => keys::ramdisk::KEYS,
            SectionKind::Vm => keys::vm::KEYS,
            SectionKind::Zswap => keys::zswap::KEYS,
            SectionKind::Maintenance => keys::maintenance::KEYS,
            SectionKind::Benchmark => keys::benchmark::KEYS,
        }
    }

    /// Looks up a key by name.
    pub fn key(self, name: &str) -> Option<&'static Key> {
        self.keys().iter().copied().find(|key| key.name == name)
    }

    /// The kind of a section, by its name.
    pub fn of(section: &str) -> Option<SectionKind> {
        match section {
            "defaults" => Some(SectionKind::Defaults),
            "vm" => Some(SectionKind::Vm),
            "zswap" => Some(SectionKind::Zswap),
            "maintenance" => Some(SectionKind::Maintenance),
            "benchmark" => Some(SectionKind::Benchmark),
            _ if section.starts_with("ramdisk.") => Some(SectionKind::Ramdisk),
            _ => zram_number(section).map(|_| SectionKind::Device),
        }
    }

    pub const fn header(self) -> &'static str {
        match self {
            SectionKind::Device => "[zramN]",
            SectionKind::Defaults => "[defaults]",
            SectionKind::Ramdisk => "[ramdisk.NAME]",
            SectionKind::Vm => "[vm]",
            SectionKind::Zswap => "[zswap]",
            SectionKind::Maintenance => "[maintenance]",
            SectionKind::Benchmark => "[benchmark]",
        }
    }
}

const HEAD: &str = "\
#:schema /usr/share/zramd/zramd.schema.json
# zramd.toml: compressed swap and RAM disks.
#
# Read from /usr/lib/zramd, /etc/zramd and /run/zramd, then from zramd.toml.d/*.toml beside each, sorted by file name. Per key the
# last assignment wins. An empty file or a link to /dev/null hides files of the same name in lower directories.
# `zramdctl check` looks for mistakes, `zramdctl plan` shows what would be done.
#
# A size is a number of MiB, or text: \"512MiB\", \"4GiB\", \"50%\" (of RAM), or an expression with ram, swap, cpus, + - * / % ^,
# min, max, round, floor, ceil, comparisons and `condition ? a : b`, for example \"ram < 4GiB ? ram : 4GiB\".
#
# Every key is shown below with an example; nothing is configured until a line without # is added.
";

/// The sections of the example file: name, description, kind.
pub const SECTIONS: &[(&str, &str, SectionKind)] = &[
    ("defaults", "Defaults for every [zramN] below.", SectionKind::Defaults),
    ("zram0", "One device, /dev/zram0: swap, or a file system with a mount-point.", SectionKind::Device),
    (
        "ramdisk.scratch",
        "One RAM disk. A span of time is a number of seconds, or text: \"90s\", \"15min\", \"1h 30min\", \"2d\".",
        SectionKind::Ramdisk,
    ),
    ("benchmark", "Which algorithm \"auto\" stands for on this machine.", SectionKind::Benchmark),
    ("vm", "Kernel settings for compressed swap.", SectionKind::Vm),
    (
        "zswap",
        "zswap: the kernel compresses pages on their way to swap on a disk. For machines with such swap, instead of zram.",
        SectionKind::Zswap,
    ),
    (
        "maintenance",
        "Periodic recompression and write-back of stored pages. Everything is off by default. `recompress.idle-age = \"2h\"`\n# can be written as `recompress = { idle-age = \"2h\" }`, and `recompress.enabled = true` as `recompress = true`.",
        SectionKind::Maintenance,
    ),
];

/// The commented example file with all keys.
pub fn example_file() -> String {
    let mut out = HEAD.to_owned();
    for (name, about, kind) in SECTIONS {
        // Writing to a String cannot fail.
        write!(out, "\n# {about}\n# [{name}]\n").unwrap_or_default();
        if *kind == SectionKind::Defaults {
            let names: Vec<&str> = kind.keys().iter().map(|key| key.name).collect();
            writeln!(out, "# Keys: {}.", names.join(", ")).unwrap_or_default();
            continue;
        }
        for key in kind.keys() {
            let Key { name, kind, default, example, meaning, .. } = key;
            write!(out, "\n# {meaning}\n# Values: {kind}. Default: {default}.\n# {name} = {example}\n")
                .unwrap_or_default();
        }
    }
    out
}

/// The section of a key: `zram0` for `zram0.zram-size`, `ramdisk.logs` for `ramdisk.logs.size`.
pub fn section_of(key: &str) -> Option<String> {
    let mut parts = key.split('.');
    let first = parts.next().filter(|first| !first.is_empty())?;
    match (first, parts.next()) {
        ("ramdisk", Some(name)) => Some(format!("ramdisk.{name}")),
        _ => Some(first.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_of_a_key_is_before_its_name() {
        for (key, section) in [
            ("zram0", Some("zram0")),
            ("zram0.zram-size", Some("zram0")),
            ("maintenance.recompress.idle-age", Some("maintenance")),
            ("ramdisk.logs", Some("ramdisk.logs")),
            ("ramdisk.logs.size", Some("ramdisk.logs")),
            ("ramdisk", Some("ramdisk")),
            ("", None),
        ] {
            assert_eq!(section_of(key).as_deref(), section, "{key}");
        }
    }
}
