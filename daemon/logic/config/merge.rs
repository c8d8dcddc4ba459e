//! Merges all files: per key, the last assignment takes precedence. Its origin is kept.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::fragment::{self, Assignment, Section};
use crate::finding::Finding;
use crate::overlay::{self, Command, Overlay, Override, Standing};

/// All files, merged.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Merged {
    /// Sections by name.
    pub sections: BTreeMap<String, Section>,
    /// Sections with a syntax error in some file. They are not used at all, because the intended settings are unknown.
    pub broken: BTreeSet<String>,
    /// What could be read of them, in which further mistakes are looked for.
    pub damaged: Vec<(String, Section)>,
    /// Runtime assignments in effect until the next boot.
    pub overrides: Vec<Override>,
    /// The configured assignments that overrides replace, by section and key.
    pub configured: BTreeMap<(String, String), Assignment>,
}

/// Merges files in order, lowest precedence first; overrides are last. An override without a section in any other file
/// is ignored, unless the section was created at runtime. `asked` is a section that the kernel command line requests.
pub fn merge(files: &[(PathBuf, String)], asked: Option<&str>) -> (Merged, Vec<Finding>) {
    let mut merged = Merged::default();
    let mut problems = Vec::new();
    for (index, (file, text)) in files.iter().enumerate() {
        let (fragment, found) = fragment::read(file, text, index);
        problems.extend(found);
        merged.broken.extend(fragment.broken);
        merged.damaged.extend(fragment.damaged);
        let overridden = overlay::section_of_path(file);
        for (name, section) in fragment.sections {
            if overridden == Some(&name) {
                let written = Overlay::parse(text);
                let base = merged.sections.get(&name);
                let is_there = base.is_some() || merged.broken.contains(&name) || asked == Some(&name);
                let standing = match is_there {
                    true => Standing::InForce,
                    false if written.transient => Standing::Created,
                    false => Standing::Orphaned,
                };
                merged.overrides.extend(overrides(&name, &section, base, &written, standing));
                if standing == Standing::Orphaned {
                    continue;
                }
            }
            match merged.sections.entry(name.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert(section);
                }
                Entry::Occupied(entry) => {
                    let known = entry.into_mut();
                    // The section's origin remains that of the configuration.
                    if overridden.is_none() {
                        known.origin = section.origin;
                    }
                    for (key, assignment) in section.keys {
                        let before = known.keys.insert(key.clone(), assignment);
                        if let Some(before) = before.filter(|_| overridden.is_some()) {
                            merged.configured.insert((name.clone(), key), before);
                        }
                    }
                }
            }
        }
    }
    let sections = std::mem::take(&mut merged.sections);
    let is_used = |name: &String| !merged.broken.contains(name);
    let (used, damaged): (BTreeMap<_, _>, BTreeMap<_, _>) =
        sections.into_iter().partition(|(name, _)| is_used(name));
    merged.sections = used;
    merged.damaged.extend(damaged);
    (merged, problems)
}

fn overrides(
    name: &str,
    section: &Section,
    base: Option<&Section>,
    written: &Overlay,
    standing: Standing,
) -> Vec<Override> {
    let configured = |key: &str| base.and_then(|base| base.keys.get(key));
    let one = |(key, assignment): (&String, &Assignment)| {
        let command = written.values.get(key).and_then(|assigned| assigned.command);
        let configured = configured(key);
        // `resize` always assigns it, to lift a lower maximum; without one, it has no effect.
        if key == "max-zram-size" && command == Some(Command::Resize) && configured.is_none() {
            return None;
        }
        Some(Override {
            object: name.to_owned(),
            key: key.clone(),
            value: toml(assignment),
            configured: configured.map(toml),
            configured_at: configured.map(|assignment| assignment.origin.place()),
            command,
            standing,
        })
    };
    section.keys.iter().filter_map(one).collect()
}

