//! The table of keys as a JSON schema, for editors that complete and validate TOML.
//!
//! It does not validate expressions, time spans and algorithms; `zramdctl check` does.

use serde_json::{Map, Value, json};

use super::key::{Key, SECONDARY_ALGORITHMS, Type};
use super::schema::{SECTIONS, SectionKind};

/// The schema as installed.
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
            // A table, which can also be enabled or disabled as a whole.
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
    let Key { kind, default, meaning, .. } = key;
    let mut schema = form(kind);
    schema["description"] = format!("{meaning}\nValues: {kind}. Default: {default}.").into();
    schema
}

fn form(kind: &Type) -> Value {
    let text = json!({ "type": "string" });
    let number = json!({ "type": "number", "minimum": 0 });
    let path = json!({ "type": "string", "pattern": "^/" });
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let integer = |least: i64, most: i64| json!({ "type": "integer", "minimum": least, "maximum": most });
    let mut forms = match kind {
        Type::Bool => vec![json!({ "type": "boolean" })],
        Type::Size { .. } => vec![number, text],
        Type::Number => vec![number],
        Type::Integer { least, most: i64::MAX, .. } => vec![json!({ "type": "integer", "minimum": least })],
        Type::Integer { least, most, .. } => vec![integer(*least, *most)],
        Type::Span { least, .. } => {
            vec![
                json!({ "type": "integer", "minimum": least }),
                json!({ "type": "string", "pattern": "^[0-9]" }),
            ]
        }
        Type::Word(_) => vec![],
        Type::Text => vec![text],
        Type::Path => vec![path],
        Type::Options | Type::Words | Type::Algorithms => vec![text, list],
        Type::Octal => {
            vec![json!({ "type": "string", "pattern": "^0*[0-7]{1,4}$" }), integer(0, 0o7777)]
        }
        Type::Principal => vec![text, integer(0, i64::from(u32::MAX) - 1)],
        Type::Command => {
            vec![json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }), path]
        }
        Type::Secondary => {
            let mut list = list;
            list["maxItems"] = SECONDARY_ALGORITHMS.into();
            vec![text, list]
        }
    };
    if !kind.words().is_empty() {
        forms.push(json!({ "enum": kind.words() }));
    }
    match forms.as_slice() {
        [form] => form.clone(),
        forms => json!({ "anyOf": forms }),
    }
}
