//! The fuzz targets on a stable toolchain, within seconds: every seed, and 2000 reproducible mutations of them.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

mod checks;
use crate::support::repository;

const MUTATIONS: usize = 2000;

/// Tokens for mutations, which get further in a parser than noise.
const PIECES: [&str; 24] = [
    " ",
    "\n",
    "\0",
    "\r",
    "\\",
    "\"",
    "'",
    "%",
    "=",
    "(",
    ")",
    "[",
    "]",
    "[zram1]\n",
    "0",
    "-1",
    "4GiB",
    "1e999",
    "ram",
    "\\040",
    "\\x2d",
    "é",
    "/",
    "..",
];

/// Marsaglia's xorshift with a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % bound.max(1)
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        start..start + self.below((length - start).min(16) + 1)
    }
}

/// One to four small changes, sometimes with the end of another seed.
fn mutate(seed: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut data = seed.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(data.len() + 1);
        let range = numbers.range(data.len());
        match numbers.below(6) {
            0 if at < data.len() => data[at] ^= 1 << numbers.below(8),
            1 => drop(data.drain(range)),
            2 => {
                let copy = data[range].to_vec();
                data.splice(at..at, copy);
            }
            3 => {
                let taken = other[numbers.range(other.len())].to_vec();
                data.splice(at..at, taken);
            }
            4 => {
                data.truncate(at);
                data.extend(&other[numbers.below(other.len() + 1)..]);
            }
            _ => drop(data.splice(range, PIECES[numbers.below(PIECES.len())].bytes())),
        }
    }
    data
}

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let directory = repository("tests/fast/fuzz/seeds").join(target);
    let mut seeds: Vec<_> = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "{target}");
    seeds
}

/// Runs a check; a failure prints the bytes, which can be stored as a seed.
fn check(target: &str, origin: &str, data: &[u8]) {
    let failed = catch_unwind(AssertUnwindSafe(|| checks::run(target, data))).is_err();
    assert!(!failed, "{target}, {origin}: b\"{}\"", data.escape_ascii());
}

#[test]
fn every_promise_holds_for_every_seed_and_its_mutations() {
    for (target, _) in checks::ALL {
        let seeds = seeds(target);
        for (name, data) in &seeds {
            check(target, name, data);
        }
        let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
        for _ in 0..MUTATIONS {
            let (name, seed) = &seeds[numbers.below(seeds.len())];
            let (_, other) = &seeds[numbers.below(seeds.len())];
            check(target, &format!("a mutation of {name}"), &mutate(seed, other, &mut numbers));
        }
    }
}

#[test]
fn every_check_has_a_target_and_every_directory_of_seeds_a_check() {
    // A published package does not contain the fuzz package.
    let Ok(manifest) = fs::read_to_string(repository("tests/fuzz/Cargo.toml")) else { return };
    for (target, _) in checks::ALL {
        let text = fs::read_to_string(repository(&format!("tests/fuzz/targets/{target}.rs"))).unwrap();
        assert!(text.contains(&format!("checks::run(\"{target}\", data)")), "{target}");
        assert!(manifest.contains(&format!("path = \"targets/{target}.rs\"")), "{target}");
    }
    for directory in ["tests/fuzz/targets", "tests/fast/fuzz/seeds"] {
        let entries = fs::read_dir(repository(directory)).unwrap();
        assert_eq!(entries.count(), checks::ALL.len(), "{directory}");
    }
}
