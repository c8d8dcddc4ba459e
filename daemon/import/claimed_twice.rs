//! Devices that zram-generator is configured to set up as well.

use std::path::Path;

use super::files;
use super::peer::{Peer, Values, import};
use host::linux::root::Root;
use logic::config;
use logic::config::settings::Settings;
use logic::finding::{Code, Finding, Level};

/// A finding for each device of ours that is also in the configuration of zram-generator below `root`. Only useful where
/// zram-generator is active.
pub fn findings(root: &Path, ours: &Settings) -> Vec<Finding> {
    let Ok(root) = Root::open(root) else { return Vec::new() };
    let peer = Peer::ZramGenerator;
    let toml = import(peer, &files::read(peer, &root).files, &Values::default()).toml;
    let theirs = config::load(&[("imported".into(), toml)], "").settings;
    let both = ours.devices.iter().filter(|device| !device.yields).map(|device| device.number);
    let both = both.filter(|number| theirs.devices.iter().any(|device| device.number == *number));
    both.map(|number| {
        Finding::new(
            Level::Warning,
            Code::DeviceClaimedTwice,
            &format!("zram{number}"),
            format!(
                "zram-generator is configured to set up zram{number} at boot, too; which of the two does so is not defined"
            ),
            "switch zram-generator off before the next boot, as /usr/share/doc/zramd/switching.md says",
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_claimed_by_both_is_named() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("etc/systemd/zram-generator.conf.d");
        let ours = config::load(&[("f".into(), "[zram0]\n[zram2]\n[zram1]\nyield = true\n".to_owned())], "")
            .settings;
        assert_eq!(findings(root.path(), &ours), []);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("a.conf"), "[zram1]\n[zram2]\nzram-size = ram / 2\n").unwrap();
        let found = findings(root.path(), &ours);
        assert_eq!(found.iter().map(|finding| finding.object.as_str()).collect::<Vec<_>>(), ["zram2"]);
    }
}
