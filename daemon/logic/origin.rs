//! The place of a value in the configuration.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    pub source_line: Arc<str>,
    /// The column, as a number of bytes before it.
    #[serde(skip)]
    pub offset: usize,
    /// Number of characters to underline; at least 1 if there is a line.
    #[serde(skip)]
    pub width: u32,
}

impl Origin {
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
        Origin { column: self.column + skip, width, offset: self.behind(skip), ..self.clone() }
    }

    /// The byte of the line that is this number of characters behind the column.
    pub fn behind(&self, characters: u32) -> usize {
        let mut rest = self.source_line[self.offset..].char_indices();
        rest.nth(characters as usize).map_or(self.source_line.len(), |(at, _)| self.offset + at)
    }
}

/// A file of the configuration with a table of its lines: a position costs the same everywhere in it.
pub struct Source<'a> {
    pub file: &'a Path,
    pub text: &'a str,
    /// Where each line begins, and its text without the line end.
    lines: Vec<(usize, Arc<str>)>,
    /// The bytes that begin no character: columns are counted in characters.
    continuations: Vec<usize>,
}

impl<'a> Source<'a> {
    pub fn new(file: &'a Path, text: &'a str) -> Source<'a> {
        let mut lines = Vec::new();
        let mut begin = 0;
        for line in text.split('\n') {
            lines.push((begin, line.strip_suffix('\r').unwrap_or(line).into()));
            begin += line.len() + 1;
        }
        let continuations = (0..text.len()).filter(|at| !text.is_char_boundary(*at)).collect();
        Source { file, text, lines, continuations }
    }

    /// The position of a range of bytes.
    pub fn origin(&self, span: Range<usize>, key: impl Into<String>) -> Origin {
        let start = floor_boundary(self.text, span.start);
        let end = floor_boundary(self.text, span.end.max(start));
        let number = self.line(start);
        let (line_start, source_line) = &self.lines[number - 1];
        // A position beyond the line is shown at its end, before the carriage return of a Windows line.
        let line_end = line_start + source_line.len();
        let start = start.min(line_end);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Origin {
            file: self.file.to_owned(),
            line: count(number),
            column: count(self.characters(*line_start..start)) + 1,
            key: key.into(),
            source_line: source_line.clone(),
            offset: start - line_start,
            width: count(self.characters(start..end.clamp(start, line_end))).max(1),
        }
    }

    /// The number of the line with byte `at`, counted from 1.
    pub fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|(begin, _)| *begin <= at)
    }

    fn characters(&self, bytes: Range<usize>) -> usize {
        let continued = |end: usize| self.continuations.partition_point(|at| *at < end);
        bytes.len() - (continued(bytes.end) - continued(bytes.start))
    }
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
        let origin = Source::new(Path::new("f"), text).origin(at..at + 3, "k");
        assert_eq!((origin.line, origin.column, origin.width), (2, 5, 3));
        assert_eq!(&*origin.source_line, "ż = \"x\" # c");
        let crlf = Source::new(Path::new("f"), "a\r\r\n").origin(1..4, "k");
        assert_eq!((crlf.column, crlf.width, &*crlf.source_line), (2, 1, "a\r"));
        let behind = Source::new(Path::new("f"), "a\r\n").origin(2..3, "k");
        assert_eq!((behind.line, behind.column, behind.width), (1, 2, 1));
        let end = Source::new(Path::new("f"), text).origin(text.len()..text.len() + 9, "k");
        assert_eq!((end.line, end.column, end.width), (3, 5, 1));
    }

    #[test]
    fn a_position_within_a_letter_is_that_of_the_letter() {
        let origin = Source::new(Path::new("f"), "aż").origin(2..2, "k");
        assert_eq!((origin.column, origin.width, origin.offset), (2, 1, 1));
    }
}
