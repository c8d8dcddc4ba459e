//! A whole benchmark: one scratch device, all candidates in turn, within a time budget.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::measure::{Direction, Pass, Spec, pass};
use super::options::Options;
use super::page_buffer::Sample;
use super::sample::{self, Source, collect};
use super::trial::{Rounds, Trial, memory_per_page, rows, scores};
use crate::advice;
use crate::candidates::{self, Candidate};
use crate::choice::{self, Choice};
use crate::frequency::Frequency;
use crate::quiet;
use crate::report::{self, Baseline, Cluster, Report, Row, SCHEMA_VERSION, Verdict};
use crate::score::{Aim, Past};
use crate::statistics::Estimate;
use engine::gather;
use engine::scratch::Scratch;
use engine::work::Stopped;
use engine::{Error, ErrorKind};
use host::linux::pages::Pages;
use host::linux::{clock, interrupt, priority};
use host::{Host, MachineFile};
use logic::device::algorithm::Algorithm;
use logic::human::human;
use logic::psi::Usage;
use logic::text::worded;

/// Processor time for reads of several pages with one algorithm: to fill the device, if requested for all, and for each number of pages.
const CLUSTERS: Duration = Duration::from_millis(100);
const CLUSTER: Duration = Duration::from_millis(50);
/// With fewer pages, the benchmark is refused.
const LEAST_PAGES: usize = 512;
/// The sample and its two compressed copies take at most a sixth of the available memory.
const SHARE_OF_MEMORY: u64 = 18;
/// The same for a whole file that was asked for.
const WHOLE_SHARE_OF_MEMORY: u64 = 4;
/// Same-filled pages for the baseline.
const BASELINE_PAGES: usize = 512;
/// Share of the sample, as a divisor, after which memory is measured for the first time.
const FIRST_SHARE: usize = 2;
/// Requests that are timed of each algorithm in any case, on however slow a processor.
const LEAST_REQUESTS: usize = 512;
/// Pages stored of an algorithm that is measured to look at only.
const LOOKED_AT: usize = 2 * LEAST_REQUESTS;
/// Pages per request where the time does not matter.
const FILL: usize = 16;
/// Pages between two reports of the progress; a multiple of [`FILL`].
const FILL_AT_ONCE: usize = 8192;
/// One round of all candidates for each of this time of the budget: ten of the usual one.
const ROUND: Duration = Duration::from_millis(250);
/// Rounds at most: all their times are kept.
const ROUNDS: u32 = 40;
/// Measurements of the throughput in each round, for its spread.
const RATES: usize = 2;
/// Processor time of each thread for one of them.
const RATE: Duration = Duration::from_millis(10);
/// A run ends without a result if it takes longer than this and [`PATIENCE_FACTOR`] times the processor time that it got.
const PATIENCE: Duration = Duration::from_secs(30);
const PATIENCE_FACTOR: u32 = 4;

/// Result of a benchmark.
#[derive(Debug, Clone)]
pub struct Measured {
    /// All figures.
    pub report: Report,
    pub chosen: Algorithm,
    /// The algorithms that this kernel offers.
    pub offered: Vec<String>,
    /// See [`choice::Before::better_runs`].
    pub better_runs: u32,
}

/// Requests of same-filled pages, which compress nothing.
#[derive(Default)]
struct Request {
    write: Rounds,
    read: Rounds,
}

impl Request {
    fn baseline(&self) -> Baseline {
        Baseline { read_ns: self.read.usual_ns().value, write_ns: self.write.usual_ns().value }
    }
}

/// A running benchmark.
struct Run<'a, H: Host> {
    host: &'a mut H,
    options: &'a Options,
    begun: Instant,
    /// When measuring began, and the processor time of this thread then. A whole file may take long to read before.
    measuring: Instant,
    processor: Duration,
    usage: Usage,
    scratch: Scratch,
    node: PathBuf,
    sample: Sample,
    /// About the processor time that it takes: that of the options, times how much more pages there are.
    budget: Duration,
    report: &'a mut dyn FnMut(f64, &str),
}

