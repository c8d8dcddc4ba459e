//! `bench swap`: asks before it writes to a disk, and shows the result of `zramd-worker` as a table.

use crate::args::BenchSwap;
use crate::{out, worker};
use bench::ramdisk::report::size;
use bench::swap::clusters;
use bench::swap::disk::Disk;
use bench::swap::report::{Report, Row};
use engine::{Error, ErrorKind, gather};
use logic::exit::ExitStatus;
use logic::human::human;
use logic::order::{self, Order};
use logic::table;

pub fn run(words: &BenchSwap) -> Result<ExitStatus, Error> {
    let options = order::BenchSwap {
        memory: words.memory,
        data: words.data.clone(),
        algorithms: words.algorithm.clone(),
        page_clusters: words.page_cluster.iter().cloned().flatten().collect(),
        disk: words.disk.clone(),
    };
    if let Some(path) = &words.disk {
        let host = worker::privileged("bench swap")?;
        let available = gather::memory(&host)?.available_kib * 1024;
        let memory =
            size(words.memory, available).map_err(|message| Error::new(ErrorKind::Unsafe, message))?;
        let disk = Disk::check(&host, path, memory)?;
        out::note(&disk.announced(memory, clusters(&options).len()));
        if !words.yes && !out::agreed("Write this?")? {
            out::note("Nothing was written.");
            return Ok(ExitStatus::Failure);
        }
    }
    let report: Report = worker::run(&Order::BenchSwap(options), "bench swap")?;
    out::result(words.form.json, &report, || text(&report))?;
    Ok(ExitStatus::Success)
}

const HEADING: [&str; 10] = [
    "ALGORITHM",
    "CLUSTER",
    "RATIO",
    "PAGES OUT",
    "PAGES IN",
    "IN ORDER",
    "PER FAULT",
    "FAULT µs",
    "50 %",
    "99 %",
];

/// The report as text.
pub fn text(report: &Report) -> String {
    let mut out = format!("{} of memory. Its contents: {}.\n\n", human(report.memory_bytes), report.data);
    let rows: Vec<Vec<String>> = report.results.iter().map(|row| line(row, report)).collect();
    out.push_str(&table::render(&HEADING, &[1, 2, 3, 4, 5, 6, 7, 8, 9], &rows));
    out.push_str(
        "\nPAGES OUT: pages swapped out a second. PAGES IN, IN ORDER: pages swapped in a second, in random order and from\n\
         beginning to end. PER FAULT, FAULT, 50 %, 99 %: pages that a page fault in random order read, and its time in µs:\n\
         mean, median and 99th percentile.\n",
    );
    for remark in &report.remarks {
        out.push_str(&format!("Note: {remark}.\n"));
    }
    out
}

fn line(row: &Row, report: &Report) -> Vec<String> {
    let time = |ns: u64| format!("{:.1}", ns as f64 / 1000.0);
    vec![
        row.algorithm.as_ref().map_or_else(|| report.disk.clone().unwrap_or_default(), ToString::to_string),
        row.page_cluster.to_string(),
        row.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
        row.swap_out_per_second.to_string(),
        row.random_in_per_second.to_string(),
        row.sequential_in_per_second.to_string(),
        format!("{:.1}", row.pages_per_fault),
        time(row.fault.mean_ns),
        time(row.fault.p50_ns),
        time(row.fault.p99_ns),
    ]
}

#[cfg(test)]
mod tests {
    use crate::benchmark::swap::*;
    use bench::latency::Latency;
    use logic::device::algorithm::Algorithm;

    #[test]
    fn each_run_has_its_line() {
        let row = Row {
            algorithm: Some(Algorithm::plain("zstd")),
            page_cluster: 3,
            swap_out_per_second: 90_000,
            random_in_per_second: 50_000,
            sequential_in_per_second: 60_000,
            pages_per_fault: 1.0,
            fault: Latency::of(&mut [10_000, 30_000]).unwrap(),
            ratio: Some(3.0),
        };
        let report = Report {
            memory_bytes: 1 << 27,
            disk: Some("/srv (ext4)".to_owned()),
            results: vec![row.clone(), Row { algorithm: None, ratio: None, ..row }],
            remarks: vec!["a".into()],
            ..Report::default()
        };
        let text = text(&report);
        let line = text.lines().find(|line| line.starts_with("zstd")).unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        let expected = ["zstd", "3", "3.00", "90000", "50000", "60000", "1.0", "20.0", "10.0", "30.0"];
        assert_eq!(cells, expected);
        assert!(text.contains("\n/srv (ext4)        3      -      90000"), "{text}");
        assert!(text.ends_with("Note: a.\n"), "{text}");
    }
}
