//! Parses INI files of zram-generator and rpi-swap. Quotes, escapes and continuation lines are those of rust-ini 0.21.
//!
//! Lines that rust-ini loses or rejects (the line after an indented comment, a comment after a header) are read as
//! intended.

use std::path::{Path, PathBuf};

use super::Warning;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub file: PathBuf,
    /// Its line, counted from 1.
    pub line: usize,
    /// Its section, without brackets; `None` before the first one.
    pub section: Option<String>,
    /// The key; empty for the header of the section itself.
    pub key: String,
    /// The value, without quotes and trailing comment.
    pub value: String,
}

impl Setting {
    /// Whether it is a section header.
    pub fn is_header(&self) -> bool {
        self.key.is_empty()
    }

    /// Section and key: `[zram0] zram-size`.
    pub fn name(&self) -> String {
        match (&self.section, self.is_header()) {
            (Some(section), true) => format!("[{section}]"),
            (Some(section), false) => format!("[{section}] {}", self.key),
            (None, _) => self.key.clone(),
        }
    }

    /// Name and value: `[zram0] zram-size = ram`.
    pub fn text(&self) -> String {
        format!("{} = {}", self.name(), self.value)
    }
}

/// The settings of a file, and warnings about other lines.
pub fn read(file: &Path, text: &str) -> (Vec<Setting>, Vec<Warning>) {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let (mut settings, mut warnings, mut section) = (Vec::new(), Vec::new(), None);
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let mut line = line.trim().to_owned();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        // A backslash at the end joins lines; a double one is a literal backslash.
        while line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
            && let Some((_, next)) = lines.next()
        {
            line.pop();
            line.push_str(next);
        }
        let mut push = |section: &Option<String>, key: &str, value| {
            let (file, section, key) = (file.to_owned(), section.clone(), key.to_owned());
            settings.push(Setting { file, line: index + 1, section, key, value });
        };
        let mut rest = line.as_str();
        let mut problem = None;
        if let Some(header) = rest.strip_prefix('[') {
            let (name, behind) = header.split_once(']').unwrap_or_else(|| {
                problem = Some("there is no ] at the end of this header; it was read as if there were one");
                (header, "")
            });
            section = Some(name.trim().to_owned());
            push(&section, "", String::new());
            rest = behind.trim();
        }
        match rest.split_once(['=', ':']) {
            _ if rest.is_empty() || rest.starts_with(['#', ';']) => {}
            Some((key, raw)) if !key.trim().is_empty() => {
                // Comments are left to the shell.
                let (value, why) = value(raw, !key.starts_with("set!"));
                problem = problem.or(why);
                push(&section, key.trim(), value);
            }
            _ => problem = Some("this line is no setting; it was left out"),
        }
        if let Some(text) = problem {
            warnings.push(Warning { file: file.to_owned(), line: Some(index + 1), text: text.to_owned() });
        }
    }
    (settings, warnings)
}

/// A value without quotes and escapes, and what is wrong with it. A # or ; after a blank begins a comment.
fn value(raw: &str, has_comments: bool) -> (String, Option<&'static str>) {
    let mut value = String::new();
    let (mut quote, mut may_quote, mut is_behind_blank) = (None, true, true);
    let mut letters = raw.trim().chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', _) => value.push(match letters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                other => other.unwrap_or('\\'),
            }),
            (letter, Some(open)) if letter == open => quote = None,
            // Quotes are special only at the beginning; text after the closing quote is literal.
            ('"' | '\'', None) if may_quote => quote = Some(letter),
            ('#' | ';', None) if is_behind_blank && has_comments => {
                let why = "here a comment behind a value is part of the value; it was left out";
                return (value.trim_end().to_owned(), Some(why));
            }
            _ => value.push(letter),
        }
        may_quote = may_quote && (quote.is_some() || matches!(letter, '"' | '\''));
        is_behind_blank = letter.is_whitespace();
    }
    (
        value,
        quote.map(|_| "the quote in this line is not closed; it was read as if it were closed at the end"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str], warned: &[usize]) {
        let (settings, warnings) = read(Path::new("f"), text);
        let found: Vec<String> = settings
            .iter()
            .map(|setting| format!("{}: {} = {}", setting.line, setting.name(), setting.value))
            .collect();
        assert_eq!(found, expected, "{text:?}");
        let lines: Vec<usize> = warnings.iter().filter_map(|warning| warning.line).collect();
        assert_eq!(lines, warned, "{text:?}: {warnings:?}");
    }

    #[test]
    fn settings_are_read_as_by_the_original() {
        check(
            "\u{FEFF}# a\r\n[ zram0 ]\r\nzram-size = ram\r\n  swap-priority : 5\r\n\r\n;x\r\noptions=\r\n",
            &[
                "2: [zram0] = ",
                "3: [zram0] zram-size = ram",
                "4: [zram0] swap-priority = 5",
                "7: [zram0] options = ",
            ],
            &[],
        );
        check(
            "set!n = echo 4 # x\n[zram0] a=1",
            &["1: set!n = echo 4 # x", "2: [zram0] = ", "2: [zram0] a = 1"],
            &[],
        );
        check(
            "a = \"/a #b\" c\nb = 'x'\"y\"'z\nc = d\\\ne\\\\\nd = it's\\t\\#",
            &["1: a = /a #b c", "2: b = xyz", "3: c = de\\", "5: d = it's\t#"],
            &[2],
        );
    }

    #[test]
    fn what_the_original_loses_is_read_as_it_stands() {
        check(
            "stray\n[zram0] # one\n  # two\na = ram / 2 # half\nb = x ; y\nc = d#e\nd = # nothing\n= 5\n[zram1\ne=1",
            &[
                "2: [zram0] = ",
                "4: [zram0] a = ram / 2",
                "5: [zram0] b = x",
                "6: [zram0] c = d#e",
                "7: [zram0] d = ",
                "9: [zram1] = ",
                "10: [zram1] e = 1",
            ],
            &[1, 4, 5, 7, 8, 9],
        );
    }
}
