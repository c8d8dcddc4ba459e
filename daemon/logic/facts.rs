//! What this machine is and currently has: plain data, gathered by the engine, read by the planner.

use std::collections::{BTreeMap, BTreeSet};

use super::benchmark::cache::Unusable;
use super::device::algorithm::Algorithm;
use super::device::attribute::Attribute;
use super::proc::{Memory, MountLine, SwapLine, mount_of};
use super::raw_path::RawPath;
use super::record::{Damaged, Record, Target};
use super::vm::{Advice, Tunable};

/// Everything the planner knows about the machine.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// `/proc/meminfo`; a total of 0 means that it could not be read.
    pub memory: Memory,
    /// CPUs online.
    pub cpus: u32,
    /// Page size in bytes.
    pub page_size: u64,
    /// Where zram stands in this kernel.
    pub support: Support,
    /// Every zram device there is, by number.
    pub devices: BTreeMap<u32, DeviceFacts>,
    /// `/proc/swaps`.
    pub swaps: Vec<SwapLine>,
    /// `/proc/self/mountinfo`.
    pub mounts: Vec<MountLine>,
    /// Settings of the kernel, those that it has.
    pub tunables: BTreeMap<Tunable, String>,
    /// What the benchmark's verdict advises, where `[vm]` may need it, and it holds.
    pub advice: Option<Advice>,
    /// Other programs that set up zram here, by the file that shows it.
    pub other_managers: Vec<OtherManager>,
    /// What zramd recorded about its own targets.
    pub records: BTreeMap<Target, Record>,
    /// Records that cannot be used.
    pub damaged: Vec<Damaged>,
    /// What is known about each write-back device that the settings name.
    pub backing: BTreeMap<String, BackingFacts>,
    /// What is known about the place of each write-back file that the settings name.
    pub files: BTreeMap<String, FileFacts>,
    /// Ids of the users and groups that the settings name; absent means unknown here.
    pub users: BTreeMap<String, u32>,
    /// See `users`.
    pub groups: BTreeMap<String, u32>,
    /// Why the users or groups could not be looked up, if so.
    pub accounts_unread: Option<String>,
    /// Whether the `mkfs` of a file system type is installed, for those that were looked for.
    pub mkfs: BTreeMap<String, bool>,
    /// Where PID 1 mounted a tmpfs from a unit of ours.
    pub unit_mounts: BTreeSet<String>,
    /// RAM disks that are not shown, because no snapshot could be loaded and the directory on disk is used instead.
    pub passthrough: BTreeSet<String>,
    /// Bytes in use on each mounted tmpfs, by mount point.
    pub disk_used: BTreeMap<RawPath, u64>,
    /// The verdict of the benchmark, for `auto`; or why there is none that holds.
    pub best: Option<Result<Algorithm, Unusable>>,
    /// What is at each mount point that the settings name.
    pub mount_points: BTreeMap<String, PathKind>,
    /// Where the mount points lead that have a symbolic link on the way.
    pub links: BTreeMap<String, String>,
}

/// Another program that sets up zram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherManager {
    /// Its name.
    pub name: &'static str,
    /// What it does here, and what two of that kind can claim at the same time.
    pub does: Does,
    /// The file or directory that shows that it is at work, unless it is empty; `DIRECTORY/*.conf` is any such file.
    pub file: &'static str,
    /// What has to be there besides, so that something comes of it.
    needs: &'static [&'static str],
    /// What hides it or switches it off by being there.
    unless: &'static [&'static str],
    /// By which name `zramdctl import` knows it, if it does.
    pub import: Option<&'static str>,
    /// How to end that.
    pub remedy: &'static str,
}

/// What a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// It sets up zram devices.
    Devices,
    /// It keeps directories in memory.
    Directories,
}

impl Does {
    /// What follows the name of the program.
    pub fn verb(self) -> &'static str {
        match self {
            Does::Devices => "sets up zram",
            Does::Directories => "keeps directories in memory",
        }
    }

    /// What two programs may claim.
    pub fn claim(self) -> &'static str {
        match self {
            Does::Devices => "device",
            Does::Directories => "directory",
        }
    }
}

