//! `bench swap`: a program under memory pressure in a cgroup of its own, on private swap.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::guard::{Guard, cgroup_name, ourselves};
use super::ramdisk::real_data;
use crate::error::{Error, ErrorKind};
use crate::gather;
use crate::perform::{make_swap, swap_on};
use crate::scratch::Scratch;
use crate::work::{Reporter, Stopped};
use host::Host;
use host::linux::LinuxHost;
use host::linux::cgroup::MemoryCgroup;
use host::linux::files::read_optional;
use host::linux::pressed::file_in_memory;
use logic::benchmark::swap::{
    LARGEST_CLUSTER, Load, Report, Row, SCHEMA_VERSION, USUAL_ALGORITHMS, about_clusters, rate, sizes, stalls,
};
use logic::device::algorithm::Algorithm;
use logic::device::stat::MmStat;
use logic::record::Undo;
use logic::vm::Tunable;

/// Verb of `zramd-worker` that is the program under pressure.
pub const LOAD: &str = "bench-load";
/// The highest priority that swap can have: nothing goes to other swap while there is room on ours.
const PRIORITY: i32 = 32767;
/// How often a run is tried.
const ATTEMPTS: u32 = 3;
/// The signal that the kernel kills with.
const SIGKILL: i32 = 9;
/// How often the program is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// Room on the device beyond what the program can need.
const SPARE: u64 = 16 << 20;

/// What to measure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Memory that the program uses; otherwise what is usual.
    pub memory: Option<u64>,
    /// File with its contents; otherwise a sample of the machine's own files.
    pub data: Option<PathBuf>,
    /// Algorithms; otherwise those that are worth trying, as far as the kernel has them.
    pub algorithms: Vec<Algorithm>,
    /// Values of `vm.page-cluster`; otherwise all up to [`LARGEST_CLUSTER`].
    pub page_clusters: Vec<u8>,
}

/// What all runs share.
struct Run<'a> {
    host: &'a mut LinuxHost,
    reporter: &'a mut Reporter,
    data: &'a [u8],
    memory: u64,
    limit: u64,
    report: Report,
}

/// Measures. Numbers in `configured` are left free.
pub fn run(
    host: &mut LinuxHost,
    reporter: &mut Reporter,
    options: &Options,
    configured: &BTreeSet<u32>,
) -> Result<Report, Stopped> {
    let available = gather::memory(host)?.available_kib * 1024;
    let (memory, limit) =
        sizes(options.memory, available).map_err(|message| Error::new(ErrorKind::Unsafe, message))?;
    let (pages, data) = real_data(options.data.as_deref(), memory)?;
    if !MemoryCgroup::are_there() {
        return Err(Error::new(ErrorKind::Unsupported, "this machine has no memory cgroups").into());
    }
    let mut scratch = Scratch::create(host, configured)?;
    let guard = match Guard::start(&cgroup_name()) {
        Ok(guard) => guard,
        Err(error) => {
            scratch.release(host)?;
            return Err(error.into());
        }
    };
    let report = Report {
        schema_version: SCHEMA_VERSION,
        memory_bytes: memory,
        limit_bytes: limit,
        data,
        ..Report::default()
    };
    let mut run = Run { host, reporter, data: pages.bytes(), memory, limit, report };
    let done = run.all(&mut scratch, options);
    let released = scratch.release(run.host);
    let ended = guard.end();
    done?;
    released?;
    ended?;
    Ok(run.report)
}

