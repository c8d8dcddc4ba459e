//! Settings from the configuration: validated, typed, and still independent of the machine.
//!
//! Sizes remain expressions, because their values depend on the machine's memory; the planner evaluates them with its
//! facts and reports invalid results at the [`Origin`] of the expression.

use std::time::Duration;

use serde::Deserialize;

use crate::device::algorithm::Algorithm;
use crate::expr::Expr;
use crate::maintain::age::Range;
use crate::maintain::pressure::Thresholds;
use crate::maintain::recompress;
use crate::origin::Origin;
use crate::ramdisk::KeepSettings;
use crate::request::{Choice, Purpose, Store};
use crate::resize::OnChange;
use crate::verdict::Profile;
use crate::vm::Tunable;

/// The size in `config/defaults.toml`.
pub const MEASURED_SIZE: &str = "min(3 * ram, 32GiB)";

/// All settings, devices sorted by number and RAM disks by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// One entry per valid `[zramN]` section.
    pub devices: Vec<DeviceSettings>,
    /// One entry per valid `[ramdisk.NAME]` section.
    pub ramdisks: Vec<RamdiskSettings>,
    /// `[vm]`.
    pub vm: Option<VmSettings>,
    /// `[zswap]`, or that `[vm]` needs it disabled; `None` if zswap is left as it is.
    pub zswap: Option<ZswapSettings>,
    /// `[maintenance]`, if it enables anything.
    pub maintenance: Option<MaintenanceSettings>,
    /// `[benchmark]`.
    pub benchmark: BenchmarkSettings,
}

impl Settings {
    /// Whether the benchmark chooses the algorithm of a device, or of zswap.
    pub fn uses_verdict(&self) -> bool {
        self.devices.iter().any(|device| device.algorithms.contains(&Choice::Auto))
            || self.zswap.as_ref().is_some_and(|zswap| zswap.compressors.contains(&Choice::Auto))
    }

    /// Whether there are devices, and all of them yield to other zram managers.
    pub fn all_yield(&self) -> bool {
        !self.devices.is_empty() && self.devices.iter().all(|device| device.yields)
    }
}

/// `[benchmark]`: how `auto` chooses the algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BenchmarkSettings {
    /// When to measure.
    pub when: When,
    /// What to optimise for.
    pub profile: Profile,
    /// Pages to compress.
    pub sample: PageSource,
}

/// Pages that the benchmark compresses. All but the first kind are private data of users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageSource {
    /// Generated pages and world-readable files, mixed by the statistics of the swap in use.
    #[default]
    Public,
    /// Pages in the swap on zram; public ones while there are too few.
    Swap,
    /// Pages in the memory of processes; public ones if too few are readable.
    Processes,
}

/// When the benchmark runs automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// After boot, once the machine is idle.
    #[default]
    Idle,
    /// At boot, before devices are set up.
    Boot,
    /// Only on request.
    Never,
}

/// The section `[vm]`.
#[derive(Debug, Clone, PartialEq)]
pub struct VmSettings {
    /// Position of the section.
    pub origin: Origin,
    /// Level of each setting; unchanged unless `tune` is true.
    pub levels: Vec<(Tunable, Level)>,
    /// Whether the settings are applied.
    pub tune: bool,
    /// Whether to stop swapping while what is swapped out does not compress.
    pub stops_incompressible: bool,
    /// Memory that sessions keep, if set.
    pub protected: Option<SizeExpr>,
}

/// The section `[zswap]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ZswapSettings {
    /// Position of the section, or of `[vm]`.
    pub origin: Origin,
    /// Whether zswap is enabled, or disabled while compressed swap is in use. The rest is for zswap that is enabled.
    pub enabled: bool,
    /// Compressors in order of preference; the kernel's if empty.
    pub compressors: Vec<Choice>,
    /// Most memory that it takes.
    pub max_pool: Option<SizeExpr>,
    /// Other settings, their values, and their positions.
    pub values: Vec<(Tunable, String, Origin)>,
}

