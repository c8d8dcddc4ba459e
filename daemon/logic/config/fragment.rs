//! Contents of one file: sections, keys and values with their positions. Checks TOML syntax only.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::hint;
use super::schema::{POLICIES, SectionKind};
use super::syntax;
use super::value::Value;
use crate::finding::Finding;
use crate::origin::{Origin, Source};
use crate::text::worded;

/// Contents of one file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fragment {
    /// Sections by name: `zram0`, `defaults`, `ramdisk.logs`.
    pub sections: BTreeMap<String, Section>,
    /// Sections of this file that are unusable because of syntax errors.
    pub broken: BTreeSet<String>,
    /// What could be read of them, in which further mistakes are looked for.
    pub damaged: BTreeMap<String, Section>,
}

/// A section of one file, or of all files after merging.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// Position of its name.
    pub origin: Origin,
    pub keys: BTreeMap<String, Assignment>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    pub value: Value,
    /// Position of the value.
    pub origin: Origin,
    /// Position of the key.
    pub key_origin: Origin,
    /// Index of the file in reading order; higher takes precedence.
    pub file: usize,
}

struct Reader<'a> {
    source: Source<'a>,
    index: usize,
    problems: Vec<Finding>,
}

/// What mistakes of syntax cost.
#[derive(Default)]
struct Lost {
    /// Sections that cannot be used.
    sections: BTreeSet<String>,
    /// Whether the whole file cannot be used.
    file: bool,
    /// Lines with text without quotation marks.
    bare: Vec<u32>,
    /// Where the lines with mistakes begin.
    seen: BTreeSet<usize>,
}

/// How often a file is read, each time without the lines whose mistakes are known.
const READS: usize = 8;

/// Parses one file; `index` is its position in reading order.
pub fn read(file: &Path, text: &str, index: usize) -> (Fragment, Vec<Finding>) {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut reader = Reader { source: Source::new(file, text), index, problems: Vec::new() };
    let mut lost = Lost::default();
    let mut rest = Cow::Borrowed(text);
    let mut reads = 0;
    loop {
        let gaps = {
            let (document, errors) = DeTable::parse_recoverable(&rest);
            reads += 1;
            lost.file |= reads == READS && !errors.is_empty();
            if errors.is_empty() || lost.file {
                return reader.finish(document.get_ref(), lost);
            }
            let errors =
                errors.into_iter().map(|error| (error.span().unwrap_or(0..0), error.message().to_owned()));
            reader.mistakes(&places(document.get_ref()), errors.collect(), &mut lost)
        };
        let mut left = rest.into_owned().into_bytes();
        for gap in gaps {
            gap.close(&mut left);
        }
        // Gaps begin and end at lines, so whole characters are replaced.
        rest = Cow::Owned(String::from_utf8(left).unwrap_or_default());
    }
}

/// Lines that are left out when a file is read again.
struct Gap {
    lines: Range<usize>,
    /// A name that is assigned there outside of a section.
    outside: String,
}

impl Gap {
    fn new(lines: Range<usize>) -> Gap {
        Gap { lines, outside: String::new() }
    }

    /// Replaces the lines by blanks, and by the name if there is room: positions stay the same.
    fn close(&self, text: &mut [u8]) {
        let Some(lines) = text.get_mut(self.lines.clone()) else { return };
        lines.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        let assignment = format!("{}=0", self.outside);
        if let Some(place) = lines.get_mut(..assignment.len())
            && !self.outside.is_empty()
            && !place.contains(&b'\n')
        {
            place.copy_from_slice(assignment.as_bytes());
        }
    }
}

/// Start of each header and key of a section, and the section; sorted.
fn places(document: &DeTable<'_>) -> Vec<(usize, String)> {
    let mut places = Vec::new();
    let mut add = |section: &str, start: usize, table: &DeTable<'_>| {
        let starts = table.keys().map(|key| key.span().start).chain([start]);
        places.extend(starts.map(|start| (start, section.to_owned())));
    };
    for (name, value) in document {
        let DeValue::Table(keys) = value.get_ref() else { continue };
        add(name.get_ref(), name.span().start, keys);
        for (disk, value) in keys.iter().filter(|_| name.get_ref() == "ramdisk") {
            if let DeValue::Table(keys) = value.get_ref() {
                add(&format!("ramdisk.{}", disk.get_ref()), disk.span().start, keys);
            }
        }
    }
    places.sort_by_key(|(start, _)| *start);
    places
}

