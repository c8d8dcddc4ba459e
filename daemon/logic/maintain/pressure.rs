//! Memory pressure: levels with hysteresis, from the time that tasks waited for memory.
//!
//! The kernel counts the time in which some task, or all tasks at once, waited for memory (PSI). A level is entered as
//! soon as the share of this time reaches its threshold, and left when the share has been below half of that for a
//! while.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::span;
pub use crate::psi::Level;
use crate::psi::{Pressure, Stall};

/// The level and its reason, as the daemon writes them to a file. Without the file, there is no pressure.
pub fn noted(text: &str) -> (Level, &str) {
    let (level, reason) = text.split_once('\n').unwrap_or((text, ""));
    (Level::of_word(level.trim()).unwrap_or_default(), reason)
}

/// Percentages of time at which the levels begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thresholds {
    /// Of time in which some task waits.
    pub moderate: u8,
    /// Of time in which all tasks wait.
    pub severe: u8,
    /// Of time in which all tasks wait.
    pub critical: u8,
}

/// What the daemon does about memory pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// When the levels begin.
    pub thresholds: Thresholds,
    /// Whether to write back pages of swap that fills, see [`super::filling`].
    pub writes_back: bool,
    /// Whether to start runs of maintenance at all. Otherwise the levels are only reported.
    pub runs: bool,
}

/// The remedy if the kernel lacks PSI (psi=0, or CONFIG_PSI_DEFAULT_DISABLED without psi=1).
pub const UNKNOWN_REMEDY: &str = "boot with psi=1, or take another kernel";

/// As in ChromeOS: 200 ms of `some`, 50 ms and 500 ms of `full` per second.
pub const DEFAULT: Thresholds = Thresholds { moderate: 20, severe: 5, critical: 50 };

/// Time for which the share must be below half of a threshold before the level is left.
const CALM: Duration = Duration::from_secs(10);
/// Interval between two readings of the counters.
pub const LOOK: Duration = Duration::from_secs(2);

/// Tracks the level.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Gauge {
    /// The present level.
    pub level: Level,
    last: Option<(Duration, Pressure)>,
    /// Since when the share has been low enough for a lower level, and the highest such level.
    calm: Option<(Duration, Level)>,
}

/// A change of the level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The previous level.
    pub from: Level,
    /// The new level.
    pub to: Level,
    pub reason: String,
}

impl Gauge {
    /// Evaluates `/proc/pressure/memory` at time `now` (of a clock that is never set); returns a change of the level.
    pub fn look(&mut self, thresholds: Thresholds, now: Duration, pressure: Pressure) -> Option<Change> {
        let (then, before) = self.last.replace((now, pressure))?;
        let passed = now.saturating_sub(then);
        if passed.is_zero() {
            self.last = Some((then, before));
            return None;
        }
        let share = |now: Stall, before: Stall| {
            // The counter is updated with a delay, so it may exceed the time that has passed.
            (now.total.saturating_sub(before.total).as_secs_f64() / passed.as_secs_f64() * 100.0).min(100.0)
        };
        let (some, full) = (share(pressure.some, before.some), share(pressure.full, before.full));
        let calls_for = |factor: f64| {
            let reaches = |share: f64, threshold: u8| share >= (f64::from(threshold) * factor).max(0.1);
            if reaches(full, thresholds.critical) {
                Level::Critical
            } else if reaches(full, thresholds.severe) {
                Level::Severe
            } else if reaches(some, thresholds.moderate) {
                Level::Moderate
            } else {
                Level::None
            }
        };
        let measured = format!("some {some:.0} %, full {full:.0} % of {}", short(passed));
        let entered = calls_for(1.0);
        if entered > self.level {
            self.calm = None;
            return Some(self.enter(entered, format!("tasks waited for memory: {measured}")));
        }
        let kept = calls_for(0.5);
        if kept >= self.level {
            self.calm = None;
            return None;
        }
        let (since, highest) = match self.calm {
            Some((since, highest)) => (since, highest.max(kept)),
            None => (then, kept),
        };
        self.calm = Some((since, highest));
        let calm = now.saturating_sub(since);
        if calm < CALM {
            return None;
        }
        // Lower levels were calm for the same time.
        self.calm = None;
        Some(self.enter(highest, format!("calm for {}: {measured}", span(calm))))
    }

    fn enter(&mut self, level: Level, reason: String) -> Change {
        let from = std::mem::replace(&mut self.level, level);
        Change { from, to: level, reason }
    }
}

