//! `set!name = program`: what the caller says that it prints. What `echo 4` prints is known without running it.

use std::collections::BTreeMap;

use super::size::Given;
use super::{Draft, Setting, Values, formula};

/// What is known of the variables, in the order of the files: a later line can use what an earlier one gives.
pub fn given(settings: &[Setting], values: &Values, draft: &mut Draft) -> Given {
    let mut given = Given::default();
    for setting in settings.iter().filter(|setting| setting.section.is_none()) {
        let was = format!("{} = {}", setting.key, setting.value);
        let Some(name) = setting.key.strip_prefix("set!") else {
            let text =
                format!("zram-generator ignores `{}` before the first section; it was left out", setting.key);
            draft.warn(&setting.file, Some(setting.line), text);
            draft.row(was, "", "zram-generator ignores it");
            continue;
        };
        if draft.head.is_empty() {
            draft.head.push(
                "zramd runs no programs to read its configuration. These were run at every boot:".to_owned(),
            );
        }
        draft.head.push(was.clone());
        if name == "ram" {
            draft.warn(
                &setting.file,
                Some(setting.line),
                "zram-generator ignores a `ram` of one's own; it was left out",
            );
            draft.row(was, "", "zram-generator ignores it");
            continue;
        }
        let (note, text) = variable(name, setting, values, &mut given);
        draft.warn(&setting.file, Some(setting.line), text);
        draft.row(was, "", note);
    }
    given
}

/// Notes what a variable is, and says what became of its line.
fn variable(name: &str, setting: &Setting, values: &Values, given: &mut Given) -> (String, String) {
    let program = &setting.value;
    let value = values.given.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let ran = values.printed.iter().find(|(it, _)| it.file == setting.file && it.line == setting.line);
    // A program may use what an earlier one of the same name gave.
    let earlier = given.known.remove(name);
    given.programs.insert(name.to_owned());
    let (text, whence) = match (value, ran.map(|(_, printed)| printed.clone()), printed(program)) {
        (Some(value), _, _) => (value, "was given for it"),
        (None, Some(Ok(printed)), _) => (printed, "it has just printed"),
        (None, Some(Err(why)), _) => {
            let text = format!("`{program}` {why}; write a size in place of `{name}`");
            return ("it was run in vain".to_owned(), text);
        }
        (None, None, Some(printed)) => (printed, "is what it prints"),
        (None, None, None) => {
            let text = format!(
                "zramd runs no programs to read its configuration; run `{program}` yourself and write what it prints in \
                 place of `{name}`, or have the import run it (--run-programs)"
            );
            return ("a program; zramd runs none".to_owned(), text);
        }
    };
    let formula = formula(&text, given).map(|formula| match earlier {
        Some(earlier) => formula.with(&BTreeMap::from([(name.to_owned(), earlier)])),
        None => formula,
    });
    match formula {
        Ok(formula) => {
            given.programs.remove(name);
            given.known.insert(name.to_owned(), formula);
            let text = format!(
                "zramd will not run the program of `{name}`; `{text}`, which {whence}, was put in its place"
            );
            ("put in where it was used".to_owned(), text)
        }
        Err(error) => {
            let text = format!(
                "`{text}`, which {whence}, is no expression ({error}); write a size in place of `{name}`"
            );
            ("no expression".to_owned(), text)
        }
    }
}

/// What `echo WORDS` prints, when the shell has nothing to do with the words. Its exit status does not matter.
fn printed(program: &str) -> Option<String> {
    let program = program.trim();
    let words = program.strip_prefix("! ").unwrap_or(program).trim_start().strip_prefix("echo ")?.trim();
    let quoted = |quote: char| words.strip_prefix(quote)?.strip_suffix(quote);
    let (text, special): (&str, &[char]) = match (quoted('\''), quoted('"')) {
        (Some(inner), _) => (inner, &['\'']),
        (None, Some(inner)) => (inner, &['"', '$', '`', '\\', '!']),
        (None, None) => (
            words,
            &['\'', '"', '$', '`', '\\', '!', '(', ')', '<', '>', '&', '|', ';', '#', '?', '[', '{', '~'],
        ),
    };
    (!text.is_empty() && !text.starts_with('-') && !text.contains(special)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_shell_leaves_alone_is_known() {
        for (program, expected) in [
            ("echo 4", Some("4")),
            ("! echo top / bottom", Some("top / bottom")),
            ("echo 'min(ram, 4)'", Some("min(ram, 4)")),
            ("echo \"ram / 2\"", Some("ram / 2")),
            ("echo $((4*5))", None),
            ("echo \"$HOME\"", None),
            ("echo 4; rm -rf /", None),
            ("echo 'a' 'b'", None),
            ("echo -n 4", None),
            ("echo", None),
            ("nproc", None),
        ] {
            assert_eq!(printed(program).as_deref(), expected, "{program}");
        }
    }
}