fn toml(assignment: &Assignment) -> String {
    assignment.value.toml().unwrap_or_else(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Loaded, load};

    const CONFIG: &str = "[zram0]\nzram-size = \"64MiB\"\n[ramdisk.a]\nmount-point = \"/srv/a\"\n";

    fn loaded(config: &str, section: &str, overlay: &str, cmdline: &str) -> Loaded {
        let run = format!("/run/zramd/zramd.toml.d/{}", overlay::file_name(section));
        load(
            &[("/etc/zramd/zramd.toml".into(), config.to_owned()), (run.into(), overlay.to_owned())],
            cmdline,
        )
    }

    fn standing(loaded: &Loaded) -> Vec<Standing> {
        loaded.merged.overrides.iter().map(|found| found.standing).collect()
    }

    #[test]
    fn an_override_knows_what_it_overrides() {
        let resize = "[zram0]\nmax-zram-size = \"1GiB\" # resize\nzram-size = \"96MiB\" # resize\n";
        let found = loaded(CONFIG, "zram0", resize, "");
        let expected = Override {
            object: "zram0".to_owned(),
            key: "zram-size".to_owned(),
            value: "\"96MiB\"".to_owned(),
            configured: Some("\"64MiB\"".to_owned()),
            configured_at: Some("/etc/zramd/zramd.toml:2".to_owned()),
            command: Some(Command::Resize),
            standing: Standing::InForce,
        };
        assert_eq!(found.merged.overrides, [expected]);
        assert_eq!(found.problems, []);
        assert_eq!(found.merged.sections["zram0"].origin.file.to_str(), Some("/etc/zramd/zramd.toml"));

        // A maximum that is configured is replaced, and a size that is not is set.
        let both = |config: &str| {
            let found = loaded(config, "zram0", resize, "").merged.overrides;
            found.into_iter().map(|found| (found.key, found.configured)).collect::<Vec<_>>()
        };
        let key = |key: &str, configured: Option<&str>| (key.to_owned(), configured.map(str::to_owned));
        let max = key("max-zram-size", Some("\"80MiB\""));
        assert_eq!(both("[zram0]\nmax-zram-size = \"80MiB\"\n"), [max, key("zram-size", None)]);
    }

    #[test]
    fn an_override_alone_makes_no_section() {
        for (section, overlay) in [
            ("zram7", "[zram7]\nzram-size = \"96MiB\" # resize\n"),
            ("zram7", "[zram7]\nenabled = false\n"),
            ("ramdisk.b", "[ramdisk.b]\nsize = \"96MiB\"\n"),
        ] {
            let found = loaded(CONFIG, section, overlay, "");
            assert_eq!(standing(&found), [Standing::Orphaned], "{section}");
            assert!(!found.merged.sections.contains_key(section), "{section}");
            assert_eq!(found.problems, [], "{section}");
        }
    }

    #[test]
    fn a_section_that_was_created_a_broken_one_and_one_of_the_kernel_command_line_are_there() {
        let mut created = Overlay { transient: true, ..Overlay::default() };
        created.set_bytes("zram-size", 1 << 20);
        let found = loaded(CONFIG, "zram7", &created.text("zram7"), "");
        assert_eq!((standing(&found), found.settings.devices.len()), (vec![Standing::Created], 2));
        let limit = "[zram0]\nzram-resident-limit = \"0B\" # limit\n";
        for mistake in ["zram-size = \n", "zram-size = \"oops(\"\n"] {
            let found = loaded(&format!("[zram0]\n{mistake}"), "zram0", limit, "");
            assert_eq!((standing(&found), found.settings.devices.len()), (vec![Standing::Broken], 0));
            let sentence = "zram-resident-limit = \"0B\" is not used: the section has a mistake";
            assert_eq!(found.merged.overrides[0].sentence(), sentence, "{mistake}");
        }
        let found = loaded("", "zram0", limit, "systemd.zram");
        assert_eq!((standing(&found), found.settings.devices.len()), (vec![Standing::InForce], 1));
    }

    #[test]
    fn a_mistake_in_another_section_and_a_warning_do_not_break_an_override() {
        let limit = "[zram0]\nzram-resident-limit = \"0B\" # limit\n";
        for other in ["no-such-key = 5\n", "[zram1]\nzram-size = \"oops(\"\n", "[zram1]\nzram-size =\n"] {
            let found = loaded(&format!("[zram0]\n{other}"), "zram0", limit, "");
            assert_eq!(found.problems.len(), 1, "{other}");
            assert_eq!(standing(&found), [Standing::InForce], "{other}");
        }
    }
}
