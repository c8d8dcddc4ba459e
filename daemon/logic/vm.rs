//! Kernel settings for memory management and zswap that suit compressed swap, and their values on this machine.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The remedy for zswap.
pub const ZSWAP_REMEDY: &str = "write enabled = false into [zswap], or boot with zswap.enabled=0";

/// A kernel setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tunable {
    /// Cost of swapping relative to reading files: 0 to 200.
    Swappiness,
    /// Number of pages per read from swap, as a power of two.
    PageCluster,
    /// Increase of the watermarks after fragmentation, in 1/10000.
    WatermarkBoostFactor,
    /// Memory kept free by background reclaim, in 1/10000.
    WatermarkScaleFactor,
    /// Whether zswap is enabled: `Y` or `N`.
    Zswap,
    /// Compression algorithm of zswap. The kernel checks it when zswap is enabled for the first time, and afterwards when
    /// it is written.
    ZswapCompressor,
    /// Most memory that zswap takes, in percent. The kernel accepts any number.
    ZswapMaxPool,
    /// Percentage of that below which a full pool accepts pages again. The kernel accepts any number.
    ZswapAcceptThreshold,
    /// Whether cold pages leave the pool before it is full (Linux 6.8): `Y` or `N`.
    ZswapShrinker,
}

impl Tunable {
    /// All settings.
    pub const ALL: [Tunable; 9] = [
        Tunable::Swappiness,
        Tunable::PageCluster,
        Tunable::WatermarkBoostFactor,
        Tunable::WatermarkScaleFactor,
        Tunable::Zswap,
        Tunable::ZswapCompressor,
        Tunable::ZswapMaxPool,
        Tunable::ZswapAcceptThreshold,
        Tunable::ZswapShrinker,
    ];

    /// The file of the setting.
    pub const fn path(self) -> &'static str {
        match self {
            Tunable::Swappiness => "/proc/sys/vm/swappiness",
            Tunable::PageCluster => "/proc/sys/vm/page-cluster",
            Tunable::WatermarkBoostFactor => "/proc/sys/vm/watermark_boost_factor",
            Tunable::WatermarkScaleFactor => "/proc/sys/vm/watermark_scale_factor",
            Tunable::Zswap => "/sys/module/zswap/parameters/enabled",
            Tunable::ZswapCompressor => "/sys/module/zswap/parameters/compressor",
            Tunable::ZswapMaxPool => "/sys/module/zswap/parameters/max_pool_percent",
            Tunable::ZswapAcceptThreshold => "/sys/module/zswap/parameters/accept_threshold_percent",
            Tunable::ZswapShrinker => "/sys/module/zswap/parameters/shrinker_enabled",
        }
    }

    /// Its usual name.
    pub const fn name(self) -> &'static str {
        match self {
            Tunable::Swappiness => "vm.swappiness",
            Tunable::PageCluster => "vm.page-cluster",
            Tunable::WatermarkBoostFactor => "vm.watermark_boost_factor",
            Tunable::WatermarkScaleFactor => "vm.watermark_scale_factor",
            Tunable::Zswap => "zswap.enabled",
            Tunable::ZswapCompressor => "zswap.compressor",
            Tunable::ZswapMaxPool => "zswap.max_pool_percent",
            Tunable::ZswapAcceptThreshold => "zswap.accept_threshold_percent",
            Tunable::ZswapShrinker => "zswap.shrinker_enabled",
        }
    }

    /// Its value on the kernel command line, in the spelling of sysfs; the last one counts.
    pub fn on_cmdline(self, cmdline: &str) -> Option<String> {
        let value = cmdline.split_whitespace().rev().find_map(|word| {
            let (name, value) = word.split_once('=')?;
            // The kernel takes both characters in names of parameters.
            (name.replace('-', "_") == self.name()).then_some(value)
        })?;
        Some(match (self, value) {
            (Tunable::Zswap | Tunable::ZswapShrinker, "1" | "y" | "Y" | "on" | "ON") => "Y".to_owned(),
            (Tunable::Zswap | Tunable::ZswapShrinker, "0" | "n" | "N" | "off" | "OFF") => "N".to_owned(),
            _ => value.to_owned(),
        })
    }
}

