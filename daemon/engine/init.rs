//! Looks at the machine for `zramdctl init`.

use super::gather;
use host::{Host, MachineFile};
use logic::config::settings::Settings;
use logic::facts::PathKind;
use logic::health;
use logic::import::Peer;
use logic::init::Machine;
use logic::vm::Tunable;

/// What a display manager's package enables.
const DISPLAY_MANAGER: &str = "/etc/systemd/system/display-manager.service";

/// Whether the administrator has written a configuration for a program.
fn is_own<H: Host>(host: &H, peer: Peer) -> bool {
    let sources = peer.sources();
    let is_own = |path: &&&str| !path.starts_with("/usr/");
    sources.mains.iter().filter(is_own).any(|path| host.path_kind(path) == PathKind::Other)
        || sources
            .drop_ins
            .iter()
            .filter(is_own)
            .any(|path| host.has_section(&format!("{path}/*{}", sources.suffix)))
}

/// The machine, and its present configuration. What cannot be read counts as missing: the root may be that of another machine.
pub fn look<H: Host>(host: &H, configured: &Settings) -> Machine {
    let text = |file| host.text(file).unwrap_or_default();
    Machine {
        memory_bytes: gather::machine(host).memory.total_kib.saturating_mul(1024),
        mounts: gather::mounts(host).unwrap_or_default(),
        has_display: host.path_kind(DISPLAY_MANAGER) != PathKind::Missing,
        swaps: gather::swaps(host).unwrap_or_default(),
        zswap: host.read_tunable(Tunable::Zswap).is_ok_and(|value| value == "Y"),
        hibernates: health::hibernates(&text(MachineFile::Cmdline), &text(MachineFile::Resume)),
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
