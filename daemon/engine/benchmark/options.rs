//! Options of a benchmark run.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::sample::Source;
use crate::work::Stopped;
use logic::benchmark::score::Profile;
use logic::benchmark::verdict::Before;
use logic::device::algorithm::Algorithm;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Only these algorithms, instead of all that are worth it.
    pub algorithms: Vec<Algorithm>,
    /// Where the pages come from.
    pub source: Source,
    /// What the owner wants.
    pub profile: Profile,
    /// Reads of 2^n pages are measured for these n: of the verdict alone, or of every algorithm.
    pub page_clusters: Vec<u32>,
    /// See `page_clusters`.
    pub every_cluster: bool,
    /// Threads for throughput; 0 is one per CPU.
    pub threads: usize,
    /// Nobody waits for it: with the lowest priority, and only while nothing else wants the machine.
    pub idle: bool,
    /// How long it may take.
    pub budget: Duration,
    /// Numbers that the configuration has for devices.
    pub configured: BTreeSet<u32>,
    /// What was chosen before.
    pub before: Before,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            algorithms: Vec::new(),
            source: Source::default(),
            profile: Profile::default(),
            page_clusters: vec![0, 1, 2, 3],
            every_cluster: false,
            threads: 0,
            idle: false,
            budget: BUDGET,
            configured: BTreeSet::new(),
            before: Before::default(),
        }
    }
}

impl Options {
    /// Told when the machine has better things to do.
    pub(super) fn postponed(&self, why: &str) -> Stopped {
        Stopped::Postponed(if self.idle {
            format!("the benchmark is postponed: {why}")
        } else {
            format!("cannot measure now: {why}; try again later")
        })
    }
}

/// Seconds that somebody may ask it to take.
pub const SECONDS: RangeInclusive<f64> = 0.5..=600.0;
/// The whole takes three seconds at most.
const BUDGET: Duration = Duration::from_millis(2500);
