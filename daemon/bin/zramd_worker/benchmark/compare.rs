//! `bench-ramdisk` and `bench-swap`: comparisons without a verdict.

use std::collections::BTreeSet;

use engine::work::{Reporter, Stopped};
use host::linux::LinuxHost;
use logic::exit::ExitStatus;
use logic::order;
use serde::Serialize;

use crate::{configured, frame};

pub fn ramdisk(options: &order::BenchRamdisk) -> ExitStatus {
    run(options, order::BENCH_RAMDISK, bench::ramdisk::run)
}

pub fn swap(options: &order::BenchSwap) -> ExitStatus {
    run(options, order::BENCH_SWAP, bench::swap::run)
}

fn run<O, R: Serialize>(
    options: &O,
    name: &str,
    measure: fn(&mut LinuxHost, &mut Reporter, &O, &BTreeSet<u32>) -> Result<R, Stopped>,
) -> ExitStatus {
    frame::run(name, name, |reporter| {
        let report = measure(&mut LinuxHost::new("/"), reporter, options, &configured::numbers())?;
        reporter.detail(&report)?;
        Ok(format!("{name}: done"))
    })
}
