//! The measurements of one candidate, and the figures derived from them.

use super::measure::Pass;
use crate::candidates::Candidate;
use crate::choice::{Choice, Scored};
use crate::report::{Baseline, Row, Timing};
use crate::score::{self, Aim, Figures};
use crate::statistics::Estimate;
use engine::Error;
use logic::device::stat::MmStat;

/// Measurements in one direction, some hundred milliseconds apart, while the other candidates are measured.
#[derive(Default)]
pub(super) struct Rounds {
    /// With one thread, one page per request.
    pub passes: Vec<Pass>,
    /// With all threads.
    pub together: Vec<Pass>,
}

impl Rounds {
    /// The pass that was disturbed least. Other programs, the host and the frequency of the CPU only ever lengthen requests, for tenths
    /// of a second at a time, so its figures repeat best.
    fn best(&self) -> Option<&Pass> {
        let usual = self.passes.iter().map(|pass| (pass.usual_ns().value, pass));
        usual.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, pass)| pass)
    }

    /// The usual processor time of a request in that pass.
    pub fn usual_ns(&self) -> Estimate {
        self.best().map(Pass::usual_ns).unwrap_or_default()
    }

    /// Bytes per second of all threads together: the mean, and the interval of its passes.
    fn throughput(&self) -> Estimate {
        let rates: Vec<f64> = self.together.iter().map(Pass::bytes_per_second).collect();
        let (value, spread) = (sum(&self.together).bytes_per_second(), Estimate::of(&rates));
        Estimate { value, low: spread.low.min(value), high: spread.high.max(value) }
    }

    fn timing(&self, baseline: f64) -> Timing {
        let (none, all) = (Pass::default(), sum(&self.passes));
        let best = self.best().unwrap_or(&none);
        Timing {
            mean_ns: best.mean_ns(),
            p50_ns: best.quantile_ns(500) as f64,
            p99_ns: all.quantile_ns(990) as f64,
            p999_ns: all.quantile_ns(999) as f64,
            codec_ns: best.usual_ns().minus(baseline),
            bytes_per_second: self.throughput(),
            requests: all.requests(),
        }
    }
}

fn sum(passes: &[Pass]) -> Pass {
    let mut sum = Pass::default();
    for pass in passes {
        sum.append(pass);
    }
    sum
}

/// Measurements of one candidate.
pub(super) struct Trial {
    pub candidate: Candidate,
    /// Writes.
    pub write: Rounds,
    /// Reads.
    pub read: Rounds,
    /// `mm_stat` after the first look.
    pub memory: MmStat,
    /// Bytes of memory per page on a device with many pages.
    pub memory_per_page: f64,
    /// Why there are no figures, if so.
    pub failed: Option<Error>,
}

impl Trial {
    pub fn new(candidate: Candidate) -> Trial {
        Trial {
            candidate,
            write: Rounds::default(),
            read: Rounds::default(),
            memory: MmStat::default(),
            memory_per_page: 0.0,
            failed: None,
        }
    }

    /// Bytes of the sample per byte of memory, on a device with many pages.
    fn ratio_total(&self) -> f64 {
        let page = rustix::param::page_size() as f64;
        if self.memory_per_page <= 0.0 { 0.0 } else { page / self.memory_per_page }
    }

    /// Bytes of the sample per byte of compressed data.
    fn ratio_payload(&self) -> f64 {
        let stored = self.memory.orig_data_size as f64;
        if self.memory.compr_data_size == 0 { 0.0 } else { stored / self.memory.compr_data_size as f64 }
    }

    pub fn incompressible_share(&self) -> f64 {
        let page = rustix::param::page_size() as u64;
        let stored = self.memory.orig_data_size / page;
        if stored == 0 { 0.0 } else { self.memory.huge_pages as f64 / stored as f64 }
    }

    pub fn figures(&self, baseline: &Baseline) -> Figures {
        Figures {
            out_ns: self.write.usual_ns().minus(baseline.write_ns),
            in_ns: self.read.usual_ns().minus(baseline.read_ns),
            ratio: self.ratio_total(),
        }
    }
}

/// Minimum distance between two measurements of memory, in compressed bytes, to compute the overhead of the allocator.
const FAR_APART: u64 = 512 << 10;

/// Memory of an average page of the sample on a device with many pages, from the number of its pages and their compressed size,
/// times what the allocator adds, from two measurements. Half-empty pages of the allocator appear with the first stored pages and then
/// stay about constant, so with a small sample they would count too much. What is stored between the measurements may compress better
/// or worse than the whole.
pub(super) fn memory_per_page(pages: usize, compressed: u64, early: &MmStat, late: &MmStat) -> f64 {
    if pages == 0 {
        return 0.0;
    }
    let payload = compressed as f64 / pages as f64;
    let further = late.compr_data_size.saturating_sub(early.compr_data_size);
    if further < FAR_APART {
        payload
    } else {
        payload * late.mem_used_total.saturating_sub(early.mem_used_total) as f64 / further as f64
    }
}

/// The score of each eligible candidate, and why the others are not eligible.
pub(super) fn scores(trials: &[Trial], aim: Aim, baseline: &Baseline) -> Vec<Scored> {
    let one = |trial: &Trial| match &trial.failed {
        Some(error) => Err(error.message.clone()),
        None => score::score(aim, &trial.figures(baseline)).and_then(|score| {
            let never = &trial.candidate.never;
            if never.is_empty() { Ok(score) } else { Err(never.clone()) }
        }),
    };
    trials.iter().map(|trial| (trial.candidate.algorithm.clone(), one(trial))).collect()
}

