//! Reading typed values out of one section, collecting every problem on the way.

use std::time::Duration;

use super::fragment::{Assignment, Section, Value};
use super::problem::{Origin, Problem};
use super::schema::SectionKind;
use super::settings::{Principal, SizeExpr};
use crate::logic::duration;
use crate::logic::expr::Expr;
use crate::logic::unit_text::escape_path;

/// Reads one section, with another one behind it for what it leaves out.
pub struct SectionReader<'a> {
    section: &'a Section,
    defaults: Option<&'a Section>,
    /// What was found to be wrong.
    pub problems: Vec<Problem>,
    /// Whether something makes the section unusable.
    pub failed: bool,
}

impl<'a> SectionReader<'a> {
    /// Begins to read a section.
    pub fn new(section: &'a Section, defaults: Option<&'a Section>) -> SectionReader<'a> {
        SectionReader { section, defaults, problems: Vec::new(), failed: false }
    }

    /// Notes an error, which makes the section unusable.
    pub fn fail(&mut self, problem: Problem) {
        self.failed = true;
        self.problems.push(problem);
    }

    /// Warns of keys that do not exist.
    pub fn unknown_keys(&mut self, kind: SectionKind) {
        self.problems.extend(unknown_keys(self.section, kind));
    }

    /// The assignment of a key, in the section itself or in the defaults.
    pub fn get(&self, key: &str) -> Option<&'a Assignment> {
        self.own(key).or_else(|| self.defaults.and_then(|defaults| defaults.keys.get(key)))
    }

    /// The assignment of a key in the section itself.
    pub fn own(&self, key: &str) -> Option<&'a Assignment> {
        self.section.keys.get(key)
    }

    /// Where the section begins.
    pub fn origin(&self) -> Origin {
        self.section.origin.clone()
    }

    fn wrong_type(&mut self, assignment: &Assignment, wanted: &str, example: &str) {
        let key = assignment.origin.key.rsplit('.').next().unwrap_or_default();
        let problem = Problem::error(
            assignment.origin.clone(),
            format!("`{key}` takes {wanted}, not {}", assignment.value.kind()),
        );
        self.fail(problem.hint(format!("write for example {key} = {example}")));
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, key: &str, default: bool) -> bool {
        match self.get(key) {
            None => default,
            Some(Assignment { value: Value::Boolean(value), .. }) => *value,
            Some(other) => {
                self.wrong_type(other, "true or false", "true");
                default
            }
        }
    }

    /// Text.
    pub fn text(&mut self, key: &str) -> Option<(String, Origin)> {
        match self.get(key)? {
            Assignment { value: Value::String(text), origin, .. } => Some((text.clone(), origin.clone())),
            other => {
                self.wrong_type(other, "text", "\"text\"");
                None
            }
        }
    }

    /// One of a few words.
    pub fn word(&mut self, key: &str, words: &[&'static str], default: &'static str) -> &'static str {
        let Some((text, origin)) = self.text(key) else { return default };
        if let Some(word) = words.iter().find(|word| **word == text) {
            return word;
        }
        let list: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        let problem = Problem::error(origin, format!("`{key}` is one of {}, not `{text}`", list.join(", ")));
        let meant = nearest(&text, words.iter().copied()).unwrap_or(default);
        self.fail(problem.hint(format!("did you mean \"{meant}\"?")));
        default
    }

    /// Whether a key is this text.
    pub fn is_text(&self, key: &str, text: &str) -> bool {
        self.get(key).is_some_and(|assignment| assignment.value == Value::String(text.to_owned()))
    }

    /// A span of time: text with units, or a number of seconds.
    pub fn duration(&mut self, key: &str, default: Duration) -> Duration {
        let Some(assignment) = self.get(key) else { return default };
        let found = match &assignment.value {
            Value::String(text) => duration::parse(text),
            Value::Integer(seconds, _) => u64::try_from(*seconds).ok().map(Duration::from_secs),
            _ => {
                self.wrong_type(assignment, "a span of time", &format!("\"{}\"", duration::text(default)));
                return default;
            }
        };
        found.unwrap_or_else(|| {
            let problem = Problem::error(assignment.origin.clone(), "this is no span of time");
            self.fail(problem.hint("write a number with a unit: \"90s\", \"15min\", \"1h 30min\", \"2d\""));
            default
        })
    }

    /// A whole number within bounds.
    pub fn integer(&mut self, key: &str, least: i64, most: i64, example: &str) -> Option<i64> {
        let assignment = self.get(key)?;
        match assignment.value {
            Value::Integer(number, _) if (least..=most).contains(&number) => Some(number),
            Value::Integer(number, _) => {
                let message = format!("{number} is outside of {least} to {most}");
                self.fail(Problem::error(assignment.origin.clone(), message));
                None
            }
            _ => {
                self.wrong_type(assignment, "a whole number", example);
                None
            }
        }
    }

    /// A number of at least 0.
    pub fn fraction(&mut self, key: &str) -> Option<f64> {
        let assignment = self.get(key)?;
        let number = match assignment.value {
            Value::Float(number) => number,
            Value::Integer(number, _) => number as f64,
            _ => {
                self.wrong_type(assignment, "a number", "0.5");
                return None;
            }
        };
        if number.is_finite() && number >= 0.0 {
            return Some(number);
        }
        let message = format!("{number} is no share of RAM");
        self.fail(
            Problem::error(assignment.origin.clone(), message)
                .hint("write a number of 0 or more, such as 0.5"),
        );
        None
    }

    /// A size: a number of MiB or an expression. `"none"` counts as absent where that is allowed.
    pub fn size(&mut self, key: &str, none_allowed: bool) -> Option<SizeExpr> {
        let assignment = self.get(key)?;
        self.size_of(assignment, none_allowed)
    }

    /// The size that an assignment gives.
    pub fn size_of(&mut self, assignment: &Assignment, none_allowed: bool) -> Option<SizeExpr> {
        let origin = assignment.origin.clone();
        let (expr, text) = match &assignment.value {
            Value::String(text) if none_allowed && text == "none" => return None,
            Value::String(text) => match Expr::parse(text) {
                Ok(expr) => (expr, text.clone()),
                Err(error) => {
                    let problem =
                        Problem::error(inside(&origin, text, error.start, error.end), error.message);
                    self.fail(Problem { hint: error.hint, ..problem });
                    return None;
                }
            },
            Value::Integer(number, _) if *number >= 0 => (Expr::number(*number as f64), number.to_string()),
            Value::Float(number) if number.is_finite() && *number >= 0.0 => {
                (Expr::number(*number), number.to_string())
            }
            Value::Integer(..) | Value::Float(_) => {
                self.fail(Problem::error(origin, "a size cannot be negative"));
                return None;
            }
            _ => {
                self.wrong_type(assignment, "a size", "\"4GiB\"");
                return None;
            }
        };
        Some(SizeExpr { expr, text, origin })
    }

    /// Text, or a list of text: each word with its place.
    pub fn words(&mut self, key: &str, example: &str) -> Option<Vec<(String, Origin)>> {
        let assignment = self.get(key)?;
        match &assignment.value {
            Value::String(text) if text.is_empty() => Some(Vec::new()),
            Value::String(text) => Some(vec![(text.clone(), assignment.origin.clone())]),
            Value::Array(items) => {
                let mut words = Vec::new();
                for (item, origin) in items {
                    match item {
                        Value::String(text) => words.push((text.clone(), origin.clone())),
                        other => {
                            let item = Assignment {
                                value: other.clone(),
                                origin: origin.clone(),
                                ..assignment.clone()
                            };
                            self.wrong_type(&item, "text or a list of text", example);
                        }
                    }
                }
                Some(words)
            }
            _ => {
                self.wrong_type(assignment, "text or a list of text", example);
                None
            }
        }
    }

    /// Options as fstab has them, from text or a list, without blanks around them.
    pub fn options(&mut self, key: &str, default: &str) -> String {
        let Some(words) = self.words(key, "\"discard,noatime\"") else { return default.to_owned() };
        let options = words.iter().flat_map(|(word, _)| word.split(',')).map(str::trim);
        let options = options.filter(|option| !option.is_empty()).collect::<Vec<_>>().join(",");
        if let (Some(why), Some((_, origin))) = (unfit_for_unit(&options), words.first()) {
            let problem = Problem::error(origin.clone(), format!("the text of `{key}` {why}"));
            self.fail(problem.hint("leave that out"));
        }
        options
    }

    /// An absolute path, with `.`, double and trailing slashes taken out; `..` is refused.
    pub fn path(&mut self, key: &str) -> Option<(String, Origin)> {
        let (text, origin) = self.text(key)?;
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let path = format!("/{}", parts.join("/"));
        let problem = if !text.starts_with('/') {
            Some((format!("`{text}` is not an absolute path"), format!("begin it with a slash: \"/{text}\"")))
        } else if parts.contains(&"..") {
            Some((format!("`{text}` goes up with `..`"), "write the path that is meant".to_owned()))
        } else {
            let too_long = escape_path(&path).len() > LONGEST_UNIT;
            let why =
                unfit_for_unit(&path).or(too_long.then_some("is too long for the name of a systemd unit"));
            why.map(|why| (format!("the path {why}"), "use another one".to_owned()))
        };
        if let Some((message, hint)) = problem {
            self.fail(Problem::error(origin, message).hint(hint));
            return None;
        }
        Some((path, origin))
    }

    /// Permission bits: octal text, or a number written in octal.
    pub fn mode(&mut self, key: &str) -> Option<u32> {
        let assignment = self.get(key)?;
        let bits = match &assignment.value {
            Value::String(text) => u32::from_str_radix(text, 8).ok(),
            Value::Integer(number, true) => u32::try_from(*number).ok(),
            _ => None,
        };
        let valid = bits.filter(|bits| *bits <= 0o7777);
        if valid.is_none() {
            let problem = Problem::error(assignment.origin.clone(), "these are no permission bits");
            self.fail(problem.hint("write them in octal and in quotes: \"0755\""));
        }
        valid
    }

    /// A user or group, by name or number.
    pub fn principal(&mut self, key: &str) -> Option<Principal> {
        let assignment = self.get(key)?;
        match &assignment.value {
            Value::Integer(number, _) if u32::try_from(*number).is_ok_and(|id| id != u32::MAX) => {
                u32::try_from(*number).ok().map(Principal::Id)
            }
            Value::String(text) if !text.is_empty() => Some(match text.parse() {
                Ok(id) => Principal::Id(id),
                Err(_) => Principal::Name(text.clone(), assignment.origin.clone()),
            }),
            _ => {
                self.wrong_type(assignment, "a name or a number", "\"build\"");
                None
            }
        }
    }
}

