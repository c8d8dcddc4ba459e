//! Size expressions: the same as in zramd, except for suffix letters and the variables of `set!` lines.

use std::collections::BTreeMap;

use logic::expr::Expr;
use logic::human::meant_unit;

/// The note if the original rejects something.
pub const REFUSED: &str = "zram-generator refuses this and so sets up no device at all";
/// fasteval's suffix letters, as decimal exponents.
const SUFFIXES: [(char, &str); 10] = [
    ('p', "e-12"),
    ('n', "e-9"),
    ('u', "e-6"),
    ('µ', "e-6"),
    ('m', "e-3"),
    ('k', "e3"),
    ('K', "e3"),
    ('M', "e6"),
    ('G', "e9"),
    ('T', "e12"),
];

/// The variables of `set!` lines, with expressions for zramd if the output of their program is known.
pub type Given = BTreeMap<String, Option<String>>;

/// An expression for zramd.
#[derive(Debug, PartialEq, Eq)]
pub struct Size {
    /// The expression.
    pub text: String,
    pub warnings: Vec<String>,
}

/// The expression of zramd for `value`.
pub fn translate(value: &str, given: &Given) -> Result<Size, String> {
    let mut warnings = Vec::new();
    let text = literal(value, given, &mut warnings)?;
    let error = match (Expr::parse(&text), Expr::parse(value)) {
        (Ok(_), _) => return Ok(Size { text, warnings }),
        // `2GiB`, `50%`: valid in zramd only.
        (Err(_), Ok(_)) => {
            let warnings = vec![format!("{REFUSED}; zramd takes `{value}` as it is")];
            return Ok(Size { text: value.to_owned(), warnings });
        }
        (Err(_), Err(error)) if given.is_empty() => error,
        (Err(error), Err(_)) => error,
    };
    let hint = error.hint.map_or(String::new(), |hint| format!(" ({hint})"));
    Err(format!("`{value}` is no size: {}{hint}", error.message))
}

/// The same text with suffix letters replaced by exponents, and variables by their values.
fn literal(value: &str, given: &Given, warnings: &mut Vec<String>) -> Result<String, String> {
    let (mut text, mut rest) = (String::new(), value);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            'a'..='z' | 'A'..='Z' | '_' => {
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            '0'..='9' | '.' => number(rest),
            other => other.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        rest = behind;
        match given.get(token) {
            Some(Some(known)) => {
                text.push_str(known);
                // `n()` means `n`.
                let empty = |open, close| {
                    rest.trim_start().strip_prefix(open)?.trim_start().strip_prefix::<char>(close)
                };
                rest = empty('(', ')').or_else(|| empty('[', ']')).unwrap_or(rest);
            }
            Some(None) => return Err(format!("it needs what the program of `set!{token}` prints")),
            None => text.push_str(token),
        }
        let next = rest.chars().next();
        let is_number = |token: &str| token.ends_with(|c: char| c.is_ascii_digit() || c == '.');
        if let Some((letter, power)) = SUFFIXES.into_iter().find(|(letter, _)| Some(*letter) == next)
            && is_number(token)
            && !token.contains(['e', 'E'])
        {
            let unit = meant_unit(&letter.to_string());
            let unit = unit.map_or(String::new(), |unit| format!("; write {token}{unit} if that was meant"));
            warnings.push(format!(
                "`{token}{letter}` is {token}{power} MiB to zram-generator, which was kept{unit}"
            ));
            text.push_str(power);
            rest = &rest[letter.len_utf8()..];
        }
        if rest.starts_with('%') && is_number(&text) {
            // Directly after a number, zramd could parse it as a share of RAM.
            text.push(' ');
        }
    }
    Ok(text)
}

/// The length of a number: digits, dots, and an exponent with its sign.
fn number(text: &str) -> usize {
    let mut before = ' ';
    text.find(|c: char| {
        let is_sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
        before = c;
        !(c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E') || is_sign)
    })
    .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use logic::expr::Variables;

    fn given() -> Given {
        let known = |text: &str| Some(text.to_owned());
        Given::from([("n".into(), known("(8 * 1024)")), ("m".into(), known("4")), ("x".into(), None)])
    }

    #[test]
    fn expressions_are_carried_over() {
        for (value, text, warnings) in [
            ("min(ram / 2, 4096)", "min(ram / 2, 4096)", 0),
            ("ram*0.8", "ram*0.8", 0),
            ("ram * 3 / 4", "ram * 3 / 4", 0),
            ("log(ram) + 1e3 - .5E-2", "log(ram) + 1e3 - .5E-2", 0),
            ("min[ram ; 4096]", "min[ram ; 4096]", 0),
            ("n * 3/4", "(8 * 1024) * 3/4", 0),
            ("ram / n_n()", "", 0),
            ("500k", "500e3", 1),
            ("1.5T", "1.5e12", 1),
            ("min(ram, 4G) + 1u", "min(ram, 4e9) + 1e-6", 2),
            ("50% + 1", "50 % + 1", 0),
            ("m% + 1", "4 % + 1", 0),
            ("7k%-2", "7e3 %-2", 1),
            ("1e3+4G", "1e3+4e9", 1),
            ("ram%7", "ram%7", 0),
            ("2GiB", "2GiB", 1),
            ("50%", "50%", 1),
        ] {
            match translate(value, &given()) {
                Ok(size) => {
                    assert_eq!((size.text.as_str(), size.warnings.len()), (text, warnings), "{value}");
                }
                Err(error) => assert_eq!(text, "", "{value}: {error}"),
            }
        }
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for value in
            ["ram * x", "ram * y", "large", "5 apples", "4Ki", "", "RAM/2", "e*100", "print(ram)", "1e3k"]
        {
            assert!(translate(value, &given()).is_err(), "{value}");
        }
        let why = translate("n * RAM", &given()).unwrap_err();
        assert!(why.contains("there is no `RAM`"), "`n` is known: {why}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

        #[test]
        fn what_zram_generator_accepts_has_the_same_value(text in "([0-9]{1,2}[kKMGTmunpµ]?|[0-9]e[0-9]|ram|m|[-+*/%<>!() ]|\\(|\\)){1,9}") {
            let mut names = |name: &str, arguments: Vec<f64>| match name {
                "ram" if arguments.is_empty() => Some(1000.0),
                "m" if arguments.is_empty() => Some(4.0),
                _ => None,
            };
            if let Ok(expected) = fasteval::ez_eval(&text, &mut names) {
                let size = translate(&text, &given()).unwrap();
                let machine = Variables { ram_mib: 1000.0, swap_mib: 0.0, cpus: 1.0 };
                let value = Expr::parse(&size.text).unwrap().evaluate(&machine).ok();
                prop_assert_eq!(value, Some(expected).filter(|value| value.is_finite()), "{}", text);
            }
        }
    }
}
