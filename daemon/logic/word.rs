//! Words of enumerations without data. They are the names that serde has: in JSON, in files, on command lines and on the bus.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, IntoDeserializer, Visitor, value};
use serde::{Serialize, forward_to_deserialize_any};

/// The word of a value.
pub fn word<T: Serialize + Deserialize<'static>>(value: T) -> &'static str {
    let word = serde_json::to_value(value).unwrap_or_default();
    let Err(Names(names)) = T::deserialize(Ask) else { return "" };
    names.iter().find(|name| word == **name).copied().unwrap_or_default()
}

/// The value with this word.
pub fn of_word<'w, T: Deserialize<'w>>(word: &'w str) -> Option<T> {
    let word: value::StrDeserializer<'w, value::Error> = word.into_deserializer();
    T::deserialize(word).ok()
}

/// Asks a type for its names, which serde passes to a deserializer.
struct Ask;

/// The names, as the error that ends the question.
#[derive(Debug)]
struct Names(&'static [&'static str]);

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Names {}

impl de::Error for Names {
    fn custom<T: fmt::Display>(_: T) -> Names {
        Names(&[])
    }
}

impl<'de> Deserializer<'de> for Ask {
    type Error = Names;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Names> {
        Err(Names(names))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Names> {
        Err(Names(&[]))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ramdisk::SaveReason;
    use crate::ramdisk::omitted::Reason;
    use crate::ramdisk::status::SaveResult;
    use crate::sample::ReasonView;

    #[test]
    fn words_are_those_of_serde() {
        assert_eq!(word(ReasonView::KernelDefault), "kernel-default");
        assert_eq!(of_word("kernel-default"), Some(ReasonView::KernelDefault));
        assert_eq!(of_word::<ReasonView>("KernelDefault"), None);
        assert_eq!(of_word::<ReasonView>(""), None);
        // Renamed to nothing, and a name for what is unknown.
        assert_eq!(
            (word(SaveResult::None), word(SaveReason::Unknown), word(Reason::Other)),
            ("", "", "other")
        );
        assert_eq!(of_word("later"), Some(Reason::Other));
        assert_eq!(word(SaveReason::Timer), "timer");
    }
}
