//! Results of a benchmark, as printed by `zramdctl bench --json` and returned on the bus. Fields are never removed.

use serde::{Deserialize, Serialize};

use super::frequency::Frequency;
use super::score::{Aim, Past};
use super::statistics::Estimate;
use logic::device::algorithm::{Algorithm, apart};
use logic::verdict::Profile;

/// Version of the format.
pub const SCHEMA_VERSION: u32 = 3;

/// A whole benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "bench"))]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The choice.
    pub verdict: Verdict,
    /// The sample.
    pub data: Data,
    /// The configured profile.
    pub profile: Profile,
    /// What counts for `balanced`.
    #[serde(default, flatten)]
    pub past: Past,
    /// Requests for same-filled pages, which zram does not compress: the cost of a request by itself.
    pub baseline: Baseline,
    /// One entry per algorithm, the chosen one first, then by score.
    pub results: Vec<Row>,
    /// Reads of 2^n pages.
    pub page_clusters: Vec<Cluster>,
    /// Number of CPUs used to measure throughput.
    pub threads: u32,
    /// Duration in seconds, from the first page to the removal of the device.
    pub seconds: f64,
    /// Share of the time, 0 to 1, in which the measuring thread had to wait for its CPU, because other programs had it, or the host of a
    /// virtual machine. From [`DISTURBED`] on, throughput is left out, and times of 99 % count for little.
    pub waited_share: f64,
    /// What governs the frequency of the CPUs; `None` if the kernel does not say.
    pub frequency: Option<Frequency>,
    /// When it ended, in seconds since 1970; 0 in reports of older versions.
    #[serde(default)]
    pub measured_unix: u64,
    /// Number of repetitions of the latency measurement.
    pub rounds: u32,
}

/// The choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BenchmarkVerdict"))]
pub struct Verdict {
    /// The algorithm.
    #[serde(flatten, with = "apart")]
    #[cfg_attr(feature = "schema", schemars(with = "apart::Fields"))]
    pub algorithm: Algorithm,
    /// Suggestion for `vm.page-cluster`.
    pub page_cluster: u32,
    /// Suggestion for `vm.swappiness`, if the read time of the disk is known.
    pub swappiness: Option<u32>,
    /// Why, in one sentence.
    pub reason: String,
}

/// The sample.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BenchmarkData"))]
pub struct Data {
    /// `swap`, `processes`, `calibrated`, `generator` or `file`.
    pub source: String,
    /// The source in words.
    pub description: String,
    /// Number of pages, without same-filled ones.
    pub pages: u64,
    /// Bytes in a page.
    pub page_size: u64,
    /// Share of same-filled pages among all pages that were sampled.
    pub same_filled_share: f64,
    /// Share of pages that no algorithm shrinks.
    pub incompressible_share: f64,
}

/// The cost of a request by itself.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BenchmarkBaseline"))]
pub struct Baseline {
    /// A read, in nanoseconds.
    pub read_ns: f64,
    /// A write.
    pub write_ns: f64,
}

/// Measurements of one algorithm in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BenchmarkTiming"))]
pub struct Timing {
    /// Mean time of a request in the round that was disturbed least, in nanoseconds, including the cost of the request itself.
    pub mean_ns: f64,
    /// Median in that round.
    pub p50_ns: f64,
    /// 99th percentile of all rounds.
    pub p99_ns: f64,
    /// 99.9th percentile of all rounds.
    pub p999_ns: f64,
    /// Processor time of the algorithm alone in the best round, without the cost of the request.
    pub codec_ns: Estimate,
    /// Throughput of all CPUs together: the mean of some passes, and their spread; 0 in a disturbed run.
    pub bytes_per_second: Estimate,
    /// Number of requests that were timed.
    pub requests: u64,
}

/// Results of one algorithm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BenchmarkRow"))]
pub struct Row {
    /// Its name and parameters.
    #[serde(flatten, with = "apart")]
    #[cfg_attr(feature = "schema", schemars(with = "apart::Fields"))]
    pub algorithm: Algorithm,
    /// Bytes stored per byte of memory that holds them, rounding and fragmentation included.
    pub ratio_total: f64,
    /// Bytes stored per compressed byte.
    pub ratio_payload: f64,
    /// Share of the pages that it did not shrink.
    pub incompressible_share: f64,
    /// From zram to memory: swapping in.
    pub read: Timing,
    /// From memory to zram: swapping out.
    pub write: Timing,
    /// The price of a page in swap, in nanoseconds; lower is better. `None` if it is not eligible.
    pub score: Option<f64>,
    /// Its 95 % confidence interval.
    pub score_interval: Option<(f64, f64)>,
    /// Why it is not eligible.
    pub excluded: Option<String>,
}

/// Reads of 2^n pages with one algorithm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BenchmarkCluster"))]
pub struct Cluster {
    /// The algorithm.
    #[serde(flatten, with = "apart")]
    #[cfg_attr(feature = "schema", schemars(with = "apart::Fields"))]
    pub algorithm: Algorithm,
    /// n, as in `vm.page-cluster`.
    pub page_cluster: u32,
    /// Mean time of a request, in nanoseconds.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
    /// Bytes per second with one thread.
    pub bytes_per_second: f64,
    /// Requests per second with one thread.
    pub requests_per_second: f64,
}

/// Share of the time that the measuring thread waited from which a run counts as disturbed.
pub const DISTURBED: f64 = 0.1;

pub(crate) fn is_disturbed(waited_share: f64) -> bool {
    waited_share >= DISTURBED
}

impl Report {
    /// Whether other programs, or the host, had so much of the CPU that only the score and medians can be relied on.
    pub fn is_disturbed(&self) -> bool {
        is_disturbed(self.waited_share)
    }

    /// What counted.
    pub fn aim(&self) -> Aim {
        Aim::of(self.profile, self.past)
    }

    /// The row of the chosen algorithm, if it was measured.
    pub fn chosen(&self) -> Option<&Row> {
        self.results.iter().find(|row| row.algorithm == self.verdict.algorithm)
    }
}
