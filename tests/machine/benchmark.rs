//! The benchmark on the running kernel. Needs root and zram; otherwise each test is skipped with the reason.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{
    can_use_real_kernel, eventually, in_a_better_moment, real_kernel_lock, scratch_is_recorded, setup,
};
use bench::measure::{Direction, Pass, Spec, pass};
use bench::sample::{Source, collect};
use bench::{Options, run};
use engine::scratch::Scratch;
use host::Host;
use host::linux::LinuxHost;
use host::linux::pages::Pages;
use logic::config::settings::PageSource;
use logic::device::algorithm::Algorithm;

const COUNT: usize = 1024;

/// Half of each page is noise, so it compresses to half a page.
fn half_noise() -> Pages {
    let mut random = fastrand::Rng::with_seed(1);
    let mut pages = Pages::new(COUNT).unwrap();
    let half = pages.page_size() / 2;
    for index in 0..COUNT {
        for word in pages.page_mut(index)[..half].chunks_mut(8) {
            word.copy_from_slice(&random.u64(..).to_ne_bytes());
        }
    }
    pages
}

#[test]
fn requests_are_counted_timed_and_read_back() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let mut host = LinuxHost::new("/");
    let before = host.device_numbers().unwrap();
    let mut scratch = Scratch::create(&mut host, &BTreeSet::new()).unwrap();
    let node = PathBuf::from(format!("/dev/zram{}", scratch.number()));
    let algorithm = Algorithm::parse(&scratch.offered(&host).unwrap()[0]).unwrap();
    scratch.configure(&mut host, &algorithm, (COUNT * 4096) as u64).unwrap();
    let data = half_noise();
    let written = pass(&node, &data, &Spec::new(Direction::Write, 0..COUNT)).unwrap();
    let memory = scratch.memory(&host).unwrap();
    let spec = Spec { verify: true, shuffle: Some(1), ..Spec::new(Direction::Read, 0..COUNT) };
    let read = pass(&node, &data, &spec).unwrap();
    let threads = pass(&node, &data, &Spec { threads: 2, ..spec.clone() }).unwrap();
    let clusters = pass(&node, &data, &Spec { pages_per_request: 8, ..spec.clone() }).unwrap();
    // Different contents on the device are detected.
    let other = pass(&node, &Pages::new(COUNT).unwrap(), &spec);
    scratch.release(&mut host).unwrap();
    assert_eq!(host.device_numbers().unwrap(), before);

    let show = |pass: &Pass| {
        println!(
            "{:.0} ns, p99 {} ns, {:.0} MB/s",
            pass.mean_ns(),
            pass.quantile_ns(990),
            pass.bytes_per_second() / 1e6
        );
    };
    for pass in [&written, &read, &threads, &clusters] {
        show(pass);
    }
    assert_eq!([written.requests(), read.requests(), threads.requests()], [COUNT as u64; 3]);
    assert_eq!((clusters.requests(), clusters.bytes()), (COUNT as u64 / 8, read.bytes()));
    assert_eq!(memory.orig_data_size, (COUNT * 4096) as u64);
    let ratio = memory.orig_data_size as f64 / memory.mem_used_total as f64;
    assert!((1.5..2.1).contains(&ratio), "{memory:?}");
    assert!(read.quantile_ns(500) > 0 && read.quantile_ns(500) <= read.quantile_ns(990));
    assert!(clusters.quantile_ns(500) > read.quantile_ns(500), "eight pages take longer than one");
    assert!(other.is_err());
}

fn scratch_records() -> usize {
    let entries = std::fs::read_dir("/run/zramd").into_iter().flatten();
    entries
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".scratch"))
        .count()
}

