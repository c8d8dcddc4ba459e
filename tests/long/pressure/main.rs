//! A program whose working set is larger than memory.
//!
//! `pressure pages FILE` writes pages of programs and text of this machine, 4 MiB of each. `pressure burst|session FILE MIX MIB
//! ACCESSES SEED` fills MIB mebibytes with pages of a mix, accesses them, checks each page that it reads, and prints one line of
//! JSON. The pages depend on the file and the seed only, so that each candidate stores the same ones.
//!
//! * `burst`: 20 % of the pages get 80 % of the accesses, without pauses.
//! * `session`: the same, but every 5,000 accesses a pause of 100 ms, and every 25,000 accesses other pages become the frequent ones.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

const PAGE: usize = 4096;
/// Pages of each kind in the file.
const POOL: usize = 1024;
/// Bytes at the beginning of each page that identify it.
const STAMP: usize = 16;

/// Shares of the kinds of pages in per cent: heap, programs, text, random, zero.
const MIXES: [(&str, [u64; 5]); 4] = [
    ("desktop", [55, 15, 15, 7, 8]),
    ("heap", [85, 0, 5, 2, 8]),
    ("text", [20, 20, 50, 2, 8]),
    ("random", [15, 5, 0, 75, 5]),
];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["pages", file] => fs::write(file, pool()).expect(file),
        [kind @ ("burst" | "session"), file, mix, mib, accesses, seed] => {
            let shares = MIXES.iter().find(|(name, _)| name == mix).expect("an unknown mix").1;
            let [mib, accesses, seed] = [mib, accesses, seed].map(|word| word.parse::<u64>().expect(word));
            run(*kind == "session", Path::new(file), shares, mib, accesses, seed);
        }
        _ => panic!("usage: pressure pages FILE | pressure burst|session FILE MIX MIB ACCESSES SEED"),
    }
}

/// Pages of programs, then pages of text.
fn pool() -> Vec<u8> {
    let mut pages = pages_of(&["/usr/bin", "/usr/lib/x86_64-linux-gnu"], |_| true);
    pages.extend(pages_of(
        &["/usr/lib/python3", "/usr/share/perl", "/usr/share/perl5", "/usr/include"],
        |path| {
            path.extension().is_some_and(|word| ["py", "pl", "pm", "h"].iter().any(|known| word == *known))
        },
    ));
    pages
}

/// `POOL` pages, evenly from all files below these directories.
fn pages_of(directories: &[&str], wanted: impl Fn(&Path) -> bool) -> Vec<u8> {
    let mut files = Vec::new();
    let mut open: Vec<_> = directories.iter().map(|path| Path::new(path).to_owned()).collect();
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() && wanted(&entry.path()) => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    let mut all: Vec<[u8; PAGE]> = Vec::new();
    for file in files {
        let contents = fs::read(file).unwrap_or_default();
        all.extend(contents.chunks_exact(PAGE).step_by(7).map(|page| <[u8; PAGE]>::try_from(page).unwrap()));
    }
    assert!(all.len() >= POOL, "only {} pages below {directories:?}", all.len());
    (0..POOL).flat_map(|index| all[index * all.len() / POOL]).collect()
}

/// Objects of a program: pointers into few regions, small numbers, flags, short strings, and fields that are zero.
fn heap(page: &mut [u8], random: &mut Random) {
    const WORDS: [&[u8; 8]; 8] = [
        b"name\0\0\0\0",
        b"value\0\0\0",
        b"https://",
        b"text/htm",
        b"true\0\0\0\0",
        b"width\0\0\0",
        b"/usr/lib",
        b"id\0\0\0\0\0\0",
    ];
    let region = 0x7f00_0000_0000 | random.below(4) << 32 | random.below(256) << 20;
    for word in page.chunks_exact_mut(8) {
        let value = match random.below(100) {
            0..30 => 0,
            30..60 => region + random.below(1 << 16) * 16,
            60..75 => random.below(256),
            75..85 => 1 << random.below(8),
            85..93 => u64::from_le_bytes(*WORDS[random.below(8) as usize]),
            _ => random.next(),
        };
        word.copy_from_slice(&value.to_le_bytes());
    }
}

struct Set {
    pages: &'static mut [u8],
    count: u64,
}

impl Set {
    fn new(mib: u64) -> Set {
        let length = (mib << 20) as usize;
        // SAFETY: a new private mapping, which is never unmapped. Huge pages would be split before they are swapped out.
        let pages = unsafe {
            let place = libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
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
    fn fill(&mut self, file: &Path, shares: [u64; 5], seed: u64) {
        use std::os::unix::fs::FileExt;
        let file = File::open(file).expect("the file of pages");
        for number in 0..self.count {
            let random = &mut Random(seed << 32 | number);
            let mut share = random.below(100);
            let kind = shares.iter().position(|of| match share.checked_sub(*of) {
                Some(rest) => {
                    share = rest;
                    false
                }
                None => true,
            });
            let from = random.below(POOL as u64) * PAGE as u64;
            let page = self.page(number);
            match kind {
                Some(0) => heap(page, random),
                Some(1) => file.read_exact_at(page, from).unwrap(),
                Some(2) => file.read_exact_at(page, from + (POOL * PAGE) as u64).unwrap(),
                Some(3) => page
                    .chunks_exact_mut(8)
                    .for_each(|word| word.copy_from_slice(&random.next().to_le_bytes())),
                // Not the stamp: a page of one repeated word needs no memory.
                _ => {
                    page.fill(0);
                    continue;
                }
            }
            stamp(page, number, 0);
        }
        // Its pages would count as cached files of the working set.
        // SAFETY: the file is open.
        unsafe {
            libc::posix_fadvise(std::os::fd::AsRawFd::as_raw_fd(&file), 0, 0, libc::POSIX_FADV_DONTNEED)
        };
    }
}

fn stamp(page: &mut [u8], number: u64, writes: u64) {
    page[..8].copy_from_slice(&number.to_le_bytes());
    page[8..STAMP].copy_from_slice(&writes.to_le_bytes());
}

fn run(session: bool, file: &Path, shares: [u64; 5], mib: u64, accesses: u64, seed: u64) {
    let mut set = Set::new(mib);
    let begun = Instant::now();
    set.fill(file, shares, seed);
    let filled = begun.elapsed();

    let mut random = Random(seed ^ 0x5eed);
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
            shift = random.below(set.count);
        }
        let number = match random.below(5) {
            0 => random.below(set.count),
            // Spread over the set, because neighbours are swapped together.
            _ => (random.below(hot) * 5 + shift) % set.count,
        };
        let write = random.below(10) < 3;
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
        at(1.0) / 1e3,
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
