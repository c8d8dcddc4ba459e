//! The disks that the choice between zram and zswap depends on, and the version of the program that creates swap.

use std::process::{Command, Stdio};

use engine::gather;
use host::linux::LinuxHost;
use logic::config::settings::Settings;
use logic::proc::{MountLine, SwapLine, mount_of_path, top};
use logic::zram_or_zswap::Conditions;

/// The conditions on this machine.
pub fn look(host: &LinuxHost, configured: &Settings) -> Conditions {
    let memory = gather::memory(host).unwrap_or_default();
    let swaps = gather::swaps(host).unwrap_or_default();
    let mounts = gather::mounts(host).unwrap_or_default();
    with_disks(host, gather::conditions(host, configured, &memory, &swaps), &swaps, &mounts)
}

/// Adds the kinds of the disks with this swap.
pub fn with_disks(
    host: &LinuxHost,
    conditions: Conditions,
    swaps: &[SwapLine],
    mounts: &[MountLine],
) -> Conditions {
    let places: Vec<MountLine> = swaps
        .iter()
        .filter(|swap| swap.zram_number().is_none())
        .filter_map(|swap| place(swap, mounts))
        .collect();
    let kinds: Vec<bool> = places.iter().filter_map(|place| host.rotates(place)).collect();
    let root = top(mounts, "/").and_then(|mount| host.is_encrypted(mount));
    let in_the_clear = places.iter().any(|place| host.is_encrypted(place) == Some(false));
    Conditions {
        rotates: (!kinds.is_empty()).then(|| kinds.contains(&true)),
        in_the_clear: root == Some(true) && in_the_clear,
        ..conditions
    }
}

/// What holds swap: the device itself, or the file system of a file.
fn place(swap: &SwapLine, mounts: &[MountLine]) -> Option<MountLine> {
    let mount = mount_of_path(mounts, swap.path.as_bytes())?.clone();
    let path = swap.path.lossy();
    Some(if path.starts_with("/dev/") { MountLine { device: (0, 0), source: path, ..mount } } else { mount })
}

/// Version of util-linux, by what its mkswap says; 0.0 if that is unknown.
pub fn util_linux() -> (u32, u32) {
    let mut command = Command::new("mkswap");
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    version(&output.unwrap_or_default()).unwrap_or_default()
}

/// `mkswap from util-linux 2.38.1`.
fn version(said: &str) -> Option<(u32, u32)> {
    let (_, version) = said.split_once("util-linux ")?;
    let mut numbers = version.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_mkswap_says() {
        for (said, expected) in [
            ("mkswap from util-linux 2.38.1\n", Some((2, 38))),
            ("mkswap from util-linux 2.41\n", Some((2, 41))),
            ("mkswap from util-linux 2.42-rc1\n", Some((2, 42))),
            ("BusyBox v1.36\n", None),
            ("", None),
        ] {
            assert_eq!(version(said), expected, "{said}");
        }
    }
}
