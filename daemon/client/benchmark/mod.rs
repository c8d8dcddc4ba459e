//! `bench run`, `show`, `forget` and `adopt`: choosing the compression algorithm, also for `init --now`.

pub mod chart;
pub mod ramdisk;
pub mod swap;

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use zbus::Variant;

use super::args::{BenchRun, BenchShow, Cli, Json};
use super::changes;

use super::connect::{self, Bus};
use super::job::Jobs;
use super::{out, read, worker};
use bench::keep;
use bench::report::{Cluster, Report, Row};
use bench::score::Aim;
use bench::statistics::Estimate;
use bench::weights::Weights;
use engine::reload::Scope;
use engine::{Error, ErrorKind};
use host::Host;
use host::linux::{LinuxHost, clock, work};
use logic::device::algorithm::Algorithm;
use logic::exit::ExitStatus;
use logic::following::Follower;
use logic::maintain::span;
use logic::order::{BENCHMARK, Benchmark, Order, PageCluster};
use logic::table;
use logic::verdict::{Profile, Stored};
use logic::work::Work;

/// Object path and interface on the bus.
const OBJECT: &str = "/org/zramd1/benchmark";
const INTERFACE: &str = "org.zramd1.Benchmark";

/// Runs `bench run`: directly as root, otherwise through the daemon.
pub fn run(cli: &Cli, words: &BenchRun) -> Result<ExitStatus, Error> {
    let ask_password = !cli.no_ask_password;
    let report: Option<Report> = if LinuxHost::new("/").is_privileged() {
        let config = read::used_file(cli).map(|file| worker::absolute(&file)).transpose()?;
        worker::run(&Order::Benchmark(Benchmark { config, ..order(words)? }), "measuring")?
    } else if cli.config.is_some() {
        return Err(Error::new(
            ErrorKind::NotPermitted,
            "--config needs root: the daemon uses its own configuration",
        ));
    } else {
        let status = connect::run(through_daemon(ask_password, for_daemon(&order(words)?)?));
        if status != ExitStatus::Success {
            return Ok(status);
        }
        last()
    };
    let report = report.ok_or_else(|| Error::failed("the benchmark ended without a result"))?;
    let status = show_report(&report, words.form.json, words.chart.as_deref())?;
    let profile = read::config(read::daemons_file(cli).as_ref()).settings.benchmark.profile;
    if words.algorithms.is_empty() && words.data.is_none() && report.profile == profile {
        for line in sentences(&followers(cli)) {
            out::note(&line);
        }
    } else {
        out::note(
            "This run does not become the verdict: that takes all algorithms, the configured profile, and no --data.",
        );
    }
    Ok(status)
}

/// What each configured device has to do with the verdict, and what to do about it.
pub(super) fn followers(cli: &Cli) -> Vec<Follower> {
    let file = read::daemons_file(cli);
    let loaded = read::config(file.as_ref());
    let survey = read::survey(file.as_ref(), &loaded, Scope::default());
    survey.map_or_else(|_| Vec::new(), |survey| survey.followers(&read::host(), &loaded))
}

/// As printed, a line each.
pub(super) fn sentences(followers: &[Follower]) -> impl Iterator<Item = String> {
    followers.iter().map(|follower| match follower.remedy.as_str() {
        "" => format!("{}.", follower.sentence),
        remedy => format!("{} ({remedy}).", follower.sentence),
    })
}

/// The order with these options.
fn order(words: &BenchRun) -> Result<Benchmark, Error> {
    Ok(Benchmark {
        algorithms: words.algorithms.clone(),
        data: words.data.as_deref().map(worker::absolute).transpose()?,
        whole: words.whole,
        generator: words.generator,
        profile: words.profile.as_deref().and_then(Profile::parse),
        threads: words.threads.map(u32::from),
        page_clusters: words.page_cluster.iter().cloned().flatten().map(PageCluster).collect(),
        seconds: words.seconds,
        ..Benchmark::default()
    })
}

