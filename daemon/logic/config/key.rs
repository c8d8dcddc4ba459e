//! Description of a key: type, default, texts.

use std::fmt;
use std::time::Duration;

use super::value::Value;
use crate::duration;
use crate::text::{nearest, truth};

/// A key. All keys are in `keys.rs`.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Type of its values.
    pub kind: Type,
    /// Default.
    pub default: DefaultValue,
    /// Example value, in TOML.
    pub example: &'static str,
    /// The version of zramd that introduced it.
    pub since: &'static str,
    /// Its description.
    pub meaning: &'static str,
}

pub(super) const fn key(
    name: &'static str,
    kind: Type,
    default: DefaultValue,
    example: &'static str,
    meaning: &'static str,
) -> Key {
    Key { name, kind, default, example, since: "0.1", meaning }
}

/// Type of a key's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// `true` or `false`.
    Bool,
    /// A number of MiB, or text with an expression.
    Size {
        /// Whether `"none"` is allowed.
        none: bool,
    },
    /// A number of at least 0.
    Number,
    /// A whole number within bounds, or one of a few words.
    Integer {
        /// The lowest.
        least: i64,
        /// The highest.
        most: i64,
        /// Words that are accepted instead.
        words: &'static [&'static str],
    },
    /// A time span: a number of seconds, or text with units.
    Span {
        /// The shortest, in seconds.
        least: u64,
        /// Whether `"never"` is allowed.
        never: bool,
    },
    /// One of a few words.
    Word(&'static [&'static str]),
    /// Text.
    Text,
    /// An absolute path.
    Path,
    /// Mount options: text as in fstab, or a list.
    Options,
    /// Arguments of a program: text, or a list.
    Words,
    /// Permission bits: octal text, or a number written in octal.
    Octal,
    /// A user or group.
    Principal,
    /// A program with its arguments.
    Command,
    /// Compression algorithms in order of preference, with `"auto"`.
    Algorithms,
    /// Secondary compression algorithms.
    Secondary,
}

/// The kernel has priorities 1 to 3 for secondary algorithms (`ZRAM_MAX_COMPS` in drivers/block/zram/zram_drv.h).
pub const SECONDARY_ALGORITHMS: usize = 3;

impl Type {
    /// A whole number within bounds.
    pub const fn integer(least: i64, most: i64) -> Type {
        Type::Integer { least, most, words: &[] }
    }

    /// Accepted words, if any.
    pub const fn words(&self) -> &'static [&'static str] {
        match self {
            Type::Integer { words, .. } | Type::Word(words) => words,
            Type::Size { none: true } => &["none"],
            Type::Span { never: true, .. } => &["never"],
            Type::Algorithms => &["auto"],
            _ => &[],
        }
    }

    /// Whether a value has this type. Apart from time spans and permission bits, the contents of texts are left to the
    /// parser.
    pub fn accepts(&self, value: &Value) -> bool {
        if let Value::String(text) = value
            && self.words().contains(&text.as_str())
        {
            return true;
        }
        match self {
            Type::Bool => matches!(value, Value::Boolean(_)),
            Type::Size { .. } => matches!(value, Value::String(_)) || Type::Number.accepts(value),
            Type::Number => match value {
                Value::Integer(number, _) => *number >= 0,
                Value::Float(number) => number.is_finite() && *number >= 0.0,
                _ => false,
            },
            Type::Integer { least, most, .. } => {
                matches!(value, Value::Integer(number, _) if (least..=most).contains(&number))
            }
            Type::Span { least, .. } => value.span().is_some_and(|span| span.as_secs() >= *least),
            Type::Word(_) => false,
            Type::Text | Type::Path => matches!(value, Value::String(_)),
            Type::Options | Type::Words | Type::Command | Type::Algorithms | Type::Secondary => match value {
                Value::Array(items) => items.iter().all(|(item, _)| matches!(item, Value::String(_))),
                _ => matches!(value, Value::String(_)),
            },
            Type::Octal => value.permissions().is_some(),
            Type::Principal => match value {
                Value::Integer(number, _) => u32::try_from(*number).is_ok_and(|id| id != u32::MAX),
                Value::String(text) => !text.is_empty(),
                _ => false,
            },
        }
    }

    /// The probable meaning of a value of another type, as TOML.
    pub fn meant(&self, value: &Value) -> Option<String> {
        match (self, value) {
            (Type::Bool, Value::String(text)) => truth(text).map(|value| value.to_string()),
            (Type::Bool, Value::Integer(number @ (0 | 1), _)) => Some((*number == 1).to_string()),
            (Type::Octal, Value::Integer(number, false)) => {
                Some(Value::String(format!("{number:04}"))).filter(|text| self.accepts(text))?.toml().ok()
            }
            (_, Value::String(text)) => {
                let number = text.parse().map(|number| Value::Integer(number, false));
                let number = number.ok().filter(|number| self.accepts(number));
                let word = || nearest(text, self.words().iter().copied());
                number.or_else(|| Some(Value::String(word()?.to_owned())))?.toml().ok()
            }
            _ => None,
        }
    }
}

