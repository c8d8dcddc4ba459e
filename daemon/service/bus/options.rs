//! Options of a method: `a{sv}` with limits.
//!
//! A value of a few bytes on the wire may need a hundred times that in memory, and any user can send one. So deserialization
//! stops at the limits.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::Serialize;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use zbus::{Array, OwnedVariant, Signature, Type, Variant};

use crate::error;

/// Maximum size of the options of one call, in bytes of text.
const MOST: usize = 64 * 1024;
/// Added to the size for each option and each list item.
const EACH: usize = 256;

/// Maximum length of a string option.
pub(crate) const LONGEST: usize = 4096;

/// Options by name.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Options(HashMap<String, OwnedVariant>);

impl Deref for Options {
    type Target = HashMap<String, OwnedVariant>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Options {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Type for Options {
    const SIGNATURE: &'static Signature = HashMap::<String, OwnedVariant>::SIGNATURE;
}

impl<'de> Deserialize<'de> for Options {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Options, D::Error> {
        let mut left = MOST;
        Entries { left: &mut left }.deserialize(deserializer)
    }
}

/// Options by section, `a{sa{sv}}`. The limits are those of [`Options`] for all of them together.
#[derive(Debug, Default)]
pub struct Sections(BTreeMap<String, Options>);

impl Deref for Sections {
    type Target = BTreeMap<String, Options>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Type for Sections {
    const SIGNATURE: &'static Signature = HashMap::<String, Options>::SIGNATURE;
}

impl<'de> Deserialize<'de> for Sections {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sections, D::Error> {
        deserializer.deserialize_map(AllSections)
    }
}

struct AllSections;

impl<'de> Visitor<'de> for AllSections {
    type Value = Sections;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("sections")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sections, A::Error> {
        let mut left = MOST;
        let mut sections = Sections::default();
        while let Some(name) = map.next_key::<&str>()? {
            take(&mut left, name)?;
            let options = map.next_value_seed(Entries { left: &mut left })?;
            sections.0.insert(name.to_owned(), options);
        }
        Ok(sections)
    }
}

/// A map of options.
struct Entries<'a> {
    left: &'a mut usize,
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = Options;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Options, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = Options;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("options")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Options, A::Error> {
        let mut options = Options::default();
        while let Some(name) = map.next_key::<&str>()? {
            take(self.left, name)?;
            let value = map.next_value_seed(Value { left: self.left })?;
            options.insert(name.to_owned(), value.try_into().map_err(Error::custom)?);
        }
        Ok(options)
    }
}

/// Subtracts the size of a text.
fn take<E: Error>(left: &mut usize, text: &str) -> Result<(), E> {
    match left.checked_sub(text.len() + EACH) {
        Some(rest) => *left = rest,
        None => return Err(E::custom("the options are too long")),
    }
    Ok(())
}

/// One value, of a type that options can have.
struct Value<'a> {
    left: &'a mut usize,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = Variant<'static>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = Variant<'static>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let missing = || A::Error::custom("a value is missing");
        let signature = parts.next_element::<&str>()?.ok_or_else(missing)?;
        parts.next_element_seed(Content { signature, left: self.left })?.ok_or_else(missing)
    }
}

/// The content of a value.
struct Content<'a, 's> {
    signature: &'s str,
    left: &'a mut usize,
}

impl<'de> DeserializeSeed<'de> for Content<'_, '_> {
    type Value = Variant<'static>;

    // One function for all types: one for each would add a kilobyte to the program.
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        Ok(match self.signature {
            "s" => {
                let text = <&str>::deserialize(from)?;
                take(self.left, text)?;
                Variant::from(text.to_owned())
            }
            "b" => bool::deserialize(from)?.into(),
            "i" => i32::deserialize(from)?.into(),
            "u" => u32::deserialize(from)?.into(),
            "x" => i64::deserialize(from)?.into(),
            "t" => u64::deserialize(from)?.into(),
            "d" => f64::deserialize(from)?.into(),
            "as" => from.deserialize_seq(Words { left: self.left })?.into(),
            other => {
                let known = "a string, a number, true or false, or a list of strings";
                return Err(D::Error::custom(format!("an option of type {other:.20}: it is {known}")));
            }
        })
    }
}

/// A list of strings.
struct Words<'a> {
    left: &'a mut usize,
}