/// Generated pages have published compression ratios, and a complete run ends in time and leaves nothing behind.
#[test]
fn a_whole_run_ends_in_time_and_made_pages_compress_like_real_ones() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let mut host = LinuxHost::new("/");
    let before = host.device_numbers().unwrap();
    // Long enough for all pages on a busy machine; the lab checks the usual time.
    let budget = Duration::from_secs(30);
    let options = Options { source: Source::Generator, budget, ..Options::default() };
    let (measured, told, seconds) = in_a_better_moment(|| {
        let begun = Instant::now();
        let mut told = Vec::new();
        let measured = run(&mut host, &options, &mut |share, doing| told.push((share, doing.to_owned())))?;
        Ok((measured, told, begun.elapsed().as_secs_f64()))
    });
    assert_eq!(host.device_numbers().unwrap(), before);
    assert_eq!(scratch_records(), 0);
    assert!(seconds <= budget.as_secs_f64() + 1.0, "{seconds} s");
    assert!(told.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{told:?}");

    let report = &measured.report;
    assert_eq!(report.data.source, "generator");
    // Ratios on total memory of the r/Fedora table.
    for (name, published) in [("lz4", 2.63), ("lzo-rle", 2.74), ("lzo", 2.77), ("zstd", 3.37)] {
        let row = report.results.iter().find(|row| row.algorithm.to_string() == name);
        if let Some(row) = row {
            let share = row.ratio_total / published;
            assert!((0.9..=1.1).contains(&share), "{name}: {:.2}, published {published}", row.ratio_total);
            assert!(row.read.requests > 500 && row.write.requests > 500, "{row:?}");
            assert!(row.read.p50_ns <= row.read.p99_ns && row.read.p99_ns <= row.read.p999_ns);
        }
    }
    let offered: BTreeSet<&String> = measured.offered.iter().collect();
    let measured_names: BTreeSet<&String> = report.results.iter().map(|row| &row.algorithm.name).collect();
    assert_eq!(measured_names, offered, "everything that the kernel offers is measured");
    assert_eq!(report.results[0].algorithm, report.verdict.algorithm, "the verdict is the first");
    assert_eq!(report.page_clusters.len(), 4);
    // The JSON form.
    let json = serde_json::to_value(report).unwrap();
    for path in [
        "/schema_version",
        "/verdict/algorithm",
        "/verdict/parameters",
        "/verdict/page_cluster",
        "/verdict/reason",
        "/data/source",
        "/data/pages",
        "/data/same_filled_share",
        "/data/incompressible_share",
        "/results/0/algorithm",
        "/results/0/parameters",
        "/results/0/ratio_total",
        "/results/0/ratio_payload",
        "/results/0/read/mean_ns",
        "/results/0/read/p50_ns",
        "/results/0/read/p99_ns",
        "/results/0/read/bytes_per_second",
        "/results/0/write/mean_ns",
        "/results/0/score",
    ] {
        assert!(json.pointer(path).is_some(), "{path} is missing");
    }
}

/// A killed run leaves its device, which the next start of `zramd-setup` removes.
#[test]
fn a_killed_run_leaves_nothing_after_the_next_start() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let host = LinuxHost::new("/");
    // Devices that were set up on this machine by hand would be removed with that of the run.
    assert!(setup(&["revert"]).status.success());
    let before = host.device_numbers().unwrap();
    let begin = || {
        Command::new(env!("CARGO_BIN_EXE_zramd-worker"))
            .args(["benchmark", r#"{"generator":true,"seconds":60,"algorithms":["lzo"]}"#])
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut worker = begin();
    eventually("a device to measure on", || {
        // The run was postponed because the machine is busy, or was over already: try again.
        if worker.try_wait().unwrap().is_some() {
            worker = begin();
        }
        scratch_is_recorded()
    });
    worker.kill().unwrap();
    worker.wait().unwrap();
    assert_eq!(scratch_records(), 1, "it had no chance to clean up");
    let reverted = setup(&["revert"]);
    assert!(reverted.status.success(), "{reverted:?}");
    assert_eq!(scratch_records(), 0);
    assert_eq!(host.device_numbers().unwrap(), before);
}

/// Counts how often the kernel opened these files of a process since the last call.
struct Opened {
    events: std::os::fd::OwnedFd,
    // A file of /proc gets another inode when nothing refers to it.
    _kept: Vec<std::os::fd::OwnedFd>,
}

impl Opened {
    fn watch(process: u32, names: &[&str]) -> Opened {
        use rustix::fs::{Mode, OFlags, inotify, open};
        let events = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).unwrap();
        let keep = |name: &&str| {
            let path = format!("/proc/{process}/{name}");
            let kept = open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
            inotify::add_watch(&events, &path, inotify::WatchFlags::OPEN).unwrap();
            kept
        };
        let kept = names.iter().map(keep).collect();
        Opened { events, _kept: kept }
    }

    fn any(&self) -> bool {
        let mut buffer = [0; 4096];
        rustix::io::read(&self.events, &mut buffer).is_ok()
    }
}

#[test]
fn memory_of_processes_is_not_opened_unless_the_configuration_says_so() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    // Keeps its input in memory: enough pages, whatever else runs here.
    let mut other = Command::new("sort").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let lines: String = (0..1_000_000).map(|number| format!("{number}\n")).collect();
    other.stdin.as_mut().unwrap().write_all(lines.as_bytes()).unwrap();
    let opened = Opened::watch(other.id(), &["maps", "mem", "pagemap"]);
    std::fs::read(format!("/proc/{}/maps", other.id())).unwrap();
    assert!(opened.any(), "the kernel tells of files that are opened below /proc");
    let mut host = LinuxHost::new("/");
    let mut pages_of = |source| collect(&mut host, &source, &BTreeSet::new(), 512).unwrap().data.source;
    for source in [Source::default(), Source::Configured(PageSource::Swap), Source::Generator] {
        let from = pages_of(source);
        assert!(!opened.any(), "{from}");
    }
    assert_eq!(pages_of(Source::Configured(PageSource::Processes)), "processes");
    assert!(opened.any());
    other.kill().unwrap();
    other.wait().unwrap();
}
