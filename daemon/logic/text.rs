//! Texts for people: messages in errors, findings and reports. No decision depends on them.
//!
//! Types store the result of [`worded`]. In debug builds, a test makes it replace all letters (`tests/thorough/texts.rs`),
//! which must not change anything else.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(debug_assertions)]
static REPLACED: AtomicBool = AtomicBool::new(false);

/// From now on, letters are replaced.
#[cfg(debug_assertions)]
pub fn replace_letters() {
    REPLACED.store(true, Ordering::Relaxed);
}

/// A text as shown to people.
pub fn worded(text: impl Into<String>) -> String {
    #[cfg(debug_assertions)]
    if REPLACED.load(Ordering::Relaxed) {
        return text.into().chars().map(next).collect();
    }
    text.into()
}

/// The fifth letter after this one, so that replacing twice does not restore the text.
#[cfg(debug_assertions)]
fn next(letter: char) -> char {
    let base = match letter {
        'a'..='z' => b'a',
        'A'..='Z' => b'A',
        _ => return letter,
    };
    // A letter is one byte below 128.
    u8::try_from(letter).map_or(letter, |byte| char::from(base + (byte - base + 5) % 26))
}

/// The known word most similar to `word`, if any is similar enough.
pub fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let word = word.to_ascii_lowercase().replace('_', "-");
    known
        .map(|other| (strsim::damerau_levenshtein(&word, other), other))
        .filter(|(distance, other)| *distance <= (other.len() / 4).max(1))
        .min()
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_replaced_and_nothing_else() {
        assert_eq!(worded("zram0: Übung"), "zram0: Übung");
        assert_eq!("zram0: Zz 1/2 ü".chars().map(next).collect::<String>(), "ewfr0: Ee 1/2 ü");
    }
}
