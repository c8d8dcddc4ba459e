//! Text → tree: tokens by `winnow`, then precedence climbing, with the place of every mistake.

use winnow::Parser;
use winnow::ascii::float;
use winnow::error::ContextError;
use winnow::token::{one_of, take_while};

use super::{Binary, ExprError, Function, Node, UNARY_PRECEDENCE, Unary, Variable};
use crate::logic::units::{bytes_per, meant_unit};

/// Longest text that is looked at, in bytes.
const LONGEST: usize = 4096;
/// Deepest nesting.
const DEEPEST: usize = 32;

pub(super) fn parse(text: &str) -> Result<Node, ExprError> {
    let mut parser = ExprParser { text, at: 0, depth: 0 };
    if text.len() > LONGEST {
        return Err(parser.error(0..1, format!("the expression is longer than {LONGEST} bytes")));
    }
    parser.blanks();
    if parser.rest().is_empty() {
        let error = parser.error(0..text.len().max(1), "the expression is empty");
        return Err(with_hint(error, "write a size, such as \"4GiB\" or \"ram / 2\""));
    }
    let node = parser.choice()?;
    if parser.rest().is_empty() {
        return Ok(node);
    }
    Err(parser.unexpected())
}

fn with_hint(error: ExprError, hint: impl Into<String>) -> ExprError {
    ExprError { hint: Some(hint.into()), ..error }
}

