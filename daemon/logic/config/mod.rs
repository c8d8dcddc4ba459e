//! Configuration: reads TOML files into [`settings::Settings`] and a list of [`Finding`]s.
//!
//! There are three stages: a *fragment* is the contents of one file; the *merged* document is all files with the origin
//! of each assignment; `Settings` is the result, validated and typed. All problems are collected; a problem in one
//! section leaves the others usable.

mod assemble;
mod device;
pub mod edit;
pub mod fragment;
mod hint;
pub mod json_schema;
pub mod key;
mod keys;
pub mod lasting;
pub mod locate;
pub(crate) mod maintain;
pub mod merge;
pub mod pasted;
mod ramdisk;
pub mod schema;
pub(crate) mod section;
pub mod setting;
pub mod settings;
mod syntax;
pub mod tmpfs;
pub mod value;
mod vm;
mod writeback;
mod zswap;

use std::path::PathBuf;

use crate::finding::{Finding, Level, has_errors};
use crate::origin::Origin;
use crate::overlay::Standing;
use fragment::Section;
use merge::Merged;
use schema::section_of;
pub use section::{DISCARDS, with_commas};
use settings::Settings;

/// Result of reading the configuration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loaded {
    /// The files, lowest precedence first.
    pub files: Vec<PathBuf>,
    pub settings: Settings,
    /// All problems, in the order of files and sections.
    pub problems: Vec<Finding>,
    /// Each effective assignment with its origin.
    pub merged: Merged,
    /// Whether `systemd.zram=0` on the kernel command line disables everything.
    pub disabled_by_cmdline: bool,
}

impl Loaded {
    /// The settings as they would be without these keys in the override of a section.
    pub fn without<'a>(&self, section: &str, keys: impl IntoIterator<Item = &'a String>) -> Settings {
        if self.disabled_by_cmdline {
            return Settings::default();
        }
        let mut merged = self.merged.clone();
        if let Some(found) = merged.sections.get_mut(section) {
            for key in keys {
                match self.merged.configured.get(&(section.to_owned(), key.clone())) {
                    Some(configured) => found.keys.insert(key.clone(), configured.clone()),
                    None => found.keys.remove(key),
                };
            }
        }
        assemble::assemble(&merged).0
    }

    /// Whether a section is not used because of a mistake.
    pub fn has_mistake(&self, section: &str) -> bool {
        let is_own = |found: &Finding| {
            found.level == Level::Error && section_of(found.key()).as_deref() == Some(section)
        };
        self.merged.broken.contains(section) || self.problems.iter().any(is_own)
    }

    /// What is said where it sets nothing up: sections with mistakes are not absent.
    pub fn nothing(&self) -> &'static str {
        if has_errors(&self.problems) {
            "nothing is usable: the configuration has mistakes"
        } else {
            "nothing is configured"
        }
    }
}

/// Reads files, lowest precedence first, and the kernel command line.
pub fn load(files: &[(PathBuf, String)], cmdline: &str) -> Loaded {
    let paths = files.iter().map(|(path, _)| path.clone()).collect();
    let asked_for = enabled_by_cmdline(cmdline);
    let (mut merged, mut problems) = merge::merge(files, (asked_for == Some(true)).then_some("zram0"));
    if asked_for == Some(true) && !merged.broken.contains("zram0") {
        let origin = Origin { file: "/proc/cmdline".into(), key: "zram0".to_owned(), ..Origin::default() };
        merged.sections.entry("zram0".to_owned()).or_insert_with(|| Section { origin, ..Section::default() });
    }
    let (mut settings, found) = assemble::assemble(&merged);
    problems.extend(found);
    let place = |found: &Finding| found.place.as_ref().map(|place| (place.file.clone(), place.line));
    problems.sort_by_key(place);
    let disabled_by_cmdline = asked_for == Some(false);
    if disabled_by_cmdline {
        settings = Settings::default();
    }
    let mut loaded = Loaded { files: paths, settings, problems, merged, disabled_by_cmdline };
    let mut overrides = std::mem::take(&mut loaded.merged.overrides);
    for found in overrides.iter_mut().filter(|found| found.standing == Standing::InForce) {
        if loaded.has_mistake(&found.object) {
            found.standing = Standing::Broken;
        }
    }
    loaded.merged.overrides = overrides;
    loaded
}

/// As [`load`], for the files found and the problems of finding them.
pub fn load_sources((files, found): (Vec<(PathBuf, String)>, Vec<Finding>), cmdline: &str) -> Loaded {
    let mut loaded = load(&files, cmdline);
    loaded.problems.splice(0..0, found);
    loaded
}

/// The switch on the kernel command line: `systemd.zram`, `=1|yes|true|on` enable zram, `=0|no|false|off` disable it.
/// The last valid word takes precedence; others are ignored, as in zram-generator.
pub fn enabled_by_cmdline(cmdline: &str) -> Option<bool> {
    const WORD: &str = "systemd.zram";
    if !cmdline.contains(WORD) {
        return None;
    }
    cmdline.split_whitespace().rev().find_map(|word| match word.strip_prefix(WORD)? {
        "" | "=1" | "=yes" | "=true" | "=on" => Some(true),
        "=0" | "=no" | "=false" | "=off" => Some(false),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_command_line_is_read_as_zram_generator_reads_it() {
        for (cmdline, expected) in [
            ("", None),
            ("quiet systemd.zram splash", Some(true)),
            ("a\nsystemd.zram\nb", Some(true)),
            ("systemd.zram=0 systemd.zram", Some(true)),
            ("systemd.zram=1 systemd.zram=no", Some(false)),
            ("systemd.zram=0 systemd.zram=maybe", Some(false)),
            ("systemd.zram=Yes", None),
            ("systemd.zramfoo=0", None),
        ] {
            assert_eq!(enabled_by_cmdline(cmdline), expected, "{cmdline}");
        }
    }

    const MAIN: &str = "/etc/zramd/zramd.toml";

    fn files(texts: &[(&str, &str)]) -> Vec<(PathBuf, String)> {
        texts.iter().map(|(file, text)| ((*file).into(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_device_of_the_kernel_command_line_names_it_as_its_place() {
        let loaded = load(&[], "systemd.zram");
        let origin = &loaded.settings.devices[0].origin;
        assert_eq!((origin.place().as_str(), origin.key.as_str()), ("/proc/cmdline", "zram0"));
        let configured = load(&files(&[(MAIN, "[zram0]\n")]), "systemd.zram");
        assert_eq!(configured.settings.devices[0].origin.place(), format!("{MAIN}:1"));
    }

    #[test]
    fn without_an_override_the_settings_are_those_of_the_other_files() {
        let main = (MAIN, "[zram0]\nzram-size = \"64MiB\"\n");
        let run = "/run/zramd/zramd.toml.d/zz-runtime-zram0.toml";
        let both = files(&[main, (run, "[zram0]\nzram-size = \"96MiB\"\nswap-priority = 7\n")]);
        let without = |keys: &[&str], cmdline: &str| {
            let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
            load(&both, cmdline).without("zram0", &keys)
        };
        let configured = load(&files(&[main]), "").settings;
        assert_eq!(without(&["zram-size", "swap-priority"], ""), configured);
        assert_eq!(without(&[], ""), load(&both, "").settings);
        assert_ne!(without(&["zram-size"], ""), configured);
        assert_eq!(without(&["zram-size"], "systemd.zram=0"), Settings::default());
    }
}
