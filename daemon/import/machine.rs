//! Looks at the machine for `zramdctl init`.

use super::init::Machine;
use super::peer::Peer;
use engine::gather;
use host::{Host, MachineFile};
use logic::config::settings::Settings;
use logic::neighbours::programs::drop_in_with_section;
use logic::path_kind::PathKind;

/// Where control groups are mounted.
const CGROUPS: &str = "/sys/fs/cgroup";
const MEMINFO: &str = "/proc/meminfo";

/// Whether the administrator has written a configuration for a program.
fn is_own<H: Host>(host: &H, peer: Peer) -> bool {
    let sources = peer.sources();
    let is_own = |path: &&&str| !path.starts_with("/usr/");
    let directories = sources.drop_ins.iter().filter(is_own).map(|directory| (*directory).to_owned());
    sources.mains.iter().filter(is_own).any(|path| host.path_kind(path) == PathKind::Other)
        || gather::looking(host, |look| drop_in_with_section(look, directories, sources.suffix)).is_some()
}

/// Whether control groups keep no memory. An image has nothing in `/sys`, and says nothing about the kernel that boots it.
fn lacks_memory_controller<H: Host>(host: &H) -> bool {
    let controllers = host.text(MachineFile::Controllers).unwrap_or_default();
    let has = controllers.split_whitespace().any(|name| name == "memory");
    !has && host.path_kind(CGROUPS) != PathKind::Missing
}

/// Whether the kernel does not measure memory pressure, which psi=0 switches off. An image has nothing in `/proc`.
fn lacks_pressure<H: Host>(host: &H) -> bool {
    host.text(MachineFile::MemoryPressure).is_err() && host.path_kind(MEMINFO) != PathKind::Missing
}

/// The machine, and its present configuration. What cannot be read counts as missing: the root may be that of another machine.
pub fn look<H: Host>(host: &H, configured: &Settings) -> Machine {
    let memory = gather::memory(host).unwrap_or_default();
    let swaps = gather::swaps(host).unwrap_or_default();
    Machine {
        memory_bytes: memory.total_kib.saturating_mul(1024),
        huge_bytes: memory.hugetlb_kib.saturating_mul(1024),
        mounts: gather::mounts(host).unwrap_or_default(),
        lacks_memory_controller: lacks_memory_controller(host),
        lacks_pressure: lacks_pressure(host),
        conditions: gather::conditions(host, configured, &memory, &swaps),
        swaps,
        util_linux: (0, 0),
        managed: gather::records(host).unwrap_or_default().into_keys().collect(),
        own: Peer::ALL.into_iter().filter(|peer| is_own(host, *peer)).collect(),
        others: gather::other_managers(host),
        idle: Vec::new(),
        yielding: configured
            .devices
            .iter()
            .filter(|device| device.yields)
            .map(|device| format!("zram{}", device.number))
            .collect(),
    }
}
