//! [`Formula`] → text that zramd reads as the same value.

use super::{Formula, Lack, Operator};

/// How tightly zramd binds a negation and a power; everything without operators binds tighter still.
const UNARY: u8 = 6;
const POWER: u8 = 7;
const ATOM: u8 = 8;

pub(super) fn print(formula: &Formula) -> Result<String, Lack> {
    Ok(text(formula)?.0)
}

/// The precedence that zramd gives to an operator.
fn precedence(operator: Operator) -> u8 {
    match operator {
        Operator::Or => 1,
        Operator::And => 2,
        Operator::LessEqual
        | Operator::Less
        | Operator::Equal
        | Operator::NotEqual
        | Operator::GreaterEqual
        | Operator::Greater => 3,
        Operator::Add | Operator::Subtract => 4,
        Operator::Multiply | Operator::Divide | Operator::Modulo => 5,
        Operator::Power => POWER,
    }
}

/// The text of an operand that has to bind at least so tightly.
fn operand(formula: &Formula, least: u8) -> Result<String, Lack> {
    let (text, binds) = text(formula)?;
    Ok(if binds < least { format!("({text})") } else { text })
}

/// The text, and how tightly it binds.
fn text(formula: &Formula) -> Result<(String, u8), Lack> {
    Ok(match formula {
        Formula::Number(value, _) => (number(*value)?, if value.is_sign_negative() { UNARY } else { ATOM }),
        Formula::Variable(name) if name == "ram" => (name.clone(), ATOM),
        Formula::Variable(name) => return Err(Lack::Variable(name.clone())),
        Formula::Minus(inner) => (format!("-{}", operand(inner, ATOM)?), UNARY),
        Formula::Not(inner) => (format!("!{}", operand(inner, ATOM)?), UNARY),
        Formula::Binary(operator, a, b) => {
            let here = precedence(*operator);
            // Both associate to the left, except for powers.
            let (left, right) = if *operator == Operator::Power { (ATOM, here) } else { (here, here + 1) };
            (format!("{} {} {}", operand(a, left)?, operator.text(), operand(b, right)?), here)
        }
        Formula::Call(name, arguments) => call(name, arguments)?,
    })
}

fn number(value: f64) -> Result<String, Lack> {
    if value.is_finite() { Ok(value.to_string()) } else { Err(Lack::Number) }
}

fn call(name: &str, arguments: &[Formula]) -> Result<(String, u8), Lack> {
    Ok(match (name, arguments) {
        ("min" | "max" | "int" | "ceil" | "floor" | "abs" | "round", _) => {
            let arguments: Vec<String> =
                arguments.iter().map(|inner| operand(inner, 0)).collect::<Result<_, _>>()?;
            (format!("{name}({})", arguments.join(", ")), ATOM)
        }
        ("sign", [inner]) => (format!("({} < 0 ? -1 : 1)", operand(inner, 4)?), ATOM),
        ("e", []) => (number(std::f64::consts::E)?, ATOM),
        ("pi", []) => (number(std::f64::consts::PI)?, ATOM),
        ("print", []) => ("0".to_owned(), ATOM),
        ("print", [.., last]) => text(last)?,
        _ => return Err(Lack::Function(name.to_owned())),
    })
}
