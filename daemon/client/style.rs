//! Colours.

use super::args::Colour;
use super::out;

/// Whether and how text is emphasised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    colour: bool,
}

impl Style {
    /// With colours or without.
    pub const fn new(colour: bool) -> Style {
        Style { colour }
    }

    /// For standard output.
    pub fn stdout(when: Colour) -> Style {
        Style::new(wanted(when, out::has_terminal()))
    }

    /// For standard error.
    pub fn stderr(when: Colour) -> Style {
        Style::new(wanted(when, out::notes_have_terminal()))
    }

    /// Whether there are colours.
    pub const fn has_colour(self) -> bool {
        self.colour
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Headlines.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Less important text.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Good states.
    pub fn good(self, text: &str) -> String {
        self.paint("1;32", text)
    }

    pub fn warning(self, text: &str) -> String {
        self.paint("1;33", text)
    }

    pub fn error(self, text: &str) -> String {
        self.paint("1;31", text)
    }
}

/// Whether to use colours: on request, or on a terminal that supports them, unless disabled by the user.
///
/// Source: <https://no-color.org>: any value that is not empty counts.
fn wanted(when: Colour, terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match when {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => {
            terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_only_where_they_are_wanted() {
        assert_eq!(Style::new(true).error("x"), "\x1b[1;31mx\x1b[0m");
        let plain = Style::default();
        for text in [plain.bold("x"), plain.dim("x"), plain.good("x"), plain.warning("x"), plain.error("x")] {
            assert_eq!(text, "x");
        }
        assert!(wanted(Colour::Always, false));
        assert!(!wanted(Colour::Never, true));
        assert!(!wanted(Colour::Auto, false));
    }
}
