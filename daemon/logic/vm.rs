//! Virtual-memory settings of the kernel that fit a compressed swap, and what they should be on this machine.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One setting of the running kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tunable {
    /// How much swapping costs compared with reading files again: 0 to 200.
    Swappiness,
    /// How many pages are read from swap at once, as a power of two.
    PageCluster,
    /// How much more is reclaimed after memory has become fragmented, in 1/10000.
    WatermarkBoostFactor,
    /// How much memory is kept free by reclaim in the background, in 1/10000.
    WatermarkScaleFactor,
    /// Whether zswap is on: `Y` or `N`.
    Zswap,
}

impl Tunable {
    /// All of them.
    pub const ALL: [Tunable; 5] = [
        Tunable::Swappiness,
        Tunable::PageCluster,
        Tunable::WatermarkBoostFactor,
        Tunable::WatermarkScaleFactor,
        Tunable::Zswap,
    ];

    /// The file that shows and takes it.
    pub const fn path(self) -> &'static str {
        match self {
            Tunable::Swappiness => "/proc/sys/vm/swappiness",
            Tunable::PageCluster => "/proc/sys/vm/page-cluster",
            Tunable::WatermarkBoostFactor => "/proc/sys/vm/watermark_boost_factor",
            Tunable::WatermarkScaleFactor => "/proc/sys/vm/watermark_scale_factor",
            Tunable::Zswap => "/sys/module/zswap/parameters/enabled",
        }
    }

    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Tunable::Swappiness => "vm.swappiness",
            Tunable::PageCluster => "vm.page-cluster",
            Tunable::WatermarkBoostFactor => "vm.watermark_boost_factor",
            Tunable::WatermarkScaleFactor => "vm.watermark_scale_factor",
            Tunable::Zswap => "zswap.enabled",
        }
    }
}

impl fmt::Display for Tunable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Settings that are asked for: what is recorded, so that a later run can tell what has changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VmRequest {
    /// What is to be set, and to what.
    pub values: Vec<(Tunable, String)>,
}

impl fmt::Display for VmRequest {
    /// `vm.swappiness 150, vm.page-cluster 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (tunable, value)) in self.values.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{tunable} {value}")?;
        }
        Ok(())
    }
}

/// One setting that zramd has changed, for people and for the bus.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VmView {
    /// Name, such as `vm.swappiness`.
    pub name: String,
    /// What it is now.
    pub value: String,
    /// What zramd set it to.
    pub set_to: String,
    /// What it was before, and will be again.
    pub before: String,
}

impl VmView {
    /// Whether another program has changed it since: zramd leaves it alone then.
    pub fn is_changed(&self) -> bool {
        self.value != self.set_to
    }
}

/// What a random read of 4 KiB from a solid-state disk takes, in nanoseconds: the other side of the balance.
const DISK_READ_NS: u64 = 90_000;
/// What holds when nothing was measured.
const SWAPPINESS: u64 = 150;
/// Bounds of what a measurement may lead to.
const SWAPPINESS_RANGE: (u64, u64) = (100, 180);

/// What a verdict of the benchmark that holds says about swapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Advice {
    /// What it suggests, where it knows the time of the disk.
    pub swappiness: Option<u64>,
    /// Usual time of a page-in, in nanoseconds; 0 when it is not known.
    pub page_in_ns: u64,
}

/// `vm.swappiness` that the benchmark's verdict calls for, or what holds when nothing was measured.
///
/// The verdict has a value where it knows the time of the disk. Otherwise the kernel's own model
/// (Documentation/admin-guide/sysctl/vm.rst) with the usual time of a disk: file reads that cost r times a page-in balance at
/// 200·r / (1 + r), so r = 2 gives 133. Bounded, because files are read less randomly than swap.
pub fn swappiness(advice: Option<Advice>) -> u64 {
    let modelled = |advice: Advice| {
        let page_in = Some(advice.page_in_ns).filter(|page_in| *page_in > 0)?;
        Some(DISK_READ_NS.saturating_mul(200) / DISK_READ_NS.saturating_add(page_in))
    };
    let measured = advice.and_then(|advice| advice.swappiness.or_else(|| modelled(advice)));
    measured.map_or(SWAPPINESS, |value| value.clamp(SWAPPINESS_RANGE.0, SWAPPINESS_RANGE.1))
}

/// `vm.watermark_scale_factor`: 1.25 % of RAM between the marks, but at most 512 MiB, and no less than the kernel's own.
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
}