/// Adds a further hint, as shown to people.
fn add_hint(problem: &mut Finding, hint: &str) {
    let separator = if problem.remedy.is_empty() { "" } else { "; " };
    problem.remedy.push_str(&format!("{separator}{hint}"));
}

/// Whether a line is a header, or was meant as one.
fn is_header(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('[') || SectionKind::of(line.trim_matches(['<', '>'])).is_some()
}

/// The section of a header, even if that is not correct.
fn section_of_header(line: &str) -> Option<String> {
    let line = line.trim();
    let parsed = DeTable::parse(line).ok();
    let first = |table: &DeTable<'_>| table.iter().next().map(|(name, _)| name.get_ref().to_string());
    let name = match parsed.as_ref().map(Spanned::get_ref) {
        Some(table) => match (first(table)?, table.values().next()?.get_ref()) {
            (name, DeValue::Table(inner)) if name == "ramdisk" => format!("{name}.{}", first(inner)?),
            (name, _) => name,
        },
        None => line.trim_matches(['[', '<', '>']).split([']', ' ', '#', '=']).next()?.to_owned(),
    };
    let mut name = name.as_str();
    while SectionKind::of(name).is_none() {
        name = name.rsplit_once('.')?.0;
    }
    Some(name.to_owned())
}

impl<'a> Reader<'a> {
    fn origin(&self, span: Range<usize>, key: impl Into<String>) -> Origin {
        self.source.origin(span, key)
    }

    /// Reports what the parser does not accept, once per line, and returns the lines without which the rest can be read.
    fn mistakes(
        &mut self,
        places: &[(usize, String)],
        mut errors: Vec<(Range<usize>, String)>,
        lost: &mut Lost,
    ) -> Vec<Gap> {
        errors.sort_by_key(|(span, _)| span.start);
        let mut gaps: Vec<Gap> = Vec::new();
        for (span, message) in errors {
            let start = self.line_start(span.start);
            if gaps.last().is_some_and(|gap| start < gap.lines.end) {
                continue;
            }
            let line = self.line(start);
            let before = places.partition_point(|(place, _)| *place <= span.start);
            let place = places[..before].last();
            if let Some((at, section)) = place
                && let Some(closing) = self.unclosed(self.line_start(*at), start, span.start)
            {
                // What is below it was read as a part of it.
                let opened = self.line_start(*at);
                lost.sections.insert(section.clone());
                self.problems.extend(syntax::unclosed(section, &self.source, opened, closing));
                gaps.push(Gap::new(opened..self.end_of_value(opened)));
                break;
            }
            if !lost.seen.insert(start) {
                // What is in its place is refused, too.
                gaps.push(Gap::new(start..start + line.len()));
                continue;
            }
            let is_header = is_header(line);
            let section = match place {
                Some((_, section)) if !is_header => section.clone(),
                _ => String::new(),
            };
            let found = syntax::mistake(&section, &self.source, start);
            let number = self.source.line(start);
            let mut problem = match found {
                Some(mistake) => {
                    lost.bare.extend(mistake.is_bare.then(|| u32::try_from(number).unwrap_or(u32::MAX)));
                    let problem = Finding::error(mistake.origin(&self.source, &section), mistake.message);
                    problem.remedy(mistake.hint)
                }
                None => Finding::error(self.origin(span, section.clone()), message.replace('\n', "; ")),
            };
            // Text of another kind: JSON, or the list of a shell.
            lost.file |= section.is_empty() && !is_header && line.trim_start().starts_with(['{', '(']);
            if lost.file {
                add_hint(&mut problem, &worded("the whole file is ignored until this is fixed"));
                self.problems.push(problem);
                break;
            }
            self.problems.push(problem);
            lost.sections.extend(if is_header {
                section_of_header(line)
            } else {
                Some(section.clone()).filter(|section| !section.is_empty())
            });
            // With a header, all that is below it is lost.
            let behind = if is_header {
                self.source.text[start..].find("\n[").map_or(self.source.text.len(), |at| start + at)
            } else {
                start + line.len()
            };
            let begin = place.map_or(start, |(at, _)| self.begin_of_text(self.line_start(*at), start));
            let outside = match line.split_once(['=', ':']) {
                Some((name, _)) if section.is_empty() && !is_header => name.trim().to_owned(),
                _ => String::new(),
            };
            gaps.push(Gap { lines: begin..behind, outside });
        }
        gaps
    }

