//! The configuration key by key: values as written, what follows from them on this machine, and where they come from. For the bus
//! and `zramdctl cat-config --json`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Loaded;
use super::fragment::Section;
use super::key::{Key, Type};
use super::keys::{device, ramdisk};
use super::schema::SectionKind;
use super::value::Value;
use crate::expr::{Expr, Variables, size_in_bytes};
use crate::overlay::section_of_path;

/// A key of a section with its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// Its section, for example `zram0`, `ramdisk.logs` or `defaults`.
    pub section: String,
    /// Its name, for example `zram-size` or `recompress.idle-age`.
    pub key: String,
    /// The value as TOML, as written.
    pub written: String,
    /// What follows from it on this machine; null if nothing does, because of a mistake.
    pub value: Option<Effect>,
    /// Where it comes from.
    pub source: Source,
    /// The file; empty for a default.
    pub file: String,
    /// The line, counted from 1; 0 for a default.
    pub line: u32,
}

/// What follows from a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// `true` or `false`.
    Bool(bool),
    /// A size, in bytes.
    Bytes(u64),
    /// A span of time.
    Seconds(u64),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Text, or a word such as `none` or `auto`; permission bits are octal.
    Text(String),
    /// A list, also if it is written as one text.
    List(Vec<String>),
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The key is not assigned.
    Default,
    /// A file of the configuration.
    File,
    /// An override, until the next boot.
    Override,
}

impl Source {
    /// Its word on the bus.
    pub const fn word(self) -> &'static str {
        match self {
            Source::Default => "default",
            Source::File => "file",
            Source::Override => "override",
        }
    }
}

/// The keys of all sections that are used, in the order of zramd.toml(5): those that are assigned, and those with a default.
pub fn settings(loaded: &Loaded, variables: &Variables) -> Vec<Setting> {
    let sections = &loaded.merged.sections;
    let defaults = sections.get("defaults");
    let mut settings = Vec::new();
    for (name, section) in sections {
        let Some(kind) = SectionKind::of(name) else { continue };
        let lookup = Lookup { section, kind, defaults: defaults.filter(|_| kind == SectionKind::Device) };
        settings.extend(kind.keys().iter().filter_map(|key| lookup.setting(name, key, variables)));
    }
    settings
}

struct Lookup<'a> {
    section: &'a Section,
    kind: SectionKind,
    defaults: Option<&'a Section>,
}

impl Lookup<'_> {
    fn has(&self, key: &Key) -> bool {
        let has = |section: &Section| section.keys.contains_key(key.name);
        has(self.section) || self.defaults.is_some_and(has)
    }

    /// Whether a key of the section itself is this word.
    fn says(&self, key: &Key, word: &str) -> bool {
        let written = self.section.keys.get(key.name).map(|assigned| &assigned.value);
        matches!(written, Some(Value::String(text)) if text == word)
    }

    fn setting(&self, name: &str, key: &Key, variables: &Variables) -> Option<Setting> {
        let inherited =
            || self.defaults.filter(|_| SectionKind::Defaults.key(key.name).is_some())?.keys.get(key.name);
        let setting = |value: &Value| Setting {
            section: name.to_owned(),
            key: key.name.to_owned(),
            written: value.toml().unwrap_or_else(str::to_owned),
            value: effect(key.kind, value, variables),
            source: Source::Default,
            file: String::new(),
            line: 0,
        };
        if let Some(assigned) = self.section.keys.get(key.name).or_else(inherited) {
            let origin = &assigned.origin;
            let source = source(&origin.file);
            let file = origin.file.display().to_string();
            return Some(Setting { source, file, line: origin.line, ..setting(&assigned.value) });
        }
        let default =
            key.default.value().filter(|_| self.kind != SectionKind::Defaults && !self.is_moot(key))?;
        Some(setting(&default))
    }

    /// Whether the default of a key has no effect, because of other keys.
    fn is_moot(&self, key: &Key) -> bool {
        let is = |other: &Key| key.name == other.name;
        match self.kind {
            SectionKind::Device if is(&device::ZRAM_SIZE) => {
                self.has(&device::ZRAM_FRACTION) || self.has(&device::MAX_ZRAM_SIZE)
            }
            SectionKind::Device if is(&device::SWAP_PRIORITY) => {
                let is_swap = !self.has(&device::FS_TYPE) || self.says(&device::FS_TYPE, "swap");
                self.has(&device::MOUNT_POINT) || !is_swap
            }
            SectionKind::Device if is(&device::WRITEBACK_ENCRYPTION) => {
                !self.has(&device::WRITEBACK_DEVICE) && !self.has(&device::WRITEBACK_FILE)
            }
            SectionKind::Ramdisk if is(&ramdisk::FS_TYPE) => !self.says(&ramdisk::BACKEND, "zram"),
            // It depends on the mount point, or on the snapshot.
            SectionKind::Ramdisk if is(&ramdisk::MODE) => true,
            _ => false,
        }
    }
}

