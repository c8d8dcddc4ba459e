//! Selects pages to recompress with a denser algorithm.

use std::time::Duration;

use super::age::{Range, recompression_age};
use super::pass::{Decision, Pages};
use super::pressure::Level;
use super::{Cause, span, tighter, too_soon};
use crate::device::algorithm::Algorithm;

/// Default idle ages (ChromeOS, Android).
pub const AGE: Range = Range { least: Duration::from_secs(2 * 3600), most: Duration::from_secs(4 * 3600) };
/// Minimum time between two runs of the timer.
const BACK_OFF: Duration = Duration::from_secs(30 * 60);

/// The configured settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Idle ages.
    pub age: Range,
    /// Maximum size in bytes of a recompressed incompressible page; `None` for any gain, which for the kernel is at
    /// least an eighth of a page.
    pub threshold: Option<u32>,
}

/// State of the device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seen {
    /// Primary algorithm, with its parameters if known.
    pub primary: Option<Algorithm>,
    /// Secondary algorithms by priority.
    pub secondary: Vec<(u32, Algorithm)>,
    /// Pages stored in memory.
    pub stored_pages: u64,
    /// Incompressible pages among them.
    pub huge_pages: u64,
    /// Their number when recompressing them last gained nothing.
    pub hopeless_huge_pages: u64,
    /// Share of memory in use, 0 to 1.
    pub utilisation: f64,
    /// Waking time since the last run.
    pub last: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// Selection of pages.
    pub pages: Pages,
    /// Priority of the secondary algorithm. Always set: without it, some kernels try all of them in order.
    pub priority: u32,
    /// Maximum size of a recompressed page in bytes; `None` for any gain.
    pub threshold: Option<u32>,
}

/// The passes of a run, and the idle age for those that need one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Idle age in waking time.
    pub age: Duration,
    /// In order.
    pub passes: Vec<Pass>,
}

/// Decides what to do with a device.
pub fn decide(settings: &Settings, seen: &Seen, cause: Cause) -> Decision<Run> {
    let level = cause.level();
    if let Some(why) = too_soon(seen.last, cause, BACK_OFF) {
        return Decision::Skip(why);
    }
    if seen.stored_pages == 0 {
        return Decision::Skip("nothing is stored".to_owned());
    }
    let usable = match usable(seen) {
        Ok(usable) => usable,
        Err(why) => return Decision::Skip(why),
    };
    let (first, last) = usable;
    let age = recompression_age(settings.age, seen.utilisation, level);
    let mut passes = vec![
        Pass { pages: Pages::HugeIdle, priority: last, threshold: None },
        Pass { pages: Pages::Idle, priority: first, threshold: None },
    ];
    // Tried again only if there are more of them than those that did not shrink, or on request.
    let hopeless = if cause == Cause::Request { 0 } else { seen.hopeless_huge_pages };
    if seen.huge_pages > hopeless {
        passes.push(Pass { pages: Pages::Huge, priority: last, threshold: settings.threshold });
    }
    let why = match level {
        Level::None => {
            format!("idle for {} at {:.0} % of memory in use", span(age), seen.utilisation * 100.0)
        }
        level => format!("idle for {} because of {} pressure", span(age), level.word()),
    };
    Decision::Do(Run { age, passes }, why)
}

