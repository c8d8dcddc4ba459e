//! Reads typed values of one section, and collects all problems.

use std::time::Duration;

use serde::de::value::StringDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer};

use super::fragment::{Assignment, Section};
pub use super::hint::with_commas;
use super::hint::{meant_key, misspelt, options as with_all_commas, path, unfit_for_unit};
use super::key::{Key, Type};
use super::schema::SectionKind;
use super::settings::{Principal, SizeExpr};
use super::value::Value;
use crate::expr::Expr;
use crate::finding::{Code, Finding, Level};
use crate::origin::Origin;
use crate::overlay::quoted;

/// The policies of discard that swapon knows.
pub const DISCARDS: [&str; 3] = ["discard", "discard=once", "discard=pages"];

/// Reads one section, with defaults for keys that it lacks.
pub struct SectionReader<'a> {
    section: &'a Section,
    /// Kind of the section.
    pub kind: SectionKind,
    defaults: Option<&'a Section>,
    /// Problems found so far.
    pub problems: Vec<Finding>,
    /// Whether an error makes the section unusable.
    pub failed: bool,
}

impl<'a> SectionReader<'a> {
    /// Starts reading a section; warns about unknown keys.
    pub fn new(section: &'a Section, kind: SectionKind, defaults: Option<&'a Section>) -> SectionReader<'a> {
        let problems = unknown_keys(section, kind);
        let failed = problems.iter().any(|problem| problem.level == Level::Error);
        SectionReader { section, kind, defaults, problems, failed }
    }

    /// The mistakes that do not depend on other keys: for a section of which lines are missing.
    pub fn each(mut self) -> Vec<Finding> {
        for key in self.kind.keys() {
            match key.kind {
                Type::Size { .. } => drop(self.size(key)),
                _ => drop(self.value(key)),
            }
        }
        self.problems
    }

    /// Whether the section has this key with a wrong spelling, which is an error then.
    pub fn is_misspelt(&mut self, key: &Key) -> bool {
        let (section, kind) = (self.section, self.kind);
        let mut found = section.keys.iter();
        let is_meant = |written: &str| misspelt(written, kind) == Some(key.name);
        let Some((_, found)) = found.find(|(written, _)| is_meant(written)) else { return false };
        let place = Some(&found.key_origin);
        for problem in self.problems.iter_mut().filter(|problem| problem.place.as_ref() == place) {
            problem.level = Level::Error;
            problem.code = Code::ConfigInvalid;
        }
        self.failed = true;
        true
    }

    /// Adds an error, which makes the section unusable.
    pub fn fail(&mut self, problem: Finding) {
        self.failed = true;
        self.problems.push(problem);
    }

    /// The assignment of a key, in the section itself or in the defaults.
    pub fn get(&self, key: &Key) -> Option<&'a Assignment> {
        let defaults = self.defaults.filter(|_| SectionKind::Defaults.key(key.name).is_some());
        self.own(key).or_else(|| defaults.and_then(|defaults| defaults.keys.get(key.name)))
    }

    /// The assignment of a key in the section itself.
    pub fn own(&self, key: &Key) -> Option<&'a Assignment> {
        debug_assert!(self.kind.key(key.name).is_some(), "{} is not in the list of keys", key.name);
        self.section.keys.get(key.name)
    }

    /// Position of the section.
    pub fn origin(&self) -> Origin {
        self.section.origin.clone()
    }

    /// Position of a key's value, or else of the section.
    pub fn origin_of(&self, key: &Key) -> Origin {
        self.get(key).map_or_else(|| self.origin(), |assignment| assignment.origin.clone())
    }

    /// Reports keys that belong to another kind of section or device.
    pub fn misplaced(&mut self, keys: &[&Key], what: &str, hint: &str) {
        for key in keys {
            if let Some(assignment) = self.own(key) {
                let message = format!("`{}` has no effect for {what}", key.name);
                self.fail(Finding::error(assignment.key_origin.clone(), message).remedy(hint));
            }
        }
    }

    /// The value of a key if it has the right type; else the default.
    pub fn value(&mut self, key: &Key) -> Option<(Value, Origin)> {
        if let Some(assignment @ Assignment { value, origin, .. }) = self.get(key) {
            if key.kind.accepts(value) {
                return Some((value.clone(), origin.clone()));
            }
            self.fail(wrong_value(key, assignment));
        }
        key.default.value().map(|value| (value, self.origin()))
    }

    /// `true` or `false`; `false` without a default.
    pub fn boolean(&mut self, key: &Key) -> bool {
        matches!(self.value(key), Some((Value::Boolean(true), _)))
    }

    pub fn text(&mut self, key: &Key) -> Option<(String, Origin)> {
        match self.value(key)? {
            (Value::String(text), origin) => Some((text, origin)),
            _ => None,
        }
    }

    /// One of the words that the key accepts.
    pub fn word(&mut self, key: &Key) -> Option<String> {
        self.text(key).map(|(word, _)| word)
    }

    /// The variant of `T` for one of the words of a key; `None` for a word without one, such as `"none"`.
    pub fn choice<T: DeserializeOwned>(&mut self, key: &Key) -> Option<T> {
        let word: StringDeserializer<serde::de::value::Error> = self.word(key)?.into_deserializer();
        T::deserialize(word).ok()
    }

    /// A time span; `None` for `"never"`.
    pub fn span(&mut self, key: &Key) -> Option<Duration> {
        self.value(key)?.0.span()
    }

    /// A whole number.
    pub fn integer<T: TryFrom<i64>>(&mut self, key: &Key) -> Option<T> {
        match self.value(key)? {
            (Value::Integer(number, _), _) => T::try_from(number).ok(),
            _ => None,
        }
    }

    /// A number of at least 0.
    pub fn number(&mut self, key: &Key) -> Option<f64> {
        match self.value(key)?.0 {
            Value::Float(number) => Some(number),
            Value::Integer(number, _) => Some(number as f64),
            _ => None,
        }
    }

    /// A size: a number of MiB or an expression. `None` for `"none"`, if that is accepted.
    pub fn size(&mut self, key: &Key) -> Option<SizeExpr> {
        let (value, origin) = self.value(key)?;
        let (expr, text) = match value {
            Value::String(text) if key.kind.words().contains(&text.as_str()) => return None,
            Value::String(text) => match Expr::parse(&text) {
                Ok(expr) => (expr, text),
                Err(error) => {
                    let problem =
                        Finding::error(inside(&origin, &text, error.start, error.end), error.message);
                    self.fail(problem.remedy(error.hint.unwrap_or_default()));
                    return None;
                }
            },
            Value::Integer(number, _) => (Expr::number(number as f64), number.to_string()),
            Value::Float(number) => (Expr::number(number), number.to_string()),
            _ => return None,
        };
        Some(SizeExpr { expr, text, origin })
    }

    /// Text, or a list of text: each word with its position.
    pub fn words(&mut self, key: &Key) -> Vec<(String, Origin)> {
        let items = match self.value(key) {
            Some((Value::Array(items), _)) => items,
            Some((Value::String(text), _)) if text.is_empty() => Vec::new(),
            value => value.into_iter().collect(),
        };
        let word = |(item, origin)| match item {
            Value::String(text) => Some((text, origin)),
            _ => None,
        };
        items.into_iter().filter_map(word).collect()
    }

    /// Options as in fstab, from text or a list, without surrounding blanks.
    pub fn options(&mut self, key: &Key) -> String {
        let words = self.words(key);
        let options = words.iter().flat_map(|(word, _)| word.split(',')).map(str::trim);
        let options: Vec<&str> = options.filter(|option| !option.is_empty()).collect();
        let several = options.iter().find(|option| with_commas(option).is_some());
        let joined = options.join(",");
        if let (Some(option), Some((_, origin))) = (several, words.first()) {
            let message = format!("options are separated by commas: `{option}`");
            let problem = Finding::error(origin.clone(), message);
            self.fail(problem.remedy(format!("write {} = {}", key.name, quoted(&with_all_commas(&joined)))));
        }
        let options = joined;
        if let (Some(why), Some((_, origin))) = (unfit_for_unit(&options), words.first()) {
            let problem = Finding::error(origin.clone(), format!("the text of `{}` {why}", key.name));
            self.fail(problem.remedy("leave that out"));
        }
        options
    }

    /// An absolute path, normalised (no `.`, double or trailing slash); `..` is refused.
    pub fn path(&mut self, key: &Key) -> Option<(String, Origin)> {
        let (text, origin) = self.text(key)?;
        match path(key, &text) {
            Ok(path) => Some((path, origin)),
            Err((message, hint)) => {
                self.fail(Finding::error(origin, message).remedy(hint));
                None
            }
        }
    }

    /// Permission bits.
    pub fn mode(&mut self, key: &Key) -> Option<u32> {
        self.value(key)?.0.permissions()
    }

    /// A user or group, by name or number.
    pub fn principal(&mut self, key: &Key) -> Option<Principal> {
        match self.value(key)? {
            (Value::Integer(number, _), _) => u32::try_from(number).ok().map(Principal::Id),
            (Value::String(text), origin) => Some(match text.parse() {
                Ok(id) => Principal::Id(id),
                Err(_) => Principal::Name(text, origin),
            }),
            _ => None,
        }
    }
}

