//! Contents of one file: sections, keys and values with their positions. Checks TOML syntax only.

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
    /// Start of each header and key, and its section; sorted once all are read.
    places: Vec<(usize, String)>,
}

/// Parses one file; `index` is its position in reading order.
pub fn read(file: &Path, text: &str, index: usize) -> (Fragment, Vec<Finding>) {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut reader =
        Reader { source: Source::new(file, text), index, problems: Vec::new(), places: Vec::new() };
    let mut fragment = reader.sections(document.get_ref());
    reader.places.sort_by_key(|(start, _)| *start);
    let errors = errors.into_iter().map(|error| (error.span().unwrap_or(0..0), error.message().to_owned()));
    if reader.syntax_errors(file, errors.collect(), &mut fragment.broken) {
        fragment.sections.clear();
    }
    fragment.sections.retain(|name, _| !fragment.broken.contains(name));
    (fragment, reader.problems)
}

/// Adds a further hint, as shown to people.
fn add_hint(problem: &mut Finding, hint: &str) {
    let separator = if problem.remedy.is_empty() { "" } else { "; " };
    problem.remedy.push_str(&format!("{separator}{hint}"));
}

impl Reader<'_> {
    fn origin(&self, span: Range<usize>, key: impl Into<String>) -> Origin {
        self.source.origin(span, key)
    }

    /// Reports what the parser does not accept, once per line. Returns whether the whole file is unusable.
    fn syntax_errors(
        &mut self,
        file: &Path,
        mut errors: Vec<(Range<usize>, String)>,
        broken: &mut BTreeSet<String>,
    ) -> bool {
        errors.sort_by_key(|(span, _)| span.start);
        let mut whole_file = false;
        let (mut lines, mut bare) = (BTreeSet::new(), Vec::new());
        // The problem of each line; the first, if it has several.
        let mut known = BTreeMap::new();
        for (index, problem) in self.problems.iter().enumerate() {
            known.entry(problem.line()).or_insert(index);
        }
        // The lines below a broken header, which the parser attributes to other tables.
        let mut misread = 0..0;
        for (span, message) in errors {
            if misread.contains(&span.start) {
                continue;
            }
            let place = self.enclosing_section(span.start);
            let section = place.clone().unwrap_or_default();
            let start = self.line_start(span.start);
            let found = syntax::mistake(&section, &self.source, start);
            let (mut problem, is_bare) = match found {
                Some(mistake) => {
                    let problem = Finding::error(mistake.origin(&self.source, &section), mistake.message);
                    (problem.remedy(mistake.hint), mistake.is_bare)
                }
                None => {
                    (Finding::error(self.origin(span.clone(), section), message.replace('\n', "; ")), false)
                }
            };
            match place {
                Some(section) => drop(broken.insert(section)),
                None => {
                    whole_file = true;
                    misread = self.below_header(span.start);
                    add_hint(&mut problem, &worded("the whole file is ignored until this is fixed"));
                }
            }
            let number = problem.line();
            if !lines.insert(number) {
                continue;
            }
            bare.extend(is_bare.then_some(number));
            match known.get(&number) {
                // A key outside of a section.
                Some(index) if !problem.remedy.is_empty() => {
                    add_hint(&mut self.problems[*index], &problem.remedy);
                }
                _ => {
                    known.entry(number).or_insert(self.problems.len());
                    self.problems.push(problem);
                }
            }
        }
        let import = format!(
            "`zramdctl import zram-generator {}` translates a file of zram-generator",
            file.display()
        );
        if let [first, _, ..] = bare[..]
            && !self.source.text.contains('"')
            && let Some(index) = known.get(&first)
        {
            add_hint(&mut self.problems[*index], &worded(import));
        }
        whole_file
    }

    /// The section that a syntax error disables: that of the last header or key before it. `None` for a broken header,
    /// which disables the whole file: the lines below it would belong to the wrong section.
    fn enclosing_section(&self, at: usize) -> Option<String> {
        if !self.below_header(at).is_empty() {
            return None;
        }
        let before = self.places.partition_point(|(start, _)| *start <= at);
        self.places[..before].last().map(|(_, section)| section.clone())
    }

    /// The line of a header, and those below it up to the next header; empty if `at` is not in a header.
    fn below_header(&self, at: usize) -> Range<usize> {
        let start = self.line_start(at);
        let line = &self.source.text[start..];
        if !line.trim_start().starts_with('[') {
            return 0..0;
        }
        start..line.find("\n[").map_or(usize::MAX, |length| start + length)
    }

    fn line_start(&self, at: usize) -> usize {
        let before = self.source.text.as_bytes().get(..at).unwrap_or(self.source.text.as_bytes());
        before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
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
                    self.places.push((name.span().start, section));
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

    fn section(&mut self, name: &str, span: Range<usize>, table: &DeTable<'_>) -> Section {
        let starts = table.keys().map(|key| key.span().start).chain([span.start]);
        self.places.extend(starts.map(|start| (start, name.to_owned())));
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
    fn a_broken_header_disables_the_file() {
        let (names, problems) = sections("[zram0]\nzram-size = 5\n[zram1\nswap-priority = 5\n");
        assert_eq!((names.len(), problems), (0, 1));
        // The second mistake is a consequence of the first.
        assert_eq!(sections("[zram0]\n[zram0\n").1, 1);
        assert_eq!(sections("zram-size = 1\n[zram0\nzram-size = 2\n").1, 1);
        assert_eq!(sections("[zram0\n[zram1]\n[zram1]\n[zram2\n").1, 3);
    }

    #[test]
    fn a_mistake_in_a_file_that_is_not_used_still_disables_its_section_everywhere() {
        let (fragment, problems) = read(Path::new("f"), "size = \n[zram0]\nzram-size = \n[zram1]\n", 0);
        assert_eq!((fragment.sections.len(), problems.len()), (0, 2));
        assert!(fragment.broken.contains("zram0"));
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
    }

    #[test]
    fn keys_outside_of_sections_are_named() {
        let (names, problems) = sections("zram-size = 5\n[zram0]\n[ramdisk]\nsize = 5\n");
        assert_eq!((names, problems), (vec!["zram0".to_owned()], 2));
        let (fragment, _) = read(Path::new("f"), "zram0 = 5\n[[zram1]]\n[ramdisk]\na = 5\n", 0);
        let broken: Vec<String> = fragment.broken.into_iter().collect();
        assert_eq!(broken, ["ramdisk.a", "zram0", "zram1"], "no other file is asked about them either");
    }

    #[test]
    fn windows_line_ends_and_byte_order_marks_are_fine() {
        assert_eq!(sections("\u{FEFF}[zram0]\r\nswap-priority = 5\r\n"), (vec!["zram0".to_owned()], 0));
    }
}