fn short(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// The trigger in `/proc/pressure/memory`: 2 ms of waiting in 2 s; [`Gauge`] determines the level. Without `CAP_SYS_RESOURCE`, the
/// kernel accepts only multiples of two seconds, since Linux 6.5 (Documentation/accounting/psi.rst). The threshold is far below
/// that of every level because swap can fill up without much waiting, and needs to be checked then. The kernel triggers at most
/// once in two seconds, and never without reclaim.
pub const TRIGGER: &str = "some 2000 2000000";

/// The machine is short of memory if less than this part of it is available, as a divisor: a quarter, because page cache in use counts as
/// available.
const PART: u64 = 4;

/// Whether the machine is short of memory, of `total` bytes. Tasks also wait, and pages arrive in swap, if only a control group is at its
/// own limit. Counters of reclaimed pages do not tell: these arrivals displace page cache, and Linux 7.2 counts for the machine what was
/// reclaimed for a group.
pub fn is_of_machine(available: u64, total: u64) -> bool {
    available < total / PART
}

/// Minimum time between two runs at this level.
const fn back_off(level: Level) -> Duration {
    Duration::from_secs(match level {
        Level::None => 0,
        Level::Moderate => 600,
        Level::Severe => 120,
        Level::Critical => 30,
    })
}

/// Whether a run is due at this level; `last` has the level and the time of the last one.
pub fn is_due(last: Option<(Level, Duration)>, level: Level, now: Duration) -> bool {
    last.is_none_or(|(before, then)| before < level || now.saturating_sub(then) >= back_off(level))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::maintain::pressure::*;

    /// Feeds shares of `some` and `full` in percent, one pair per two seconds; returns the levels entered.
    fn levels(shares: &[(u64, u64)]) -> Vec<Level> {
        let mut gauge = Gauge::default();
        let (mut now, mut pressure) = (Duration::ZERO, Pressure::default());
        let mut seen = Vec::new();
        gauge.look(DEFAULT, now, pressure);
        for (some, full) in shares {
            now += LOOK;
            pressure.some.total += LOOK * u32::try_from(*some).unwrap() / 100;
            pressure.full.total += LOOK * u32::try_from(*full).unwrap() / 100;
            seen.extend(gauge.look(DEFAULT, now, pressure).map(|change| change.to));
        }
        seen
    }

    #[test]
    fn a_ramp_rises_and_falls_once() {
        let mut shares = vec![(0, 0), (15, 0), (22, 1), (30, 3), (40, 8), (60, 30), (90, 60), (90, 80)];
        shares.extend([(90, 60), (60, 30), (40, 8), (22, 1), (15, 0)]);
        shares.extend([(0, 0); 40]);
        let rise = [Level::Moderate, Level::Severe, Level::Critical];
        let seen = levels(&shares);
        assert_eq!(seen[..3], rise);
        assert!(seen[3..].windows(2).all(|pair| pair[0] > pair[1]), "{seen:?}");
        assert_eq!(seen.last(), Some(&Level::None));
    }

    #[test]
    fn a_level_begins_at_its_threshold_and_ends_after_ten_seconds_below_half_of_it() {
        for (below, at, half, less, level, then) in [
            ((19, 4), (20, 4), (10, 2), (9, 2), Level::Moderate, Level::None),
            ((19, 4), (19, 5), (19, 3), (19, 2), Level::Severe, Level::Moderate),
            ((49, 49), (50, 50), (25, 25), (24, 24), Level::Critical, Level::Severe),
        ] {
            assert!(!levels(&[below]).contains(&level), "{level:?}");
            let after = |share, times| levels(&[vec![at], vec![share; times]].concat());
            assert_eq!(after(half, 10), [level]);
            assert_eq!((after(less, 4), after(less, 5)), (vec![level], vec![level, then]));
        }
    }

    #[test]
    fn what_goes_up_and_down_around_a_threshold_changes_nothing() {
        let shares: Vec<(u64, u64)> =
            (0..200).map(|step| if step % 2 == 0 { (25, 0) } else { (12, 0) }).collect();
        assert_eq!(levels(&shares), [Level::Moderate]);
        let mut shares = shares;
        shares.extend([(0, 0); 6]);
        assert_eq!(levels(&shares), [Level::Moderate, Level::None]);
    }

    #[test]
    fn runs_keep_their_distance_unless_memory_has_become_shorter() {
        let [moderate, severe] = [Level::Moderate, Level::Severe];
        let runs = |last: Level, seconds: u64, level: Level| {
            is_due(Some((last, Duration::from_secs(7))), level, Duration::from_secs(7 + seconds))
        };
        assert!(runs(moderate, 4, severe));
        assert!(!runs(moderate, 599, moderate) && runs(moderate, 600, moderate));
        // After a run at a higher level, none is needed at a lower one.
        assert!(!runs(severe, 300, moderate) && runs(severe, 300, severe));
        assert!(is_due(None, moderate, Duration::ZERO));
    }

    #[test]
    fn one_trigger_wakes_for_all_levels() {
        let words: Vec<u64> = TRIGGER.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [threshold, window] = words[..] else { panic!("{TRIGGER}") };
        assert_eq!(Duration::from_micros(window), LOOK);
        assert!(threshold < window / 100, "the lowest level that can be asked for begins at 1 %");
    }

    proptest! {
        /// For any input, calm ends the pressure, and no level is entered without reaching its threshold.
        #[test]
        fn calm_always_ends_in_no_pressure(shares in prop::collection::vec((0_u64..100, 0_u64..100), 0..60)) {
            let mut shares: Vec<(u64, u64)> = shares.into_iter().map(|(some, full)| (some.max(full), full)).collect();
            let worst = shares.iter().map(|(some, full)| match (some, full) {
                (_, 50..) => Level::Critical,
                (_, 5..) => Level::Severe,
                (20.., _) => Level::Moderate,
                _ => Level::None,
            }).max().unwrap_or_default();
            let seen = levels(&shares);
            prop_assert_eq!(seen.iter().copied().max().unwrap_or_default(), worst);
            shares.extend([(0, 0); 20]);
            prop_assert_eq!(levels(&shares).last().copied().unwrap_or_default(), Level::None);
        }
    }
}
