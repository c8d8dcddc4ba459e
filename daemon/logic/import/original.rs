//! The INI format as zram-generator reads it. Source: rust-ini 0.21, `Parser`, with its default options.

use std::str::Chars;

/// A header, with an empty key and value, or a setting.
pub type Entry = (Option<String>, String, String);

/// Why nothing of a file is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: &'static str,
}

/// All headers and settings, in their order, with the section that each belongs to.
pub fn parse(text: &str) -> Result<Vec<Entry>, Fault> {
    let mut parser = Parser { letter: None, rest: text.chars(), line: 1, column: 0 };
    parser.next();
    let (mut entries, mut section, mut key) = (Vec::new(), None, String::new());
    while let Some(letter) = parser.letter {
        match letter {
            '#' | ';' if parser.column > 1 => {
                return parser.fail("a comment does not begin in the first column");
            }
            '#' | ';' => parser.skip_line(),
            '[' => parser.header(&mut section, &mut entries)?,
            '=' | ':' if key.is_empty() => return parser.fail("there is no key"),
            '=' | ':' => entries.push((section.clone(), std::mem::take(&mut key), parser.value()?)),
            ' ' | '\t' => {
                while matches!(parser.letter, Some(' ' | '\t')) {
                    parser.next();
                }
                match parser.letter {
                    Some('[') => parser.header(&mut section, &mut entries)?,
                    Some('\n' | '\r') => {
                        parser.next();
                        continue;
                    }
                    // Behind a blank, what is no key is passed over.
                    _ => {
                        if let Ok(text) = parser.until(&['=', ':'], false) {
                            key = text.trim().to_owned();
                        }
                    }
                }
            }
            '\n' | '\r' => parser.next(),
            _ => key = parser.until(&['=', ':'], false)?.trim().to_owned(),
        }
        parser.skip_blanks();
    }
    Ok(entries)
}

struct Parser<'a> {
    letter: Option<char>,
    rest: Chars<'a>,
    line: usize,
    column: usize,
}

impl Parser<'_> {
    fn next(&mut self) {
        self.letter = self.rest.next();
        match self.letter {
            Some('\n') => (self.line, self.column) = (self.line + 1, 0),
            Some(_) => self.column += 1,
            None => {}
        }
    }

    fn fail<T>(&self, what: &'static str) -> Result<T, Fault> {
        Err(Fault { line: self.line, what })
    }

    fn skip_line(&mut self) {
        while let Some(letter) = self.letter {
            self.next();
            if letter == '\n' {
                break;
            }
        }
    }

    /// Skips blanks and empty lines, but not the blanks at the beginning of a line with something on it.
    fn skip_blanks(&mut self) {
        while let Some(letter) = self.letter.filter(|letter| letter.is_whitespace()) {
            self.next();
            if matches!(letter, '\n' | '\r') && matches!(self.letter, Some(' ' | '\t')) {
                break;
            }
        }
    }

    fn header(&mut self, section: &mut Option<String>, entries: &mut Vec<Entry>) -> Result<(), Fault> {
        self.next();
        *section = Some(self.until(&[']'], false)?.trim().to_owned());
        self.next();
        entries.push((section.clone(), String::new(), String::new()));
        Ok(())
    }

    /// What stands behind a `=`: quoted parts, then the rest of the line.
    fn value(&mut self) -> Result<String, Fault> {
        self.next();
        while self.letter.is_some_and(|letter| letter.is_whitespace() && !matches!(letter, '\n' | '\r')) {
            self.next();
        }
        let mut value = String::new();
        let mut quoted = false;
        while let Some(quote @ ('"' | '\'')) = self.letter {
            self.next();
            value.push_str(&self.until(&[quote], false)?);
            self.next();
            quoted = true;
        }
        let rest = self.until(&['\n', '\r'], true)?;
        value.push_str(if quoted { rest.trim_end() } else { rest.trim() });
        Ok(value)
    }

    /// The text before one of these letters, or before the end if that is allowed, with its escapes resolved.
    fn until(&mut self, ends: &[char], or_end: bool) -> Result<String, Fault> {
        let mut text = String::new();
        loop {
            match self.letter {
                None if or_end => return Ok(text),
                None => return self.fail("the file ends within a quote, a header or a key"),
                Some(letter) if ends.contains(&letter) => return Ok(text),
                Some('\\') => {
                    self.next();
                    match self.letter {
                        None => {
                            text.push('\\');
                            continue;
                        }
                        // The next line continues this one.
                        Some('\n') => {}
                        Some('x') => text.push(self.code_point()?),
                        Some('0') => text.push('\0'),
                        Some('a') => text.push('\x07'),
                        Some('b') => text.push('\x08'),
                        Some('t') => text.push('\t'),
                        Some('r') => text.push('\r'),
                        Some('n') => text.push('\n'),
                        Some(letter) => text.push(letter),
                    }
                }
                Some(letter) => text.push(letter),
            }
            self.next();
        }
    }

    /// Four hexadecimal digits.
    fn code_point(&mut self) -> Result<char, Fault> {
        const WHAT: &str = "a \\x is not followed by the four digits of a letter";
        let mut digits = String::new();
        for _ in 0..4 {
            self.next();
            let Some(letter) = self.letter else { return self.fail(WHAT) };
            if letter == '\\' {
                self.next();
                if self.letter != Some('\n') {
                    return self.fail(WHAT);
                }
            }
            digits.push(letter);
        }
        match u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32) {
            Some(letter) => Ok(letter),
            None => self.fail(WHAT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(section: Option<&str>, key: &str, value: &str) -> Entry {
        (section.map(str::to_owned), key.to_owned(), value.to_owned())
    }

    #[test]
    fn texts_are_read_as_by_the_original() {
        for (text, expected) in [
            ("", vec![]),
            (
                "a=1\n[s]\nb : 2",
                vec![entry(None, "a", "1"), entry(Some("s"), "", ""), entry(Some("s"), "b", "2")],
            ),
            ("a = \"b #\" c\n", vec![entry(None, "a", "b # c")]),
            ("a = 'b'\"c\" \n", vec![entry(None, "a", "bc")]),
            ("a = b # c\n", vec![entry(None, "a", "b # c")]),
            ("a = b\\\n c\\t\n", vec![entry(None, "a", "b c")]),
            ("a = \\x0041\\\\\n", vec![entry(None, "a", "A\\")]),
            ("[ s ]a=1", vec![entry(Some("s"), "", ""), entry(Some("s"), "a", "1")]),
            ("stray\na=1\n", vec![entry(None, "stray\na", "1")]),
            (" # x\na=1\n", vec![entry(None, "# x\na", "1")]),
            ("a=\n stray", vec![entry(None, "a", "")]),
            ("  [s]\n\t\r\n", vec![entry(Some("s"), "", "")]),
        ] {
            assert_eq!(parse(text).as_ref(), Ok(&expected), "{text:?}");
        }
        for (text, line) in [
            ("=1", 1),
            ("a\n", 2),
            ("\n[s\n", 3),
            ("a='\n", 2),
            ("a=\\x12", 1),
            ("a=\\xd800\n", 1),
            ("[s] # x", 1),
        ] {
            assert_eq!(parse(text).map_err(|fault| fault.line), Err(line), "{text:?}");
        }
    }
}
