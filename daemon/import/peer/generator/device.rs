//! Translates one device of zram-generator into a section of zramd.

use super::size::{Given, REFUSED, translate};
use super::{Device, Draft, Setting};
use crate::peer::document::{self, Section};
use logic::config::pasted;
use logic::config::tmpfs::{self, Meaning};
use logic::config::{DISCARDS, with_commas};
use logic::device::algorithm::{Algorithm, known_name};
use logic::expr::Expr;
use logic::maintain::tighter;
use logic::overlay::{list, quoted};
use logic::unit_name::normalised;

/// Note for every algorithm.
const ALGORITHM_NOTE: &str = "auto: another one where the kernel lacks it, instead of the kernel's default";

/// Use of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Swap,
    Mounted,
    Raw,
}

/// Adds the section of a device.
pub fn import(device: &Device, given: &Given, draft: &mut Draft) {
    let name = format!("zram{}", device.number);
    let section = Section::new(name, device.header.file.clone(), Some(device.header.line));
    let mut translator = Translator { device, given, draft, section };
    if device.keys.is_empty() {
        translator.draft.row(device.header.name(), format!("[{}]", translator.section.name), "");
    }
    translator.size();
    translator.host_limit();
    let role = translator.role();
    translator.resident_limit(role);
    translator.algorithms();
    translator.writeback();
    translator.activation(role);
    translator.unknown();
    let section = translator.section;
    draft.sections.push(section);
}

/// An option of swapon, or why it is left out.
fn swap_option(option: &str) -> Result<&str, &'static str> {
    match option.split('=').next().unwrap_or_default() {
        "pri" => Err("zram-generator gives its own priority, which counts"),
        "nodiscard" => Err("swapon does not know it"),
        "discard" if !DISCARDS.contains(&option) => Ok("discard"),
        _ => Ok(option),
    }
}

struct Translator<'a> {
    device: &'a Device,
    given: &'a Given,
    draft: &'a mut Draft,
    section: Section,
}

