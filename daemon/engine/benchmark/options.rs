//! What a run of the benchmark is told.

use std::collections::BTreeSet;
use std::time::Duration;

use super::sample::Source;
use crate::logic::algorithm::Algorithm;
use crate::logic::benchmark::score::Profile;
use crate::logic::benchmark::verdict::Before;

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
    /// Also with a dictionary that is trained on half of the pages.
    pub dictionary: bool,
    /// Threads for throughput; 0 is one per CPU.
    pub threads: usize,
    /// Nobody waits for it: with the lowest priority, and only while nobody else wants the machine.
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
            dictionary: false,
            threads: 0,
            idle: false,
            budget: BUDGET,
            configured: BTreeSet::new(),
            before: Before::default(),
        }
    }
}

/// The whole takes three seconds at most.
const BUDGET: Duration = Duration::from_millis(2500);
