//! Draining before hibernation: which compressed swaps are deactivated for it, and why the others are not.
//!
//! Compressed swap is kernel memory: it can neither be swapped out nor be left out of the image.

use std::fmt;

use crate::human::human;
use crate::proc::{Memory, SwapLine};

/// Fraction of memory, as a divisor, that must remain available when swap is deactivated: 50 is 2 %.
pub const RESERVE_SHARE: u64 = 50;

const PREFIX: &str = "zz-drained-zram";
const SUFFIX: &str = ".toml";

/// Name of the drop-in that disables the swap on `zramN`. Stopping its unit is not enough: when any other unit is
/// started, PID 1 starts what `swap.target` wants again.
pub fn drop_in(number: u32) -> String {
    format!("{PREFIX}{number}{SUFFIX}")
}

/// N of the `zramN` that a drop-in of this name disables.
pub fn number_of(file_name: &str) -> Option<u32> {
    let number = file_name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()?;
    (drop_in(number) == file_name).then_some(number)
}

/// Contents of the drop-in.
pub fn text(number: u32) -> String {
    format!(
        "# Written by zramd-drain.service: off for hibernation. `/usr/lib/zramd/zramd-worker refill` switches it on again.\n[zram{number}]\nenabled = false\n"
    )
}

/// An active swap set up by zramd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// N of `zramN`.
    pub number: u32,
    pub used_kib: u64,
    /// Whether PID 1 has activated it.
    pub has_unit: bool,
}

/// Why a swap stays active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// There is no active swap on a disk: the machine cannot hibernate anyway.
    NoDisk,
    /// It has no unit, so PID 1 could not start it again.
    NoUnit,
    /// There is not enough memory for its contents.
    NoRoom {
        used_kib: u64,
        /// KiB in use on other swaps to be drained.
        taken_kib: u64,
        /// `MemAvailable`, in KiB.
        available_kib: u64,
        /// Free swap on disks, in KiB.
        disk_kib: u64,
    },
}

/// Result for one swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Deactivated; its contents in KiB.
    Off(u64),
    /// It stays active.
    Stays(Obstacle),
}

/// Decides in this order. Contents move to memory, and from there to active swap on disks. Memory freed by the
/// compressed pages is not counted on: it is freed late, and not in whole pages.
pub fn decide(
    candidates: &[Candidate],
    swaps: &[SwapLine],
    memory: Memory,
) -> impl Iterator<Item = (Candidate, Drained)> {
    let disks: Vec<&SwapLine> = swaps.iter().filter(|swap| swap.zram_number().is_none()).collect();
    let disk_kib = disks.iter().map(|disk| disk.size_kib.saturating_sub(disk.used_kib)).sum::<u64>();
    let (available_kib, has_disk) = (memory.available_kib, !disks.is_empty());
    let room = available_kib.saturating_add(disk_kib).saturating_sub(memory.total_kib / RESERVE_SHARE);
    let mut taken = 0_u64;
    candidates.iter().map(move |candidate| {
        let used_kib = candidate.used_kib;
        let needed = taken.saturating_add(used_kib);
        let outcome = if !has_disk {
            Drained::Stays(Obstacle::NoDisk)
        } else if !candidate.has_unit {
            Drained::Stays(Obstacle::NoUnit)
        } else if needed > room {
            Drained::Stays(Obstacle::NoRoom { used_kib, taken_kib: taken, available_kib, disk_kib })
        } else {
            taken = needed;
            Drained::Off(used_kib)
        };
        (*candidate, outcome)
    })
}

