//! `bench-ramdisk` and `bench-swap`: comparisons without a verdict.

use std::collections::BTreeSet;

use engine::benchmark;
use engine::work::{Reporter, Stopped};
use host::linux::LinuxHost;
use logic::benchmark as report;
use logic::exit::ExitStatus;
use serde::Serialize;

use crate::{configured, frame};

pub fn ramdisk(options: &report::ramdisk::Options) -> ExitStatus {
    run(options, report::ramdisk::WORK, benchmark::ramdisk::run)
}

pub fn swap(options: &report::swap::Options) -> ExitStatus {
    run(options, report::swap::WORK, benchmark::swap::run)
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
