//! The score of an algorithm: the price of a page in swap, lower is better.
//!
//! price = t_out + t_in + worth ÷ R: the processor time to compress a page and to decompress it once, and the memory that it takes. R is
//! the ratio of total memory (including zsmalloc), and `worth` is what a page of memory is worth, as processor time:
//!
//! * `balanced`: 1 ms, about as long as slow flash takes to read a page that did not fit into memory;
//! * `capacity`, and `balanced` on a machine that has been short of memory: 10 ms, as on a hard disk;
//! * `latency`, and `balanced` on a machine that swaps in all the time although swap has room: 0.1 ms, because pages stay too short a time.
//!
//! So the densest algorithm is chosen as long as this processor pays less than `worth` for each page of memory that it gains.
//! `tests/bench/choice` has the machines and data on which that was tried.

use serde::{Deserialize, Serialize};

use super::statistics::Estimate;
use logic::verdict::Profile;

/// What a machine has done since boot that [`Aim::of`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BenchmarkPast"))]
#[serde(default)]
pub struct Past {
    /// It has been short of memory, now or before an earlier verdict.
    pub short_of_memory: bool,
    /// It swaps in all the time, although swap has room.
    pub swaps_in_constantly: bool,
}

/// What counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// Time.
    Latency,
    /// Memory, unless it takes much time.
    Balanced,
    /// Memory.
    Capacity,
}

impl Aim {
    /// What counts with this profile, on a machine with this past.
    pub const fn of(profile: Profile, past: Past) -> Aim {
        match profile {
            Profile::Latency => Aim::Latency,
            Profile::Capacity => Aim::Capacity,
            Profile::Balanced if past.swaps_in_constantly => Aim::Latency,
            Profile::Balanced if past.short_of_memory => Aim::Capacity,
            Profile::Balanced => Aim::Balanced,
        }
    }

    /// The processor time that a page of memory is worth, in nanoseconds.
    pub const fn worth_ns(self) -> f64 {
        match self {
            Aim::Latency => 100_000.0,
            Aim::Balanced => 1_000_000.0,
            Aim::Capacity => 10_000_000.0,
        }
    }
}

/// Measured cost and gain of one algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    /// Processor time to compress a page, without the cost of a request, in nanoseconds.
    pub out_ns: Estimate,
    /// Processor time to decompress a page, likewise.
    pub in_ns: Estimate,
    /// Bytes stored per byte of memory that holds them.
    pub ratio: f64,
}

/// Least share of the memory that an algorithm has to save.
const LEAST_GAIN: f64 = 0.02;

/// The score of one algorithm with its interval, in nanoseconds, or why it is not eligible.
pub fn score(aim: Aim, figures: &Figures) -> Result<Estimate, String> {
    let gain = 1.0 - 1.0 / figures.ratio;
    if gain.is_nan() || gain <= LEAST_GAIN {
        return Err("it saves no memory with this data".to_owned());
    }
    let memory = aim.worth_ns() / figures.ratio;
    let price = |out_ns: f64, in_ns: f64| out_ns + in_ns + memory;
    Ok(Estimate {
        value: price(figures.out_ns.value, figures.in_ns.value),
        low: price(figures.out_ns.low, figures.in_ns.low),
        high: price(figures.out_ns.high, figures.in_ns.high),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(value: f64) -> Estimate {
        Estimate { value, low: value, high: value }
    }

    fn row(out_us: f64, in_us: f64, ratio: f64) -> Figures {
        Figures { out_ns: exact(out_us * 1000.0), in_ns: exact(in_us * 1000.0), ratio }
    }

    /// The kernel's codecs on an i3-8100T with the source of Linux: dd to and from the device, less the time with zeros.
    fn published() -> [(&'static str, Figures); 3] {
        [("lz4", row(7.4, 1.9, 3.06)), ("lzo-rle", row(7.9, 3.0, 3.17)), ("zstd", row(24.6, 7.9, 4.42))]
    }

    /// The best where all times are this many times as long.
    fn best(aim: Aim, slower: f64) -> &'static str {
        let slow = |estimate: Estimate| exact(estimate.value * slower);
        let price = |figures: Figures| {
            let figures = Figures { out_ns: slow(figures.out_ns), in_ns: slow(figures.in_ns), ..figures };
            score(aim, &figures).unwrap().value
        };
        let scored = published().map(|(name, figures)| (price(figures), name));
        scored.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap().1
    }

    #[test]
    fn prices_are_those_worked_out_by_hand() {
        for (index, expected) in [(0, 336.1), (1, 326.4), (2, 258.7)] {
            let (name, figures) = published()[index];
            let found = score(Aim::Balanced, &figures).unwrap();
            assert!((found.value / 1000.0 - expected).abs() < 0.1, "{name}: {found:?}");
        }
    }

    /// zstd takes 0.1 pages less than lz4, and 23 µs more: 231 µs for each page of memory gained.
    #[test]
    fn the_densest_is_chosen_until_its_memory_costs_too_much_time() {
        assert_eq!(best(Aim::Balanced, 1.0), "zstd");
        assert_eq!(best(Aim::Balanced, 3.0), "zstd", "a Raspberry Pi 4");
        assert_eq!(best(Aim::Balanced, 5.0), "lzo-rle", "a page gained costs more than a millisecond");
        assert_eq!(best(Aim::Capacity, 5.0), "zstd");
        assert_eq!(best(Aim::Latency, 1.0), "lz4");
        assert_eq!(best(Aim::Latency, 0.2), "zstd", "a very fast processor");
    }

    #[test]
    fn what_the_machine_has_done_counts_only_for_balanced() {
        let past = |short_of_memory, swaps_in_constantly| Past { short_of_memory, swaps_in_constantly };
        for past in [past(false, false), past(true, false), past(true, true)] {
            assert_eq!(Aim::of(Profile::Latency, past), Aim::Latency);
            assert_eq!(Aim::of(Profile::Capacity, past), Aim::Capacity);
        }
        assert_eq!(Aim::of(Profile::Balanced, past(false, false)), Aim::Balanced);
        assert_eq!(Aim::of(Profile::Balanced, past(true, false)), Aim::Capacity);
        assert_eq!(Aim::of(Profile::Balanced, past(true, true)), Aim::Latency, "there is room");
    }

    #[test]
    fn what_saves_nothing_is_left_out() {
        for ratio in [1.01, 1.0, 0.5, 0.0, f64::NAN] {
            assert!(score(Aim::Balanced, &row(1.0, 1.0, ratio)).is_err(), "{ratio}");
        }
        assert!(score(Aim::Balanced, &row(1.0, 1.0, 1.03)).is_ok());
    }
}
