//! The place of a value in the configuration.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Position of a value: of the assignment that takes precedence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Place"))]
pub struct Origin {
    /// Path of the file; empty for a built-in default, `/proc/cmdline` for the kernel command line.
    pub file: PathBuf,
    /// Line, counted from 1; 0 without one.
    pub line: u32,
    /// Column in characters, counted from 1; 0 without one.
    pub column: u32,
    /// `section.key`, for example `zram0.zram-size`; for a whole section, only its name.
    pub key: String,
    /// The text of the line, for messages that underline the position.
    #[serde(skip)]
    pub source_line: String,
    /// Number of characters to underline; at least 1 if there is a line.
    #[serde(skip)]
    pub width: u32,
}

impl Origin {
    /// The position of a range of bytes in the text of a file.
    pub fn at(file: &Path, text: &str, span: Range<usize>, key: impl Into<String>) -> Origin {
        let start = floor_boundary(text, span.start);
        let end = floor_boundary(text, span.end.max(start));
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        // A position beyond the line is shown at its end, before the carriage return of a Windows line.
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

    /// `FILE:LINE`, or the file where there is no line.
    pub fn place(&self) -> String {
        match self.line {
            0 => self.file.display().to_string(),
            line => format!("{}:{line}", self.file.display()),
        }
    }

    /// Narrows the position to `width` characters, starting after `skip`.
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
