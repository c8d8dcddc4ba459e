//! Text → [`Formula`], as fasteval 0.2 reads it.

use super::{Formula, Operator};

/// Longest text, in bytes.
const LONGEST: usize = 4096;
/// Deepest nesting.
const DEEPEST: usize = 32;
/// Decimal exponents of the suffixes.
const SUFFIXES: [(char, i32); 10] = [
    ('p', -12),
    ('n', -9),
    ('u', -6),
    ('µ', -6),
    ('m', -3),
    ('k', 3),
    ('K', 3),
    ('M', 6),
    ('G', 9),
    ('T', 12),
];
/// Functions with the least and the greatest number of arguments. Others are looked up as variables.
const FUNCTIONS: [(&str, usize, usize); 24] = [
    ("int", 1, 1),
    ("ceil", 1, 1),
    ("floor", 1, 1),
    ("abs", 1, 1),
    ("sign", 1, 1),
    ("log", 1, 2),
    ("round", 1, 2),
    ("min", 1, usize::MAX),
    ("max", 1, usize::MAX),
    ("e", 0, 0),
    ("pi", 0, 0),
    ("sin", 1, 1),
    ("cos", 1, 1),
    ("tan", 1, 1),
    ("asin", 1, 1),
    ("acos", 1, 1),
    ("atan", 1, 1),
    ("sinh", 1, 1),
    ("cosh", 1, 1),
    ("tanh", 1, 1),
    ("asinh", 1, 1),
    ("acosh", 1, 1),
    ("atanh", 1, 1),
    ("print", 0, usize::MAX),
];

pub(super) fn parse(text: &str) -> Result<Formula, String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    let mut parser = FormulaParser { rest: text };
    let formula = parser.expression(0)?;
    parser.blanks();
    if parser.rest.is_empty() { Ok(formula) } else { Err(format!("`{}` is not expected", parser.rest)) }
}

struct FormulaParser<'a> {
    rest: &'a str,
}

impl FormulaParser<'_> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\n', '\t', '\r']);
    }

    fn take(&mut self, token: &str) -> bool {
        self.blanks();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expression(&mut self, depth: usize) -> Result<Formula, String> {
        let mut operands = vec![self.value(depth)?];
        let mut operators = Vec::new();
        while let Some(operator) = self.operator() {
            operators.push(operator);
            operands.push(self.value(depth)?);
        }
        Ok(fold(operands, operators))
    }

    fn operator(&mut self) -> Option<Operator> {
        Operator::ALL.into_iter().find(|(_, text)| self.take(text)).map(|(operator, _)| operator)
    }

    fn value(&mut self, depth: usize) -> Result<Formula, String> {
        if depth > DEEPEST {
            return Err("it is nested too deeply".to_owned());
        }
        self.blanks();
        if let Some(number) = self.number()? {
            return Ok(number);
        }
        if self.take("+") {
            return self.value(depth + 1);
        }
        if self.take("-") {
            return Ok(Formula::Minus(Box::new(self.value(depth + 1)?)));
        }
        if self.take("!") {
            return Ok(Formula::Not(Box::new(self.value(depth + 1)?)));
        }
        for (open, close) in [("(", ")"), ("[", "]")] {
            if self.take(open) {
                let inner = self.expression(depth + 1)?;
                return if self.take(close) {
                    Ok(inner)
                } else {
                    Err(format!("a closing {close} is missing"))
                };
            }
        }
        self.name(depth)
    }

    /// Digits, dots and an exponent, with a sign directly before them, and one suffix letter.
    fn number(&mut self) -> Result<Option<Formula>, String> {
        let (mut length, mut sign, mut exponent, mut seen) = (0, true, false, false);
        for byte in self.rest.bytes() {
            match byte {
                b'0'..=b'9' | b'.' => (seen, sign) = (true, false),
                b'+' | b'-' if sign => sign = false,
                b'e' | b'E' if seen => (exponent, sign) = (true, true),
                _ => break,
            }
            length += 1;
        }
        if !seen {
            return Ok(None);
        }
        let (digits, rest) = self.rest.split_at(length);
        let suffix = rest.chars().next().and_then(|letter| {
            SUFFIXES.into_iter().find(|(suffix, _)| *suffix == letter).filter(|_| !exponent)
        });
        let number = match suffix {
            Some((_, power)) => format!("{digits}e{power}").parse(),
            None => digits.parse(),
        };
        let value: f64 = number.map_err(|_| format!("`{digits}` is no number"))?;
        self.rest = &rest[suffix.map_or(0, |(letter, _)| letter.len_utf8())..];
        Ok(Some(Formula::Number(value, suffix.map(|(letter, _)| (digits.to_owned(), letter)))))
    }

    fn name(&mut self, depth: usize) -> Result<Formula, String> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let name = self.rest[..end].to_owned();
        if name.is_empty() {
            let found = self.rest.chars().next();
            return Err(found.map_or("it ends too early".to_owned(), |c| format!("`{c}` is not expected")));
        }
        self.rest = &self.rest[end..];
        let close = if self.take("(") {
            ")"
        } else if self.take("[") {
            "]"
        } else {
            return Ok(Formula::Variable(name));
        };
        let arguments = self.arguments(&name, close, depth)?;
        if let Some((_, least, most)) = FUNCTIONS.iter().find(|(function, ..)| *function == name) {
            if !(*least..=*most).contains(&arguments.len()) {
                return Err(format!("`{name}` does not take {} arguments", arguments.len()));
            }
            return Ok(Formula::Call(name, arguments));
        }
        // Whatever is not built in is looked up, with or without parentheses.
        Ok(if arguments.is_empty() { Formula::Variable(name) } else { Formula::Call(name, arguments) })
    }

    fn arguments(&mut self, name: &str, close: &str, depth: usize) -> Result<Vec<Formula>, String> {
        let mut arguments = Vec::new();
        let mut first = true;
        while !self.take(close) {
            if !first && !self.take(",") && !self.take(";") {
                return Err(format!("`{name}(` is not closed"));
            }
            first = false;
            if name == "print" && self.take("\"") {
                let Some((_, rest)) = self.rest.split_once('"') else {
                    return Err("a closing quote is missing".to_owned());
                };
                self.rest = rest;
                continue;
            }
            arguments.push(self.expression(depth + 1)?);
        }
        Ok(arguments)
    }
}

/// Applies the operators in the order of their precedence, each level in its own direction.
fn fold(mut operands: Vec<Formula>, mut operators: Vec<Operator>) -> Formula {
    use Operator::{
        Add, And, Divide, Equal, Greater, GreaterEqual, Less, LessEqual, Modulo, Multiply, NotEqual, Or,
        Power, Subtract,
    };
    const LEVELS: [(&[Operator], bool); 9] = [
        (&[Power], true),
        (&[Modulo], false),
        (&[Divide], false),
        (&[Multiply], true),
        (&[Subtract], false),
        (&[Add], true),
        (&[Less, Greater, LessEqual, GreaterEqual, Equal, NotEqual], false),
        (&[And], false),
        (&[Or], false),
    ];
    for (level, from_the_right) in LEVELS {
        loop {
            let here = |operator: &Operator| level.contains(operator);
            let at = if from_the_right {
                operators.iter().rposition(here)
            } else {
                operators.iter().position(here)
            };
            let Some(at) = at else { break };
            let operator = operators.remove(at);
            let right = operands.remove(at + 1);
            let left = operands.remove(at);
            operands.insert(at, Formula::Binary(operator, Box::new(left), Box::new(right)));
        }
    }
    operands.swap_remove(0)
}
