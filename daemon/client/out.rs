//! Results to standard output, for readers that may go away; messages to standard error.

use std::io::{ErrorKind, Write};

use serde::Serialize;

use super::args::Json;
use engine::Error;
use logic::text::worded;

/// Writes a result. A closed pipe (`list | head`) is the reader's wish, not our failure; a full disk is one.
pub fn print(text: &str) -> Result<(), Error> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::failed(format!("cannot write the result: {error}")))
        }
        _ => Ok(()),
    }
}

/// A document as JSON text that ends with a line break.
pub fn json<T: Serialize>(document: &T, form: Json) -> Result<String, Error> {
    let text = match form {
        Json::Pretty => serde_json::to_string_pretty(document),
        Json::Short | Json::Off => serde_json::to_string(document),
    };
    text.map(|text| text + "\n").map_err(|error| Error::failed(format!("cannot write JSON: {error}")))
}

/// Text that cannot break the line that it is in, written `\x0a` as zramctl does; with `words`, it is one word too.
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

/// One line of progress; false when the output is closed.
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