impl Run<'_> {
    fn all(&mut self, scratch: &mut Scratch, options: &Options) -> Result<(), Stopped> {
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
                self.reporter.check()?;
                let row = self.one(scratch, algorithm, cluster)?;
                self.report.results.push(row);
            }
        }
        self.report.remarks.extend(about_clusters(&self.report.results));
        Ok(())
    }

    /// One algorithm with one `vm.page-cluster`.
    fn one(&mut self, scratch: &mut Scratch, algorithm: &Algorithm, cluster: u8) -> Result<Row, Stopped> {
        let number = scratch.number();
        scratch.configure(self.host, algorithm, self.memory + SPARE)?;
        make_swap(self.host, number, "zramd-bench")?;
        scratch.unlock(self.host)?;
        let undo = Undo::SwapOff { number };
        scratch.note(self.host, undo.clone())?;
        swap_on(self.host, number, PRIORITY, false)?;
        let restore = self.set_page_cluster(scratch, cluster)?;
        let cgroup = MemoryCgroup::create(&cgroup_name())?;
        let row = self.under_pressure_again(scratch, &cgroup, algorithm, cluster);
        self.report.cgroup = format!("v{}", cgroup.version());
        let removed = cgroup.remove();
        let restored = restore.map_or(Ok(()), |undo| scratch.undo(self.host, &undo));
        let off = scratch.undo(self.host, &undo);
        let row = row?;
        removed?;
        restored?;
        off?;
        Ok(row)
    }

    /// Sets `vm.page-cluster`, once it is on record how to take that back; nothing when it is so already.
    fn set_page_cluster(&mut self, scratch: &mut Scratch, cluster: u8) -> Result<Option<Undo>, Error> {
        let (tunable, ours) = (Tunable::PageCluster, cluster.to_string());
        let before = self.host.read_tunable(tunable)?;
        if before == ours {
            return Ok(None);
        }
        let undo = Undo::RestoreTunable { tunable, before, ours: ours.clone() };
        scratch.note(self.host, undo.clone())?;
        self.host.write_tunable(tunable, &ours)?;
        Ok(Some(undo))
    }

    /// On a busy machine the kernel may give up reclaiming too early, and kill the program: then it is tried again.
    fn under_pressure_again(
        &mut self,
        scratch: &Scratch,
        cgroup: &MemoryCgroup,
        algorithm: &Algorithm,
        cluster: u8,
    ) -> Result<Row, Stopped> {
        for _ in 1..ATTEMPTS {
            if let Some(row) = self.under_pressure(scratch, cgroup, algorithm, cluster)? {
                return Ok(row);
            }
            let remark =
                format!("{algorithm}, page-cluster {cluster}: the kernel killed the program; tried again");
            self.report.remarks.push(remark);
        }
        let row = self.under_pressure(scratch, cgroup, algorithm, cluster)?;
        let message =
            "the kernel kills the program under pressure each time: more memory may help (--memory)";
        row.ok_or_else(|| Error::failed(message).into())
    }

    /// Nothing when the program was killed for want of memory.
    fn under_pressure(
        &mut self,
        scratch: &Scratch,
        cgroup: &MemoryCgroup,
        algorithm: &Algorithm,
        cluster: u8,
    ) -> Result<Option<Row>, Stopped> {
        cgroup.limit(self.limit)?;
        let failed = |error: std::io::Error| Error::failed(format!("the program under pressure: {error}"));
        let mut child = Command::new(ourselves()?)
            .arg(LOAD)
            .arg(cgroup.processes())
            .arg(self.memory.to_string())
            .stdin(file_in_memory(self.data)?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let stalled = self.stalls(cgroup);
        let began = Instant::now();
        let stored = self.wait(scratch, &mut child);
        let seconds = began.elapsed().as_secs_f64();
        let stalled = stalled.zip(self.stalls(cgroup));
        let output = child.wait_with_output().map_err(failed)?;
        let stored = stored?;
        if output.status.signal() == Some(SIGKILL) {
            return Ok(None);
        }
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let message = format!("the program under pressure: {} {}", output.status, said.trim());
            return Err(Error::failed(message).into());
        }
        let load: Load = serde_json::from_slice(&output.stdout)
            .map_err(|error| Error::failed(format!("the program under pressure: {error}")))?;
        let share = |(before, after): (u64, u64)| (after - before) as f64 / 1e6 / seconds;
        let faults = load.fault.map_or(0, |fault| fault.requests);
        Ok(Some(Row {
            algorithm: algorithm.to_string(),
            page_cluster: cluster,
            swap_out_per_second: rate(load.fill_out, load.fill_ns),
            random_in_per_second: rate(load.random_in, load.random_ns),
            sequential_in_per_second: rate(load.sequential_in, load.sequential_ns),
            pages_per_fault: load.random_in as f64 / faults.max(1) as f64,
            fault: load.fault,
            pressure_some: stalled.map(|(before, after)| share((before.0, after.0))),
            pressure_full: stalled.map(|(before, after)| share((before.1, after.1))),
            ratio: stored.orig_data_size as f64 / stored.mem_used_total.max(1) as f64,
        }))
    }

    /// Waits for the program, and returns what the device stored when that was most.
    fn wait(&self, scratch: &Scratch, child: &mut Child) -> Result<MmStat, Stopped> {
        let mut most = MmStat::default();
        loop {
            if let Err(stopped) = self.reporter.check() {
                child.kill().ok();
                return Err(stopped);
            }
            match child.try_wait() {
                Ok(None) => {}
                Ok(Some(_)) => return Ok(most),
                Err(error) => {
                    return Err(Error::failed(format!("the program under pressure: {error}")).into());
                }
            }
            let now = scratch.memory(self.host)?;
            if now.orig_data_size > most.orig_data_size {
                most = now;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Microseconds of stall so far, of the cgroup where the kernel counts that, otherwise of the machine.
    fn stalls(&mut self, cgroup: &MemoryCgroup) -> Option<(u64, u64)> {
        let (of, text) = match cgroup.pressure() {
            Some(text) => ("cgroup", text),
            None => ("machine", read_optional(std::path::Path::new("/"), "/proc/pressure/memory").ok()?),
        };
        of.clone_into(&mut self.report.pressure_of);
        stalls(&text)
    }
}
