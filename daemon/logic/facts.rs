//! Facts about this machine: plain data, gathered by the engine, read by the planner.

use std::collections::{BTreeMap, BTreeSet};

use super::device::algorithm::Algorithm;
pub use super::device::state::{DeviceFacts, Seen};
use super::proc::{Memory, MountLine, SwapLine, mount_of, top};
use super::ramdisk::UnitRamdisk;
use super::ramdisk::status::SnapshotLine;
use super::raw_path::RawPath;
use super::record::{Damaged, Record, Target};
use super::verdict::Unusable;
use super::vm::{Advice, Tunable};

/// The verdict of the benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Best {
    pub algorithm: Algorithm,
    /// Why it will be measured again; empty if it need not.
    pub provisional: String,
}

/// All facts that the planner uses.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// `/proc/meminfo`; a total of 0 if it could not be read.
    pub memory: Memory,
    /// CPUs online.
    pub cpus: u32,
    /// Page size in bytes.
    pub page_size: u64,
    /// Availability of zram.
    pub support: Support,
    /// All zram devices, by number.
    pub devices: BTreeMap<u32, DeviceFacts>,
    /// `/proc/swaps`.
    pub swaps: Vec<SwapLine>,
    /// `/proc/self/mountinfo`.
    pub mounts: Vec<MountLine>,
    /// Inode of the mount namespace that `mounts` is of.
    pub mount_namespace: u64,
    /// The kernel command line; empty if not read.
    pub cmdline: String,
    /// The kernel settings that exist.
    pub tunables: BTreeMap<Tunable, String>,
    /// Whether control groups (v2) cannot keep memory here; false without protect-sessions.
    pub lacks_memory_controller: bool,
    /// The suggestions of a valid verdict of the benchmark, if `[vm]` may need them.
    pub advice: Option<Advice>,
    /// Whether the system enables zswap, and has swap on a disk: it has chosen zswap.
    pub has_chosen_zswap: bool,
    /// Other programs that set up zram, by the file that indicates this.
    pub other_managers: Vec<OtherManager>,
    /// Records of targets that zramd set up.
    pub records: BTreeMap<Target, Record>,
    /// Damaged records.
    pub damaged: Vec<Damaged>,
    /// State of each write-back device in the settings.
    pub backing: BTreeMap<String, BackingFacts>,
    /// State of the path of each write-back file in the settings.
    pub files: BTreeMap<String, FileFacts>,
    /// IDs of the users and groups in the settings; unknown ones are missing.
    pub users: BTreeMap<String, u32>,
    /// See `users`.
    pub groups: BTreeMap<String, u32>,
    /// Why users or groups could not be looked up, if so.
    pub accounts_unread: Option<String>,
    /// Whether the `mkfs` of a file system type is installed, for the types in the settings.
    pub mkfs: BTreeMap<String, bool>,
    /// RAM disks mounted by PID 1, from units of ours.
    pub unit_ramdisks: Vec<UnitRamdisk>,
    /// RAM disks that could not be loaded, and whose directory on disk is used instead.
    pub passthrough: BTreeSet<String>,
    /// The newest good snapshot of each RAM disk, as far as its status shows it.
    pub snapshots: BTreeMap<String, SnapshotLine>,
    /// Bytes in use on each mounted tmpfs, by mount point.
    pub ramdisk_used: BTreeMap<RawPath, u64>,
    /// The verdict of the benchmark for `auto`, or why there is none.
    pub best: Option<Result<Best, Unusable>>,
    /// Type of the file at each mount point in the settings.
    pub mount_points: BTreeMap<String, PathKind>,
    /// Targets of mount points with a symbolic link in their path.
    pub links: BTreeMap<String, String>,
}

/// Another program that sets up zram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherManager {
    pub name: &'static str,
    /// What it sets up, which may conflict with zramd.
    pub does: Does,
    /// The file or directory that indicates that it is in use, if not empty; `DIRECTORY/*.conf` is any such file.
    pub file: &'static str,
    /// Whether the file does nothing without a section.
    sections: bool,
    /// Further files without which it does nothing.
    needs: &'static [&'static str],
    /// Files that mask or disable it.
    unless: &'static [&'static str],
    /// Its name for `zramdctl import`, if supported.
    pub import: Option<&'static str>,
    /// How to disable it: an imperative, lower case, no full stop.
    pub off: &'static str,
}

/// What a program sets up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// Zram devices.
    Devices,
    /// Directories in memory.
    Directories,
}

