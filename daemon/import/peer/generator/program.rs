//! `set!name = program`: zramd runs no programs, and uses the output given by the caller.

use super::size::{Given, translate};
use super::{Draft, Setting, Values};

/// The values of the variables, in the order of the files: later lines can use earlier variables.
pub fn given(settings: &[Setting], values: &Values, draft: &mut Draft) -> Given {
    let mut given = Given::default();
    for setting in settings.iter().filter(|setting| setting.section.is_none()) {
        let was = format!("{} = {}", setting.key, setting.value);
        let name = setting.key.strip_prefix("set!");
        if name.is_some() {
            if draft.head.is_empty() {
                let text = "zramd runs no programs to read its configuration. These were run at every boot:";
                draft.head.push(text.to_owned());
            }
            draft.head.push(was.clone());
        }
        let Some(name) = name.filter(|name| *name != "ram") else {
            draft.warn(
                &setting.file,
                Some(setting.line),
                format!("zram-generator ignores `{}`; it was left out", setting.key),
            );
            draft.row(was, "", "zram-generator ignores it");
            continue;
        };
        let (note, text, known) = variable(name, setting, values, &given);
        given.insert(name.to_owned(), known);
        draft.warn(&setting.file, Some(setting.line), text);
        draft.row(was, "", note);
    }
    given
}

/// The row and warnings for the line of a variable, and its value.
fn variable(
    name: &str,
    setting: &Setting,
    values: &Values,
    given: &Given,
) -> (&'static str, String, Option<String>) {
    let program = &setting.value;
    let value = values.given.iter().rev().find(|(known, _)| known == name);
    let ran = values.printed.iter().find(|(it, _)| it.file == setting.file && it.line == setting.line);
    let printed = match (value, ran) {
        (Some((_, value)), _) | (None, Some((_, Ok(value)))) => value.trim(),
        (None, Some((_, Err(why)))) => {
            let text = format!("`{program}` {why}; write a size in place of `{name}`");
            return ("it failed", text, None);
        }
        (None, None) => {
            let text = format!(
                "zramd runs no programs to read its configuration; run `{program}` yourself and write what it prints in \
                 place of `{name}`, or have the import run it (--run-programs)"
            );
            return ("a program; zramd runs none", text, None);
        }
    };
    match translate(printed, given) {
        Ok(size) => {
            let text =
                format!("zramd will not run the program of `{name}`; `{printed}` was put in its place");
            let text = [&[text][..], &size.warnings].concat().join("; ");
            let is_word = size.text.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
            let known = if is_word { size.text } else { format!("({})", size.text) };
            ("put in where it was used", text, Some(known))
        }
        Err(why) => ("no expression", format!("{why}; write a size in place of `{name}`"), None),
    }
}