/// The problem of a value that the key does not accept.
fn wrong_value(key: &Key, assignment: &Assignment) -> Finding {
    let Assignment { value, origin, .. } = assignment;
    let written = value.toml().unwrap_or_else(str::to_owned);
    let message = match (key.kind, value) {
        (Type::Size { .. }, Value::Integer(..) | Value::Float(_)) => {
            format!("`{written}` is no size: a size is 0 or more")
        }
        _ => format!("expected {}, not {written}", key.kind),
    };
    // Keys of a policy may be written with the prefix of their table, or inside the table.
    let name = written_name(assignment).unwrap_or_else(|| key.name.to_owned());
    let problem = Finding::error(origin.clone(), message);
    match (key.kind.meant(value), key.kind) {
        (Some(meant), _) => problem.remedy(format!("write {name} = {meant}")),
        // The message has all values; one of them would be advice.
        (None, Type::Bool | Type::Word(_)) => problem,
        (None, _) => problem.remedy(format!("write for example {name} = {}", key.example)),
    }
}

/// Narrows the position of a quoted text to a part of it, if the text has no escapes.
pub fn inside(origin: &Origin, text: &str, start: usize, end: usize) -> Origin {
    let chars = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let plain = origin.width == chars(text) + 2;
    match (text.get(..start), text.get(start..end)) {
        (Some(before), Some(part)) if plain => origin.part(1 + chars(before), chars(part).max(1)),
        _ => origin.clone(),
    }
}

