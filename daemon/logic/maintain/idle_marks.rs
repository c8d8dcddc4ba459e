//! The age that the idle marks of a device stand for.
//!
//! Kernels differ. Most mark the pages older than an age and clear the marks of the others. Some (6.1 to 6.12.1) only
//! add marks, so that with marks for two hours, pages would be written to disk that should be kept for a day. Those
//! without access times can only mark all pages. One value covers all three: the latest time since which all marked
//! pages have been idle. On all kernels, an access clears the mark.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Moment, span};
use crate::proc::kernel_version;

/// How a kernel treats an age written to `idle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Marking {
    /// Marks older pages and clears the marks of younger ones.
    Exact,
    /// Marks older pages and keeps other marks.
    Additive,
    /// Rejects it: only all pages can be marked.
    Untracked,
}

/// Whether a kernel of this release (`/proc/sys/kernel/osrelease`) only adds marks although it supports algorithm
/// parameters: 6.12.0, on which kernels of distributions are based, and 6.12.1. Later ones have "zram: clear IDLE flag
/// in mark_idle()" (6.12.2, 6.13).
pub fn only_adds(osrelease: &str) -> bool {
    matches!(kernel_version(osrelease)[..], [6, 12] | [6, 12, 0 | 1, ..])
}

/// State of the marks of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Marks {
    /// Waking time since boot since which all marked pages have been idle; `None` if no page is marked.
    pub idle_since: Option<Duration>,
}

/// How to get marks for pages that have been idle for an age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Mark pages of at least this age, then process them.
    MarkOlder,
    /// The marks fit: process them.
    Ready,
    /// Mark all pages and come back later, when pages in use have lost their marks.
    MarkAll,
    /// The marks will fit after this much waking time.
    Wait(Duration),
}

impl Marks {
    /// Whether all marked pages have been idle for `age` of waking time.
    pub fn mean(self, age: Duration, now: Moment) -> bool {
        self.idle_since.is_some_and(|since| now.awake.saturating_sub(since) >= age)
    }

    /// The step needed before pages that have been idle for `age` can be processed.
    pub fn step(self, marking: Marking, age: Duration, now: Moment) -> Step {
        match marking {
            Marking::Exact => Step::MarkOlder,
            // There may be older marks for a shorter age.
            Marking::Additive => match self.idle_since {
                Some(since) if !self.mean(age, now) => {
                    Step::Wait(age.saturating_sub(now.awake.saturating_sub(since)))
                }
                _ => Step::MarkOlder,
            },
            Marking::Untracked => match self.idle_since {
                None => Step::MarkAll,
                Some(_) if self.mean(age, now) => Step::Ready,
                Some(since) => Step::Wait(age.saturating_sub(now.awake.saturating_sub(since))),
            },
        }
    }

    /// The state after marking pages older than `age`.
    #[must_use]
    pub fn marked_older(self, marking: Marking, age: Duration, now: Moment) -> Marks {
        let since = now.awake.saturating_sub(age);
        let idle_since = match (marking, self.idle_since) {
            (Marking::Additive, Some(before)) => before.max(since),
            _ => since,
        };
        Marks { idle_since: Some(idle_since) }
    }

    /// The state after marking all pages.
    #[must_use]
    pub fn marked_all(now: Moment) -> Marks {
        Marks { idle_since: Some(now.awake) }
    }
}

