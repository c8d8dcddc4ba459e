//! Chooses the algorithm: without a verdict the one with the best score. A verdict is changed only by a score that is better by a tenth
//! in two consecutive runs, and a level is preferred to the kernel's default level only if it is better by a fifth, beyond the
//! uncertainty.

use super::statistics::Estimate;
use logic::device::algorithm::Algorithm;

/// Minimum improvement of the score to change the algorithm, as a fraction.
pub const MARGIN: f64 = 0.10;
/// Minimum improvement of a level over the same algorithm without one. Levels differ little, and mostly in the least
/// exact measurements, so a smaller margin would select one at random.
pub const LEVEL_MARGIN: f64 = 2.0 * MARGIN;
/// Consecutive runs that must show the improvement, unless there is no verdict yet.
const RUNS: u32 = 2;

/// An algorithm with its score, or why it is not eligible.
pub type Scored = (Algorithm, Result<Estimate, String>);

/// The previous verdict.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Before {
    /// The present verdict; `None` if there is no valid one.
    pub verdict: Option<Algorithm>,
    /// Consecutive runs in which another algorithm was clearly better.
    pub better_runs: u32,
    /// Whether the machine had been short of memory. It stays so, because it may be again.
    pub short_of_memory: bool,
}

/// The new verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub algorithm: Algorithm,
    /// See [`Before::better_runs`].
    pub better_runs: u32,
    /// Why, in one sentence.
    pub reason: String,
}

/// The algorithms to choose from. Of the levels of an algorithm, this is the plain one (or else the first in the list),
/// until a later one is better by [`LEVEL_MARGIN`] and their intervals do not overlap. The present verdict is included, too,
/// if it is eligible.
fn candidates<'a>(scored: &'a [Scored], incumbent: &Algorithm) -> Vec<(&'a Algorithm, Estimate)> {
    let eligible = scored.iter().filter_map(|(one, score)| Some((one, *score.as_ref().ok()?)));
    let (plain, levels): (Vec<_>, Vec<_>) = eligible.clone().partition(|(one, _)| one.parameters.is_empty());
    let mut leaders = plain;
    for (level, score) in &levels {
        let leader = leaders.iter_mut().find(|(other, _)| other.name == level.name);
        match leader {
            Some((other, best)) => {
                if score.value <= best.value * (1.0 - LEVEL_MARGIN) && score.high < best.low {
                    (*other, *best) = (level, *score);
                }
            }
            None => leaders.push((level, *score)),
        }
    }
    if leaders.iter().all(|(one, _)| *one != incumbent) {
        leaders.extend(eligible.filter(|(one, _)| *one == incumbent));
    }
    leaders
}

/// Chooses an algorithm. `usual` is what is used without a verdict, if no other is eligible.
pub fn choose(scored: &[Scored], before: &Before, usual: &Algorithm) -> Choice {
    let incumbent = before.verdict.as_ref().unwrap_or(usual);
    let candidates = candidates(scored, incumbent);
    let mut choice = among(scored, &candidates, before, incumbent);
    let chosen = candidates.iter().find(|(one, _)| **one == choice.algorithm);
    // A level with a clearly better score that was not chosen is named, to explain the table.
    let passed = |(level, score): &(&Algorithm, f64)| {
        chosen.is_some_and(|(own, best)| own.name == level.name && *score <= best.value * (1.0 - MARGIN))
            && candidates.iter().all(|(other, _)| other != level)
    };
    let eligible = scored.iter().filter_map(|(one, score)| Some((one, score.as_ref().ok()?.value)));
    if let (Some((level, score)), Some((_, best))) =
        (eligible.filter(passed).min_by(|a, b| a.1.total_cmp(&b.1)), chosen)
    {
        choice.reason.push_str(&format!(
            "; {level} would be better by {:.0} %, and another level takes {:.0} %",
            percent(score, best.value),
            LEVEL_MARGIN * 100.0
        ));
    }
    choice
}

