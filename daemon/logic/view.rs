//! Summaries of the configuration and of pending changes for the daemon: plain data, computed by `zramd-setup`.
//!
//! Parsing TOML, planning and carrying out plans make up most of the program text of zramd and are rarely needed. The
//! resident daemon runs `zramd-setup` for that, and reads these types as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::change::Change;
use super::config::Loaded;
use super::config::edit::Edit;
use super::config::fragment::Section;
use super::config::schema::section_of;
use super::config::setting::{Setting, settings};
use super::expr::Variables;
use super::finding::{Finding, Level};
use super::following::Follower;
use super::maintain::pressure::Thresholds;
use super::overlay::Override;
use super::ramdisk::UnitRamdisk;
use super::verdict::Profile;

/// The parts of the configuration that other programs than the planner need.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct View {
    /// The files, lowest precedence first.
    pub files: Vec<String>,
    /// Its problems.
    pub findings: Vec<Finding>,
    /// The name of each section, and the file in which it begins.
    pub sections: BTreeMap<String, String>,
    /// Each key with what follows from it; empty in a view without [`View::on`].
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// Runtime overrides.
    #[serde(default)]
    pub overrides: Vec<Override>,
    /// RAM disks in the configuration.
    pub ramdisks: Vec<UnitRamdisk>,
    /// Whether it has devices, and all of them yield to other zram managers.
    #[serde(default)]
    pub yields: bool,
    /// The settings of `[maintenance]` for the daemon.
    #[serde(default)]
    pub maintenance: MaintenanceView,
    /// Whether swapping stops while what is swapped out does not compress.
    #[serde(default)]
    pub stops_swapping: bool,
    /// The profile of `[benchmark]`.
    #[serde(default)]
    pub profile: Profile,
}

/// The settings of `[maintenance]` for the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MaintenanceView {
    /// Seconds between two runs; `None` without a timer.
    pub every_seconds: Option<u64>,
    /// React to memory pressure.
    pub pressure: Option<Thresholds>,
    /// Whether write-back is enabled.
    #[serde(default)]
    pub writeback: bool,
    /// Whether recompression is enabled.
    #[serde(default)]
    pub recompress: bool,
}

impl View {
    /// The errors, one line each.
    pub fn errors(&self) -> Vec<String> {
        self.findings.iter().filter(|found| found.level == Level::Error).map(Finding::one_line).collect()
    }

    /// What is wrong in a section.
    pub fn of_section(&self, section: &str) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |found| section_of(found.key()).as_deref() == Some(section))
    }

    /// The view of a configuration with its settings on a machine.
    pub fn on(loaded: &Loaded, variables: &Variables) -> View {
        View { settings: settings(loaded, variables), ..View::of(loaded) }
    }

    /// The view of a configuration.
    pub fn of(loaded: &Loaded) -> View {
        let sections = loaded.merged.sections.iter();
        let file = |section: &Section| section.origin.file.display().to_string();
        let ramdisks = loaded.settings.ramdisks.iter();
        let maintenance = loaded.settings.maintenance.as_ref().map(|asked| MaintenanceView {
            every_seconds: asked.needs_timer().then_some(asked.interval.as_secs()),
            pressure: asked.pressure,
            writeback: asked.writeback.is_some(),
            recompress: asked.recompress.is_some(),
        });
        View {
            files: loaded.files.iter().map(|path| path.display().to_string()).collect(),
            findings: loaded.problems.clone(),
            sections: sections.map(|(name, section)| (name.clone(), file(section))).collect(),
            settings: Vec::new(),
            overrides: loaded.merged.overrides.clone(),
            ramdisks: ramdisks
                .map(|disk| UnitRamdisk {
                    name: disk.name.clone(),
                    mount_point: disk.mount.mount_point.clone(),
                    persist: disk.keep.as_ref().map(|keep| keep.mode).into(),
                    store: disk.keep.as_ref().map(|keep| keep.store.clone()).unwrap_or_default(),
                    watch: disk.watch,
                })
                .collect(),
            yields: loaded.settings.all_yield(),
            maintenance: maintenance.unwrap_or_default(),
            stops_swapping: loaded.settings.vm.as_ref().is_some_and(|vm| vm.stops_incompressible),
            profile: loaded.settings.benchmark.profile,
        }
    }
}

/// The changes of a reload, in the order of execution.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Proposal {
    /// The new configuration.
    pub view: View,
    /// The change to each target.
    pub changes: Vec<Change>,
    /// Overrides that have no effect any more, if there are any.
    pub obsolete: Option<Obsolete>,
    /// Units to write and remove; `None` if PID 1 has the right ones.
    pub units: Option<UnitChange>,
    /// What the devices have to do with the verdict of the benchmark; empty if there is none.
    #[serde(default)]
    pub followers: Vec<Follower>,
    /// The edit that is part of this plan. It is written before the changes are made.
    #[serde(default)]
    pub edit: Option<Edit>,
}

/// Overrides that have no effect any more.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Obsolete {
    /// The edits that remove them.
    pub edits: Vec<Edit>,
    /// The configuration without these overrides.
    pub view: View,
}

/// Units to write and remove before PID 1 reloads, by their paths below its directory; `None` removes. Empty if the
/// generator writes all units.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UnitChange {
    /// Texts of files.
    pub files: BTreeMap<String, Option<String>>,
    /// Targets of symbolic links.
    pub links: BTreeMap<String, Option<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    #[test]
    fn what_is_wrong_is_known_by_section_and_errors_by_line() {
        let text = "[zram0]\nzram-size = \"64MiB\"\ncolour = 1\n[zram1]\nswap-priority = 99999\n";
        let loaded = load(&[("/z.toml".into(), text.to_owned())], "");
        let view = View::on(&loaded, &Variables { ram_mib: 4096.0, swap_mib: 0.0, cpus: 4.0 });
        let lines = |section: &str| view.of_section(section).map(Finding::line).collect::<Vec<_>>();
        assert_eq!(["zram0", "zram1", "zram2"].map(lines), [vec![3], vec![5], vec![]]);
        let [error] = &view.errors()[..] else { panic!("{:?}", view.findings) };
        assert!(error.starts_with("/z.toml:5:"), "{error}");
        let is_size = |setting: &Setting| setting.section == "zram0" && setting.key == "zram-size";
        assert!(view.settings.iter().any(is_size), "{:?}", view.settings);
        assert_eq!(View::of(&loaded), View { settings: Vec::new(), ..view.clone() });
    }
}
