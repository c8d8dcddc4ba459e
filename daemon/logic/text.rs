//! Texts for people: sentences in errors, findings and reports. No decision depends on them.
//!
//! They pass through [`worded`] on their way into these types. In debug builds a test has every letter replaced there
//! (`tests/texts.rs`), and nothing else may change.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(debug_assertions)]
static REPLACED: AtomicBool = AtomicBool::new(false);

/// From now on, other letters are shown.
#[cfg(debug_assertions)]
pub fn replace_letters() {
    REPLACED.store(true, Ordering::Relaxed);
}

/// A text as people see it.
pub fn worded(text: impl Into<String>) -> String {
    #[cfg(debug_assertions)]
    if REPLACED.load(Ordering::Relaxed) {
        return text.into().chars().map(next).collect();
    }
    text.into()
}

/// The fifth letter after this one: a text that passes here twice does not become itself again.
#[cfg(debug_assertions)]
fn next(letter: char) -> char {
    let base = match letter {
        'a'..='z' => b'a',
        'A'..='Z' => b'A',
        _ => return letter,
    };
    // A letter is one byte, and stays below 128.
    u8::try_from(letter).map_or(letter, |byte| char::from(base + (byte - base + 5) % 26))
}

/// The known word that is nearest to `word`, if one is near.
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
