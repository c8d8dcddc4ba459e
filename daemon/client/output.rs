//! Results to standard output, messages to standard error.

use std::io::{ErrorKind, Write};

use serde::Serialize;

use super::args::Json;
use crate::engine::Error;

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

/// Says what went wrong, in one line. Nobody is left to tell when that fails.
pub fn error(message: &str) {
    writeln!(std::io::stderr(), "error: {message}").ok();
}

/// Says what is worth knowing and no part of the result.
pub fn note(message: &str) {
    writeln!(std::io::stderr(), "{message}").ok();
}
