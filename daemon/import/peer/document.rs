//! The TOML output, and the table of settings.

use std::path::PathBuf;

use super::ini::Setting;
use super::refused::refused_and_doubtful;
use super::{Imported, Peer, Row, Warning};
use logic::config;
use logic::finding::Finding;
use logic::overlay::quoted;
use logic::proc::zram_number;
use logic::text::worded;

/// A file being composed.
#[derive(Debug, Default)]
pub struct Draft {
    /// Comments before the first section.
    pub head: Vec<String>,
    /// Sections in order of output.
    pub sections: Vec<Section>,
    /// A section that the user may uncomment.
    pub offered: Option<Section>,
    /// See [`Imported::table`].
    pub table: Vec<Row>,
    /// See [`Imported::warnings`].
    pub warnings: Vec<Warning>,
}

/// A section being composed.
#[derive(Debug)]
pub struct Section {
    /// Its name, without brackets.
    pub name: String,
    /// The source file.
    pub file: PathBuf,
    /// The line in that file.
    pub line: Option<usize>,
    /// Whether to write it with `enabled = false`.
    pub off: bool,
    /// Whether to write all of it as comments.
    silent: bool,
    lines: Vec<String>,
}

impl Section {
    /// An empty section.
    pub fn new(name: impl Into<String>, file: PathBuf, line: Option<usize>) -> Section {
        Section { name: name.into(), file, line, off: false, silent: false, lines: Vec::new() }
    }

    /// Adds a comment.
    pub fn comment(&mut self, text: &str) {
        self.lines.push(comment(text));
    }

    /// Adds a key with a value in TOML; returns both as shown in the table.
    pub fn set(&mut self, key: &str, value: &str) -> String {
        self.lines.push(format!("{key} = {value}"));
        format!("[{}] {key} = {value}", self.name)
    }