struct ExprParser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> ExprParser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    #[allow(clippy::unused_self)]
    fn error(&self, span: std::ops::Range<usize>, message: impl Into<String>) -> ExprError {
        ExprError { start: span.start, end: span.end, message: message.into(), hint: None }
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes `token` if it comes next, and the blanks behind it.
    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
            self.blanks();
        }
        found
    }

    /// What stands here and should not.
    fn unexpected(&self) -> ExprError {
        let Some(letter) = self.rest().chars().next() else {
            let error = self
                .error(self.text.len().saturating_sub(1)..self.text.len(), "the expression ends too early");
            return with_hint(error, "something is missing behind this");
        };
        let error =
            self.error(self.at..self.at + letter.len_utf8(), format!("`{letter}` is not expected here"));
        match letter {
            '#' | ';' => with_hint(error, "a comment goes behind the closing quote"),
            '=' => with_hint(error, "write == to compare"),
            ')' => with_hint(error, "there is no matching ("),
            _ => error,
        }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, ExprError>) -> Result<T, ExprError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error(
                self.at..self.at + 1,
                format!("the expression is nested deeper than {DEEPEST} levels"),
            ));
        }
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn choice(&mut self) -> Result<Node, ExprError> {
        self.deeper(|parser| {
            let condition = parser.operators(0)?;
            if !parser.take("?") {
                return Ok(condition);
            }
            let yes = parser.choice()?;
            if !parser.take(":") {
                return Err(with_hint(parser.unexpected(), "write condition ? value : other value"));
            }
            let no = parser.choice()?;
            Ok(Node::Choice(Box::new(condition), Box::new(yes), Box::new(no)))
        })
    }

    /// Operators that bind at least as tightly as `least`.
    fn operators(&mut self, least: u8) -> Result<Node, ExprError> {
        let mut left = self.operand()?;
        // Two characters before one, so that `<=` is not taken for `<`.
        while let Some(operator) =
            Binary::ALL.iter().copied().find(|operator| self.rest().starts_with(operator.text()))
        {
            let precedence = operator.precedence();
            if precedence < least {
                break;
            }
            self.take(operator.text());
            let right_associative = operator == Binary::Power;
            let least = if right_associative { precedence } else { precedence + 1 };
            let right = self.deeper(|parser| parser.operators(least))?;
            left = Node::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<Node, ExprError> {
        for operator in Unary::ALL {
            if self.take(operator.text()) {
                let operand = self.deeper(|parser| parser.operators(UNARY_PRECEDENCE))?;
                return Ok(Node::Unary(*operator, Box::new(operand)));
            }
        }
        if self.take("(") {
            let inner = self.choice()?;
            if !self.take(")") {
                return Err(with_hint(self.unexpected(), "a closing ) is missing"));
            }
            return Ok(inner);
        }
        match self.rest().chars().next() {
            Some(letter) if letter.is_ascii_digit() || letter == '.' => self.number(),
            Some(letter) if letter.is_alphabetic() || letter == '_' => self.name(),
            _ => Err(self.unexpected()),
        }
    }

    fn number(&mut self) -> Result<Node, ExprError> {
        let start = self.at;
        let mut input = self.rest();
        // `float` also takes signs, `inf` and `nan`; the first character rules those out.
        let parsed: Result<f64, ContextError> = float.parse_next(&mut input);
        let value = parsed.map_err(|_| self.unexpected())?;
        self.at = self.text.len() - input.len();
        if !value.is_finite() {
            return Err(self.error(start..self.at, "this number is too large"));
        }
        let unit_start = self.at;
        let unit = self.letters();
        if !unit.is_empty() {
            if bytes_per(unit).is_none() {
                return Err(self.unknown_unit(start, unit_start, unit));
            }
            self.blanks();
            return Ok(Node::Amount(value, unit.to_owned()));
        }
        if self.is_percent_sign() {
            self.at += 1;
            self.blanks();
            return Ok(Node::Share(value));
        }
        self.blanks();
        Ok(Node::Number(value))
    }

    fn unknown_unit(&self, number_start: usize, unit_start: usize, unit: &str) -> ExprError {
        let number = &self.text[number_start..unit_start];
        let error = self.error(number_start..self.at, format!("`{unit}` is no unit of memory"));
        match meant_unit(unit) {
            Some(meant) => {
                with_hint(error, format!("did you mean {number}{meant}? units are B, KiB, MiB, GiB, TiB"))
            }
            None => with_hint(error, "units are B, KiB, MiB, GiB, TiB; a bare number is MiB"),
        }
    }

    /// A `%` directly behind a number is a share of RAM unless an operand follows: then it is a modulo.
    fn is_percent_sign(&self) -> bool {
        let Some(behind) = self.rest().strip_prefix('%') else { return false };
        let next = behind.trim_start().chars().next();
        !next.is_some_and(|letter| letter.is_alphanumeric() || matches!(letter, '(' | '.' | '_' | '!'))
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

    fn name(&mut self) -> Result<Node, ExprError> {
        let start = self.at;
        let name = self.letters();
        let end = self.at;
        self.blanks();
        if let Some(function) = Function::ALL.iter().find(|function| function.text() == name) {
            return self.arguments(*function, start..end);
        }
        let Some(variable) = Variable::ALL.iter().find(|variable| variable.text() == name) else {
            return Err(self.unknown_name(name, start..end));
        };
        // zram-generator takes `ram()` for `ram`.
        if self.take("(") && !self.take(")") {
            return Err(self.error(start..end, format!("`{name}` takes no arguments")));
        }
        Ok(Node::Variable(*variable))
    }

    fn unknown_name(&self, name: &str, span: std::ops::Range<usize>) -> ExprError {
        let known = Variable::ALL.iter().map(|v| v.text()).chain(Function::ALL.iter().map(|f| f.text()));
        let lower = name.to_lowercase();
        let near = known
            .map(|word| (strsim::damerau_levenshtein(&lower, word), word))
            .filter(|(distance, _)| *distance <= 1)
            .min();
        let error = self.error(span, format!("there is no `{name}`"));
        match near {
            Some((_, word)) => with_hint(error, format!("did you mean `{word}`?")),
            None => {
                with_hint(error, "known are ram, swap, cpus, min, max, round, floor, ceil, abs, int and if")
            }
        }
    }

    fn arguments(&mut self, function: Function, span: std::ops::Range<usize>) -> Result<Node, ExprError> {
        let name = function.text();
        if !self.take("(") {
            return Err(with_hint(
                self.error(span, format!("`{name}` is a function")),
                format!("write {name}(…)"),
            ));
        }
        let mut arguments = Vec::new();
        if !self.take(")") {
            loop {
                arguments.push(self.choice()?);
                if self.take(")") {
                    break;
                }
                if !self.take(",") {
                    return Err(with_hint(self.unexpected(), "arguments are separated by , and closed by )"));
                }
            }
        }
        let (least, most) = function.arity();
        if arguments.len() < least || arguments.len() > most {
            let wanted = if least == most { least.to_string() } else { format!("at least {least}") };
            let plural = if wanted == "1" { "" } else { "s" };
            let message = format!("`{name}` takes {wanted} argument{plural}, not {}", arguments.len());
            return Err(self.error(span, message));
        }
        Ok(Node::Call(function, arguments))
    }
}