fn source(file: &Path) -> Source {
    if section_of_path(file).is_some() { Source::Override } else { Source::File }
}

fn effect(kind: Type, value: &Value, variables: &Variables) -> Option<Effect> {
    if !kind.accepts(value) {
        return None;
    }
    let is_list = matches!(kind, Type::Algorithms | Type::Secondary | Type::Words | Type::Command);
    Some(match (kind, value) {
        (_, Value::Array(items)) => {
            let words = items.iter().filter_map(|(item, _)| match item {
                Value::String(text) => Some(text.clone()),
                _ => None,
            });
            if is_list {
                Effect::List(words.collect())
            } else {
                Effect::Text(words.collect::<Vec<_>>().join(","))
            }
        }
        (_, Value::String(text)) if is_list => {
            Effect::List(Some(text.clone()).into_iter().filter(|text| !text.is_empty()).collect())
        }
        (_, Value::String(text)) if kind.words().contains(&text.as_str()) => Effect::Text(text.clone()),
        (Type::Size { .. }, value) => Effect::Bytes(bytes(value, variables)?),
        (Type::Span { .. }, value) => Effect::Seconds(value.span()?.as_secs()),
        (Type::Octal, value) => Effect::Text(format!("{:04o}", value.permissions()?)),
        (Type::Number, Value::Integer(number, _)) => Effect::Number(*number as f64),
        (_, Value::Boolean(value)) => Effect::Bool(*value),
        (_, Value::Integer(number, _)) => Effect::Integer(*number),
        (_, Value::Float(number)) => Effect::Number(*number),
        (_, Value::String(text)) => Effect::Text(text.clone()),
        (_, Value::Other(_)) => return None,
    })
}

