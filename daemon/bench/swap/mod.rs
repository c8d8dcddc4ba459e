//! `bench swap`: swaps out our own memory to a scratch swap, and times the page faults that read it back.

pub mod report;

use std::collections::BTreeSet;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use fastrand::Rng;

use self::report::{LARGEST_CLUSTER, Report, Row, SCHEMA_VERSION, USUAL_ALGORITHMS, about_clusters};
use super::ramdisk::real_data;
use crate::advice::counter;
use crate::latency::Latency;
use crate::ramdisk::report::size;
use engine::gather;
use engine::perform::{swap_header, swap_on};
use engine::scratch::Scratch;
use engine::work::{Reporter, Stopped};
use engine::{Error, ErrorKind};
use host::Host;
use host::linux::LinuxHost;
use host::linux::files::read_optional;
use host::linux::paging::{major_faults, page_out, single_pages};
use logic::device::algorithm::Algorithm;
use logic::order::BenchSwap;
use logic::record::Undo;
use logic::vm::Tunable;

/// The highest priority of swap: other swap is not used while this one has space.
const PRIORITY: i32 = 32767;
/// Space on the device beyond the size of our memory.
const SPARE: u64 = 16 << 20;
/// Bytes swapped out at once.
const PART: usize = 16 << 20;

/// State shared by all rows.
struct Run<'a> {
    host: &'a mut LinuxHost,
    reporter: &'a mut Reporter,
    memory: Vec<u8>,
    report: Report,
}

/// Runs the benchmark. Device numbers in `configured` are left free.
pub fn run(
    host: &mut LinuxHost,
    reporter: &mut Reporter,
    options: &BenchSwap,
    configured: &BTreeSet<u32>,
) -> Result<Report, Stopped> {
    let available = gather::memory(host)?.available_kib * 1024;
    let bytes = size(options.memory, available).map_err(|message| Error::new(ErrorKind::Unsafe, message))?;
    single_pages()?;
    let (sample, data) = real_data(options.data.as_deref(), bytes)?;
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut memory = sample.bytes().repeat(length.div_ceil(sample.bytes().len()));
    memory.truncate(length);
    drop(sample);
    let mut scratch = Scratch::create(host, configured)?;
    let report = Report { schema_version: SCHEMA_VERSION, memory_bytes: bytes, data, ..Report::default() };
    let mut run = Run { host, reporter, memory, report };
    let done = run.all(&mut scratch, options);
    let released = scratch.release(run.host);
    done?;
    released?;
    Ok(run.report)
}

