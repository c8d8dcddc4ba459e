//! Frequent and cold pages beside each other, for `tests/bench/tiers`.

use std::path::Path;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::{Set, Stalls, stamp};

/// One access in this many is to a cold page.
const COLD: u64 = 2000;

/// Fills COLD_MIB and then HOT_MIB with pages of a mix. Accesses them for MINUTES, nearly always frequent ones. Prints how long it took
/// to fill them, then figures of the first and of the last minute, each as one line of JSON.
pub fn tiers(file: &Path, shares: [u64; 4], [cold_mib, hot_mib, minutes]: [u64; 3], seed: u64) {
    let [mut cold, mut hot] = [cold_mib, hot_mib].map(Set::new);
    let mut stalls = Stalls::default();
    let begun = Instant::now();
    for set in [&mut cold, &mut hot] {
        set.fill(file, shares, seed, &mut stalls);
    }
    println!("{{\"fill_s\":{:.1}}}", begun.elapsed().as_secs_f64());
    let mut random = Rng::with_seed(seed);
    for minute in 1..=minutes {
        let mut times = [Times::new(), Times::new()];
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(60) {
            for _ in 0..COLD {
                let is_cold = random.u64(..COLD) == 0;
                let set = if is_cold { &mut cold } else { &mut hot };
                let number = random.u64(..set.count);
                let writes = random.u64(..10) < 3;
                let access = Instant::now();
                let page = set.page(number);
                if writes {
                    stamp(page, number, minute);
                } else {
                    std::hint::black_box(page[0]);
                }
                times[usize::from(is_cold)].add(access.elapsed());
            }
        }
        if minute == 1 || minute == minutes {
            print(&times, started.elapsed());
        }
    }
}

/// MiB of memory that zram0 and zswap take.
fn compressed_mib() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let zram = read("/sys/block/zram0/mm_stat").split_whitespace().nth(2).map_or(0, crate::number);
    let zswap = read("/proc/meminfo")
        .lines()
        .find_map(|line| line.strip_prefix("Zswap:"))
        .map_or(0, |kib| crate::number(kib.trim_end_matches("kB").trim()));
    (zram >> 20) + (zswap >> 10)
}

/// How often each time was measured, to 3 %. A list of all would take more memory than the pages.
struct Times([u64; 64 * Self::PARTS]);

impl Times {
    /// Parts of each power of two, in nanoseconds.
    const PARTS: usize = 32;

    fn new() -> Times {
        Times([0; 64 * Self::PARTS])
    }

    fn add(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        let power = nanos.ilog2() as usize;
        let part = ((nanos as f64 / (1_u64 << power) as f64 - 1.0) * Self::PARTS as f64) as usize;
        self.0[power * Self::PARTS + part.min(Self::PARTS - 1)] += 1;
    }

    fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The time in microseconds that this share of all does not exceed, apart from the rounding.
    fn quantile(&self, share: f64) -> f64 {
        let rank = (self.count() as f64 * share) as u64;
        let mut below = 0;
        let found = self.0.iter().position(|count| {
            below += count;
            below > rank
        });
        let Some(found) = found else { return 0.0 };
        let (power, part) = (found / Self::PARTS, found % Self::PARTS);
        (1_u64 << power) as f64 * (1.0 + part as f64 / Self::PARTS as f64) / 1e3
    }
}

fn print(times: &[Times; 2], took: Duration) {
    let per_second = times[0].count() as f64 / took.as_secs_f64();
    let [hot, cold] = times.each_ref().map(|times| [0.5, 0.99, 0.999].map(|share| times.quantile(share)));
    println!(
        "{{\"hot_per_s\":{per_second:.0},\"hot_p50_us\":{:.1},\"hot_p99_us\":{:.1},\"hot_p999_us\":{:.1},\"cold_p50_us\":{:.1},\"cold_p99_us\":{:.1},\"memory_mib\":{}}}",
        hot[0],
        hot[1],
        hot[2],
        cold[0],
        cold[1],
        compressed_mib(),
    );
}
