//! Size expressions: to the byte what zram-generator makes of them, or an honest refusal.

use std::collections::{BTreeMap, BTreeSet};

use super::Setting;
use crate::logic::expr::{Expr, Variables, size_in_bytes};
use crate::logic::import::formula::{Formula, Lack};
use crate::logic::units::meant_unit;

/// Amounts of RAM in MiB for which both programs have to agree.
const SAMPLES: [f64; 24] = [
    64.0,
    128.0,
    256.0,
    500.0,
    512.0,
    782.0,
    1000.0,
    1024.0,
    1989.0,
    2048.0,
    3913.0,
    4096.0,
    7825.0,
    7972.0,
    8192.0,
    15876.0,
    16000.0,
    16384.0,
    32000.0,
    65536.0,
    131_072.0,
    262_144.0,
    524_288.0,
    1_048_576.0,
];
/// What is said when the original stops at something.
pub const REFUSED: &str = "zram-generator refuses this and so sets up no device at all";

/// What `set!` lines give.
#[derive(Debug, Default)]
pub struct Given {
    /// Variables whose value is known.
    pub known: BTreeMap<String, Formula>,
    /// Variables that a program would have to be run for.
    pub programs: BTreeSet<String>,
}

/// A size for zramd.
#[derive(Debug, PartialEq, Eq)]
pub struct Size {
    /// The expression.
    pub text: String,
    /// What to look at.
    pub warnings: Vec<String>,
}

/// What a value amounts to. `bounded` says that the original cannot do what it says when it is absurdly large.
pub fn translate(setting: &Setting, given: &Given, bounded: bool) -> Result<Size, String> {
    let mut warnings = Vec::new();
    let mut value = setting.value.as_str();
    let mut parsed = Formula::parse(value);
    if let (Err(_), Some(without)) = (&parsed, &setting.without_comment) {
        value = without;
        parsed = Formula::parse(value);
        warnings.push(format!("{REFUSED}, because a comment has to stand on its own line; it was left out"));
    }
    let text = match parsed {
        Ok(formula) => match large_number(&formula).filter(|_| bounded) {
            Some(text) => {
                warnings.push(format!(
                    "zram-generator multiplies by powers of 1000 and then by 1 MiB, and cannot set up what `{value}` comes \
                     to; {text} was taken"
                ));
                text
            }
            None => exact(value, &formula, given, &mut warnings)?,
        },
        Err(error) => {
            let text = plain(value).ok_or_else(|| format!("`{value}` is no size: {error}"))?;
            if warnings.is_empty() {
                let taken = if text == value { "it plainly means" } else { &text };
                warnings.push(format!("{REFUSED}; `{value}` was taken as {taken}"));
            }
            text
        }
    };
    Ok(Size { text, warnings })
}

/// The expression that is the same to the byte.
fn exact(
    value: &str,
    formula: &Formula,
    given: &Given,
    warnings: &mut Vec<String>,
) -> Result<String, String> {
    let formula = mended(formula, given, warnings).with(&given.known);
    let text = formula.print().map_err(|lack| missing(&lack, given))?;
    for (digits, suffix) in formula.suffixed() {
        let unit = meant_unit(&suffix.to_string());
        let unit = unit.map_or(String::new(), |unit| format!("; write {digits}{unit} if that was meant"));
        let number = Formula::parse(&format!("{digits}{suffix}")).ok().and_then(|number| number.value(0.0));
        warnings.push(format!(
            "`{digits}{suffix}` is {} MiB to zram-generator, which was kept{unit}",
            number.unwrap_or_default()
        ));
    }
    same_everywhere(&formula, &text)?;
    // The text as it was written, where zramd reads it the same way.
    let written = Expr::parse(value).is_ok_and(|written| Expr::parse(&text) == Ok(written));
    Ok(if written { value.to_owned() } else { text })
}

/// What a text that the original refuses plainly means: `2GiB`, `50%`, `4 Ki`, `512mb`.
pub fn plain(value: &str) -> Option<String> {
    if Expr::parse(value).is_ok() {
        return Some(value.to_owned());
    }
    let letters = value.find(char::is_alphabetic)?;
    let (number, unit) = value.split_at(letters);
    let number: f64 = number.trim().parse().ok()?;
    let unit = Some(unit).filter(|unit| unit.len() <= 3).and_then(meant_unit)?;
    Some(format!("{number}{unit}")).filter(|text| Expr::parse(text).is_ok())
}

/// `32G`: more than any machine has, when it is taken as the original takes it.
fn large_number(formula: &Formula) -> Option<String> {
    match formula {
        Formula::Number(_, Some((digits, suffix))) if "MGT".contains(*suffix) => {
            Some(format!("{digits}{suffix}iB")).filter(|text| Expr::parse(text).is_ok())
        }
        _ => None,
    }
}

