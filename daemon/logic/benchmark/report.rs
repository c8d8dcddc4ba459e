//! All figures of a benchmark, as `zramdctl bench` prints them with `--json` and the bus has them. Fields are only ever added.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::score::{Circumstances, Profile};
use super::statistics::Estimate;

/// Version of the form.
pub const SCHEMA_VERSION: u32 = 1;

/// A whole benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What was chosen.
    pub verdict: Verdict,
    /// What it was measured with.
    pub data: Data,
    /// What the owner wants.
    pub profile: Profile,
    /// What the machine adds to the figures.
    pub circumstances: Circumstances,
    /// Requests for pages that hold one repeated word, which zram does not compress: what a request costs by itself.
    pub baseline: Baseline,
    /// One entry per algorithm, the chosen one first, then by score.
    pub results: Vec<Row>,
    /// Reads of 2^n pages.
    pub page_clusters: Vec<Cluster>,
    /// CPUs that throughput was measured with.
    pub threads: u32,
    /// How long it took, from the first page to the end of the device.
    pub seconds: f64,
    /// How long it may take at most: measurements end in time for this. A machine that lets others run first can make the last request
    /// and the end of the device late.
    #[serde(default)]
    pub limit_seconds: f64,
    /// When it ended, in seconds since 1970; 0 where an older zramd measured.
    #[serde(default)]
    pub measured_unix: u64,
    /// Repetitions of the measurement of latency.
    pub rounds: u32,
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Name of the algorithm.
    pub algorithm: String,
    /// Its parameters: `level`.
    pub parameters: BTreeMap<String, String>,
    /// Suggestion for `vm.page-cluster`.
    pub page_cluster: u32,
    /// Suggestion for `vm.swappiness`, when the disk's time is known.
    pub swappiness: Option<u32>,
    /// Why, in one sentence.
    pub reason: String,
}

/// What it was measured with.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Data {
    /// `swap`, `processes`, `calibrated`, `generator` or `file`.
    pub source: String,
    /// The same in words.
    pub description: String,
    /// Pages in the sample, without same-filled ones.
    pub pages: u64,
    /// Bytes in a page.
    pub page_size: u64,
    /// Share of same-filled pages among all pages that were looked at.
    pub same_filled_share: f64,
    /// Share of pages of the sample that no algorithm makes smaller.
    pub incompressible_share: f64,
}

/// What a request costs by itself.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Baseline {
    /// A read, in nanoseconds.
    pub read_ns: f64,
    /// A write.
    pub write_ns: f64,
}

/// One direction of one algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Timing {
    /// Mean time of a request, in nanoseconds, with the cost of the request.
    pub mean_ns: f64,
    /// Half of the requests took less.
    pub p50_ns: f64,
    /// 99 of 100 took less.
    pub p99_ns: f64,
    /// 999 of 1000 took less.
    pub p999_ns: f64,
    /// Time of the algorithm: without the cost of the request.
    pub codec_ns: Estimate,
    /// All CPUs together.
    pub bytes_per_second: f64,
    /// One CPU.
    pub single_bytes_per_second: f64,
    /// Requests that were timed.
    pub requests: u64,
}

/// One algorithm.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub algorithm: String,
    /// Its parameters.
    pub parameters: BTreeMap<String, String>,
    /// Bytes stored per byte of memory that holds them, rounding and fragmentation included.
    pub ratio_total: f64,
    /// Bytes stored per compressed byte.
    pub ratio_payload: f64,
    /// Share of the pages that it could not make smaller.
    pub incompressible_share: f64,
    /// From zram to memory: swapping in.
    pub read: Timing,
    /// From memory to zram: swapping out.
    pub write: Timing,
    /// Lower is better; nothing when it cannot be chosen.
    pub score: Option<f64>,
    /// Its 95 % confidence interval.
    pub score_interval: Option<(f64, f64)>,
    /// Why it cannot be chosen.
    pub excluded: Option<String>,
}

/// Reads of 2^n pages with one algorithm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// The algorithm.
    pub algorithm: String,
    /// Its parameters.
    pub parameters: BTreeMap<String, String>,
    /// n, as in `vm.page-cluster`.
    pub page_cluster: u32,
    /// Mean time of a request, in nanoseconds.
    pub mean_ns: f64,
    /// Half of the requests took less.
    pub p50_ns: f64,
    /// 99 of 100 took less.
    pub p99_ns: f64,
    /// Bytes per second of one thread.
    pub bytes_per_second: f64,
    /// Requests per second of one thread.
    pub requests_per_second: f64,
}

/// `zstd` and `level` = `1` as `zstd(level=1)`.
pub fn full_name(algorithm: &str, parameters: &BTreeMap<String, String>) -> String {
    if parameters.is_empty() {
        return algorithm.to_owned();
    }
    let words: Vec<String> = parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{algorithm}({})", words.join(", "))
}

impl Report {
    /// The row of what was chosen, if it was measured.
    pub fn chosen(&self) -> Option<&Row> {
        let name = self.verdict.full_name();
        self.results.iter().find(|row| row.full_name() == name)
    }
}

impl Row {
    /// Name and parameters.
    pub fn full_name(&self) -> String {
        full_name(&self.algorithm, &self.parameters)
    }
}

impl Verdict {
    /// Name and parameters.
    pub fn full_name(&self) -> String {
        full_name(&self.algorithm, &self.parameters)
    }
}
