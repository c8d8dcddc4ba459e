//! Accuracy of figures and verdicts of the benchmark. Needs root and zram; otherwise each test is skipped with the reason.
//!
//! Tests that take minutes and need fio are run by `tests/bench/accuracy` and `tests/bench/oracle`, which print tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::{PYTHON, can_use_real_kernel, has_program, in_a_better_moment, real_kernel_lock, skip};
use bench::candidates;
use bench::choice::{Before, LEVEL_MARGIN, MARGIN, Scored, choose};
use bench::measure::{Direction, Pass, Spec, pass};
use bench::sample::Source;
use bench::score::{Aim, Figures, score};
use bench::statistics::Estimate;
use bench::{Measured, Options};
use engine::scratch::Scratch;
use engine::work::Stopped;
use fastrand::Rng;
use host::linux::LinuxHost;
use host::linux::pages::Pages;
use host::linux::public_files;
use logic::device::algorithm::Algorithm;
use logic::device::stat::MmStat;
use logic::verdict::Profile;
use serde_json::Value;

const PAGE: usize = 4096;
/// Number of pages of the benchmark.
const PAGES: usize = 8192;

/// The pages of `data` that are not same-filled, at most [`PAGES`].
fn pages_of(data: &[u8]) -> Vec<u8> {
    let same = |page: &&[u8]| page.chunks(8).all(|word| word == &page[..8]);
    let pages = data.chunks_exact(PAGE).filter(|page| !same(page)).take(PAGES);
    pages.flatten().copied().collect()
}

fn program_text() -> Vec<u8> {
    let mut data = vec![0; PAGES * PAGE * 5 / 4];
    let filled = public_files::read_below(Path::new("/usr/lib"), &mut data);
    pages_of(&data[..filled])
}

fn in_memory(data: &[u8]) -> Pages {
    let mut pages = Pages::new(data.len() / PAGE).unwrap();
    pages.bytes_mut().copy_from_slice(data);
    pages
}

fn node(scratch: &Scratch) -> PathBuf {
    PathBuf::from(format!("/dev/zram{}", scratch.number()))
}

fn write_all(scratch: &Scratch, pages: &Pages) -> Pass {
    pass(&node(scratch), pages, &Spec::new(Direction::Write, 0..pages.count())).unwrap()
}

fn run(file: &Path, algorithms: Vec<Algorithm>, profile: Profile, before: Before) -> Measured {
    let source = Source::File(file.to_owned());
    let options = Options { algorithms, source, profile, before, ..Options::default() };
    in_a_better_moment(|| bench::run(&mut LinuxHost::new("/"), &options, &mut |_, _| {}))
}

/// `mm_stat` of a device filled by dd, with that number of copies of a file.
fn stored_by_dd(algorithm: &str, file: &Path, copies: u64) -> MmStat {
    let mut host = LinuxHost::new("/");
    let mut scratch = Scratch::create(&mut host, &BTreeSet::new()).unwrap();
    let algorithm = Algorithm::parse(algorithm).unwrap();
    let length = fs::metadata(file).unwrap().len();
    scratch.configure(&mut host, &algorithm, copies * length).unwrap();
    for copy in 0..copies {
        dd(&[
            &format!("if={}", file.display()),
            &format!("of={}", node(&scratch).display()),
            "bs=1M",
            &format!("seek={}", copy * (length >> 20)),
            "oflag=direct",
        ]);
    }
    let stored = scratch.memory(&host).unwrap();
    scratch.release(&mut host).unwrap();
    stored
}

/// Seconds reported by dd.
fn dd(words: &[&str]) -> f64 {
    let output = Command::new("dd").args(words).env("LC_ALL", "C").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let seconds = said.lines().last().unwrap().split(", ").find_map(|part| part.strip_suffix(" s"));
    seconds.unwrap_or_else(|| panic!("{said}")).parse().unwrap()
}

/// Results of fio for random reads of 4 KiB with psync and direct I/O.
struct Fio {
    mean_ns: f64,
    /// Mean without the slowest hundredth, which is due to other programs.
    usual_ns: f64,
    p99_ns: f64,
    bytes_per_second: f64,
}