impl OtherManager {
    /// Those that are at work on a machine that has these paths, and such files in these directories; each once.
    pub fn at_work(
        kind: impl Fn(&str) -> PathKind,
        has_file: impl Fn(&str, &str) -> bool,
    ) -> Vec<OtherManager> {
        let is_there = |path: &&str| kind(path) != PathKind::Missing;
        let mut found: Vec<OtherManager> = Vec::new();
        for other in OTHER_MANAGERS {
            let works = other.needs.iter().all(is_there)
                && !other.unless.iter().any(is_there)
                && match other.file.split_once("/*") {
                    Some((directory, suffix)) => has_file(directory, suffix),
                    None => matches!(kind(other.file), PathKind::Other | PathKind::Directory),
                };
            if works && found.last().is_none_or(|last| last.name != other.name) {
                found.push(other);
            }
        }
        found
    }
}

/// One of the files of zram-generator. `unless` has the main files that take its place, and what masks the program.
const fn generator(file: &'static str, unless: &'static [&'static str]) -> OtherManager {
    OtherManager {
        name: "zram-generator",
        does: Does::Devices,
        file,
        needs: &["/usr/lib/systemd/system-generators/zram-generator"],
        unless,
        import: Some("zram-generator"),
        remedy: "take its settings over with `zramdctl import zram-generator`, then remove its package, or link /etc/systemd/system-generators/zram-generator to /dev/null",
    }
}

const GENERATOR_MASKS: [&str; 2] =
    ["/run/systemd/system-generators/zram-generator", "/etc/systemd/system-generators/zram-generator"];

/// Those that zramd knows of. Entries of one program stand together.
pub const OTHER_MANAGERS: [OtherManager; 14] = [
    generator("/run/systemd/zram-generator.conf", &GENERATOR_MASKS),
    generator(
        "/etc/systemd/zram-generator.conf",
        &[GENERATOR_MASKS[0], GENERATOR_MASKS[1], "/run/systemd/zram-generator.conf"],
    ),
    generator(
        "/usr/local/lib/systemd/zram-generator.conf",
        &[
            GENERATOR_MASKS[0],
            GENERATOR_MASKS[1],
            "/run/systemd/zram-generator.conf",
            "/etc/systemd/zram-generator.conf",
        ],
    ),
    generator(
        "/usr/lib/systemd/zram-generator.conf",
        &[
            GENERATOR_MASKS[0],
            GENERATOR_MASKS[1],
            "/run/systemd/zram-generator.conf",
            "/etc/systemd/zram-generator.conf",
            "/usr/local/lib/systemd/zram-generator.conf",
        ],
    ),
    generator("/run/systemd/zram-generator.conf.d/*.conf", &GENERATOR_MASKS),
    generator("/etc/systemd/zram-generator.conf.d/*.conf", &GENERATOR_MASKS),
    generator("/usr/local/lib/systemd/zram-generator.conf.d/*.conf", &GENERATOR_MASKS),
    generator("/usr/lib/systemd/zram-generator.conf.d/*.conf", &GENERATOR_MASKS),
    OtherManager {
        name: "zram-tools",
        does: Does::Devices,
        file: "/etc/systemd/system/multi-user.target.wants/zramswap.service",
        needs: &[],
        unless: &[],
        import: Some("zram-tools"),
        remedy: "take its settings over with `zramdctl import zram-tools`, then run `systemctl disable zramswap.service`",
    },
    OtherManager {
        name: "log2ram",
        does: Does::Directories,
        file: "/etc/systemd/system/sysinit.target.wants/log2ram.service",
        needs: &[],
        unless: &[],
        import: Some("log2ram"),
        remedy: "take its settings over with `zramdctl import log2ram`, then run `systemctl disable log2ram.service`",
    },
    OtherManager {
        name: "pop-zram",
        does: Does::Devices,
        file: "/usr/lib/systemd/system/pop-default-settings-zram.service",
        needs: &[],
        unless: &["/etc/systemd/system/pop-default-settings-zram.service"],
        import: Some("pop-zram"),
        remedy: "take its settings over with `zramdctl import pop-zram`, then run `systemctl mask pop-default-settings-zram.service`",
    },
    OtherManager {
        name: "rpi-swap",
        does: Does::Devices,
        file: "/etc/rpi/swap.conf",
        needs: &["/usr/lib/systemd/system-generators/rpi-swap-generator"],
        unless: &["/etc/systemd/system-generators/rpi-swap-generator"],
        import: None,
        remedy: "remove its package, or link /etc/systemd/system-generators/rpi-swap-generator to /dev/null",
    },
    OtherManager {
        name: "udisks",
        does: Does::Devices,
        file: "/usr/lib/zram.conf.d",
        needs: &["/usr/lib/udev/rules.d/90-udisks2-zram.rules"],
        unless: &["/etc/udev/rules.d/90-udisks2-zram.rules"],
        import: None,
        remedy: "remove the package udisks2-zram, or link /etc/udev/rules.d/90-udisks2-zram.rules to /dev/null",
    },
    OtherManager {
        name: "the unrelated older zramd",
        does: Does::Devices,
        file: "/etc/default/zramd",
        needs: &["/usr/bin/zramd"],
        unless: &[],
        import: None,
        remedy: "remove its package and /etc/default/zramd",
    },
];

/// Whether zram can be used here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Support {
    /// `/sys/class/zram-control` exists.
    #[default]
    Ready,
    /// The driver is not there yet; loading its module may bring it.
    NotLoaded,
    /// We run in a container of this kind, which has no devices of its own.
    Container(String),
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing.
    Missing,
    /// A directory.
    Directory,
    /// A file without content, or `/dev/null`.
    Empty,
    /// Something else.
    Other,
}