impl fmt::Display for Drained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |kib: u64| human(kib.saturating_mul(1024));
        let obstacle = match self {
            Drained::Off(used) => {
                return write!(f, "off until the machine resumes; {} moved out of it", size(*used));
            }
            Drained::Stays(obstacle) => obstacle,
        };
        f.write_str("stays on: ")?;
        match *obstacle {
            Obstacle::NoDisk => f.write_str(
                "no swap on a disk is active, without which a machine cannot hibernate; add some, with a lower priority",
            ),
            Obstacle::NoUnit => f.write_str("systemd has not activated it"),
            Obstacle::NoRoom { used_kib, taken_kib, available_kib, disk_kib } => {
                write!(f, "its {} ", size(used_kib))?;
                if taken_kib > 0 {
                    write!(f, "and the {} of others ", size(taken_kib))?;
                }
                let (available, disk) = (size(available_kib), size(disk_kib));
                write!(
                    f,
                    "would not fit into the {available} of memory that are available and the {disk} that are free in swap on disks; add swap on a disk, or end programs"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::locate::is_drop_in;
    use crate::config::{self};
    use crate::device::drain::*;

    fn line(path: &str, size_mib: u64, used_mib: u64) -> SwapLine {
        let (size_kib, used_kib) = (size_mib << 10, used_mib << 10);
        SwapLine { path: path.into(), size_kib, used_kib, priority: 1 }
    }

    fn memory(available_mib: u64) -> Memory {
        Memory { total_kib: 1000 << 10, available_kib: available_mib << 10, ..Memory::default() }
    }

    fn candidate(number: u32, used_mib: u64) -> Candidate {
        Candidate { number, used_kib: used_mib << 10, has_unit: true }
    }

    /// Numbers of the swaps to be drained.
    fn going(candidates: &[Candidate], swaps: &[SwapLine], available_mib: u64) -> Vec<u32> {
        let decided = decide(candidates, swaps, memory(available_mib));
        let off = decided.filter(|(_, outcome)| matches!(outcome, Drained::Off(_)));
        off.map(|(candidate, _)| candidate.number).collect()
    }

    #[test]
    fn memory_and_disks_together_have_to_take_it_with_a_reserve() {
        let disk = line("/dev/sda2", 250, 50);
        let other = line("/dev/zram1", 5000, 0);
        // The reserve is 20 MiB.
        for (available, fits) in [(120, true), (119, false), (0, false), (5000, true)] {
            let swaps = [other.clone(), disk.clone()];
            assert_eq!(!going(&[candidate(0, 300)], &swaps, available).is_empty(), fits, "{available}");
        }
        let two = [disk, line("/swap file", 120, 0)];
        assert_eq!(going(&[candidate(0, 300)], &two, 0), [0], "every disk counts");
    }

    #[test]
    fn room_is_given_away_once() {
        let disk = [line("/dev/sda2", 100, 0)];
        let three = [candidate(2, 100), candidate(0, 200), candidate(1, 50)];
        for (available, expected) in
            [(270, vec![2, 0, 1]), (269, vec![2, 0]), (219, vec![2, 1]), (0, vec![1])]
        {
            assert_eq!(going(&three, &disk, available), expected, "{available}");
        }
    }

    #[test]
    fn without_a_disk_nothing_is_drained() {
        let swaps = [line("/dev/zram0", 100, 1), line("/dev/zram1", 5000, 0)];
        let (_, outcome) = decide(&[candidate(0, 1)], &swaps, memory(900)).next().unwrap();
        assert_eq!(outcome, Drained::Stays(Obstacle::NoDisk));
    }

    #[test]
    fn no_figure_overflows() {
        let most = Candidate { used_kib: u64::MAX, ..candidate(0, 0) };
        let broken = SwapLine { size_kib: 1, used_kib: 2, ..line("/dev/sda2", 0, 0) };
        let memory = Memory { total_kib: u64::MAX, available_kib: u64::MAX - 1, ..Memory::default() };
        for (_, outcome) in decide(&[most, most], &[broken], memory) {
            assert!(matches!(outcome, Drained::Stays(Obstacle::NoRoom { disk_kib: 0, .. })), "{outcome}");
        }
    }

    #[test]
    fn what_is_said_has_all_figures_and_a_way_out() {
        let said = |taken_mib: u64| {
            let (used_kib, available_kib, disk_kib) = (300 << 10, 100 << 10, 50 << 10);
            let taken_kib = taken_mib << 10;
            Drained::Stays(Obstacle::NoRoom { used_kib, taken_kib, available_kib, disk_kib }).to_string()
        };
        for part in ["300.0 MiB", "100.0 MiB", "50.0 MiB"] {
            assert!(said(0).contains(part), "{}", said(0));
        }
        assert!(!said(0).contains("others"), "{}", said(0));
        assert!(said(7).contains("300.0 MiB") && said(7).contains("7.0 MiB"), "{}", said(7));
        assert!(Drained::Off(2048).to_string().contains("2.0 MiB"));
    }

    #[test]
    fn a_drop_in_names_its_device_and_switches_it_off() {
        assert_eq!(number_of(&drop_in(12)), Some(12));
        for name in ["zz-runtime-zram0.toml", ".zz-drained-zram0.toml.new", "zz-drained-zram01.toml"] {
            assert_eq!(number_of(name), None, "{name}");
        }
        let files =
            [("/etc/zramd/zramd.toml".into(), "[zram0]\n[zram1]\n".to_owned()), (drop_in(0).into(), text(0))];
        let loaded = config::load(&files, "");
        assert_eq!(loaded.problems, []);
        let numbers: Vec<u32> = loaded.settings.devices.iter().map(|device| device.number).collect();
        assert_eq!(numbers, [1]);
        assert!(is_drop_in(&drop_in(0)));
    }
}