impl ZswapSettings {
    /// zswap is disabled while compressed swap is in use.
    pub fn off(origin: Origin) -> ZswapSettings {
        ZswapSettings { origin, enabled: false, compressors: Vec::new(), max_pool: None, values: Vec::new() }
    }
}

/// The level of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Chosen for the machine.
    Auto,
    /// Unchanged.
    Keep,
    Value(u64),
}

/// `[maintenance]`.
#[derive(Debug, Clone, PartialEq)]
pub struct MaintenanceSettings {
    /// Position of the section.
    pub origin: Origin,
    /// Time between two runs.
    pub interval: Duration,
    /// Recompress idle pages.
    pub recompress: Option<recompress::Settings>,
    /// Write idle pages back to the backing device.
    pub writeback: Option<WritebackSettings>,
    /// React to memory pressure.
    pub pressure: Option<Thresholds>,
    /// What to do when the machine's memory has changed, if set.
    pub on_memory_change: Option<OnChange>,
}

impl MaintenanceSettings {
    /// Whether any of it runs periodically.
    pub fn needs_timer(&self) -> bool {
        self.recompress.is_some() || self.writeback.is_some() || self.on_memory_change.is_some()
    }
}

/// `writeback` of `[maintenance]`.
#[derive(Debug, Clone, PartialEq)]
pub struct WritebackSettings {
    /// Idle ages.
    pub age: Range,
    /// Maximum bytes written in a rolling period of 24 hours.
    pub daily: SizeExpr,
    /// Maximum bytes written per run.
    pub per_run: SizeExpr,
    /// Whether incompressible pages are written back even if they are not idle.
    pub huge: bool,
}

/// A size expression and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeExpr {
    /// The parsed expression; its value is in MiB.
    pub expr: Expr,
    /// The expression as written, for messages.
    pub text: String,
    /// Its position.
    pub origin: Origin,
}

/// Size of a device, before the machine's memory is known.
#[derive(Debug, Clone, PartialEq)]
pub enum SizeRule {
    /// `zram-size`, limited by `max-zram-size` if set.
    Expression {
        size: SizeExpr,
        /// Maximum in MiB.
        max: Option<SizeExpr>,
    },
    /// `zram-fraction` of RAM in whole MiB, limited by `max-zram-size` if set.
    Fraction {
        /// Fraction of RAM, 0.5 by default.
        fraction: f64,
        /// Position of the value, or of the maximum.
        origin: Origin,
        max: Option<SizeExpr>,
    },
}

/// One section `[zramN]`.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceSettings {
    /// N of `/dev/zramN`.
    pub number: u32,
    /// Position of the section, for problems of the whole device.
    pub origin: Origin,
    /// Uncompressed size (`disksize`).
    pub size: SizeRule,
    /// Do not create the device if the machine has more RAM than this (MiB).
    pub host_memory_limit: Option<SizeExpr>,
    /// Do not create the device if another program is set up to create zram devices.
    pub yields: bool,
    /// Maximum memory for compressed data (`mem_limit`).
    pub resident_limit: Option<SizeExpr>,
    /// Accept a memory limit on a mounted file system, which silently loses data when the limit is reached.
    pub force_resident_limit: bool,
    /// Algorithms in order of preference; never empty.
    pub algorithms: Vec<Choice>,
    /// Position of `compression-algorithm`.
    pub algorithms_origin: Origin,
    /// Secondary algorithms, priorities 1, 2, 3 in this order.
    pub recompression: Vec<Algorithm>,
    /// Position of `recompression-algorithm`.
    pub recompression_origin: Origin,
    /// Destination of write-back.
    pub writeback: Option<BackingSettings>,
    /// Use of the device.
    pub purpose: Purpose<MountSettings>,
    /// Label of the swap area or file system.
    pub label: Option<String>,
}

impl DeviceSettings {
    /// Position of its mount point, or else of the section.
    pub fn mount_origin(&self) -> &Origin {
        self.purpose.mount().map_or(&self.origin, |mount| &mount.origin)
    }
}

