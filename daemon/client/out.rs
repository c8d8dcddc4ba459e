//! Results to standard output, which may be closed; messages to standard error.

use std::io::{ErrorKind, Write};

use serde::Serialize;

use super::args::Json;
use engine::Error;
use logic::text::worded;

/// Prints a result. A closed pipe (`list | head`) is not an error; a full disk is.
pub fn print(text: &str) -> Result<(), Error> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::failed(format!("cannot write the result: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a result as JSON, or as text.
pub fn result<T: Serialize>(form: Json, document: &T, text: impl FnOnce() -> String) -> Result<(), Error> {
    match form {
        Json::Off => print(&text()),
        Json::Pretty | Json::Short => print(&json(document, form)?),
    }
}

/// A document as JSON with a final line break.
pub fn json<T: Serialize>(document: &T, form: Json) -> Result<String, Error> {
    let text = match form {
        Json::Pretty => serde_json::to_string_pretty(document),
        Json::Short | Json::Off => serde_json::to_string(document),
    };
    text.map(|text| text + "\n").map_err(|error| Error::failed(format!("cannot write JSON: {error}")))
}

/// Text without control characters, escaped as in zramctl (`\x0a`); with `words`, blanks are escaped, too.
pub fn escaped(text: &str, words: bool) -> String {
    let breaks = |letter: char| letter.is_control() || (words && matches!(letter, ' ' | '\\'));
    text.chars()
        .map(
            |letter| {
                if breaks(letter) { format!("\\x{:02x}", u32::from(letter)) } else { letter.to_string() }
            },
        )
        .collect()
}

/// Prints one line; false if standard output is closed.
pub fn line(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    // Flushed after each line, so that readers of a pipe see events immediately.
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    // Other errors than a closed pipe do not end the command.
    !matches!(written, Err(error) if error.kind() == ErrorKind::BrokenPipe)
}

/// Prints an error.
pub fn error(text: &str) {
    note(&format!("error: {text}"));
}

/// Prints a note, which is no part of the result.
pub fn note(text: &str) {
    writeln!(std::io::stderr(), "{}", worded(text)).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_a_line() {
        assert_eq!(escaped("/mnt/a b\\c\n", true), "/mnt/a\\x20b\\x5cc\\x0a");
        assert_eq!(escaped("/mnt/a b\\c\x1b", false), "/mnt/a b\\c\\x1b");
    }
}
