//! Edits of drop-ins. In the text of a file, one key is changed at a time: comments, order and all other lines stay.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::de::DeTable;

use super::fragment::{self, Assignment};
use crate::overlay::quoted;

/// A change of a drop-in that can be taken back: its text before and after, `None` without the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Absolute path.
    pub path: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl Edit {
    /// The edit that takes this one back.
    pub fn reversed(self) -> Edit {
        Edit { path: self.path, before: self.after, after: self.before }
    }
}

/// Why a text is not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The key to remove is not in the text.
    Missing,
    /// The text has a mistake, or a form that cannot be changed line by line, such as an inline table.
    Form,
}

/// Keys with their values as TOML, by section.
type Values = BTreeMap<String, BTreeMap<String, String>>;

/// Assigns a TOML value to a key, or removes the key, and with the last one its section: an empty section is a device, too.
pub fn change(text: &str, section: &str, key: &str, value: Option<&str>) -> Result<String, Refused> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut wanted = values(text)?;
    if let Some(value) = value {
        let value = values(&format!("[x]\nx = {value}\n"))?.remove("x").and_then(|mut keys| keys.remove("x"));
        let keys = wanted.entry(section.to_owned()).or_default();
        keys.insert(key.to_owned(), value.ok_or(Refused::Form)?);
    } else {
        let keys = wanted.get_mut(section).ok_or(Refused::Missing)?;
        keys.remove(key).ok_or(Refused::Missing)?;
        if keys.is_empty() {
            wanted.remove(section);
        }
    }
    let changed = splice(text, section, key, value).ok_or(Refused::Form)?;
    // TOML has more forms than are handled here: only a result that means what it should is used.
    if values(&changed)? == wanted { Ok(changed) } else { Err(Refused::Form) }
}

fn values(text: &str) -> Result<Values, Refused> {
    let (fragment, problems) = fragment::read(Path::new(""), text, 0);
    if !problems.is_empty() {
        return Err(Refused::Form);
    }
    let toml = |found: Assignment| found.value.toml().map_err(|_| Refused::Form);
    let keys = |keys: BTreeMap<String, Assignment>| {
        keys.into_iter().map(|(key, found)| Ok((key, toml(found)?))).collect::<Result<_, Refused>>()
    };
    fragment.sections.into_iter().map(|(name, section)| Ok((name, keys(section.keys)?))).collect()
}

/// Changes the text; `None` if its form is not one of those handled.
fn splice(text: &str, section: &str, key: &str, value: Option<&str>) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    let path = section.split_once('.').map_or(vec![section], |(kind, name)| vec![kind, name]);
    let mut table = document.get_ref();
    let mut header = None;
    for name in &path {
        let found = table.iter().find(|(known, _)| known.get_ref() == name);
        let Some((name, inner)) = found else {
            return Some(appended(text, &path, key, value?));
        };
        (header, table) = (Some(name.span()), inner.get_ref().as_table()?);
    }
    let header = header?;
    let own = table.iter().find(|(known, _)| known.get_ref() == key);
    let (Some((name, old)), None) = (own, value) else {
        if let (Some((_, old)), Some(value)) = (own, value) {
            let span = old.span();
            return Some([&text[..span.start], value, &text[span.end..]].concat());
        }
        // After the last key of the section.
        let last = table.values().map(|value| value.span().end).fold(header.end, usize::max);
        let (before, after) = text.split_at(line_end(text, last));
        let gap = if before.ends_with('\n') { "" } else { "\n" };
        return Some(format!("{before}{gap}{key} = {}\n{after}", value?));
    };
    let left = without_lines(text, name.span().start, old.span().end);
    // A header in the same line is gone already.
    let is_above = text.get(header.end..name.span().start).is_some_and(|between| between.contains('\n'));
    Some(if table.len() == 1 && is_above { without_lines(&left, header.start, header.end) } else { left })
}

fn appended(text: &str, path: &[&str], key: &str, value: &str) -> String {
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let header: Vec<String> = path.iter().map(|name| bare_or_quoted(name)).collect();
    format!("{text}{gap}[{}]\n{key} = {value}\n", header.join("."))
}

/// Without the lines from one position to another, and without one of two blank lines around them.
fn without_lines(text: &str, from: usize, to: usize) -> String {
    let start = text[..from].rfind('\n').map_or(0, |at| at + 1);
    let (before, after) = (&text[..start], &text[line_end(text, to)..]);
    let doubled = before.ends_with("\n\n") && (after.is_empty() || after.starts_with('\n'));
    let before = if doubled { &before[..before.len() - 1] } else { before };
    format!("{before}{after}")
}