fn among(
    scored: &[Scored],
    candidates: &[(&Algorithm, Estimate)],
    before: &Before,
    incumbent: &Algorithm,
) -> Choice {
    let value = |one: &Algorithm| {
        candidates.iter().find(|(other, _)| *other == one).map(|(_, estimate)| estimate.value)
    };
    let eligible = || candidates.iter().map(|(one, estimate)| (*one, estimate.value));
    let Some((best, best_value)) = eligible().min_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Choice {
            algorithm: incumbent.clone(),
            better_runs: 0,
            reason: "no algorithm saves enough memory for its time with this data; nothing is changed"
                .to_owned(),
        };
    };
    let keep = |better_runs, reason| Choice { algorithm: incumbent.clone(), better_runs, reason };
    let take = |reason: String| Choice { algorithm: best.clone(), better_runs: 0, reason };
    let best_of_all = || {
        let rivals = eligible().filter(|(one, _)| *one != best);
        let what = what(best_value);
        match rivals.min_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((rival, next)) => {
                let less = percent(best_value, next);
                if less < 0.5 {
                    format!("{best} is best: {what}, as with {rival}")
                } else {
                    format!("{best} is best: {what}, {less:.0} % less than with {rival}")
                }
            }
            None => format!("{best} is the only one that can be chosen: {what}"),
        }
    };
    if before.verdict.is_none() || best == incumbent {
        return take(best_of_all());
    }
    let Some(present) = value(incumbent) else {
        let what = what(best_value);
        let runs = before.better_runs + 1;
        // An algorithm that is no longer offered is replaced at once.
        let why = scored.iter().find(|(one, _)| one == incumbent).and_then(|(_, score)| score.as_ref().err());
        if let Some(why) = why.filter(|_| runs < RUNS) {
            return keep(
                runs,
                format!("{incumbent} stays for now, though {why}, which needs two consecutive runs"),
            );
        }
        // If only certain algorithms were requested, the others have no score and are not mentioned.
        let left = why.map_or_else(String::new, |why| format!("; {incumbent} cannot be chosen: {why}"));
        return take(format!("{best} is best: {what}{left}"));
    };
    let gained = percent(best_value, present);
    if best_value > present * (1.0 - MARGIN) {
        return keep(
            0,
            format!(
                "{incumbent} stays: {}; {best} would be better by {gained:.0} %, and a change takes {:.0} %",
                what(present),
                MARGIN * 100.0
            ),
        );
    }
    let runs = before.better_runs + 1;
    if runs < RUNS {
        return keep(
            runs,
            format!(
                "{incumbent} stays for now: {best} is better by {gained:.0} %, which needs two consecutive runs"
            ),
        );
    }
    take(format!("{best} is best: {}, {gained:.0} % less than with {incumbent}", what(best_value)))
}

fn percent(better: f64, worse: f64) -> f64 {
    if worse > 0.0 { (1.0 - better / worse) * 100.0 } else { 0.0 }
}

