//! Files of zram-generator: what its parser makes of them, beside what their lines plainly say.
//!
//! Its parser ([`original`]) loses lines without a message (behind an indented comment, a line without `=`, an open quote), so the
//! lines are also read one by one; both views are compared, and each difference is a [`Warning`].

use std::path::{Path, PathBuf};

use super::Warning;
use super::original::{self, Entry, Fault};

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Where it is.
    pub file: PathBuf,
    /// Its line, counted from 1.
    pub line: usize,
    /// The section above it, without brackets; nothing before the first.
    pub section: Option<String>,
    /// The key; empty for the header of the section itself.
    pub key: String,
    /// The value as the original reads it, with whatever stands behind it.
    pub value: String,
    /// The value without a comment behind it, where there is one.
    pub without_comment: Option<String>,
    /// Whether the original sees it too.
    seen: bool,
}

impl Setting {
    /// Whether it is the header of a section.
    pub fn is_header(&self) -> bool {
        self.key.is_empty()
    }

    /// The section and key, as people write it: `[zram0] zram-size`.
    pub fn name(&self) -> String {
        match (&self.section, self.is_header()) {
            (Some(section), true) => format!("[{section}]"),
            (Some(section), false) => format!("[{section}] {}", self.key),
            (None, _) => self.key.clone(),
        }
    }
}

/// A line that makes the original lose something.
struct Culprit {
    line: usize,
    what: &'static str,
    remedy: &'static str,
    /// Worth a warning even when nothing is lost.
    always: bool,
}

/// What a file says, and where the original reads something else.
pub fn read(file: &Path, text: &str) -> (Vec<Setting>, Vec<Warning>) {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut reader = Reader { file, section: None, settings: Vec::new(), culprits: Vec::new() };
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let mut line = lines[at].to_owned();
        let number = at + 1;
        at += 1;
        // A backslash at the end joins lines, but not in comments.
        while continues(&line) && !line.starts_with(['#', ';']) && at < lines.len() {
            line.push('\n');
            line.push_str(lines[at]);
            at += 1;
        }
        reader.line(number, &line);
    }
    let warnings = reader.compare(text);
    (reader.settings, warnings)
}

fn continues(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

struct Reader<'a> {
    file: &'a Path,
    section: Option<String>,
    settings: Vec<Setting>,
    culprits: Vec<Culprit>,
}

