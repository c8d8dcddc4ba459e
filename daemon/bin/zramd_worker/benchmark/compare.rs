//! `bench-ramdisk` and `bench-swap`: comparisons without a verdict. Their only argument is their options as JSON.

use std::collections::BTreeSet;
use std::ffi::OsString;

use engine::benchmark::{ramdisk, swap};
use engine::work::{Reporter, Stopped};
use host::linux::LinuxHost;
use logic::benchmark as report;
use logic::exit::ExitStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Verb, configured, frame};

/// `bench-ramdisk`.
pub const RAMDISK: Verb = Verb {
    name: report::ramdisk::WORK,
    help: "OPTIONS: compare tmpfs, compressed memory and disks",
    run: |words| run(&words, report::ramdisk::WORK, ramdisk::run),
};
/// `bench-swap`.
pub const SWAP: Verb = Verb {
    name: report::swap::WORK,
    help: "OPTIONS: time page faults on private swap",
    run: |words| run(&words, report::swap::WORK, swap::run),
};

fn run<O: DeserializeOwned, R: Serialize>(
    words: &[OsString],
    name: &str,
    measure: fn(&mut LinuxHost, &mut Reporter, &O, &BTreeSet<u32>) -> Result<R, Stopped>,
) -> Result<ExitStatus, String> {
    let [json] = words else { return Err(format!("{name} takes its options as one word of JSON")) };
    let options =
        serde_json::from_slice(json.as_encoded_bytes()).map_err(|error| format!("{name}: {error}"))?;
    Ok(frame::run(name, name, |reporter| {
        let report = measure(&mut LinuxHost::new("/"), reporter, &options, &configured::numbers())?;
        reporter.detail(&report)?;
        Ok(format!("{name}: done"))
    }))
}