/// Unknown keys of a section, with the probable correction.
fn unknown_keys(section: &Section, kind: SectionKind) -> Vec<Finding> {
    let unknown = section.keys.iter().filter(|(key, _)| kind.key(key).is_none());
    let problem = |(key, assignment): (&String, &Assignment)| {
        if kind == SectionKind::Vm && key == "zswap" {
            let message = "zswap has a section of its own";
            let hint = "leave this out, and write enabled = false below [zswap] to disable it";
            return Finding::error(assignment.key_origin.clone(), message).remedy(hint);
        }
        // `vm.swappiness = 180` is a table `vm`.
        let written = written_name(assignment).filter(|_| matches!(assignment.value, Value::Other(_)));
        let name = written.unwrap_or_else(|| key.clone());
        let inner =
            name.rsplit_once('.').filter(|_| !key.contains('.')).map(|(_, inner)| inner.replace('_', "-"));
        let short = written_name(assignment);
        let table = short.as_deref().and_then(|short| name.strip_suffix(short)).unwrap_or_default();
        let hint = match inner.as_deref().and_then(|inner| kind.key(inner)) {
            Some(known) => format!("write {}", known.name),
            None => meant_key(inner.as_deref().unwrap_or(&name), table, kind),
        };
        let name = &name[table.len()..];
        Finding::warning(assignment.key_origin.clone(), format!("unknown key `{name}`")).remedy(hint)
    };
    unknown.map(problem).collect()
}

/// The name of a key as its line has it, with the tables before it: `recompress`, or `recompress.enabled`.
fn written_name(assignment: &Assignment) -> Option<String> {
    let at = &assignment.key_origin;
    let (name, _) = at.source_line[at.offset..].split_once('=')?;
    let before = at.source_line[..at.offset].rsplit(['{', ',']).next()?;
    let whole = [before, name].concat();
    let whole = whole.trim();
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    whole.chars().all(is_plain).then(|| whole.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::{PageSource, When};
    use crate::config::{keys, load};
    use crate::ramdisk::{OnFailure, Persist};
    use crate::resize::OnChange;
    use crate::verdict::Profile;

    #[test]
    fn every_word_of_a_key_stands_for_something() {
        fn check<T: DeserializeOwned>(key: &Key) {
            for word in key.kind.words() {
                let word: StringDeserializer<serde::de::value::Error> =
                    (*word).to_owned().into_deserializer();
                assert!(T::deserialize(word).is_ok(), "{}: {:?}", key.name, key.kind.words());
            }
        }
        check::<When>(&keys::benchmark::WHEN);
        check::<Profile>(&keys::benchmark::PROFILE);
        check::<PageSource>(&keys::benchmark::SAMPLE);
        check::<OnChange>(&keys::maintenance::ON_MEMORY_CHANGE);
        check::<Persist>(&keys::ramdisk::PERSIST);
        check::<OnFailure>(&keys::ramdisk::ON_FAILURE);
    }

    fn problems(text: &str) -> Vec<Finding> {
        load(&[("f".into(), text.to_owned())], "").problems
    }

    #[test]
    fn a_mistake_in_an_expression_is_shown_at_its_letters_unless_they_are_escaped() {
        for (written, column, width) in [
            (r#""RAM / 2""#, 14, 3),
            (r#""4 * RAM""#, 18, 3),
            ("'4 * RAM'", 18, 3),
            (r#""4 * \u0052AM""#, 13, 14),
            (r#""""4 * RAM""""#, 13, 13),
        ] {
            let found = problems(&format!("[zram0]\nzram-size = {written}\n"));
            let place = found[0].place.as_ref().unwrap();
            assert_eq!((found.len(), place.column, place.width), (1, column, width), "{written}");
        }
    }

    #[test]
    fn a_section_with_a_line_that_is_not_toml_is_searched_for_other_mistakes() {
        let found = problems("[zram0]\nswap-priority =\nzram-size = \"4 * RAM\"\nlabel = 5\n");
        assert_eq!(found.iter().map(Finding::line).collect::<Vec<_>>(), [2, 3, 4]);
    }
}