/// The idle age for a policy that shares the marks with another one. Unless the kernel marks anew for each, both must
/// use the longer age, because pages processed by one lose their marks. Also returns why the age was changed, if so.
pub fn shared_age(marking: Marking, own: Duration, other: Option<Duration>) -> (Duration, Option<String>) {
    let kernel = match marking {
        Marking::Exact => return (own, None),
        Marking::Additive => "keeps older idle marks",
        Marking::Untracked => "does not track access times",
    };
    match other.filter(|other| *other > own) {
        Some(other) => {
            let why = format!(
                "this kernel {kernel}, so recompression uses the idle age of write-back ({} instead of {})",
                span(other),
                span(own)
            );
            (other, Some(why))
        }
        None => (own, None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::maintain::idle_marks::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(hours: u32) -> Moment {
        Moment { boot: HOUR * hours, awake: HOUR * hours }
    }

    #[test]
    fn the_first_kernels_with_parameters_only_add_marks() {
        for release in ["6.12.0-55.el10.x86_64", "6.12.1", "6.12", "6.12-rc3\n"] {
            assert!(only_adds(release), "{release}");
        }
        for release in ["6.12.2", "6.12.107+deb13-amd64", "6.13.0", "7.2.13", "6.11.0", ""] {
            assert!(!only_adds(release), "{release}");
        }
    }

    #[test]
    fn without_times_of_access_the_full_age_is_waited_for() {
        let marks = Marks::default();
        assert_eq!(marks.step(Marking::Untracked, 2 * HOUR, at(1)), Step::MarkAll);
        let marks = Marks::marked_all(at(1));
        assert_eq!(marks.step(Marking::Untracked, 2 * HOUR, at(2)), Step::Wait(HOUR));
        assert_eq!(marks.step(Marking::Untracked, 2 * HOUR, at(3)), Step::Ready);
    }

    #[test]
    fn a_mark_made_for_two_hours_does_not_serve_twenty() {
        let marks = Marks::default().marked_older(Marking::Additive, 2 * HOUR, at(30));
        assert_eq!(marks.step(Marking::Additive, 20 * HOUR, at(30)), Step::Wait(18 * HOUR));
        assert_eq!(marks.step(Marking::Additive, 20 * HOUR, at(48)), Step::MarkOlder);
        // The same or a shorter age is safe.
        assert_eq!(marks.step(Marking::Additive, 2 * HOUR, at(31)), Step::MarkOlder);
        // Safe on a kernel that clears the marks of younger pages.
        assert_eq!(marks.step(Marking::Exact, 20 * HOUR, at(30)), Step::MarkOlder);
    }

    #[test]
    fn marks_of_younger_pages_count_on_kernels_that_keep_them() {
        let all = Marks::marked_all(at(30));
        assert_eq!(all.marked_older(Marking::Additive, 2 * HOUR, at(31)), all);
        assert_eq!(all.marked_older(Marking::Exact, 2 * HOUR, at(31)), Marks::marked_all(at(29)));
    }

    #[test]
    fn where_marks_are_shared_both_policies_take_the_longer_age() {
        assert_eq!(shared_age(Marking::Additive, 2 * HOUR, Some(20 * HOUR)).0, 20 * HOUR);
        assert_eq!(shared_age(Marking::Untracked, 2 * HOUR, Some(20 * HOUR)).0, 20 * HOUR);
        assert_eq!(shared_age(Marking::Additive, 2 * HOUR, None), (2 * HOUR, None));
        assert_eq!(shared_age(Marking::Additive, 2 * HOUR, Some(2 * HOUR)), (2 * HOUR, None));
        assert_eq!(shared_age(Marking::Exact, 2 * HOUR, Some(20 * HOUR)), (2 * HOUR, None));
    }

    proptest! {
        /// On every kind of kernel, a page is processed only after it was idle for the age of its policy.
        #[test]
        fn no_page_is_processed_too_early(
            kind in 0_usize..3,
            steps in prop::collection::vec((1_u32..120, any::<bool>(), 0_u32..8), 1..200),
        ) {
            let marking = [Marking::Exact, Marking::Additive, Marking::Untracked][kind];
            let minute = Duration::from_secs(60);
            let mut touched = [Duration::ZERO; 8];
            let mut marked = [false; 8];
            let mut marks = Marks::default();
            let mut now = Duration::ZERO;
            for (minutes, long, page) in steps {
                now += minute * minutes;
                touched[page as usize] = now;
                marked[page as usize] = false;
                let age = if long { HOUR * 20 } else { HOUR * 2 };
                let moment = Moment { boot: now, awake: now };
                let ready = match marks.step(marking, age, moment) {
                    Step::MarkOlder => {
                        for (mark, touched) in marked.iter_mut().zip(touched) {
                            let old = now.saturating_sub(touched) >= age;
                            *mark = old || (*mark && marking == Marking::Additive);
                        }
                        marks = marks.marked_older(marking, age, moment);
                        true
                    }
                    Step::Ready => true,
                    Step::MarkAll => {
                        marked = [true; 8];
                        marks = Marks::marked_all(moment);
                        false
                    }
                    Step::Wait(_) => false,
                };
                if ready {
                    prop_assert!(marks.mean(age, moment) || now < age);
                    for (mark, touched) in marked.iter().zip(touched) {
                        prop_assert!(!mark || now.saturating_sub(touched) >= age, "{now:?} {touched:?} {age:?}");
                    }
                }
            }
        }
    }
}
