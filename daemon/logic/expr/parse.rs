//! Parser: numbers by `winnow`, then an operand and any number of operators with operands. Errors have positions.

use winnow::Parser;
use winnow::ascii::float;
use winnow::error::ContextError;
use winnow::token::{one_of, take_while};

use super::functions::{FUNCTIONS, Function, IF};
use super::{ExprError, MIB, Node, Operator, Variable};
use crate::human::{bytes_per, meant_unit};
use crate::text::nearest;

/// Maximum length in bytes, as in fasteval.
const LONGEST: usize = 4096;
/// Maximum nesting, as in fasteval.
const DEEPEST: usize = 32;
/// A longer operator is listed before its prefixes.
const OPERATORS: [(&str, Operator); 14] = [
    ("<=", Operator::LessEqual),
    ("<", Operator::Less),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterEqual),
    (">", Operator::Greater),
    ("&&", Operator::And),
    ("||", Operator::Or),
    ("^", Operator::Power),
    ("%", Operator::Remainder),
    ("/", Operator::Divide),
    ("*", Operator::Multiply),
    ("-", Operator::Subtract),
    ("+", Operator::Add),
];
const VARIABLES: [(&str, Variable); 3] =
    [("ram", Variable::Ram), ("swap", Variable::Swap), ("cpus", Variable::Cpus)];
const BRACKETS: [(&str, &str); 2] = [("(", ")"), ("[", "]")];

pub(super) fn parse(text: &str) -> Result<Node, ExprError> {
    let mut parser = ExprParser { text, at: 0 };
    if text.len() > LONGEST {
        return Err(parser.error(0..1, format!("the expression is longer than {LONGEST} bytes")));
    }
    parser.blanks();
    if parser.rest().is_empty() {
        let error = parser.error(0..text.len().max(1), "the expression is empty");
        return Err(with_hint(error, "write a size, such as \"4GiB\" or \"ram / 2\""));
    }
    let node = parser.choice(0)?;
    if parser.rest().is_empty() {
        return Ok(node);
    }
    Err(parser.unexpected())
}

fn is_variable(word: &str) -> bool {
    VARIABLES.iter().any(|(name, _)| *name == word)
}

fn with_hint(error: ExprError, hint: impl Into<String>) -> ExprError {
    ExprError { hint: Some(hint.into()), ..error }
}

/// The error of a part that is correct in another form.
fn replaced(error: ExprError, instead: String) -> ExprError {
    let error = with_hint(error, format!("write {instead}"));
    ExprError { instead: Some(instead), ..error }
}

