//! What `bench swap` found: a real memory-pressure run on private compressed swap.

use serde::{Deserialize, Serialize};

use super::latency::Latency;
use crate::human::human;

/// Version of the form of [`Report`].
pub const SCHEMA_VERSION: u32 = 1;
/// Name of the work, hence of its file.
pub const WORK: &str = "bench-swap";
/// Largest `vm.page-cluster` that is measured: 8 pages at once.
pub const LARGEST_CLUSTER: u8 = 3;
/// Memory of the program under pressure when nobody says how much.
pub const USUAL: u64 = 128 << 20;
/// Least that a measurement makes sense with.
pub const LEAST: u64 = 32 << 20;
/// Share of the memory that is available which that program may have.
const MEMORY_SHARE: u64 = 8;
/// Algorithms that are tried when nobody says which, as far as the kernel has them; the others are not for swap.
pub const USUAL_ALGORITHMS: [&str; 4] = ["lz4", "lzo-rle", "lzo", "zstd"];

/// What the program under pressure says at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// How long it took to fill its memory, in nanoseconds: pages go out meanwhile.
    pub fill_ns: u64,
    /// Pages that the machine swapped out meanwhile.
    pub fill_out: u64,
    /// How long it took to use its memory from beginning to end.
    pub sequential_ns: u64,
    /// Pages that the machine swapped in meanwhile.
    pub sequential_in: u64,
    /// How long it took to use pages at random.
    pub random_ns: u64,
    /// Pages that the machine swapped in meanwhile.
    pub random_in: u64,
    /// How long each access took that had to wait for swap.
    pub fault: Option<Latency>,
}

/// One run: one algorithm with one `vm.page-cluster`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Algorithm with its parameters.
    pub algorithm: String,
    /// `vm.page-cluster`.
    pub page_cluster: u8,
    /// Pages swapped out per second while memory was filled.
    pub swap_out_per_second: u64,
    /// Pages swapped in per second while it was used at random, each of which has another one swapped out.
    pub random_in_per_second: u64,
    /// The same while it was used from beginning to end.
    pub sequential_in_per_second: u64,
    /// Pages that came in for each access that waited, at random: above 1 there was read-ahead.
    pub pages_per_fault: f64,
    /// How long a random access waited.
    pub fault: Option<Latency>,
    /// Share of the run in which at least one task stood still for lack of memory (PSI `some`).
    pub pressure_some: Option<f64>,
    /// Share in which all of them did (PSI `full`).
    pub pressure_full: Option<f64>,
    /// Stored bytes per byte of memory used.
    pub ratio: f64,
}

/// All runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Memory that the program uses.
    pub memory_bytes: u64,
    /// Memory that its cgroup lets it have.
    pub limit_bytes: u64,
    /// Where the contents came from.
    pub data: String,
    /// `v1` or `v2`.
    pub cgroup: String,
    /// Whose pressure is reported: `cgroup` or `machine`.
    pub pressure_of: String,
    /// One per algorithm and page-cluster.
    pub results: Vec<Row>,
    /// What to know when reading it.
    pub remarks: Vec<String>,
}

/// Memory of the program, and what its cgroup lets it have. `Err` says why there can be no run.
pub fn sizes(wanted: Option<u64>, available: u64) -> Result<(u64, u64), String> {
    let most = available / MEMORY_SHARE;
    let memory = wanted.unwrap_or_else(|| USUAL.min(most));
    if memory < LEAST {
        return Err(format!("at least {} are needed, and eight times as much available", human(LEAST)));
    }
    if memory > most {
        return Err(format!(
            "{} are too much: {} of memory are available, and at most {} of them leave enough for everybody else",
            human(memory),
            human(available),
            human(most)
        ));
    }
    Ok((memory, memory * 3 / 8))
}

/// Microseconds of stall of `/proc/pressure/memory` or `memory.pressure`: some and full.
pub fn stalls(text: &str) -> Option<(u64, u64)> {
    let total = |kind: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.split(' ').next() == Some(kind))?;
        line.split(' ').find_map(|word| word.strip_prefix("total="))?.parse().ok()
    };
    Some((total("some")?, total("full")?))
}

/// A counter of `/proc/vmstat`.
pub fn counter(vmstat: &str, name: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Per second.
pub fn rate(count: u64, nanoseconds: u64) -> u64 {
    let rate = u128::from(count) * 1_000_000_000 / u128::from(nanoseconds.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// What the figures of page-cluster mean here: whether it had any effect.
pub fn about_clusters(rows: &[Row]) -> Option<String> {
    let several = rows.iter().any(|row| row.page_cluster != rows[0].page_cluster);
    let ahead = rows.iter().any(|row| row.page_cluster > 0 && row.pages_per_fault > 1.5);
    (several && !ahead).then(|| {
        "page-cluster made no difference: this kernel reads no pages ahead from swap that answers at once"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_gets_less_than_it_uses_and_leaves_the_rest_alone() {
        assert_eq!(sizes(None, 8 << 30), Ok((128 << 20, 48 << 20)));
        assert_eq!(sizes(None, 512 << 20), Ok((64 << 20, 24 << 20)));
        assert!(sizes(None, 128 << 20).is_err());
        assert!(sizes(Some(2 << 30), 8 << 30).unwrap_err().contains("2.0 GiB are too much"));
    }

    #[test]
    fn kernel_text_is_understood() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=559952\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(stalls(text), Some((559_952, 7)));
        assert_eq!(stalls("nothing"), None);
        let text = "pswpin 5\npswpout 17\npswpoutx 3\n";
        assert_eq!((counter(text, "pswpout"), counter(text, "pswp")), (Some(17), None));
        assert_eq!(rate(3, 500_000_000), 6);
    }

    #[test]
    fn an_ineffective_page_cluster_is_told() {
        let row = |page_cluster, pages_per_fault| Row {
            algorithm: "lz4".to_owned(),
            page_cluster,
            swap_out_per_second: 1,
            random_in_per_second: 1,
            sequential_in_per_second: 1,
            pages_per_fault,
            fault: None,
            pressure_some: None,
            pressure_full: None,
            ratio: 2.0,
        };
        assert!(about_clusters(&[row(0, 1.0), row(3, 1.0)]).is_some());
        assert_eq!(about_clusters(&[row(0, 1.0), row(3, 5.0)]), None);
        assert_eq!(about_clusters(&[row(3, 1.0)]), None);
        assert_eq!(about_clusters(&[]), None);
    }
}