impl Reader<'_> {
    fn line(&mut self, number: usize, line: &str) {
        let body = line.trim();
        if body.is_empty() || line.starts_with(['#', ';']) {
        } else if body.starts_with(['#', ';']) {
            let what = "zram-generator takes an indented comment and the line below it for one setting";
            self.culprit(number, what, "begin the comment in the first column", false);
        } else if let Some(rest) = body.strip_prefix('[') {
            self.header(number, rest);
        } else if let Some((key, value)) = body.split_once(['=', ':']) {
            self.assignment(number, key.trim(), value);
        } else {
            let what =
                "this line is no setting, and zram-generator takes it and all up to the next `=` for one";
            self.culprit(number, what, "take it out, or put a # before it", true);
        }
    }

    fn culprit(&mut self, line: usize, what: &'static str, remedy: &'static str, always: bool) {
        self.culprits.push(Culprit { line, what, remedy, always });
    }

    fn push(&mut self, line: usize, key: &str, value: String, without_comment: Option<String>) {
        self.settings.push(Setting {
            file: self.file.to_owned(),
            line,
            section: self.section.clone(),
            key: key.to_owned(),
            value,
            without_comment,
            seen: false,
        });
    }

    fn header(&mut self, number: usize, rest: &str) {
        let (name, behind) = match rest.split_once(']') {
            Some((name, behind)) => (name, behind.trim()),
            None => {
                let what = "this header has no ], and zram-generator takes all up to the next ] for its name";
                self.culprit(number, what, "close it with ]", true);
                (comment_start(rest).map_or(rest, |at| &rest[..at]), "")
            }
        };
        self.section = Some(name.trim().to_owned());
        self.push(number, "", String::new(), None);
        if behind.starts_with(['#', ';']) {
            let what = "zram-generator refuses a comment behind a header";
            self.culprit(number, what, "put the comment on a line of its own", true);
        } else if !behind.is_empty() {
            self.line(number, behind);
        }
    }

    fn assignment(&mut self, number: usize, key: &str, raw: &str) {
        if key.is_empty() {
            let what = "there is no key before the `=`";
            return self.culprit(number, what, "write one, or put a # before the line", true);
        }
        let Some(value) = value(raw) else {
            let what = "the quote at the beginning of this value is not closed, or a \\x is not followed by four digits";
            self.culprit(number, what, "close the quote, or write \\\\ for a backslash", true);
            let plain = comment_start(raw).map_or(raw, |at| &raw[..at]);
            return self.push(number, key, plain.trim().trim_matches(['"', '\'']).to_owned(), None);
        };
        let without_comment = comment_start(raw).and_then(|at| self::value(&raw[..at]));
        self.push(number, key, value, without_comment);
    }

    /// Marks what the original sees too, and says what it does not.
    fn compare(&mut self, text: &str) -> Vec<Warning> {
        let mut warnings = Vec::new();
        match original::parse(text) {
            Ok(entries) => self.mark(entries),
            Err(fault) => {
                warnings.push(self.unreadable(&fault));
                self.settings.iter_mut().for_each(|setting| setting.seen = true);
            }
        }
        for (index, culprit) in self.culprits.iter().enumerate() {
            let end = self.culprits.get(index + 1).map_or(usize::MAX, |next| next.line);
            let lost = self.lost(culprit.line, end);
            if lost.is_empty() && !culprit.always {
                continue;
            }
            let mut text = culprit.what.to_owned();
            if !lost.is_empty() {
                text.push_str(&format!(", so that it does not see {}, which was imported", lost.join(", ")));
            }
            text.push_str(&format!("; {}", culprit.remedy));
            warnings.push(Warning { file: self.file.to_owned(), line: Some(culprit.line), text });
        }
        let first = self.culprits.first().map_or(usize::MAX, |culprit| culprit.line);
        for setting in self.settings.iter().filter(|setting| !setting.seen && setting.line < first) {
            let text =
                format!("zram-generator does not see {}, which was imported as it stands", setting.name());
            warnings.push(Warning { file: self.file.to_owned(), line: Some(setting.line), text });
        }
        warnings
    }

    fn unreadable(&self, fault: &Fault) -> Warning {
        let (line, why) = match self.culprits.first() {
            Some(culprit) => (culprit.line, String::new()),
            None => (fault.line, format!(" ({})", fault.what)),
        };
        let text = format!(
            "zram-generator cannot read this file{why} and so sets up no device at all; it was imported as far as it can be \
             understood"
        );
        Warning { file: self.file.to_owned(), line: Some(line), text }
    }

    fn mark(&mut self, mut theirs: Vec<Entry>) {
        for setting in &mut self.settings {
            let same = |(section, key, value): &Entry| {
                *section == setting.section && *key == setting.key && *value == setting.value
            };
            if let Some(at) = theirs.iter().position(same) {
                theirs.remove(at);
                setting.seen = true;
            }
        }
    }

    /// What the original does not see of the lines from `start` on.
    fn lost(&self, start: usize, end: usize) -> Vec<String> {
        let between = |setting: &&Setting| !setting.seen && (start..end).contains(&setting.line);
        self.settings.iter().filter(between).map(Setting::name).collect()
    }
}

/// A value as the original reads it: quotes and escapes taken out.
fn value(raw: &str) -> Option<String> {
    let entries = original::parse(&format!("key={raw}\n")).ok()?;
    entries.into_iter().find(|(section, key, _)| section.is_none() && key == "key").map(|(_, _, value)| value)
}

