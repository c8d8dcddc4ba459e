//! Sections that live until the next boot: what `zramdctl create`, `resize` and the like ask for.
//!
//! They are ordinary drop-ins below `/run/zramd`, so that everything that reads the configuration sees them: the
//! generator, `zramd-setup up`, `zramdctl cat-config`. This module makes and reads their text.

use std::collections::BTreeMap;

/// One section with its assignments, as TOML literals by key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overlay {
    /// Key → TOML value, for example `"256MiB"` with its quotation marks.
    pub values: BTreeMap<String, String>,
    /// Whether the whole section exists only here.
    pub transient: bool,
}

const HEAD: &str =
    "# Written by zramd on request; it lasts until the next boot. Remove it, then run `zramdctl reload`.\n";
const TRANSIENT: &str = "# The whole section exists only here.\n";

const PREFIX: &str = "zz-runtime-";
const SUFFIX: &str = ".toml";

/// Name of the drop-in for `section`; it sorts after what people usually write.
pub fn file_name(section: &str) -> String {
    format!("{PREFIX}{section}{SUFFIX}")
}

/// The section that the drop-in of this name is for; nothing when somebody else wrote it.
pub fn section_of(file_name: &str) -> Option<&str> {
    file_name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)
}

/// A TOML string.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            letter if letter.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

impl Overlay {
    /// Sets a size in bytes.
    pub fn set_bytes(&mut self, key: &str, bytes: u64) {
        self.values.insert(key.to_owned(), quoted(&format!("{bytes}B")));
    }

    /// Sets a string.
    pub fn set_text(&mut self, key: &str, text: &str) {
        self.values.insert(key.to_owned(), quoted(text));
    }

    /// Sets a list of strings.
    pub fn set_list(&mut self, key: &str, words: &[&str]) {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        self.values.insert(key.to_owned(), format!("[{}]", words.join(", ")));
    }

    /// Sets a number.
    pub fn set_number(&mut self, key: &str, number: i64) {
        self.values.insert(key.to_owned(), number.to_string());
    }

    /// The text of the drop-in.
    pub fn text(&self, section: &str) -> String {
        let mut out = HEAD.to_owned();
        if self.transient {
            out.push_str(TRANSIENT);
        }
        out.push_str(&format!("[{section}]\n"));
        for (key, value) in &self.values {
            out.push_str(&format!("{key} = {value}\n"));
        }
        out
    }

    /// Reads what [`Overlay::text`] wrote; lines of any other form are left out.
    pub fn parse(text: &str) -> Overlay {
        let values = text.lines().filter(|line| !line.starts_with(['#', '[']));
        let values = values.filter_map(|line| line.split_once(" = "));
        Overlay {
            values: values.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            transient: text.contains(TRANSIENT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::config;

    #[test]
    fn what_is_written_is_read_back_and_is_a_configuration() {
        let mut overlay = Overlay { transient: true, ..Overlay::default() };
        overlay.set_bytes("zram-size", 256 << 20);
        overlay.set_number("swap-priority", -1);
        overlay.set_list("compression-algorithm", &["zstd(level=3)", "lz4"]);
        let text = overlay.text("zram5");
        assert_eq!(Overlay::parse(&text), overlay);
        let loaded = config::load(&[("/run/zramd/a.toml".into(), text)], "");
        assert_eq!(loaded.problems, []);
        assert_eq!(loaded.settings.devices[0].number, 5);
    }

    #[test]
    fn a_drop_in_is_known_by_its_name() {
        assert_eq!(section_of(&file_name("ramdisk.logs")), Some("ramdisk.logs"));
        assert_eq!(section_of("50-mine.toml"), None);
    }

    #[test]
    fn odd_letters_stay_inside_their_quotation_marks() {
        let mut overlay = Overlay::default();
        overlay.set_text("label", "a\"b\\c\nzram-size = 1");
        assert_eq!(overlay.text("zram1").lines().count(), 3);
        assert_eq!(Overlay::parse(&overlay.text("zram1")), overlay);
    }
}
