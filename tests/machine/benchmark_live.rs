//! The benchmark with pages in swap, on the running kernel. Needs root and zram; otherwise each test is skipped with the
//! reason.
//! The machine is left as it was.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{bench_run, can_use_real_kernel, real_kernel_lock, skip};
use bench::sample::{Source, collect};
use engine::scratch::Scratch;
use fastrand::Rng;
use host::linux::LinuxHost;
use host::linux::paging::{page_out, single_pages};
use logic::config::settings::PageSource;
use logic::device::algorithm::Algorithm;
use logic::device::stat::BlockStat;
use logic::record::Undo;
use serde_json::Value;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;
/// Memory of the program that is swapped out.
const USED: usize = 96 * MIB;
/// One page in ten is same-filled.
const SAME_FILLED: usize = 10;
/// Set for the holder process; without it, the test returns.
const HOLDER: &str = "ZRAMD_TEST_HOLDER";

/// Page `index` of the program: half noise, which compresses to half a page, or same-filled.
fn contents(index: usize) -> [u8; PAGE] {
    let mut page = [0; PAGE];
    if index.is_multiple_of(SAME_FILLED) {
        return [u8::try_from(1 + index % 251).unwrap(); PAGE];
    }
    let mut random = Rng::with_seed(index as u64);
    for word in page[..PAGE / 2].chunks_mut(8) {
        word.copy_from_slice(&random.u64(..).to_ne_bytes());
    }
    page
}

/// Not a test: the process that is swapped out. It ends at the end of its standard input, and reports whether its memory is
/// unchanged.
#[test]
#[ignore = "started by another test"]
fn holder() {
    if std::env::var_os(HOLDER).is_none() {
        return;
    }
    single_pages().unwrap();
    let mut memory = vec![0; USED + PAGE];
    let aligned = memory.as_ptr().align_offset(PAGE);
    let memory = &mut memory[aligned..][..USED];
    for (index, page) in memory.chunks_mut(PAGE).enumerate() {
        page.copy_from_slice(&contents(index));
    }
    page_out(memory).unwrap();
    println!("\nready");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    let intact = memory.chunks(PAGE).enumerate().all(|(index, page)| page == contents(index));
    println!("\n{}", if intact { "intact" } else { "spoilt" });
}