/// A size in bytes; `None` if it cannot be evaluated.
fn bytes(value: &Value, variables: &Variables) -> Option<u64> {
    let mib = match value {
        Value::String(text) => Expr::parse(text).ok()?.evaluate(variables).ok()?,
        Value::Integer(number, _) => *number as f64,
        Value::Float(number) => *number,
        _ => return None,
    };
    size_in_bytes(mib).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    const MACHINE: Variables = Variables { ram_mib: 8192.0, swap_mib: 0.0, cpus: 4.0 };

    fn read(files: &[(&str, &str)]) -> Vec<Setting> {
        let files: Vec<_> = files.iter().map(|(file, text)| ((*file).into(), (*text).to_owned())).collect();
        settings(&load(&files, ""), &MACHINE)
    }

    fn found<'a>(settings: &'a [Setting], section: &str, key: &str) -> Option<&'a Setting> {
        settings.iter().find(|setting| setting.section == section && setting.key == key)
    }

    #[test]
    fn each_key_has_its_value_what_follows_and_its_origin() {
        let main = "/etc/zramd/zramd.toml";
        let runtime = "/run/zramd/zramd.toml.d/zz-runtime-zram0.toml";
        let all = read(&[
            (
                main,
                "[defaults]\ncompression-algorithm = \"zstd\"\n[zram0]\nzram-size = \"ram / 400\"\nswap-priority = 5\n",
            ),
            (runtime, "[zram0]\nswap-priority = 7 # set\n"),
        ]);
        let row = |section: &str, key: &str| {
            let setting = found(&all, section, key).unwrap();
            let Setting { written, value, source, file, line, .. } = setting.clone();
            (written, value.unwrap(), source, file, line)
        };
        let size = Effect::Bytes(21_474_836);
        assert_eq!(row("zram0", "zram-size"), ("\"ram / 400\"".into(), size, Source::File, main.into(), 4));
        let priority = Effect::Integer(7);
        assert_eq!(
            row("zram0", "swap-priority"),
            ("7".into(), priority, Source::Override, runtime.into(), 2)
        );
        let algorithms = Effect::List(vec!["zstd".to_owned()]);
        for section in ["zram0", "defaults"] {
            let row = row(section, "compression-algorithm");
            assert_eq!(
                row,
                ("\"zstd\"".into(), algorithms.clone(), Source::File, main.into(), 2),
                "{section}"
            );
        }
        let enabled = ("true".to_owned(), Effect::Bool(true), Source::Default, String::new(), 0);
        assert_eq!(row("zram0", "enabled"), enabled);
        assert_eq!(found(&all, "defaults", "swap-priority"), None);
    }

    #[test]
    fn values_have_the_types_of_their_keys() {
        let all = read(&[(
            "f",
            "[ramdisk.a]\nmount-point = \"/a\"\nsize = 64\nmode = 0o700\nsave-interval = \"1h\"\noptions = [\"a\", \"b\"]\npre-save = \"/x\"\n\
             [zram0]\nzram-fraction = 1\n[vm]\nswappiness = \"auto\"\n[maintenance]\nrecompress = { idle-age = \"2h\" }\n",
        )]);
        let value =
            |section: &str, key: &str| found(&all, section, key).and_then(|setting| setting.value.clone());
        let text = |text: &str| Some(Effect::Text(text.to_owned()));
        assert_eq!(value("ramdisk.a", "size"), Some(Effect::Bytes(64 << 20)));
        assert_eq!(value("ramdisk.a", "mode"), text("0700"));
        assert_eq!(value("ramdisk.a", "save-interval"), Some(Effect::Seconds(3600)));
        assert_eq!(value("ramdisk.a", "options"), text("a,b"));
        assert_eq!(value("ramdisk.a", "pre-save"), Some(Effect::List(vec!["/x".to_owned()])));
        assert_eq!(value("zram0", "zram-fraction"), Some(Effect::Number(1.0)));
        assert_eq!(value("vm", "swappiness"), text("auto"));
        assert_eq!(value("maintenance", "recompress.idle-age"), Some(Effect::Seconds(7200)));
        let all = read(&[(
            "f",
            "[zram0]\nzram-size = 0.5\nmax-zram-size = \"none\"\n[ramdisk.b]\nsave-interval = \"never\"\n",
        )]);
        let value =
            |section: &str, key: &str| found(&all, section, key).and_then(|setting| setting.value.clone());
        assert_eq!(value("zram0", "zram-size"), Some(Effect::Bytes(512 << 10)));
        assert_eq!(value("zram0", "max-zram-size"), text("none"));
        assert_eq!(value("ramdisk.b", "save-interval"), text("never"));
    }

    #[test]
    fn a_default_that_another_key_replaces_is_not_listed() {
        let lists = |text: &str, key: &str| found(&read(&[("f", text)]), "zram0", key).is_some();
        assert!(lists("[zram0]\n", "zram-size"));
        assert!(!lists("[zram0]\nmax-zram-size = 5\n", "zram-size"));
        assert!(!lists("[defaults]\nzram-fraction = 1\n[zram0]\n", "zram-size"));
        assert!(lists("[zram0]\n", "swap-priority"));
        assert!(!lists("[zram0]\nmount-point = \"/a\"\n", "swap-priority"));
        assert!(!lists("[zram0]\nfs-type = \"none\"\n", "swap-priority"));
        assert!(lists("[zram0]\nfs-type = \"swap\"\n", "swap-priority"));
        assert!(lists("[zram0]\nmount-point = \"/a\"\n", "enabled"));
        assert!(!lists("[zram0]\n", "writeback-encryption"));
        assert!(lists("[zram0]\nwriteback-device = \"/dev/a\"\n", "writeback-encryption"));
        assert!(lists("[zram0]\nwriteback-file = \"/a\"\n", "writeback-encryption"));
        let lists = |keys: &str, key: &str| {
            let text = format!("[ramdisk.a]\nmount-point = \"/a\"\n{keys}\n");
            found(&read(&[("f", &text)]), "ramdisk.a", key).is_some()
        };
        assert!(lists("", "size"));
        assert!(!lists("", "mode"));
        assert!(!lists("", "fs-type"));
        assert!(!lists("backend = \"tmpfs\"", "fs-type"));
        assert!(lists("backend = \"zram\"", "fs-type"));
    }

    #[test]
    fn nothing_follows_from_a_mistake() {
        for wrong in ["\"ram / 0\"", "\"-1\"", "true", "\"a b\""] {
            let all = read(&[("f", &format!("[zram0]\nzram-size = {wrong}\n"))]);
            let setting = found(&all, "zram0", "zram-size").unwrap();
            assert_eq!((setting.written.as_str(), &setting.value), (wrong, &None));
        }
    }
}
