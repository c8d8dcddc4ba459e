//! Files of shell assignments: read, never run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::document::{self, Draft};
use super::generator::plain_size;
use crate::logic::algorithm::Algorithm;

/// One assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Where it is.
    pub file: PathBuf,
    /// Its line, counted from 1.
    pub line: usize,
    /// Its name.
    pub name: String,
    /// Its value, without quotes.
    pub value: String,
}

impl Variable {
    /// As people write it.
    pub fn text(&self) -> String {
        format!("{}={}", self.name, self.value)
    }
}

/// The last assignment of each variable.
#[derive(Debug, Default)]
pub struct Variables(BTreeMap<String, Variable>);

impl Variables {
    /// The assignment of a variable; an empty value is none.
    pub fn get(&self, name: &str) -> Option<&Variable> {
        self.0.get(name).filter(|variable| !variable.value.is_empty())
    }
}

/// Reads files, the last one wins. Warns of what is no assignment, and of names that the `program` does not know.
pub fn read(program: &str, known: &[&str], files: &[(PathBuf, String)], draft: &mut Draft) -> Variables {
    let mut variables = Variables::default();
    for (file, text) in files {
        for (index, line) in text.lines().enumerate() {
            let mut found = Vec::new();
            if let Err(why) = assignments(line, &mut found) {
                draft.warn(file, Some(index + 1), format!("{why}; it was left out"));
            }
            for (name, value) in found {
                if !known.contains(&name.as_str()) {
                    draft.warn(file, Some(index + 1), unknown(program, &name, known));
                    draft.row(format!("{name}={value}"), "", format!("{program} does not know it"));
                    continue;
                }
                let variable = Variable { file: file.clone(), line: index + 1, name: name.clone(), value };
                variables.0.insert(name, variable);
            }
        }
    }
    variables
}

fn unknown(program: &str, name: &str, known: &[&str]) -> String {
    let near = known.iter().map(|other| (strsim::damerau_levenshtein(name, other), other)).min();
    match near {
        Some((distance, other)) if distance <= 3 => {
            format!("{program} ignores `{name}`, and so it was left out; did you mean {other}?")
        }
        _ => format!("{program} ignores `{name}`, and so it was left out"),
    }
}

/// The assignments of one line; an error says what else is on it.
fn assignments(line: &str, found: &mut Vec<(String, String)>) -> Result<(), String> {
    let mut rest = line.trim();
    rest = rest.strip_prefix("export ").unwrap_or(rest);
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
        if rest.is_empty() || rest.starts_with('#') {
            return Ok(());
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let Some(behind) = behind.strip_prefix('=').filter(|_| !name.is_empty()) else {
            return Err(format!("`{rest}` is no assignment"));
        };
        let (value, behind) = word(behind).map_err(|why| format!("`{name}` {why}"))?;
        found.push((name.to_owned(), value));
        rest = behind;
    }
}

/// One word as the shell reads it, and what follows.
fn word(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut quote = None;
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            ('$' | '`', None | Some('"')) => {
                return Err("is worked out by a shell, which an import does not run");
            }
            ('\\', None | Some('"')) => value.extend(letters.next().map(|(_, letter)| letter)),
            (letter, None) if letter.is_whitespace() || letter == ';' => return Ok((value, &text[at..])),
            ('(' | '&' | '|' | '<' | '>', None) => return Err("is more than an assignment"),
            _ => value.push(letter),
        }
    }
    if quote.is_some() { Err("has a quote that is not closed") } else { Ok((value, "")) }
}

/// A whole number, or the default with a warning.
pub fn number<T: std::str::FromStr + Copy>(variable: Option<&Variable>, default: T, draft: &mut Draft) -> T {
    let Some(variable) = variable else { return default };
    variable.value.trim().parse().unwrap_or_else(|_| {
        let text = format!("`{}` is no number for {}; its default was taken", variable.value, variable.name);
        draft.warn(&variable.file, Some(variable.line), text);
        default
    })
}