/// The table: the chosen algorithm, the others by score, then those that are not eligible.
pub(super) fn rows(trials: &[Trial], scored: &[Scored], baseline: &Baseline, choice: &Choice) -> Vec<Row> {
    let row = |(trial, (_, score)): (&Trial, &Scored)| {
        let estimate = score.as_ref().ok();
        Row {
            algorithm: trial.candidate.algorithm.clone(),
            ratio_total: trial.ratio_total(),
            ratio_payload: trial.ratio_payload(),
            incompressible_share: trial.incompressible_share(),
            read: trial.read.timing(baseline.read_ns),
            write: trial.write.timing(baseline.write_ns),
            score: estimate.map(|estimate| estimate.value),
            score_interval: estimate.map(|estimate| (estimate.low, estimate.high)),
            excluded: score.as_ref().err().cloned(),
        }
    };
    let mut rows: Vec<Row> = trials.iter().zip(scored).map(row).collect();
    rows.sort_by(|a, b| {
        let key = |row: &Row| (row.algorithm != choice.algorithm, row.score.is_none());
        let order = key(a).cmp(&key(b));
        order.then(a.score.unwrap_or(0.0).total_cmp(&b.score.unwrap_or(0.0)))
    });
    rows
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // The values are exact.
mod tests {
    use super::*;
    use crate::measure::tests::pass_of;
    use logic::device::algorithm::Algorithm;

    #[test]
    fn the_overhead_of_a_small_sample_does_not_count() {
        // 500 KB of overhead, then a tenth more than the compressed pages, of 1000 bytes on average.
        let memory = |compr_data_size: u64| MmStat {
            compr_data_size,
            mem_used_total: 500_000 + compr_data_size / 10 * 11,
            ..MmStat::default()
        };
        let per_page = |early, late| memory_per_page(8000, 8_000_000, &memory(early), &memory(late));
        assert_eq!(per_page(2_000_000, 8_000_000), 1100.0);
        assert_eq!(per_page(5_000_000, 16_000_000), 1100.0, "the first half compresses worse");
        assert_eq!(per_page(500_000, 600_000), 1000.0, "the two measurements are too close");
        assert_eq!(memory_per_page(0, 0, &memory(0), &memory(0)), 0.0);
    }

    fn trial(name: &str) -> Trial {
        Trial::new(Candidate { algorithm: Algorithm::plain(name), never: String::new() })
    }

    #[test]
    fn ratios_and_shares_are_of_the_sample() {
        let page = rustix::param::page_size() as u64;
        let mut trial = trial("lz4");
        assert_eq!(
            (trial.ratio_total(), trial.ratio_payload(), trial.incompressible_share()),
            (0.0, 0.0, 0.0)
        );
        trial.memory = MmStat {
            orig_data_size: 100 * page,
            compr_data_size: 40 * page,
            huge_pages: 25,
            ..MmStat::default()
        };
        trial.memory_per_page = page as f64 / 2.0;
        assert_eq!(
            (trial.ratio_total(), trial.ratio_payload(), trial.incompressible_share()),
            (2.0, 2.5, 0.25)
        );
    }

    #[test]
    fn a_round_that_was_disturbed_changes_only_the_slowest_requests() {
        // As measured beside the other guests of a host: the same requests, in some rounds all a third longer.
        let pass = |ns| pass_of([ns; 128]);
        let mut rounds = Rounds { passes: vec![pass(5400), pass(4100), pass(5500)], together: Vec::new() };
        let timing = rounds.timing(1500.0);
        assert_eq!((timing.p50_ns, timing.mean_ns, timing.codec_ns.value), (4100.0, 4100.0, 2600.0));
        assert_eq!((timing.p99_ns, timing.requests), (5500.0, 3 * 128));
        assert_eq!(timing.bytes_per_second, Estimate::default());
        rounds.together = vec![pass(4096), pass(2048), pass(2048)];
        let rate = rounds.timing(0.0).bytes_per_second;
        assert_eq!([rate.value, rate.low, rate.high].map(f64::round), [1.5e9, 1e9, 2e9]);
        assert_eq!(
            Rounds::default().timing(0.0),
            Timing { codec_ns: Estimate::default(), ..Timing::default() }
        );
    }

    #[test]
    fn the_chosen_algorithm_comes_first_then_the_best() {
        let names = ["lz4", "842", "zstd", "lzo"];
        let trials = names.map(trial);
        let scores = [Ok(3.0), Err("slow".to_owned()), Ok(2.0), Ok(1.0)];
        let estimate = |value| Estimate { value, low: value, high: value };
        let scored: Vec<Scored> = names
            .iter()
            .zip(scores)
            .map(|(name, score)| (Algorithm::plain(*name), score.map(estimate)))
            .collect();
        let choice = Choice { algorithm: Algorithm::plain("zstd"), reason: String::new(), better_runs: 0 };
        let rows = rows(&trials, &scored, &Baseline::default(), &choice);
        let found: Vec<String> = rows.iter().map(|row| row.algorithm.to_string()).collect();
        assert_eq!(found, ["zstd", "lzo", "lz4", "842"]);
        assert_eq!(rows[3].excluded.as_deref(), Some("slow"));
    }
}
