//! Statistics of the times of similar requests.

use serde::{Deserialize, Serialize};

/// Times of requests, as reported by ioping, with percentiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of requests.
    pub requests: u64,
    /// Minimum, in nanoseconds.
    pub min_ns: u64,
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    pub max_ns: u64,
}

impl Latency {
    /// Computes them of `times` in nanoseconds, which are sorted; `None` if there are none.
    pub fn of(times: &mut [u64]) -> Option<Latency> {
        times.sort_unstable();
        let (&min_ns, &max_ns) = (times.first()?, times.last()?);
        let requests = times.len() as u64;
        Some(Latency {
            requests,
            min_ns,
            mean_ns: times.iter().sum::<u64>() / requests,
            p50_ns: at_share(times, 500),
            p99_ns: at_share(times, 990),
            max_ns,
        })
    }
}

/// The smallest of these sorted times that this many thousandths of them do not exceed; 0 if there are none.
pub fn at_share(times: &[u64], thousandths: usize) -> u64 {
    times.get((times.len() * thousandths).div_ceil(1000).saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_occurred() {
        let mut times: Vec<u64> = (1..=100).rev().collect();
        let latency = Latency::of(&mut times).unwrap();
        let expected = Latency { requests: 100, min_ns: 1, mean_ns: 50, p50_ns: 50, p99_ns: 99, max_ns: 100 };
        assert_eq!(latency, expected);
        assert_eq!(Latency::of(&mut [7]).unwrap().p99_ns, 7);
        assert_eq!(Latency::of(&mut []), None);
    }
}
