//! The time without access after which a page counts as idle.
//!
//! `age = min + (max − min) · e^(−5u)`, `u = 1 − MemAvailable ÷ MemTotal`: near the maximum if memory is free, near the
//! minimum once half of it is used. ChromeOS and Android use the same curve.

use std::time::Duration;

use super::Cause;
use super::pressure::Level;

/// Bounds of the age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// With no memory free.
    pub least: Duration,
    /// With all memory free.
    pub most: Duration,
}

/// How steeply the age decreases with memory use.
const STEEPNESS: f64 = 5.0;

/// Share of memory in use, 0 to 1. Inconsistent figures count as 0, which has the least effect.
pub fn utilisation(total: u64, available: u64) -> f64 {
    if available >= total {
        return 0.0;
    }
    1.0 - available as f64 / total as f64
}

/// The age for this share of memory in use, unless memory is short.
fn idle_age(range: Range, utilisation: f64) -> Duration {
    let least = range.least.min(range.most);
    let used = if utilisation.is_finite() { utilisation.clamp(0.0, 1.0) } else { 0.0 };
    let spread = range.most.saturating_sub(least);
    (least + spread.mul_f64(exponential(STEEPNESS * used))).min(range.most)
}

/// The shortest age if swap fills without pressure.
const FILLING: Duration = Duration::from_secs(60);

/// The shortest age of pages that are written back while memory is short, or, without pressure, while swap fills: a page
/// that has just been read from disk is not written there again.
pub const fn shortest(level: Level) -> Duration {
    match level {
        Level::None => FILLING,
        Level::Moderate => Duration::from_secs(300),
        Level::Severe => Duration::from_secs(60),
        Level::Critical => Duration::from_secs(15),
    }
}

/// The ages to try one after another, so that the oldest pages go first: while memory is short from the minimum down to
/// the shortest one, otherwise only the one that follows from the memory in use.
pub fn ages(range: Range, utilisation: f64, cause: Cause) -> Vec<Duration> {
    if !cause.is_short() {
        return vec![idle_age(range, utilisation)];
    }
    let first = range.least.min(range.most);
    let last = shortest(cause.level()).min(first);
    std::iter::successors(Some(first), |age| (*age > last).then(|| (*age / 4).max(last))).collect()
}

/// The age for recompression. While memory is short, it is the shortest one: a page that is needed again soon costs
/// only the time of a denser algorithm.
pub fn recompression_age(range: Range, utilisation: f64, level: Level) -> Duration {
    match level {
        Level::None => idle_age(range, utilisation),
        level => shortest(level).min(range.least).min(range.most),
    }
}

/// e^(−x) for 0 ≤ x ≤ 5, to seven digits. The function of the C library would add 300 KiB of memory to a program that
/// does not need it otherwise.
fn exponential(x: f64) -> f64 {
    // e^(−x) = (e^(−x/32))^32; for an x below 0.16, six terms of the series are exact enough.
    let small = x / 32.0;
    let mut term = 1.0;
    let mut sum = 1.0;
    for index in 1..=6 {
        term *= -small / f64::from(index);
        sum += term;
    }
    sum.powi(32)
}

#[cfg(test)]
mod tests {
    use crate::maintain::age::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const RANGE: Range = Range { least: Duration::from_secs(2 * 3600), most: Duration::from_secs(4 * 3600) };

    #[test]
    fn the_age_shrinks_as_memory_fills() {
        // Values of the published formula.
        for (used, hours) in
            [(0.0, 4.0), (0.2, 2.736), (0.5, 2.164), (0.8, 2.037), (0.95, 2.017), (1.0, 2.013)]
        {
            let age = idle_age(RANGE, used).as_secs_f64() / 3600.0;
            assert!((age - hours).abs() < 0.001, "{used}: {age}");
        }
    }

    #[test]
    fn what_cannot_be_read_means_the_longest_age() {
        for (total, available, expected) in [(0, 0, 0.0), (100, 101, 0.0), (100, 25, 0.75)] {
            assert!((utilisation(total, available) - expected).abs() < f64::EPSILON);
        }
        assert_eq!(idle_age(RANGE, f64::NAN), 4 * HOUR);
        assert_eq!(idle_age(RANGE, 7.0), idle_age(RANGE, 1.0));
    }

    #[test]
    fn under_pressure_ages_fall_to_the_shortest() {
        let minutes = |level| {
            ages(RANGE, 0.9, Cause::Pressure(level))
                .into_iter()
                .map(|age| age.as_secs_f64() / 60.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(minutes(Level::Moderate), [120.0, 30.0, 7.5, 5.0]);
        assert_eq!(minutes(Level::Severe), [120.0, 30.0, 7.5, 1.875, 1.0]);
        assert_eq!(minutes(Level::Critical), [120.0, 30.0, 7.5, 1.875, 0.46875, 0.25]);
        assert_eq!(ages(RANGE, 0.9, Cause::Timer), [idle_age(RANGE, 0.9)]);
        assert_eq!(ages(RANGE, 0.9, Cause::Filling).last(), Some(&FILLING));
        for (seconds, expected) in [(0, &[0][..]), (60, &[60]), (100, &[100, 60])] {
            let least = Duration::from_secs(seconds);
            let found = ages(Range { least, most: HOUR }, 0.0, Cause::Pressure(Level::Severe));
            assert_eq!(found.iter().map(Duration::as_secs).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_range_that_is_upside_down_is_no_range() {
        let range = Range { least: 4 * HOUR, most: 2 * HOUR };
        assert_eq!(idle_age(range, 0.3), 2 * HOUR);
    }

    #[test]
    fn the_exponential_is_exact_enough() {
        for step in 0..=100_u32 {
            let x = f64::from(step) / 20.0;
            assert!((exponential(x) - (-x).exp()).abs() < 1e-7, "{x}");
        }
    }
}
