//! Mixes generated and public pages so that they compress like the pages that a device stores.

use logic::device::stat::{BdStat, MmStat};

/// With fewer stored pages, the statistics of a device are not used.
pub const LEAST_PAGES: u64 = 4096;

/// A class of public pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Generated: mostly zeros.
    Sparse,
    /// Generated: like pages of desktop programs.
    Program,
    /// From world-readable files.
    File,
    /// Generated: incompressible.
    Noise,
}

/// Compressibility of the pages on a device, from its statistics. Same-filled and written-back pages do not count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// Mean compressed size, as a fraction of a page: 0 to 1.
    pub size: f64,
    /// Share of the pages that are stored uncompressed: 0 to `size`.
    pub incompressible: f64,
}

impl Target {
    /// `None` if fewer than [`LEAST_PAGES`] are stored.
    pub fn new(memory: &MmStat, backing: &BdStat, page_size: u64) -> Option<Target> {
        let pages = (memory.orig_data_size / page_size)
            .saturating_sub(memory.same_pages)
            .saturating_sub(backing.used_bytes / page_size);
        if pages < LEAST_PAGES {
            return None;
        }
        let size = (memory.compr_data_size as f64 / page_size as f64 / pages as f64).min(1.0);
        Some(Target { size, incompressible: (memory.huge_pages as f64 / pages as f64).min(size) })
    }

    /// The share of each class in the sample, 1 in total. `sizes` has the mean compressed size of each class except
    /// noise, as a fraction of a page. If no mixture matches, the nearest one.
    pub fn mix(&self, sizes: &[(Class, f64)]) -> Vec<(Class, f64)> {
        let mut sizes = sizes.to_vec();
        sizes.sort_by(|one, other| one.1.total_cmp(&other.1));
        let (Some(&(first, least)), Some(&(last, most))) = (sizes.first(), sizes.last()) else {
            return vec![(Class::Noise, 1.0)];
        };
        let rest = 1.0 - self.incompressible;
        let wanted = (self.size - self.incompressible) / rest;
        // False for NaN, when all pages are incompressible.
        if wanted <= least {
            return vec![(first, rest), (Class::Noise, self.incompressible)];
        }
        let between = sizes.windows(2).find(|pair| pair[0].1 < wanted && wanted <= pair[1].1);
        if let Some(&[(lower, small), (upper, large)]) = between {
            let share = (wanted - small) / (large - small);
            return vec![
                (lower, rest * (1.0 - share)),
                (upper, rest * share),
                (Class::Noise, self.incompressible),
            ];
        }
        // All classes compress too well: add noise.
        let noise = if most < 1.0 { ((self.size - most) / (1.0 - most)).clamp(0.0, 1.0) } else { 1.0 };
        vec![(last, 1.0 - noise), (Class::Noise, noise)]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: u64 = 4096;
    const SIZES: [(Class, f64); 3] = [(Class::Program, 0.3), (Class::File, 0.55), (Class::Sparse, 0.06)];

    fn stat(pages: u64, compr_data_size: u64, same_pages: u64, huge_pages: u64) -> MmStat {
        let orig_data_size = pages.saturating_mul(PAGE);
        MmStat { orig_data_size, compr_data_size, same_pages, huge_pages, ..MmStat::default() }
    }

    fn target(stat: MmStat) -> Option<Target> {
        Target::new(&stat, &BdStat::default(), PAGE)
    }

    /// Mean compressed size of a mixture.
    fn size(mixture: &[(Class, f64)], sizes: &[(Class, f64)]) -> f64 {
        let of = |class| sizes.iter().find(|(other, _)| *other == class).map_or(1.0, |(_, size)| *size);
        mixture.iter().map(|(class, share)| share * of(*class)).sum()
    }

    #[test]
    fn little_or_same_filled_data_says_nothing() {
        assert_eq!(target(MmStat::default()), None);
        assert_eq!(target(stat(LEAST_PAGES - 1, 1000, 0, 0)), None);
        assert_eq!(target(stat(1 << 30, 0, 1 << 30, 0)), None, "all same-filled");
        let backing = BdStat { used_bytes: LEAST_PAGES * PAGE, ..BdStat::default() };
        let stored = stat(2 * LEAST_PAGES - 1, 1000, 0, 0);
        assert_eq!(Target::new(&stored, &backing, PAGE), None, "the rest is written back");
        assert!(target(stored).is_some());
    }

    #[test]
    fn each_kind_of_swap_has_its_mixture() {
        let mix = |size, incompressible| Target { size, incompressible }.mix(&SIZES);
        assert_eq!(mix(1.0, 1.0), [(Class::File, 0.0), (Class::Noise, 1.0)], "nothing compresses");
        assert_eq!(mix(0.01, 0.0), [(Class::Sparse, 1.0), (Class::Noise, 0.0)], "nothing is so small");
        assert_eq!(mix(0.3, 0.0), [(Class::Sparse, 0.0), (Class::Program, 1.0), (Class::Noise, 0.0)]);
        assert_eq!(mix(0.775, 0.1), [(Class::File, 0.5), (Class::Noise, 0.5)], "larger than files");
        assert_eq!(Target { size: 0.5, incompressible: 0.1 }.mix(&[]), [(Class::Noise, 1.0)]);
    }

    proptest! {
        /// Any counters, including impossible ones: shares are between 0 and 1, and the mixture has the target's size
        /// if it can.
        #[test]
        fn mixtures_have_the_size_of_their_target(
            pages in prop_oneof![0..2 * LEAST_PAGES, any::<u64>()],
            compressed in prop_oneof![0..1_u64 << 26, any::<u64>()],
            same in prop_oneof![0..2 * LEAST_PAGES, any::<u64>()],
            huge in prop_oneof![0..2 * LEAST_PAGES, any::<u64>()],
            sizes in prop::collection::vec(0.0..=1.0_f64, 0..=3),
        ) {
            let Some(target) = target(stat(pages, compressed, same, huge)) else { return Ok(()) };
            prop_assert!((0.0..=1.0).contains(&target.size));
            prop_assert!((0.0..=target.size).contains(&target.incompressible));
            let classes = [Class::Sparse, Class::Program, Class::File];
            let sizes: Vec<(Class, f64)> = classes.into_iter().zip(sizes).collect();
            let mixture = target.mix(&sizes);
            prop_assert!(mixture.iter().all(|(_, share)| (0.0..=1.0).contains(share)), "{mixture:?}");
            let total: f64 = mixture.iter().map(|(_, share)| share).sum();
            prop_assert!((total - 1.0).abs() < 1e-9, "{mixture:?}");
            let least = sizes.iter().map(|(_, size)| *size).fold(1.0, f64::min);
            let reachable = target.incompressible + (1.0 - target.incompressible) * least;
            let expected = target.size.max(reachable);
            prop_assert!((size(&mixture, &sizes) - expected).abs() < 1e-6, "{target:?} {sizes:?} {mixture:?}");
        }
    }
}
