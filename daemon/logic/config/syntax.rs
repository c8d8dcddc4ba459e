//! Mistakes of TOML syntax in our own words, from the text of the line.

use toml::de::DeTable;

use super::hint::{correction, meant_section};
use super::key::{Key, Type};
use super::schema::SectionKind;
use crate::finding::Finding;
use crate::origin::{Origin, Source};
use crate::text::nearest;

/// What is wrong with a line.
pub(super) struct Mistake<'a> {
    /// The part of the line.
    pub part: &'a str,
    /// Description.
    pub message: String,
    /// What to write.
    pub hint: String,
    /// The key in the line, if it is one of the section.
    pub key: &'a str,
    /// Whether it is text without quotation marks, as in the files of zram-generator.
    pub is_bare: bool,
}

impl<'a> Mistake<'a> {
    fn new(part: &'a str, message: impl Into<String>, hint: impl Into<String>) -> Mistake<'a> {
        Mistake { part, message: message.into(), hint: hint.into(), key: "", is_bare: false }
    }

    /// Its position.
    pub fn origin(&self, source: &Source<'_>, section: &str) -> Origin {
        let start = self.part.as_ptr() as usize - source.text.as_ptr() as usize;
        let place = if self.key.is_empty() { section.to_owned() } else { format!("{section}.{}", self.key) };
        source.origin(start..start + self.part.len(), place)
    }
}

/// The mistake of the line that begins at byte `start` and that the parser refuses; `None` if it is none of the usual ones.
pub(super) fn mistake<'a>(section: &str, source: &Source<'a>, start: usize) -> Option<Mistake<'a>> {
    let line = source.text[start..].split('\n').next()?.trim();
    let first = line.chars().next()?;
    if let Some(comment) = comment(line) {
        return Some(comment);
    }
    if DeTable::parse(line).is_ok() {
        return repeated(line, source, start);
    }
    match first {
        '[' => header(line),
        '{' => Some(Mistake::new(
            line,
            "this is neither a header nor an assignment",
            "write a header such as [zram0], and below it assignments such as zram-size = \"ram / 2\"",
        )),
        _ => {
            let name = line.split(['=', ':']).next()?.trim();
            let key = if key(section, name).is_some() { name } else { "" };
            other_form(line)
                .or_else(|| assignment(section, "", line))
                .map(|mistake| Mistake { key, ..mistake })
        }
    }
}

/// The mistake of the assignment in the line that begins at byte `start`: its value is not closed.
pub(super) fn unclosed(section: &str, source: &Source<'_>, start: usize, closing: &str) -> Option<Finding> {
    let line = source.text[start..].split('\n').next()?.trim();
    let (name, value) = line.split_once('=').map(|(name, value)| (name.trim(), value.trim()))?;
    let known = key(section, name);
    let mended = known.and_then(|(kind, key)| correction(kind, key, name, &format!("{value}{closing}")));
    let hint = mended.unwrap_or_else(|| format!("write {closing} behind it"));
    let key = if known.is_some() { name } else { "" };
    let mistake = Mistake { key, ..Mistake::new(value, format!("the closing {closing} is missing"), "") };
    Some(Finding::error(mistake.origin(source, section), mistake.message).remedy(hint))
}

/// A line of another syntax.
fn other_form(line: &str) -> Option<Mistake<'_>> {
    if let Some(at) = line.split(['#', '"', '\'']).next().and_then(|part| part.find('\u{a0}')) {
        let part = &line[at..at + '\u{a0}'.len_utf8()];
        return Some(Mistake::new(part, "there is a no-break space in the line", "write an ordinary blank"));
    }
    if line.starts_with("set!") {
        let hint = "`zramdctl import zram-generator --run-programs` translates a file of zram-generator";
        return Some(Mistake::new(line, "variables of zram-generator have no equivalent", hint));
    }
    let name = line.trim_matches(['<', '>']);
    SectionKind::of(name)?;
    Some(Mistake::new(line, "a header has square brackets", format!("write [{name}]")))
}

/// A comment as in files of other programs.
fn comment(line: &str) -> Option<Mistake<'_>> {
    let text = line.strip_prefix(';').or_else(|| line.strip_prefix("//"))?;
    Some(Mistake::new(line, "a comment begins with #", format!("write # {}", text.trim())))
}

