//! `bench swap`: swaps out our own memory to a scratch swap, and times the page faults that read it back. If asked for, also with a swap
//! file on a disk.

pub mod disk;
pub mod report;

use std::collections::BTreeSet;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use fastrand::Rng;

use self::disk::Disk;
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
use host::linux::paging::{in_memory, major_faults, page_out, single_pages};
use host::linux::swap_file::LABEL;
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
/// Time for one pass of reading: of a slow disk, only a part of the pages is read.
const READING: Duration = Duration::from_secs(10);
/// Time without progress after which pages that are still in memory stay there.
const STUCK: Duration = Duration::from_secs(10);
/// Time between two looks at what a disk has written.
const LOOK: Duration = Duration::from_millis(2);
/// Share of the pages that may stay in memory.
const KEPT_SHARE: usize = 256;

/// What is swapped to.
#[derive(Clone, Copy)]
enum Medium<'a> {
    Zram(&'a Algorithm),
    Disk(&'a Disk),
}

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
    let disk = options.disk.as_deref().map(|path| Disk::check(host, path, bytes)).transpose()?;
    single_pages()?;
    let (sample, data) = real_data(options.data.as_deref(), bytes)?;
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut memory = sample.bytes().repeat(length.div_ceil(sample.bytes().len()));
    memory.truncate(length);
    drop(sample);
    let mut scratch = Scratch::create(host, configured)?;
    let shown = disk.as_ref().map(|disk| disk.shown.clone());
    let report = Report {
        schema_version: SCHEMA_VERSION,
        memory_bytes: bytes,
        data,
        disk: shown,
        ..Report::default()
    };
    let mut run = Run { host, reporter, memory, report };
    let done = run.all(&mut scratch, options, disk.as_ref());
    let released = scratch.release(run.host);
    done?;
    released?;
    Ok(run.report)
}

