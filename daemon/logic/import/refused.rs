//! Sections that zramd refuses on any machine, as determined by the planner.

use crate::config;
use crate::facts::Facts;
use crate::plan::{self, Activation, Decision};
use crate::proc::Memory;
use crate::request::Purpose;

/// More than most machines have, in KiB: what is refused here is refused everywhere.
const RAM_KIB: u64 = 1 << 30;

/// Name and reason of each section that is refused, or that creates no device.
pub fn refused(toml: &str) -> Vec<(String, String)> {
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
    let memory = Memory { total_kib: RAM_KIB, available_kib: RAM_KIB, ..Memory::default() };
    let facts = Facts { memory, cpus: 1, page_size: 4096, ..Facts::default() };
    let items = plan::plan(&settings, Vec::new(), &facts, Activation::Direct).items;
    let useless =
        items.into_iter().filter(|item| matches!(item.decision, Decision::Refused | Decision::Skipped));
    useless.map(|item| (item.target.to_string(), item.reason)).collect()
}
