//! Runs after the other test programs, and prints how many tests did not run, and why.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "support/skips.rs"]
#[allow(dead_code)]
mod skips;

use std::collections::{BTreeMap, BTreeSet};

fn main() {
    let list = skips::list();
    let text = std::fs::read_to_string(&list).unwrap_or_default();
    std::fs::remove_file(&list).ok();
    let mut tests: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (test, reason) in text.lines().filter_map(|line| line.split_once('\t')) {
        tests.entry(reason).or_default().insert(test);
    }
    let all: BTreeSet<&str> = tests.values().flatten().copied().collect();
    println!("\n{} tests were skipped", all.len());
    for (reason, tests) in tests {
        println!("{:5}  {reason}", tests.len());
    }
}
