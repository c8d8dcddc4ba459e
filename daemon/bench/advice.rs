//! Suggestions for `vm.page-cluster` and `vm.swappiness` from the same figures.

use std::time::Duration;

use super::score::Past;
use logic::proc::SwapLine;

/// Time of a read of 2^n pages, in nanoseconds, for each n from 0.
pub type ClusterTimes<'a> = &'a [f64];

/// Hit rate of swap read-ahead that is assumed until the machine's own is known.
pub const USUAL_HIT_RATE: f64 = 0.3;

/// Pages read ahead before [`hit_rate`] uses the machine's own counters.
const ENOUGH_READ_AHEAD: u64 = 10_000;

/// Hit rate of swap read-ahead: `swap_ra_hit` ÷ `swap_ra` of `/proc/vmstat`.
pub fn hit_rate(read_ahead: u64, hits: u64) -> f64 {
    if read_ahead < ENOUGH_READ_AHEAD { USUAL_HIT_RATE } else { (hits as f64 / read_ahead as f64).min(1.0) }
}

/// The `vm.page-cluster` (0 to 3) with the least time per useful page: of the 2^n pages of a request one is wanted, and
/// each other is of use with probability `hit_rate`. A larger value must be better by a tenth, because the program
/// waits for all pages.
pub fn page_cluster(times: ClusterTimes<'_>, hit_rate: f64) -> u32 {
    let mut best = (0, f64::INFINITY);
    for (n, time) in (0_u32..).zip(times.iter().take(4)) {
        let useful = 1.0 + hit_rate * (f64::from(1 << n) - 1.0);
        let cost = time / useful;
        if *time > 0.0 && cost < best.1 * 0.9 {
            best = (n, cost);
        }
    }
    best.0
}

/// `vm.swappiness` that weighs both kinds of reclaim by their cost: 200·r ÷ (1 + r) with r = read from disk ÷ read from
/// zram (Documentation/admin-guide/sysctl/vm.rst). Limited to 100 to 180, because reads of files are less random than
/// those of swap.
pub fn swappiness(disk_read_ns: f64, zram_read_ns: f64) -> Option<u32> {
    let ratio = disk_read_ns / zram_read_ns;
    if !ratio.is_finite() || ratio <= 0.0 {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Between 100 and 180.
    let value = (200.0 * ratio / (1.0 + ratio)).clamp(100.0, 180.0).round() as u32;
    Some(value)
}

/// Mean time of a read since boot in nanoseconds, from `/proc/diskstats`, of the disk with the most reads (RAM disks
/// excluded); `None` if there were too few. Fields 4 and 7: Documentation/admin-guide/iostats.rst.
pub fn disk_read_ns(diskstats: &str) -> Option<f64> {
    const ENOUGH: f64 = 1000.0;
    let busiest = diskstats.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let name = words.get(2)?;
        if ["zram", "ram", "loop"].iter().any(|memory| name.starts_with(memory)) {
            return None;
        }
        let (reads, milliseconds): (f64, f64) = (words.get(3)?.parse().ok()?, words.get(6)?.parse().ok()?);
        (reads >= ENOUGH && milliseconds > 0.0).then_some((reads, milliseconds))
    });
    let (reads, milliseconds) = busiest.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(milliseconds * 1e6 / reads)
}

/// A counter of `/proc/vmstat`; 0 if the kernel lacks it.
pub fn counter(vmstat: &str, name: &str) -> u64 {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    vmstat.lines().find_map(value).unwrap_or(0)
}

/// Share of the memory, as a divisor, that a machine has swapped out since boot if it counts as having been short of it.
const SHORT_SHARE: u64 = 4;
/// Pages swapped in per second since boot that are constant swapping: with zstd, about half a percent of a CPU.
const CONSTANTLY_PER_SECOND: u64 = 1000;
/// Least time since boot for that: starting programs is no habit.
const LONG_ENOUGH: Duration = Duration::from_secs(3600);