/// Runs the benchmark. `report` receives the progress and the current measurement.
pub fn run<H: Host>(
    host: &mut H,
    options: &Options,
    report: &mut dyn FnMut(f64, &str),
) -> Result<Measured, Stopped> {
    let begun = Instant::now();
    if !host.is_privileged() {
        let message = "measuring needs a zram device of its own, and therefore root";
        return Err(Error::new(engine::ErrorKind::NotPermitted, message).into());
    }
    // A file that cannot be measured is an error now, even if the run would be postponed.
    if let Some(path) = options.source.file() {
        sample::open(path)?;
    }
    let usage = gather::usage(host);
    if let Some(why) = quiet::before(&usage, host.on_battery(), options.idle) {
        return Err(options.postponed(&why));
    }
    if options.idle {
        priority::lowest();
    }
    report(0.0, "collecting pages");
    let sample = collect(host, &options.source, &options.configured, pages_that_fit(host, options)?);
    if interrupt::is_asked() {
        return Err(cancelled());
    }
    let sample = sample?;
    if sample.pages.count() < LEAST_PAGES {
        let (found, from) = (sample.pages.count(), &sample.data.description);
        let message =
            format!("{from}: {found} of them can be compressed, and a benchmark takes {LEAST_PAGES}");
        return Err(Error::failed(message).into());
    }
    let scratch = Scratch::create(host, &options.configured)?;
    let node = PathBuf::from(format!("/dev/zram{}", scratch.number()));
    let (measuring, processor) = (Instant::now(), clock::thread_processor_time());
    let more = (sample.pages.count() as f64 / options.pages as f64).max(1.0);
    let budget = options.budget.mul_f64(more);
    let mut run =
        Run { host, options, begun, measuring, processor, usage, scratch, node, sample, budget, report };
    let mut measured = run.measure();
    // Release the device also after an error.
    let Run { host, scratch, .. } = run;
    let released = scratch.release(host);
    if let Ok(measured) = &mut measured {
        measured.report.seconds = begun.elapsed().as_secs_f64();
        measured.report.measured_unix = clock::unix_seconds();
    }
    match (measured, released) {
        (Ok(measured), Ok(())) => Ok(measured),
        (Ok(_), Err(error)) => Err(error.into()),
        (Err(Stopped::Failed(error)), Err(other)) => Err(Stopped::Failed(error.join(other))),
        (Err(stopped), _) => Err(stopped),
    }
}

/// What the machine has done since boot.
pub(super) fn past<H: Host>(host: &H) -> Past {
    let vmstat: String = host.text(MachineFile::Vmstat).unwrap_or_default();
    let memory = gather::memory(host).unwrap_or_default();
    let swaps = gather::swaps(host).unwrap_or_default();
    advice::past(&vmstat, host.page_size(), memory.total_kib.saturating_mul(1024), host.monotonic(), &swaps)
}

fn cancelled() -> Stopped {
    Stopped::Cancelled("the benchmark was cancelled".to_owned())
}

/// Number of sample pages that fit into the available memory.
fn pages_that_fit<H: Host>(host: &H, options: &Options) -> Result<usize, Stopped> {
    let available = gather::memory(host)?.available_kib * 1024;
    if let Source::Whole(path) = &options.source {
        let (_, size) = sample::open(path)?;
        let most = available / WHOLE_SHARE_OF_MEMORY;
        if size > most {
            let message = format!(
                "{}: {} do not fit: a whole file may have a quarter of the available memory, which is {}; without --whole, a sample is measured",
                path.display(),
                human(size),
                human(most)
            );
            return Err(Error::new(ErrorKind::InsufficientMemory, message).into());
        }
        return Ok(usize::try_from(size / host.page_size()).unwrap_or(usize::MAX));
    }
    let most = options.pages;
    let pages = usize::try_from(available / SHARE_OF_MEMORY / host.page_size()).unwrap_or(most).min(most);
    if pages < LEAST_PAGES {
        let available = human(available);
        return Err(options.postponed(&format!("only {available} of memory are available")));
    }
    Ok(pages)
}

