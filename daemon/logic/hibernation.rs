//! What hibernation lacks on a machine.

use serde::Serialize;

use super::human::human;
use super::proc::SwapLine;

/// Facts about a machine.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// `/sys/power/state`.
    pub states: String,
    /// `/sys/power/resume`.
    pub resume: String,
    /// Whether it booted with EFI, where systemd tells the next boot which disk to resume from.
    pub is_efi: bool,
    /// `/proc/swaps`.
    pub swaps: Vec<SwapLine>,
    /// `Active(anon)`, which is what logind compares with the space.
    pub active_kib: u64,
    /// Memory of compressed swap, which becomes part of the image and does not compress again.
    pub compressed_kib: u64,
}

/// Something that hibernation lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "HibernationLack"))]
pub enum Lack {
    /// The kernel cannot hibernate.
    Kernel,
    /// No swap on a disk is active.
    DiskSwap,
    /// Too little of it is free.
    Space,
    /// The kernel has no disk to resume from.
    Resume,
}

impl Machine {
    /// What is missing.
    pub fn lacks(&self) -> Vec<Lack> {
        let free = self.free_kib();
        let all = [
            (Lack::Kernel, !self.states.split_whitespace().any(|state| state == "disk")),
            (Lack::DiskSwap, free.is_none()),
            (Lack::Space, free.is_some_and(|free| free < self.needed_kib())),
            (Lack::Resume, !self.is_efi && !is_set(&self.resume)),
        ];
        all.into_iter().filter_map(|(lack, is_missing)| is_missing.then_some(lack)).collect()
    }

    /// Whether the set-up has begun: there is swap on a disk, or a disk to resume from.
    pub fn is_wanted(&self) -> bool {
        self.free_kib().is_some() || is_set(&self.resume)
    }

    /// A sentence about what is missing.
    pub fn sentence(&self) -> String {
        let size = |kib: u64| human(kib.saturating_mul(1024));
        let text = |lack: &Lack| match lack {
            Lack::Kernel => "the kernel cannot hibernate, or is not allowed to".to_owned(),
            Lack::DiskSwap => "no swap on a disk is active".to_owned(),
            Lack::Space => format!(
                "swap on a disk has only {} free for at least {}",
                size(self.free_kib().unwrap_or(0)),
                size(self.needed_kib())
            ),
            Lack::Resume => "the kernel has no disk to resume from".to_owned(),
        };
        let lacks = self.lacks();
        if lacks.is_empty() {
            return "Hibernation is possible.".to_owned();
        }
        let texts: Vec<String> = lacks.iter().map(text).collect();
        format!("Hibernation is not possible: {}. See \"Hibernation\" in zramd.toml(5).", texts.join("; "))
    }

    /// The most that is free in one swap on a disk: an image is in one.
    fn free_kib(&self) -> Option<u64> {
        let disks = self.swaps.iter().filter(|swap| swap.zram_number().is_none());
        disks.map(|swap| swap.size_kib.saturating_sub(swap.used_kib)).max()
    }

    fn needed_kib(&self) -> u64 {
        self.active_kib.saturating_add(self.compressed_kib)
    }
}

/// Whether `/sys/power/resume` names a disk.
pub fn is_set(resume: &str) -> bool {
    !matches!(resume.trim(), "" | "0:0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swap(path: &str, size_mib: u64, used_mib: u64) -> SwapLine {
        SwapLine { path: path.into(), size_kib: size_mib << 10, used_kib: used_mib << 10, priority: 1 }
    }

    fn ready() -> Machine {
        Machine {
            states: "freeze mem disk\n".to_owned(),
            resume: "254:16\n".to_owned(),
            swaps: vec![swap("/dev/zram0", 4000, 0), swap("/dev/sda2", 500, 100), swap("/swap", 300, 0)],
            active_kib: 300 << 10,
            compressed_kib: 100 << 10,
            ..Machine::default()
        }
    }

    #[test]
    fn a_machine_with_all_lacks_nothing() {
        assert_eq!(ready().lacks(), []);
        assert_eq!(ready().sentence(), "Hibernation is possible.");
    }

    #[test]
    fn most_machines_need_no_sentence() {
        let zram = || vec![swap("/dev/zram0", 4000, 0)];
        assert!(ready().is_wanted() && Machine { swaps: zram(), ..ready() }.is_wanted());
        assert!(!Machine { swaps: zram(), resume: "0:0\n".to_owned(), ..ready() }.is_wanted());
    }

    #[test]
    fn each_thing_is_missed() {
        let kernel = Machine { states: "freeze mem".to_owned(), ..ready() };
        assert_eq!(kernel.lacks(), [Lack::Kernel]);
        let memory = Machine { swaps: vec![swap("/dev/zram0", 4000, 0)], ..ready() };
        assert_eq!(memory.lacks(), [Lack::DiskSwap]);
        let full = Machine { active_kib: (300 << 10) + 1, ..ready() };
        assert_eq!(full.lacks(), [Lack::Space], "the swaps are not added up");
        assert!(full.sentence().contains("400.0 MiB"), "{}", full.sentence());
        let unset = Machine { resume: "0:0\n".to_owned(), ..ready() };
        assert_eq!(unset.lacks(), [Lack::Resume]);
        assert_eq!(Machine { is_efi: true, ..unset }.lacks(), []);
        let nothing = Machine::default();
        assert_eq!(nothing.lacks(), [Lack::Kernel, Lack::DiskSwap, Lack::Resume]);
        assert!(nothing.sentence().contains("zramd.toml(5)"));
    }
}
