//! Results of `bench swap`: the speed of swapping with each algorithm.

use serde::{Deserialize, Serialize};

use crate::latency::Latency;
use logic::device::algorithm::Algorithm;

/// Version of the format of [`Report`].
pub const SCHEMA_VERSION: u32 = 3;
/// Largest `vm.page-cluster` that is measured: 8 pages at once.
pub const LARGEST_CLUSTER: u8 = 3;
/// Algorithms measured by default, if the kernel offers them. The others are not suited for swap.
pub const USUAL_ALGORITHMS: [&str; 4] = ["lz4", "lzo-rle", "lzo", "zstd"];

/// Results of one algorithm, or of the disk, with one `vm.page-cluster`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Algorithm with its parameters; `None` on the disk.
    pub algorithm: Option<Algorithm>,
    /// `vm.page-cluster`.
    pub page_cluster: u8,
    /// Pages swapped out per second.
    pub swap_out_per_second: u64,
    /// Pages swapped in per second in random order.
    pub random_in_per_second: u64,
    /// Pages swapped in per second in sequential order.
    pub sequential_in_per_second: u64,
    /// Pages swapped in per page fault in random order: more than 1 with read-ahead.
    pub pages_per_fault: f64,
    /// Time of a page fault in random order.
    pub fault: Latency,
    /// Stored bytes per byte of memory used; `None` on the disk.
    pub ratio: Option<f64>,
}

/// The whole comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Bytes of memory that were swapped out and in.
    pub memory_bytes: u64,
    /// Source of the contents.
    pub data: String,
    /// Directory of the swap file and its file system, as `/srv (ext4)`.
    pub disk: Option<String>,
    /// One per algorithm and page-cluster; then those of the disk.
    pub results: Vec<Row>,
    /// Notes on the results.
    pub remarks: Vec<String>,
}

/// Whether page-cluster had any effect on the results of zram, in words.
pub fn about_clusters(rows: &[Row]) -> Option<String> {
    let of_zram = || rows.iter().filter(|row| row.algorithm.is_some());
    let several = of_zram().any(|row| row.page_cluster != rows[0].page_cluster);
    let ahead = of_zram().any(|row| row.page_cluster > 0 && row.pages_per_fault > 1.5);
    (several && !ahead).then(|| {
        "page-cluster made no difference to zram: this kernel reads no pages ahead from swap that answers at once"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ineffective_page_cluster_is_told() {
        let row = |page_cluster, pages_per_fault| Row {
            algorithm: Some(Algorithm::plain("lz4")),
            page_cluster,
            swap_out_per_second: 1,
            random_in_per_second: 1,
            sequential_in_per_second: 1,
            pages_per_fault,
            fault: Latency::of(&mut [1]).unwrap(),
            ratio: Some(2.0),
        };
        assert!(about_clusters(&[row(0, 1.0), row(3, 1.0)]).is_some());
        assert_eq!(about_clusters(&[row(0, 1.0), row(3, 5.0)]), None);
        assert_eq!(about_clusters(&[row(3, 1.0)]), None);
        assert_eq!(about_clusters(&[]), None);
        let disk = Row { algorithm: None, ratio: None, ..row(3, 5.0) };
        assert!(about_clusters(&[row(0, 1.0), row(3, 1.0), disk]).is_some(), "the disk has its own");
    }
}