impl<H: Host> Run<'_, H> {
    /// Processor time of this run.
    fn used(&self) -> Duration {
        clock::thread_processor_time_since(self.processor)
    }

    fn left(&self) -> Duration {
        self.budget.saturating_sub(self.used())
    }

    /// Between two measurements: reports the progress, and ends the run when it is cancelled or the machine is busy.
    fn check(&mut self, doing: &str) -> Result<(), Stopped> {
        let share = self.used().as_secs_f64() / self.budget.as_secs_f64();
        (self.report)(share.min(0.99), doing);
        if interrupt::is_asked() {
            return Err(cancelled());
        }
        let aborted = |why| Err(Stopped::Postponed(format!("the benchmark was aborted: {why}")));
        let (elapsed, used) = (self.measuring.elapsed(), self.used());
        if elapsed > PATIENCE + PATIENCE_FACTOR * used {
            let (elapsed, used) = (elapsed.as_secs_f64(), used.as_secs_f64());
            return aborted(format!("in {elapsed:.0} s it got {used:.1} s of a busy processor"));
        }
        let now = gather::usage(self.host);
        quiet::meanwhile(&self.usage, &now, self.begun.elapsed(), self.options.idle).map_or(Ok(()), aborted)
    }

    fn threads(&self) -> usize {
        match self.options.threads {
            0 => usize::try_from(self.host.cpus()).unwrap_or(1),
            threads => threads,
        }
    }

    fn candidates(&self) -> Result<(Vec<Candidate>, Vec<String>), Error> {
        let offered = self.scratch.offered(self.host)?;
        let takes_parameters = self.scratch.takes_parameters(self.host);
        let list = if self.options.algorithms.is_empty() {
            candidates::default(&offered, takes_parameters)
        } else {
            self.options.algorithms.iter().cloned().map(candidates::candidate).collect()
        };
        Ok((list, offered))
    }

    fn measure(&mut self) -> Result<Measured, Stopped> {
        let (list, offered) = self.candidates()?;
        let mut trials: Vec<Trial> = list.into_iter().map(Trial::new).collect();
        let Some(first) = trials.first().map(|trial| trial.candidate.algorithm.clone()) else {
            return Err(Error::failed("this kernel offers no algorithm").into());
        };
        let mut request = Request::default();
        self.request(&first, &mut request)?;
        // Six tenths of the time for a first look at all candidates, the rest for further rounds with those that can be chosen.
        let kept = self.left().mul_f64(0.4);
        let count = trials.len();
        for (index, trial) in trials.iter_mut().enumerate() {
            // A candidate that exceeds its share, as on a busy machine, leaves less time for the others.
            let slot = self.left().saturating_sub(kept) / u32::try_from(count - index).unwrap_or(1);
            self.first_look(trial, slot)?;
        }
        if trials.iter().all(|trial| trial.failed.is_some()) {
            let why = trials.iter().filter_map(|trial| trial.failed.clone()).reduce(Error::join);
            return Err(why.unwrap_or_else(|| Error::failed("nothing was measured")).into());
        }
        let now = past(self.host);
        let past =
            Past { short_of_memory: now.short_of_memory || self.options.before.short_of_memory, ..now };
        let aim = Aim::of(self.options.profile, past);
        let scored = scores(&trials, aim, &request.baseline());
        let candidates: Vec<usize> = (0..trials.len()).filter(|&index| scored[index].1.is_ok()).collect();
        let most = self.options.budget.as_millis() / ROUND.as_millis();
        let most = u32::try_from(most).unwrap_or(ROUNDS).min(ROUNDS);
        let mut rounds = 1;
        // Keep the time for the reads of several pages.
        while rounds < most && self.left() > self.budget.mul_f64(0.15) {
            rounds += 1;
            let share = (most + 1 - rounds) * u32::try_from(candidates.len()).unwrap_or(1).max(1);
            let slot = self.left().mul_f64(0.85) / share;
            self.request(&first, &mut request)?;
            for &index in &candidates {
                self.again(&mut trials[index], slot, rounds)?;
            }
        }
        let baseline = request.baseline();
        let scored = scores(&trials, aim, &baseline);
        let choice = choice::choose(&scored, &self.options.before, &usual(&offered));
        let chosen = choice.algorithm.clone();
        let page_clusters = self.page_clusters(&trials, &chosen)?;
        let mut data = self.sample.data.clone();
        let shares = trials.iter().filter(|trial| trial.failed.is_none()).map(Trial::incompressible_share);
        data.incompressible_share = shares.fold(1.0, f64::min);
        let waited_share = waited_share(&trials);
        let mut rows = rows(&trials, &scored, &baseline, &choice);
        if report::is_disturbed(waited_share) {
            for row in &mut rows {
                row.read.bytes_per_second = Estimate::default();
                row.write.bytes_per_second = Estimate::default();
            }
        }
        let verdict = self.verdict(&chosen, &choice, &rows, &page_clusters);
        let report = Report {
            schema_version: SCHEMA_VERSION,
            verdict,
            data,
            profile: self.options.profile,
            past,
            baseline,
            results: rows,
            page_clusters,
            threads: u32::try_from(self.threads()).unwrap_or(1),
            seconds: 0.0,
            waited_share,
            frequency: Frequency::of(self.host),
            measured_unix: 0,
            rounds,
        };
        Ok(Measured { report, chosen, offered, better_runs: choice.better_runs })
    }

    fn configure(&mut self, algorithm: &Algorithm) -> Result<(), Error> {
        // Room for the sample twice.
        let pages = (2 * self.sample.pages.count()).max(BASELINE_PAGES);
        let bytes = (pages * self.sample.pages.page_size()) as u64;
        self.scratch.configure(self.host, algorithm, bytes)
    }

    /// Measures the cost of a request by itself, with same-filled pages.
    fn request(&mut self, algorithm: &Algorithm, request: &mut Request) -> Result<(), Stopped> {
        self.check("the cost of a request")?;
        self.configure(algorithm)?;
        let mut same = Pages::new(BASELINE_PAGES)?;
        for index in 0..BASELINE_PAGES {
            same.page_mut(index).fill(u8::try_from(1 + index % 250).unwrap_or(1));
        }
        // Warm-up.
        pass(&self.node, &same, &Spec::new(Direction::Write, 0..BASELINE_PAGES))?;
        let write = Spec::new(Direction::Write, 0..BASELINE_PAGES);
        request.write.passes.push(pass(&self.node, &same, &write)?);
        let read = Spec { shuffle: Some(1), ..Spec::new(Direction::Read, 0..BASELINE_PAGES) };
        request.read.passes.push(pass(&self.node, &same, &read)?);
        Ok(())
    }

    /// Measures one candidate for the first time, with about this processor time.
    fn first_look(&mut self, trial: &mut Trial, slot: Duration) -> Result<(), Stopped> {
        let name = trial.candidate.algorithm.to_string();
        self.check(&name)?;
        if let Err(error) = self.configure(&trial.candidate.algorithm) {
            trial.failed = Some(error);
            return Ok(());
        }
        let count = self.sample.pages.count();
        let is_whole = trial.candidate.never.is_empty() || matches!(self.options.source, Source::Whole(_));
        let end = if is_whole { count } else { count.min(LOOKED_AT) };
        let first = end / FIRST_SHARE;
        let (limit, least) = (slot.mul_f64(0.4), LEAST_REQUESTS);
        let write = Spec { limit, least, ..Spec::new(Direction::Write, 0..first) };
        let write = match pass(&self.node, &self.sample.pages, &write) {
            Ok(pass) => pass,
            Err(error) => {
                trial.failed = Some(error);
                return Ok(());
            }
        };
        // All pages are stored, however slowly, so that the ratio is that of the sample.
        let written = usize::try_from(write.requests()).unwrap_or(0);
        self.fill(&name, written..first)?;
        let early = self.scratch.memory(self.host)?;
        self.fill(&name, first..end)?;
        trial.memory = self.scratch.memory(self.host)?;
        let pages = usize::try_from(trial.memory.orig_data_size).unwrap_or(0) / self.sample.pages.page_size();
        trial.memory_per_page = memory_per_page(pages, trial.memory.compr_data_size, &early, &trial.memory);
        let limit = slot.mul_f64(0.4);
        let read =
            Spec { shuffle: Some(1), verify: true, limit, least, ..Spec::new(Direction::Read, 0..end) };
        trial.write.passes.push(write);
        trial.read.passes.push(pass(&self.node, &self.sample.pages, &read)?);
        self.rates(trial, 0..end, count)
    }

    /// Stores these pages, in large requests, and the last ones singly.
    fn fill(&mut self, name: &str, pages: Range<usize>) -> Result<(), Stopped> {
        let whole = pages.start + pages.len() / FILL * FILL;
        let threads = self.threads();
        for part in (pages.start..whole).step_by(FILL_AT_ONCE) {
            self.check(name)?;
            let large = Spec::new(Direction::Write, part..whole.min(part + FILL_AT_ONCE));
            pass(&self.node, &self.sample.pages, &Spec { pages_per_request: FILL, threads, ..large })?;
        }
        pass(&self.node, &self.sample.pages, &Spec::new(Direction::Write, whole..pages.end))?;
        Ok(())
    }

    /// Measures the throughput of all threads: of reads of these pages, and of writes of them to the device from page `free` on.
    fn rates(&mut self, trial: &mut Trial, pages: Range<usize>, free: usize) -> Result<(), Stopped> {
        let spec = Spec { threads: self.threads(), limit: RATE, ..Spec::new(Direction::Read, pages) };
        let read = Spec { shuffle: Some(1), ..spec.clone() };
        let write = Spec { at: free, direction: Direction::Write, ..spec };
        for _ in 0..RATES {
            trial.read.together.push(pass(&self.node, &self.sample.pages, &read)?);
            trial.write.together.push(pass(&self.node, &self.sample.pages, &write)?);
        }
        Ok(())
    }

    /// Measures times and throughput again.
    fn again(&mut self, trial: &mut Trial, slot: Duration, round: u32) -> Result<(), Stopped> {
        self.check(&trial.candidate.algorithm.to_string())?;
        self.configure(&trial.candidate.algorithm)?;
        let count = self.sample.pages.count();
        let all = 0..count.min(2048);
        let write = Spec { limit: slot.mul_f64(0.6), ..Spec::new(Direction::Write, all) };
        let write = pass(&self.node, &self.sample.pages, &write)?;
        let done = 0..usize::try_from(write.requests()).unwrap_or(0);
        let read = Spec {
            shuffle: Some(u64::from(round)),
            limit: slot.mul_f64(0.4),
            ..Spec::new(Direction::Read, done.clone())
        };
        trial.read.passes.push(pass(&self.node, &self.sample.pages, &read)?);
        trial.write.passes.push(write);
        self.rates(trial, done, count)
    }

    fn page_clusters(&mut self, trials: &[Trial], chosen: &Algorithm) -> Result<Vec<Cluster>, Stopped> {
        let mut clusters = Vec::new();
        let every = self.options.every_cluster;
        let concerned: Vec<Algorithm> = trials
            .iter()
            .filter(|trial| trial.failed.is_none())
            .map(|trial| trial.candidate.algorithm.clone())
            .filter(|algorithm| every || algorithm == chosen)
            .collect();
        for algorithm in concerned {
            self.check(&format!("{algorithm}, several pages at once"))?;
            self.configure(&algorithm)?;
            // An explicit list ignores the time budget.
            let limit = if every { CLUSTERS } else { self.left().mul_f64(0.4) };
            let all = 0..self.sample.pages.count().min(2048);
            let write = Spec { limit, ..Spec::new(Direction::Write, all) };
            let write = pass(&self.node, &self.sample.pages, &write)?;
            let done = 0..usize::try_from(write.requests()).unwrap_or(0);
            // The suggested `vm.page-cluster` is computed from all of them.
            let usual = Options::default().page_clusters;
            let asked = self.options.page_clusters.iter().copied();
            let more = usual.into_iter().filter(|_| algorithm == *chosen);
            for n in asked.chain(more).collect::<BTreeSet<u32>>() {
                let read = Spec {
                    pages_per_request: 1 << n,
                    shuffle: Some(2),
                    limit: CLUSTER,
                    ..Spec::new(Direction::Read, done.clone())
                };
                let read = pass(&self.node, &self.sample.pages, &read)?;
                clusters.push(Cluster {
                    algorithm: algorithm.clone(),
                    page_cluster: n,
                    mean_ns: read.mean_ns(),
                    p50_ns: read.quantile_ns(500) as f64,
                    p99_ns: read.quantile_ns(990) as f64,
                    bytes_per_second: read.bytes_per_second(),
                    requests_per_second: if read.mean_ns() > 0.0 { 1e9 / read.mean_ns() } else { 0.0 },
                });
            }
        }
        Ok(clusters)
    }

    fn verdict(&self, chosen: &Algorithm, choice: &Choice, rows: &[Row], clusters: &[Cluster]) -> Verdict {
        let text = |file| self.host.text(file).unwrap_or_default();
        let vmstat = text(MachineFile::Vmstat);
        let counter = |name| advice::counter(&vmstat, name);
        let own = clusters.iter().filter(|row| row.algorithm == *chosen);
        let mut times: Vec<(u32, f64)> = own.map(|row| (row.page_cluster, row.p50_ns)).collect();
        times.sort_by_key(|(n, _)| *n);
        let complete = times.iter().enumerate().all(|(index, (n, _))| u32::try_from(index) == Ok(*n));
        let times: Vec<f64> = times.into_iter().map(|(_, time)| time).collect();
        let hits = advice::hit_rate(counter("swap_ra"), counter("swap_ra_hit"));
        let read_ns = rows.iter().find(|row| row.algorithm == *chosen).map(|row| row.read.mean_ns);
        let disk = advice::disk_read_ns(&text(MachineFile::Diskstats));
        Verdict {
            algorithm: chosen.clone(),
            page_cluster: if complete { advice::page_cluster(&times, hits) } else { 0 },
            swappiness: disk.and_then(|disk| advice::swappiness(disk, read_ns?)),
            reason: worded(choice.reason.as_str()),
        }
    }
}

/// Share of the time in which the measuring thread had to wait for its CPU: other programs had it, or the host of a virtual machine.
fn waited_share(trials: &[Trial]) -> f64 {
    let passes = trials.iter().flat_map(|trial| trial.write.passes.iter().chain(&trial.read.passes));
    let (processor, elapsed) = passes
        .map(Pass::processor_and_elapsed)
        .fold((Duration::ZERO, Duration::ZERO), |(processor, elapsed), (more, longer)| {
            (processor + more, elapsed + longer)
        });
    if elapsed.is_zero() { 0.0 } else { (1.0 - processor.as_secs_f64() / elapsed.as_secs_f64()).max(0.0) }
}

/// The algorithm of `auto` without a measurement.
fn usual(offered: &[String]) -> Algorithm {
    let has = |name: &&&str| offered.iter().any(|other| other == *name);
    let known = logic::plan::wanted::AUTO.iter().find(has).copied();
    Algorithm::plain(known.or(offered.first().map(String::as_str)).unwrap_or_default())
}
