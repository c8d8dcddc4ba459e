//! Size expressions: `min(ram / 2, 4GiB)`.
//!
//! Values are numbers of MiB. The language is that of zram-generator 1.2, whose evaluator is fasteval 0.2: the same
//! operators, functions, brackets and order of evaluation, with the same results. zramd adds units, shares of RAM
//! (`50%`), `? :`, `if`, `swap` and `cpus`. There are three differences from fasteval, which `import` rewrites:
//!
//! * `K`, `M`, `G` and `T` are powers of 1024 bytes. In fasteval `4G` is 4·10⁹, which makes 4·10⁹ MiB. Its other suffix
//!   letters (`k m u n p`) are errors here, because `512m` would be half a MiB.
//! * `25% + 1` and `25% - 1` are a share of RAM and a number. In fasteval `%` is the remainder there.
//! * There is no `print`.

mod functions;
mod parse;
#[cfg(test)]
mod tests;

use functions::Function;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// A number of MiB, or a plain number.
    Number(f64),
    /// A percentage of RAM.
    Share(f64),
    Variable(Variable),
    Minus(Box<Node>),
    Not(Box<Node>),
    /// Operands and the operators between them.
    Chain(Vec<Node>, Vec<Operator>),
    Call(&'static Function, Vec<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variable {
    Ram,
    Swap,
    Cpus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Power,
    Remainder,
    Divide,
    Multiply,
    Subtract,
    Add,
    Less,
    LessEqual,
    Equal,
    NotEqual,
    GreaterEqual,
    Greater,
    And,
    Or,
}

/// Operators with the same precedence, tightest first, and whether they are right-associative. As in fasteval, each
/// arithmetic operator has a precedence of its own: `10 * 7 % 4` is `10 * (7 % 4)`.
const PRECEDENCE: [(&[Operator], bool); 9] = [
    (&[Operator::Power], true),
    (&[Operator::Remainder], false),
    (&[Operator::Divide], false),
    (&[Operator::Multiply], true),
    (&[Operator::Subtract], false),
    (&[Operator::Add], true),
    (
        &[
            Operator::Less,
            Operator::LessEqual,
            Operator::Equal,
            Operator::NotEqual,
            Operator::GreaterEqual,
            Operator::Greater,
        ],
        false,
    ),
    (&[Operator::And], false),
    (&[Operator::Or], false),
];

/// Variables of the machine: whole MiB, as in zram-generator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variables {
    /// `ram`: MemTotal. NaN if unknown.
    pub ram_mib: f64,
    /// `swap`: SwapTotal, before zramd adds any.
    pub swap_mib: f64,
    /// `cpus`: CPUs online.
    pub cpus: f64,
}

/// Why a text is not an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExprError {
    /// Start of the error, in bytes.
    pub start: usize,
    /// End of the error, in bytes.
    pub end: usize,
    /// Description.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// The correct text from start to end, if known.
    pub instead: Option<String>,
}

/// Why an expression cannot be evaluated on this machine.
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

/// A text with more mistakes is not corrected.
const MOST_CORRECTIONS: usize = 9;

const MIB: f64 = 1_048_576.0;

/// The error if a size depends on the machine's memory and that could not be read.
pub const UNKNOWN_MEMORY: &str =
    "how much memory this machine has is not known, because /proc/meminfo cannot be read";

impl Expr {
    pub fn parse(text: &str) -> Result<Expr, ExprError> {
        parse::parse(text).map(Expr)
    }

    /// A text that parses: this one after all corrections that are known. `None` if a mistake is left.
    pub fn mended(text: &str) -> Option<String> {
        let mut text = text.to_owned();
        for _ in 0..MOST_CORRECTIONS {
            match Expr::parse(&text) {
                Ok(_) => return Some(text),
                Err(error) => text.replace_range(error.start..error.end, &error.instead?),
            }
        }
        None
    }

    /// A plain number of MiB.
    pub fn number(value: f64) -> Expr {
        Expr(Node::Number(value))
    }

    /// Whether the value depends on the memory of the machine.
    pub fn needs_memory(&self) -> bool {
        self.0.needs_memory()
    }

