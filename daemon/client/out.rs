//! Standard output, for readers that may go away.

use std::io::{ErrorKind, Write};

/// One line of result; false when nobody reads any more.
pub fn line(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    // Flushed line by line, so that a program that reads a pipe sees events as they happen.
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    // A closed pipe (`plan | head`) is the reader's wish; other trouble is no reason to stop either.
    !matches!(written, Err(error) if error.kind() == ErrorKind::BrokenPipe)
}

/// Says what went wrong.
pub fn error(text: &str) {
    note(&format!("error: {text}"));
}

/// Says what is worth knowing and no part of the result.
pub fn note(text: &str) {
    writeln!(std::io::stderr(), "{text}").ok();
}