impl<'a> Translator<'a> {
    fn get(&self, key: &str) -> Option<&'a Setting> {
        self.device.keys.get(key)
    }

    fn warn(&mut self, setting: &Setting, text: impl Into<String>) {
        self.draft.warn(&setting.file, Some(setting.line), text);
    }

    /// Writes a key, and a row of the table.
    fn set(&mut self, setting: &Setting, key: &str, value: &str, note: &str) {
        let was = format!("{} = {}", setting.key, setting.value);
        // Comment on changed values, but not on the note that all algorithms have.
        if !note.is_empty() && note != ALGORITHM_NOTE {
            self.section.comment(&format!("was {was} ({note})"));
        } else if value.trim_matches('"') != setting.value {
            self.section.comment(&format!("was {was}"));
        }
        let is = self.section.set(key, value);
        self.draft.row(setting.text(), is, note);
    }

    /// Leaves a setting out, with a comment and a row.
    fn leave_out(&mut self, setting: &Setting, note: &str) {
        self.section.comment(&format!("{} = {} ({note})", setting.key, setting.value));
        self.draft.row(setting.text(), "", note);
    }

    /// Leaves a required setting out, and disables the device.
    fn switch_off(&mut self, setting: &Setting, why: &str) {
        let name = self.section.name.clone();
        let key = &setting.key;
        self.warn(
            setting,
            format!("{why}; {name} was switched off: write {key} anew and take `enabled = false` out"),
        );
        self.leave_out(setting, why);
        self.section.off = true;
    }

    fn size(&mut self) {
        let fraction = self.get("zram-fraction");
        let max = self.get("max-zram-size");
        if fraction.is_some() || max.is_some() {
            if let Some(size) = self.get("zram-size") {
                let text = "zram-fraction and max-zram-size count instead of zram-size, which was left out";
                self.warn(size, text);
                self.leave_out(size, "zram-fraction and max-zram-size count instead");
            }
            return self.fraction(fraction, max);
        }
        let Some(setting) = self.get("zram-size") else { return self.default_size() };
        if setting.value.is_empty() {
            self.warn(setting, format!("{REFUSED}; an empty size was taken for the default"));
            self.leave_out(setting, "empty");
            return self.default_size();
        }
        match translate(&setting.value, self.given) {
            Ok(size) => {
                for text in size.warnings {
                    self.warn(setting, text);
                }
                self.set(setting, "zram-size", &document::size(&size.text), "");
            }
            Err(why) => self.switch_off(setting, &why),
        }
    }

    /// Written explicitly, because a file with lower precedence may set another size.
    fn default_size(&mut self) {
        self.section.set("zram-size", "\"min(ram / 2, 4096)\"");
    }

    fn fraction(&mut self, fraction: Option<&'a Setting>, max: Option<&'a Setting>) {
        match fraction {
            None => {
                self.section.comment("what zram-generator takes when only max-zram-size is given");
                self.section.set("zram-fraction", "0.5");
            }
            Some(setting) => {
                let text = setting.value.as_str();
                let share = text.strip_suffix('%').and_then(|percent| percent.trim_end().parse::<f64>().ok());
                if let Some(percent) = share {
                    self.warn(setting, format!("{REFUSED}; `{text}` was taken as a share of RAM"));
                    let value = document::float(percent / 100.0);
                    self.set(setting, "zram-fraction", &value, "");
                } else if let Some(value) =
                    text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
                {
                    self.set(setting, "zram-fraction", &document::float(value), "");
                } else {
                    self.switch_off(setting, &format!("`{text}` is no share of RAM"));
                }
            }
        }
        if let Some(setting) = max {
            self.limit(setting, "max-zram-size");
        }
    }

    fn host_limit(&mut self) {
        if let Some(setting) = self.get("host-memory-limit") {
            self.limit(setting, "host-memory-limit");
        }
    }

    /// A whole number of MiB, or `none`.
    fn limit(&mut self, setting: &'a Setting, key: &str) {
        let text = setting.value.as_str();
        let older = if setting.key == key { "" } else { "an older name" };
        if text == "none" {
            return self.set(setting, key, "\"none\"", older);
        }
        if text.is_empty() {
            self.warn(setting, format!("{REFUSED}; an empty limit was taken for none"));
            return self.leave_out(setting, "empty");
        }
        match text.parse::<u64>() {
            // Larger numbers exceed TOML and the arithmetic of sizes; they are no limit in practice.
            Ok(number) if number < 1 << 43 => self.set(setting, key, &number.to_string(), older),
            Ok(_) => self.set(setting, key, "\"none\"", "more than any machine has"),
            Err(_) if Expr::parse(text).is_ok() => {
                self.warn(setting, format!("{REFUSED}; zramd takes `{text}` as it is"));
                self.set(setting, key, &document::size(text), older);
            }
            Err(_) => self.switch_off(setting, &format!("`{text}` is no limit")),
        }
    }

    fn role(&mut self) -> Role {
        let mut fs_type = self.get("fs-type").map(|setting| (setting, setting.value.as_str()));
        if let Some((setting, "")) = fs_type {
            self.warn(setting, "an empty fs-type cannot be formatted; it was taken for none");
            self.leave_out(setting, "empty");
            fs_type = None;
        }
        let mount = self.get("mount-point").filter(|setting| self.mount_point(setting));
        let is_swap = fs_type.is_some_and(|(_, name)| name.eq_ignore_ascii_case("swap"));
        match (mount, fs_type) {
            (None, None) => Role::Swap,
            (None, Some((setting, name))) if is_swap => {
                if name != "swap" {
                    self.warn(
                        setting,
                        format!("`{name}` is not `swap` to zram-generator; it was taken as swap"),
                    );
                }
                self.set(setting, "fs-type", "\"swap\"", "");
                Role::Swap
            }
            (None, Some((setting, name))) => {
                self.file_system(setting, name);
                Role::Raw
            }
            (Some(_), None) => {
                self.section.comment("what zram-generator takes when no fs-type is given");
                self.section.set("fs-type", "\"ext2\"");
                Role::Mounted
            }
            (Some(_), Some((setting, _))) if is_swap => {
                self.switch_off(setting, "swap cannot be mounted");
                Role::Mounted
            }
            (Some(_), Some((setting, name))) => {
                self.file_system(setting, name);
                Role::Mounted
            }
        }
    }

    fn file_system(&mut self, setting: &'a Setting, name: &str) {
        let lower = name.to_ascii_lowercase();
        if lower != name {
            self.warn(setting, format!("there is no file system `{name}`; {lower} was taken"));
        }
        self.set(setting, "fs-type", &quoted(&lower), "");
    }

    /// Writes the mount point; returns whether there is one.
    fn mount_point(&mut self, setting: &'a Setting) -> bool {
        let text = setting.value.as_str();
        if text.is_empty() {
            self.warn(setting, format!("{REFUSED}; an empty mount-point was taken for none"));
            self.leave_out(setting, "empty");
            return false;
        }
        match normalised(text) {
            Some(path) => {
                self.set(setting, "mount-point", &quoted(&path), "");
                true
            }
            None => {
                self.switch_off(setting, &format!("`{text}` is no absolute path without `..`"));
                false
            }
        }
    }

    fn resident_limit(&mut self, role: Role) {
        let Some(setting) = self.get("zram-resident-limit") else { return };
        if setting.value.is_empty() {
            self.warn(setting, format!("{REFUSED}; an empty limit was taken for none"));
            return self.leave_out(setting, "empty");
        }
        match translate(&setting.value, self.given) {
            Ok(size) => {
                for text in size.warnings {
                    self.warn(setting, text);
                }
                self.set(setting, "zram-resident-limit", &document::size(&size.text), "");
                if role == Role::Mounted && size.text != "0" {
                    let text = "files are lost without an error when a file system reaches this limit; take it out, or keep \
                                force-resident-limit";
                    self.warn(setting, text);
                    self.section.set("force-resident-limit", "true");
                }
            }
            Err(why) => {
                self.warn(setting, format!("{why}; the limit was left out"));
                self.leave_out(setting, &why);
            }
        }
    }

    fn algorithms(&mut self) {
        let Some(setting) = self.get("compression-algorithm") else { return };
        let found = pasted::parse(&setting.value);
        for text in found.warnings {
            self.warn(setting, text);
        }
        let primary = found.primary.as_deref().and_then(|name| Algorithm::parse(name).ok());
        match found.primary {
            Some(name) => {
                let words = [name, "auto".to_owned()];
                self.set(setting, "compression-algorithm", &list(&words), ALGORITHM_NOTE);
            }
            None => self.leave_out(setting, "the kernel's default is used"),
        }
        let (known, stray): (Vec<String>, Vec<String>) = found.secondary.into_iter().partition(|word| {
            Algorithm::parse(word).is_ok_and(|algorithm| known_name(&algorithm.name).is_some())
        });
        for word in stray {
            self.warn(setting, format!("no kernel has an algorithm named `{word}`; it was left out"));
        }
        let secondary = self.denser(setting, primary.as_ref(), known);
        if !secondary.is_empty() {
            let is = self.section.set("recompression-algorithm", &list(&secondary));
            self.draft.row(setting.text(), is, "used by [maintenance] only");
        }
        if let Some(parameters) = found.recompression {
            let what = format!("zram-generator reads ({parameters}) and never uses it");
            if secondary.is_empty() {
                self.warn(setting, format!("{what}; it was left out, because there is no denser algorithm"));
            } else {
                self.warn(
                    setting,
                    format!("{what}; zramd recompresses if you uncomment [maintenance] at the end"),
                );
                self.draft.offer("maintenance", "recompress", setting);
            }
        }
    }

    /// Those of the secondary algorithms that save anything.
    fn denser(
        &mut self,
        setting: &Setting,
        primary: Option<&Algorithm>,
        secondary: Vec<String>,
    ) -> Vec<String> {
        let useless = |name: &String| tighter::refusal(primary?, &Algorithm::parse(name).ok()?);
        let (kept, left_out): (Vec<_>, Vec<_>) =
            secondary.into_iter().partition(|name| useless(name).is_none());
        for why in left_out.iter().filter_map(useless) {
            self.warn(setting, format!("{why}; it was left out"));
        }
        kept
    }

    fn writeback(&mut self) {
        let Some(setting) = self.get("writeback-device") else { return };
        let text = setting.value.as_str();
        match normalised(text) {
            Some(path) => {
                let warning = "zram-generator sets this device and nothing ever writes to it; zramd only takes one that is \
                               empty, so wipe it or take the line out";
                self.warn(setting, warning);
                self.set(setting, "writeback-device", &quoted(&path), "");
            }
            None => {
                let why = format!("`{text}` is no absolute path without `..`");
                self.warn(setting, format!("{REFUSED}, because {why}; it was left out"));
                self.leave_out(setting, &why);
            }
        }
    }

    /// Priority of swap, and options of swap or a mount.
    fn activation(&mut self, role: Role) {
        if let Some(setting) = self.get("swap-priority") {
            let text = setting.value.as_str();
            match text.parse::<i32>() {
                _ if role != Role::Swap => self.leave_out(setting, "has no effect for a file system"),
                Ok(priority @ -1..=32767) => {
                    self.set(setting, "swap-priority", &priority.to_string(), "");
                }
                _ => {
                    let warning =
                        format!("{REFUSED}; `{text}` is no priority from -1 to 32767, so it was left at 100");
                    self.warn(setting, warning);
                    self.leave_out(setting, "no priority from -1 to 32767");
                }
            }
        }
        if let Some(setting) = self.get("options") {
            let text = setting.value.as_str();
            if role == Role::Raw {
                self.leave_out(setting, "has no effect for a device that is not used");
            } else {
                let with_commas: Vec<String> = text
                    .split(',')
                    .map(|option| with_commas(option).unwrap_or_else(|| option.to_owned()))
                    .collect();
                let mut options = Vec::new();
                for option in with_commas.iter().flat_map(|option| option.split(',')) {
                    match tmpfs::mount_option(option) {
                        _ if role == Role::Swap => match swap_option(option) {
                            Ok(option) => options.push(option),
                            Err(why) => self.leave_out(setting, &format!("{option} is left out: {why}")),
                        },
                        Meaning::Key(key, value) => self.set(setting, key, &value, ""),
                        Meaning::LeftOut(why) => {
                            self.warn(setting, format!("`{option}` was left out: {why}"));
                            self.leave_out(setting, &why);
                        }
                        _ => options.push(option),
                    }
                }
                self.set(setting, "options", &quoted(&options.join(",")), "");
            }
        }
    }

    fn unknown(&mut self) {
        for setting in &self.device.unknown {
            self.leave_out(setting, "zram-generator does not know it");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::peer::{Peer, Values, import};

    #[test]
    fn a_value_out_of_range_switches_the_device_off_or_is_left_out() {
        for (lines, expected) in [
            ("zram-fraction = 0.1", "zram-fraction = 0.1"),
            ("zram-fraction = -0.5", "enabled = false"),
            ("zram-fraction = inf", "enabled = false"),
            ("host-memory-limit = 8796093022207", "host-memory-limit = 8796093022207"),
            ("host-memory-limit = 8796093022208", "host-memory-limit = \"none\""),
            ("host-memory-limit = lots", "enabled = false"),
            ("swap-priority = 5", "swap-priority = 5"),
            (
                "mount-point = /srv/a\nswap-priority = 5",
                "# swap-priority = 5 (has no effect for a file system)",
            ),
        ] {
            let files = [("/f".into(), format!("[zram0]\n{lines}\n"))];
            let toml = import(Peer::ZramGenerator, &files, &Values::default()).toml;
            assert!(toml.lines().any(|line| line == expected), "{lines}: {toml}");
        }
    }
}
