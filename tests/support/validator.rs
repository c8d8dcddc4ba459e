//! JSON documents and the schemas in `config`, by a validator that is not ours.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{PYTHON, has_program, repository, skip, texts};

/// Reads a schema and a list of `[name, TOML or JSON]`, and prints the result for each: `[name, complaint or null]`.
const VALIDATE: &str = r"
import json, sys, tomllib
from jsonschema import Draft7Validator
schema, texts = json.load(sys.stdin)
Draft7Validator.check_schema(schema)
validator = Draft7Validator(schema)
def complaint(text):
    document = json.loads(text) if text.startswith('{') else tomllib.loads(text)
    return next((error.message for error in validator.iter_errors(document)), None)
json.dump([[name, complaint(text)] for name, text in texts], sys.stdout)
";

/// What an independent validator says about each document: name and complaint. `None` if there is none here.
pub fn validated(schema: &Value, documents: &[(String, String)]) -> Option<Vec<(String, Option<String>)>> {
    let mut check = Command::new(PYTHON);
    check.args(["-c", "import jsonschema, tomllib"]).stderr(Stdio::null());
    if !has_program(PYTHON) || !check.status().unwrap().success() {
        skip("needs python3 (3.11 or newer) with jsonschema");
        return None;
    }
    let mut child = Command::new(PYTHON)
        .args(["-c", VALIDATE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(json!([schema, documents]).to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", texts(&output).1);
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// A definition of `config/zramdctl.schema.json`, as a schema.
pub fn definition(name: &str) -> Value {
    let text = fs::read_to_string(repository("config/zramdctl.schema.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    assert!(all["definitions"][name].is_object(), "{name}");
    json!({"$ref": format!("#/definitions/{name}"), "definitions": all["definitions"]})
}