/// The longest escaped path that fits into the name of a file together with `.device.d`.
const LONGEST_UNIT: usize = 255 - ".device.d".len();

/// Why a systemd unit cannot have this text at the end of a line: there is no way to escape it (systemd.syntax(7)).
fn unfit_for_unit(text: &str) -> Option<&'static str> {
    if text.contains(char::is_control) {
        Some("has a control character in it")
    } else if text.ends_with('\\') {
        Some("ends with a backslash")
    } else if text.ends_with(' ') {
        Some("ends with a blank")
    } else {
        None
    }
}

/// Narrows the place of a quoted text to a part of it, when the text stands there as it is, without escapes.
pub fn inside(origin: &Origin, text: &str, start: usize, end: usize) -> Origin {
    let chars = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let plain = origin.width == chars(text) + 2;
    match (text.get(..start), text.get(start..end)) {
        (Some(before), Some(part)) if plain => origin.part(1 + chars(before), chars(part).max(1)),
        _ => origin.clone(),
    }
}

/// Keys of a section that do not exist, with what was probably meant.
pub fn unknown_keys(section: &Section, kind: SectionKind) -> Vec<Problem> {
    let known: Vec<&str> = kind.keys().map(|key| key.name).collect();
    section
        .keys
        .iter()
        .filter(|(key, _)| !known.contains(&key.as_str()))
        .map(|(key, assignment)| {
            let problem =
                Problem::warning(assignment.key_origin.clone(), format!("there is no key `{key}` here"));
            match foreign_spelling(key).or_else(|| nearest(key, known.iter().copied())) {
                Some(meant) => problem.hint(format!("did you mean `{meant}`?")),
                None => problem,
            }
        })
        .collect()
}

/// What zram-generator, fstab and systemd units call it.
fn foreign_spelling(key: &str) -> Option<&'static str> {
    Some(match key.to_ascii_lowercase().as_str() {
        "memory-limit" => "host-memory-limit",
        "mem-limit" | "mem_limit" | "resident-limit" => "zram-resident-limit",
        "where" | "mountpoint" | "mount_point" | "path" => "mount-point",
        "type" | "fstype" | "fs_type" => "fs-type",
        "algorithm" | "comp-algorithm" | "comp_algorithm" => "compression-algorithm",
        "recomp_algorithm" => "recompression-algorithm",
        "backing-dev" | "backing_dev" => "writeback-device",
        "priority" | "pri" => "swap-priority",
        "user" => "owner",
        "disksize" | "disk-size" => "zram-size",
        "persistence" => "persist",
        "interval" | "save-every" => "save-interval",
        "huge" => "huge-pages",
        "nr-inodes" | "nr_inodes" => "inodes",
        _ => return None,
    })
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
