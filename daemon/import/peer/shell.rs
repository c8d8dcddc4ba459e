//! Parses files of shell assignments, without running them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::document::Draft;
use logic::device::algorithm::Algorithm;
use logic::expr::Expr;
use logic::overlay::list;
use logic::text::nearest;

/// An assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub file: PathBuf,
    /// Its line, counted from 1.
    pub line: usize,
    pub name: String,
    /// Its value, without quotes.
    pub value: String,
}

impl Variable {
    /// The assignment as text.
    pub fn text(&self) -> String {
        format!("{}={}", self.name, self.value)
    }
}

/// The last assignment of each variable.
#[derive(Debug, Default)]
pub struct Variables(BTreeMap<String, Variable>);

impl Variables {
    /// The assignment of a variable; `None` for an empty value.
    pub fn get(&self, name: &str) -> Option<&Variable> {
        self.0.get(name).filter(|variable| !variable.value.is_empty())
    }
}

/// Reads files; the last assignment takes precedence. Warns about other lines, and about names that `program` does not
/// use.
pub fn read(program: &str, known: &[&str], files: &[(PathBuf, String)], draft: &mut Draft) -> Variables {
    let mut variables = Variables::default();
    for (file, text) in files {
        for (index, line) in text.lines().enumerate() {
            match assignment(line) {
                Ok(None) => {}
                Err(why) => draft.warn(file, Some(index + 1), format!("{why}; this line was left out")),
                Ok(Some((name, value))) if !known.contains(&name) => {
                    draft.warn(file, Some(index + 1), unknown(program, name, known));
                    draft.row(format!("{name}={value}"), "", format!("{program} does not know it"));
                }
                Ok(Some((name, value))) => {
                    let name = name.to_owned();
                    let variable =
                        Variable { file: file.clone(), line: index + 1, name: name.clone(), value };
                    variables.0.insert(name, variable);
                }
            }
        }
    }
    variables
}

fn unknown(program: &str, name: &str, known: &[&str]) -> String {
    // The names of some programs differ in length, as PERCENT and PERCENTAGE.
    let begins = || known.iter().copied().find(|other| name.starts_with(other));
    let meant = nearest(name, known.iter().copied()).or_else(begins);
    let meant = meant.map(|other| format!("; did you mean {other}?")).unwrap_or_default();
    format!("{program} ignores `{name}`, and so it was left out{meant}")
}

/// The assignment in a line, if there is one; an error for any other text.
fn assignment(line: &str) -> Result<Option<(&str, String)>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
    let is_name = |name: &str| name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    match line.split_once('=') {
        Some((name, value)) if !name.is_empty() && is_name(name) => match word(value) {
            Ok(value) => Ok(Some((name, value))),
            Err(why) => Err(format!("`{name}` {why}")),
        },
        _ => Err(format!("`{line}` is no assignment")),
    }
}

/// One word in the syntax of the shell, followed by nothing but a comment.
fn word(text: &str) -> Result<String, &'static str> {
    let mut value = String::new();
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            ('$' | '`', None | Some('"')) => {
                return Err("needs a shell, which an import does not run");
            }
            ('\\', None | Some('"')) => value.extend(letters.next()),
            (' ' | '\t' | ';', None) => {
                let rest = letters.as_str().trim_start_matches([' ', '\t', ';']);
                let is_over = rest.is_empty() || rest.starts_with('#');
                return if is_over { Ok(value) } else { Err("is more than one assignment") };
            }
            ('(' | '&' | '|' | '<' | '>', None) => return Err("is more than an assignment"),
            _ => value.push(letter),
        }
    }
    if quote.is_some() { Err("has a quote that is not closed") } else { Ok(value) }
}

/// A whole number; the default with a warning if it is invalid.
pub fn number<T: std::str::FromStr + Copy>(variable: Option<&Variable>, default: T, draft: &mut Draft) -> T {
    let Some(variable) = variable else { return default };
    variable.value.trim().parse().unwrap_or_else(|_| {
        let text = format!("`{}` is no number for {}; its default was taken", variable.value, variable.name);
        draft.warn(&variable.file, Some(variable.line), text);
        default
    })
}

/// A number of MiB as a size of zramd: `2048`, or `2G` as intended.
pub fn mebibytes(variable: Option<&Variable>, default: u64, draft: &mut Draft) -> String {
    let Some(variable) = variable else { return default.to_string() };
    let value = variable.value.trim();
    if let Ok(number) = value.parse::<u64>() {
        return number.to_string();
    }
    let (text, size) = if Expr::parse(value).is_ok() {
        (
            format!("`{}` takes a number of MiB; zramd takes `{value}` as it is", variable.name),
            value.to_owned(),
        )
    } else {
        let text = format!("`{value}` is no number of MiB for {}; {default} was taken", variable.name);
        (text, default.to_string())
    };
    draft.warn(&variable.file, Some(variable.line), text);
    size
}

/// A list for `compression-algorithm`: the configured one, then `auto`.
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
    list(&[name, "auto"])
}

/// The priority of swap.
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

/// The setting as shown in the table, also if it is not set.
pub fn was(variable: Option<&Variable>, name: &str, default: &str) -> String {
    variable.map_or_else(|| format!("{name} is not set: {default}"), Variable::text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read_as_the_shell_reads_them() {
        for (line, expected) in [
            ("# ALGO=lz4", None),
            ("", None),
            ("ALGO=lz4", Some(("ALGO", "lz4"))),
            ("  export ALGO='lz4' # fast", Some(("ALGO", "lz4"))),
            ("A=\"x y\"z\\ a;", Some(("A", "x yz a"))),
            ("C=", Some(("C", ""))),
            ("PATH_DISK=\"/var/log;/home/a\"", Some(("PATH_DISK", "/var/log;/home/a"))),
            ("A='$HOME'", Some(("A", "$HOME"))),
            ("A=a#b", Some(("A", "a#b"))),
        ] {
            let expected = expected.map(|(name, value)| (name, value.to_owned()));
            assert_eq!(assignment(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn what_a_shell_would_have_to_run_is_left_out() {
        for line in [
            "SIZE=$((2*1024))",
            "SIZE=\"`nproc`\"",
            "A=1; rm -rf /",
            "A=1&reboot",
            "A=1 B=2",
            "A = 1",
            "=1",
            "A-B=1",
            "A='x",
            "A=(1 2)",
            "A=(1)",
        ] {
            assert!(assignment(line).is_err(), "{line}");
        }
    }

    #[test]
    fn unknown_names_get_a_hint() {
        let mut draft = Draft::default();
        let files = [("/f".into(), "PERCENTAGE=50\nSIZE=1\nSIZE=2\nFOOTLE=1\n".to_owned())];
        let variables = read("zram-tools", &["PERCENT", "SIZE"], &files, &mut draft);
        assert_eq!(variables.get("SIZE").unwrap().value, "2");
        assert!(draft.warnings[0].text.contains("PERCENT?"));
        assert!(!draft.warnings[1].text.contains('?'));
    }

    #[test]
    fn a_priority_that_swapon_does_not_take_becomes_the_default() {
        for (value, expected, warnings) in [
            ("-2", 100, 1),
            ("-1", -1, 0),
            ("0", 0, 0),
            ("32767", 32767, 0),
            ("32768", 100, 1),
            ("high", 100, 1),
        ] {
            let mut draft = Draft::default();
            let variable =
                Variable { file: "/f".into(), line: 1, name: "PRIORITY".to_owned(), value: value.to_owned() };
            let found = priority(Some(&variable), 100, &mut draft);
            assert_eq!((found, draft.warnings.len()), (expected, warnings), "{value}");
        }
    }
}