fn start_holder() -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "benchmark_live::holder", "--nocapture"])
        .env(HOLDER, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_for(lines: &mut impl Iterator<Item = std::io::Result<String>>, words: &[&str]) -> String {
    lines.map(Result::unwrap).find(|line| words.contains(&line.as_str())).expect("the program ended early")
}

/// The report of `zramdctl bench run` with these arguments.
fn bench(words: &[&str]) -> Value {
    let output = bench_run(&[&["--json=short"], words].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn swaps() -> String {
    fs::read_to_string("/proc/swaps").unwrap()
}

/// Read requests to the device so far.
fn reads(number: u32) -> u64 {
    BlockStat::parse(&fs::read_to_string(format!("/sys/block/zram{number}/stat")).unwrap()).unwrap().reads
}

fn counter(name: &str) -> u64 {
    bench::advice::counter(&fs::read_to_string("/proc/vmstat").unwrap(), name)
}

#[test]
fn pages_in_swap_are_read_only_where_the_configuration_says_so() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    if swaps().contains("/zram") {
        return skip("needs a machine without zram swap");
    }
    let verdict = fs::read("/var/lib/zramd/benchmark.json").ok();
    let before = swaps();
    let mut host = LinuxHost::new("/");
    let mut scratch = Scratch::create(&mut host, &BTreeSet::new()).unwrap();
    let number = scratch.number();
    let node = format!("/dev/zram{number}");
    let offered = scratch.offered(&host).unwrap();
    scratch.configure(&mut host, &Algorithm::parse(&offered[0]).unwrap(), (USED + 16 * MIB) as u64).unwrap();
    scratch.unlock(&mut host).unwrap();
    let run = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).output().unwrap();
        assert!(output.status.success(), "{program}: {output:?}");
    };
    run("mkswap", &[&node]);
    // The next run switches it off if this test is killed.
    let undo = Undo::SwapOff { number };
    scratch.note(&mut host, undo.clone()).unwrap();
    run("swapon", &["--priority", "32767", &node]);
    let mut holder = start_holder();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    wait_for(&mut lines, &["ready"]);

    let stored_before = scratch.memory(&host).unwrap();
    let (came_in, read) = (counter("pswpin"), reads(number));
    let public = bench(&["--algorithms", &offered[0], "--seconds", "1"]);
    let (came_in_meanwhile, read_meanwhile) = (counter("pswpin") - came_in, reads(number) - read);
    let sample = collect(&mut host, &Source::Configured(PageSource::Swap), &BTreeSet::new(), 8192).unwrap();
    let (stored_after, came_in_after) = (scratch.memory(&host).unwrap(), counter("pswpin"));
    drop(holder.stdin.take());
    let memory = wait_for(&mut lines, &["intact", "spoilt"]);
    assert!(holder.wait().unwrap().success());
    scratch.undo(&mut host, &undo).unwrap();
    scratch.release(&mut host).unwrap();

    println!("{stored_before:?}; {}; {:?}", public["data"], sample.data);
    assert!(stored_before.orig_data_size > USED as u64 / 3, "{stored_before:?}");
    // By default, pages in swap are not read; pages that are not private compress like them.
    assert!(read_meanwhile <= came_in_meanwhile, "{read_meanwhile} {came_in_meanwhile}");
    assert_eq!(public["data"]["source"], "calibrated", "{public}");
    let ratio = public["results"][0]["ratio_payload"].as_f64().unwrap();
    let real = (stored_before.orig_data_size - stored_before.same_pages * PAGE as u64) as f64
        / stored_before.compr_data_size as f64;
    assert!((ratio / real - 1.0).abs() < 0.05, "{ratio}, and really {real}");
    let share = 1.0 / SAME_FILLED as f64;
    assert!((public["data"]["same_filled_share"].as_f64().unwrap() - share).abs() < 0.02, "{public}");
    // Read if configured: the pages of the program, half noise and half zeros.
    let data = &sample.data;
    assert_eq!(data.source, "swap");
    assert!((2048..=8192).contains(&data.pages), "{data:?}");
    assert!((data.same_filled_share - share).abs() < 0.02, "{data:?}");
    let is_half = |index: &usize| {
        let (noise, zeros) = sample.pages.page(*index).split_at(PAGE / 2);
        zeros.iter().all(|byte| *byte == 0) && noise.chunks(8).all(|word| word != &[0; 8][..])
    };
    let half = (0..sample.pages.count()).filter(is_half).count();
    // What is stored beyond the program's pages belongs to others: the kernel swaps out what it thinks best.
    let own = (USED as f64 / stored_before.orig_data_size as f64).min(1.0);
    let found = half as f64 / sample.pages.count() as f64;
    assert!(found >= 0.98 * own, "{half} of {}, {own} of what is stored", sample.pages.count());
    // None of the program's pages was swapped in or out; the kernel may have moved a few of other programs.
    let moved = stored_after.orig_data_size.abs_diff(stored_before.orig_data_size) / PAGE as u64;
    assert!(moved < 64, "{moved} pages moved: {stored_before:?} {stored_after:?}");
    assert!(came_in_after - came_in < 64, "{} pages came in", came_in_after - came_in);
    assert_eq!(memory, "intact");
    assert_eq!(swaps(), before);
    assert!(!Path::new(&format!("/sys/block/zram{number}")).exists());
    // A run with named algorithms does not replace the verdict.
    assert_eq!(fs::read("/var/lib/zramd/benchmark.json").ok(), verdict);
}