/// The same as options of org.zramd1.Benchmark.Run. The daemon reads no files for its callers.
fn for_daemon(order: &Benchmark) -> Result<HashMap<String, Variant<'static>>, Error> {
    if order.data.is_some() {
        return Err(Error::new(ErrorKind::NotPermitted, "--data needs root: run it with sudo"));
    }
    let options = serde_json::to_value(order).map_err(|error| Error::failed(error.to_string()))?;
    let Value::Object(options) = options else { return Ok(HashMap::new()) };
    let each = options.into_iter().filter_map(|(name, value)| {
        let value = match value {
            Value::Bool(is_set) => is_set.into(),
            Value::Number(number) => match number.as_u64().and_then(|number| u32::try_from(number).ok()) {
                Some(number) => number.into(),
                None => number.as_f64().unwrap_or_default().into(),
            },
            Value::String(text) => text.into(),
            Value::Array(list) => {
                let texts = list.iter().filter_map(Value::as_str).map(str::to_owned);
                texts.collect::<Vec<String>>().into()
            }
            Value::Null | Value::Object(_) => return None,
        };
        Some((name, value))
    });
    Ok(each.collect())
}

async fn through_daemon(
    ask_password: bool,
    options: HashMap<String, Variant<'static>>,
) -> Result<ExitStatus, Error> {
    let bus = Bus::open(ask_password).await?;
    let mut jobs = Jobs::listen(&bus).await?;
    let job = bus.call(OBJECT, INTERFACE, "Run", &options).await?;
    jobs.wait(&job, "measuring").await?;
    Ok(ExitStatus::Success)
}

/// The report of the last run, by any user.
fn last() -> Option<Report> {
    let work: Work<Option<Report>> = serde_json::from_str(&work::read(Path::new("/"), BENCHMARK)?).ok()?;
    work.detail
}

/// Runs `bench show`.
pub fn show(cli: &Cli, words: &BenchShow) -> Result<ExitStatus, Error> {
    let profile = read::config(read::used_file(cli).as_ref()).settings.benchmark.profile;
    let stored = keep::stored(&LinuxHost::new("/"), profile)
        .map_err(|why| Error::new(ErrorKind::NotFound, format!("{why}; `zramdctl bench run` measures")))?;
    let weighted = words.weights.map(|weights| weighted(&stored.report, &weights)).transpose()?;
    show_report(&stored.report, words.form.json, words.chart.as_deref())?;
    out::data(&weighted.unwrap_or_default());
    if words.form.json == Json::Off {
        out::line(&age(&stored, clock::unix_seconds()));
        if !stored.provisional().is_empty() {
            let why = stored.provisional();
            out::line(&format!("It is provisional: {why}. It is used until it is measured again."));
        }
        for line in sentences(&followers(cli)) {
            out::line(&line);
        }
    }
    Ok(ExitStatus::Success)
}

/// The weighted sums as a table, the largest first.
fn weighted(report: &Report, weights: &Weights) -> Result<String, Error> {
    let sums = weights
        .sums(&report.results, report.is_disturbed())
        .map_err(|why| Error::new(ErrorKind::Unsupported, format!("--weights: {why}")))?;
    let mut rows: Vec<(f64, &Row)> =
        sums.into_iter().zip(&report.results).filter_map(|(sum, row)| Some((sum?, row))).collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(sum, row)| vec![row.algorithm.to_string(), format!("{sum:.3}"), score(row)])
        .collect();
    let Weights { latency, ratio, throughput } = weights;
    Ok(format!(
        "\n{}\nSUM is {latency} × shortest time of a read / its own + {ratio} × ratio / largest + {throughput} × throughput of reads / largest.\n\
         It is for looking: the verdict is by SCORE.\n",
        table::render(&["ALGORITHM", "SUM", "SCORE µs"], &[1, 2], &rows)
    ))
}