/// The meaning of a score, in words.
fn what(score: f64) -> String {
    format!("a page in swap costs {:.1} µs", score / 1000.0)
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // The values are exact.
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scored(list: &[(&str, f64)]) -> Vec<Scored> {
        let estimate = |value| Estimate { value, low: value, high: value };
        list.iter().map(|(name, value)| (algorithm(name), Ok(estimate(*value)))).collect()
    }

    fn algorithm(text: &str) -> Algorithm {
        Algorithm::parse(text).unwrap()
    }

    fn after(choice: Choice) -> Before {
        Before { verdict: Some(choice.algorithm), better_runs: choice.better_runs, ..Before::default() }
    }

    fn before(verdict: &str, better_runs: u32) -> Before {
        Before { verdict: Some(algorithm(verdict)), better_runs, ..Before::default() }
    }

    fn balanced(list: &[(&str, f64)], before: &Before) -> Choice {
        choose(&scored(list), before, &algorithm("lz4"))
    }

    /// What the kernel or zramd would use without a verdict has no advantage: it was never measured.
    #[test]
    fn the_first_run_takes_the_best() {
        for (score, share) in [(80.0, "20 %"), (95.0, "5 %")] {
            let choice = balanced(&[("lz4", 100.0), ("zstd", score)], &Before::default());
            assert_eq!(choice.algorithm, algorithm("zstd"));
            assert!(choice.reason.contains(share) && choice.reason.contains("lz4"), "{}", choice.reason);
        }
    }

    #[test]
    fn later_runs_have_to_agree() {
        let list = [("lz4", 100.0), ("zstd", 80.0)];
        let first = balanced(&list, &before("lz4", 0));
        assert_eq!((first.algorithm.to_string().as_str(), first.better_runs), ("lz4", 1));
        let second = balanced(&list, &before("lz4", first.better_runs));
        assert_eq!((second.algorithm.to_string().as_str(), second.better_runs), ("zstd", 0));
        let interrupted = balanced(&[("lz4", 100.0), ("zstd", 99.0)], &before("lz4", 1));
        assert_eq!((interrupted.algorithm.to_string().as_str(), interrupted.better_runs), ("lz4", 0));
    }

    #[test]
    fn what_is_gone_is_left_at_once_and_what_is_excluded_after_two_runs() {
        assert_eq!(balanced(&[("lzo", 100.0)], &before("zstd", 0)).algorithm, algorithm("lzo"));
        let mut list = scored(&[("lz4", 100.0)]);
        list.push((algorithm("zstd"), Err("too slow".to_owned())));
        let choice = choose(&list, &before("zstd", 0), &algorithm("lz4"));
        assert_eq!(
            (choice.algorithm.to_string().as_str(), choice.better_runs),
            ("zstd", 1),
            "the machine may have been busy"
        );
        let choice = choose(&list, &before("zstd", 1), &algorithm("lz4"));
        assert_eq!((choice.algorithm.to_string().as_str(), choice.better_runs), ("lz4", 0));
        let asked = balanced(&[("lzo", 100.0)], &Before::default());
        assert!(!asked.reason.contains("lz4"), "not requested: {}", asked.reason);
        let alike = balanced(&[("lz4", 100.0), ("lzo", 100.1)], &Before::default());
        assert!(alike.reason.contains("lzo"), "{}", alike.reason);
        let none = [(algorithm("zstd"), Err("too slow".to_owned()))];
        assert_eq!(choose(&none, &Before::default(), &algorithm("lz4")).algorithm, algorithm("lz4"));
    }

    #[test]
    fn a_level_has_to_be_clearly_better_than_the_plain_algorithm() {
        let list = [("zstd", 100.0), ("zstd(level=1)", 85.0), ("zstd(level=-1)", 70.0)];
        let choice = balanced(&list, &before("zstd", 1));
        assert_eq!(choice.algorithm, algorithm("zstd(level=-1)"), "{choice:?}");
        let close = balanced(&list[..2], &Before::default());
        assert_eq!(close.algorithm, algorithm("zstd"));
        for part in ["zstd(level=1)", "15 %", "20 %"] {
            assert!(close.reason.contains(part), "{part}: {}", close.reason);
        }
        // Both levels are better: the first one.
        let two = [("zstd", 100.0), ("zstd(level=1)", 75.0), ("zstd(level=-1)", 70.0)];
        assert_eq!(balanced(&two, &Before::default()).algorithm, algorithm("zstd(level=1)"));
        // The present verdict is kept without being better again.
        assert_eq!(balanced(&list[..2], &before("zstd(level=1)", 0)).algorithm, algorithm("zstd(level=1)"));
        // The median is better, but the intervals overlap.
        let unsure = Estimate { value: 70.0, low: 60.0, high: 110.0 };
        let mut scored = scored(&list[..1]);
        scored.push((algorithm("zstd(level=1)"), Ok(unsure)));
        assert_eq!(choose(&scored, &Before::default(), &algorithm("zstd")).algorithm, algorithm("zstd"));
        // If the plain algorithm is not eligible, its level is a candidate by itself.
        scored[0].1 = Err("too slow".to_owned());
        assert_eq!(
            choose(&scored, &Before::default(), &algorithm("lz4")).algorithm,
            algorithm("zstd(level=1)")
        );
    }

    proptest! {
        /// A single run does not change the verdict while that is eligible. (Regression: a level that was better by a
        /// fifth replaced the plain algorithm at once.)
        #[test]
        fn no_single_run_changes_the_verdict(scores in prop::collection::vec(1.0..1000.0f64, 5), verdict in 0usize..5) {
            let names = ["lz4", "lz4(level=4)", "zstd", "zstd(level=1)", "lzo-rle"];
            let list: Vec<(&str, f64)> = names.into_iter().zip(scores).collect();
            let choice = balanced(&list, &before(names[verdict], 0));
            prop_assert_eq!(choice.algorithm, algorithm(names[verdict]), "{}", choice.reason);
        }

        /// Twenty runs with noise of ±3 % around nearly equal scores: the first choice stays.
        #[test]
        fn noise_changes_nothing(noise in prop::collection::vec((0.97..1.03f64, 0.97..1.03f64, 0.97..1.03f64), 20)) {
            let mut before = Before::default();
            let mut chosen = Vec::new();
            for (a, b, c) in noise {
                let list = [("lz4", 100.0 * a), ("lzo-rle", 99.0 * b), ("zstd", 97.0 * c)];
                let choice = balanced(&list, &before);
                chosen.push(choice.algorithm.clone());
                before = after(choice);
            }
            chosen.dedup();
            prop_assert_eq!(chosen.len(), 1);
        }

        /// A single run beyond the margin does not change the verdict: that takes two consecutive runs.
        #[test]
        fn one_outlier_changes_nothing(outlier in 1usize..19, factor in 0.3..0.85f64) {
            let mut before = Before::default();
            for run in 0..20 {
                let zstd = if run == outlier { 100.0 * factor } else { 105.0 };
                let choice = balanced(&[("lz4", 100.0), ("zstd", zstd)], &before);
                prop_assert_eq!(&choice.algorithm, &algorithm("lz4"));
                before = after(choice);
            }
        }

        /// One level is better by about the margin (regression: the verdict flipped). The plain algorithm is chosen in
        /// all runs.
        #[test]
        fn a_level_at_the_margin_never_tips(
            share in 0.84..1.2f64,
            noise in prop::collection::vec((0.98..1.02f64, 0.98..1.02f64), 20),
        ) {
            let mut before = Before::default();
            for (a, b) in noise {
                let choice = balanced(&[("lz4", 100.0 * a), ("lz4(level=4)", 100.0 * share * b), ("zstd", 300.0)], &before);
                prop_assert_eq!(&choice.algorithm, &algorithm("lz4"));
                before = after(choice);
            }
        }

        /// Whatever the true scores: with noise below half of the margin, no algorithm is chosen again once it was
        /// replaced.
        #[test]
        fn nothing_comes_back(
            shares in (0.5..1.5f64, 0.5..1.5f64, 0.5..1.5f64),
            noise in prop::collection::vec((0.98..1.02f64, 0.98..1.02f64, 0.98..1.02f64, 0.98..1.02f64), 20),
        ) {
            let mut before = Before::default();
            let mut chosen: Vec<Algorithm> = Vec::new();
            for (a, b, c, d) in noise {
                let list = [
                    ("lz4", 100.0 * a),
                    ("lz4(level=4)", 100.0 * shares.0 * b),
                    ("zstd", 100.0 * shares.1 * c),
                    ("zstd(level=1)", 100.0 * shares.1 * shares.2 * d),
                ];
                let choice = balanced(&list, &before);
                chosen.push(choice.algorithm.clone());
                before = after(choice);
            }
            chosen.dedup();
            let different: std::collections::BTreeSet<String> = chosen.iter().map(Algorithm::to_string).collect();
            prop_assert_eq!(different.len(), chosen.len(), "{:?}", chosen);
        }
    }
}
