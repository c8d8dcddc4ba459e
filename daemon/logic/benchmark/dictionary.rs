//! Whether a trained dictionary would be worth it: an experiment, and never the verdict.
//!
//! A dictionary is made of pieces of pages. Kept for the next boot it would have contents of memory on a disk, so zramd forgets it with
//! the end of the measurement, and only says what it would be worth.

use serde::{Deserialize, Serialize};

use super::statistics::Estimate;
use super::verdict::MARGIN;

/// The parameter of the kernel that names the file of a dictionary.
pub const PARAMETER: &str = "dict";
/// What stands in a report instead of a path.
pub const TRAINED: &str = "trained";
/// Bytes in one. lz4 looks back no further than that.
pub const SIZE: usize = 64 << 10;
/// Algorithms that are tried with one, in the order of candidates.
pub const TAKES_ONE: [&str; 2] = ["lz4", "zstd"];
/// Why it is never the verdict.
pub const NEVER: &str =
    "an experiment: a dictionary is made of contents of memory, which zramd does not keep";

/// What a dictionary was found to be worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dictionary {
    /// Its size.
    pub bytes: u64,
    /// Pages that it was trained with. None of them was compressed to measure it.
    pub trained_pages: u64,
    /// How long that took.
    pub training_seconds: f64,
    /// Each algorithm with it beside itself without.
    pub compared: Vec<Compared>,
    /// Whether one of them would be the verdict.
    pub wins: bool,
    /// The same in one sentence.
    pub conclusion: String,
}

/// An algorithm with a dictionary beside itself without; shares are of what it is without, so that 0.1 is a tenth more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The algorithm.
    pub algorithm: String,
    /// More memory gained per page, ratio on all memory.
    pub ratio: f64,
    /// More time for reading a page.
    pub read: f64,
    /// More time for writing one.
    pub write: f64,
    /// Its score, lower is better; nothing where it could not be chosen anyhow.
    pub score: Option<f64>,
    /// How much better its score is than that of the verdict, as a share; negative when it is worse.
    pub better_than_verdict: Option<f64>,
}

/// Of one algorithm, with or without: ratio, time to read and to write a page.
pub type Figures = (f64, f64, f64);

/// Compares an algorithm with itself. `verdict` is the score of what was chosen.
pub fn compare(
    algorithm: &str,
    with: Figures,
    without: Figures,
    score: Option<Estimate>,
    verdict: Option<f64>,
) -> Compared {
    let more = |with: f64, without: f64| if without > 0.0 { with / without - 1.0 } else { 0.0 };
    let score = score.map(|score| score.value);
    Compared {
        algorithm: algorithm.to_owned(),
        ratio: more(with.0, without.0),
        read: more(with.1, without.1),
        write: more(with.2, without.2),
        score,
        better_than_verdict: score.zip(verdict).map(|(score, verdict)| -more(score, verdict)),
    }
}

/// Whether one would be chosen, as any other algorithm is: for a score that is better by a tenth.
pub fn conclude(compared: &[Compared]) -> (bool, String) {
    let better = |one: &Compared| one.better_than_verdict.unwrap_or(f64::NEG_INFINITY);
    let Some(best) = compared.iter().max_by(|a, b| better(a).total_cmp(&better(b))) else {
        return (false, "no algorithm here takes a dictionary".to_owned());
    };
    let percent = |share: f64| format!("{:+.0} %", share * 100.0);
    let what = format!(
        "{} with a dictionary: ratio {}, time to read {}, time to write {}",
        best.algorithm,
        percent(best.ratio),
        percent(best.read),
        percent(best.write)
    );
    match best.better_than_verdict {
        Some(share) if share >= MARGIN => {
            (true, format!("{what}; it would be better than the verdict by {:.0} %", share * 100.0))
        }
        Some(share) if share > 0.0 => {
            let (found, needed) = (share * 100.0, MARGIN * 100.0);
            (
                false,
                format!(
                    "{what}; it would be better than the verdict by {found:.0} %, and a change takes {needed:.0} %"
                ),
            )
        }
        Some(share) => {
            (false, format!("{what}; it would be worse than the verdict by {:.0} %", -share * 100.0))
        }
        None => (false, format!("{what}; it could not be chosen anyhow")),
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // Exact on purpose.
mod tests {
    use super::*;

    fn one(score: Option<f64>) -> Compared {
        let score = score.map(|value| Estimate { value, low: value, high: value });
        compare("zstd", (3.3, 6000.0, 15_000.0), (3.0, 5000.0, 10_000.0), score, Some(100.0))
    }

    #[test]
    fn it_is_compared_with_the_same_algorithm_and_with_the_verdict() {
        let found = one(Some(80.0));
        assert!((found.ratio - 0.1).abs() < 1e-9 && (found.read - 0.2).abs() < 1e-9);
        assert_eq!((found.write, found.score), (0.5, Some(80.0)));
        assert!((found.better_than_verdict.unwrap() - 0.2).abs() < 1e-9);
    }

    #[test]
    fn it_wins_only_by_the_margin_that_everybody_needs() {
        let (wins, text) = conclude(&[one(Some(150.0)), one(Some(80.0))]);
        assert!(wins && text.ends_with("better than the verdict by 20 %"), "{text}");
        let (wins, text) = conclude(&[one(Some(95.0))]);
        assert!(!wins && text.ends_with("by 5 %, and a change takes 10 %"), "{text}");
        let (wins, text) = conclude(&[one(Some(150.0))]);
        assert!(!wins && text.ends_with("worse than the verdict by 50 %"), "{text}");
        assert!(!conclude(&[one(None)]).0 && !conclude(&[]).0);
    }
}