/// Priorities of the loosest and the tightest useful secondary algorithm. Idle pages may be needed again,
/// incompressible ones need the tightest compression. If the strength is unknown, the order of the priorities decides.
fn usable(seen: &Seen) -> Result<(u32, u32), String> {
    if seen.secondary.is_empty() {
        return Err("it has no secondary algorithm".to_owned());
    }
    let primary = seen.primary.as_ref();
    let refused = |algorithm: &Algorithm| primary.and_then(|primary| tighter::refusal(primary, algorithm));
    let usable = || seen.secondary.iter().filter(|(_, algorithm)| refused(algorithm).is_none());
    let tighter = |one: &Algorithm, other: &Algorithm| tighter::is_tighter(one, other);
    let first = usable().reduce(|best, one| if tighter(&one.1, &best.1) == Some(true) { one } else { best });
    let last = usable().reduce(|best, one| if tighter(&best.1, &one.1) == Some(false) { best } else { one });
    match (first, last) {
        (Some((first, _)), Some((last, _))) => Ok((*first, *last)),
        _ => Err(seen.secondary.iter().find_map(|(_, algorithm)| refused(algorithm)).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use crate::maintain::recompress::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const SETTINGS: Settings = Settings { age: AGE, threshold: None };

    fn algorithm(text: &str) -> Algorithm {
        Algorithm::parse(text).unwrap()
    }

    fn seen() -> Seen {
        Seen {
            primary: Some(algorithm("lz4")),
            secondary: vec![(1, algorithm("zstd"))],
            stored_pages: 1000,
            huge_pages: 10,
            utilisation: 0.5,
            ..Seen::default()
        }
    }

    fn run(seen: &Seen, cause: Cause) -> Run {
        decide(&SETTINGS, seen, cause).done()
    }

    fn skipped(seen: &Seen, cause: Cause) -> String {
        decide(&SETTINGS, seen, cause).skipped()
    }

    #[test]
    fn the_passes_are_huge_idle_then_idle_then_huge() {
        let run = run(&seen(), Cause::Timer);
        let words: Vec<_> =
            run.passes.iter().map(|pass| (pass.pages.word(), pass.priority, pass.threshold)).collect();
        assert_eq!(words, [("huge_idle", 1, None), ("idle", 1, None), ("huge", 1, None)]);
        assert!((2 * HOUR..3 * HOUR).contains(&run.age));
        let reason = decide(&SETTINGS, &seen(), Cause::Timer).reason().to_owned();
        assert_eq!(reason, "idle for 2h 9min at 50 % of memory in use");
    }

    #[test]
    fn a_weaker_secondary_is_refused_with_the_reason() {
        let weak =
            Seen { primary: Some(algorithm("zstd")), secondary: vec![(1, algorithm("lz4"))], ..seen() };
        assert!(skipped(&weak, Cause::Request).contains("lz4"));
        // Of several, the useful ones are used.
        let both = Seen { secondary: vec![(1, algorithm("lz4")), (2, algorithm("zstd(level=15)"))], ..weak };
        assert!(run(&both, Cause::Timer).passes.iter().all(|pass| pass.priority == 2));
        let none = Seen { secondary: Vec::new(), ..seen() };
        skipped(&none, Cause::Timer);
    }

    #[test]
    fn incompressible_pages_get_the_tightest_algorithm() {
        let seen = Seen { secondary: vec![(1, algorithm("lz4hc")), (2, algorithm("zstd"))], ..seen() };
        let priorities: Vec<u32> = run(&seen, Cause::Timer).passes.iter().map(|pass| pass.priority).collect();
        assert_eq!(priorities, [2, 1, 2]);
        // Independent of their order.
        let seen = Seen { secondary: vec![(1, algorithm("zstd")), (2, algorithm("lz4hc"))], ..seen };
        let priorities: Vec<u32> = run(&seen, Cause::Timer).passes.iter().map(|pass| pass.priority).collect();
        assert_eq!(priorities, [1, 2, 1]);
        let seen = Seen { secondary: vec![(1, algorithm("zstd")), (2, algorithm("deflate"))], ..seen };
        let priorities: Vec<u32> = run(&seen, Cause::Timer).passes.iter().map(|pass| pass.priority).collect();
        assert_eq!(priorities, [2, 1, 2], "which is tighter is not known");
    }

    #[test]
    fn huge_pages_that_would_not_shrink_are_not_tried_every_hour() {
        let hopeless = Seen { hopeless_huge_pages: 10, ..seen() };
        assert_eq!(run(&hopeless, Cause::Timer).passes.len(), 2);
        assert_eq!(run(&hopeless, Cause::Request).passes.len(), 3, "a request is carried out");
        assert_eq!(run(&Seen { huge_pages: 0, ..seen() }, Cause::Request).passes.len(), 2);
        assert_eq!(run(&Seen { huge_pages: 11, ..hopeless }, Cause::Timer).passes.len(), 3);
    }

    #[test]
    fn runs_keep_their_distance() {
        let soon = Seen { last: Some(HOUR / 3), ..seen() };
        assert!(skipped(&soon, Cause::Timer).contains("20min"));
        run(&soon, Cause::Request);
        run(&soon, Cause::Pressure(Level::Moderate));
        skipped(&Seen { stored_pages: 0, ..seen() }, Cause::Request);
    }

    #[test]
    fn pressure_shortens_the_age() {
        let age = |level| run(&seen(), Cause::Pressure(level)).age.as_secs();
        assert_eq!([Level::Moderate, Level::Severe, Level::Critical].map(age), [300, 60, 15]);
        let short = Settings { age: Range { least: Duration::from_secs(5), ..AGE }, ..SETTINGS };
        let Decision::Do(run, _) = decide(&short, &seen(), Cause::Pressure(Level::Critical)) else {
            panic!()
        };
        assert_eq!(run.age.as_secs(), 5, "a configured age is not exceeded");
    }
}
