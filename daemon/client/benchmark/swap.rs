//! `bench swap`: what `zramd-worker` measured of a program under memory pressure.

use std::ffi::OsString;

use crate::args::{BenchSwap, Json};
use crate::{out, worker};
use engine::Error;
use logic::benchmark::swap::{Report, Row, WORK};
use logic::exit::ExitStatus;
use logic::human::human;
use logic::table;

/// Runs `bench swap`.
pub fn run(words: &BenchSwap) -> Result<ExitStatus, Error> {
    let report: Report = worker::run(WORK, "bench-swap", &for_worker(words), "bench swap")?;
    match words.json {
        Some(form @ (Json::Pretty | Json::Short)) => out::print(&out::json(&report, form)?)?,
        _ => out::print(&text(&report))?,
    }
    Ok(ExitStatus::Success)
}

/// The words for `zramd-worker`.
fn for_worker(words: &BenchSwap) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::new();
    if let Some(memory) = words.memory {
        out.extend(["--memory".into(), memory.to_string().into()]);
    }
    if let Some(file) = &words.data {
        out.extend(["--data".into(), file.into()]);
    }
    for algorithm in &words.algorithm {
        out.extend(["--algorithm".into(), algorithm.to_string().into()]);
    }
    for cluster in words.page_cluster.iter().cloned().flatten() {
        out.extend(["--page-cluster".into(), cluster.to_string().into()]);
    }
    out
}

const HEADING: [&str; 12] = [
    "ALGORITHM",
    "CLUSTER",
    "RATIO",
    "OUT/S",
    "IN/S",
    "IN/S SEQ",
    "PAGES/FAULT",
    "FAULT AVG",
    "P50",
    "P99",
    "PSI SOME",
    "FULL",
];

/// The report for people.
pub fn text(report: &Report) -> String {
    let mut out = format!(
        "A program with {} of memory, of which it may keep {} (cgroup {}).\nIts contents: {}.\n\n",
        human(report.memory_bytes),
        human(report.limit_bytes),
        report.cgroup,
        report.data
    );
    let rows: Vec<Vec<String>> = report.results.iter().map(line).collect();
    out.push_str(&table::render(&HEADING, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], &rows));
    let whose = if report.pressure_of == "cgroup" { "of the program" } else { "of the whole machine" };
    out.push_str(&format!(
        "\nOut: pages a second while memory was filled. In: pages a second, used at random (each has another one go out), and in order.\n\
         Fault: µs that a random access waited for its page. PSI: share of the time in which some or all stood still, {whose}.\n"
    ));
    for remark in &report.remarks {
        out.push_str(&format!("Note: {remark}.\n"));
    }
    out
}

fn line(row: &Row) -> Vec<String> {
    let time = |pick: fn(&logic::benchmark::latency::Latency) -> u64| {
        row.fault
            .as_ref()
            .map_or_else(|| "-".to_owned(), |fault| format!("{:.1}", pick(fault) as f64 / 1000.0))
    };
    let share =
        |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.0}%", share * 100.0));
    vec![
        row.algorithm.clone(),
        row.page_cluster.to_string(),
        format!("{:.2}", row.ratio),
        row.swap_out_per_second.to_string(),
        row.random_in_per_second.to_string(),
        row.sequential_in_per_second.to_string(),
        format!("{:.1}", row.pages_per_fault),
        time(|fault| fault.mean_ns),
        time(|fault| fault.p50_ns),
        time(|fault| fault.p99_ns),
        share(row.pressure_some),
        share(row.pressure_full),
    ]
}

#[cfg(test)]
mod tests {
    use crate::benchmark::swap::*;
    use logic::benchmark::latency::Latency;

    #[test]
    fn each_run_has_its_line() {
        let row = Row {
            algorithm: "zstd".to_owned(),
            page_cluster: 3,
            swap_out_per_second: 90_000,
            random_in_per_second: 50_000,
            sequential_in_per_second: 60_000,
            pages_per_fault: 1.0,
            fault: Latency::of(&mut [10_000, 30_000]),
            pressure_some: Some(0.5),
            pressure_full: None,
            ratio: 3.0,
        };
        let report = Report {
            memory_bytes: 1 << 27,
            results: vec![row],
            remarks: vec!["a".into()],
            ..Report::default()
        };
        let text = text(&report);
        let line = text.lines().find(|line| line.starts_with("zstd")).unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            cells,
            ["zstd", "3", "3.00", "90000", "50000", "60000", "1.0", "20.0", "10.0", "30.0", "50%", "-"]
        );
        assert!(text.contains("of the whole machine") && text.ends_with("Note: a.\n"), "{text}");
    }

    #[test]
    fn the_worker_gets_what_was_asked_for() {
        let words = BenchSwap { memory: Some(5), page_cluster: vec![0..=1, 3..=3], ..BenchSwap::default() };
        assert_eq!(
            for_worker(&words),
            ["--memory", "5", "--page-cluster", "0", "--page-cluster", "1", "--page-cluster", "3"]
        );
    }
}
