//! Sections that zramd refuses, as determined by the planner.

use logic::config;
use logic::facts::Facts;
use logic::finding::Level;
use logic::plan::{self, Activation, Decision, Plan};
use logic::proc::Memory;
use logic::request::Purpose;

/// More than most machines have, in KiB: what is refused here is refused everywhere.
const RAM_KIB: u64 = 1 << 30;
/// Less than most machines have, in KiB.
const SMALL_RAM_KIB: u64 = 512 << 10;

/// Name and reason of each section that is refused on any machine, or that creates no device.
pub fn refused(toml: &str) -> Vec<(String, String)> {
    useless(planned(toml, RAM_KIB))
}

/// As [`refused`], but on a machine with this much RAM, if it is known. The second list has key and text of doubtful
/// settings.
pub fn refused_and_doubtful(toml: &str, ram_kib: Option<u64>) -> [Vec<(String, String)>; 2] {
    let plan = planned(toml, ram_kib.unwrap_or(RAM_KIB));
    let mut doubtful = doubts(&plan);
    if ram_kib.is_none() {
        // What is doubtful on a large and on a small machine is so without regard to the memory.
        let elsewhere = doubts(&planned(toml, SMALL_RAM_KIB));
        doubtful.retain(|doubt| elsewhere.contains(doubt));
    }
    [useless(plan), doubtful]
}

fn doubts(plan: &Plan) -> Vec<(String, String)> {
    let doubtful = plan.problems.iter().filter(|problem| problem.level == Level::Warning);
    doubtful.map(|problem| (problem.key().to_owned(), problem.text())).collect()
}

fn useless(plan: Plan) -> Vec<(String, String)> {
    let is_useless = |decision| matches!(decision, Decision::Refused | Decision::Skipped);
    let useless = plan.items.into_iter().filter(|item| is_useless(item.decision));
    useless.map(|item| (item.target.to_string(), item.reason)).collect()
}

fn planned(toml: &str, ram_kib: u64) -> Plan {
    let mut settings = config::load(&[("imported".into(), toml.to_owned())], "").settings;
    for device in &mut settings.devices {
        // Ignore conditions on the machine.
        device.host_memory_limit = None;
        device.writeback = None;
        if let Purpose::Filesystem { mount, .. } = &mut device.purpose {
            (mount.owner, mount.group) = (None, None);
        }
    }
    for disk in &mut settings.ramdisks {
        (disk.mount.owner, disk.mount.group) = (None, None);
    }
    let memory = Memory { total_kib: ram_kib, ..Memory::default() };
    let facts = Facts { memory, cpus: 1, page_size: 4096, ..Facts::default() };
    plan::plan(&settings, Vec::new(), &facts, Activation::Direct)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubtful_size_is_reported_if_it_is_one_on_the_machine_or_on_any() {
        for (size, ram_kib, is_doubtful) in [
            ("1", None, true),
            ("16", None, false),
            ("16", Some(RAM_KIB), true),
            ("64", Some(RAM_KIB), false),
        ] {
            let toml = format!("[zram0]\nzram-size = {size}\n");
            let [refused, doubtful] = refused_and_doubtful(&toml, ram_kib);
            assert_eq!((refused.len(), doubtful.len()), (0, usize::from(is_doubtful)), "{size}, {ram_kib:?}");
        }
    }

    #[test]
    fn a_size_by_the_number_of_cpus_is_refused_on_no_machine() {
        assert!(refused("[zram0]\nzram-size = \"cpus * 512\"\n").is_empty());
    }
}
