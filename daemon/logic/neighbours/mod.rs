//! Findings about what is in the way of compressed swap: zswap, other swap, other programs. They are left alone, and are no mistakes
//! of the configuration.

pub mod driver;
pub mod fstab;
pub mod programs;
pub mod units;

use super::finding::{Code, Finding, Level};
use super::proc::SwapLine;
use super::vm::ZSWAP_REMEDY;

use programs::{Does, OtherManager};

/// Highest priority of swap (swapon(2)).
const HIGHEST: i32 = 32767;

/// What zramd sets up.
#[derive(Debug, Clone, Copy)]
pub struct Ours<'a> {
    /// The zram device, if it is on one.
    pub device: Option<u32>,
    /// Where it is mounted; `None` for swap.
    pub place: Option<&'a str>,
}

/// The facts about them.
#[derive(Debug, Clone)]
pub struct Neighbours<'a> {
    /// The lowest priority of compressed swap of zramd, in use or planned; `None` without any.
    pub lowest: Option<i32>,
    /// Swap that is not of zramd.
    pub swaps: Vec<&'a SwapLine>,
    /// Whether zswap is enabled, and stays so.
    pub zswap: Zswap,
    /// Whether `swaps` has the swap on disks already.
    pub swaps_known: bool,
    /// Other programs that set up zram here.
    pub managers: &'a [OtherManager],
    /// Whether the configuration has a section.
    pub configured: bool,
    /// Whether all its devices yield to other zram managers.
    pub yields: bool,
}

impl Neighbours<'_> {
    /// All findings about them.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        let on_disk = self.swaps.iter().any(|swap| swap.zram_number().is_none());
        if self.zswap == Zswap::Wanted && self.swaps_known && !on_disk {
            found.push(zswap_alone());
        } else if self.lowest.is_some() && self.zswap != Zswap::Off {
            found.push(zswap(self.zswap));
        }
        if let Some(lowest) = self.lowest {
            found.extend(
                self.swaps.iter().filter(|swap| swap.priority >= lowest).map(|swap| above(swap, lowest)),
            );
        }
        let claims = |other: &&OtherManager| !(self.yields && other.does == Does::Devices);
        found.extend(self.managers.iter().filter(claims).map(|other| manager(other, self.configured)));
        found
    }
}

/// State of zswap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Zswap {
    /// It is off, or will be while compressed swap is on.
    #[default]
    Off,
    /// It is on, and not by zramd.
    On,
    /// `[zswap]` enables it.
    Wanted,
}

/// zswap needs swap on a disk: the kernel compresses only pages that have a place there.
fn zswap_alone() -> Finding {
    Finding::new(
        Level::Error,
        Code::ZswapWithoutSwap,
        "",
        "[zswap] enables zswap, but no swap on a disk is in use, so nothing is compressed by it",
        "switch on swap on a disk (/usr/share/doc/zramd/zram-or-zswap.md says how), or use zram: a section [zram0], and enabled = false in [zswap]",
    )
}

fn zswap(state: Zswap) -> Finding {
    Finding::new(
        Level::Warning,
        Code::ZswapActive,
        "",
        "zswap is on: it compresses pages before they reach any swap device, so zram stays nearly empty",
        match state {
            Zswap::Wanted => {
                "one of them is enough: write enabled = false into [zswap], or into the sections [zramN] of swap"
            }
            _ => ZSWAP_REMEDY,
        },
    )
}

/// Other swap that is used before compressed swap, or as much.
fn above(swap: &SwapLine, lowest: i32) -> Finding {
    let (path, priority) = (swap.path.to_string(), swap.priority);
    let message = if priority > lowest {
        format!(
            "{path} has priority {priority}, above the {lowest} of compressed swap: zram is used only when that is full"
        )
    } else {
        format!("{path} has priority {priority}, as compressed swap: both are used in turn")
    };
    let lower = "give it a lower priority (`pri=` in fstab)";
    let remedy = match priority {
        HIGHEST => lower.to_owned(),
        _ => format!("write swap-priority = {} or more, or {lower}", priority + 1),
    };
    Finding::new(Level::Warning, Code::PriorityInverted, &path, message, remedy)
}

fn manager(other: &OtherManager, configured: bool) -> Finding {
    let (code, message, remedy) = match other.import {
        Some(name) if !configured => (
            Code::ImportOffered,
            format!(
                "{} {} here ({}), and zramd is not configured",
                other.name,
                other.does.verb(),
                other.file
            ),
            format!(
                "run `zramdctl import {name}` to see its configuration for zramd, with --write to write it"
            ),
        ),
        _ => (
            Code::ForeignManager,
            format!(
                "{} is {} here too ({}); two may claim the same {}",
                other.name,
                if other.enabled { "configured" } else { "running" },
                other.file,
                other.does.claim()
            ),
            other.remedy(),
        ),
    };
    Finding::new(Level::Warning, code, &other.file, message, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_swap_is_compared_with_the_lowest_of_ours() {
        let swap = |priority| SwapLine { path: "/dev/sda2".into(), size_kib: 1, used_kib: 0, priority };
        let found = |lowest, priority| {
            let swap = swap(priority);
            let neighbours = Neighbours {
                lowest,
                swaps: vec![&swap],
                zswap: Zswap::Off,
                swaps_known: true,
                managers: &[],
                configured: true,
                yields: false,
            };
            neighbours.findings().pop().map(|found| (found.message, found.remedy))
        };
        assert_eq!((found(Some(100), 99), found(None, 100)), (None, None));
        let (message, remedy) = found(Some(100), 100).unwrap();
        assert!(message.contains("in turn") && remedy.contains("swap-priority = 101 "), "{message} {remedy}");
        let (message, remedy) = found(Some(100), HIGHEST).unwrap();
        assert!(message.contains("above the 100") && remedy.starts_with("give it"), "{message} {remedy}");
    }

    #[test]
    fn zswap_is_in_the_way_of_zram_and_needs_swap_on_a_disk() {
        let swap = |path: &str| SwapLine { path: path.into(), size_kib: 1, used_kib: 0, priority: -2 };
        let (disk, zram) = (swap("/dev/sda2"), swap("/dev/zram7"));
        for (zswap, lowest, swaps, swaps_known, expected) in [
            (Zswap::Off, Some(100), vec![&disk], true, None),
            (Zswap::On, None, vec![], true, None),
            (Zswap::On, Some(100), vec![], true, Some((Code::ZswapActive, ZSWAP_REMEDY))),
            (Zswap::Wanted, None, vec![&disk], true, None),
            (Zswap::Wanted, Some(100), vec![&disk], true, Some((Code::ZswapActive, "one of them is enough"))),
            (Zswap::Wanted, None, vec![&zram], true, Some((Code::ZswapWithoutSwap, "switch on swap"))),
            // Swap on a disk may be added later.
            (Zswap::Wanted, None, vec![], false, None),
        ] {
            let (managers, configured, yields) = (&[][..], true, false);
            let neighbours = Neighbours { lowest, swaps, zswap, swaps_known, managers, configured, yields };
            let found: Vec<Finding> = neighbours.findings();
            let codes: Vec<Code> = found.iter().map(|found| found.code).collect();
            assert_eq!(
                codes,
                expected.map(|(code, _)| code).into_iter().collect::<Vec<_>>(),
                "{neighbours:?}"
            );
            let is_expected =
                |found: &Finding| expected.is_some_and(|(_, part)| found.remedy.starts_with(part));
            assert!(found.iter().all(is_expected), "{found:?}");
        }
    }
}
