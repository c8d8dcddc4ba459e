//! The measurements of one candidate, and the figures derived from them.

use super::measure::Pass;
use crate::candidates::Candidate;
use crate::choice::{self, Choice, Scored};
use crate::report::{Baseline, Row, Timing};
use crate::score::{self, Aim, Figures};
use crate::statistics::Estimate;
use engine::Error;
use logic::device::stat::MmStat;

/// Candidates within this factor of the best score are measured again.
const CONTENDERS: f64 = 1.0 + 3.0 * choice::MARGIN;
/// A score with at most this uncertainty needs no further repetition.
const SURE: f64 = choice::MARGIN / 4.0;

/// Measurements of one candidate.
pub(super) struct Trial {
    pub candidate: Candidate,
    /// Writes with one thread, one page per request.
    pub write: Pass,
    /// Reads likewise.
    pub read: Pass,
    /// Bytes per second that all threads write together.
    pub write_rate: Estimate,
    /// Reads likewise.
    pub read_rate: Estimate,
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
            write: Pass::default(),
            read: Pass::default(),
            write_rate: Estimate::default(),
            read_rate: Estimate::default(),
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

/// Candidates with close scores that are still uncertain; empty if there are fewer than two.
pub(super) fn contenders(scored: &[Scored]) -> Vec<usize> {
    let eligible =
        || scored.iter().enumerate().filter_map(|(index, (_, score))| Some((index, score.as_ref().ok()?)));
    let best = eligible().map(|(_, score)| score.value).fold(f64::INFINITY, f64::min);
    let close: Vec<(usize, &Estimate)> =
        eligible().filter(|(_, score)| score.value <= best * CONTENDERS).collect();
    if close.len() < 2 || close.iter().all(|(_, score)| score.uncertainty() <= SURE) {
        return Vec::new();
    }
    close.into_iter().map(|(index, _)| index).collect()
}

fn timing(one: &Pass, rate: Estimate, baseline: f64) -> Timing {
    let quantile = |share| one.quantile_ns(share) as f64;
    Timing {
        mean_ns: one.mean_ns(),
        p50_ns: quantile(500),
        p99_ns: quantile(990),
        p999_ns: quantile(999),
        codec_ns: one.usual_ns().minus(baseline),
        bytes_per_second: rate,
        requests: one.requests(),
    }
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
            read: timing(&trial.read, trial.read_rate, baseline.read_ns),
            write: timing(&trial.write, trial.write_rate, baseline.write_ns),
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

    /// A score with this value and an interval of this half width.
    fn scored(value: f64, half: f64) -> Scored {
        let estimate = Estimate { value, low: value - half, high: value + half };
        (Algorithm::plain("lz4"), Ok(estimate))
    }

    #[test]
    fn close_and_uncertain_scores_are_measured_again() {
        let sure = 100.0 * SURE;
        let excluded = (Algorithm::plain("842"), Err("too slow".to_owned()));
        let none: [usize; 0] = [];
        let list = |other, half| [scored(100.0, sure), excluded.clone(), scored(other, half)];
        assert_eq!(contenders(&list(100.0 * CONTENDERS, 20.0)), [0, 2]);
        assert_eq!(contenders(&list(100.0 * CONTENDERS + 1.0, 20.0)), none, "it is much slower");
        assert_eq!(contenders(&list(100.0, sure)), none, "both are certain");
        assert_eq!(contenders(&[scored(100.0, 50.0), excluded.clone()]), none, "there is only one");
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