impl fmt::Display for Tunable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A setting changed by zramd, for people and for the bus.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmView {
    /// Name, such as `vm.swappiness`.
    pub name: String,
    /// The present value.
    pub value: String,
    /// The value set by zramd.
    pub set_to: String,
    /// The value before, which will be restored.
    pub before: String,
}

impl VmView {
    /// Whether another program has changed it since: then zramd leaves it alone.
    pub fn is_changed(&self) -> bool {
        self.value != self.set_to
    }
}

/// Assumed time of a random read of 4 KiB from a solid-state disk, in nanoseconds.
const DISK_READ_NS: u64 = 90_000;
/// Value without a measurement.
const SWAPPINESS: u64 = 150;
/// Range of values that follow from a measurement.
const SWAPPINESS_RANGE: (u64, u64) = (100, 180);

/// The suggestions of a valid verdict of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Advice {
    /// The suggested value, if the read time of the disk is known.
    pub swappiness: Option<u64>,
    /// Usual time of a page-in, in nanoseconds; 0 if unknown.
    pub page_in_ns: u64,
}

/// `vm.swappiness` according to the verdict of the benchmark, or the default without a measurement.
///
/// The verdict has a value if the read time of the disk is known. Otherwise it follows from the kernel's own model
/// (Documentation/admin-guide/sysctl/vm.rst) with the usual time of a disk: if a file read costs r times a page-in, the
/// balance is at 200·r / (1 + r), so r = 2 gives 133. Bounded, because reads of files are less random than those of
/// swap.
pub fn swappiness(advice: Option<Advice>) -> u64 {
    let modelled = |advice: Advice| {
        let page_in = Some(advice.page_in_ns).filter(|page_in| *page_in > 0)?;
        Some(DISK_READ_NS.saturating_mul(200) / DISK_READ_NS.saturating_add(page_in))
    };
    let measured = advice.and_then(|advice| advice.swappiness.or_else(|| modelled(advice)));
    measured.map_or(SWAPPINESS, |value| value.clamp(SWAPPINESS_RANGE.0, SWAPPINESS_RANGE.1))
}

/// `vm.watermark_scale_factor`: 1.25 % of RAM between the watermarks, but at most 512 MiB, and at least the kernel's
/// default.
pub fn watermark_scale_factor(ram_kib: u64) -> u64 {
    const MOST_KIB: u64 = 512 << 10;
    (MOST_KIB * 10_000).checked_div(ram_kib).unwrap_or(125).clamp(10, 125)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swappiness_follows_what_was_measured() {
        assert_eq!(swappiness(None), 150);
        for (suggested, page_in_ns, expected) in [
            (None, 0, 150),
            (None, 1, 180),
            (None, 45_000, 133),
            (None, 90_000, 100),
            (None, u64::MAX, 100),
            (Some(160), 45_000, 160),
            (Some(200), 0, 180),
        ] {
            let advice = Advice { swappiness: suggested, page_in_ns };
            assert_eq!(swappiness(Some(advice)), expected, "{advice:?}");
        }
    }

    #[test]
    fn the_marks_are_never_more_than_half_a_gibibyte_apart() {
        for (gib, expected) in [(0, 125), (1, 125), (16, 125), (64, 78), (128, 39), (1024, 10)] {
            assert_eq!(watermark_scale_factor(gib << 20), expected, "{gib} GiB");
        }
    }

    #[test]
    fn options_of_the_kernel_are_read_as_the_kernel_reads_them() {
        for (cmdline, tunable, expected) in [
            ("quiet zswap.enabled=1", Tunable::Zswap, Some("Y")),
            ("zswap.enabled=off", Tunable::Zswap, Some("N")),
            ("zswap.enabled=1 zswap.enabled=0", Tunable::Zswap, Some("N")),
            ("zswap.shrinker-enabled=y", Tunable::ZswapShrinker, Some("Y")),
            // A number, not a switch.
            ("zswap.max_pool_percent=1", Tunable::ZswapMaxPool, Some("1")),
            ("zswap.enabled xzswap.enabled=1", Tunable::Zswap, None),
        ] {
            assert_eq!(tunable.on_cmdline(cmdline).as_deref(), expected, "{cmdline}");
        }
    }
}