impl Run<'_> {
    fn all(&mut self, scratch: &mut Scratch, options: &BenchSwap) -> Result<(), Stopped> {
        let algorithms = if options.algorithms.is_empty() {
            let offered = scratch.offered(self.host)?;
            let usual = USUAL_ALGORITHMS.iter().filter(|name| offered.iter().any(|offer| offer == *name));
            usual.map(|name| Algorithm::plain(*name)).collect()
        } else {
            options.algorithms.clone()
        };
        let clusters = if options.page_clusters.is_empty() {
            (0..=LARGEST_CLUSTER).collect()
        } else {
            options.page_clusters.clone()
        };
        if self.host.read_tunable(Tunable::Zswap).is_ok_and(|state| state == "Y") {
            let remark = "zswap is on: it takes pages before zram sees them";
            self.report.remarks.push(remark.to_owned());
        }
        let total = algorithms.len() * clusters.len();
        for algorithm in &algorithms {
            for &cluster in &clusters {
                let done = self.report.results.len() as f64 / total.max(1) as f64;
                self.reporter.progress(done, &format!("{algorithm}, page-cluster {cluster}"));
                let row = self.one(scratch, algorithm, cluster)?;
                self.report.results.push(row);
            }
        }
        self.report.remarks.extend(about_clusters(&self.report.results));
        Ok(())
    }

    /// Measures one algorithm with one `vm.page-cluster`. After an error, releasing `scratch` undoes what is recorded
    /// there.
    fn one(&mut self, scratch: &mut Scratch, algorithm: &Algorithm, cluster: u8) -> Result<Row, Stopped> {
        let number = scratch.number();
        scratch.configure(self.host, algorithm, self.memory.len() as u64 + SPARE)?;
        let header = swap_header(self.host, number, "zramd-bench")?;
        self.host.write_pages(number, 0, &header)?;
        scratch.unlock(self.host)?;
        let off = Undo::SwapOff { number };
        scratch.note(self.host, off.clone())?;
        swap_on(self.host, number, PRIORITY, false)?;
        let (tunable, ours) = (Tunable::PageCluster, cluster.to_string());
        let before = self.host.read_tunable(tunable)?;
        let restore = Undo::RestoreTunable { tunable, before, ours: ours.clone() };
        scratch.note(self.host, restore.clone())?;
        self.host.write_tunable(tunable, &ours)?;
        let row = self.measure(scratch, algorithm, cluster)?;
        scratch.undo(self.host, &restore)?;
        scratch.undo(self.host, &off)?;
        Ok(row)
    }

    /// Swaps out, reads back in order, swaps out again, reads back at random.
    fn measure(&mut self, scratch: &Scratch, algorithm: &Algorithm, cluster: u8) -> Result<Row, Stopped> {
        let (out, out_rate) = self.timed("pswpout", Run::out)?;
        let stored = scratch.memory(self.host)?;
        let pages: Vec<usize> = (0..self.memory.len()).step_by(rustix::param::page_size()).collect();
        let (_, sequential_rate) = self.timed("pswpin", |run| run.touch(&pages).map(drop))?;
        self.out()?;
        let mut shuffled = pages;
        Rng::with_seed(1).shuffle(&mut shuffled);
        let mut times = Vec::new();
        let (random_in, random_rate) = self.timed("pswpin", |run| {
            times = run.touch(&shuffled)?;
            Ok(())
        })?;
        let fault = Latency::of(&mut times).filter(|_| out > 0).ok_or_else(|| {
            Error::failed("no page went to swap: memory.swap.max of the cgroup that this runs in may be 0")
        })?;
        Ok(Row {
            algorithm: algorithm.clone(),
            page_cluster: cluster,
            swap_out_per_second: out_rate,
            random_in_per_second: random_rate,
            sequential_in_per_second: sequential_rate,
            pages_per_fault: random_in as f64 / fault.requests as f64,
            fault,
            ratio: stored.orig_data_size as f64 / stored.mem_used_total.max(1) as f64,
        })
    }

    fn out(&mut self) -> Result<(), Stopped> {
        for part in self.memory.chunks_mut(PART) {
            self.reporter.check()?;
            page_out(part)?;
        }
        Ok(())
    }

    /// Changes a byte of each of these pages. Returns the times of those that were read from swap, in nanoseconds.
    fn touch(&mut self, pages: &[usize]) -> Result<Vec<u64>, Stopped> {
        let mut times = Vec::with_capacity(pages.len());
        for &page in pages {
            self.reporter.check()?;
            let faults = major_faults();
            let began = Instant::now();
            let byte = black_box(&mut self.memory[page]);
            *byte = byte.wrapping_add(1);
            let time = began.elapsed();
            if major_faults() > faults {
                times.push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            }
        }
        Ok(times)
    }

    /// Growth of this counter of `/proc/vmstat` while `work` runs: in all, and per second.
    fn timed(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Self) -> Result<(), Stopped>,
    ) -> Result<(u64, u64), Stopped> {
        let count = || read_optional(Path::new("/"), "/proc/vmstat").map(|text| counter(&text, name));
        let before = count().map_err(Error::failed)?;
        let began = Instant::now();
        work(self)?;
        let nanoseconds = began.elapsed().as_nanos();
        let pages = count().map_err(Error::failed)? - before;
        let rate = u128::from(pages) * 1_000_000_000 / nanoseconds.max(1);
        Ok((pages, u64::try_from(rate).unwrap_or(u64::MAX)))
    }
}