/// When, and with which kernel and CPU it was measured.
fn age(stored: &Stored<Report>, now: u64) -> String {
    let past = Duration::from_secs(now.saturating_sub(stored.measured_unix));
    format!("Measured {} ago with Linux {} on {}.", span(past), stored.key.kernel, stored.key.cpu)
}

fn show_report(report: &Report, json: Json, chart: Option<&Path>) -> Result<ExitStatus, Error> {
    out::result(json, report, || text(report))?;
    // Last, so that an error with the chart does not hide the figures.
    if let Some(path) = chart {
        chart::write(report, path)?;
    }
    Ok(ExitStatus::Success)
}

/// Runs `bench forget`.
pub fn forget(ask_password: bool) -> Result<ExitStatus, Error> {
    if !LinuxHost::new("/").is_privileged() {
        return Ok(connect::run(async {
            let bus = Bus::open(ask_password).await?;
            let () = bus.call(OBJECT, INTERFACE, "Forget", &()).await?;
            Ok(ExitStatus::Success)
        }));
    }
    if !engine::verdict::forget(Path::new("/"))? {
        out::line("no measurement yet");
    }
    Ok(ExitStatus::Success)
}

/// Measures for the first time, for `init --now`, shows what came of it, and waits until empty swap uses it. Swap is on by now, and stays so
/// without a result.
pub fn first(cli: &Cli) -> ExitStatus {
    let report: Report = match worker::run(&Order::Benchmark(Benchmark::default()), "measuring") {
        Ok(Some(report)) => report,
        Ok(None) => return ExitStatus::Success,
        Err(error) => {
            out::note(&format!(
                "Nothing was measured: {}. \"auto\" is its default until the machine is measured, when it is idle; or run `zramdctl bench run`.",
                error.message
            ));
            return ExitStatus::Success;
        }
    };
    out::note(&format!("\n{}", summary(&report)));
    // What it did is in the sentences that follow; the daemon may also have been faster.
    let status = connect::run(async {
        adopted(!cli.no_ask_password).await?;
        Ok(ExitStatus::Success)
    });
    for line in sentences(&followers(cli)) {
        out::note(&line);
    }
    status
}

