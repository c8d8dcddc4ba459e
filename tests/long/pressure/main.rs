//! A program whose working set is larger than memory.
//!
//! `pressure burst|session FILE MIX MIB ACCESSES SEED` fills MIB mebibytes with pages of a mix, accesses them, checks the number in
//! each page, and prints one line of JSON. Before that it prints a line each time the longest stall has grown by a tenth, so that the
//! last line of a program that was killed has it. FILE has pages of heap, programs and text, as many of each. The contents depend on the
//! file and the seed only, so that each candidate stores the same ones.
//!
//! * `burst`: 20 % of the pages get 80 % of the accesses, without pauses.
//! * `session`: the same, but every 5,000 accesses a pause of 100 ms, and every 25,000 accesses other pages become the frequent ones.
//!
//! `pressure codec FILE MIX SEED` prints the microseconds that lz4 and zstd (at its default level) take for a page of the mix, as
//! libraries: to compress, and to decompress it.
//!
//! `pressure heartbeat FILE DIRECTORY MIB SEED`, `pressure growth FILE MIB MIB_PER_S SEED` and `pressure map FILE SECONDS SEED`: see
//! freeze.rs. `pressure tiers FILE MIX COLD_MIB HOT_MIB MINUTES SEED`: see tiers.rs.

mod freeze;
mod tiers;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use fastrand::Rng;

const PAGE: usize = 4096;
/// Kinds of pages in the file.
const KINDS: u64 = 3;
/// Bytes at the beginning of each page that identify it.
const STAMP: usize = 16;

/// Shares of the kinds of pages in per cent: heap, programs, text, random; the rest is zero.
const MIXES: [(&str, [u64; 4]); 5] = [
    ("desktop", [55, 15, 15, 7]),
    ("heap", [85, 0, 5, 2]),
    ("text", [20, 20, 50, 2]),
    ("random", [15, 5, 0, 75]),
    ("incompressible", [0, 0, 0, 100]),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [kind @ ("burst" | "session"), file, mix, mib, accesses, seed] => {
            let [mib, accesses, seed] = [mib, accesses, seed].map(|word| number(word));
            run(*kind == "session", Path::new(file), shares_of(mix), mib, accesses, seed);
        }
        ["codec", file, mix, seed] => codec(Path::new(file), shares_of(mix), number(seed)),
        ["heartbeat", file, directory, mib, seed] => {
            freeze::heartbeat(Path::new(file), Path::new(directory), number(mib), number(seed));
        }
        ["growth", file, mib, speed, seed] => {
            freeze::growth(Path::new(file), number(mib), number(speed), number(seed));
        }
        ["tiers", file, mix, cold, hot, minutes, seed] => {
            let figures = [cold, hot, minutes].map(|word| number(word));
            tiers::tiers(Path::new(file), shares_of(mix), figures, number(seed));
        }
        ["map", file, seconds, seed] => freeze::map(Path::new(file), number(seconds), number(seed)),
        _ => panic!("see the first lines of main.rs for the arguments"),
    }
}

fn number(word: &str) -> u64 {
    word.parse().expect(word)
}

fn shares_of(mix: &str) -> [u64; 4] {
    MIXES.iter().find(|(name, _)| *name == mix).expect("an unknown mix").1
}

struct Set {
    pages: &'static mut [u8],
    count: u64,
}

impl Set {
    fn new(mib: u64) -> Set {
        let length = (mib << 20) as usize;
        // A set larger than memory and swap must not fail here, but be killed later: hence MAP_NORESERVE.
        // SAFETY: a new private mapping, which is never unmapped. Huge pages would be split before they are swapped out.
        let pages = unsafe {
            let place = libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            );
            assert!(place != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
            libc::madvise(place, length, libc::MADV_NOHUGEPAGE);
            std::slice::from_raw_parts_mut(place.cast::<u8>(), length)
        };
        Set { pages, count: (length / PAGE) as u64 }
    }

    fn page(&mut self, number: u64) -> &mut [u8] {
        &mut self.pages[number as usize * PAGE..][..PAGE]
    }

    /// Fills the set. The file is read page by page and not kept in memory.
    fn fill(&mut self, file: &Path, shares: [u64; 4], seed: u64, stalls: &mut Stalls) {
        let file = File::open(file).expect("the file of pages");
        let of_each = file.metadata().unwrap().len() / KINDS / PAGE as u64;
        let mut random = Rng::with_seed(seed);
        for number in 0..self.count {
            let mut share = random.u64(..100);
            let mut kinds = (0..).zip(shares);
            let kind = kinds.find_map(|(kind, of)| match share.checked_sub(of) {
                Some(rest) => {
                    share = rest;
                    None
                }
                None => Some(kind),
            });
            let begun = Instant::now();
            let page = self.page(number);
            match kind {
                Some(kind) if kind < KINDS => {
                    let from = kind * of_each + random.u64(..of_each);
                    file.read_exact_at(page, from * PAGE as u64).unwrap();
                }
                Some(_) => random.fill(page),
                // Not the stamp: a page of one repeated word needs no memory.
                None => {
                    page.fill(0);
                    continue;
                }
            }
            stamp(page, number, 0);
            stalls.note(begun.elapsed());
        }
        // Its pages would count as cached files of the working set.
        // SAFETY: the file is open.
        unsafe {
            libc::posix_fadvise(std::os::fd::AsRawFd::as_raw_fd(&file), 0, 0, libc::POSIX_FADV_DONTNEED)
        };
    }
}

