//! The table of keys as a JSON schema, for editors that complete and check TOML.
//!
//! It is as exact as the words in which [`Key::values`] says what a key takes; what it lets through, `zramdctl check` finds.

use serde_json::{Map, Value, json};

use super::schema::{Key, SECTIONS, SectionKind};

/// The schema, as it is installed.
pub fn json_schema() -> Value {
    let mut properties = Map::new();
    let mut patterns = Map::new();
    for (example, about, kind) in SECTIONS {
        let section = section(about, *kind);
        if example.starts_with("zram") {
            patterns.insert("^zram(0|[1-9][0-9]*)$".to_owned(), section);
        } else if let Some((family, _)) = example.split_once('.') {
            let family_schema =
                json!({ "type": "object", "description": about, "additionalProperties": section });
            properties.insert(family.to_owned(), family_schema);
        } else {
            properties.insert((*example).to_owned(), section);
        }
    }
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "zramd.toml",
        "description": "Compressed swap and RAM disks; see zramd.toml(5).",
        "type": "object",
        "properties": properties,
        "patternProperties": patterns,
        "additionalProperties": false,
    })
}

fn section(about: &str, kind: SectionKind) -> Value {
    let mut keys: Map<String, Value> = Map::new();
    for key in kind.keys() {
        match key.name.split_once('.') {
            None => {
                keys.insert(key.name.to_owned(), property(key));
            }
            // A table of its own, which can also be switched on or off as a whole.
            Some((table, name)) => {
                let table = keys.entry(table).or_insert_with(|| {
                    json!({ "type": ["object", "boolean"], "properties": {}, "additionalProperties": false })
                });
                table["properties"][name] = property(key);
            }
        }
    }
    json!({ "type": "object", "description": about, "properties": keys, "additionalProperties": false })
}

fn property(key: &Key) -> Value {
    let Key { values, default, meaning, .. } = key;
    let mut schema = form(values).unwrap_or_else(|| json!({}));
    schema["description"] = format!("{meaning}\nValues: {values}. Default: {default}.").into();
    schema
}

/// The schema of what `values` says in words, or nothing if a word of it is not known here.
pub fn form(values: &str) -> Option<Value> {
    if let Some(whole) = phrase(values) {
        return Some(whole);
    }
    let mut forms: Vec<Value> = Vec::new();
    let mut words: Vec<Value> = Vec::new();
    for part in alternatives(values) {
        match part.strip_prefix('"').and_then(|part| part.strip_suffix('"')) {
            Some(word) => words.push(word.into()),
            None => forms.push(phrase(part)?),
        }
    }
    if !words.is_empty() {
        forms.push(json!({ "enum": words }));
    }
    match forms.len() {
        0 => None,
        1 => forms.pop(),
        _ => Some(json!({ "anyOf": forms })),
    }
}

/// The parts of `a, "b" or c`.
fn alternatives(values: &str) -> impl Iterator<Item = &str> {
    let commas = values.split(" or ").flat_map(|part| part.split(','));
    commas.map(|part| part.trim().trim_start_matches("or ")).filter(|part| !part.is_empty())
}

fn phrase(words: &str) -> Option<Value> {
    let texts =
        || json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] });
    Some(match words {
        "true or false" => json!({ "type": "boolean" }),
        "size" | "size, 0 is none" => {
            json!({ "anyOf": [{ "type": "number", "minimum": 0 }, { "type": "string" }] })
        }
        "span of time" => {
            json!({ "anyOf": [{ "type": "number", "minimum": 0 }, { "type": "string", "pattern": "^[0-9]" }] })
        }
        "number, 0 or more" => json!({ "type": "number", "minimum": 0 }),
        "whole number" | "number" => json!({ "type": "integer", "minimum": 0 }),
        "text" | "name" | "type" => json!({ "type": "string" }),
        "absolute path" | "the path of a program" => json!({ "type": "string", "pattern": "^/" }),
        "octal text" => json!({ "type": "string", "pattern": "^0?[0-7]{1,4}$" }),
        "0o number" => json!({ "type": "integer", "minimum": 0, "maximum": 0o7777 }),
        "command as a list" => json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
        "text or list" | "name, name with parameters, list, or \"auto\"" | "as for [zramN]" => texts(),
        "as above, at most 3" => json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" }, "maxItems": 3 },
        ] }),
        _ => range(words)?,
    })
}

/// `-1 to 32767`.
fn range(words: &str) -> Option<Value> {
    let (from, to) = words.split_once(" to ")?;
    let (from, to): (i64, i64) = (from.parse().ok()?, to.parse().ok()?);
    Some(json!({ "type": "integer", "minimum": from, "maximum": to }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::config::schema::KEYS;

    #[test]
    fn words_about_values_become_types() {
        let is = |words, expected: Value| assert_eq!(form(words), Some(expected), "{words}");
        is("true or false", json!({ "type": "boolean" }));
        is("-1 to 32767", json!({ "type": "integer", "minimum": -1, "maximum": 32767 }));
        is("\"none\"", json!({ "enum": ["none"] }));
        is("\"a\", \"b\" or \"c\"", json!({ "enum": ["a", "b", "c"] }));
        is(
            "0 to 10, \"auto\" or \"keep\"",
            json!({ "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 10 }, { "enum": ["auto", "keep"] }] }),
        );
        assert_eq!(form("whatever comes to mind"), None);
    }

    /// Where this fails, [`phrase`] lacks a line.
    #[test]
    fn every_word_of_the_table_is_known() {
        let unknown: Vec<&str> =
            KEYS.iter().map(|key| key.values).filter(|values| form(values).is_none()).collect();
        assert_eq!(unknown, [""; 0], "say in logic/config/json_schema.rs what these are for an editor");
    }
}