impl Does {
    /// The verb for a sentence about the program.
    pub fn verb(self) -> &'static str {
        match self {
            Does::Devices => "sets up zram",
            Does::Directories => "keeps directories in memory",
        }
    }

    /// The kind of object that two programs may both set up.
    pub fn claim(self) -> &'static str {
        match self {
            Does::Devices => "device",
            Does::Directories => "directory",
        }
    }
}

impl OtherManager {
    /// What to do beside zramd.
    pub fn remedy(&self) -> String {
        match self.import {
            Some(name) => {
                format!("take its settings over with `zramdctl import {name}`, then {}", self.off)
            }
            None => self.off.to_owned(),
        }
    }

    /// The programs in use on a machine with these paths and sections of files; each at most once.
    pub fn at_work(kind: impl Fn(&str) -> PathKind, has_section: impl Fn(&str) -> bool) -> Vec<OtherManager> {
        let is_there = |path: &&str| kind(path) != PathKind::Missing;
        // A unit is switched off by a link to /dev/null; a file replaces it.
        let is_off = |path: &&str| {
            if path.ends_with(".service") { kind(path) == PathKind::Empty } else { is_there(path) }
        };
        let mut found: Vec<OtherManager> = Vec::new();
        for other in OTHER_MANAGERS {
            let works = other.needs.iter().all(is_there)
                && !other.unless.iter().any(is_off)
                && if other.sections {
                    has_section(other.file)
                } else {
                    matches!(kind(other.file), PathKind::Other | PathKind::Directory)
                };
            if works && found.last().is_none_or(|last| last.name != other.name) {
                found.push(other);
            }
        }
        found
    }
}

/// A configuration file of zram-generator. `unless` has the main files with higher precedence, and what masks the
/// program.
const fn generator(file: &'static str, unless: &'static [&'static str]) -> OtherManager {
    OtherManager {
        name: "zram-generator",
        does: Does::Devices,
        file,
        sections: true,
        needs: &["/usr/lib/systemd/system-generators/zram-generator"],
        unless,
        import: Some("zram-generator"),
        off: "remove its package, or link /etc/systemd/system-generators/zram-generator to /dev/null",
    }
}

const GENERATOR_MASKS: [&str; 2] =
    ["/run/systemd/system-generators/zram-generator", "/etc/systemd/system-generators/zram-generator"];

/// A program whose service is enabled by a link in `/etc`. `unless` has the masks of the service.
const fn service(
    name: &'static str,
    does: Does,
    file: &'static str,
    unless: &'static [&'static str],
    import: Option<&'static str>,
    off: &'static str,
) -> OtherManager {
    OtherManager { name, does, file, sections: false, needs: &[], unless, import, off }
}

/// All programs known to zramd. Entries of the same program are adjacent.
pub const OTHER_MANAGERS: [OtherManager; 16] = [
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
    service(
        "zram-tools",
        Does::Devices,
        "/etc/systemd/system/multi-user.target.wants/zramswap.service",
        &["/etc/systemd/system/zramswap.service", "/run/systemd/system/zramswap.service"],
        Some("zram-tools"),
        "run `systemctl disable zramswap.service`",
    ),
    service(
        "zram-config",
        Does::Devices,
        "/etc/systemd/system/multi-user.target.wants/zram-config.service",
        &["/etc/systemd/system/zram-config.service", "/run/systemd/system/zram-config.service"],
        None,
        "run `systemctl disable zram-config.service`",
    ),
    service(
        "armbian-zram-config",
        Does::Devices,
        "/etc/systemd/system/sysinit.target.wants/armbian-zram-config.service",
        &[
            "/etc/systemd/system/armbian-zram-config.service",
            "/run/systemd/system/armbian-zram-config.service",
        ],
        None,
        "run `systemctl disable armbian-zram-config.service`",
    ),
    service(
        "log2ram",
        Does::Directories,
        "/etc/systemd/system/sysinit.target.wants/log2ram.service",
        &["/etc/systemd/system/log2ram.service", "/run/systemd/system/log2ram.service"],
        Some("log2ram"),
        "run `systemctl disable log2ram.service`",
    ),
    OtherManager {
        name: "pop-zram",
        does: Does::Devices,
        file: "/usr/lib/systemd/system/pop-default-settings-zram.service",
        sections: false,
        needs: &[],
        unless: &[
            "/etc/systemd/system/pop-default-settings-zram.service",
            "/run/systemd/system/pop-default-settings-zram.service",
        ],
        import: Some("pop-zram"),
        off: "run `systemctl mask pop-default-settings-zram.service`",
    },
    OtherManager {
        name: "rpi-swap",
        does: Does::Devices,
        file: "/etc/rpi/swap.conf",
        sections: false,
        needs: &["/usr/lib/systemd/system-generators/rpi-swap-generator"],
        unless: &["/etc/systemd/system-generators/rpi-swap-generator"],
        import: Some("rpi-swap"),
        off: "remove its package, or link /etc/systemd/system-generators/rpi-swap-generator to /dev/null",
    },
    OtherManager {
        name: "udisks",
        does: Does::Devices,
        file: "/usr/lib/zram.conf.d",
        sections: false,
        needs: &["/usr/lib/udev/rules.d/90-udisks2-zram.rules"],
        unless: &["/etc/udev/rules.d/90-udisks2-zram.rules"],
        import: None,
        off: "remove the package udisks2-zram, or link /etc/udev/rules.d/90-udisks2-zram.rules to /dev/null",
    },
    OtherManager {
        name: "the unrelated older zramd",
        does: Does::Devices,
        file: "/etc/default/zramd",
        sections: false,
        needs: &["/usr/bin/zramd"],
        unless: &[],
        import: None,
        off: "remove its package and /etc/default/zramd",
    },
];