/// The longest time that a page took.
#[derive(Default)]
struct Stalls {
    longest: Duration,
    printed: Duration,
}

impl Stalls {
    fn note(&mut self, took: Duration) {
        self.longest = self.longest.max(took);
        if self.longest > self.printed.mul_f64(1.1) && self.longest > Duration::from_millis(1) {
            println!("{{\"longest_ms\":{:.1}}}", self.longest.as_secs_f64() * 1e3);
            self.printed = self.longest;
        }
    }
}

fn stamp(page: &mut [u8], number: u64, writes: u64) {
    page[..8].copy_from_slice(&number.to_le_bytes());
    page[8..STAMP].copy_from_slice(&writes.to_le_bytes());
}

fn run(session: bool, file: &Path, shares: [u64; 4], mib: u64, accesses: u64, seed: u64) {
    let mut set = Set::new(mib);
    let begun = Instant::now();
    let mut stalls = Stalls::default();
    set.fill(file, shares, seed, &mut stalls);
    let filled = begun.elapsed();

    let mut random = Rng::with_seed(seed);
    let hot = set.count / 5;
    let warm_up = accesses / 4;
    let mut shift = 0;
    let mut times = Vec::with_capacity(accesses as usize);
    let (mut faults, mut worked) = (0, Duration::ZERO);
    for access in 0..warm_up + accesses {
        if access == warm_up {
            (faults, worked) = (major_faults(), Duration::ZERO);
        }
        if session && access % 5_000 == 0 {
            std::thread::sleep(Duration::from_millis(100));
        }
        if session && access % 25_000 == 0 {
            shift = random.u64(..set.count);
        }
        let number = match random.u64(..5) {
            0 => random.u64(..set.count),
            // Spread over the set, because neighbours are swapped together.
            _ => (random.u64(..hot) * 5 + shift) % set.count,
        };
        let write = random.u64(..10) < 3;
        let begun = Instant::now();
        let page = set.page(number);
        let [found, writes] =
            [&page[..8], &page[8..STAMP]].map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        let is_zero = found == 0 && writes == 0;
        assert!(found == number || is_zero, "page {number} has the contents of page {found}");
        if write && !is_zero {
            stamp(page, number, writes + 1);
        }
        let took = begun.elapsed();
        worked += took;
        stalls.note(took);
        if access >= warm_up {
            times.push(took);
        }
    }
    faults = major_faults() - faults;
    times.sort_unstable();
    let at =
        |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)].as_secs_f64() * 1e6;
    println!(
        "{{\"fill_s\":{:.2},\"accesses_per_s\":{:.0},\"major_faults\":{faults},\"p50_us\":{:.1},\"p99_us\":{:.1},\"p999_us\":{:.1},\"longest_ms\":{:.1}}}",
        filled.as_secs_f64(),
        accesses as f64 / worked.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(0.999),
        stalls.longest.as_secs_f64() * 1e3,
    );
}

/// Times of libraries. A page that does not shrink is stored as it is, as by zram, and costs nothing to read.
fn codec(file: &Path, shares: [u64; 4], seed: u64) {
    let mut set = Set::new(16);
    set.fill(file, shares, seed, &mut Stalls::default());
    let mut zstd = zstd::bulk::Compressor::new(0).unwrap();
    let mut back = zstd::bulk::Decompressor::new().unwrap();
    let mut out = vec![0; 2 * PAGE];
    let mut page = vec![0; PAGE];
    // The fastest of several rounds, because other programs only make it slower.
    let mut best = [Duration::MAX; 4];
    for _ in 0..5 {
        let mut times = [Duration::ZERO; 4];
        for number in 0..set.count {
            let data = set.page(number);
            let begun = Instant::now();
            let length = lz4_flex::block::compress_into(data, &mut out).unwrap();
            times[0] += begun.elapsed();
            if length < PAGE {
                let begun = Instant::now();
                lz4_flex::block::decompress_into(&out[..length], &mut page).unwrap();
                times[1] += begun.elapsed();
            }
            let begun = Instant::now();
            let length = zstd.compress_to_buffer(data, &mut out[..]).unwrap();
            times[2] += begun.elapsed();
            if length < PAGE {
                let begun = Instant::now();
                back.decompress_to_buffer(&out[..length], &mut page[..]).unwrap();
                times[3] += begun.elapsed();
            }
        }
        best = std::array::from_fn(|index| best[index].min(times[index]));
    }
    let [lz4_out, lz4_in, zstd_out, zstd_in] = best.map(|time| time.as_secs_f64() * 1e6 / set.count as f64);
    println!(
        "{{\"lz4_out\":{lz4_out:.2},\"lz4_in\":{lz4_in:.2},\"zstd_out\":{zstd_out:.2},\"zstd_in\":{zstd_in:.2}}}"
    );
}

/// Page faults of this process that read from a device, getrusage(2).
fn major_faults() -> i64 {
    // SAFETY: zeros are a valid value, and the kernel fills it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage.ru_majflt
    }
}
