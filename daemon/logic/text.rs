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

/// Text that a terminal shows as it is: control characters, and those that change the direction of text, are written as `\x1b`
/// or `\u202e`. Line breaks and tabs stay, and the colours and emphasis of our own messages.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_hidden) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let letter = found.chars().next().unwrap_or_default();
        let length = if let Some(length) = emphasis(found) {
            out.push_str(&found[..length]);
            length
        } else {
            out.push_str(&visible(letter));
            letter.len_utf8()
        };
        rest = &found[length..];
    }
    out.push_str(rest);
    out
}

/// What comes from elsewhere, such as a name, as a part of a line: also without line breaks, tabs and emphasis. It can neither begin a line
/// that could be taken for one of ours, nor hide what follows.
pub fn shown(text: impl Into<String>) -> String {
    let text = text.into();
    let hides = |letter: char| letter.is_control() || is_hidden(letter);
    if !text.contains(hides) {
        return text;
    }
    text.chars().map(|letter| if hides(letter) { visible(letter) } else { letter.to_string() }).collect()
}

/// `\x1b` or `\u202e`.
fn visible(letter: char) -> String {
    let code = u32::from(letter);
    if letter.is_ascii() { format!("\\x{code:02x}") } else { format!("\\u{code:04x}") }
}

/// Control characters, and those of Unicode that reorder text or break lines.
fn is_hidden(letter: char) -> bool {
    (letter.is_control() && !matches!(letter, '\n' | '\t'))
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Length of the sequence at the start of `text` that sets a colour or emphasis (ECMA-48, SGR). Those that hide text, such as
/// "concealed", are not accepted.
fn emphasis(text: &str) -> Option<usize> {
    let text = text.strip_prefix("\x1b[")?;
    let (codes, rest) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit() && letter != ';')?);
    let is_harmless = |code: &str| matches!(code.parse(), Ok(0..=4 | 22..=24 | 31..=36 | 39 | 91..=96));
    let is_ours = rest.starts_with('m') && (codes.is_empty() || codes.split(';').all(is_harmless));
    is_ours.then_some(codes.len() + "\x1b[m".len())
}

/// What a word says, of those that systemd accepts: 1, yes, y, true, t, on, or the opposite, in any case.
pub fn truth(word: &str) -> Option<bool> {
    let is_any = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
    match () {
        () if is_any(&["1", "yes", "y", "true", "t", "on"]) => Some(true),
        () if is_any(&["0", "no", "n", "false", "f", "off"]) => Some(false),
        () => None,
    }
}

/// The known word most similar to `word`, if any is similar enough: one typing error for each four letters. Case does not count, nor which of `_` and `-` it is.
pub fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let folded = |word: &str| word.to_lowercase().replace('_', "-");
    let word = folded(word);
    let letters = word.chars().count();
    let most = |other: &str| (other.len() / 4).max(1);
    known
        // Words of another length differ at least by that: most need no comparison.
        .filter(|other| letters.abs_diff(other.chars().count()) <= most(other))
        .map(|other| (strsim::damerau_levenshtein(&word, &folded(other)), other))
        .filter(|(distance, other)| *distance <= most(other))
        .min()
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_typing_error_for_each_four_letters_is_similar() {
        let known = ["ram", "MemoryUsedBytes", "zram-size", "swap_priority"];
        for (word, meant) in [
            ("rma", Some("ram")),
            ("rm", Some("ram")),
            ("r", None),
            ("memoryusdbyte", Some("MemoryUsedBytes")),
            ("ZRAM_SISE", Some("zram-size")),
            ("swap-priorty", Some("swap_priority")),
            ("ramdisk", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known.into_iter()), meant, "{word}");
        }
    }

    #[test]
    fn words_for_yes_and_no_are_those_of_systemd() {
        for (word, expected) in [
            ("1", Some(true)),
            ("On", Some(true)),
            ("t", Some(true)),
            ("NO", Some(false)),
            ("0", Some(false)),
            ("", None),
            ("2", None),
            ("none", None),
        ] {
            assert_eq!(truth(word), expected, "{word}");
        }
    }

    #[test]
    fn a_terminal_shows_hidden_characters() {
        for (text, shown) in [
            ("zram0: Übung\n\tx", "zram0: Übung\n\tx"),
            ("\x1b]0;title\x07\x1b[2J\r\x7f", "\\x1b]0;title\\x07\\x1b[2J\\x0d\\x7f"),
            ("\u{9b}2J\u{202e}cod.\u{2066}", "\\u009b2J\\u202ecod.\\u2066"),
            ("\x1b[1;31mx\x1b[0m\x1b[my", "\x1b[1;31mx\x1b[0m\x1b[my"),
            ("\x1b[8mx\x1b[1;8mx\x1b[30m\x1b[38;5;0m", "\\x1b[8mx\\x1b[1;8mx\\x1b[30m\\x1b[38;5;0m"),
            ("\x1b[1", "\\x1b[1"),
            ("\x1b", "\\x1b"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }

    #[test]
    fn a_name_stays_in_its_line_and_has_no_colours() {
        for (text, expected) in [
            ("/srv/Übung a\\b", "/srv/Übung a\\b"),
            ("a\nerror: b\tc", "a\\x0aerror: b\\x09c"),
            ("\x1b[31mred\x1b[0m\u{202e}", "\\x1b[31mred\\x1b[0m\\u202e"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn letters_are_replaced_and_nothing_else() {
        assert_eq!(worded("zram0: Übung"), "zram0: Übung");
        assert_eq!("zram0: Zz 1/2 ü".chars().map(next).collect::<String>(), "ewfr0: Ee 1/2 ü");
    }
}
