//! Cells of the tables of `list` and `top`.

use std::cmp::Ordering;

use serde_json::Value;

use logic::human::{human, short, signed};

/// Content of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing to say.
    Empty,
    /// A word.
    Text(String),
    /// An amount of bytes.
    Bytes(u64),
    /// A difference of amounts.
    Difference(i64),
    Number(i64),
    /// A quotient.
    Ratio(f64),
    /// A share, 0 to 1.
    Share(f64),
}

/// How amounts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Amounts {
    /// `1.2G`, as zramctl does.
    #[default]
    Short,
    /// `1.2 GiB`.
    Human,
    /// The number of bytes.
    Exact,
}

impl Cell {
    /// A count as a number.
    pub fn count(count: u64) -> Cell {
        Cell::Number(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// A word, if there is one.
    pub fn word(text: &str) -> Cell {
        if text.is_empty() { Cell::Empty } else { Cell::Text(text.to_owned()) }
    }

    /// A ratio of nothing is not shown.
    pub fn ratio(ratio: f64) -> Cell {
        if ratio == 0.0 { Cell::Empty } else { Cell::Ratio(ratio) }
    }

    /// The printed form.
    pub fn text(&self, amounts: Amounts) -> String {
        match (self, amounts) {
            (Cell::Empty, _) => "-".to_owned(),
            (Cell::Text(text), _) => text.clone(),
            (Cell::Bytes(bytes), Amounts::Exact) => bytes.to_string(),
            (Cell::Bytes(bytes), Amounts::Short) => short(*bytes),
            (Cell::Bytes(bytes), Amounts::Human) => human(*bytes),
            (Cell::Difference(bytes), Amounts::Short) => signed(*bytes, short),
            (Cell::Difference(bytes), Amounts::Human) => signed(*bytes, human),
            (Cell::Difference(number), Amounts::Exact) | (Cell::Number(number), _) => number.to_string(),
            (Cell::Ratio(ratio), _) => format!("{ratio:.2}"),
            (Cell::Share(share), _) => format!("{:.0} %", share * 100.0),
        }
    }

    /// As JSON: amounts and numbers as numbers.
    pub fn json(&self) -> Value {
        match self {
            Cell::Empty => Value::Null,
            Cell::Text(text) => text.as_str().into(),
            Cell::Bytes(bytes) => (*bytes).into(),
            Cell::Difference(number) | Cell::Number(number) => (*number).into(),
            Cell::Ratio(number) | Cell::Share(number) => (*number).into(),
        }
    }

    /// Text in ascending order, figures in descending order, or the opposite; nothing always last.
    pub fn order(&self, other: &Cell, reversed: bool) -> Ordering {
        let order = match (self, other) {
            (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
            (Cell::Bytes(a), Cell::Bytes(b)) => b.cmp(a),
            (Cell::Difference(a), Cell::Difference(b)) | (Cell::Number(a), Cell::Number(b)) => b.cmp(a),
            (Cell::Ratio(a), Cell::Ratio(b)) | (Cell::Share(a), Cell::Share(b)) => b.total_cmp(a),
            (Cell::Empty, Cell::Empty) => Ordering::Equal,
            (Cell::Empty, _) => return Ordering::Greater,
            (_, Cell::Empty) => return Ordering::Less,
            _ => Ordering::Equal,
        };
        if reversed { order.reverse() } else { order }
    }
}
