//! Results as text or JSON. All output is that of [`host::out`].

use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::args::Json;
use engine::Error;
use logic::text::shown;

pub use host::out::{
    data, end_page, error, forward, has_terminal, is_open, line, notes_have_terminal, page, question, text,
};

/// `--quiet`.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on, prints neither notices nor what a change has done.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a notice.
pub fn note(text: &str) {
    if !is_quiet() {
        host::out::note(text);
    }
}

/// Prints what a change has done.
pub fn done(text: &str) {
    if !is_quiet() {
        line(text);
    }
}

/// Writes a result as JSON, or as text.
pub fn result<T: Serialize>(form: Json, document: &T, shown: impl FnOnce() -> String) -> Result<(), Error> {
    match form {
        Json::Off => text(&shown()),
        Json::Pretty | Json::Short => data(&json(document, form)?),
    }
    Ok(())
}

/// A document as JSON with a final line break.
pub fn json<T: Serialize>(document: &T, form: Json) -> Result<String, Error> {
    let text = match form {
        Json::Pretty => serde_json::to_string_pretty(document),
        Json::Short | Json::Off => serde_json::to_string(document),
    };
    text.map(|text| text + "\n").map_err(|error| Error::failed(format!("cannot write JSON: {error}")))
}

/// Text without hidden characters, escaped as in zramctl (`\x0a`); with `words`, blanks are escaped, too.
pub fn escaped(text: &str, words: bool) -> String {
    if words { shown(text.replace('\\', "\\x5c").replace(' ', "\\x20")) } else { shown(text) }
}

/// Asks a question on standard error. The end of standard input is a no.
pub fn agreed(asked: &str) -> Result<bool, Error> {
    let mut answer = String::new();
    question(&format!("\n{asked} [y/N] "));
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|error| Error::failed(format!("cannot read the answer: {error}")))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
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
