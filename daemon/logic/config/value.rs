//! A value of a TOML file.

use std::time::Duration;

use crate::duration;
use crate::origin::Origin;
use crate::overlay::quoted;

/// A TOML value of a type that zramd uses.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    String(String),
    /// A whole number, and whether it was written in octal (`0o755`).
    Integer(i64, bool),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A list of values with their positions.
    Array(Vec<(Value, Origin)>),
    /// Any other type, by name.
    Other(&'static str),
}

impl Value {
    /// As a time span: a number of seconds, or text with units.
    pub fn span(&self) -> Option<Duration> {
        match self {
            Value::String(text) => duration::parse(text),
            Value::Integer(seconds, _) => u64::try_from(*seconds).ok().map(Duration::from_secs),
            _ => None,
        }
    }

    /// As permission bits: octal text, or a number written in octal.
    pub fn permissions(&self) -> Option<u32> {
        let bits = match self {
            Value::String(text) => u32::from_str_radix(text, 8).ok(),
            Value::Integer(number, true) => u32::try_from(*number).ok(),
            _ => None,
        };
        bits.filter(|bits| *bits <= 0o7777)
    }

    /// As TOML; the error is the name of a type that zramd does not use.
    pub fn toml(&self) -> Result<String, &'static str> {
        Ok(match self {
            Value::String(text) => quoted(text),
            Value::Integer(number, true) if *number >= 0 => format!("0o{number:o}"),
            Value::Integer(number, _) => number.to_string(),
            Value::Float(number) if number.is_nan() => "nan".to_owned(),
            Value::Float(number) => format!("{number:?}"),
            Value::Boolean(truth) => truth.to_string(),
            Value::Array(items) => {
                let items: Result<Vec<String>, _> = items.iter().map(|(item, _)| item.toml()).collect();
                format!("[{}]", items?.join(", "))
            }
            Value::Other(kind) => return Err(kind),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_written_as_toml_reads_it() {
        let numbers = Value::Array(vec![
            (Value::Integer(-8, false), Origin::default()),
            (Value::Float(0.5), Origin::default()),
        ]);
        for (value, written) in [
            (Value::String("a \"b\"".to_owned()), r#""a \"b\"""#),
            (Value::Integer(0o755, true), "0o755"),
            (Value::Integer(-8, true), "-8"),
            (Value::Float(2.0), "2.0"),
            (Value::Float(f64::NAN), "nan"),
            (Value::Float(f64::NEG_INFINITY), "-inf"),
            (Value::Boolean(true), "true"),
            (numbers, "[-8, 0.5]"),
        ] {
            assert_eq!(value.toml().as_deref(), Ok(written));
        }
        let list = Value::Array(vec![(Value::Other("date"), Origin::default())]);
        assert_eq!(list.toml(), Err("date"));
    }

    #[test]
    fn permission_bits_are_octal() {
        for (value, bits) in [
            (Value::String("1777".to_owned()), Some(0o1777)),
            (Value::String("7777".to_owned()), Some(0o7777)),
            (Value::String("10000".to_owned()), None),
            (Value::Integer(0o755, true), Some(0o755)),
            (Value::Integer(755, false), None),
        ] {
            assert_eq!(value.permissions(), bits, "{value:?}");
        }
    }
}