/// Destination of write-back.
#[derive(Debug, Clone, PartialEq)]
pub struct BackingSettings {
    /// A block device, or a file.
    pub store: Store<SizeExpr>,
    /// Encrypt everything on it with a random key that is not stored.
    pub encrypted: bool,
    /// Position of the setting.
    pub origin: Origin,
}

/// Mount point and options, the same for file systems on zram and on tmpfs.
#[derive(Debug, Clone, PartialEq)]
pub struct MountSettings {
    /// Absolute, normalised (no `.`, `..`, double or trailing slash).
    pub mount_point: String,
    /// Position of `mount-point`.
    pub origin: Origin,
    /// Mount options in the spelling of fstab.
    pub options: String,
    /// Permission bits of the root directory.
    pub mode: Option<u32>,
    /// Owner of the root directory.
    pub owner: Option<Principal>,
    /// Group of the root directory.
    pub group: Option<Principal>,
    /// Whether none of these three is in the configuration.
    pub unset: bool,
}

/// A user or a group, by number or by name; names are resolved on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// A numeric id.
    Id(u32),
    /// A name and its position.
    Name(String, Origin),
}

/// One section `[ramdisk.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct RamdiskSettings {
    pub name: String,
    /// Position of the section.
    pub origin: Origin,
    /// Capacity.
    pub size: SizeExpr,
    /// Maximum number of inodes; `None` for the kernel's default.
    pub inodes: Option<u64>,
    /// Where and how it is mounted.
    pub mount: MountSettings,
    /// Type of its backing memory.
    pub backend: Backend,
    /// Whether to warn when it is getting full.
    pub watch: bool,
    /// Whether boot fails without it.
    pub required: bool,
    /// How its contents are kept over reboots; `None` if they are lost.
    pub keep: Option<KeepSettings>,
    /// Maximum size of all snapshots.
    pub store_limit: Option<SizeExpr>,
    /// Maximum of what saves should write in 24 hours.
    pub daily_budget: Option<SizeExpr>,
}

/// Type of a RAM disk's backing memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    Tmpfs {
        /// `huge=` of tmpfs(5).
        huge: Option<String>,
    },
    /// A file system on this zram device, which is in [`Settings::devices`].
    Zram {
        /// N of `/dev/zramN`.
        number: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    fn settings(text: &str) -> Settings {
        load(&[("f".into(), text.to_owned())], "").settings
    }

    #[test]
    fn a_verdict_is_used_where_an_algorithm_is_auto() {
        for (text, uses) in [
            ("", false),
            (
                "[zram0]\ncompression-algorithm = \"zstd\"\n[zswap]\nenabled = true\ncompressor = \"lz4\"\n",
                false,
            ),
            (
                "[zram0]\ncompression-algorithm = \"zstd\"\n[zram1]\ncompression-algorithm = [\"842\", \"auto\"]\n",
                true,
            ),
            ("[zswap]\nenabled = true\ncompressor = \"auto\"\n", true),
        ] {
            assert_eq!(settings(text).uses_verdict(), uses, "{text}");
        }
    }

    #[test]
    fn all_yield_if_there_is_a_device_and_each_yields() {
        for (text, yields) in [
            ("", false),
            ("[zram0]\n", false),
            ("[zram0]\nyield = true\n", true),
            ("[zram0]\nyield = true\n[zram1]\n", false),
        ] {
            assert_eq!(settings(text).all_yield(), yields, "{text}");
        }
    }

    #[test]
    fn each_policy_but_pressure_needs_the_timer() {
        for (keys, needs) in [
            ("", false),
            ("pressure = true", false),
            ("recompress = true", true),
            ("writeback.device = \"/dev/a\"", true),
            ("on-memory-change = \"report\"", true),
        ] {
            let maintenance = settings(&format!("[zram0]\n[maintenance]\n{keys}\n")).maintenance.unwrap();
            assert_eq!(maintenance.needs_timer(), needs, "{keys}");
        }
    }
}
