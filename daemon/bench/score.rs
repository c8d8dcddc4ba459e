//! The score of an algorithm: one number, lower is better.
//!
//! * g = 1 − 1/R is the memory gained per page swapped out; R is the ratio of total memory (including zsmalloc).
//! * `latency`: C = (t_out + t_in) / g, the time to compress a page and to decompress it once, per page of memory gained.
//! * `capacity`: 1/g, the pages swapped out per page of memory gained.
//! * `balanced`: `capacity` if this machine has been short of memory, `latency` otherwise.
//! * The 99th percentile of decompression must not exceed a cap, because a program waits for it.

use super::statistics::Estimate;
use logic::verdict::Profile;

/// What counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// Least time per page of memory gained.
    Latency,
    /// Most memory.
    Capacity,
}

impl Aim {
    /// What counts with this profile, on a machine that has been short of memory, or has not.
    pub const fn of(profile: Profile, short_of_memory: bool) -> Aim {
        match profile {
            Profile::Capacity => Aim::Capacity,
            Profile::Balanced if short_of_memory => Aim::Capacity,
            Profile::Balanced | Profile::Latency => Aim::Latency,
        }
    }
}

/// Measured cost and gain of one algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    /// Time to compress a page, without the cost of a request, in nanoseconds.
    pub out_ns: Estimate,
    /// Time to decompress a page, likewise.
    pub in_ns: Estimate,
    /// 99th percentile of reads, including the cost of the request.
    pub in_p99_ns: f64,
    /// Bytes stored per byte of memory that holds them.
    pub ratio: f64,
}

/// Longest page-in that is acceptable, unless all algorithms are slower on this machine.
const LONGEST_PAGE_IN_NS: f64 = 25_000.0;
/// Factor on the time of the fastest algorithm that others may take, if that is longer.
const SLOWER_THAN_FASTEST: f64 = 3.0;

/// The cap for the 99th percentile of reads, and for compression, on this machine in nanoseconds.
pub fn cap_ns(all: &[Figures]) -> f64 {
    let fastest = all.iter().map(|figures| figures.in_p99_ns).fold(f64::INFINITY, f64::min);
    if fastest.is_finite() {
        LONGEST_PAGE_IN_NS.max(SLOWER_THAN_FASTEST * fastest)
    } else {
        LONGEST_PAGE_IN_NS
    }
}

/// The score of one algorithm with its interval, or why it is not eligible.
pub fn score(aim: Aim, figures: &Figures, cap_ns: f64) -> Result<Estimate, String> {
    let gain = 1.0 - 1.0 / figures.ratio;
    if gain.is_nan() || gain <= 0.02 {
        return Err("it saves no memory with this data".to_owned());
    }
    let us = |ns: f64| ns / 1000.0;
    if figures.in_p99_ns > cap_ns {
        return Err(format!(
            "1 of 100 reads takes longer than {:.0} µs: {:.0} µs",
            us(cap_ns),
            us(figures.in_p99_ns)
        ));
    }
    if aim == Aim::Capacity {
        // Programs that need memory wait for compression, too. Twice the cap, because most of it happens in the
        // background.
        if figures.out_ns.value > 2.0 * cap_ns {
            return Err(format!("compressing a page takes longer than {:.0} µs", us(2.0 * cap_ns)));
        }
        let value = 1.0 / gain;
        return Ok(Estimate { value, low: value, high: value });
    }
    let cost = |out_ns: f64, in_ns: f64| (out_ns + in_ns) / gain;
    Ok(Estimate {
        value: cost(figures.out_ns.value, figures.in_ns.value),
        low: cost(figures.out_ns.low, figures.in_ns.low),
        high: cost(figures.out_ns.high, figures.in_ns.high),
    })
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // The values are exact.
mod tests {
    use super::*;

    fn exact(value: f64) -> Estimate {
        Estimate { value, low: value, high: value }
    }

    /// The r/Fedora table: mean and 99th percentile of reads at page-cluster 0, and ratio; it has no write times.
    fn published() -> [(&'static str, Figures); 4] {
        let row =
            |mean, p99, ratio| Figures { out_ns: exact(0.0), in_ns: exact(mean), in_p99_ns: p99, ratio };
        [
            ("lz4", row(1708.0, 3600.0, 2.63)),
            ("lzo-rle", row(2235.0, 6304.0, 2.74)),
            ("lzo", row(2428.0, 7456.0, 2.77)),
            ("zstd", row(5714.0, 13120.0, 3.37)),
        ]
    }

    fn best(aim: Aim) -> &'static str {
        let all = published();
        let cap = cap_ns(&all.map(|(_, figures)| figures));
        let scored = all.map(|(name, figures)| (score(aim, &figures, cap).unwrap().value, name));
        scored.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap().1
    }

    #[test]
    fn costs_are_those_worked_out_by_hand() {
        for (index, expected) in [(0, 2.76), (1, 3.52), (3, 8.13)] {
            let (name, figures) = published()[index];
            let found = score(Aim::Latency, &figures, 25_000.0).unwrap();
            assert!((found.value / 1000.0 - expected).abs() < 0.01, "{name}: {found:?}");
        }
    }

    /// zstd gains 0.083 pages more than lz4 per page swapped out, and costs 4 µs more per page swapped in.
    #[test]
    fn more_memory_pays_only_when_it_is_short() {
        assert_eq!(best(Aim::of(Profile::Latency, true)), "lz4");
        assert_eq!(best(Aim::of(Profile::Balanced, false)), "lz4");
        assert_eq!(best(Aim::of(Profile::Balanced, true)), "zstd");
        assert_eq!(best(Aim::of(Profile::Capacity, false)), "zstd");
    }

    #[test]
    fn what_is_too_slow_or_saves_nothing_is_left_out() {
        let (_, lz4) = published()[0];
        let slow = Figures { in_p99_ns: 60_000.0, ..lz4 };
        let useless = Figures { ratio: 1.01, ..lz4 };
        for aim in [Aim::Latency, Aim::Capacity] {
            assert!(score(aim, &slow, 25_000.0).unwrap_err().contains("25 µs"));
            assert!(score(aim, &slow, cap_ns(&[slow])).is_ok(), "nothing here is faster");
            assert!(score(aim, &useless, 25_000.0).is_err());
        }
        let late = Figures { out_ns: exact(60_000.0), ..lz4 };
        assert!(score(Aim::Capacity, &late, 25_000.0).is_err());
    }
}
