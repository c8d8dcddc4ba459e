//! Functions of size expressions. Those of fasteval have the same arguments and results as there.

use super::{equal, unequal};

#[derive(Debug)]
pub(super) struct Function {
    pub name: &'static str,
    /// Minimum number of arguments.
    pub least: usize,
    /// Maximum number of arguments.
    pub most: usize,
    /// Computes its value.
    pub apply: fn(&[f64]) -> f64,
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name
    }
}

const fn function(name: &'static str, least: usize, most: usize, apply: fn(&[f64]) -> f64) -> Function {
    Function { name, least, most, apply }
}

/// The function of `condition ? a : b`.
pub(super) static IF: Function = function("if", 3, 3, |x| if unequal(x[0], 0.0) { x[1] } else { x[2] });

/// All other functions.
pub(super) static FUNCTIONS: [Function; 23] = [
    function("min", 1, usize::MAX, |x| extreme(x, f64::min)),
    function("max", 1, usize::MAX, |x| extreme(x, f64::max)),
    function("int", 1, 1, |x| x[0].trunc()),
    function("ceil", 1, 1, |x| x[0].ceil()),
    function("floor", 1, 1, |x| x[0].floor()),
    function("round", 1, 2, |x| match x {
        [modulus, value] => (value / modulus).round() * modulus,
        _ => x[0].round(),
    }),
    function("abs", 1, 1, |x| x[0].abs()),
    function("sign", 1, 1, |x| x[0].signum()),
    function("log", 1, 2, |x| match x {
        [base, value] => logarithm(*base, *value),
        _ => x[0].log10(),
    }),
    function("e", 0, 0, |_| std::f64::consts::E),
    function("pi", 0, 0, |_| std::f64::consts::PI),
    function("sin", 1, 1, |x| x[0].sin()),
    function("cos", 1, 1, |x| x[0].cos()),
    function("tan", 1, 1, |x| x[0].tan()),
    function("asin", 1, 1, |x| x[0].asin()),
    function("acos", 1, 1, |x| x[0].acos()),
    function("atan", 1, 1, |x| x[0].atan()),
    function("sinh", 1, 1, |x| x[0].sinh()),
    function("cosh", 1, 1, |x| x[0].cosh()),
    function("tanh", 1, 1, |x| x[0].tanh()),
    function("asinh", 1, 1, |x| x[0].asinh()),
    function("acosh", 1, 1, |x| x[0].acosh()),
    function("atanh", 1, 1, |x| x[0].atanh()),
];

/// The minimum or maximum. The result is undefined only if the first argument is, as in fasteval.
fn extreme(values: &[f64], choose: fn(f64, f64) -> f64) -> f64 {
    if values[0].is_nan() { f64::NAN } else { values.iter().copied().fold(values[0], choose) }
}

fn logarithm(base: f64, value: f64) -> f64 {
    if equal(base, 2.0) {
        value.log2()
    } else if equal(base, 10.0) {
        value.log10()
    } else {
        value.log(base)
    }
}