/// Where a comment begins behind a value: a `#` or `;` behind a blank, outside of quotes.
fn comment_start(raw: &str) -> Option<usize> {
    let mut quote = None;
    let (mut at_start, mut escaped, mut blank) = (true, false, true);
    for (at, letter) in raw.char_indices() {
        if escaped {
            (escaped, blank) = (false, false);
            continue;
        }
        match (letter, quote) {
            ('\\', _) => escaped = true,
            (letter, Some(open)) => quote = Some(open).filter(|open| *open != letter),
            // Only a value that begins with a quote is a quoted one.
            ('"' | '\'', None) if at_start => quote = Some(letter),
            ('#' | ';', None) if blank => return Some(at),
            _ => {}
        }
        blank = letter.is_whitespace();
        at_start = at_start && blank;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let (settings, warnings) = super::read(Path::new("f"), text);
        let settings = settings.iter().map(|setting| {
            let value = setting.without_comment.as_ref().unwrap_or(&setting.value);
            format!("{}: {} = {value}", setting.line, setting.name())
        });
        let warnings = warnings.iter().map(|w| format!("{}: {}", w.line.unwrap_or(0), w.text));
        (settings.collect(), warnings.collect())
    }

    fn check(text: &str, settings: &[&str], warnings: &[&str]) {
        let (found, told) = read(text);
        assert_eq!(found, settings, "{text:?}");
        assert_eq!(told.len(), warnings.len(), "{told:#?}");
        for (told, expected) in told.iter().zip(warnings) {
            for part in expected.split('|') {
                assert!(told.contains(part), "{told} does not say {part}");
            }
        }
    }

    #[test]
    fn what_the_original_reads_well_needs_no_warning() {
        check(
            "\u{FEFF}# a\r\n[ zram0 ]\r\nzram-size = ram\r\n  swap-priority : 5\r\n\r\n;x\r\noptions=\r\n",
            &[
                "2: [zram0] = ",
                "3: [zram0] zram-size = ram",
                "4: [zram0] swap-priority = 5",
                "7: [zram0] options = ",
            ],
            &[],
        );
        check("set!n = echo 4\n[zram0]\n", &["1: set!n = echo 4", "2: [zram0] = "], &[]);
    }

    #[test]
    fn quotes_and_escapes_are_those_of_the_original() {
        check(
            "[zram1]\nmount-point = \"/a b\"\nfs-type = 'ext4'x\noptions = a\\\nb\n",
            &[
                "1: [zram1] = ",
                "2: [zram1] mount-point = /a b",
                "3: [zram1] fs-type = ext4x",
                "4: [zram1] options = ab",
            ],
            &[],
        );
    }

    #[test]
    fn comments_behind_values_are_found() {
        for (raw, expected) in [
            ("ram / 2 # half", Some("ram / 2")),
            ("zstd ; fast", Some("zstd")),
            ("\"/a #b\" # c", Some("/a #b")),
            ("\"/a #b\"", None),
            ("a#b", None),
            ("# nothing", Some("")),
            ("it's # so", Some("it's")),
            ("a \\# b", None),
        ] {
            let (settings, _) = super::read(Path::new("f"), &format!("k = {raw}\n"));
            assert_eq!(settings[0].without_comment.as_deref(), expected, "{raw}");
        }
    }

    #[test]
    fn an_indented_comment_does_not_hide_the_line_below() {
        check(
            "[zram0]\n  # half\nzram-size = ram\nswap-priority = 5\n",
            &["1: [zram0] = ", "3: [zram0] zram-size = ram", "4: [zram0] swap-priority = 5"],
            &["2: |does not see [zram0] zram-size,|first column"],
        );
        check("[zram0]\n  # a = b\nzram-size = ram\n", &["1: [zram0] = ", "3: [zram0] zram-size = ram"], &[]);
    }

    #[test]
    fn a_stray_line_does_not_hide_what_follows() {
        check(
            "stray\n[zram0]\nzram-size = ram\nswap-priority = 5\n",
            &["2: [zram0] = ", "3: [zram0] zram-size = ram", "4: [zram0] swap-priority = 5"],
            &["1: |does not see [zram0], [zram0] zram-size, [zram0] swap-priority,|take it out"],
        );
        check("[zram0]\nstray\n", &["1: [zram0] = "], &["2: |cannot read", "2: this line is no setting"]);
    }

    #[test]
    fn headers_are_mended() {
        check(
            "[zram0] # first\nzram-size = ram\n",
            &["1: [zram0] = ", "2: [zram0] zram-size = ram"],
            &["1: |cannot read", "1: |comment behind a header"],
        );
        check(
            "[zram0\nzram-size = ram\n[zram1]\n",
            &["1: [zram0] = ", "2: [zram0] zram-size = ram", "3: [zram1] = "],
            &["1: |no ]|does not see [zram0], [zram0] zram-size, [zram1]"],
        );
        check("[zram0] zram-size = ram\n", &["1: [zram0] = ", "1: [zram0] zram-size = ram"], &[]);
    }

    #[test]
    fn an_open_quote_ends_with_its_line() {
        check(
            "[zram0]\nmount-point = \"/a\nfs-type = ext4\n",
            &["1: [zram0] = ", "2: [zram0] mount-point = /a", "3: [zram0] fs-type = ext4"],
            &["2: |cannot read", "2: |not closed"],
        );
        check("= 5\n[zram0]\n", &["2: [zram0] = "], &["1: |cannot read", "1: |no key"]);
    }
}
