//! Runs after the other test programs, and prints how many tests did not run, and why.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "support/skips.rs"]
#[allow(dead_code)]
mod skips;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Removes lists of runs that ended before this program was reached.
fn remove_old_lists() {
    for entry in std::fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(skips::PREFIX)?.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            std::fs::remove_file(entry.path()).ok();
        }
    }
}

fn main() {
    let list = skips::list();
    let text = std::fs::read_to_string(&list).unwrap_or_default();
    std::fs::remove_file(&list).ok();
    remove_old_lists();
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
