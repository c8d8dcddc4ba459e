//! Against fasteval itself, and against zramd's own expressions.

use fasteval::Evaler;
use proptest::prelude::*;

use super::*;
use crate::logic::expr::{Expr, Variables};

/// What the generator itself works out.
fn original(text: &str, ram: f64) -> Option<f64> {
    let mut slab = fasteval::Slab::new();
    let expression = fasteval::Parser::new().parse(text, &mut slab.ps).ok()?.from(&slab.ps);
    let mut names = |name: &str, arguments: Vec<f64>| (name == "ram" && arguments.is_empty()).then_some(ram);
    expression.eval(&slab, &mut names).ok()
}

fn ours(text: &str, ram: f64) -> Option<f64> {
    let variables = Variables { ram_mib: ram, swap_mib: 0.0, cpus: 1.0 };
    Expr::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).evaluate(&variables).ok()
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) || (a == 0.0 && b == 0.0)
}

fn check(text: &str) {
    let formula = Formula::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    for ram in [512.0, 782.0, 7825.0, 16000.0] {
        let expected = original(text, ram).unwrap_or_else(|| panic!("{text}: fasteval refuses it"));
        let value = formula.value(ram).unwrap();
        assert!(same(expected, value), "{text} is {expected}, not {value}");
        let printed = formula.print().unwrap();
        if let Some(value) = ours(&printed, ram) {
            assert!(same(expected, value), "{text} is {expected}, but {printed} is {value}");
        }
    }
}

#[test]
fn the_precedence_of_the_generator_is_kept() {
    for text in [
        "min(ram / 2, 4096)",
        "ram * 3 / 4",
        "ram * 0.1 * 3",
        "ram / 3 / 7",
        "10*7%4",
        "-2^2",
        "2^3^2",
        "2^-2",
        "1 - 2 + 3 - 4",
        "100 - 3 * 2 / 7",
        "(ram<4096)*ram + (ram>=4096)*4096",
        "ram>4096 && 4096 || ram",
        "!ram + 1",
        "!(ram - ram) * 7",
        "- -5",
        "--5 + 6",
        "+ram",
        "max[ram; 3]",
        "ram()",
        "round(64, ram / 3)",
        "round(ram / 3)",
        "int(ram/3) + ceil(ram/7) + floor(ram/9) + abs(-3) + sign(-4)",
        "1 < 2 == 1",
        "e() * 100 + pi()",
        "print(\"size\", ram / 2)",
        "1.5e3",
        "5e-1 * ram",
        ".5*ram",
        "500k",
        "1.5K + 3m + 7u + 7µ + 8n + 9p + 2M",
        "32G",
        "2T",
        "0 || ram",
        "0 && ram",
    ] {
        check(text);
    }
}

#[test]
fn what_the_generator_refuses_is_refused() {
    for text in
        ["4Ki", "2GiB", "50%", "ram / 2 # x", "", "1..2", "1e", "min()", "(ram", "ram)", "[ram)", "π", "*"]
    {
        assert!(Formula::parse(text).is_err(), "{text}");
        assert_eq!(original(text, 1000.0), None, "{text}");
    }
    let deep = "(".repeat(40) + "1" + &")".repeat(40);
    assert!(Formula::parse(&deep).is_err());
    assert_eq!(original(&deep, 1.0), None);
}

#[test]
fn what_zramd_cannot_say_is_named() {
    for (text, lack) in [
        ("ram * n", Lack::Variable("n".to_owned())),
        ("e * 100", Lack::Variable("e".to_owned())),
        ("log(ram)", Lack::Function("log".to_owned())),
        ("f(1)", Lack::Function("f".to_owned())),
        ("1e999", Lack::Number),
    ] {
        assert_eq!(Formula::parse(text).unwrap().print(), Err(lack), "{text}");
    }
}

#[test]
fn variables_are_replaced() {
    let variables = BTreeMap::from([("n".to_owned(), Formula::parse("1 + 3").unwrap())]);
    let formula = Formula::parse("ram / n").unwrap().with(&variables);
    assert_eq!(formula.print().unwrap(), "ram / (1 + 3)");
    assert_eq!(formula.bytes(8.0), Some(2 * 1024 * 1024));
    assert_eq!(Formula::parse("0-5").unwrap().bytes(8.0), None);
}

fn any_formula() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("ram".to_owned()),
        (0u32..5000).prop_map(|number| number.to_string()),
        (0.0..10.0f64).prop_map(|number| number.to_string()),
        (1u32..9, prop::sample::select(vec!["k", "m", "M", "u"]))
            .prop_map(|(n, suffix)| format!("{n}{suffix}")),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let operators = vec!["+", "-", "*", "/", "%", "<", "<=", "==", "!=", ">=", ">", "&&", "||"];
        prop_oneof![
            4 => prop::collection::vec((prop::sample::select(operators), inner.clone()), 1..4).prop_map(|pairs| {
                let mut text = String::from("ram");
                for (operator, value) in pairs {
                    text.push_str(&format!(" {operator} {value}"));
                }
                text
            }),
            1 => inner.clone().prop_map(|inner| format!("({inner})")),
            1 => inner.clone().prop_map(|inner| format!("-({inner})")),
            1 => inner.clone().prop_map(|inner| format!("!{inner}")),
            2 => (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("min({a}, max({b}; {c}))")),
        ]
    })
}

proptest! {
    #[test]
    fn any_formula_has_the_value_that_fasteval_gives_it(text in any_formula(), ram in 1u32..1_000_000) {
        let ram = f64::from(ram);
        let formula = Formula::parse(&text).unwrap();
        let expected = original(&text, ram).unwrap();
        let value = formula.value(ram).unwrap();
        prop_assert!(same(expected, value), "{} is {}, not {}", text, expected, value);
        let printed = formula.print().unwrap();
        // zramd does not work with infinite values, and its remainder may differ in the last digit.
        if !text.contains('%') && let Some(value) = ours(&printed, ram) {
            prop_assert!(same(expected, value), "{} is {}, but {} is {}", text, expected, printed, value);
        }
    }
}