/// What is known about the place of a file that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    /// What is at its directory.
    pub directory: PathKind,
    /// What is at its path.
    pub kind: PathKind,
    /// Type of the file system of the directory.
    pub fs_type: String,
    /// Whether that file system is itself on zram.
    pub on_zram: bool,
    /// Bytes free there.
    pub free_bytes: u64,
    /// Bytes there are.
    pub total_bytes: u64,
}

/// One zram device as the kernel shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceFacts {
    /// Device number `major:minor`.
    pub device: Option<(u32, u32)>,
    /// What tells this very device from others of its number ([`Record::diskseq`]).
    pub diskseq: Option<u64>,
    /// `initstate`.
    pub initialised: bool,
    /// `disksize` in bytes.
    pub disk_size: u64,
    /// `mem_limit` in bytes as `mm_stat` shows it; 0 is none.
    pub memory_limit: u64,
    /// Attributes that this kernel has.
    pub attributes: BTreeSet<Attribute>,
    /// Algorithms in the order the kernel lists them.
    pub algorithms: Vec<String>,
    /// The one in brackets.
    pub algorithm: Option<String>,
}

/// What is known about a block device that is to take written-back pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackingFacts {
    /// Nothing is there.
    Missing,
    /// It is not a block device.
    NotABlockDevice,
    /// It cannot be looked at, for this reason.
    Unreadable(String),
    /// It is a block device.
    Block {
        /// Device number.
        device: (u32, u32),
        /// Kind of file system or other signature found on it.
        signature: Option<String>,
        /// Names of what sits on top of it: partitions, device-mapper, md.
        holders: Vec<String>,
    },
}

/// How a zram device is in use, seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// Active swap.
    Swap {
        /// In use, in KiB.
        used_kib: u64,
        /// Priority.
        priority: i32,
    },
    /// Mounted.
    Mounted {
        /// Where.
        mount_point: String,
    },
}

impl Facts {
    /// How device `number` is in use, if it is.
    pub fn device_use(&self, number: u32) -> Option<Use> {
        if let Some(swap) = self.swaps.iter().find(|swap| swap.zram_number() == Some(number)) {
            return Some(Use::Swap { used_kib: swap.used_kib, priority: swap.priority });
        }
        let mount = mount_of(&self.mounts, number, self.devices.get(&number)?.device)?;
        Some(Use::Mounted { mount_point: mount.mount_point.to_string() })
    }

