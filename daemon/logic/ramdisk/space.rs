//! When to warn about a file system that is filling up, in bytes or inodes, and when to check it again.

use std::time::Duration;

/// Percentages in use that cause a warning.
const LEVELS: [u32; 2] = [95, 80];
/// Percentage points below a level at which it is reset.
const HYSTERESIS: u32 = 5;
/// Maximum and minimum time between two checks.
const LONGEST: Duration = Duration::from_secs(30);
const SHORTEST: Duration = Duration::from_secs(1);

/// State of one file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watch {
    /// The highest level warned about; 0 for none.
    told: u32,
    /// Use at the last check, and its time.
    last: Option<(u64, Duration)>,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Percentage in use, if a warning is due.
    pub low: Option<u32>,
    /// Time until the next check.
    pub again: Duration,
}

impl Watch {
    /// Checks a file system where `used` of `total` are in use, at time `now`.
    pub fn look(&mut self, used: u64, total: u64, now: Duration) -> Look {
        let percent = used.saturating_mul(100).checked_div(total).unwrap_or(0);
        let percent = u32::try_from(percent).unwrap_or(100);
        if percent + HYSTERESIS < self.told {
            self.told = LEVELS.into_iter().find(|level| percent + HYSTERESIS >= *level).unwrap_or(0);
        }
        let level = LEVELS.into_iter().find(|level| percent >= *level).unwrap_or(0);
        let low = (level > self.told).then_some(percent);
        self.told = self.told.max(level);
        let next = LEVELS
            .into_iter()
            .rev()
            .find(|level| percent < *level)
            .map(|level| total.saturating_mul(u64::from(level)) / 100);
        let again = next.map_or(LONGEST, |next| self.until(used, next, now));
        self.last = Some((used, now));
        Look { low, again }
    }

    /// Half of the time in which use grows to `next`, at the rate since the last check.
    fn until(&self, used: u64, next: u64, now: Duration) -> Duration {
        let Some((before, then)) = self.last else { return SHORTEST };
        let (grown, time) = (used.saturating_sub(before), now.saturating_sub(then));
        if grown == 0 {
            return LONGEST;
        }
        let left = next.saturating_sub(used) as f64 / grown as f64 * time.as_secs_f64();
        Duration::try_from_secs_f64(left / 2.0).unwrap_or(LONGEST).clamp(SHORTEST, LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::space::*;

    #[test]
    fn each_level_is_told_once_until_it_was_left() {
        let mut watch = Watch::default();
        let mut tell = |used| watch.look(used, 1000, Duration::ZERO).low;
        for (used, told) in [
            (0, None),
            (799, None),
            (800, Some(80)),
            (940, None),
            (750, None),
            (810, None),
            (749, None),
            (800, Some(80)),
            (990, Some(99)),
            (1000, None),
            (910, None),
            (950, None),
            (899, None),
            (960, Some(96)),
            (100, None),
            (1000, Some(100)),
            (750, None),
            (800, None),
            (1000, Some(100)),
            (749, None),
            (800, Some(80)),
        ] {
            assert_eq!(tell(used), told, "at {used}");
        }
    }

    #[test]
    fn what_fills_fast_is_looked_at_often() {
        let second = Duration::from_secs(1);
        let mut watch = Watch::default();
        assert_eq!(watch.look(0, 1000, Duration::ZERO).again, SHORTEST);
        assert_eq!(watch.look(0, 1000, second).again, LONGEST, "nothing happens");
        assert_eq!(watch.look(100, 1000, 11 * second).again, LONGEST, "70 seconds are left");
        assert_eq!(watch.look(200, 1000, 12 * second).again, 3 * second, "6 seconds are left");
        assert_eq!(watch.look(790, 1000, 13 * second).again, SHORTEST);
        assert_eq!(watch.look(800, 1000, 23 * second).again, LONGEST, "150 seconds are left to 95 %");
        assert_eq!(watch.look(0, 0, 14 * second).low, None);
    }
}
