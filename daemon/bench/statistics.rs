//! Uncertainty of measurements.

use serde::{Deserialize, Serialize};

/// A median with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The median.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// The median of equally good values. The interval is that of order statistics, which makes no assumption about
    /// their distribution: the ranks of its ends are n/2 ∓ 1.96·√n/2 (Conover, "Practical Nonparametric Statistics",
    /// 3.2).
    pub fn of(values: &[f64]) -> Estimate {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else { return Estimate::default() };
        let value = f64::midpoint(sorted[last / 2], sorted[last.div_ceil(2)]);
        let n = sorted.len() as f64;
        let half = 1.96 * n.sqrt() / 2.0;
        let rank = |rank: f64| {
            // Ranks count from 1. With too few values, the interval is their whole range.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let index = rank.clamp(1.0, n) as usize - 1;
            sorted[index.min(last)]
        };
        Estimate { value, low: rank((n / 2.0 - half).floor()), high: rank((n / 2.0 + half).ceil() + 1.0) }
    }

    /// Half the width of the interval, relative to the value.
    pub fn uncertainty(&self) -> f64 {
        if self.value <= 0.0 { f64::INFINITY } else { (self.high - self.low) / 2.0 / self.value }
    }

    /// Subtracts a constant part; not below 0.
    pub fn minus(&self, constant: f64) -> Estimate {
        let left = |value: f64| (value - constant).max(0.0);
        Estimate { value: left(self.value), low: left(self.low), high: left(self.high) }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // The values are exact.
mod tests {
    use proptest::prelude::*;

    use super::*;
    use fastrand::Rng;

    #[test]
    fn few_values_say_little() {
        assert_eq!(Estimate::of(&[]), Estimate::default());
        assert_eq!(Estimate::of(&[4.0]), Estimate { value: 4.0, low: 4.0, high: 4.0 });
        let three = Estimate::of(&[3.0, 1.0, 2.0]);
        assert_eq!((three.value, three.low, three.high), (2.0, 1.0, 3.0));
        assert_eq!(Estimate::of(&[1.0, 2.0]).value, 1.5);
    }

    /// 40 values: according to the table of the binomial distribution, the ranks are 14 and 27 for 95 %.
    #[test]
    fn the_ranks_are_those_of_the_tables() {
        let values: Vec<f64> = (1..=40).map(f64::from).collect();
        let estimate = Estimate::of(&values);
        assert_eq!(estimate.value, 20.5);
        assert!((13.0..=14.0).contains(&estimate.low), "{estimate:?}");
        assert!((27.0..=28.0).contains(&estimate.high), "{estimate:?}");
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        let mut random = Rng::with_seed(11);
        let held = (0..1000).filter(|_| {
            let values: Vec<f64> = (0..31).map(|_| random.u64(..1_000_000) as f64).collect();
            let estimate = Estimate::of(&values);
            estimate.low <= 500_000.0 && 500_000.0 <= estimate.high
        });
        assert!(held.count() >= 940);
    }

    proptest! {
        #[test]
        fn the_value_is_in_its_interval(values in prop::collection::vec(0.0..1e9f64, 1..60)) {
            let estimate = Estimate::of(&values);
            prop_assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
            let less = estimate.minus(100.0);
            prop_assert!(less.low >= 0.0 && less.low <= less.high);
        }
    }
}
