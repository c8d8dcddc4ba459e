//! `bench ramdisk`: the result of `zramd-worker` as a table, which separates the page cache from the devices.

use crate::args::BenchRamdisk;
use crate::{out, worker};
use bench::ramdisk::report::{Contents, Report, Row};
use engine::Error;
use logic::exit::ExitStatus;
use logic::human::human;
use logic::order::{self, Order};
use logic::table;

pub fn run(words: &BenchRamdisk) -> Result<ExitStatus, Error> {
    let options = order::BenchRamdisk {
        paths: words.paths.clone(),
        size: words.size,
        data: words.data.clone(),
        algorithms: words.algorithm.clone(),
    };
    let report: Report = worker::run(&Order::BenchRamdisk(options), "bench ramdisk")?;
    out::result(words.form.json, &report, || text(&report))?;
    Ok(ExitStatus::Success)
}

/// The report as text.
pub fn text(report: &Report) -> String {
    let mut out = format!(
        "{} a pass in requests of 1 MiB; then 4 KiB at random places, one at a time.\nReal data: {}.\n",
        human(report.size_bytes),
        report.data
    );
    for (contents, heading) in [(Contents::Real, "real data"), (Contents::Zero, "zero-filled")] {
        let rows: Vec<Vec<String>> =
            report.results.iter().filter(|row| row.contents == contents).map(line).collect();
        out.push_str(&format!("\n{heading}\n"));
        out.push_str(&table::render(&HEADING, &[2, 3, 4, 5, 6, 7, 8, 9, 10], &rows));
    }
    out.push_str("\nFirst, second and read in MB/s; min to max in µs.\n");
    for remark in &report.remarks {
        out.push_str(&format!("Note: {remark}.\n"));
    }
    out
}

const HEADING: [&str; 11] =
    ["MEDIUM", "MEASURES", "1ST WRITE", "2ND", "READ", "RATIO", "4K MIN", "AVG", "P99", "MAX", "IOPS"];

fn line(row: &Row) -> Vec<String> {
    let rate = |bytes: u64| (bytes / 1_000_000).to_string();
    let time = |ns: u64| format!("{:.1}", ns as f64 / 1000.0);
    let random = &row.random_read;
    vec![
        row.medium.clone(),
        row.access.label().to_owned(),
        rate(row.first_write.bytes_per_second),
        rate(row.second_write.bytes_per_second),
        rate(row.read.bytes_per_second),
        row.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
        time(random.min_ns),
        time(random.mean_ns),
        time(random.p99_ns),
        time(random.max_ns),
        (1_000_000_000 / random.mean_ns.max(1)).to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use crate::benchmark::ramdisk::*;
    use bench::latency::Latency;
    use bench::ramdisk::report::{Access, Pass};

    fn row(medium: &str, access: Access) -> Row {
        let pass = Pass { bytes_per_second: 1_500_000_000, slowest_block_ns: 1_000_000 };
        Row {
            medium: medium.to_owned(),
            access,
            contents: Contents::Real,
            first_write: pass,
            second_write: pass,
            read: pass,
            random_read: Latency::of(&mut [1000, 3000]).unwrap(),
            ratio: Some(3.0),
        }
    }

    #[test]
    fn the_page_cache_is_not_taken_for_a_device() {
        let results = vec![row("/srv (ext4)", Access::Direct), row("/srv (ext4)", Access::Cache)];
        let remarks = vec!["something is missing".to_owned()];
        let report =
            Report { size_bytes: 1 << 27, data: "a file".into(), results, remarks, ..Report::default() };
        let text = text(&report);
        for expected in [
            "128.0 MiB a pass",
            "/srv (ext4)  the device (direct)              1500  1500  1500   3.00     1.0  2.0  3.0  3.0  500000",
            "/srv (ext4)  page cache, NOT the device",
            "Note: something is missing.",
        ] {
            assert!(text.contains(expected), "{expected} is missing in\n{text}");
        }
    }
}