    /// Start of the text of several lines that is assigned in line `opened` and ends in line `start`; otherwise `start`.
    fn begin_of_text(&self, opened: usize, start: usize) -> usize {
        if is_text_open(self.line(opened)) { opened } else { start }
    }

    /// What is missing if the value that is assigned in line `opened` is not closed before line `start`, which is an assignment or
    /// header, or before the end of the file. `at` is the place of the error.
    fn unclosed(&self, opened: usize, start: usize, at: usize) -> Option<&'static str> {
        let line = self.line(opened);
        let is_end = self.source.text.get(at..).is_none_or(|rest| rest.trim().is_empty());
        if is_text_open(line) {
            return is_end.then_some(if line.contains("\"\"\"") { "\"\"\"" } else { "'''" });
        }
        let is_complete = || DeTable::parse(self.line(start)).is_ok();
        let (_, value) = line.split_once('=')?;
        if !(is_end || opened < start && is_complete()) {
            return None;
        }
        let end = if opened == start { start + line.len() } else { start };
        let value = &self.source.text[opened + line.len() - value.len()..end];
        match value.trim_start().chars().next()? {
            '[' if syntax::depth(value, ['[', ']']) > 0 => Some("]"),
            '{' if syntax::depth(value, ['{', '}']) > 0 => Some("}"),
            _ => None,
        }
    }

    /// The end of the line above the next header or assignment, for a value that begins in line `opened` and is not closed.
    fn end_of_value(&self, opened: usize) -> usize {
        let mut end = opened + self.line(opened).len();
        while let Some(below) = self.source.text[end..].find('\n').map(|at| end + at + 1) {
            let line = self.line(below);
            if !line.trim().is_empty() && DeTable::parse(line).is_ok() {
                break;
            }
            end = below + line.len();
        }
        end
    }

    /// The line that begins at this byte.
    fn line(&self, start: usize) -> &'a str {
        let line = self.source.text[start..].split('\n').next().unwrap_or_default();
        line.strip_suffix('\r').unwrap_or(line)
    }

    fn line_start(&self, at: usize) -> usize {
        let before = self.source.text.as_bytes().get(..at).unwrap_or(self.source.text.as_bytes());
        before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
    }

    /// The contents that could be read, and all problems.
    fn finish(mut self, document: &DeTable<'_>, lost: Lost) -> (Fragment, Vec<Finding>) {
        let syntax = std::mem::take(&mut self.problems);
        let mut fragment = self.sections(document);
        // The problem of each line; the first, if it has several.
        let mut known = BTreeMap::new();
        for (index, problem) in self.problems.iter().enumerate() {
            known.entry(problem.line()).or_insert(index);
        }
        for problem in syntax {
            match known.get(&problem.line()) {
                // A key outside of a section.
                Some(index) if !problem.remedy.is_empty() => {
                    add_hint(&mut self.problems[*index], &problem.remedy);
                }
                _ => {
                    known.entry(problem.line()).or_insert(self.problems.len());
                    self.problems.push(problem);
                }
            }
        }
        let import = format!(
            "`zramdctl import zram-generator {}` translates a file of zram-generator",
            self.source.file.display()
        );
        if let [first, _, ..] = lost.bare[..]
            && !self.source.text.contains('"')
            && let Some(index) = known.get(&first)
        {
            add_hint(&mut self.problems[*index], &worded(import));
        }
        fragment.broken.extend(lost.sections);
        let sections = std::mem::take(&mut fragment.sections);
        if !lost.file {
            let is_used = |name: &String| !fragment.broken.contains(name);
            (fragment.sections, fragment.damaged) = sections.into_iter().partition(|(name, _)| is_used(name));
        }
        (fragment, self.problems)
    }

    /// The problem of keys that stand outside of a section; one for all.
    fn outside(&mut self, mut keys: Vec<(Range<usize>, String)>, section: &str) {
        keys.sort_by_key(|(span, _)| span.start);
        let Some((span, first)) = keys.first().cloned() else { return };
        let names: Vec<&str> = keys.iter().map(|(_, name)| name.as_str()).collect();
        let verb = if names.len() == 1 { "stands" } else { "stand" };
        let (what, hint) = match (section, SectionKind::of(&first)) {
            ("", None) => ("section", hint::sections_for(&names)),
            ("", Some(_)) => ("section", format!("write [{first}], and its keys below it")),
            _ => ("RAM disk", "give the RAM disk a name: [ramdisk.NAME]".to_owned()),
        };
        let message = format!("{} {verb} outside of a {what}", hint::listed(&names));
        let origin = self.origin(span, if section.is_empty() { &first } else { section });
        self.problems.push(Finding::error(origin, message).remedy(hint));
    }

    fn sections(&mut self, document: &DeTable<'_>) -> Fragment {
        let mut fragment = Fragment::default();
        let mut outside = Vec::new();
        for (name, value) in document {
            let section = name.get_ref().to_string();
            match value.get_ref() {
                DeValue::Table(disks) if section == "ramdisk" => {
                    let mut outside = Vec::new();
                    for (disk, value) in disks {
                        let full = format!("ramdisk.{}", disk.get_ref());
                        match value.get_ref() {
                            DeValue::Table(keys) => {
                                let section = self.section(&full, disk.span(), keys);
                                fragment.sections.insert(full, section);
                            }
                            _ => {
                                fragment.broken.insert(full);
                                outside.push((disk.span(), disk.get_ref().to_string()));
                            }
                        }
                    }
                    self.outside(outside, "ramdisk");
                }
                DeValue::Table(keys) => {
                    let read = self.section(&section, name.span(), keys);
                    fragment.sections.insert(section, read);
                }
                DeValue::Array(_) if self.source.text[..name.span().start].trim_end().ends_with("[[") => {
                    let origin = self.origin(name.span(), section.clone());
                    let message = format!("`{section}` stands outside of a section");
                    let problem = Finding::error(origin, message);
                    let name = if section == "ramdisk" { "ramdisk.NAME" } else { &section };
                    self.problems.push(problem.remedy(format!("write [{name}], with single brackets")));
                    fragment.broken.insert(section);
                }
                _ => {
                    outside.push((name.span(), section.clone()));
                    fragment.broken.insert(section);
                }
            }
        }
        self.outside(outside, "");
        fragment
    }

    fn section(&self, name: &str, span: Range<usize>, table: &DeTable<'_>) -> Section {
        let mut keys = BTreeMap::new();
        self.keys(name, "", table, &mut keys);
        Section { origin: self.origin(span, name), keys }
    }

    /// The assignments of a table. In `[maintenance]`, keys of a policy are prefixed with its name and a dot;
    /// `recompress = true` and `recompress = {}` are `recompress.enabled = true`.
    fn keys(&self, name: &str, prefix: &str, table: &DeTable<'_>, keys: &mut BTreeMap<String, Assignment>) {
        for (key, value) in table {
            let policy = name == "maintenance" && POLICIES.contains(&key.get_ref().as_ref());
            let empty = matches!(value.get_ref(), DeValue::Table(inner) if inner.is_empty());
            let short = match value.get_ref() {
                DeValue::Table(_) if !empty => format!("{prefix}{}", key.get_ref()),
                _ if policy => format!("{}.enabled", key.get_ref()),
                _ => format!("{prefix}{}", key.get_ref()),
            };
            let full = format!("{name}.{short}");
            let nested = match value.get_ref() {
                DeValue::Table(inner) if policy && prefix.is_empty() => Some(inner),
                _ => None,
            };
            let value_read = match nested {
                Some(inner) if !inner.is_empty() => {
                    self.keys(name, &format!("{short}."), inner, keys);
                    continue;
                }
                Some(_) => Value::Boolean(true),
                None => self.value(value, &full),
            };
            let assignment = Assignment {
                value: value_read,
                origin: self.origin(value.span(), &full),
                key_origin: self.origin(key.span(), &full),
                file: self.index,
            };
            keys.insert(short, assignment);
        }
    }

    fn value(&self, value: &Spanned<DeValue<'_>>, key: &str) -> Value {
        match value.get_ref() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or(Value::Other("a number that is too large"), |parsed| {
                    Value::Integer(parsed, number.radix() == 8)
                }),
            DeValue::Float(number) => number.as_str().parse().map_or(Value::Other("a number"), Value::Float),
            DeValue::Boolean(value) => Value::Boolean(*value),
            DeValue::Datetime(_) => Value::Other("a date"),
            DeValue::Array(values) => Value::Array(
                values.iter().map(|item| (self.value(item, key), self.origin(item.span(), key))).collect(),
            ),
            DeValue::Table(_) => Value::Other("a table"),
        }
    }
}

