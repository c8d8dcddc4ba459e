//! The expressions of zram-generator, which look like those of zramd and mean something else in places.
//!
//! Every operator has a precedence of its own there (`%` before `/` before `*` before `-` before `+`), sums and products
//! are worked out from the right, and `32G` is 32·10⁹. [`Formula::print`] writes what zramd reads as the same value.

mod parse;
mod print;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

/// What counts as no difference.
const NEARLY: f64 = 8.0 * f64::EPSILON;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Formula {
    /// A number, with its digits and suffix if it has one (`32G`).
    Number(f64, Option<(String, char)>),
    /// `ram`, or what a `set!` line gives.
    Variable(String),
    /// `-x`
    Minus(Box<Formula>),
    /// `!x`
    Not(Box<Formula>),
    /// Two operands.
    Binary(Operator, Box<Formula>, Box<Formula>),
    /// A function.
    Call(String, Vec<Formula>),
}

/// Why a formula cannot be written for zramd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// Nothing gives this variable a value.
    Variable(String),
    /// zramd has no such function.
    Function(String),
    /// It is not finite.
    Number,
}

/// An operator with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `^`
    Power,
    /// `%`
    Modulo,
    /// `/`
    Divide,
    /// `*`
    Multiply,
    /// `-`
    Subtract,
    /// `+`
    Add,
    /// `<=`
    LessEqual,
    /// `<`
    Less,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>=`
    GreaterEqual,
    /// `>`
    Greater,
    /// `&&`
    And,
    /// `||`
    Or,
}

impl Operator {
    /// Spellings; a longer one before its beginning.
    const ALL: [(Operator, &'static str); 14] = [
        (Operator::LessEqual, "<="),
        (Operator::Less, "<"),
        (Operator::Equal, "=="),
        (Operator::NotEqual, "!="),
        (Operator::GreaterEqual, ">="),
        (Operator::Greater, ">"),
        (Operator::And, "&&"),
        (Operator::Or, "||"),
        (Operator::Power, "^"),
        (Operator::Modulo, "%"),
        (Operator::Divide, "/"),
        (Operator::Multiply, "*"),
        (Operator::Subtract, "-"),
        (Operator::Add, "+"),
    ];

    /// How it is written, by both programs.
    pub fn text(self) -> &'static str {
        Operator::ALL.iter().find(|(operator, _)| *operator == self).map_or("", |(_, text)| text)
    }

    fn apply(self, a: f64, b: f64) -> f64 {
        // The generator takes nearly equal for equal, and what is no number for neither.
        let difference = (a - b).abs();
        let truth = |value: bool| f64::from(u8::from(value));
        match self {
            Operator::Power => a.powf(b),
            Operator::Modulo => a % b,
            Operator::Divide => a / b,
            Operator::Multiply => a * b,
            Operator::Subtract => a - b,
            Operator::Add => a + b,
            Operator::LessEqual => truth(a <= b),
            Operator::Less => truth(a < b),
            Operator::Equal => truth(difference <= NEARLY),
            Operator::NotEqual => truth(difference > NEARLY),
            Operator::GreaterEqual => truth(a >= b),
            Operator::Greater => truth(a > b),
            Operator::And => {
                if a.abs() <= NEARLY {
                    a
                } else {
                    b
                }
            }
            Operator::Or => {
                if a.abs() > NEARLY {
                    a
                } else {
                    b
                }
            }
        }
    }
}

impl Formula {
    /// Understands a text as the generator does; the error says what is wrong.
    pub fn parse(text: &str) -> Result<Formula, String> {
        parse::parse(text)
    }

    /// As text for zramd.
    pub fn print(&self) -> Result<String, Lack> {
        print::print(self)
    }

    /// With formulas in place of variables.
    #[must_use]
    pub fn with(&self, variables: &BTreeMap<String, Formula>) -> Formula {
        let boxed = |inner: &Formula| Box::new(inner.with(variables));
        match self {
            Formula::Variable(name) => variables.get(name).cloned().unwrap_or_else(|| self.clone()),
            Formula::Number(..) => self.clone(),
            Formula::Minus(inner) => Formula::Minus(boxed(inner)),
            Formula::Not(inner) => Formula::Not(boxed(inner)),
            Formula::Binary(operator, a, b) => Formula::Binary(*operator, boxed(a), boxed(b)),
            Formula::Call(name, arguments) => {
                Formula::Call(name.clone(), arguments.iter().map(|inner| inner.with(variables)).collect())
            }
        }
    }

    /// Names of its variables, in the order in which they appear.
    pub fn variables(&self) -> Vec<&str> {
        match self {
            Formula::Variable(name) => vec![name],
            Formula::Number(..) => Vec::new(),
            Formula::Minus(inner) | Formula::Not(inner) => inner.variables(),
            Formula::Binary(_, a, b) => [a.variables(), b.variables()].concat(),
            Formula::Call(_, arguments) => arguments.iter().flat_map(Formula::variables).collect(),
        }
    }

    /// Numbers with a suffix in it.
    pub fn suffixed(&self) -> Vec<(&str, char)> {
        match self {
            Formula::Number(_, suffix) => {
                suffix.iter().map(|(digits, suffix)| (digits.as_str(), *suffix)).collect()
            }
            Formula::Variable(_) => Vec::new(),
            Formula::Minus(inner) | Formula::Not(inner) => inner.suffixed(),
            Formula::Binary(_, a, b) => [a.suffixed(), b.suffixed()].concat(),
            Formula::Call(_, arguments) => arguments.iter().flat_map(Formula::suffixed).collect(),
        }
    }

    /// Its value for so many MiB of RAM; nothing where a variable or function is unknown.
    pub fn value(&self, ram: f64) -> Option<f64> {
        Some(match self {
            Formula::Number(value, _) => *value,
            Formula::Variable(name) if name == "ram" => ram,
            Formula::Variable(_) => return None,
            Formula::Minus(inner) => -inner.value(ram)?,
            Formula::Not(inner) => f64::from(u8::from(inner.value(ram)?.abs() <= NEARLY)),
            Formula::Binary(operator, a, b) => operator.apply(a.value(ram)?, b.value(ram)?),
            Formula::Call(name, arguments) => {
                let values: Option<Vec<f64>> = arguments.iter().map(|inner| inner.value(ram)).collect();
                call(name, &values?)?
            }
        })
    }

    /// Its value as a size in bytes for so many MiB of RAM; nothing where the generator would refuse it.
    pub fn bytes(&self, ram: f64) -> Option<u64> {
        let value = self.value(ram)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // As the generator does it.
        (value >= 0.0).then_some((value * 1024.0 * 1024.0) as u64)
    }
}

fn call(name: &str, values: &[f64]) -> Option<f64> {
    Some(match (name, values) {
        // Only the first argument passes on that it is no number.
        ("min" | "max", [first, ..]) if first.is_nan() => f64::NAN,
        ("min", [first, rest @ ..]) => rest.iter().fold(*first, |a, b| a.min(*b)),
        ("max", [first, rest @ ..]) => rest.iter().fold(*first, |a, b| a.max(*b)),
        ("int", [value]) => value.trunc(),
        ("ceil", [value]) => value.ceil(),
        ("floor", [value]) => value.floor(),
        ("abs", [value]) => value.abs(),
        ("sign", [value]) => value.signum(),
        ("round", [value]) => value.round(),
        ("round", [modulus, value]) => (value / modulus).round() * modulus,
        ("e", []) => std::f64::consts::E,
        ("pi", []) => std::f64::consts::PI,
        ("print", []) => 0.0,
        ("print", [.., last]) => *last,
        _ => return None,
    })
}
