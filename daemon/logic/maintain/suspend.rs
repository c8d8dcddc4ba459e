//! Converts an idle age in waking time to the kernel's clock, which includes suspend.
//!
//! The kernel counts time in suspend as idle time. Comparing its two clocks from time to time tells how long the
//! machine was suspended, and roughly when. Where this is uncertain, pages are taken for younger than they are.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Moment;

/// Maximum number of records. At one per hour, and with those merged between which there was no suspend, these last
/// many days.
const MOST: usize = 64;

/// Times at which the clocks were compared, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct History {
    seen: VecDeque<Moment>,
}

impl History {
    /// Records the clocks; returns whether the machine was suspended since the last time.
    pub fn note(&mut self, now: Moment) -> bool {
        let slept = now.suspended().saturating_sub(self.last().suspended()) > SLEEP;
        // Of a period without suspend, its two ends are sufficient.
        let len = self.seen.len();
        if len >= 2 && !slept && same(self.seen[len - 2], self.seen[len - 1]) {
            self.seen.pop_back();
        }
        self.seen.push_back(now);
        while self.seen.len() > MOST {
            self.seen.pop_front();
        }
        slept
    }

    fn last(&self) -> Moment {
        self.seen.back().copied().unwrap_or_default()
    }

    /// The age by the kernel's clock for `awake` of waking time. It is too short by at most the difference that does not
    /// count as suspend.
    pub fn boottime_age(&self, now: Moment, awake: Duration) -> Duration {
        let Some(target) = now.awake.checked_sub(awake) else {
            // Longer than the total waking time: no page is that old.
            return now.boot.saturating_add(awake);
        };
        // Both clocks start at 0, which serves as the first record.
        let before = self.seen.iter().rev().find(|seen| seen.awake <= target);
        let before = before.copied().unwrap_or_default();
        if same(before, now) {
            return awake;
        }
        // Assume that the suspend since that record came as late as possible.
        awake + now.suspended().saturating_sub(before.suspended())
    }
}

/// The clocks are read one after the other; a smaller difference does not count as suspend.
const SLEEP: Duration = Duration::from_secs(1);

fn same(a: Moment, b: Moment) -> bool {
    b.suspended().abs_diff(a.suspended()) <= SLEEP
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::maintain::suspend::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(awake: u32, suspended: u32) -> Moment {
        Moment { boot: HOUR * (awake + suspended), awake: HOUR * awake }
    }

    #[test]
    fn without_suspend_both_clocks_agree() {
        let mut history = History::default();
        for hour in 1..200 {
            assert!(!history.note(at(hour, 0)));
        }
        assert_eq!(history.boottime_age(at(200, 0), 20 * HOUR), 20 * HOUR);
        assert_eq!(history.seen.len(), 2, "nothing happened between the first and the last");
    }

    #[test]
    fn a_night_in_suspend_makes_no_page_old() {
        let mut history = History::default();
        history.note(at(10, 0));
        assert!(history.note(at(11, 8)), "it slept");
        // Two hours of waking time ago was before the night.
        assert_eq!(history.boottime_age(at(11, 8), 2 * HOUR), 10 * HOUR);
        assert!(!history.note(at(14, 8)), "not since");
        assert_eq!(history.boottime_age(at(14, 8), 2 * HOUR), 2 * HOUR);
    }

    #[test]
    fn the_last_nights_are_remembered() {
        let mut history = History::default();
        for day in 1..=100 {
            history.note(at(day, day));
        }
        let days = history.seen.iter().map(|seen| seen.awake.as_secs() / 3600);
        assert!(days.eq(37..=100), "{history:?}");
    }

    #[test]
    fn reading_the_clocks_one_after_the_other_adds_no_time() {
        let second = Duration::from_secs(1);
        for suspended in [Duration::ZERO, HOUR] {
            let apart = |awake: u32, micros| Moment {
                boot: suspended + second * awake,
                awake: second * awake + Duration::from_micros(micros),
            };
            let mut history = History::default();
            history.note(apart(10, 900));
            history.note(apart(60, 300));
            // The caller rounds up: a microsecond more would select pages that have been idle for a second more.
            assert_eq!(history.boottime_age(apart(61, 100), 2 * second), 2 * second);
            assert_eq!(history.boottime_age(apart(61, 700), 2 * second), 2 * second);
        }
    }

    #[test]
    fn more_than_a_second_between_the_clocks_is_suspend() {
        let mut history = History::default();
        for (micros, expected) in [(1_000_000, false), (2_000_000, false), (3_000_001, true)] {
            let now = Moment { boot: HOUR + Duration::from_micros(micros), awake: HOUR };
            assert_eq!(history.note(now), expected, "{micros}");
        }
    }

    #[test]
    fn what_is_older_than_the_machine_is_marked_by_nothing() {
        assert!(History::default().boottime_age(at(1, 5), 2 * HOUR) > 6 * HOUR);
    }

    proptest! {
        /// For any history, a page older than the result by the kernel's clock was idle for at least the requested
        /// waking time.
        #[test]
        fn pages_never_seem_older_than_they_are(
            steps in prop::collection::vec((1_u32..300, 0_u32..300, any::<bool>()), 1..150),
            minutes in 1_u32..3000,
        ) {
            let minute = Duration::from_secs(60);
            let mut now = Moment::default();
            let mut history = History::default();
            let mut line = vec![now];
            for (awake, suspended, noted) in steps {
                now = Moment { boot: now.boot + minute * awake, awake: now.awake + minute * awake };
                line.push(now);
                now.boot += minute * suspended;
                line.push(now);
                if noted {
                    history.note(now);
                }
            }
            history.note(now);
            let awake = minute * minutes;
            let age = history.boottime_age(now, awake);
            prop_assert!(history.seen.len() <= MOST);
            if let Some(then) = now.boot.checked_sub(age) {
                // The true waking time at that moment.
                let after = line.iter().find(|seen| seen.boot >= then).copied().unwrap_or(now);
                let was_awake = after.awake.saturating_sub(after.boot.saturating_sub(then));
                let was_awake = was_awake.max(line.iter().rev().find(|seen| seen.boot <= then).map_or(Duration::ZERO, |seen| seen.awake));
                prop_assert!(now.awake.saturating_sub(was_awake) >= awake, "{age:?}");
            }
        }
    }
}