/// A number of MiB as a size for zramd: `2048`, or what `2G` plainly means.
pub fn mebibytes(variable: Option<&Variable>, default: u64, draft: &mut Draft) -> String {
    let Some(variable) = variable else { return default.to_string() };
    let value = variable.value.trim();
    if let Ok(number) = value.parse::<u64>() {
        return number.to_string();
    }
    let (text, size) = match plain_size(value) {
        Some(plain) => {
            let taken = if plain == value { "it plainly means" } else { &plain };
            (format!("`{}` takes a number of MiB; `{value}` was taken as {taken}", variable.name), plain)
        }
        None => {
            let text = format!("`{value}` is no number of MiB for {}; {default} was taken", variable.name);
            (text, default.to_string())
        }
    };
    draft.warn(&variable.file, Some(variable.line), text);
    size
}

/// A list for `compression-algorithm`: the one that was chosen, else another.
pub fn algorithm(variable: Option<&Variable>, default: &str, draft: &mut Draft) -> String {
    let name = match variable {
        None => default,
        Some(variable) => match Algorithm::parse(&variable.value) {
            Ok(_) => variable.value.trim(),
            Err(error) => {
                let hint = error.hint.map_or(String::new(), |hint| format!(" ({hint})"));
                let text = format!("{}{hint}; {default} was taken", error.message);
                draft.warn(&variable.file, Some(variable.line), text);
                default
            }
        },
    };
    document::list(&[name.to_owned(), "auto".to_owned()])
}

/// A priority of swap.
pub fn priority(variable: Option<&Variable>, default: i32, draft: &mut Draft) -> i32 {
    let priority = number(variable, default, draft);
    match variable {
        Some(variable) if !(-1..=32767).contains(&priority) => {
            let text = format!("{priority} is no priority from -1 to 32767; {default} was taken");
            draft.warn(&variable.file, Some(variable.line), text);
            default
        }
        _ => priority,
    }
}

/// How a setting that was or was not given is shown in the table.
pub fn was(variable: Option<&Variable>, name: &str, default: &str) -> String {
    variable.map_or_else(|| format!("{name} is not set: {default}"), Variable::text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &[(&str, &str)], error: &str) {
        let mut found = Vec::new();
        let result = assignments(line, &mut found);
        let expected: Vec<_> = expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(found, expected, "{line}");
        assert_eq!(result.is_err(), !error.is_empty(), "{line}: {result:?}");
        assert!(result.err().unwrap_or_default().contains(error), "{line}");
    }

    #[test]
    fn assignments_are_read_as_the_shell_reads_them() {
        check("# ALGO=lz4", &[], "");
        check("", &[], "");
        check("ALGO=lz4", &[("ALGO", "lz4")], "");
        check("  export ALGO='lz4' # fast", &[("ALGO", "lz4")], "");
        check("A=\"x y\"z B=\\ c;C=", &[("A", "x yz"), ("B", " c"), ("C", "")], "");
        check("PATH_DISK=\"/var/log;/home/a\"", &[("PATH_DISK", "/var/log;/home/a")], "");
        check("A='$HOME'", &[("A", "$HOME")], "");
        check("A=a#b", &[("A", "a#b")], "");
    }

    #[test]
    fn what_a_shell_would_have_to_run_is_left_out() {
        check("SIZE=$((2*1024))", &[], "worked out by a shell");
        check("SIZE=\"`nproc`\"", &[], "worked out by a shell");
        check("A=1; rm -rf /", &[("A", "1")], "is no assignment");
        check("A = 1", &[], "is no assignment");
        check("A='x", &[], "not closed");
        check("A=(1 2)", &[], "more than an assignment");
    }

    #[test]
    fn unknown_names_get_a_hint() {
        let mut draft = Draft::default();
        let files = [("/f".into(), "PERCENTAGE=50\nSIZE=1\nSIZE=2\nFOOTLE=1\n".to_owned())];
        let variables = read("zram-tools", &["PERCENT", "SIZE"], &files, &mut draft);
        assert_eq!(variables.get("SIZE").unwrap().value, "2");
        assert!(draft.warnings[0].text.contains("did you mean PERCENT?"));
        assert!(!draft.warnings[1].text.contains("did you mean"));
    }
}