impl Run<'_> {
    fn all(
        &mut self,
        scratch: &mut Scratch,
        options: &BenchSwap,
        disk: Option<&Disk>,
    ) -> Result<(), Stopped> {
        let algorithms = if options.algorithms.is_empty() {
            let offered = scratch.offered(self.host)?;
            let usual = USUAL_ALGORITHMS.iter().filter(|name| offered.iter().any(|offer| offer == *name));
            usual.map(|name| Algorithm::plain(*name)).collect()
        } else {
            options.algorithms.clone()
        };
        let clusters = clusters(options);
        if self.host.read_tunable(Tunable::Zswap).is_ok_and(|state| state == "Y") {
            let remark = "zswap is on: it takes pages before the measured swap sees them";
            self.report.remarks.push(remark.to_owned());
        }
        let media: Vec<Medium> = algorithms.iter().map(Medium::Zram).chain(disk.map(Medium::Disk)).collect();
        let total = media.len() * clusters.len();
        for medium in media {
            for &cluster in &clusters {
                let done = self.report.results.len() as f64 / total.max(1) as f64;
                let name = match medium {
                    Medium::Zram(algorithm) => algorithm.to_string(),
                    Medium::Disk(disk) => disk.shown.clone(),
                };
                self.reporter.progress(done, &format!("{name}, page-cluster {cluster}"));
                let row = self.one(scratch, medium, cluster)?;
                self.report.results.push(row);
            }
        }
        self.report.remarks.extend(about_clusters(&self.report.results));
        Ok(())
    }

    /// Measures one medium with one `vm.page-cluster`. After an error, releasing `scratch` undoes what is recorded there.
    fn one(&mut self, scratch: &mut Scratch, medium: Medium, cluster: u8) -> Result<Row, Stopped> {
        let off = match medium {
            Medium::Zram(algorithm) => self.activate(scratch, algorithm)?,
            Medium::Disk(disk) => self.activate_file(scratch, disk)?,
        };
        let (tunable, ours) = (Tunable::PageCluster, cluster.to_string());
        let before = self.host.read_tunable(tunable)?;
        let restore = Undo::RestoreTunable { tunable, before, ours: ours.clone() };
        scratch.note(self.host, restore.clone())?;
        self.host.write_tunable(tunable, &ours)?;
        let row = self.measure(scratch, medium, cluster)?;
        scratch.undo(self.host, &restore)?;
        scratch.undo(self.host, &off)?;
        Ok(row)
    }

    /// Swap on the scratch device. Returns how that is undone, as it is recorded.
    fn activate(&mut self, scratch: &mut Scratch, algorithm: &Algorithm) -> Result<Undo, Stopped> {
        let number = scratch.number();
        scratch.configure(self.host, algorithm, self.memory.len() as u64 + SPARE)?;
        let header = swap_header(self.host, number, LABEL)?;
        self.host.write_pages(number, 0, &header)?;
        scratch.unlock(self.host)?;
        let off = Undo::SwapOff { number };
        scratch.note(self.host, off.clone())?;
        swap_on(self.host, number, PRIORITY, false)?;
        Ok(off)
    }

    /// As [`Run::activate`], on a file.
    fn activate_file(&mut self, scratch: &mut Scratch, disk: &Disk) -> Result<Undo, Stopped> {
        let file = disk.file(self.host)?;
        let off = Undo::RemoveSwapFile(file.identity().clone());
        scratch.note(self.host, off.clone())?;
        file.activate(PRIORITY).map_err(disk::explained)?;
        Ok(off)
    }

    /// Swaps out, reads back in order, swaps out again, reads back at random.
    fn measure(&mut self, scratch: &Scratch, medium: Medium, cluster: u8) -> Result<Row, Stopped> {
        let out = |run: &mut Self| match medium {
            Medium::Zram(_) => run.page_out(),
            Medium::Disk(_) => run.write_out(),
        };
        let (swapped, out_rate) = self.timed("pswpout", out)?;
        let (algorithm, ratio) = match medium {
            Medium::Zram(algorithm) => {
                let stored = scratch.memory(self.host)?;
                let ratio = stored.orig_data_size as f64 / stored.mem_used_total.max(1) as f64;
                (Some(algorithm.clone()), Some(ratio))
            }
            Medium::Disk(_) => (None, None),
        };
        let pages: Vec<usize> = (0..self.memory.len()).step_by(rustix::param::page_size()).collect();
        let (_, sequential_rate) = self.timed("pswpin", |run| run.touch(&pages).map(drop))?;
        out(self)?;
        let mut shuffled = pages;
        Rng::with_seed(1).shuffle(&mut shuffled);
        let mut times = Vec::new();
        let (random_in, random_rate) = self.timed("pswpin", |run| {
            times = run.touch(&shuffled)?;
            Ok(())
        })?;
        let fault = Latency::of(&mut times).filter(|_| swapped > 0).ok_or_else(|| {
            Error::failed("no page went to swap: memory.swap.max of the cgroup that this runs in may be 0")
        })?;
        Ok(Row {
            algorithm,
            page_cluster: cluster,
            swap_out_per_second: out_rate,
            random_in_per_second: random_rate,
            sequential_in_per_second: sequential_rate,
            pages_per_fault: random_in as f64 / fault.requests as f64,
            fault,
            ratio,
        })
    }

    fn page_out(&mut self) -> Result<(), Stopped> {
        for part in self.memory.chunks_mut(PART) {
            self.reporter.check()?;
            page_out(part)?;
        }
        Ok(())
    }

    /// Swaps out, and waits until the disk has written it. Until then, and also afterwards, the pages are in the swap cache: those that
    /// are read from there and swapped out again leave memory without being written again.
    fn write_out(&mut self) -> Result<(), Stopped> {
        self.page_out()?;
        let (mut least, mut since) = (usize::MAX, Instant::now());
        loop {
            self.reporter.check()?;
            let there = in_memory(&mut self.memory)?;
            let left = there.iter().filter(|there| **there).count();
            if left < least {
                (least, since) = (left, Instant::now());
            }
            if left <= there.len() / KEPT_SHARE || since.elapsed() > STUCK {
                return Ok(());
            }
            for (page, _) in there.iter().enumerate().filter(|(_, there)| **there) {
                black_box(self.memory[page * rustix::param::page_size()]);
            }
            self.page_out()?;
            std::thread::sleep(LOOK);
        }
    }

    /// Changes a byte of each of these pages, as far as time permits. Returns the times of those that were read from swap, in nanoseconds.
    fn touch(&mut self, pages: &[usize]) -> Result<Vec<u64>, Stopped> {
        let mut times = Vec::with_capacity(pages.len());
        let all = Instant::now();
        for &page in pages {
            self.reporter.check()?;
            if all.elapsed() > READING {
                break;
            }
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

/// The values of `vm.page-cluster` to measure.
pub fn clusters(options: &BenchSwap) -> Vec<u8> {
    if options.page_clusters.is_empty() {
        (0..=LARGEST_CLUSTER).collect()
    } else {
        options.page_clusters.clone()
    }
}