fn fio(node: &Path, seconds: f64) -> Fio {
    // Percentiles in the middle of 19 twentieths; the last one is covered by the 99th.
    let shares: Vec<String> = (0..19).map(|at| format!("{}", 2.5 + 5.0 * f64::from(at))).collect();
    let output = Command::new("fio")
        .args(["--name=read", "--readonly", "--direct=1", "--ioengine=psync", "--rw=randread", "--bs=4k"])
        .args(["--time_based", "--thread", "--output-format=json"])
        .arg(format!("--percentile_list={}:99", shares.join(":")))
        .arg(format!("--filename={}", node.display()))
        .arg(format!("--runtime={}ms", (seconds * 1000.0).round()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let read = &found["jobs"][0]["read"];
    let percentiles: Vec<f64> = read["clat_ns"]["percentile"]
        .as_object()
        .unwrap()
        .iter()
        .filter_map(|(share, value)| share.parse::<f64>().ok().and(value.as_f64()))
        .collect();
    assert_eq!(percentiles.len(), 20, "{read}");
    Fio {
        usual_ns: percentiles.iter().sum::<f64>() / percentiles.len() as f64,
        mean_ns: read["lat_ns"]["mean"].as_f64().unwrap(),
        p99_ns: read["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap(),
        bytes_per_second: read["bw_bytes"].as_f64().unwrap(),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn the_ratio_is_that_of_a_full_device() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data");
    let data = program_text();
    if data.len() < PAGES * PAGE {
        return skip("needs 32 MiB of files below /usr/lib");
    }
    fs::write(&file, &data).unwrap();
    let lzo = Algorithm::parse("lzo-rle").unwrap();
    let options = Options {
        algorithms: vec![lzo],
        source: Source::File(file.clone()),
        // Long enough for every page on a busy machine.
        budget: std::time::Duration::from_secs(30),
        ..Options::default()
    };
    let ratios = [(); 3].map(|()| {
        let measured = in_a_better_moment(|| bench::run(&mut LinuxHost::new("/"), &options, &mut |_, _| {}));
        let row = &measured.report.results[0];
        assert_eq!(measured.report.data.pages, PAGES as u64);
        (row.ratio_total, row.ratio_payload)
    });
    // Half-empty pages of the allocator are about as many when the memory is read for the first and the second time, but not exactly.
    let ratio_total = median(ratios.map(|(total, _)| total).to_vec());
    // A device that is full of these pages. With one copy, half-empty pages of the allocator would count for 3 % or more.
    let stored = stored_by_dd("lzo-rle", &file, 12);
    let payload = ratios.map(|(_, payload)| (payload, stored.compr_data_size, 0.01));
    for (ours, bytes, most) in payload.into_iter().chain([(ratio_total, stored.mem_used_total, 0.02)]) {
        let theirs = stored.orig_data_size as f64 / bytes as f64;
        assert!((ours / theirs - 1.0).abs() < most, "{ours} is not {theirs}");
    }
}

/// A line of the comparison: our figure, theirs, the difference.
fn compared(what: &str, ours: f64, theirs: f64) -> bool {
    let more = ours / theirs - 1.0;
    println!("  {what:<34} {ours:>12.0} {theirs:>12.0} {:>+7.1} %", more * 100.0);
    more.abs() <= 0.10
}

#[test]
#[ignore = "takes a minute and fio: tests/bench/accuracy"]
fn accuracy() {
    assert!(can_use_real_kernel() && has_program("fio"), "needs root, zram and fio");
    let _lock = real_kernel_lock();
    let pages = in_memory(&program_text());
    let mut host = LinuxHost::new("/");
    let mut scratch = Scratch::create(&mut host, &BTreeSet::new()).unwrap();
    let offered = scratch.offered(&host).unwrap();
    let mut differ = Vec::new();
    for name in ["lz4", "lzo-rle", "zstd"].iter().filter(|name| offered.iter().any(|other| other == *name)) {
        let size = (pages.count() * PAGE) as u64;
        scratch.configure(&mut host, &Algorithm::parse(name).unwrap(), size).unwrap();
        write_all(&scratch, &pages);
        let node = node(&scratch);
        let random = Spec { shuffle: Some(3), ..Spec::new(Direction::Read, 0..pages.count()) };
        let large = Spec { pages_per_request: 256, ..Spec::new(Direction::Read, 0..pages.count()) };
        let from = format!("if={}", node.display());
        let mut outside = Vec::new();
        let mut rounds: BTreeMap<&str, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        // Alternating, because the load of the machine changes; the medians are compared.
        for _ in 0..15 {
            let mut ours = pass(&node, &pages, &random).unwrap();
            for _ in 0..8 {
                ours.append(&pass(&node, &pages, &random).unwrap());
            }
            let theirs = fio(&node, 0.5);
            let mut note = |what, ours, theirs| {
                let (mine, others) = rounds.entry(what).or_default();
                mine.push(ours);
                others.push(theirs);
            };
            note("mean of a 4 KiB read, ns", ours.mean_ns(), theirs.mean_ns);
            note("p99 of a 4 KiB read, ns", ours.quantile_ns(990) as f64, theirs.p99_ns);
            let page = PAGE as f64;
            note("4 KiB reads, KB/s (fio)", ours.bytes_per_second() / 1e3, theirs.bytes_per_second / 1e3);
            // Our figures are pure requests; those of fio include time between requests.
            outside.push(page * 1e9 / theirs.bytes_per_second - theirs.mean_ns);
            note("the same, requests only (fio)", page * 1e6 / ours.mean_ns(), page * 1e6 / theirs.mean_ns);
            let ours = pass(&node, &pages, &large).unwrap().bytes_per_second();
            let theirs = size as f64 / dd(&[&from, "of=/dev/null", "bs=1M", "iflag=direct"]);
            note("1 MiB reads, KB/s (dd)", ours / 1e3, theirs / 1e3);
            let small = Spec { shuffle: None, ..random.clone() };
            let ours = pass(&node, &pages, &small).unwrap().bytes_per_second();
            let seconds = dd(&[&from, "of=/dev/null", "bs=4k", "iflag=direct"]);
            note("4 KiB reads in order, KB/s (dd)", ours / 1e3, size as f64 / seconds / 1e3);
        }
        println!("{name:<36} {:>12} {:>12}", "ours", "theirs");
        println!("  fio takes {:.0} ns a request outside of it, which ours does not count", median(outside));
        for (what, (ours, theirs)) in rounds {
            if !compared(what, median(ours), median(theirs)) {
                differ.push(format!("{name}: {what}"));
            }
        }
    }
    scratch.release(&mut host).unwrap();
    println!(
        "more than 10 % apart: {}",
        if differ.is_empty() { "nothing".to_owned() } else { differ.join("; ") }
    );
}

/// Typical memory of an interpreter: names, numbers, texts, tables, small objects.
const HEAP: &str = r#"
import json, random, re, sys
random.seed(1)
words = [f"{random.choice('bcdfgklmnprst')}{random.choice('aeiou')}{random.choice('lmnrst')}{n % 97}" for n in range(3000)]
class Item:
    def __init__(self, n):
        self.name, self.price, self.tags = random.choice(words), random.random() * 100, random.sample(words, 3)
kept = [Item(n) for n in range(40000)], {word * 2: n for n, word in enumerate(words)}, [random.random() for _ in range(200000)]
text = [" ".join(random.choices(words, k=30)) for _ in range(40000)]
table = json.loads(json.dumps([{"id": n, "word": random.choice(words), "value": n * 7} for n in range(40000)]))
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as mem, open(sys.argv[1], "wb") as out:
    for line in maps.readlines():
        found = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw.p \S+ 00:00 0 *(\S*)", line)
        if found and found[3] in ("", "[heap]"):
            begin, end = int(found[1], 16), int(found[2], 16)
            mem.seek(begin)
            try:
                out.write(mem.read(end - begin))
            except OSError:
                pass
"#;

/// Four kinds of data, each in a file.
fn kinds(directory: &Path) -> Vec<(&'static str, PathBuf)> {
    let heap = directory.join("dump");
    let done = Command::new(PYTHON).args(["-c", HEAP]).arg(&heap).status().unwrap();
    assert!(done.success());
    let registry =
        std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{}/.cargo", std::env::var("HOME").unwrap()));
    let most = PAGES * PAGE * 5 / 4;
    let script = format!("find . -type f -print0 | sort -z | xargs -0 head -qc 65536 | head -c {most}");
    let sources = Path::new(&registry).join("registry/src");
    let source = Command::new("sh").args(["-c", &script]).current_dir(sources).output().unwrap().stdout;
    let mut random = Rng::with_seed(5);
    let noise: Vec<u8> = (0..PAGES * PAGE / 8).flat_map(|_| random.u64(..).to_ne_bytes()).collect();
    [
        ("heap of an interpreter", pages_of(&fs::read(heap).unwrap())),
        ("program text", program_text()),
        ("source tree", pages_of(&source)),
        ("incompressible", noise),
    ]
    .into_iter()
    .map(|(name, data)| {
        assert!(data.len() >= 2048 * PAGE, "{name}: {} KiB", data.len() / 1024);
        // Shuffled, as in the benchmark, because neighbouring pages are similar.
        let mut pages: Vec<&[u8]> = data.chunks_exact(PAGE).collect();
        random.shuffle(&mut pages);
        let data = pages.concat();
        let file = directory.join(name.replace(' ', "-"));
        fs::write(&file, data).unwrap();
        (name, file)
    })
    .collect()
}

/// Nanoseconds of CPU time per page for writes of 4 KiB with direct I/O: the writer compresses, so other processes do not
/// affect the result.
fn writes(data: &Path, node: &Path, size: u64) -> f64 {
    const TIMES: u64 = 4;
    let script = r#"TIMEFORMAT="%U %S"; time for n in $(seq "$4"); do dd if="$1" of="$2" bs=4k oflag=direct status=none conv=notrunc count="$3"; done"#;
    let count = size / PAGE as u64;
    let output = Command::new("bash")
        .args(["-c", script, "bash"])
        .args([data, node])
        .args([count.to_string(), TIMES.to_string()])
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let seconds: Option<Vec<f64>> = said.split_whitespace().map(|word| word.parse().ok()).collect();
    let seconds = seconds.filter(|times| times.len() == 2).unwrap_or_else(|| panic!("{said}"));
    seconds.iter().sum::<f64>() * 1e9 / (count * TIMES) as f64
}

/// Results of one algorithm in nanoseconds, one per round.
struct LongRun {
    algorithm: Algorithm,
    write: Vec<f64>,
    read: Vec<f64>,
    stored: MmStat,
}

/// Long runs of fio and dd with every algorithm that may become the verdict, as the reference.
fn figures(file: &Path) -> Vec<(Algorithm, Figures)> {
    const ROUNDS: usize = 10;
    let mut host = LinuxHost::new("/");
    let size = fs::metadata(file).unwrap().len();
    let same = file.with_extension("same");
    let filled: Vec<u8> = (0..size / PAGE as u64).flat_map(|page| [1 + (page % 250) as u8; PAGE]).collect();
    fs::write(&same, filled).unwrap();
    let mut found: Vec<LongRun> = Vec::new();
    for round in 0..ROUNDS {
        // The lock is released between rounds, so that other tests can run.
        let _lock = real_kernel_lock();
        let mut scratch = Scratch::create(&mut host, &BTreeSet::new()).unwrap();
        let offered = scratch.offered(&host).unwrap();
        let candidates = candidates::default(&offered, scratch.takes_parameters(&host));
        let all = candidates.iter().filter(|candidate| candidate.never.is_empty());
        let all = all.map(|candidate| (candidate.algorithm.clone(), file));
        let first = candidates[0].algorithm.clone();
        for (at, (algorithm, data)) in std::iter::once((first, same.as_path())).chain(all).enumerate() {
            scratch.configure(&mut host, &algorithm, size).unwrap();
            let write = writes(data, &node(&scratch), size);
            let read = fio(&node(&scratch), 0.5);
            if round == 0 {
                let stored = scratch.memory(&host).unwrap();
                found.push(LongRun {
                    algorithm: algorithm.clone(),
                    stored,
                    write: Vec::new(),
                    read: Vec::new(),
                });
            }
            found[at].write.push(write);
            found[at].read.push(read.usual_ns);
        }
        scratch.release(&mut host).unwrap();
    }
    let mut rows = found.into_iter().map(|long| {
        let ratio = long.stored.orig_data_size as f64 / long.stored.mem_used_total.max(1) as f64;
        (long.algorithm, median(long.write), median(long.read), ratio)
    });
    let (_, write, read, _) = rows.next().unwrap();
    let sure = |value: f64| Estimate { value, low: value, high: value };
    rows.map(|(name, out, inward, ratio)| {
        let (out_ns, in_ns) = (sure(out).minus(write), sure(inward).minus(read));
        (name, Figures { out_ns, in_ns, ratio })
    })
    .collect()
}

/// The scores of these figures.
fn scored(figures: &[(Algorithm, Figures)], aim: Aim) -> Vec<Scored> {
    figures.iter().map(|(name, figures)| (name.clone(), score(aim, figures))).collect()
}

/// Programs that are busy and idle in turns, at random, one per CPU, until this is dropped.
struct Noise(Arc<AtomicBool>, Vec<JoinHandle<()>>);

impl Noise {
    fn begin() -> Noise {
        let ended = Arc::new(AtomicBool::new(false));
        let make = |seed| {
            let ended = Arc::clone(&ended);
            std::thread::spawn(move || {
                let mut random = Rng::with_seed(seed);
                let mut memory = vec![0_u8; 32 << 20];
                while !ended.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    let busy = Duration::from_millis(random.u64(..100));
                    while begun.elapsed() < busy {
                        let [from, to] = [(); 2].map(|()| random.usize(..memory.len() - PAGE));
                        memory.copy_within(from..from + PAGE, to);
                    }
                    std::thread::sleep(Duration::from_millis(random.u64(..100)));
                }
            })
        };
        let cpus = std::thread::available_parallelism().unwrap().get() as u64;
        let threads = (0..cpus).map(make).collect();
        Noise(ended, threads)
    }
}

impl Drop for Noise {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// Single runs on a busy machine, without the history that makes verdicts steady.
#[test]
#[ignore = "takes ten minutes and fio: tests/bench/oracle noisy"]
fn noisy() {
    const RUNS: usize = 20;
    assert!(can_use_real_kernel() && has_program("fio"), "needs root, zram and fio");
    let directory = tempfile::tempdir().unwrap();
    let mut all_well = true;
    for (kind, file) in kinds(directory.path()) {
        let truth = figures(&file);
        let _noise = Noise::begin();
        let options = Options { source: Source::File(file), ..Options::default() };
        let mut chosen: BTreeMap<String, usize> = BTreeMap::new();
        let mut refused = 0;
        // With the scores of the long run, divided by the best.
        let mut wrong: Vec<Vec<String>> = Vec::new();
        for _ in 0..RUNS {
            let _lock = real_kernel_lock();
            let measured = match bench::run(&mut LinuxHost::new("/"), &options, &mut |_, _| {}) {
                Ok(measured) => measured,
                Err(Stopped::Postponed(_)) => {
                    refused += 1;
                    continue;
                }
                Err(other) => panic!("{other:?}"),
            };
            // Those that can be chosen; for noise there is none.
            let scores = scored(&truth, measured.report.aim());
            let values = scores.iter().filter_map(|(name, score)| Some((name, score.as_ref().ok()?.value)));
            let values: Vec<(&Algorithm, f64)> = values.collect();
            let best = values.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
            let ours = values.iter().find(|(name, _)| **name == measured.chosen);
            // As for the product: a level of the same algorithm has to be better by more.
            let is_level =
                |name: &Algorithm| name.name == measured.chosen.name && !name.parameters.is_empty();
            let needed = |name: &Algorithm| if is_level(name) { LEVEL_MARGIN } else { MARGIN };
            let is_better =
                |than: f64| values.iter().any(|(name, value)| *value < than * (1.0 - needed(name)));
            if ours.map_or(!values.is_empty(), |(_, value)| is_better(*value)) {
                wrong
                    .push(values.iter().map(|(name, value)| format!("{name} {:.2}", value / best)).collect());
            }
            *chosen.entry(measured.chosen.to_string()).or_default() += 1;
        }
        let most = chosen.values().max().copied().unwrap_or(0);
        println!(
            "{kind:<24} {chosen:?}, {refused} refused, {} clearly worse than another one {:?}",
            wrong.len(),
            wrong.first()
        );
        all_well &= most >= RUNS - 2 && refused <= 2 && wrong.is_empty();
    }
    assert!(all_well);
}

#[test]
#[ignore = "takes a quarter of an hour and fio: tests/bench/oracle"]
fn oracle() {
    assert!(can_use_real_kernel() && has_program("fio"), "needs root, zram and fio");
    let directory = tempfile::tempdir().unwrap();
    let runs: usize = std::env::var("RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let (mut agreed, mut all, mut wavered) = (0, 0, 0);
    // Only those whose names are listed.
    let passed_over =
        |variable: &str, name: &str| std::env::var(variable).is_ok_and(|only| !name.contains(&only));
    for (kind, file) in kinds(directory.path()) {
        if passed_over("KIND", kind) {
            continue;
        }
        let truth = figures(&file);
        println!("\n{kind}, {} MiB", fs::metadata(&file).unwrap().len() >> 20);
        for (name, figures) in &truth {
            println!(
                "  {name:<16} out {:>6.0} ns, in {:>6.0} ns, ratio {:.2}",
                figures.out_ns.value, figures.in_ns.value, figures.ratio
            );
        }
        for profile in Profile::ALL {
            if passed_over("PROFILE", profile.word()) {
                continue;
            }
            let measured: Vec<Measured> = {
                let mut before = Before::default();
                (0..runs)
                    .map(|_| {
                        let _lock = real_kernel_lock();
                        let measured = run(&file, Vec::new(), profile, before.clone());
                        before = Before {
                            verdict: Some(measured.chosen.clone()),
                            better_runs: measured.better_runs,
                            short_of_memory: measured.report.past.short_of_memory,
                        };
                        measured
                    })
                    .collect()
            };
            let aim = measured[0].report.aim();
            let scores = scored(&truth, aim);
            let usual = truth[0].0.clone();
            let right = choose(&scores, &Before::default(), &usual);
            let value = |name: &Algorithm| {
                scores
                    .iter()
                    .find(|(other, _)| other == name)
                    .and_then(|(_, score)| Some(score.as_ref().ok()?.value))
            };
            let verdicts: Vec<Algorithm> = measured.iter().map(|measured| measured.chosen.clone()).collect();
            for pair in measured.windows(2).map(|pair| [&pair[0].report, &pair[1].report]) {
                if pair[0].verdict.algorithm != pair[1].verdict.algorithm {
                    println!("    {}", pair[1].verdict.reason);
                }
            }
            let changes = verdicts.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let same = verdicts[0] == right.algorithm;
            let worse = value(&verdicts[0])
                .zip(value(&right.algorithm))
                .map_or(0.0, |(ours, best)| ours / best - 1.0);
            all += 1;
            agreed += usize::from(same);
            wavered += usize::from(changes > 0);
            println!(
                "  {:<9} ours {:<14} oracle {:<14} {} {changes} changes in {runs} runs",
                profile.word(),
                verdicts[0],
                right.algorithm,
                if same {
                    "same;".to_owned()
                } else {
                    format!("NOT the same, {:.0} % worse (margin {:.0} %);", worse * 100.0, MARGIN * 100.0)
                },
            );
        }
    }
    println!("\n{agreed} of {all} verdicts are the oracle's; {wavered} of {all} changed over {runs} runs");
    assert!(agreed + 1 >= all && wavered == 0);
}