/// With names that are only written wrongly put right: `RAM`, and `e` and `pi` without parentheses.
fn mended(formula: &Formula, given: &Given, warnings: &mut Vec<String>) -> Formula {
    let mut names = BTreeMap::new();
    for name in formula.variables() {
        let meant = match name {
            "ram" => continue,
            _ if given.known.contains_key(name) || given.programs.contains(name) => continue,
            "e" | "pi" => Formula::Call(name.to_owned(), Vec::new()),
            _ if name.eq_ignore_ascii_case("ram") => Formula::Variable("ram".to_owned()),
            _ => continue,
        };
        if names.insert(name.to_owned(), meant).is_none() {
            warnings.push(format!(
                "{REFUSED}, because it knows no `{name}`; it was taken for what it plainly means"
            ));
        }
    }
    formula.with(&names)
}

fn missing(lack: &Lack, given: &Given) -> String {
    match lack {
        Lack::Variable(name) if given.programs.contains(name) => {
            format!("it needs what the program of `set!{name}` prints")
        }
        Lack::Variable(name) => format!("nothing gives `{name}` a value"),
        Lack::Function(name) => format!("zramd has no function `{name}`"),
        Lack::Number => "it has a number in it that is too large".to_owned(),
    }
}

/// Whether zramd makes the same number of bytes of it.
fn same_everywhere(formula: &Formula, text: &str) -> Result<(), String> {
    let expr = Expr::parse(text).map_err(|error| format!("zramd cannot read it: {}", error.message))?;
    let mut sizes = 0;
    for ram in SAMPLES {
        // Neither of them looks at the processors or at other swap.
        let variables = Variables { ram_mib: ram, swap_mib: 0.0, cpus: 1.0 };
        let ours = expr.evaluate(&variables).and_then(size_in_bytes);
        // Nothing can be so large; zramd says so, and the kernel tells the original.
        let theirs = formula.bytes(ram).filter(|bytes| *bytes < 1 << 63);
        if let (Err(error), Some(_)) = (&ours, theirs) {
            return Err(format!("zramd cannot work it out: {}", error.message));
        }
        if ours.ok() != theirs {
            return Err(format!("zramd would make another size of it on a machine with {ram} MiB of RAM"));
        }
        sizes += usize::from(theirs.is_some());
    }
    if sizes == 0 { Err("it is no size, however much RAM there is".to_owned()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(raw: &str) -> Setting {
        let (mut settings, _) = super::super::ini::read(std::path::Path::new("f"), &format!("k={raw}\n"));
        settings.remove(0)
    }

    fn given() -> Given {
        let known = BTreeMap::from([("n".to_owned(), Formula::parse("8 * 1024").unwrap())]);
        Given { known, programs: BTreeSet::from(["x".to_owned()]) }
    }

    #[test]
    fn sizes_are_carried_over() {
        for (raw, text, warning) in [
            ("min(ram / 2, 4096)", "min(ram / 2, 4096)", ""),
            ("ram*0.8", "ram*0.8", ""),
            ("ram * 3 / 4", "ram * (3 / 4)", ""),
            ("0", "0", ""),
            ("n * 3/4", "8 * 1024 * (3 / 4)", ""),
            ("500k", "500000", "500KiB if"),
            ("1u", "0.000001", "0.000001 MiB"),
            ("32G", "32GiB", "cannot set up"),
            ("1.5T", "1.5TiB", "cannot set up"),
            ("min(ram, 4G)", "min(ram, 4000000000)", "4GiB if"),
            ("2GiB", "2GiB", "refuses"),
            ("4Ki", "4KiB", "refuses"),
            ("512 mb", "512MiB", "refuses"),
            ("50%", "50%", "refuses"),
            ("RAM/2", "ram / 2", "no `RAM`"),
            ("e*100", "2.718281828459045 * 100", "no `e`"),
            ("ram / 2 # half", "ram / 2", "own line"),
            ("50% ; half", "50%", "own line"),
            ("min(ram ; 4096)", "min(ram, 4096)", ""),
        ] {
            let size =
                translate(&setting(raw), &given(), true).unwrap_or_else(|error| panic!("{raw}: {error}"));
            assert_eq!(size.text, text, "{raw}");
            assert_eq!(size.warnings.is_empty(), warning.is_empty(), "{raw}: {:?}", size.warnings);
            assert!(size.warnings.concat().contains(warning), "{raw}: {:?}", size.warnings);
        }
    }

    #[test]
    fn what_cannot_be_carried_over_says_why() {
        for (raw, reason) in [
            ("-5", "no size, however"),
            ("0/0", "no size, however"),
            ("1/0", "no size, however"),
            ("min(ram, 1/0)", "cannot work it out"),
            ("ram * x", "program of `set!x`"),
            ("ram * y", "nothing gives `y`"),
            ("log(ram)", "no function `log`"),
            ("1e999", "too large"),
            ("ram ^ 0.5", "an exponent has to be a whole number"),
            ("large", "nothing gives"),
            ("5 apples", "is no size"),
            ("", "is no size"),
        ] {
            let error = translate(&setting(raw), &given(), true).expect_err(raw);
            assert!(error.contains(reason), "{raw}: {error}");
        }
    }

    #[test]
    fn a_limit_that_is_never_reached_stays_one() {
        let size = translate(&setting("2G"), &given(), false).unwrap();
        assert_eq!(size.text, "2000000000");
        assert!(size.warnings[0].contains("write 2GiB"));
    }
}