/// What a machine has done since boot, from `/proc/vmstat`, its memory, the time since boot and its swap. Swap has room while it is at
/// most half full.
pub fn past(
    vmstat: &str,
    page_size: u64,
    memory_bytes: u64,
    since_boot: Duration,
    swaps: &[SwapLine],
) -> Past {
    let out = counter(vmstat, "pswpout").saturating_mul(page_size);
    let per_second = counter(vmstat, "pswpin") / since_boot.as_secs().max(1);
    let sum = |of: fn(&SwapLine) -> u64| swaps.iter().map(of).sum::<u64>();
    let has_room = sum(|swap| swap.used_kib) <= sum(|swap| swap.size_kib) / 2;
    Past {
        short_of_memory: memory_bytes > 0 && out >= memory_bytes / SHORT_SHARE,
        swaps_in_constantly: since_boot >= LONG_ENOUGH && per_second >= CONSTANTLY_PER_SECOND && has_room,
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // The values are exact.
mod tests {
    use super::*;

    /// Published: 1.7, 3.0, 5.6, 10.7 µs for lz4 on the machine of the r/Fedora table.
    #[test]
    fn reading_ahead_pays_only_when_it_is_of_use() {
        let lz4 = [1700.0, 3000.0, 5600.0, 10_700.0];
        assert_eq!(page_cluster(&lz4, USUAL_HIT_RATE), 0);
        assert_eq!(page_cluster(&lz4, 1.0), 3, "all pages read ahead are used: 21 % less per page");
        let dear_requests = [10_000.0, 11_000.0, 13_000.0, 17_000.0];
        assert_eq!(page_cluster(&dear_requests, 0.9), 3);
        assert_eq!(page_cluster(&[], 1.0), 0);
        assert_eq!(hit_rate(100, 100), USUAL_HIT_RATE);
        assert_eq!(hit_rate(20_000, 5_000), 0.25);
    }

    /// The kernel's documentation: 133 for twice the cost. Nine times gives 180.
    #[test]
    fn swappiness_follows_the_kernels_own_model() {
        assert_eq!(swappiness(2.0, 1.0), Some(133));
        assert_eq!(swappiness(9.0, 1.0), Some(180));
        assert_eq!(swappiness(90_000.0, 3000.0), Some(180));
        assert_eq!(swappiness(1000.0, 3000.0), Some(100));
        assert_eq!(swappiness(0.0, 3000.0), None);
        assert_eq!(swappiness(1.0, 0.0), None);
    }

    #[test]
    fn disks_are_told_from_memory() {
        let text = "   8       0 sda 2000 0 64000 500 100 0 800 90 0 400 590\n   8       1 sda1 1500 0 64000 400 100 0 800 90 0 400 590\n 252 0 zram0 90000 0 1 1 1 0 1 1 0 1 1\n";
        assert_eq!(disk_read_ns(text), Some(250_000.0));
        assert_eq!(disk_read_ns("   8       0 sda 20 0 64000 500 100 0 800 90 0 400 590\n"), None);
        assert_eq!(disk_read_ns("nonsense"), None);
    }

    #[test]
    fn a_machine_has_been_short_after_swapping_out_a_quarter_of_its_memory() {
        let short = |vmstat: &str, memory| past(vmstat, 4096, memory, Duration::ZERO, &[]).short_of_memory;
        assert!(short(&format!("pswpin 5\npswpout {}\n", 1 << 16), 1 << 30));
        assert!(!short(&format!("pswpin 5\npswpout {}\n", (1 << 16) - 1), 1 << 30));
        assert!(!short("", 1 << 30) && !short("pswpout 9\n", 0));
    }

    #[test]
    fn constant_swapping_is_a_thousand_pages_a_second_for_hours_while_swap_has_room() {
        let constantly = |per_second: u64, hours: u64, used_kib| {
            let swap = SwapLine { path: "/dev/zram0".into(), size_kib: 1000, used_kib, priority: 100 };
            let since_boot = Duration::from_secs(hours * 3600);
            let vmstat = format!("pswpin {}\n", per_second * since_boot.as_secs());
            past(&vmstat, 4096, 1 << 30, since_boot, &[swap]).swaps_in_constantly
        };
        assert!(constantly(1000, 1, 500) && constantly(5000, 100, 0));
        assert!(!constantly(999, 1, 500), "less");
        assert!(!constantly(1000, 1, 501), "no room");
        assert!(!constantly(1000, 0, 0), "just booted");
    }
}
