//! The choice. It does not waver: a change takes a score that is better by a tenth, in two runs one after the other.

use super::score::Profile;
use super::statistics::Estimate;

/// How much better a score has to be, as a share, for another algorithm to be chosen.
pub const MARGIN: f64 = 0.10;
/// Runs one after the other in which that has to be so, unless nothing was measured before.
const RUNS: u32 = 2;

/// One algorithm with its score, or why it cannot be chosen.
pub type Scored = (String, Result<Estimate, String>);

/// What was chosen before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Before {
    /// The algorithm that is the verdict; nothing when there is no valid one.
    pub verdict: Option<String>,
    /// Runs one after the other that found something clearly better than it.
    pub better_runs: u32,
}

/// What is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: String,
    /// See [`Before::better_runs`].
    pub better_runs: u32,
    /// Why, in one sentence.
    pub reason: String,
}

/// Chooses. `usual` is what is taken where nothing is known.
pub fn choose(scored: &[Scored], before: &Before, usual: &str, profile: Profile) -> Choice {
    let value = |name: &str| {
        scored.iter().find(|(other, _)| other == name)?.1.as_ref().ok().map(|estimate| estimate.value)
    };
    let eligible =
        scored.iter().filter_map(|(name, score)| Some((name.as_str(), score.as_ref().ok()?.value)));
    let Some((best, best_value)) = eligible.min_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Choice {
            algorithm: before.verdict.clone().unwrap_or_else(|| usual.to_owned()),
            better_runs: 0,
            reason: "no algorithm here is worth its time with this data; nothing is changed".to_owned(),
        };
    };
    let keep = |algorithm: &str, better_runs, reason| Choice {
        algorithm: algorithm.to_owned(),
        better_runs,
        reason,
    };
    let take = |reason: String| Choice { algorithm: best.to_owned(), better_runs: 0, reason };
    let incumbent = before.verdict.as_deref().unwrap_or(usual);
    let Some(present) = value(incumbent) else {
        let what = what(profile, best_value);
        let runs = before.better_runs + 1;
        // One that is no longer there is left at once.
        let why =
            scored.iter().find(|(name, _)| name == incumbent).and_then(|(_, score)| score.as_ref().err());
        if let Some(why) = why.filter(|_| before.verdict.is_some() && runs < RUNS) {
            return keep(
                incumbent,
                runs,
                format!("{incumbent} stays for now, though {why}, which has to be found twice in a row"),
            );
        }
        return take(format!("{best} is best: {what}; {incumbent} cannot be chosen here"));
    };
    if best == incumbent {
        let rivals = scored.iter().filter(|(name, _)| name != best);
        let rivals = rivals.filter_map(|(name, score)| Some((name, score.as_ref().ok()?.value)));
        let what = what(profile, best_value);
        return take(match rivals.min_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((rival, next)) => {
                format!("{best} is best: {what}, {:.0} % less than with {rival}", percent(best_value, next))
            }
            None => format!("{best} is the only one that can be chosen: {what}"),
        });
    }
    let gained = percent(best_value, present);
    if best_value > present * (1.0 - MARGIN) {
        return keep(
            incumbent,
            0,
            format!(
                "{incumbent} stays: {}; {best} would be better by {gained:.0} %, and a change takes {:.0} %",
                what(profile, present),
                MARGIN * 100.0
            ),
        );
    }
    let runs = before.better_runs + 1;
    if before.verdict.is_some() && runs < RUNS {
        return keep(
            incumbent,
            runs,
            format!(
                "{incumbent} stays for now: {best} is better by {gained:.0} %, which has to be found twice in a row"
            ),
        );
    }
    take(format!("{best} is best: {}, {gained:.0} % less than with {incumbent}", what(profile, best_value)))
}

fn percent(better: f64, worse: f64) -> f64 {
    if worse > 0.0 { (1.0 - better / worse) * 100.0 } else { 0.0 }
}