/// A line that is correct by itself.
fn repeated<'a>(line: &'a str, source: &Source<'a>, start: usize) -> Option<Mistake<'a>> {
    let part = line.split(['=', '#']).next()?.trim();
    // `recompress = true` above [maintenance.recompress] is such a table, too.
    let table = match part.strip_prefix('[') {
        Some(header) => header.strip_suffix(']').and_then(|header| Some(header.rsplit_once('.')?.1)),
        None => part.rsplit_once('.').map(|(table, _)| table),
    };
    let mut above = source.text[..start].lines().rev();
    let name = |line: &'a str| line.split(['=', '#']).next().unwrap_or_default().trim();
    let other = above.find(|line| name(line) == part || Some(name(line)) == table)?;
    let place = format!("line {}", source.line(other.as_ptr() as usize - source.text.as_ptr() as usize));
    // `recompress = true` above `recompress.idle-age = "1h"`.
    if let Some(table) = table.filter(|table| name(other) == *table && !part.starts_with('[')) {
        let value = other.split_once('=')?.1.split('#').next()?.trim();
        let hint = format!("write {table}.enabled = {value} there");
        return Some(Mistake::new(part, format!("`{table}` is a value in {place}"), hint));
    }
    let (message, hint) = if name(other) == part && part.starts_with('[') {
        (format!("{part} is repeated"), format!("move its keys below the {part} in {place}"))
    } else {
        (format!("`{}` is assigned twice", name(other)), format!("keep one of them, here or in {place}"))
    };
    Some(Mistake::new(part, message, hint))
}

fn header(line: &str) -> Option<Mistake<'_>> {
    let Some((name, behind)) = line.split_once(']') else {
        let name = line.trim_start_matches('[').split([' ', '#', '=']).next()?;
        let hint = format!("write [{name}]");
        let hint = if SectionKind::of(name).is_some() { hint } else { meant_section(name) };
        return Some(Mistake::new(line, "the header has no closing ]", hint));
    };
    let behind = behind.trim_start_matches(']').trim();
    if let Some(comment) = comment(behind) {
        return Some(comment);
    }
    if !behind.is_empty() && !behind.starts_with('#') {
        let message = format!("`{behind}` is in the line of the header");
        return Some(Mistake::new(behind, message, "write it into the next line"));
    }
    let name = name.trim_start_matches('[');
    Some(Mistake::new(line, format!("[{name}] cannot be the header of a section"), meant_section(name)))
}

/// A key of the section, or of any section, if the section is unknown.
fn key(section: &str, name: &str) -> Option<(SectionKind, &'static Key)> {
    let find = |kind: SectionKind| {
        kind.key(name).or_else(|| kind.key(&format!("{name}.enabled"))).map(|key| (kind, key))
    };
    match SectionKind::of(section) {
        Some(kind) => find(kind),
        None => SectionKind::ALL.into_iter().rev().find_map(find),
    }
}

/// The number of these brackets that are open at the end of a value, without those in quotation marks and comments.
pub(super) fn depth(value: &str, [open, close]: [char; 2]) -> i64 {
    let mut depth = 0;
    for line in value.lines() {
        let mut quote = None;
        for letter in line.chars() {
            match quote {
                Some(other) => quote = quote.filter(|_| letter != other),
                None if letter == '#' => break,
                None if matches!(letter, '"' | '\'') => quote = Some(letter),
                None => depth += i64::from(letter == open) - i64::from(letter == close),
            }
        }
    }
    depth
}

/// What follows a value in its line; `hint` is how to write the line otherwise, if that is known.
fn after_value(behind: &str, hint: Option<String>) -> Option<Mistake<'_>> {
    let unexpected = |hint| Mistake::new(behind, format!("`{behind}` after the value is not expected"), hint);
    let second = behind.trim_start_matches([';', ',']).trim();
    if !second.is_empty() && !second.starts_with('#') && DeTable::parse(second).is_ok() {
        return Some(unexpected(format!("write it into the next line: {second}")));
    }
    comment(behind).or_else(|| hint.filter(|_| !behind.is_empty()).map(unexpected))
}

