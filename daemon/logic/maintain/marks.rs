//! What the idle marks of a device can be trusted to mean.
//!
//! Kernels differ: most mark the pages that are older than an age and clear the marks of the others; some (6.1 to 6.12.1) only
//! add marks, so that one made for two hours would let pages be written to a disk that should have waited a day; those without
//! times of access can only mark everything. One number covers all three: the latest moment since when every marked page has
//! been idle. Touching a page clears its mark everywhere.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Moment, span};
use crate::proc::kernel_version;

/// What writing an age to `idle` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Marking {
    /// It marks older pages and clears the marks of younger ones.
    Exact,
    /// It marks older pages and leaves other marks as they are.
    Additive,
    /// It is refused: only all pages can be marked.
    Untracked,
}

/// Whether a kernel of this release (`/proc/sys/kernel/osrelease`) only adds marks though it takes parameters of algorithms: 6.12.0, from which
/// distributions have derived theirs, and 6.12.1. The mark is cleared since "zram: clear IDLE flag in mark_idle()" (6.12.2, 6.13).
pub fn only_adds(osrelease: &str) -> bool {
    matches!(kernel_version(osrelease)[..], [6, 12] | [6, 12, 0 | 1, ..])
}

/// The marks of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Marks {
    /// Waking time since boot from which on every marked page has been idle; nothing while no page is marked.
    pub idle_since: Option<Duration>,
}

/// What to do so that the marked pages are those that are idle for an age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Mark pages that are at least as old, then go on.
    MarkOlder,
    /// The marks already mean that: go on.
    Ready,
    /// Mark all pages and come back when they have had time to be touched.
    MarkAll,
    /// The marks come to mean that after this much waking time.
    Wait(Duration),
}

impl Marks {
    /// Whether every marked page has been idle for `age` of waking time.
    pub fn mean(self, age: Duration, now: Moment) -> bool {
        self.idle_since.is_some_and(|since| now.awake.saturating_sub(since) >= age)
    }

    /// What has to be done before pages that are idle for `age` can be processed.
    pub fn step(self, marking: Marking, age: Duration, now: Moment) -> Step {
        match marking {
            Marking::Exact => Step::MarkOlder,
            // An older mark of a shorter age may still be there.
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

    /// The marks after pages older than `age` were marked.
    #[must_use]
    pub fn marked_older(self, marking: Marking, age: Duration, now: Moment) -> Marks {
        let since = now.awake.saturating_sub(age);
        let idle_since = match (marking, self.idle_since) {
            (Marking::Additive, Some(before)) => before.max(since),
            _ => since,
        };
        Marks { idle_since: Some(idle_since) }
    }

    /// The marks after all pages were marked.
    #[must_use]
    pub fn marked_all(now: Moment) -> Marks {
        Marks { idle_since: Some(now.awake) }
    }
}

/// The age that two policies use which share the marks: where marks are not made anew for each, both have to take the longer one, because
/// what one of them processes is not marked any more.
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

    use crate::maintain::marks::*;

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
        // The same age again, or a shorter one, is no trap.
        assert_eq!(marks.step(Marking::Additive, 2 * HOUR, at(31)), Step::MarkOlder);
        // A kernel that clears the marks of younger pages has no such trap.
        assert_eq!(marks.step(Marking::Exact, 20 * HOUR, at(30)), Step::MarkOlder);
    }

    #[test]
    fn where_marks_are_shared_both_policies_take_the_longer_age() {
        assert_eq!(shared_age(Marking::Additive, 2 * HOUR, Some(20 * HOUR)).0, 20 * HOUR);
        assert_eq!(shared_age(Marking::Untracked, 2 * HOUR, Some(20 * HOUR)).0, 20 * HOUR);
        assert_eq!(shared_age(Marking::Additive, 2 * HOUR, None), (2 * HOUR, None));
        assert_eq!(shared_age(Marking::Exact, 2 * HOUR, Some(20 * HOUR)), (2 * HOUR, None));
    }

    proptest! {
        /// A page that is processed was idle for the age of its policy, on every kind of kernel.
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