/// What a score is, in words.
fn what(profile: Profile, score: f64) -> String {
    match profile {
        Profile::Capacity => format!("it takes {score:.2} pages swapped out to gain one page of memory"),
        _ => format!("each page of memory gained costs {:.1} µs", score / 1000.0),
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // Exact on purpose.
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scored(list: &[(&str, f64)]) -> Vec<Scored> {
        let estimate = |value| Estimate { value, low: value, high: value };
        list.iter().map(|(name, value)| ((*name).to_owned(), Ok(estimate(*value)))).collect()
    }

    fn before(verdict: &str, better_runs: u32) -> Before {
        Before { verdict: Some(verdict.to_owned()), better_runs }
    }

    fn balanced(list: &[(&str, f64)], before: &Before) -> Choice {
        choose(&scored(list), before, "lz4", Profile::Balanced)
    }

    #[test]
    fn the_first_run_decides_when_it_is_clear() {
        let choice = balanced(&[("lz4", 100.0), ("zstd", 80.0)], &Before::default());
        assert_eq!(choice.algorithm, "zstd");
        assert!(choice.reason.contains("20 % less than with lz4"), "{}", choice.reason);
        let choice = balanced(&[("lz4", 100.0), ("zstd", 95.0)], &Before::default());
        assert_eq!(choice.algorithm, "lz4", "5 % is not enough to leave what is usual");
        assert!(choice.reason.contains("5 %"), "{}", choice.reason);
    }

    #[test]
    fn later_runs_have_to_agree() {
        let list = [("lz4", 100.0), ("zstd", 80.0)];
        let first = balanced(&list, &before("lz4", 0));
        assert_eq!((first.algorithm.as_str(), first.better_runs), ("lz4", 1));
        let second = balanced(&list, &before("lz4", first.better_runs));
        assert_eq!((second.algorithm.as_str(), second.better_runs), ("zstd", 0));
        let interrupted = balanced(&[("lz4", 100.0), ("zstd", 99.0)], &before("lz4", 1));
        assert_eq!((interrupted.algorithm.as_str(), interrupted.better_runs), ("lz4", 0));
    }

    #[test]
    fn what_is_gone_is_left_at_once_and_what_is_excluded_after_two_runs() {
        assert_eq!(balanced(&[("lzo", 100.0)], &before("zstd", 0)).algorithm, "lzo");
        let mut list = scored(&[("lz4", 100.0)]);
        list.push(("zstd".to_owned(), Err("too slow".to_owned())));
        let choice = choose(&list, &before("zstd", 0), "lz4", Profile::Latency);
        assert_eq!(
            (choice.algorithm.as_str(), choice.better_runs),
            ("zstd", 1),
            "the machine may have been busy"
        );
        let choice = choose(&list, &before("zstd", 1), "lz4", Profile::Latency);
        assert_eq!((choice.algorithm.as_str(), choice.better_runs), ("lz4", 0));
        let none = [("zstd".to_owned(), Err("too slow".to_owned()))];
        assert_eq!(choose(&none, &Before::default(), "lz4", Profile::Latency).algorithm, "lz4");
    }

    proptest! {
        /// Twenty runs with noise of ±3 % around scores that are nearly the same: whatever is chosen first stays.
        #[test]
        fn noise_changes_nothing(noise in prop::collection::vec((0.97..1.03f64, 0.97..1.03f64, 0.97..1.03f64), 20)) {
            let mut before = Before::default();
            let mut chosen = Vec::new();
            for (a, b, c) in noise {
                let list = [("lz4", 100.0 * a), ("lzo-rle", 99.0 * b), ("zstd", 97.0 * c)];
                let choice = balanced(&list, &before);
                chosen.push(choice.algorithm.clone());
                before = Before { verdict: Some(choice.algorithm), better_runs: choice.better_runs };
            }
            chosen.dedup();
            prop_assert_eq!(chosen.len(), 1);
        }

        /// With noise that alone goes over the margin now and then, a change needs two such runs in a row, so runs change it seldom.
        #[test]
        fn one_outlier_changes_nothing(outlier in 1usize..19, factor in 0.3..0.85f64) {
            let mut before = Before::default();
            for run in 0..20 {
                let zstd = if run == outlier { 100.0 * factor } else { 105.0 };
                let choice = balanced(&[("lz4", 100.0), ("zstd", zstd)], &before);
                prop_assert_eq!(&choice.algorithm, "lz4");
                before = Before { verdict: Some(choice.algorithm), better_runs: choice.better_runs };
            }
        }
    }
}