/// The end of the line of a position, after its line break.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |length| at + length + 1)
}

/// A TOML key, quoted if necessary.
pub fn bare_or_quoted(name: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quoted(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Head\n\n[zram0] # of the desktop\n# Why so large.\nzram-size = \"4GiB\" # enough\ncompression-algorithm = [\n  \"zstd\", # dense\n  \"lz4\",\n]\n\n# Logs\n[ramdisk.\"a b\"]\nsize = 64\n";

    fn check(section: &str, key: &str, value: Option<&str>, from: &str, to: &str) {
        let expected = TEXT.replacen(from, to, 1);
        assert_ne!(expected, TEXT, "{from}");
        assert_eq!(change(TEXT, section, key, value), Ok(expected));
    }

    #[test]
    fn a_value_is_replaced_and_its_comments_stay() {
        check("zram0", "zram-size", Some("\"8GiB\""), "4GiB", "8GiB");
        check("ramdisk.a b", "size", Some("\"1GiB\""), "64", "\"1GiB\"");
        let list = "[\n  \"zstd\", # dense\n  \"lz4\",\n]";
        check("zram0", "compression-algorithm", Some("\"lz4\""), list, "\"lz4\"");
    }

    #[test]
    fn a_key_is_added_to_its_section() {
        check("zram0", "swap-priority", Some("5"), "\n]\n", "\n]\nswap-priority = 5\n");
        check("ramdisk.a b", "inodes", Some("7"), "size = 64\n", "size = 64\ninodes = 7\n");
        let new = change(TEXT, "zram1", "zram-size", Some("5")).unwrap();
        assert_eq!(new, format!("{TEXT}\n[zram1]\nzram-size = 5\n"));
        let new = change(TEXT.trim_end(), "ramdisk.c d", "size", Some("5")).unwrap();
        assert_eq!(new, format!("{TEXT}\n[ramdisk.\"c d\"]\nsize = 5\n"));
        assert_eq!(change("[zram0]", "zram0", "zram-size", Some("5")).unwrap(), "[zram0]\nzram-size = 5\n");
        assert_eq!(change("", "zram0", "zram-size", Some("5")).unwrap(), "[zram0]\nzram-size = 5\n");
    }

    #[test]
    fn a_key_is_removed_and_with_the_last_one_its_section() {
        check("zram0", "zram-size", None, "zram-size = \"4GiB\" # enough\n", "");
        check("ramdisk.a b", "size", None, "[ramdisk.\"a b\"]\nsize = 64\n", "");
        assert_eq!(change(TEXT, "zram0", "swap-priority", None), Err(Refused::Missing));
        assert_eq!(change(TEXT, "zram1", "swap-priority", None), Err(Refused::Missing));
        let text = "# Head\n\n[zram1]\nzram-size = 5\n";
        assert_eq!(change(text, "zram1", "zram-size", None).unwrap(), "# Head\n");
    }

    #[test]
    fn other_forms_are_changed_correctly_or_refused() {
        for text in [
            "zram0.zram-size = 5\n",
            "zram0 = { zram-size = 5 }\n",
            "\u{FEFF}[zram0]\r\nzram-size = 5\r\n",
            "[zram0]\n\"zram-size\" = 5",
            "ramdisk = { a = { size = 5 } }\n[zram0]\nzram-size = 5\n",
        ] {
            let [set, added, new, disk] = [
                change(text, "zram0", "zram-size", Some("6")),
                change(text, "zram0", "swap-priority", Some("6")),
                change(text, "zram1", "zram-size", Some("6")),
                change(text, "ramdisk.b", "size", Some("6")),
            ];
            assert!(set.is_ok() && new.is_ok(), "{text:?}: {set:?} {new:?}");
            for changed in [set, added, new, disk, change(text, "zram0", "zram-size", None)] {
                assert_ne!(changed, Err(Refused::Missing), "{text:?}");
            }
        }
        assert_eq!(change("[zram0]\nzram-size =\n", "zram1", "zram-size", Some("6")), Err(Refused::Form));
        assert_eq!(change(TEXT, "zram0", "zram-size", Some("5\n[zram1]")), Err(Refused::Form));
    }
}