    /// Evaluates to MiB. Infinite and undefined values are errors.
    pub fn evaluate(&self, variables: &Variables) -> Result<f64, EvaluationError> {
        if variables.ram_mib.is_nan() && self.needs_memory() {
            return Err(EvaluationError::new(UNKNOWN_MEMORY));
        }
        let value = self.0.value(variables);
        if value.is_finite() {
            Ok(value)
        } else {
            Err(EvaluationError::new("the value is infinite or undefined, as after a division by zero"))
        }
    }
}

impl Node {
    fn needs_memory(&self) -> bool {
        match self {
            Node::Number(_) | Node::Variable(Variable::Cpus) => false,
            Node::Share(_) | Node::Variable(Variable::Ram | Variable::Swap) => true,
            Node::Minus(operand) | Node::Not(operand) => operand.needs_memory(),
            Node::Chain(nodes, _) | Node::Call(_, nodes) => nodes.iter().any(Node::needs_memory),
        }
    }

    fn value(&self, variables: &Variables) -> f64 {
        let values = |nodes: &[Node]| nodes.iter().map(|node| node.value(variables)).collect();
        match self {
            Node::Number(value) => *value,
            Node::Share(percent) => variables.ram_mib * percent / 100.0,
            Node::Variable(Variable::Ram) => variables.ram_mib,
            Node::Variable(Variable::Swap) => variables.swap_mib,
            Node::Variable(Variable::Cpus) => variables.cpus,
            Node::Minus(operand) => -operand.value(variables),
            Node::Not(operand) => truth(equal(operand.value(variables), 0.0)),
            Node::Chain(operands, operators) => chain(values(operands), operators.clone()),
            Node::Call(function, arguments) => {
                let arguments: Vec<f64> = values(arguments);
                (function.apply)(&arguments)
            }
        }
    }
}

/// Applies operators in the order of [`PRECEDENCE`].
fn chain(mut values: Vec<f64>, mut operators: Vec<Operator>) -> f64 {
    for (level, from_the_right) in PRECEDENCE {
        let is_next = |operator: &Operator| level.contains(operator);
        while let Some(at) = if from_the_right {
            operators.iter().rposition(is_next)
        } else {
            operators.iter().position(is_next)
        } {
            let right = values.remove(at + 1);
            values[at] = operators.remove(at).apply(values[at], right);
        }
    }
    values[0]
}

impl Operator {
    fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            Operator::Power => a.powf(b),
            Operator::Remainder => a % b,
            Operator::Divide => a / b,
            Operator::Multiply => a * b,
            Operator::Subtract => a - b,
            Operator::Add => a + b,
            Operator::Less => truth(a < b),
            Operator::LessEqual => truth(a <= b),
            Operator::Equal => truth(equal(a, b)),
            Operator::NotEqual => truth(unequal(a, b)),
            Operator::GreaterEqual => truth(a >= b),
            Operator::Greater => truth(a > b),
            // As in fasteval, the value of an operand instead of 0 or 1.
            Operator::And => {
                if equal(a, 0.0) {
                    a
                } else {
                    b
                }
            }
            Operator::Or => {
                if unequal(a, 0.0) {
                    a
                } else {
                    b
                }
            }
        }
    }
}

/// Maximum difference between numbers that count as equal, as in fasteval. Undefined values are neither equal nor
/// unequal.
const NEARLY: f64 = 8.0 * f64::EPSILON;

fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= NEARLY
}

fn unequal(a: f64, b: f64) -> bool {
    (a - b).abs() > NEARLY
}

fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

/// Converts MiB to bytes, rounded down.
pub fn size_in_bytes(mib: f64) -> Result<u64, EvaluationError> {
    if mib < 0.0 {
        return Err(EvaluationError::new("a size cannot be negative"));
    }
    let bytes = mib * MIB;
    // 2^63 is far above any memory size and exact in both types.
    if bytes.is_nan() || bytes >= 9_223_372_036_854_775_808.0 {
        return Err(EvaluationError::new("a size this large cannot be meant"));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Checked above.
    Ok(bytes as u64)
}