struct ExprParser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> ExprParser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    #[allow(clippy::unused_self)]
    fn error(&self, span: std::ops::Range<usize>, message: impl Into<String>) -> ExprError {
        ExprError { start: span.start, end: span.end, message: message.into(), hint: None, instead: None }
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes `token` and the blanks after it, if it is next.
    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
            self.blanks();
        }
        found
    }

    /// The error of an unexpected character.
    fn unexpected(&self) -> ExprError {
        let Some(letter) = self.rest().chars().next() else {
            let error = self
                .error(self.text.len().saturating_sub(1)..self.text.len(), "the expression ends too early");
            return with_hint(error, "something is missing behind this");
        };
        let error =
            self.error(self.at..self.at + letter.len_utf8(), format!("`{letter}` is not expected here"));
        let between = (self.text[..self.at].chars().next_back(), self.rest().chars().nth(1));
        match letter {
            ',' if matches!(between, (Some('0'..='9'), Some('0'..='9'))) => {
                with_hint(replaced(error, ".".to_owned()), "write fractions with a point, as in 1.5")
            }
            'x' | 'X' | '×' if !between.1.is_some_and(char::is_alphabetic) => {
                with_hint(replaced(error, "*".to_owned()), "write * to multiply")
            }
            '“' | '”' | '„' | '"' | '\'' => with_hint(replaced(error, String::new()), "leave it out"),
            '#' | ';' => with_hint(error, "a comment goes behind the closing quote"),
            '=' => with_hint(error, "write == to compare"),
            ')' => with_hint(error, "there is no matching ("),
            ']' => with_hint(error, "there is no matching ["),
            _ => error,
        }
    }

    fn choice(&mut self, depth: usize) -> Result<Node, ExprError> {
        let condition = self.chain(depth)?;
        if !self.take("?") {
            return Ok(condition);
        }
        let yes = self.choice(depth + 1)?;
        if !self.take(":") {
            return Err(with_hint(self.unexpected(), "write condition ? value : other value"));
        }
        let no = self.choice(depth + 1)?;
        Ok(Node::Call(&IF, vec![condition, yes, no]))
    }

    fn chain(&mut self, depth: usize) -> Result<Node, ExprError> {
        let first = self.operand(depth)?;
        let (mut operands, mut operators) = (vec![first], Vec::new());
        while let Some((_, operator)) = OPERATORS.iter().find(|(token, _)| self.take(token)) {
            operators.push(*operator);
            operands.push(self.operand(depth)?);
        }
        Ok(if operators.is_empty() { operands.remove(0) } else { Node::Chain(operands, operators) })
    }

    fn operand(&mut self, depth: usize) -> Result<Node, ExprError> {
        if depth > DEEPEST {
            let message = format!("the expression is nested deeper than {DEEPEST} levels");
            return Err(self.error(self.at..self.at + 1, message));
        }
        if self.take("+") {
            return self.operand(depth + 1);
        }
        if self.take("-") {
            return Ok(Node::Minus(Box::new(self.operand(depth + 1)?)));
        }
        if self.take("!") {
            return Ok(Node::Not(Box::new(self.operand(depth + 1)?)));
        }
        if let Some(close) = self.open() {
            let inner = self.choice(depth + 1)?;
            if !self.take(close) {
                return Err(with_hint(self.unexpected(), format!("a closing {close} is missing")));
            }
            return Ok(inner);
        }
        match self.rest().chars().next() {
            Some(letter) if letter.is_ascii_digit() || letter == '.' => self.number(),
            Some(letter) if letter.is_alphabetic() || letter == '_' => self.name(depth),
            _ => Err(self.unexpected()),
        }
    }

    /// Takes an opening bracket; returns the closing one for it.
    fn open(&mut self) -> Option<&'static str> {
        BRACKETS.iter().find(|(open, _)| self.take(open)).map(|(_, close)| *close)
    }

    fn number(&mut self) -> Result<Node, ExprError> {
        let start = self.at;
        let mut input = self.rest();
        // `float` also takes signs, `inf` and `nan`; the first character rules those out.
        let parsed: Result<f64, ContextError> = float.parse_next(&mut input);
        let value = parsed.map_err(|_| self.unexpected())?;
        self.at = self.text.len() - input.len();
        let unit_start = self.at;
        let unit = self.letters();
        let node = if !unit.is_empty() {
            let number = &self.text[start..unit_start];
            let Some(bytes) = bytes_per(unit) else { return Err(self.unknown_unit(start, number, unit)) };
            Node::Number(value * (bytes as f64) / MIB)
        } else if self.is_percent_sign() {
            self.at += 1;
            Node::Share(value)
        } else {
            Node::Number(value)
        };
        let number = &self.text[start..self.at];
        self.blanks();
        let behind = self.at;
        let is_bare = matches!(node, Node::Number(_)) && unit.is_empty();
        // A remainder has an operand, which can have a sign.
        let is_share =
            is_bare && self.is_percent_sign() && !self.rest()[1..].trim_start().starts_with(['+', '-']);
        let word = if is_share { &self.rest()[..1] } else { self.letters() };
        if is_share || (is_bare && bytes_per(word).is_some()) {
            let error =
                self.error(start..behind + word.len(), format!("a blank separates `{word}` from its number"));
            return Err(replaced(error, format!("{number}{word}")));
        }
        if is_bare && (meant_unit(word).is_some() || is_variable(word)) {
            return Err(self.unknown_unit(start, number, word));
        }
        self.at = behind;
        Ok(node)
    }

    fn unknown_unit(&self, start: usize, number: &str, unit: &str) -> ExprError {
        let error = self.error(start..self.at, format!("`{unit}` is no unit of memory"));
        let name = unit.strip_prefix('x').unwrap_or(unit);
        if is_variable(name) {
            return replaced(error, format!("{number} * {name}"));
        }
        match meant_unit(unit) {
            Some(meant) => {
                let hint = format!("did you mean {number}{meant}? units are B, KiB, MiB, GiB, TiB");
                with_hint(replaced(error, format!("{number}{meant}")), hint)
            }
            None => with_hint(error, "units are B, KiB, MiB, GiB, TiB; a bare number is MiB"),
        }
    }

    /// A `%` directly after a number is a share of RAM; if an operand follows, it is a modulo.
    fn is_percent_sign(&self) -> bool {
        let Some(behind) = self.rest().strip_prefix('%') else { return false };
        let next = behind.trim_start().chars().next();
        !next.is_some_and(|letter| letter.is_alphanumeric() || matches!(letter, '(' | '[' | '.' | '_' | '!'))
    }

    fn letters(&mut self) -> &'a str {
        let mut input = self.rest();
        let name = (
            one_of(|c: char| c.is_alphabetic() || c == '_'),
            take_while(0.., |c: char| c.is_alphanumeric() || c == '_'),
        );
        let taken: Result<&str, ContextError> = name.take().parse_next(&mut input);
        let taken = taken.unwrap_or("");
        self.at += taken.len();
        taken
    }

    fn name(&mut self, depth: usize) -> Result<Node, ExprError> {
        let start = self.at;
        let name = self.letters();
        let end = self.at;
        self.blanks();
        let known = FUNCTIONS.iter().chain([&IF]).find(|function| function.name == name);
        if let Some(function) = known {
            return self.call(function, start..end, depth);
        }
        let Some((_, variable)) = VARIABLES.iter().find(|(known, _)| *known == name) else {
            return Err(self.unknown_name(name, start..end));
        };
        // zram-generator accepts `ram()` for `ram`.
        if self.open().is_some_and(|close| !self.take(close)) {
            return Err(self.error(start..end, format!("`{name}` takes no arguments")));
        }
        Ok(Node::Variable(*variable))
    }

    fn unknown_name(&self, name: &str, span: std::ops::Range<usize>) -> ExprError {
        let functions = FUNCTIONS.iter().chain([&IF]).map(|function| function.name);
        let known = VARIABLES.iter().map(|(name, _)| *name).chain(functions);
        let near = nearest(name, known.filter(|word| word.len() > 2));
        let error = self.error(span, format!("there is no `{name}`"));
        match near {
            Some(word) => with_hint(replaced(error, word.to_owned()), format!("did you mean `{word}`?")),
            None => with_hint(error, "variables are ram, swap and cpus; zramd.toml(5) lists the functions"),
        }
    }

    fn call(
        &mut self,
        function: &'static Function,
        span: std::ops::Range<usize>,
        depth: usize,
    ) -> Result<Node, ExprError> {
        let Function { name, least, most, .. } = function;
        let Some(close) = self.open() else {
            let hint = if *most == 0 { format!("write {name}()") } else { format!("write {name}(…)") };
            return Err(with_hint(self.error(span, format!("`{name}` is a function")), hint));
        };
        let mut arguments = Vec::new();
        while !self.take(close) {
            if !arguments.is_empty() && !self.take(",") && !self.take(";") {
                let hint = format!("arguments are separated by , and closed by {close}");
                return Err(with_hint(self.unexpected(), hint));
            }
            arguments.push(self.choice(depth + 1)?);
        }
        if arguments.len() < *least || arguments.len() > *most {
            let wanted = match *most {
                most if most == *least => least.to_string(),
                usize::MAX => format!("at least {least}"),
                most => format!("{least} or {most}"),
            };
            let plural = if wanted.ends_with('1') { "" } else { "s" };
            let message = format!("`{name}` takes {wanted} argument{plural}, not {}", arguments.len());
            return Err(self.error(span, message));
        }
        Ok(Node::Call(function, arguments))
    }
}
