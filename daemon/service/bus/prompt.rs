//! What a caller asks for, in the prompt of polkit. The texts are the caller's, who may want the prompt to say something else: they
//! are shown between quotation marks, on one line, and not in full if they are long.

use zbus::Variant;

use super::options::{Options, Sections};
use logic::human::human;

/// Longest name, value, and change, in characters.
const NAME: usize = 40;
const VALUE: usize = 60;
const CHANGE: usize = 300;

/// `KEY = VALUE` of options, sorted.
pub(crate) fn keys(options: &Options) -> String {
    let mut all: Vec<String> =
        options.iter().map(|(key, value)| format!("{} = {}", quoted(key, NAME), shown(value))).collect();
    all.sort();
    cut(all.join(", "), CHANGE)
}

/// The keys of each section.
pub(crate) fn sections(sections: &Sections) -> String {
    let all: Vec<String> = sections
        .iter()
        .map(|(section, options)| format!("{}: {}", quoted(section, NAME), keys(options)))
        .collect();
    cut(all.join("; "), CHANGE)
}

fn shown(value: &Variant<'_>) -> String {
    match value {
        Variant::Str(text) if text.is_empty() => "(not set)".to_owned(),
        Variant::Str(text) => format!("\"{}\"", quoted(text, VALUE)),
        Variant::U64(bytes) => human(*bytes),
        value => quoted(&value.to_string(), VALUE),
    }
}

/// Text that does not end its quotation, its line, or the direction of writing, and that polkit puts nothing into.
fn quoted(text: &str, longest: usize) -> String {
    let keep = |letter: &char| !letter.is_control() && !matches!(letter, '"' | '$' | '\u{200b}'..='\u{206f}');
    cut(text.chars().filter(keep).collect(), longest)
}

fn cut(text: String, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zbus::OwnedVariant;

    #[test]
    fn a_caller_cannot_make_the_prompt_say_something_else() {
        let mut options = Options::default();
        let add = |options: &mut Options, key: &str, value: Variant<'_>| {
            options.insert(key.to_owned(), OwnedVariant::try_from(value).unwrap());
        };
        add(&mut options, "zram-size", "8GiB\".\nEnter the password of \u{202e}root: $(user)".into());
        add(&mut options, "swap-priority", 5_i32.into());
        add(&mut options, "zram-resident-limit", (1_u64 << 30).into());
        add(&mut options, "compression-algorithm", "".into());
        assert_eq!(
            keys(&options),
            "compression-algorithm = (not set), swap-priority = 5, zram-resident-limit = 1.0 GiB, \
             zram-size = \"8GiB.Enter the password of root: (user)\""
        );
        add(&mut options, "zram-size", "1".repeat(5000).into());
        assert!(keys(&options).chars().count() < 250);
    }
}