/// `key = value`, or what was meant as such.
fn assignment<'a>(section: &str, policy: &str, text: &'a str) -> Option<Mistake<'a>> {
    let separator = text.find(['=', ':']).unwrap_or(text.len());
    let (name, value) = (text[..separator].trim(), text[separator..].trim());
    let known = key(section, &format!("{policy}{name}"));
    let example = || {
        known.map_or("text needs quotation marks".to_owned(), |(_, key)| {
            format!("write for example {name} = {}", key.example)
        })
    };
    let mended = |text: &str| known.and_then(|(kind, key)| correction(kind, key, name, text));
    if name.is_empty() {
        return None;
    }
    let is_bare_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '"' | '\'');
    // `size "8MiB"`
    if separator == text.len()
        && let Some((first, value)) = name.split_once(char::is_whitespace)
        && let Some((kind, key)) = key(section, &format!("{policy}{first}"))
    {
        let hint =
            correction(kind, key, first, value).unwrap_or_else(|| format!("write {first} = {}", key.example));
        return Some(Mistake::new(first, format!("`{first}` is without ="), hint));
    }
    if !name.chars().all(is_bare_key) {
        let words = name.split_whitespace().collect::<Vec<_>>().join("-");
        let names =
            SectionKind::of(section).into_iter().flat_map(|kind| kind.keys().iter().map(|key| key.name));
        let meant = nearest(&words, names)?;
        return Some(Mistake::new(name, format!("`{name}` is no key"), format!("did you mean `{meant}`?")));
    }
    let Some(value) = value.strip_prefix('=') else {
        let written = value.strip_prefix(':');
        if written.is_none() && known.is_none() {
            return None;
        }
        let hint = written.and_then(mended).unwrap_or_else(example);
        let message = if written.is_some() { "followed by a colon instead of =" } else { "without a value" };
        return Some(Mistake::new(name, format!("`{name}` is {message}"), hint));
    };
    let value = value.trim_start();
    let before_comment = value.split('#').next()?.trim();
    let is_closed = |value| depth(value, ['[', ']']) == 0 && depth(value, ['{', '}']) == 0;
    match value.chars().next() {
        None | Some('#') => Some(Mistake::new(name, format!("`{name}` is without a value"), example())),
        Some(quote @ ('"' | '\'')) if !value[1..].starts_with(quote) => {
            let Some((inner, behind)) = value[1..].split_once(quote) else {
                let hint = mended(&value[1..]).unwrap_or_else(example);
                return Some(Mistake::new(value, format!("the closing {quote} is missing"), hint));
            };
            after_value(behind.trim(), mended(before_comment).or_else(|| mended(inner)))
        }
        Some('"' | '\'') => None,
        Some('[' | '{') if is_closed(value) && !before_comment.ends_with([']', '}']) => {
            let (_, behind) = before_comment.rsplit_once([']', '}'])?;
            after_value(behind.trim(), Some("end the line before it".to_owned()))
        }
        Some('[') if !before_comment.ends_with(']') => None,
        Some('{') => {
            let Some(inner) = before_comment.strip_prefix('{')?.strip_suffix('}') else {
                return Some(Mistake::new(value, "the closing } is missing", "write } behind it"));
            };
            let mut pairs = inner.split(',').map(str::trim).filter(|pair| DeTable::parse(pair).is_err());
            assignment(section, &format!("{policy}{name}."), pairs.next()?)
        }
        Some(_) => {
            let message = match known {
                Some((_, Key { kind: kind @ Type::Bool, .. })) => {
                    format!("expected {kind}, not {before_comment}")
                }
                _ => format!("`{before_comment}` is neither a number nor text in quotation marks"),
            };
            let hint = mended(value).unwrap_or_else(|| match known {
                // An example would be advice.
                Some((_, Key { kind: Type::Bool, .. })) => "there is no other value".to_owned(),
                _ => example(),
            });
            Some(Mistake { is_bare: true, ..Mistake::new(before_comment, message, hint) })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::fragment::read;
    use crate::finding::Finding;

    fn first(text: &str) -> Finding {
        read(Path::new("f"), text, 0).1.swap_remove(0)
    }

    #[test]
    fn a_list_or_text_that_may_have_more_lines_is_not_corrected() {
        for text in
            ["[zram0]\ncompression-algorithm = [zstd,\n  lz4,\n]\n", "[zram0]\nlabel = \"\"\"a\"\"\" b\n"]
        {
            assert_eq!(first(text).remedy, "", "{text}");
        }
    }

    #[test]
    fn a_table_in_a_line_needs_its_closing_bracket() {
        let problem = first("[maintenance]\npressure = { moderate = 30 severe = 40\n[zram0]\n");
        assert_eq!(problem.message, "the closing } is missing");
    }

    #[test]
    fn a_key_for_yes_or_no_gets_no_example() {
        assert_eq!(first("[zram0]\nenabled = maybe\n").remedy, "there is no other value");
    }

    #[test]
    fn only_the_no_break_space_is_underlined() {
        let place = first("[zram0]\nzram-size\u{a0}= 1024\n").place.unwrap();
        assert_eq!((place.column, place.width), (10, 1));
    }
}
