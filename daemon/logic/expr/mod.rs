//! Size expressions: `min(ram / 2, 4GiB)`.
//!
//! A value is a number of MiB. Bare numbers are MiB as in zram-generator, numbers with a unit are converted, `50%` is a
//! share of RAM. Precedence from loose to tight: `? :`, `||`, `&&`, comparisons, `+ -`, `* / %`, unary `- !`, `^`.

mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// MiB, or just a number.
    Number(f64),
    /// A number with its unit.
    Amount(f64, String),
    /// A percentage of RAM.
    Share(f64),
    Variable(Variable),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    Choice(Box<Node>, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
}

/// What the machine provides: whole MiB, as zram-generator counts them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variables {
    /// `ram`: MemTotal.
    pub ram_mib: f64,
    /// `swap`: SwapTotal, before zramd adds any.
    pub swap_mib: f64,
    /// `cpus`: CPUs online.
    pub cpus: f64,
}

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExprError {
    /// First byte of what is wrong.
    pub start: usize,
    /// First byte after it.
    pub end: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

/// Why an expression has no value on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationError {
    /// The reason.
    pub message: String,
}

impl EvaluationError {
    fn new(message: impl Into<String>) -> EvaluationError {
        EvaluationError { message: message.into() }
    }
}

/// An enumeration whose variants have a spelling.
macro_rules! spelled {
    ($name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum $name { $($variant),* }

        impl $name {
            const ALL: &'static [$name] = &[$($name::$variant),*];

            fn text(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
        }
    };
}

spelled!(Variable { Ram = "ram", Swap = "swap", Cpus = "cpus" });
spelled!(Unary { Minus = "-", Not = "!" });
spelled!(Binary {
    Or = "||", And = "&&",
    Equal = "==", NotEqual = "!=", LessEqual = "<=", GreaterEqual = ">=", Less = "<", Greater = ">",
    Add = "+", Subtract = "-", Multiply = "*", Divide = "/", Modulo = "%", Power = "^",
});
spelled!(Function {
    Min = "min", Max = "max", Round = "round", Floor = "floor", Ceil = "ceil", Abs = "abs", Int = "int", If = "if",
});

impl Binary {
    /// Higher binds tighter.
    fn precedence(self) -> u8 {
        match self {
            Binary::Or => 1,
            Binary::And => 2,
            Binary::Equal
            | Binary::NotEqual
            | Binary::LessEqual
            | Binary::GreaterEqual
            | Binary::Less
            | Binary::Greater => 3,
            Binary::Add | Binary::Subtract => 4,
            Binary::Multiply | Binary::Divide | Binary::Modulo => 5,
            Binary::Power => 7,
        }
    }
}

/// Between `* / %` and `^`, so that `-2^2` is −4.
const UNARY_PRECEDENCE: u8 = 6;

impl Function {
    /// How many arguments it takes, at least and at most.
    fn arity(self) -> (usize, usize) {
        match self {
            Function::Min | Function::Max => (1, usize::MAX),
            Function::Round => (1, 2),
            Function::Floor | Function::Ceil | Function::Abs | Function::Int => (1, 1),
            Function::If => (3, 3),
        }
    }
}

impl Expr {
    /// Understands a text.
    pub fn parse(text: &str) -> Result<Expr, ExprError> {
        parse::parse(text).map(Expr)
    }

    /// A plain number of MiB.
    pub fn number(value: f64) -> Expr {
        Expr(Node::Number(value))
    }

    /// The value in MiB on a machine. Infinite and undefined values are errors.
    pub fn evaluate(&self, variables: &Variables) -> Result<f64, EvaluationError> {
        evaluate(&self.0, variables)
    }
}

fn evaluate(node: &Node, variables: &Variables) -> Result<f64, EvaluationError> {
    let value = match node {
        Node::Share(_) | Node::Variable(Variable::Ram | Variable::Swap) if variables.ram_mib.is_nan() => {
            return Err(EvaluationError::new(UNKNOWN_MEMORY));
        }
        Node::Number(value) => *value,
        Node::Amount(value, unit) => value * (super::units::bytes_per(unit).unwrap_or(0) as f64) / MIB,
        Node::Share(percent) => variables.ram_mib * percent / 100.0,
        Node::Variable(Variable::Ram) => variables.ram_mib,
        Node::Variable(Variable::Swap) => variables.swap_mib,
        Node::Variable(Variable::Cpus) => variables.cpus,
        Node::Unary(Unary::Minus, operand) => -evaluate(operand, variables)?,
        Node::Unary(Unary::Not, operand) => truth(evaluate(operand, variables)? == 0.0),
        Node::Binary(operator, left, right) => return binary(*operator, left, right, variables),
        Node::Choice(condition, yes, no) => {
            return evaluate(if evaluate(condition, variables)? == 0.0 { no } else { yes }, variables);
        }
        Node::Call(function, arguments) => return call(*function, arguments, variables),
    };
    finite(value)
}

const MIB: f64 = 1_048_576.0;

/// What is wrong where a size depends on the memory of the machine, and that could not be read.
pub const UNKNOWN_MEMORY: &str =
    "how much memory this machine has is not known, because /proc/meminfo cannot be read";

fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

fn finite(value: f64) -> Result<f64, EvaluationError> {
    if value.is_finite() { Ok(value) } else { Err(EvaluationError::new("the value is not finite")) }
}

#[allow(clippy::float_cmp)] // `==` in an expression means what it says.
fn binary(
    operator: Binary,
    left: &Node,
    right: &Node,
    variables: &Variables,
) -> Result<f64, EvaluationError> {
    let a = evaluate(left, variables)?;
    // Like fasteval: the value of an operand, not just 0 or 1.
    match operator {
        Binary::Or if a != 0.0 => return Ok(a),
        Binary::And if a == 0.0 => return Ok(a),
        _ => {}
    }
    let b = evaluate(right, variables)?;
    finite(match operator {
        Binary::Or | Binary::And => b,
        Binary::Equal => truth(a == b),
        Binary::NotEqual => truth(a != b),
        Binary::LessEqual => truth(a <= b),
        Binary::GreaterEqual => truth(a >= b),
        Binary::Less => truth(a < b),
        Binary::Greater => truth(a > b),
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide | Binary::Modulo if b == 0.0 => {
            return Err(EvaluationError::new("it divides by zero"));
        }
        Binary::Divide => a / b,
        Binary::Modulo => a % b,
        Binary::Power if b.fract() != 0.0 || b.abs() > 1024.0 => {
            return Err(EvaluationError::new("an exponent has to be a whole number up to 1024"));
        }
        Binary::Power => a.powf(b),
    })
}

fn call(function: Function, arguments: &[Node], variables: &Variables) -> Result<f64, EvaluationError> {
    if function == Function::If {
        let yes = evaluate(&arguments[0], variables)? != 0.0;
        return evaluate(&arguments[if yes { 1 } else { 2 }], variables);
    }
    let values = arguments.iter().map(|node| evaluate(node, variables)).collect::<Result<Vec<_>, _>>()?;
    let first = values[0];
    finite(match function {
        Function::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
        Function::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Function::Round => match values.get(1) {
            Some(_) if first == 0.0 => return Err(EvaluationError::new("it rounds to a multiple of zero")),
            Some(value) => (value / first).round() * first,
            None => first.round(),
        },
        Function::Floor => first.floor(),
        Function::Ceil => first.ceil(),
        Function::Abs => first.abs(),
        Function::Int => first.trunc(),
        Function::If => first,
    })
}

/// MiB → bytes, cut off below the byte.
pub fn size_in_bytes(mib: f64) -> Result<u64, EvaluationError> {
    if mib < 0.0 {
        return Err(EvaluationError::new("a size cannot be negative"));
    }
    let bytes = (mib * MIB).trunc();
    // 2^63 is far beyond any memory and still exact in both types.
    if bytes.is_nan() || bytes >= 9_223_372_036_854_775_808.0 {
        return Err(EvaluationError::new("a size this large cannot be meant"));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Checked above.
    Ok(bytes as u64)
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Every operator in parentheses, so that the text means the same whatever the precedence is.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Number(value) => write!(f, "{value}"),
            Node::Amount(value, unit) => write!(f, "{value}{unit}"),
            // The parentheses keep what follows from making it a modulo.
            Node::Share(percent) => write!(f, "({percent}%)"),
            Node::Variable(variable) => f.write_str(variable.text()),
            Node::Unary(operator, operand) => write!(f, "({}{operand})", operator.text()),
            Node::Binary(operator, a, b) => write!(f, "({a} {} {b})", operator.text()),
            Node::Choice(condition, yes, no) => write!(f, "({condition} ? {yes} : {no})"),
            Node::Call(function, arguments) => {
                write!(f, "{}(", function.text())?;
                for (index, argument) in arguments.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    argument.fmt(f)?;
                }
                f.write_str(")")
            }
        }
    }
}
