//! Decides when stored pages are recompressed or written to disk: one question per file, each a function of
//! observations and time that also returns a reason.
//!
//! Nothing here reads a clock. The caller passes times as [`Moment`]s, so that tests can simulate a month in a second.

pub mod age;
pub mod alarm;
pub mod chunk;
pub mod filling;
pub mod gate;
pub mod idle_marks;
pub mod incompressible;
pub mod pass;
pub mod pressure;
pub mod recompress;
pub mod suspend;
pub mod taken_in;
pub mod tighter;
pub mod writeback;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration;

/// A time on the two clocks of the kernel that are never set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Moment {
    /// Since boot, including suspend (`CLOCK_BOOTTIME`): the kernel's clock for the age of pages.
    pub boot: Duration,
    /// Since boot, excluding suspend (`CLOCK_MONOTONIC`).
    pub awake: Duration,
}

impl Moment {
    /// Total time in suspend since boot.
    pub fn suspended(self) -> Duration {
        self.boot.saturating_sub(self.awake)
    }
}

/// What triggered a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    Timer,
    /// Memory pressure.
    Pressure(pressure::Level),
    /// Compressed swap takes much memory, and more arrives.
    Filling,
    Request,
}

impl Cause {
    /// The level of memory pressure.
    pub fn level(self) -> pressure::Level {
        match self {
            Cause::Pressure(level) => level,
            Cause::Timer | Cause::Filling | Cause::Request => pressure::Level::None,
        }
    }

    /// Whether memory is short, so that its users are not spared.
    pub fn is_short(self) -> bool {
        self == Cause::Filling || self.level() > pressure::Level::None
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cause::Timer => f.write_str("timer"),
            Cause::Pressure(level) => write!(f, "pressure={}", level.word()),
            Cause::Filling => f.write_str("filling"),
            Cause::Request => f.write_str("request"),
        }
    }
}

impl std::str::FromStr for Cause {
    type Err = String;

    fn from_str(text: &str) -> Result<Cause, String> {
        match text {
            "timer" => Ok(Cause::Timer),
            "filling" => Ok(Cause::Filling),
            "request" => Ok(Cause::Request),
            other => match other.strip_prefix("pressure=").and_then(pressure::Level::of_word) {
                Some(level) => Ok(Cause::Pressure(level)),
                None => {
                    Err(format!("`{other}` is no reason; write timer, request, filling or pressure=LEVEL"))
                }
            },
        }
    }
}

/// Why it is too soon for another run of the timer, `ago` being the time since the last run. Other runs are due when they begin.
pub fn too_soon(ago: Option<Duration>, cause: Cause, shortest: Duration) -> Option<String> {
    let ago = ago.filter(|ago| cause == Cause::Timer && *ago < shortest)?;
    Some(format!("the last run was only {} ago", span(ago)))
}

/// A time span for people, without seconds if there are hours.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    duration::text(Duration::from_secs(if seconds >= 3600 { seconds / 60 * 60 } else { seconds }))
}

#[cfg(test)]
mod tests {
    use crate::maintain::*;

    #[test]
    fn only_runs_of_the_timer_keep_their_distance_by_themselves() {
        let [almost, shortest] = [1799, 1800].map(Duration::from_secs);
        let runs = |ago, cause| too_soon(ago, cause, shortest).is_none();
        assert!(!runs(Some(almost), Cause::Timer) && runs(Some(shortest), Cause::Timer));
        assert!(runs(None, Cause::Timer) && runs(Some(almost), Cause::Request));
    }

    #[test]
    fn causes_are_read_back() {
        for text in ["timer", "request", "filling", "pressure=severe"] {
            assert_eq!(text.parse::<Cause>().map(|cause| cause.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "pressure", "pressure=some", "none"] {
            assert!(text.parse::<Cause>().is_err(), "{text}");
        }
    }
}
