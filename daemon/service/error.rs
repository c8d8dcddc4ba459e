//! Errors as replies on the bus. Kinds and their names are in `logic/error.rs`.

use zbus::DBusError;
use zbus::message::{Header, Message};
use zbus::names::ErrorName;

pub use logic::error::ErrorKind;

/// An error that can be a reply on the bus.
#[derive(Debug, Clone)]
pub struct Error(pub logic::error::Error);

impl Error {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(logic::error::Error::new(kind, message))
    }
}

impl std::ops::Deref for Error {
    type Target = logic::error::Error;

    fn deref(&self) -> &logic::error::Error {
        &self.0
    }
}

impl From<logic::error::Error> for Error {
    fn from(error: logic::error::Error) -> Error {
        Error(error)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What methods return.
pub type Result<T> = std::result::Result<T, Error>;

impl From<zbus::Error> for Error {
    fn from(error: zbus::Error) -> Error {
        let named = |name: &str, text: Option<&str>| {
            let text = text.filter(|text| !text.is_empty()).unwrap_or(name);
            Error::new(ErrorKind::of_bus(name), text)
        };
        match &error {
            zbus::Error::MethodError(name, text, _) => named(name.as_str(), text.as_deref()),
            zbus::Error::FDO(known) => named(known.name().as_str(), known.description()),
            other => Error::new(ErrorKind::Failed, other.to_string()),
        }
    }
}

/// Maximum length in bytes of a message, which may contain input of the caller.
const LONGEST: usize = 4096;

/// The beginning of a text that is too long, with an ellipsis.
fn shortened(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let whole = text.char_indices().map(|(start, _)| start).take_while(|start| *start <= LONGEST).last();
    format!("{}…", &text[..whole.unwrap_or(0)])
}

impl zbus::DBusError for Error {
    fn create_reply(&self, call: &Header<'_>) -> zbus::Result<Message> {
        Message::error(call, self.name()).build(&shortened(&self.message))
    }

    fn name(&self) -> ErrorName<'_> {
        ErrorName::from_static_str_unchecked(self.kind.on_the_bus())
    }

    fn description(&self) -> Option<&str> {
        Some(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sentences_end_with_dots_between_two_letters() {
        assert_eq!(shortened("short"), "short");
        // One single-byte letter before two-byte letters puts the limit inside a letter.
        let text = shortened(&format!("x{}", "ä".repeat(LONGEST)));
        assert!(text.len() <= LONGEST + '…'.len_utf8() && text.ends_with("ä…"), "{text:.20}");
        assert_eq!(shortened(&"x".repeat(LONGEST)).len(), LONGEST);
    }
}