/// Availability of zram.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Support {
    /// `/sys/class/zram-control` exists.
    #[default]
    Ready,
    /// The driver is not loaded; loading its module may help.
    NotLoaded,
    /// In a container of this type, which has no devices of its own.
    Container(String),
}

/// Type of the file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// There is none.
    Missing,
    Directory,
    /// An empty file, or `/dev/null`.
    Empty,
    /// Any other file.
    Other,
    /// Unknown: this user may not look.
    Hidden,
    /// Unknown: looking at it failed, for this reason.
    Unreadable(&'static str),
}

/// State of the path of a file to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    /// Type of its directory.
    pub directory: PathKind,
    /// Type of an existing file.
    pub kind: PathKind,
    /// Type of the file system of the directory.
    pub fs_type: String,
    /// Whether that file system is on zram.
    pub on_zram: bool,
    /// Free bytes of the file system.
    pub free_bytes: u64,
    /// Total bytes of the file system.
    pub total_bytes: u64,
}

/// State of a block device for write-back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackingFacts {
    /// It does not exist.
    Missing,
    /// It is not a block device.
    NotABlockDevice,
    /// It cannot be examined, for this reason.
    Unreadable(String),
    /// It is a block device.
    Block {
        /// Device number.
        device: (u32, u32),
        /// Kind of file system or other signature found on it.
        signature: Option<String>,
        /// Names of the devices on top of it: partitions, device-mapper, md.
        holders: Vec<String>,
    },
}

/// Use of a zram device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// Active swap.
    Swap {
        /// In use, in KiB.
        used_kib: u64,
        priority: i32,
    },
    Mounted {
        mount_point: String,
    },
}

impl Facts {
    /// The use of device `number`, if any.
    pub fn device_use(&self, number: u32) -> Option<Use> {
        if let Some(swap) = self.swaps.iter().find(|swap| swap.zram_number() == Some(number)) {
            return Some(Use::Swap { used_kib: swap.used_kib, priority: swap.priority });
        }
        let mount = mount_of(&self.mounts, number, self.devices.get(&number)?.device)?;
        Some(Use::Mounted { mount_point: mount.mount_point.to_string() })
    }

    /// Whether zswap is enabled: it takes pages before any swap device.
    pub fn zswap_is_on(&self) -> bool {
        self.tunables.get(&Tunable::Zswap).is_some_and(|value| value == "Y")
    }

    /// The damaged record of a target, if there is one.
    pub fn damaged_record(&self, target: &Target) -> Option<&Damaged> {
        self.damaged.iter().find(|damaged| damaged.target.as_ref() == Some(target))
    }

    /// The topmost mount on exactly this path.
    pub fn mount_at(&self, path: &str) -> Option<&MountLine> {
        top(&self.mounts, path)
    }

    /// Whether PID 1 has mounted a RAM disk of ours there.
    pub fn is_mounted_by_unit(&self, path: &str) -> bool {
        self.unit_ramdisks.iter().any(|disk| disk.mount_point == path)
    }

    /// Any device: all have the same attributes and algorithms.
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
        let has_section = |file: &str| kind(file) == PathKind::Other;
        OtherManager::at_work(kind, has_section).iter().map(|other| other.file).collect()
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
                let replaced = [paths.as_slice(), &[(*path, PathKind::Other)]].concat();
                if path.ends_with(".service") {
                    assert_eq!(at_work(&replaced), [other.file], "{path}: another unit, not a mask");
                }
            }
            assert!(
                other.needs.len() + other.unless.len() > 0,
                "{}: a mask, or its program, decides",
                other.name
            );
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
