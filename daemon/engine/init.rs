//! Looks at the machine for `zramdctl init`.

use super::gather;
use host::{Host, MachineFile};
use logic::config::settings::Settings;
use logic::health;
use logic::import::Peer;
use logic::init::Machine;
use logic::neighbours::programs::has_section;
use logic::path_kind::PathKind;
use logic::vm::Tunable;
use logic::zram_or_zswap::Conditions;

/// What a display manager's package enables.
const DISPLAY_MANAGER: &str = "/etc/systemd/system/display-manager.service";

/// Whether the administrator has written a configuration for a program.
fn is_own<H: Host>(host: &H, peer: Peer) -> bool {
    let sources = peer.sources();
    let is_own = |path: &&&str| !path.starts_with("/usr/");
    sources.mains.iter().filter(is_own).any(|path| host.path_kind(path) == PathKind::Other)
        || sources.drop_ins.iter().filter(is_own).any(|directory| {
            let names = host.names(directory).into_iter();
            let mut names = names.filter(|name| !name.starts_with('.') && name.ends_with(sources.suffix));
            names.any(|name| {
                host.other_text(&format!("{directory}/{name}")).is_some_and(|text| has_section(&text))
            })
        })
}

/// What the choice between zram and zswap depends on, without the kinds of disks, which only the kernel that runs tells.
pub fn conditions<H: Host>(host: &H, configured: &Settings) -> Conditions {
    let text = |file| host.text(file).unwrap_or_default();
    let swaps = gather::swaps(host).unwrap_or_default();
    let on_disks = swaps.iter().filter(|swap| swap.zram_number().is_none());
    Conditions {
        memory_bytes: gather::machine(host).memory.total_kib.saturating_mul(1024),
        disk_swap_bytes: on_disks.map(|swap| swap.size_kib).sum::<u64>().saturating_mul(1024),
        rotates: None,
        in_the_clear: false,
        hibernates: health::hibernates(&text(MachineFile::Cmdline), &text(MachineFile::Resume)),
        has_zswap: host.read_tunable(Tunable::Zswap).is_ok(),
        has_shrinker: host.read_tunable(Tunable::ZswapShrinker).is_ok(),
        writes_back: configured.devices.iter().any(|device| device.writeback.is_some()),
        zswap_is_on: host.read_tunable(Tunable::Zswap).is_ok_and(|value| value == "Y"),
        zram_is_on: swaps.iter().any(|swap| swap.zram_number().is_some()),
    }
}

/// The machine, and its present configuration. What cannot be read counts as missing: the root may be that of another machine.
pub fn look<H: Host>(host: &H, configured: &Settings) -> Machine {
    let memory = gather::machine(host).memory;
    Machine {
        memory_bytes: memory.total_kib.saturating_mul(1024),
        huge_bytes: memory.hugetlb_kib.saturating_mul(1024),
        mounts: gather::mounts(host).unwrap_or_default(),
        has_display: host.path_kind(DISPLAY_MANAGER) != PathKind::Missing,
        swaps: gather::swaps(host).unwrap_or_default(),
        conditions: conditions(host, configured),
        util_linux: (0, 0),
        rotates: None,
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
