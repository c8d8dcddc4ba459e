//! What is wrong with a configuration, as data: where, what, and what to write instead.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::finding::Code;
use crate::text::worded;

/// Where a value was written: the last assignment that won.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Origin {
    /// The file as it was opened; empty for a built-in default, `/proc/cmdline` for the kernel command line.
    pub file: PathBuf,
    /// Line, counted from 1; 0 when there is none.
    pub line: u32,
    /// Column in characters, counted from 1; 0 when there is none.
    pub column: u32,
    /// `section.key`, for example `zram0.zram-size`; only the section when a whole section is meant.
    pub key: String,
    /// The line itself, for messages that underline the place.
    pub source_line: String,
    /// How many characters to underline, at least 1 when there is a line.
    pub width: u32,
}

impl Origin {
    /// The place of a span of bytes in the text of a file.
    pub fn at(file: &Path, text: &str, span: Range<usize>, key: impl Into<String>) -> Origin {
        let start = floor_boundary(text, span.start);
        let end = floor_boundary(text, span.end.max(start));
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        // A place behind the line is shown at its end, and a line of Windows ends before its carriage return.
        let source_line = &text[line_start..line_end];
        let source_line = source_line.strip_suffix('\r').unwrap_or(source_line);
        let line_end = line_start + source_line.len();
        let start = start.min(line_end);
        let count = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        Origin {
            file: file.to_owned(),
            line: count_lines(&text[..line_start]) + 1,
            column: count(&text[line_start..start]) + 1,
            key: key.into(),
            source_line: source_line.to_owned(),
            width: count(&text[start..end.clamp(start, line_end)]).max(1),
        }
    }

    /// The same place, narrowed to a part of it: `skip` characters in, `width` characters wide.
    #[must_use]
    pub fn part(&self, skip: u32, width: u32) -> Origin {
        let width = width.min(self.width.saturating_sub(skip)).max(1);
        Origin { column: self.column + skip, width, ..self.clone() }
    }
}

fn count_lines(text: &str) -> u32 {
    u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX)
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// How bad a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The setting is used, or ignored without harm.
    Warning,
    /// The section (or the file, for a syntax error) is not used.
    Error,
}

/// One finding. Reported all at once, never only the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    pub origin: Origin,
    /// What is wrong: one sentence, lower case, no full stop.
    pub message: String,
    /// What to write instead, when that is known.
    pub hint: Option<String>,
    /// Another object that it is about, such as a swap of another program; otherwise empty.
    pub about: String,
    /// What it is as a finding about that object, when it is more than a mistake in the configuration.
    #[serde(skip)]
    pub code: Option<Code>,
}

impl Problem {
    /// Something that makes its section or file unusable.
    pub fn error(origin: Origin, message: impl Into<String>) -> Problem {
        Problem {
            severity: Severity::Error,
            origin,
            message: worded(message),
            hint: None,
            about: String::new(),
            code: None,
        }
    }

    /// Something that is ignored.
    pub fn warning(origin: Origin, message: impl Into<String>) -> Problem {
        Problem {
            severity: Severity::Warning,
            origin,
            message: worded(message),
            hint: None,
            about: String::new(),
            code: None,
        }
    }

    /// Adds another object that it is about.
    #[must_use]
    pub fn about(mut self, object: impl Into<String>) -> Problem {
        self.about = object.into();
        self
    }

    /// Adds what it is as a finding.
    #[must_use]
    pub fn code(mut self, code: Code) -> Problem {
        self.code = Some(code);
        self
    }

    /// Adds what to write instead.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(worded(hint));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters() {
        let text = "a = 1\nż = \"x\" # c\r\nlast";
        let at = text.find("\"x\"").unwrap();
        let origin = Origin::at(Path::new("f"), text, at..at + 3, "k");
        assert_eq!((origin.line, origin.column, origin.width), (2, 5, 3));
        assert_eq!(origin.source_line, "ż = \"x\" # c");
        let crlf = Origin::at(Path::new("f"), "a\r\r\n", 1..4, "k");
        assert_eq!((crlf.column, crlf.width, crlf.source_line.as_str()), (2, 1, "a\r"));
        let behind = Origin::at(Path::new("f"), "a\r\n", 2..3, "k");
        assert_eq!((behind.line, behind.column, behind.width), (1, 2, 1));
        let end = Origin::at(Path::new("f"), text, text.len()..text.len() + 9, "k");
        assert_eq!((end.line, end.column, end.width), (3, 5, 1));
    }
}