    fn text(&self) -> String {
        let place = self.line.map_or(String::new(), |line| format!(":{line}"));
        let mut text = comment(&format!("{}{place}", self.file.display()));
        text.push('\n');
        let head = [format!("[{}]", self.name)];
        let off = self.off.then(|| "enabled = false".to_owned());
        // At each moment, one of both programs sets the device up at the next boot.
        let yields = (zram_number(&self.name).is_some() && !self.off).then(|| "yield = true".to_owned());
        for line in head.iter().chain(&off).chain(&yields).chain(&self.lines) {
            if self.silent && !line.starts_with('#') {
                text.push_str("# ");
            }
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

impl Draft {
    /// Offers a section that switches `key` on, once.
    pub fn offer(&mut self, name: &str, key: &str, setting: &Setting) {
        let mut section = Section::new(name, setting.file.clone(), Some(setting.line));
        section.set(key, "true");
        section.silent = true;
        self.offered.get_or_insert(section);
    }

    /// Adds a warning.
    pub fn warn(&mut self, file: impl Into<PathBuf>, line: Option<usize>, text: impl Into<String>) {
        self.warnings.push(Warning { file: file.into(), line, text: worded(text) });
    }

    /// Adds a row to the table.
    pub fn row(&mut self, was: impl Into<String>, is: impl Into<String>, note: impl Into<String>) {
        self.table.push(Row { was: was.into(), is: is.into(), note: note.into() });
    }

    /// The complete file. A section that zramd would reject is written as a comment, with a warning.
    /// `ram_kib`: see [`Values::ram_kib`](super::Values::ram_kib).
    pub fn finish(mut self, peer: Peer, files: &[PathBuf], ram_kib: Option<u64>) -> Imported {
        let mut text = comment(&format!("Imported from {}:", peer.name()));
        text.push('\n');
        for file in files {
            text.push_str(&comment(&format!("  {}", file.display())));
            text.push('\n');
        }
        for line in &self.head {
            text.push_str(&comment(line));
            text.push('\n');
        }
        let mut rejected = Vec::new();
        for section in &mut self.sections {
            // Together with the sections above it, which it may refer to.
            if let Some(why) = problem(&format!("{text}\n{}", section.text())) {
                section.silent = true;
                rejected.push(section.name.clone());
                let text = format!(
                    "zramd does not take [{}] like this, so it became a comment: {why}",
                    section.name
                );
                self.warnings.push(Warning { file: section.file.clone(), line: section.line, text });
                let begin = format!("[{}] ", section.name);
                for row in self.table.iter_mut().filter(|row| row.is.starts_with(&begin)) {
                    row.is.clear();
                    "a comment, because zramd rejects its section".clone_into(&mut row.note);
                }
            }
            text.push('\n');
            text.push_str(&section.text());
        }
        let [refused, doubtful] = refused_and_doubtful(&text, ram_kib);
        let text_of = |(name, why)| (format!("zramd will not set [{name}] up: {why}"), name);
        let found = refused.into_iter().map(text_of).chain(doubtful.into_iter().map(|(key, why)| (why, key)));
        for (text, key) in found {
            let has_key = |section: &&Section| {
                key.strip_prefix(&section.name).is_some_and(|key| key.is_empty() || key.starts_with('.'))
            };
            if let Some(section) = self.sections.iter().find(has_key) {
                self.warnings.push(Warning { file: section.file.clone(), line: section.line, text });
            }
        }
        let place = |warning: &Warning| {
            let file = files.iter().position(|file| *file == warning.file);
            (file, warning.line)
        };
        self.warnings.sort_by_key(place);
        Imported {
            toml: text,
            is_empty: self.sections.is_empty(),
            rejected,
            table: self.table,
            warnings: self.warnings,
        }
    }
}

/// The first problem that zramd reports for a text.
fn problem(text: &str) -> Option<String> {
    let loaded = config::load(&[("imported".into(), text.to_owned())], "");
    loaded.problems.first().map(Finding::text)
}

/// A comment; control characters, which TOML does not allow there, are escaped.
fn comment(text: &str) -> String {
    let mut line = String::from("# ");
    for letter in text.chars() {
        if letter.is_control() {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    line.trim_end().to_owned()
}

/// A size in TOML: a whole number, or an expression as text.
pub fn size(text: &str) -> String {
    let plain = text.len() < 16 && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u64>() {
        Ok(number) if plain => number.to_string(),
        _ => quoted(text),
    }
}

/// A fraction of RAM in TOML.
pub fn float(value: f64) -> String {
    let text = value.to_string();
    if text.contains('.') { text } else { format!("{text}.0") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logic::overlay::list;

    #[test]
    fn text_survives_toml() {
        for text in ["a", "a\"b\\c", "/.żupan ci3pły", "a\nb\tc\u{7f}", "%%"] {
            let document = format!("[zram0]\nlabel = {}\n", quoted(text));
            let loaded = config::load(&[("f".into(), document)], "");
            let value = &loaded.merged.sections["zram0"].keys["label"].value;
            assert_eq!(*value, config::value::Value::String(text.to_owned()));
        }
        assert_eq!(list(&["a", "b"]), "[\"a\", \"b\"]");
        assert_eq!((size("9999"), size("007"), size("ram")), ("9999".into(), "7".into(), "\"ram\"".into()));
        for text in ["+5", "1000000000000000"] {
            assert_eq!(size(text), quoted(text));
        }
        assert_eq!(size("999999999999999"), "999999999999999");
        assert_eq!((float(0.1), float(1.0)), ("0.1".to_owned(), "1.0".to_owned()));
        assert_eq!(comment("a\nb "), "# a\\nb");
    }

    #[test]
    fn a_section_that_zramd_does_not_take_becomes_a_comment() {
        let mut draft = Draft::default();
        let mut good = Section::new("zram0", "/a".into(), Some(1));
        good.set("zram-size", "512");
        let mut bad = Section::new("zram1", "/a".into(), Some(5));
        bad.set("mode", "\"0755\"");
        draft.sections = vec![good, bad];
        let imported = draft.finish(Peer::ZramGenerator, &["/a".into()], None);
        assert_eq!(
            imported.toml,
            "# Imported from zram-generator:\n#   /a\n\n# /a:1\n[zram0]\nyield = true\nzram-size = 512\n\n# /a:5\n\
             # [zram1]\n# yield = true\n# mode = \"0755\"\n"
        );
        assert_eq!(imported.warnings.len(), 1);
        assert!(imported.warnings[0].text.contains("mount-point"));
        assert_eq!(config::load(&[("f".into(), imported.toml)], "").problems, []);
    }
}