/// Whether text of several lines begins in this line, and does not end in it.
fn is_text_open(line: &str) -> bool {
    ["\"\"\"", "'''"].iter().any(|quotes| line.matches(quotes).count() % 2 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(text: &str) -> (Vec<String>, usize) {
        let (fragment, problems) = read(Path::new("f"), text, 0);
        (fragment.sections.into_keys().collect(), problems.len())
    }

    #[test]
    fn a_syntax_error_disables_its_own_section_only() {
        let (names, problems) =
            sections("[zram0]\nzram-size = \n[zram1]\nzram-size = 5\n[ramdisk.a]\nsize = 1\n");
        assert_eq!((names, problems), (vec!["ramdisk.a".to_owned(), "zram1".to_owned()], 1));
    }

    #[test]
    fn a_broken_header_disables_its_section_only() {
        for (text, usable, broken, count) in [
            ("[zram0]\nzram-size = 5\n[zram1\nswap-priority = 5\n", &["zram0"][..], &["zram1"][..], 1),
            ("[zram0]\n[zram0\n", &[], &["zram0"], 1),
            ("[zram0]\n[zram1]\n[zram0]\nzram-size = 5\n", &["zram1"], &["zram0"], 1),
            ("[zram0\n[zram1]\n[zram1]\n[zram2\n", &[], &["zram0", "zram1", "zram2"], 3),
            ("[vm]\n<zram0>\nzram-size = 5\n[zram1]\n", &["vm", "zram1"], &["zram0"], 1),
            ("[maintenance]\n[maintenance.recompress\na = 1\n[vm]\n", &["vm"], &["maintenance"], 1),
            ("[ramdisk.a]\n[[ramdisk.b]\n[vm]\n", &["ramdisk.a", "vm"], &["ramdisk.b"], 1),
            ("zram-size = 1\n[zram0\nzram-size = 2\n", &[], &["zram-size", "zram0"], 2),
            ("[ramdisk.a]\n[ramdisk.b]\n[ramdisk.a]\n", &["ramdisk.b"], &["ramdisk.a"], 1),
            ("[zram0\nzram-size =\n[zram1]\n", &["zram1"], &["zram0"], 1),
        ] {
            let (fragment, problems) = read(Path::new("f"), text, 0);
            assert_eq!(fragment.sections.into_keys().collect::<Vec<_>>(), usable, "{text}");
            assert_eq!(fragment.broken.into_iter().collect::<Vec<_>>(), broken, "{text}");
            assert_eq!(problems.len(), count, "{text}{problems:?}");
        }
    }

    #[test]
    fn a_mistake_costs_its_line_and_what_is_left_is_read() {
        for (text, keys) in [
            ("[zram0]\na = \"x\nb = 1\n", &["b"][..]),
            ("[zram0]\na = [\"x\", \"y\"\nb = 1\n[zram1]\n", &["b"]),
            ("[zram0]\na = [\n  \"x\",\n  y,\n]\nb = 1\n", &["a", "b"]),
            ("[zram0]\na = [\n  \"x\",\nb = 1\nc = 2\n", &["b", "c"]),
            ("[zram0]\na = { x = 1\nb = 1\n", &["b"]),
            ("[zram0]\na = \"\"\"x\nb = 1\n[zram1]\n", &["b"]),
            ("[zram0]\na = [1, 2", &[]),
            ("[zram0]\r\na = \"ż\r\nb = 1\r\n", &["b"]),
            ("[zram0]\r\na = [\r\n  1,\r\nb = 1\r\n", &["b"]),
            ("[zram0]\na = [\"x]\", \"y\"\nb = 1\n[zram1]\n", &["b"]),
            ("[zram0]\na = [1, # ]\nb = 1\n", &["b"]),
        ] {
            let (mut fragment, problems) = read(Path::new("f"), text, 0);
            assert_eq!(problems.len(), 1, "{text}{problems:?}");
            assert_eq!(fragment.broken.into_iter().collect::<Vec<_>>(), ["zram0"], "{text}");
            let section = fragment.damaged.remove("zram0").unwrap();
            assert_eq!(section.keys.into_keys().collect::<Vec<_>>(), keys, "{text}");
            assert_eq!(fragment.sections.len(), usize::from(text.contains("zram1")), "{text}");
        }
    }

    #[test]
    fn a_file_of_another_kind_is_not_used() {
        for text in ["{\"zram0\": {}}\n[zram1]\n", "(\n[zram1]\n"] {
            assert_eq!(sections(text), (Vec::new(), 1), "{text}");
        }
        // Each reading finds one of these, and there are more.
        let text = (0..20).map(|number| format!("[zram{number}]\na = [\n")).collect::<Vec<_>>().concat();
        let (fragment, problems) = read(Path::new("f"), &text, 0);
        assert_eq!((fragment.sections.len(), problems.len()), (0, READS - 1));
    }

    #[test]
    fn any_number_of_lines_with_mistakes_is_found_in_one_reading() {
        let text = (0..20).map(|number| format!("[zram{number}]\na = x y\n")).collect::<Vec<_>>().concat();
        assert_eq!(sections(&(text + "[zram20]\n")), (vec!["zram20".to_owned()], 20));
    }

    #[test]
    fn a_mistake_disables_the_section_it_is_in_however_that_is_written() {
        for text in [
            "[zram0]\n[zram0.sub]\nx = \n[zram1]\n",
            "['zram0']\nzram-size = \n[zram1]\n",
            "[\"zram\\u0030\"]\nzram-size = \n[zram1]\n",
            "[zram0]\nlabel = \"\"\"\n[zram1]\n\"\"\" x\n[zram1]\n",
            "[zram0]\n[zram1]\n[zram0.sub]\nx = \n",
            "zram0.zram-size = \n[zram1]\n",
        ] {
            assert_eq!(sections(text), (vec!["zram1".to_owned()], 1), "{text}");
        }
        assert_eq!(sections("[ramdisk.a]\n[ramdisk.b]\nsize = \n").0, ["ramdisk.a"]);
    }

    #[test]
    fn a_repeated_key_disables_its_section() {
        let (names, problems) = sections("[zram0]\nswap-priority = 5\nswap-priority = 6\n[zram1]\n");
        assert_eq!((names, problems), (vec!["zram1".to_owned()], 1));
        for value in ["[1]", "{ b = 1 }"] {
            let text = format!("[zram0]\na = {value}\na = 6\n[zram1]\n");
            let (_, problems) = read(Path::new("f"), &text, 0);
            let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
            assert_eq!(messages, ["`a` is assigned twice"], "{text}");
        }
    }

    #[test]
    fn keys_outside_of_sections_are_named() {
        let (names, problems) = sections("zram-size = 5\n[zram0]\n[ramdisk]\nsize = 5\n");
        assert_eq!((names, problems), (vec!["zram0".to_owned()], 2));
        let (fragment, _) = read(Path::new("f"), "zram0 = 5\n[[zram1]]\n[ramdisk]\na = 5\n", 0);
        let broken: Vec<String> = fragment.broken.into_iter().collect();
        assert_eq!(broken, ["ramdisk.a", "zram0", "zram1"], "no other file is asked about them either");
        let (_, problems) = read(Path::new("f"), "compression-algorithm = [\"zstd\"]\n", 0);
        assert_eq!(problems[0].remedy, "put it below a header such as [zram0]");
        // What is wrong with the line itself is not lost, nor is what is below it.
        assert_eq!(sections("a = \"b\" c\n[zram0]\n"), (vec!["zram0".to_owned()], 2));
        assert_eq!(sections("a = 1\na = x y\n[zram0]\n"), (vec!["zram0".to_owned()], 2));
    }

    #[test]
    fn windows_line_ends_and_byte_order_marks_are_fine() {
        assert_eq!(sections("\u{FEFF}[zram0]\r\nswap-priority = 5\r\n"), (vec!["zram0".to_owned()], 0));
    }
}
