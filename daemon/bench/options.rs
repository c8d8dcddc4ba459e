//! Options of a benchmark run.

use std::collections::BTreeSet;
use std::time::Duration;

use super::sample::Source;
use crate::choice::Before;
use engine::work::Stopped;
use logic::device::algorithm::Algorithm;
use logic::verdict::Profile;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Only these algorithms; empty for all that are worth measuring.
    pub algorithms: Vec<Algorithm>,
    /// Where the pages come from.
    pub source: Source,
    /// What to optimise for.
    pub profile: Profile,
    /// Reads of 2^n pages are measured for these n: for the chosen algorithm, or for every one.
    pub page_clusters: Vec<u32>,
    /// Measure `page_clusters` for every algorithm.
    pub every_cluster: bool,
    /// Threads for throughput; 0 is one per CPU.
    pub threads: usize,
    /// Background run: lowest priority, and only while the machine is idle.
    pub idle: bool,
    /// About the processor time that it takes; more where even the fewest requests take longer.
    pub budget: Duration,
    /// Pages of the sample.
    pub pages: usize,
    /// Device numbers in the configuration; the scratch device takes none of them.
    pub configured: BTreeSet<u32>,
    /// The previous verdict.
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
            pages: PAGES,
            configured: BTreeSet::new(),
            before: Before::default(),
        }
    }
}

impl Options {
    /// The error of a run that is postponed because the machine is busy.
    pub(super) fn postponed(&self, why: &str) -> Stopped {
        Stopped::Postponed(if self.idle {
            format!("the benchmark is postponed: {why}")
        } else {
            format!("cannot measure now: {why}; try again later")
        })
    }
}

/// 32 MiB of 4 KiB pages: with fewer, half-filled pages of the allocator distort the ratio.
const PAGES: usize = 8192;
/// With the time for the scratch device and the throughput, about five seconds in all.
const BUDGET: Duration = Duration::from_millis(2500);
