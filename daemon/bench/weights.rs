//! A weighted sum of latency, ratio and throughput, as some published comparisons rank algorithms with. It is for looking only: the verdict
//! is that of [`crate::score`].
//!
//! Each part is 1 for the best algorithm of the table, and less for the others: the shortest time of a page-in divided by its own, its
//! ratio and its throughput divided by the largest. So the sum is between 0 and 1, and no part can decide alone.

use crate::report::Row;

/// How much each part counts; 1 in all.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Weights {
    /// Mean time of a read.
    pub latency: f64,
    /// Bytes stored per byte of memory.
    pub ratio: f64,
    /// Bytes read per second by all CPUs.
    pub throughput: f64,
}

impl Weights {
    /// Parses `latency=0.4,ratio=0.4,throughput=0.2`; what is not named counts nothing.
    ///
    /// # Errors
    ///
    /// What is wrong, and what to write.
    pub fn parse(text: &str) -> Result<Weights, String> {
        let mut weights = Weights::default();
        let mut seen = Vec::new();
        for part in text.split(',') {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                format!("`{part}` has no weight: write for example latency=0.4,ratio=0.4,throughput=0.2")
            })?;
            let (name, value) = (name.trim(), value.trim());
            let field = match name {
                "latency" => &mut weights.latency,
                "ratio" => &mut weights.ratio,
                "throughput" => &mut weights.throughput,
                _ => return Err(format!("there is no `{name}`; there are latency, ratio and throughput")),
            };
            if seen.contains(&name) {
                return Err(format!("`{name}` is there twice"));
            }
            seen.push(name);
            *field = value
                .parse()
                .ok()
                .filter(|weight: &f64| (0.0..=1.0).contains(weight))
                .ok_or_else(|| format!("`{name}={value}`: a weight is a number from 0 to 1"))?;
        }
        let sum = weights.latency + weights.ratio + weights.throughput;
        if (sum - 1.0).abs() > 0.001 {
            return Err(format!("the weights sum up to {sum:.3}, and have to sum up to 1"));
        }
        Ok(weights)
    }

    /// The sum of each row, 0 to 1; `None` for those that were not measured. `disturbed`: there is no throughput.
    ///
    /// # Errors
    ///
    /// The throughput counts, and is not known.
    pub fn sums(&self, rows: &[Row], disturbed: bool) -> Result<Vec<Option<f64>>, String> {
        if disturbed && self.throughput > 0.0 {
            return Err(
                "the last run was disturbed and has no throughput: run `zramdctl bench run` again, or give it no weight"
                    .to_owned(),
            );
        }
        let parts =
            rows.iter().map(|row| (row.read.mean_ns, row.ratio_total, row.read.bytes_per_second.value));
        Ok(self.of(&parts.collect::<Vec<(f64, f64, f64)>>()))
    }

    /// The same of time, ratio and throughput; a time of 0 stands for one that was not measured.
    fn of(&self, rows: &[(f64, f64, f64)]) -> Vec<Option<f64>> {
        let times = rows.iter().map(|(time, ..)| *time).filter(|time| *time > 0.0);
        let shortest = times.fold(f64::INFINITY, f64::min);
        let most = |part: fn(&(f64, f64, f64)) -> f64| rows.iter().map(part).fold(0.0, f64::max);
        let (ratio, throughput) = (most(|row| row.1), most(|row| row.2));
        let share = |value: f64, most: f64| if most > 0.0 { value / most } else { 0.0 };
        let sum = |row: &(f64, f64, f64)| {
            (row.0 > 0.0).then(|| {
                self.latency * shortest / row.0
                    + self.ratio * share(row.1, ratio)
                    + self.throughput * share(row.2, throughput)
            })
        };
        rows.iter().map(sum).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const USUAL: Weights = Weights { latency: 0.4, ratio: 0.4, throughput: 0.2 };

    #[test]
    fn weights_sum_up_to_one() {
        assert_eq!(Weights::parse("latency=0.4,ratio=0.4,throughput=0.2"), Ok(USUAL));
        assert_eq!(Weights::parse("ratio = 1"), Ok(Weights { ratio: 1.0, ..Weights::default() }));
        for (text, expected) in [
            ("", "`` has no weight"),
            ("latency", "`latency` has no weight"),
            ("speed=1", "there is no `speed`"),
            ("latency=-0.4,ratio=1,throughput=0.4", "`latency=-0.4`"),
            ("latency=nan,ratio=1", "`latency=nan`"),
            ("latency=much", "a number from 0 to 1"),
            ("latency=0.5,ratio=0.4", "sum up to 0.900"),
            ("latency=0.5,latency=0.5", "twice"),
            ("latency=0.5,ratio=0.5,", "`` has no weight"),
        ] {
            let refused = Weights::parse(text).unwrap_err();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }

    /// MiB/s and mean nanoseconds for 2^0 to 2^3 pages at once.
    type Cells = [(f64, f64); 4];

    /// The published table (r/Fedora): algorithm, ratio, times.
    const PUBLISHED: [(&str, f64, Cells); 4] = [
        ("lzo", 2.77, [(5821.0, 2428.0), (6668.0, 4436.0), (7193.0, 8438.0), (7496.0, 16426.0)]),
        ("lzo-rle", 2.74, [(6264.0, 2235.0), (7270.0, 4045.0), (7832.0, 7710.0), (8248.0, 14897.0)]),
        ("lz4", 2.63, [(7943.0, 1708.0), (9628.0, 2990.0), (10756.0, 5560.0), (11434.0, 10674.0)]),
        ("zstd", 3.37, [(2612.0, 5714.0), (2816.0, 10847.0), (2931.0, 21073.0), (3005.0, 41343.0)]),
    ];

    fn published() -> Vec<(&'static str, usize, (f64, f64, f64))> {
        let rows = PUBLISHED.iter().flat_map(|(name, ratio, cells)| {
            cells
                .iter()
                .enumerate()
                .map(move |(cluster, (rate, time))| (*name, cluster, (*time, *ratio, *rate)))
        });
        rows.collect()
    }

    /// The original divides the longest time by each time, so that part has no bound: it is 24 for lz4, and the others are at most 1.
    #[test]
    fn the_original_formula_gives_the_published_result() {
        let rows = published();
        let most =
            |part: fn(&(f64, f64, f64)) -> f64| rows.iter().map(|row| part(&row.2)).fold(0.0, f64::max);
        let (time, ratio, rate) = (most(|row| row.0), most(|row| row.1), most(|row| row.2));
        let score = |row: &(f64, f64, f64)| 0.4 * time / row.0 + 0.4 * row.1 / ratio + 0.2 * row.2 / rate;
        for (name, expected) in [("lz4", 10.1333), ("lzo-rle", 7.8340), ("lzo", 7.2416), ("zstd", 3.3398)] {
            let row = rows.iter().find(|row| (row.0, row.1) == (name, 0)).unwrap();
            assert!((score(&row.2) - expected).abs() < 0.0001, "{name}: {}", score(&row.2));
        }
        let best = rows.iter().max_by(|a, b| score(&a.2).total_cmp(&score(&b.2))).unwrap();
        assert_eq!((best.0, best.1), ("lz4", 0));
    }

    /// With the bound, lz4 is still first, and the algorithms are close.
    #[test]
    fn the_bounded_form_ranks_the_published_table() {
        let rows: Vec<_> = published().into_iter().filter(|row| row.1 == 0).collect();
        let figures: Vec<(f64, f64, f64)> = rows.iter().map(|row| row.2).collect();
        let sums: Vec<f64> = USUAL.of(&figures).into_iter().flatten().collect();
        let expected = [0.757, 0.789, 0.912, 0.585];
        for ((row, sum), expected) in rows.iter().zip(sums).zip(expected) {
            assert!((sum - expected).abs() < 0.001, "{}: {sum}", row.0);
        }
    }

    proptest! {
        #[test]
        fn sums_are_between_0_and_1(rows in prop::collection::vec((0.0..1e9f64, 0.0..1e3f64, 0.0..1e12f64), 0..20)) {
            for (sum, row) in USUAL.of(&rows).iter().zip(&rows) {
                prop_assert_eq!(sum.is_some(), row.0 > 0.0);
                prop_assert!(sum.is_none_or(|sum| (0.0..=1.000_001).contains(&sum)));
            }
        }
    }
}
