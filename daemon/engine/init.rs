//! Looks at the machine for `zramdctl init`.

use super::gather;
use host::{Host, MachineFile};
use logic::config::settings::Settings;
use logic::health;
use logic::import::Peer;
use logic::init::Machine;
use logic::neighbours::programs::drop_in_with_section;
use logic::path_kind::PathKind;
use logic::proc::{Memory, SwapLine};
use logic::vm::Tunable;
use logic::zram_or_zswap::Conditions;

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

/// What the choice between zram and zswap depends on, without the kinds of disks, which only the kernel that runs tells.
pub fn conditions<H: Host>(
    host: &H,
    configured: &Settings,
    memory: &Memory,
    swaps: &[SwapLine],
) -> Conditions {
    let text = |file| host.text(file).unwrap_or_default();
    let zswap = host.read_tunable(Tunable::Zswap);
    let on_disks = swaps.iter().filter(|swap| swap.zram_number().is_none());
    Conditions {
        memory_bytes: memory.total_kib.saturating_mul(1024),
        disk_swap_bytes: on_disks.map(|swap| swap.size_kib).sum::<u64>().saturating_mul(1024),
        rotates: None,
        in_the_clear: false,
        hibernates: health::hibernates(&text(MachineFile::Cmdline), &text(MachineFile::Resume)),
        has_zswap: zswap.is_ok(),
        has_shrinker: host.read_tunable(Tunable::ZswapShrinker).is_ok(),
        writes_back: configured.devices.iter().any(|device| device.writeback.is_some()),
        zswap_is_on: zswap.is_ok_and(|value| value == "Y"),
        zram_is_on: swaps.iter().any(|swap| swap.zram_number().is_some()),
    }
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
        conditions: conditions(host, configured, &memory, &swaps),
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
