//! `zramd-worker benchmark`: measures, and stores the verdict.

pub mod compare;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::benchmark;
use engine::benchmark::sample::Source;
use engine::benchmark::{Options, SECONDS, keep};
use engine::work::{Reporter, Stopped};
use host::Host;
use host::linux::LinuxHost;
use host::out;
use lexopt::prelude::{Long, ValueExt};
use logic::benchmark::score::Profile;
use logic::benchmark::verdict::Before;
use logic::config::settings::When;
use logic::device::algorithm::Algorithm;
use logic::exit::ExitStatus;

use super::{configured, frame};

/// Output of `--help`.
pub const HELP: &str = "[--idle] [--boot] [--profile NAME] [--algorithm NAME]... [--data FILE | --generator | --process PID...] \
    [--page-cluster N]... [--threads N] [--seconds N]";

/// Name of the work.
const NAME: &str = "benchmark";

struct Words {
    options: Options,
    source: Option<Source>,
    profile: Option<Profile>,
    boot: bool,
}

fn parse(words: Vec<OsString>) -> Result<Words, String> {
    let mut parsed = Words { options: Options::default(), source: None, profile: None, boot: false };
    let text = |error: lexopt::Error| error.to_string();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(word) = parser.next().map_err(text)? {
        let options = &mut parsed.options;
        match word {
            Long("idle") => options.idle = true,
            Long("boot") => parsed.boot = true,
            // Marks a request without options as one of a user, not of the timer.
            Long("now") => {}
            Long("profile") => {
                let word = parser.value().and_then(ValueExt::string).map_err(text)?;
                let profile = Profile::parse(&word).ok_or_else(|| format!("there is no profile `{word}`"))?;
                parsed.profile = Some(profile);
            }
            Long("algorithm") => {
                let word = parser.value().and_then(ValueExt::string).map_err(text)?;
                options.algorithms.push(Algorithm::parse(&word).map_err(|error| error.message)?);
            }
            Long("data") => {
                parsed.source = Some(Source::File(PathBuf::from(parser.value().map_err(text)?)));
            }
            Long("generator") => parsed.source = Some(Source::Generator),
            Long("process") => {
                let process = parser.value().map_err(text)?.parse().map_err(text)?;
                match &mut parsed.source {
                    Some(Source::Processes(list)) => list.push(process),
                    other => *other = Some(Source::Processes(vec![process])),
                }
            }
            Long("threads") => {
                options.threads = parser.value().map_err(text)?.parse().map_err(text)?;
                let most = 4 * usize::try_from(LinuxHost::new("/").cpus()).unwrap_or(1);
                if !(1..=most).contains(&options.threads) {
                    return Err(format!("--threads takes 1 to {most} here, four for each CPU"));
                }
            }
            Long("page-cluster") => {
                let n: u32 = parser.value().map_err(text)?.parse().map_err(text)?;
                if n > 5 {
                    return Err(format!("page-cluster {n} is out of range: 0 to 5"));
                }
                if !options.every_cluster {
                    options.page_clusters.clear();
                }
                options.every_cluster = true;
                options.page_clusters.push(n);
            }
            Long("seconds") => {
                let seconds: f64 = parser.value().map_err(text)?.parse().map_err(text)?;
                if !SECONDS.contains(&seconds) {
                    return Err(format!("--seconds takes {} to {}", SECONDS.start(), SECONDS.end()));
                }
                options.budget = Duration::from_secs_f64(seconds);
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    Ok(parsed)
}

pub fn run(words: Vec<OsString>) -> Result<ExitStatus, String> {
    // The timer starts the benchmark without arguments.
    let by_timer = words.is_empty();
    let mut words = parse(words)?;
    words.options.idle |= by_timer;
    Ok(frame::run(NAME, NAME, |reporter| benchmark(reporter, words)))
}

fn benchmark(reporter: &mut Reporter, words: Words) -> Result<String, Stopped> {
    let mut host = LinuxHost::new("/");
    let settings = configured::loaded(None).settings;
    let mut options = words.options;
    options.source = words.source.unwrap_or(Source::Configured(settings.benchmark.sample));
    options.profile = words.profile.unwrap_or(settings.benchmark.profile);
    options.configured = settings.devices.iter().map(|device| device.number).collect::<BTreeSet<u32>>();
    let stored = keep::stored(&host, options.profile).ok();
    let unasked = options.idle || words.boot;
    if unasked {
        if settings.benchmark.when == When::Never {
            return Ok("the configuration disables the benchmark".to_owned());
        }
        if let Some(stored) = &stored {
            let verdict = &stored.algorithm;
            // At boot a valid verdict is not checked again.
            match keep::again(&host, stored, settings.benchmark.sample).filter(|_| !words.boot) {
                None => return Ok(format!("the verdict {verdict} is valid; nothing to measure")),
                Some(why) => out::note(&format!("the verdict {verdict} is valid, but measured again: {why}")),
            }
        }
    }
    if words.boot {
        options.budget = BOOT_BUDGET;
        options.source = Source::Generator;
    }
    // Results for other data, a subset of the algorithms or another profile are not stored as the verdict.
    let kept = options.algorithms.is_empty()
        && !matches!(options.source, Source::File(_) | Source::Processes(_))
        && options.profile == settings.benchmark.profile;
    if let (true, Some(stored)) = (kept, &stored) {
        options.before = Before {
            verdict: Some(stored.algorithm.clone()),
            better_runs: stored.better_runs,
            short_of_memory: stored.report.short_of_memory,
        };
    }
    let measured = benchmark::run(&mut host, &options, &mut |share, doing| reporter.progress(share, doing))?;
    reporter.detail(&measured.report)?;
    // An incomplete verdict does not replace another one.
    if kept && (stored.is_none() || measured.provisional.is_empty()) {
        keep::keep(Path::new("/"), &host, &measured)?;
    }
    Ok(measured.report.verdict.reason)
}

/// Time limit before devices are set up, which delays the boot.
const BOOT_BUDGET: Duration = Duration::from_millis(1500);
