//! `zramd-worker benchmark`: measures, and stores the verdict.

pub mod compare;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use bench::choice::Before;
use bench::sample::Source;
use bench::{Options, keep};
use engine::work::{Reporter, Stopped};
use host::Host;
use host::linux::LinuxHost;
use host::out;
use logic::config::settings::When;
use logic::exit::ExitStatus;
use logic::order::{BENCHMARK, Benchmark as Order};

use super::{configured, frame};

pub fn run(order: Order) -> Result<ExitStatus, String> {
    order.check(LinuxHost::new("/").cpus())?;
    Ok(frame::run(BENCHMARK, BENCHMARK, |reporter| benchmark(reporter, order)))
}

fn benchmark(reporter: &mut Reporter, order: Order) -> Result<String, Stopped> {
    let mut host = LinuxHost::new("/");
    let settings = configured::loaded(order.config.as_ref()).settings;
    let boot = order.boot;
    let mut options = Options {
        source: if let Some(file) = order.data {
            if order.whole { Source::Whole(file) } else { Source::File(file) }
        } else if order.generator {
            Source::Generator
        } else if !order.processes.is_empty() {
            Source::Processes(order.processes)
        } else {
            Source::Configured(settings.benchmark.sample)
        },
        profile: order.profile.unwrap_or(settings.benchmark.profile),
        algorithms: order.algorithms,
        idle: order.idle,
        ..Options::default()
    };
    if !order.page_clusters.is_empty() {
        options.every_cluster = true;
        options.page_clusters = order.page_clusters.iter().map(|cluster| u32::from(cluster.0)).collect();
    }
    if let Some(threads) = order.threads {
        options.threads = threads as usize;
    }
    if let Some(seconds) = order.seconds {
        options.budget = Duration::from_secs_f64(seconds);
    }
    options.configured = settings.devices.iter().map(|device| device.number).collect::<BTreeSet<u32>>();
    let stored = keep::stored(&host, options.profile).ok();
    let unasked = options.idle || boot;
    if unasked {
        if settings.benchmark.when == When::Never {
            return Ok("the configuration disables the benchmark".to_owned());
        }
        if let Some(stored) = &stored {
            let verdict = &stored.algorithm;
            let again = keep::again(&host, stored, settings.benchmark.sample);
            // At boot a verdict is measured again only if it is of another machine.
            match again.filter(|_| !boot || !stored.outdated.is_empty()) {
                None => return Ok(format!("the verdict {verdict} is valid; nothing to measure")),
                Some(why) => out::note(&format!("the verdict {verdict} is measured again: {why}")),
            }
        }
    }
    if boot {
        (options.budget, options.pages) = AT_BOOT;
        options.source = Source::Generator;
    }
    // Results for other data, a subset of the algorithms or another profile are not stored as the verdict.
    let kept = options.algorithms.is_empty()
        && options.source.file().is_none()
        && !matches!(options.source, Source::Processes(_))
        && options.profile == settings.benchmark.profile;
    if let (true, Some(stored)) = (kept, &stored) {
        options.before = Before {
            verdict: keep::is_protected(&host, stored, settings.benchmark.sample)
                .then(|| stored.algorithm.clone()),
            better_runs: stored.better_runs,
            short_of_memory: stored.report.past.short_of_memory,
        };
    }
    let measured = bench::run(&mut host, &options, &mut |share, doing| reporter.progress(share, doing))?;
    reporter.detail(&measured.report)?;
    if kept {
        keep::keep(Path::new("/"), &host, &measured)?;
    }
    Ok(measured.report.verdict.reason)
}

/// Processor time, and pages, before devices are set up, which delays the boot.
const AT_BOOT: (Duration, usize) = (Duration::from_millis(1200), 2048);