/// The algorithms that can be chosen, in a small table, and the verdict in a sentence.
fn summary(report: &Report) -> String {
    let rows = report.results.iter().filter(|row| row.score.is_some()).map(|row| {
        let cells = line(row, report);
        [0, 1, 2, 3, 5, 9].map(|column| cells[column].clone()).to_vec()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let heading = ["", "ALGORITHM", "RATIO", "READ µs", "WRITE µs", "SCORE µs"];
    let table = table::render(&heading, &[2, 3, 4, 5], &rows);
    let (reason, pages) = (&report.verdict.reason, &report.data.description);
    format!(
        "{table}{}{reason} (measured with {pages}; `zramdctl bench show` has all figures).",
        disturbed(report)
    )
}

/// Runs `bench adopt`.
pub fn adopt(ask_password: bool) -> ExitStatus {
    connect::run(async {
        for line in adopted(ask_password).await? {
            out::done(&line);
        }
        Ok(ExitStatus::Success)
    })
}

/// Has the daemon adopt the verdict. Returns what it did, a line each.
async fn adopted(ask_password: bool) -> Result<Vec<String>, Error> {
    let bus = Bus::open(ask_password).await?;
    let mut jobs = Jobs::listen(&bus).await?;
    let job = bus.call(OBJECT, INTERFACE, "Adopt", &changes::forced(false)).await?;
    jobs.wait(&job, "adopting").await
}

/// The report as text.
pub fn text(report: &Report) -> String {
    let data = &report.data;
    let mut out = format!(
        "{} pages: {} ({} same-filled, {} incompressible); {:.1} s, {} thread{}\n\n",
        data.pages,
        data.description,
        percent(data.same_filled_share),
        percent(data.incompressible_share),
        report.seconds,
        report.threads,
        if report.threads == 1 { "" } else { "s" },
    );
    let heading = [
        "",
        "ALGORITHM",
        "RATIO",
        "READ µs",
        "99 %",
        "WRITE µs",
        "99 %",
        "READ MB/s",
        "WRITE MB/s",
        "SCORE µs",
    ];
    let rows: Vec<Vec<String>> = report.results.iter().map(|row| line(row, report)).collect();
    out.push_str(&table::render(&heading, &[2, 3, 4, 5, 6, 7, 8, 9], &rows));
    out.push_str(&format!(
        "\nVerdict for the profile {}: {}.\n{}\n",
        report.profile.word(),
        report.verdict.reason,
        explained(report)
    ));
    out.push_str(&clusters(report));
    if let Some(swappiness) = report.verdict.swappiness {
        out.push_str(&format!(
            "Suggested: vm.page-cluster = {}, vm.swappiness = {swappiness}.\n",
            report.verdict.page_cluster
        ));
    } else {
        out.push_str(&format!("Suggested: vm.page-cluster = {}.\n", report.verdict.page_cluster));
    }
    let us = |ns: f64| ns / 1000.0;
    out.push_str(&conditions(report));
    out.push_str(&format!(
        "\nRATIO counts all memory that the pages take. READ is swapping in, WRITE swapping out: the usual time of one page, what 99 of\n\
         100 stay below, and what all threads do together with its spread. Of the times, {:.1} and {:.1} µs are the request itself.\n",
        us(report.baseline.read_ns),
        us(report.baseline.write_ns)
    ));
    let excluded: Vec<&Row> = report.results.iter().filter(|row| row.excluded.is_some()).collect();
    for row in excluded {
        let why = row.excluded.as_deref().unwrap_or_default();
        out.push_str(&format!("{} cannot be chosen: {why}.\n", row.algorithm));
    }
    out
}

/// What other programs did to the figures; empty if they did not.
fn disturbed(report: &Report) -> String {
    if !report.is_disturbed() {
        return String::new();
    }
    format!(
        "Disturbed: for {} of the time other programs, or the host of this virtual machine, had the processor. RATIO and SCORE hold;\n\
         the times of 99 % do not, and throughput is left out.\n",
        percent(report.waited_share)
    )
}

/// What keeps figures of this run from being those of the machine.
fn conditions(report: &Report) -> String {
    let mut out = disturbed(report);
    if let Some(frequency) = &report.frequency {
        match frequency.held_back() {
            Some(why) => out.push_str(&format!("The processor is slower than it can be: {why}.\n")),
            None => out.push_str(&format!(
                "CPU frequency: {}, governor {}.\n",
                frequency.driver, frequency.governor
            )),
        }
    }
    out
}

/// What the score is, in one sentence.
fn explained(report: &Report) -> String {
    let worth = report.aim().worth_ns() / 1e6;
    let because = match (report.profile, report.aim()) {
        (Profile::Balanced, Aim::Latency) => {
            "\nThis machine swaps in all the time although swap has room, so time counts more than usual."
        }
        (Profile::Balanced, Aim::Capacity) => {
            "\nThis machine has been short of memory, so memory counts more than usual."
        }
        _ => "",
    };
    format!(
        "SCORE is the price of a page in swap: the processor time to compress it and to decompress it once, and {worth} ms for each\n\
         page of memory that it takes; lower is better.{because}"
    )
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn score(row: &Row) -> String {
    row.score.map_or_else(|| "-".to_owned(), |ns| format!("{:.1}", ns / 1000.0))
}

fn line(row: &Row, report: &Report) -> Vec<String> {
    let measured = row.read.requests > 0;
    let shown = |text: String| if measured { text } else { "-".to_owned() };
    let us = |ns: f64| shown(format!("{:.1}", ns / 1000.0));
    // The spread is half the range of the passes.
    let rate = |bytes: Estimate| match bytes.value {
        0.0 => "-".to_owned(),
        value => format!("{:.0} ±{:.0} %", value / 1e6, bytes.uncertainty() * 100.0),
    };
    vec![
        if row.algorithm == report.verdict.algorithm && row.score.is_some() {
            "*".to_owned()
        } else {
            String::new()
        },
        row.algorithm.to_string(),
        shown(format!("{:.2}", row.ratio_total)),
        us(row.read.p50_ns),
        us(row.read.p99_ns),
        us(row.write.p50_ns),
        us(row.write.p99_ns),
        rate(row.read.bytes_per_second),
        rate(row.write.bytes_per_second),
        score(row),
    ]
}

/// Reads of several pages, if there are several algorithms to compare; otherwise the suggestion has all of it.
fn clusters(report: &Report) -> String {
    let mut algorithms: Vec<&Algorithm> = report.page_clusters.iter().map(|row| &row.algorithm).collect();
    algorithms.dedup();
    if algorithms.len() < 2 {
        return String::new();
    }
    let row = |row: &Cluster| {
        vec![
            row.algorithm.to_string(),
            row.page_cluster.to_string(),
            format!("{:.1}", row.p50_ns / 1000.0),
            format!("{:.1}", row.p99_ns / 1000.0),
            format!("{:.0}", row.bytes_per_second / 1e6),
            format!("{:.0}", row.requests_per_second),
        ]
    };
    let rows: Vec<Vec<String>> = report.page_clusters.iter().map(row).collect();
    let heading = ["ALGORITHM", "PAGE-CLUSTER", "READ µs", "99 %", "MB/s", "READS/s"];
    format!("\n{}\n", table::render(&heading, &[1, 2, 3, 4, 5], &rows))
}

#[cfg(test)]
mod tests {
    use crate::benchmark::chart::sample_report;
    use crate::benchmark::*;
    use logic::verdict::Key;

    #[test]
    fn the_table_marks_the_choice_and_explains_itself() {
        let text = text(&sample_report());
        crate::fixture::golden("bench", &text);
    }

    #[test]
    fn json_has_name_and_parameters_apart() {
        let json = serde_json::to_value(sample_report()).unwrap();
        assert_eq!(
            (&json["results"][1]["algorithm"], &json["results"][1]["parameters"]["level"]),
            (&"zstd".into(), &"1".into())
        );
        assert_eq!(
            (&json["verdict"]["algorithm"], &json["verdict"]["parameters"]),
            (&"zstd".into(), &serde_json::json!({}))
        );
    }

    #[test]
    fn the_age_of_a_verdict_is_printed() {
        let key = Key { kernel: "6.12.1".to_owned(), cpu: "Some CPU".to_owned(), ..Key::default() };
        let report = sample_report();
        let stored = Stored {
            schema_version: 1,
            measured_unix: 1_000_000,
            key,
            profile: report.profile,
            algorithm: report.verdict.algorithm.clone(),
            better_runs: 0,
            page_in_ns: 0,
            provisional: String::new(),
            outdated: String::new(),
            report,
        };
        assert_eq!(age(&stored, 1_007_260), "Measured 2h 1min ago with Linux 6.12.1 on Some CPU.");
        // A clock that was set back gives an age of 0.
        assert_eq!(age(&stored, 0), "Measured 0s ago with Linux 6.12.1 on Some CPU.");
    }

    #[test]
    fn the_chart_names_every_algorithm_and_is_xml() {
        let report = sample_report();
        let chart = chart::draw(&report).unwrap();
        assert!(chart.starts_with("<svg") && chart.trim_end().ends_with("</svg>"));
        for row in &report.results {
            assert!(chart.contains(&row.algorithm.to_string()), "{}", row.algorithm);
        }
    }
}
