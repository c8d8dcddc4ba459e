//! The stored verdict of the benchmark, as far as plan, daemon and `zramdctl` need it.

use std::path::Path;

use crate::Error;
use host::linux::durable;
use host::linux::store::VERDICT;
use host::{Host, HostError, MachineFile, absent};
use logic::device::algorithm::parse_comp_algorithm;
use logic::device::attribute::Attribute;
use logic::proc::parse_meminfo;
use logic::verdict::{self, Brief, Key, Profile, Stored, Unusable};
use logic::vm::Advice;
use serde::de::DeserializeOwned;

/// The verdict, with what is different on a machine with this key and with this profile. `R` is the report of the benchmark, or what is
/// needed of it.
pub(super) fn stored<H: Host, R: DeserializeOwned>(
    host: &H,
    now: &Key,
    profile: Profile,
) -> Result<Stored<R>, Unusable> {
    let text: Result<String, HostError> = host.text(MachineFile::Verdict).or_else(absent);
    let text = text.map_err(|error| Unusable::Damaged(error.to_string()))?;
    verdict::read(Some(&text), now, profile)
}

pub(super) fn advice<H: Host>(host: &H, now: &Key, profile: Profile) -> Option<Advice> {
    // Times of another kernel or processor are not those of this one.
    let stored = stored::<H, Brief>(host, now, profile).ok().filter(|stored| stored.outdated.is_empty())?;
    let swappiness = stored.report.verdict.swappiness.map(u64::from);
    Some(Advice { swappiness, page_in_ns: stored.page_in_ns })
}

/// What a verdict depends on, on this machine. `algorithms` is `None` if there is no device to read them from.
pub fn key<H: Host>(host: &H, algorithms: Option<&[String]>) -> Key {
    let text = |file| host.text(file).unwrap_or_default();
    Key::new(
        &text(MachineFile::KernelRelease),
        &text(MachineFile::Cpuinfo),
        &text(MachineFile::OnlineCpus),
        parse_meminfo(&text(MachineFile::Meminfo)).total_kib,
        algorithms,
    )
}

/// As [`key`], with the algorithms that the first device offers, if there is one.
pub fn key_now<H: Host>(host: &H) -> Key {
    let devices = host.device_numbers().unwrap_or_default();
    let list = |number| host.read_attribute(number, Attribute::CompAlgorithm).ok();
    let offered = devices.into_iter().find_map(list).map(|text| parse_comp_algorithm(&text).0);
    key(host, offered.as_deref())
}

/// The verdict, with what is different now on this machine.
pub fn stored_now<H: Host, R: DeserializeOwned>(host: &H, profile: Profile) -> Result<Stored<R>, Unusable> {
    stored(host, &key_now(host), profile)
}

/// Removes the verdict; false if there was none.
pub fn forget(root: &Path) -> Result<bool, Error> {
    Ok(durable::remove(root, VERDICT)?)
}
