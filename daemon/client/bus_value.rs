//! Values from the bus as JSON and as text.

use serde_json::{Map, Number, Value};
use zbus::{OwnedVariant, Variant};

use logic::human::human;

/// A value as JSON; types without equivalent become null.
pub fn json(value: &Variant<'_>) -> Value {
    match value {
        Variant::Bool(value) => (*value).into(),
        Variant::U8(value) => (*value).into(),
        Variant::I16(value) => (*value).into(),
        Variant::U16(value) => (*value).into(),
        Variant::I32(value) => (*value).into(),
        Variant::U32(value) => (*value).into(),
        Variant::I64(value) => (*value).into(),
        Variant::U64(value) => (*value).into(),
        Variant::F64(value) => Number::from_f64(*value).map_or(Value::Null, Value::Number),
        Variant::Str(text) => text.as_str().into(),
        Variant::ObjectPath(path) => path.as_str().into(),
        Variant::Variant(inner) => json(inner),
        Variant::Array(array) => array.iter().map(json).collect(),
        Variant::Structure(fields) => fields.fields().iter().map(json).collect(),
        Variant::Dict(entries) => {
            let entry = |(key, value): (&Variant<'_>, &Variant<'_>)| (text(&json(key)), json(value));
            Value::Object(entries.iter().map(entry).collect())
        }
        _ => Value::Null,
    }
}

/// A dictionary of properties.
pub fn properties<'a>(
    values: impl IntoIterator<Item = (impl ToString, &'a OwnedVariant)>,
) -> Map<String, Value> {
    values.into_iter().map(|(name, value)| (name.to_string(), json(value))).collect()
}

/// A value as text.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "(none)".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) if items.is_empty() => "(none)".to_owned(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// An item of a list; fields of a structure are separated by blanks.
fn words(item: &Value) -> String {
    match item {
        Value::Array(fields) => fields.iter().map(text).collect::<Vec<_>>().join(" "),
        other => text(other),
    }
}

/// The value of a property as text: bytes with a unit.
pub fn of_property(name: &str, value: &Value) -> String {
    match value.as_u64() {
        Some(0) if name == "MemoryLimitBytes" => "(none)".to_owned(),
        Some(u64::MAX) if name.ends_with("Bytes") => "(none)".to_owned(),
        Some(bytes) if name.ends_with("Bytes") => human(bytes),
        _ => text(value),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn values_keep_their_kind_in_json() {
        let parameters: HashMap<String, String> = [("level".to_owned(), "3".to_owned())].into();
        let table: [(Variant<'_>, Value); 7] = [
            (u64::MAX.into(), u64::MAX.into()),
            ((-1_i32).into(), (-1).into()),
            (0.5.into(), 0.5.into()),
            (f64::NAN.into(), Value::Null),
            ("zram0".into(), "zram0".into()),
            (vec![(1_u32, "zstd".to_owned())].into(), serde_json::json!([[1, "zstd"]])),
            (parameters.into(), serde_json::json!({"level": "3"})),
        ];
        for (value, expected) in table {
            assert_eq!(json(&value), expected);
        }
    }

    #[test]
    fn people_read_amounts_and_words() {
        for (name, value, expected) in [
            ("DiskSizeBytes", serde_json::json!(1 << 30), "1.0 GiB"),
            ("MemoryLimitBytes", 0.into(), "(none)"),
            ("WritebackLimitBytes", u64::MAX.into(), "(none)"),
            ("Priority", (-1).into(), "-1"),
            ("Managed", true.into(), "yes"),
            ("BackingDevice", "".into(), "(none)"),
            ("RecompressionAlgorithms", serde_json::json!([[1, "zstd"], [2, "lz4"]]), "1 zstd, 2 lz4"),
        ] {
            assert_eq!(of_property(name, &value), expected);
        }
    }
}