    /// Whether zswap is on: it takes pages before any swap device sees them.
    pub fn zswap_is_on(&self) -> bool {
        self.tunables.get(&Tunable::Zswap).is_some_and(|value| value == "Y")
    }

    /// The record of a target, if it has one that cannot be used.
    pub fn damaged_record(&self, target: &Target) -> Option<&Damaged> {
        self.damaged.iter().find(|damaged| damaged.target.as_ref() == Some(target))
    }

    /// What is mounted on exactly this path, the topmost of several.
    pub fn mount_at(&self, path: &str) -> Option<&MountLine> {
        self.mounts.iter().rev().find(|mount| mount.mount_point == path)
    }

    /// Any device: the driver gives all of them the same attributes and algorithms.
    pub fn specimen(&self) -> Option<&DeviceFacts> {
        self.devices.values().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_work(paths: &[(&str, PathKind)]) -> Vec<&'static str> {
        let kind = |path: &str| {
            paths.iter().find(|(known, _)| *known == path).map_or(PathKind::Missing, |(_, kind)| *kind)
        };
        let has_file =
            |directory: &str, suffix: &str| kind(&format!("{directory}/*{suffix}")) == PathKind::Other;
        OtherManager::at_work(kind, has_file).iter().map(|other| other.file).collect()
    }

    #[test]
    fn each_other_program_is_seen_when_it_does_something() {
        for other in OTHER_MANAGERS {
            let mut paths: Vec<_> = other.needs.iter().map(|path| (*path, PathKind::Other)).collect();
            assert_eq!(at_work(&paths), [""; 0], "{}: the program alone", other.name);
            paths.push((other.file, PathKind::Empty));
            assert_eq!(at_work(&paths), [""; 0], "{}: an empty file", other.name);
            paths.pop();
            paths.push((other.file, PathKind::Other));
            assert_eq!(at_work(&paths), [other.file]);
            for path in other.unless {
                let masked = [paths.as_slice(), &[(*path, PathKind::Empty)]].concat();
                assert_eq!(at_work(&masked), [""; 0], "{}: {path} switches it off", other.name);
            }
            if !other.needs.is_empty() {
                assert_eq!(
                    at_work(&[(other.file, PathKind::Other)]),
                    [""; 0],
                    "{}: without its program",
                    other.name
                );
            }
        }
        assert_eq!(at_work(&[]), [""; 0]);
    }

    #[test]
    fn every_file_of_zram_generator_that_the_import_reads_is_known_and_it_is_told_once() {
        let sources = crate::import::Peer::ZramGenerator.sources();
        let drop_ins = sources.drop_ins.iter().map(|directory| format!("{directory}/*{}", sources.suffix));
        let files: Vec<String> =
            sources.mains.iter().map(|file| (*file).to_owned()).chain(drop_ins).collect();
        let program = "/usr/lib/systemd/system-generators/zram-generator";
        let mut all = vec![(program, PathKind::Other)];
        for file in &files {
            assert_eq!(at_work(&[(program, PathKind::Other), (file, PathKind::Other)]), [file.as_str()]);
            all.push((file, PathKind::Other));
        }
        assert_eq!(at_work(&all), ["/run/systemd/zram-generator.conf"]);
        // A main file that is linked to /dev/null hides the others, not the drop-ins.
        let drop_in = "/etc/systemd/zram-generator.conf.d/*.conf";
        let linked = [
            (program, PathKind::Other),
            ("/etc/systemd/zram-generator.conf", PathKind::Empty),
            ("/usr/lib/systemd/zram-generator.conf", PathKind::Other),
        ];
        assert_eq!(at_work(&linked), [""; 0]);
        assert_eq!(at_work(&[linked.as_slice(), &[(drop_in, PathKind::Other)]].concat()), [drop_in]);
    }
}