impl<'de> Visitor<'de> for Words<'_> {
    type Value = Vec<String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = list.next_element::<&str>()? {
            take(self.left, word)?;
            words.push(word.to_owned());
        }
        Ok(words)
    }
}

/// Whether `force` is set; any other option is an error.
pub(crate) fn only_force(options: &Options) -> error::Result<bool> {
    let mut forced = false;
    for (name, value) in options.iter() {
        match (name.as_str(), &**value) {
            ("force", Variant::Bool(value)) => forced = *value,
            ("force", _) => return Err(invalid("the option `force` is true or false")),
            _ => return Err(invalid(format!("there is no option `{name}` here; `force` is the only one"))),
        }
    }
    Ok(forced)
}

/// The error for an invalid option or argument.
pub(crate) fn invalid(message: impl Into<String>) -> error::Error {
    error::Error::new(error::ErrorKind::InvalidArgument, message)
}

/// Refuses any option.
pub(crate) fn none(options: &Options) -> error::Result<()> {
    match options.keys().next() {
        None => Ok(()),
        Some(name) => Err(invalid(format!("there is no option `{name}` here"))),
    }
}

/// The strings of a list, each with the limit of a single string.
pub(crate) fn texts<'a>(key: &str, list: &'a Array<'_>) -> error::Result<Vec<&'a str>> {
    let text = |word: &'a Variant<'_>| match word {
        Variant::Str(text) => Ok(text.as_str()),
        _ => Err(invalid(format!("`{key}` is a list of strings"))),
    };
    let words = list.iter().map(text).collect::<error::Result<Vec<&str>>>()?;
    match words.iter().map(|word| word.len()).sum::<usize>() {
        length if length > LONGEST => Err(invalid(format!("`{key}` is longer than {LONGEST} bytes"))),
        _ => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use zbus::wire::serialized::Context;
    use zbus::wire::{LE, to_bytes};

    use super::*;

    fn read(options: &HashMap<String, Variant<'_>>) -> Result<Options, String> {
        let bytes = to_bytes(Context::new(LE, 0), options).unwrap();
        bytes.deserialize::<Options>().map(|(options, _)| options).map_err(|error| error.to_string())
    }

    fn one(value: Variant<'_>) -> HashMap<String, Variant<'_>> {
        HashMap::from([("key".to_owned(), value)])
    }

    #[test]
    fn valid_options_are_read() {
        let values = [
            Variant::from("64MiB"),
            true.into(),
            (-5_i32).into(),
            5_u32.into(),
            i64::MIN.into(),
            u64::MAX.into(),
            vec!["a", "b"].into(),
            Vec::<&str>::new().into(),
        ];
        for value in values {
            let read = read(&one(value.try_clone().unwrap())).unwrap();
            assert_eq!(*read["key"], value);
        }
        let all: HashMap<String, Variant<'_>> =
            (0..40).map(|number| (format!("key-{number}"), number.into())).collect();
        assert_eq!(read(&all).unwrap().len(), 40);
        assert!(read(&HashMap::new()).unwrap().is_empty());
    }

    #[test]
    fn options_above_the_limits_are_refused() {
        let many: HashMap<String, Variant<'_>> =
            (0..400).map(|number| (number.to_string(), Variant::from(true))).collect();
        for options in [many, one("x".repeat(MOST).into()), one(vec![""; 400].into())] {
            assert!(read(&options).is_err());
        }
        // A limit for each section alone would be none.
        let few: HashMap<String, Variant<'_>> =
            (0..40).map(|number| (number.to_string(), Variant::from(true))).collect();
        for (count, is_read) in [(4, true), (40, false)] {
            let all: HashMap<String, &HashMap<String, Variant<'_>>> =
                (0..count).map(|number| (format!("zram{number}"), &few)).collect();
            let bytes = to_bytes(Context::new(LE, 0), &all).unwrap();
            let read = bytes.deserialize::<Sections>().map(|(sections, _)| sections.len());
            assert_eq!(read.ok(), is_read.then_some(count));
        }
        let nested = Variant::Variant(Box::new(5_u32.into()));
        for odd in [nested, 5_u8.into(), vec![vec![""]].into(), vec![1_u8].into(), (1_u8, 2_u8).into()] {
            assert!(read(&one(odd)).is_err());
        }
    }
}