/// The accepted values in words, for the example file, the manual page and messages.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = match self {
            Type::Bool => "true or false".to_owned(),
            Type::Size { .. } => "size".to_owned(),
            Type::Number => "number, 0 or more".to_owned(),
            Type::Integer { least, most: i64::MAX, .. } => format!("whole number, {least} or more"),
            Type::Integer { least, most, .. } => format!("{least} to {most}"),
            Type::Span { least: 0, .. } => "span of time".to_owned(),
            Type::Span { least, .. } => {
                format!("span of time of at least {}", duration::text(Duration::from_secs(*least)))
            }
            Type::Word(_) => String::new(),
            Type::Text => "text".to_owned(),
            Type::Path => "absolute path".to_owned(),
            Type::Options | Type::Words => "text or list".to_owned(),
            Type::Octal => "octal text or 0o number".to_owned(),
            Type::Principal => "name or number".to_owned(),
            Type::Command => "command as a list, or the path of a program".to_owned(),
            Type::Algorithms => "name, name with parameters, list".to_owned(),
            Type::Secondary => {
                format!("name, name with parameters, or list of at most {SECONDARY_ALGORITHMS}")
            }
        };
        let words = self.words().iter().map(|word| format!("\"{word}\""));
        let mut all: Vec<String> =
            Some(others).filter(|text| !text.is_empty()).into_iter().chain(words).collect();
        let last = all.pop().unwrap_or_default();
        if all.is_empty() { f.write_str(&last) } else { write!(f, "{} or {last}", all.join(", ")) }
    }
}

/// Default of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultValue {
    /// No value: what applies instead, in words.
    Unset(&'static str),
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Text.
    Text(&'static str),
}

impl DefaultValue {
    /// The default as a value, if it is one.
    pub fn value(&self) -> Option<Value> {
        match *self {
            DefaultValue::Unset(_) => None,
            DefaultValue::Bool(value) => Some(Value::Boolean(value)),
            DefaultValue::Integer(number) => Some(Value::Integer(number, false)),
            DefaultValue::Text(text) => Some(Value::String(text.to_owned())),
        }
    }
}

impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefaultValue::Unset(words) => f.write_str(words),
            DefaultValue::Bool(value) => write!(f, "{value}"),
            DefaultValue::Integer(number) => write!(f, "{number}"),
            DefaultValue::Text(text) => write!(f, "\"{text}\""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::device::{OWNER, SWAP_PRIORITY, ZRAM_FRACTION};
    use crate::config::keys::ramdisk::SAVE_INTERVAL;

    #[test]
    fn values_are_accepted_up_to_their_bounds() {
        let whole = |number| Value::Integer(number, false);
        for (key, accepted, refused) in [
            (
                ZRAM_FRACTION,
                &[whole(0), Value::Float(0.0), Value::Float(0.5)][..],
                &[whole(-1), Value::Float(-0.5), Value::Float(f64::INFINITY), Value::Float(f64::NAN)][..],
            ),
            (SWAP_PRIORITY, &[whole(-1), whole(32_767)], &[whole(-2), whole(32_768), Value::Float(1.0)]),
            (SAVE_INTERVAL, &[whole(10), Value::String("never".to_owned())], &[whole(9), whole(-10)]),
            // chown(2) takes the highest number for "as it is".
            (OWNER, &[whole(0), whole(0xFFFF_FFFE)], &[whole(-1), whole(0xFFFF_FFFF)]),
        ] {
            let is_accepted = |value: &Value| key.kind.accepts(value);
            assert!(accepted.iter().all(is_accepted), "{}", key.name);
            assert!(!refused.iter().any(is_accepted), "{}", key.name);
        }
    }
}
