//! What is wrong with a configuration, as data: where, what, and what to write instead.

use std::path::PathBuf;

use serde::Serialize;

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
}
