//! Values, messages, and properties of size expressions.

use proptest::prelude::*;

use super::*;

const MACHINE: Variables = Variables { ram_mib: 7825.0, swap_mib: 100.0, cpus: 4.0 };

fn value(text: &str) -> f64 {
    Expr::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).evaluate(&MACHINE).unwrap()
}

#[test]
#[allow(clippy::float_cmp)]
fn values() {
    for (text, expected) in [
        ("4096", 4096.0),
        ("4GiB", 4096.0),
        ("1.5G", 1536.0),
        ("512KiB", 0.5),
        ("50%", 3912.5),
        ("50 % 30", 20.0),
        ("50%30", 20.0),
        ("min(50%, 4GiB)", 3912.5),
        ("50% + 1", 3913.5),
        ("ram / 2", 3912.5),
        ("ram()", 7825.0),
        ("min(ram / 2, 4GiB)", 3912.5),
        ("max(swap, cpus, 7)", 100.0),
        ("10*7%4", 30.0),
        ("2^3^2", 512.0),
        ("-2^2", 4.0),
        ("2 - 3 - 4", -5.0),
        ("ram < 4GiB ? ram : 4GiB", 4096.0),
        ("ram < 4GiB ? 1 : ram < 8GiB ? 2 : 3", 2.0),
        ("if(cpus >= 4, 1, 0/0)", 1.0),
        ("(ram<4096)*ram + (ram>=4096)*4096", 4096.0),
        ("ram>4096 && 4096 || ram", 4096.0),
        ("!cpus || !0", 1.0),
        ("round(4.5) + round(256, ram)", 5.0 + 7936.0),
        ("floor(1.9) + ceil(1.1) + abs(-3) + int(-1.5)", 5.0),
        ("1 == 1 && 2 != 3 && 2 <= 2", 1.0),
        ("25% + 1MiB - 1KiB * 1024", 1956.25),
        ("min[ram; 4GiB]", 4096.0),
        ("min(ram, 1 / 0)", 7825.0),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn sizes_are_those_of_zram_generator_to_the_byte() {
    for (ram, text, bytes) in [
        (7825.0, "min(ram / 2, 4096)", 4_102_553_600),
        (782.0, "ram * 0.8", 655_989_145),
        (782.0, "min(0.75 * ram, 6000)", 614_989_824),
        (782.0, "min(ram/10, 2048)", 81_998_643),
        (16000.0, "min(ram/2, 4096)", 4_294_967_296),
    ] {
        let value = Expr::parse(text).unwrap().evaluate(&Variables { ram_mib: ram, ..MACHINE }).unwrap();
        assert_eq!(size_in_bytes(value), Ok(bytes), "{text} with {ram} MiB");
    }
}

#[test]
fn mistakes_are_placed_and_explained() {
    for (text, place, named) in [
        ("", "", "\"4GiB\""),
        ("RAM/2", "RAM", "`ram`"),
        ("ram/", "/", ""),
        ("4Ki", "4Ki", "4KiB"),
        ("500k", "500k", "500KiB"),
        ("512m", "512m", "512MiB"),
        ("4 GB", "4 GB", "4GiB"),
        ("ram / * 2", "*", "`*`"),
        ("ram/2 # half", "#", "`#`"),
        ("ram/2 ; half", ";", "a comment goes behind the closing quote"),
        ("min(1, 2", "2", ")"),
        ("(1", "1", ")"),
        ("1)", ")", "("),
        ("1]", "]", "["),
        ("min()", "min", "takes at least 1 argument, not 0"),
        ("floor(1, 2)", "floor", "takes 1 argument, not 2"),
        ("log(1, 2, 3)", "log", "takes 1 or 2 arguments, not 3"),
        ("e * 100", "e", "e()"),
        ("[1)", ")", "]"),
        ("min", "min", "min("),
        ("ram = 5", "=", "=="),
        ("frobnicate", "frobnicate", "`frobnicate`"),
        ("pie", "pie", "variables are ram, swap and cpus"),
        ("ram(5)", "ram", "ram"),
    ] {
        let error = Expr::parse(text).expect_err(text);
        assert_eq!(text.get(error.start..error.end).unwrap_or(""), place, "{text}: {error:?}");
        let hint = error.hint.unwrap_or_default();
        assert!(error.message.contains(named) || hint.contains(named), "{text}: {} ({hint})", error.message);
    }
    for text in ["ram xor 2", "min(,1)"] {
        assert_eq!(Expr::parse(text).unwrap_err().hint, None, "{text}: neither a product nor a fraction");
    }
}

#[test]
fn what_has_no_value_is_an_error() {
    for text in [
        "1 / 0",
        "ram % 0",
        "0 / 0",
        "round(0, 5)",
        "10^1000",
        "(-8)^0.5",
        "1e999",
        "log(-1)",
        "min(0 / 0, 1)",
    ] {
        assert!(Expr::parse(text).unwrap().evaluate(&MACHINE).is_err(), "{text}");
    }
    assert!(size_in_bytes(-5.0).is_err());
    assert!(size_in_bytes(1e30).is_err());
    assert_eq!(size_in_bytes(0.0), Ok(0));
}

#[test]
fn what_is_meant_is_known() {
    for (text, meant) in [
        ("1 GiB", "1GiB"),
        ("1 GB", "1GiB"),
        ("512 mb", "512MiB"),
        ("1 Gib", "1GiB"),
        ("1 gib", "1GiB"),
        ("4 Gigabyte", "4GiB"),
        ("4gigabytes", "4GiB"),
        ("min(RAM / 2, 4 GiB, 8 Gb)", "min(ram / 2, 4GiB, 8GiB)"),
        ("1,5GiB", "1.5GiB"),
        ("ram x 2", "ram * 2"),
        ("4GiB x2", "4GiB *2"),
        ("2 ram", "2 * ram"),
        ("2ram", "2 * ram"),
        ("min(0.5xram, 4 GiB)", "min(0.5 * ram, 4GiB)"),
        ("100 %", "100%"),
        ("min(50 %, 4GiB)", "min(50%, 4GiB)"),
        ("\"ram / 2\"", "ram / 2"),
        ("“4GiB”", "4GiB"),
        ("ram / 2", "ram / 2"),
    ] {
        let known = Expr::parse(text).map_or_else(|error| error.hint.is_some(), |_| text == meant);
        assert!(known, "{text}");
        assert_eq!(Expr::mended(text).as_deref(), Some(meant), "{text}");
    }
    for text in ["half", "5 min", "ram xyz", "2 times", "4GiB ram", "", "(ram"] {
        assert_eq!(Expr::mended(text), None, "{text}");
    }
    for text in ["50 % -3", "50 % - 3", "50 % 30"] {
        assert!(same(ours(text, 1.0), fasteval(text, 1.0).unwrap()), "{text}");
    }
}

#[test]
fn nesting_and_length_have_limits() {
    assert!(Expr::parse(&"(".repeat(1000)).is_err());
    assert!(Expr::parse(&"-".repeat(1000)).is_err());
    assert!(Expr::parse(&"1+".repeat(4000)).is_err());
    assert!(Expr::parse(&"1?".repeat(1000)).is_err());
    assert!(Expr::parse(&format!("{}1", "2^".repeat(2000))).is_ok());
    let brackets = |count| format!("{}ram{}", "(".repeat(count), ")".repeat(count));
    for (count, is_accepted) in [(32, true), (33, false)] {
        assert_eq!(Expr::parse(&brackets(count)).is_ok(), is_accepted, "{count}");
        assert_eq!(fasteval(&brackets(count), 1.0).is_some(), is_accepted, "{count}");
    }
    for (open, close) in
        [("(", ")"), ("min(", ")"), ("-", ""), ("+", ""), ("!", ""), ("1?", ":1"), ("1?1:", "")]
    {
        let nested = |count| Expr::parse(&format!("{}1{}", open.repeat(count), close.repeat(count)));
        assert!(nested(32).is_ok(), "{open}");
        let error = nested(33).expect_err(open);
        assert!(error.message.contains("deeper than 32 levels"), "{open}: {error:?}");
        assert_eq!(error.end, error.start + 1, "{open}");
    }
    for (length, is_accepted) in [(4096, true), (4097, false)] {
        let text = format!("{:>length$}", 1);
        assert_eq!(Expr::parse(&text).is_ok(), is_accepted, "{length}");
        assert_eq!(fasteval(&text, 1.0).is_some(), is_accepted, "{length}");
    }
}

#[test]
fn the_same_expression_is_equal_whatever_its_blanks() {
    let parsed = |text| Expr::parse(text).unwrap();
    assert_eq!(parsed("min(ram, 4GiB)"), parsed("min( ram,4GiB )"));
    assert_ne!(parsed("min(ram, 4GiB)"), parsed("max(ram, 4GiB)"));
}

#[test]
fn unknown_memory_matters_only_where_it_is_used() {
    let machine = Variables { ram_mib: f64::NAN, swap_mib: f64::NAN, cpus: 4.0 };
    for (text, expected) in [("cpus * 256", Some(1024.0)), ("ram < 5 ? 1 : 2", None), ("min(1, 50%)", None)] {
        assert_eq!(Expr::parse(text).unwrap().evaluate(&machine).ok(), expected, "{text}");
    }
}

/// The value in zram-generator.
fn fasteval(text: &str, ram: f64) -> Option<f64> {
    let mut names = |name: &str, arguments: Vec<f64>| (name == "ram" && arguments.is_empty()).then_some(ram);
    fasteval::ez_eval(text, &mut names).ok()
}

fn ours(text: &str, ram: f64) -> f64 {
    let variables = Variables { ram_mib: ram, swap_mib: 0.0, cpus: 1.0 };
    Expr::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).0.value(&variables)
}

/// Whether two values are the same bit by bit; all undefined values are the same.
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[test]
fn the_order_of_evaluation_is_that_of_fasteval() {
    for text in [
        "min(ram / 2, 4096)",
        "ram * 3 / 4",
        "ram * 0.1 * 3",
        "ram / 3 / 7",
        "ram / 3 * 7",
        "10*7%4",
        "10/7%4",
        "9%7%4",
        "-2^2",
        "- 2^2",
        "-ram^2",
        "!2^2",
        "2^3^2",
        "2^-2",
        "1 - 2 + 3 - 4",
        "0.1 + 0.2 + 0.3",
        "100 - 3 * 2 / 7",
        "1 < 2 == 1",
        "ram < ram",
        "ram > ram",
        "1 + 2^-49 == 1",
        "1 + 2^-49 != 1",
        "3 > 2 > 1",
        "1 || 0 && 0",
        "(ram<4096)*ram + (ram>=4096)*4096",
        "ram>4096 && 4096 || ram",
        "!ram + 1",
        "!(ram - ram) * 7",
        "!!ram",
        "!1e-16",
        "0.1 + 0.2 == 0.3",
        "0 || ram",
        "0 && ram",
        "5 && 7",
        "0/0 && 7",
        "0/0 || 7",
        "0/0 == 0/0",
        "0/0 != 0/0",
        "- -5",
        "--5 + 6",
        "2--3",
        "2+-3",
        "+ram",
        "-+-ram",
        "ram()",
        "ram [ ]",
        "max[ram; 3]",
        "[ram + (1 * [2])]",
        "min(3, 0/0, 2)",
        "min(0/0, 2)",
        "max(1/0, 2)",
        "min(ram, 1e999)",
        "round(64, ram / 3)",
        "round(0, 5)",
        "round(ram / 3)",
        "round(-2.5) + round(2.5)",
        "int(ram/3) + ceil(ram/7) + floor(ram/9) + abs(-3) + sign(-4)",
        "sign(0) + sign(-0)",
        "-7 % 4",
        "7.5 % -2",
        "1e20 % 7",
        "ram % 0",
        "1/0",
        "e() * 100 + pi()",
        "log(100) + log(2, 8) + log(10, 1000)",
        "1.5e3",
        "5e-1 * ram",
        "1E+3",
        ".5*ram",
        "1.",
        "\tram\r\n",
        "50 % 30",
        "50%30",
        "50%(ram)",
        "50%[ram]",
    ] {
        for ram in [512.0, 782.0, 7825.0, 16000.0] {
            let expected = fasteval(text, ram).unwrap_or_else(|| panic!("{text}: fasteval refuses it"));
            let value = ours(text, ram);
            assert!(same(value, expected), "{text} is {value}, not {expected}");
        }
    }
}

#[test]
fn what_fasteval_refuses_and_zramd_does_not_add_is_refused() {
    for text in [
        "",
        "*",
        "ram ram",
        "5 ram",
        "1..2",
        "1.2.3",
        "1e",
        "1e5.5",
        "min()",
        "min(1,)",
        "min(1 2)",
        "min(,1)",
        "(ram",
        "ram)",
        "[ram)",
        "min[1)",
        "floor(1, 2)",
        "log(1, 2, 3)",
        "pi(1)",
        "ram(1)",
        "f(1)",
        "e",
        "π",
        "ram and 1",
        "ram or 1",
        "inf",
        "NaN",
        "5e3k",
        "=5",
        "ram = 5",
        "ram & 1",
    ] {
        assert_eq!(fasteval(text, 1000.0), None, "{text}");
        assert!(Expr::parse(text).is_err(), "{text}");
    }
}

/// Intentional differences.
#[test]
fn differences_from_fasteval() {
    for (text, theirs, here) in [
        ("4K", Some(4e3), Some(4.0 / 1024.0)),
        ("4M", Some(4e6), Some(4.0)),
        ("4G", Some(4e9), Some(4096.0)),
        ("4T", Some(4e12), Some(4_194_304.0)),
        ("4k", Some(4e3), None),
        ("4m", Some(4e-3), None),
        ("4u", Some(4e-6), None),
        ("4µ", Some(4e-6), None),
        ("4n", Some(4e-9), None),
        ("4p", Some(4e-12), None),
        ("50% + 1", Some(0.0), Some(501.0)),
        ("50% - 3", Some(2.0), Some(497.0)),
        ("print(ram)", Some(1000.0), None),
    ] {
        assert_eq!(fasteval(text, 1000.0), theirs, "{text}");
        assert_eq!(Expr::parse(text).ok().map(|_| ours(text, 1000.0)), here, "{text}");
    }
}

/// An expression that is valid in fasteval.
fn any_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        3 => Just("ram".to_owned()),
        3 => (0u32..5000).prop_map(|number| number.to_string()),
        2 => (0.0..10.0f64).prop_map(|number| number.to_string()),
        1 => prop::sample::select(vec!["ram()", "e()", "pi[]", "1e3", "2.5E-3", ".5", "7.", "ram^2", "2^3^2", "-3^2"])
            .prop_map(str::to_owned),
    ];
    let operators = vec!["+", "-", "*", "/", " % ", "^", "<", "<=", "==", "!=", ">=", ">", "&&", "||"];
    let functions =
        vec!["int", "ceil", "floor", "round", "abs", "sign", "log", "sin", "atan", "+", "-", "!", "- !"];
    leaf.prop_recursive(5, 48, 4, move |inner| {
        let pair = (prop::sample::select(operators.clone()), inner.clone());
        prop_oneof![
            4 => (inner.clone(), prop::collection::vec(pair, 1..5)).prop_map(|(first, pairs)| {
                let pairs = pairs.into_iter().map(|(operator, value)| format!("{operator} {value}"));
                first + &pairs.collect::<String>()
            }),
            1 => (inner.clone(), prop::bool::ANY)
                .prop_map(|(inner, square)| if square { format!("[{inner}]") } else { format!("({inner})") }),
            1 => (prop::sample::select(functions.clone()), inner.clone())
                .prop_map(|(function, inner)| format!("{function}({inner})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("round[{a}, {b}]")),
            1 => (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("min({a}, max({b}; {c}))")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(text in "[ -~é%()?:]{0,40}") {
        if let Ok(expr) = Expr::parse(&text) {
            expr.evaluate(&MACHINE).ok();
        }
    }

    #[test]
    fn any_expression_has_the_value_that_fasteval_gives_it(text in any_text(), ram in 1u32..1_000_000) {
        let ram = f64::from(ram);
        match fasteval(&text, ram) {
            Some(expected) => {
                let value = ours(&text, ram);
                prop_assert!(same(value, expected), "{} is {}, not {}", text, value, expected);
            }
            None => prop_assert!(Expr::parse(&text).is_err(), "{}", text),
        }
    }

    /// Text that fasteval rejects is rejected, apart from the additions of zramd.
    #[test]
    fn any_text_of_fasteval_is_accepted(text in "([0-9]{1,3}|ram|min|log|e|[-+*/^!()\\[\\],;<>=&| .]|\\(|\\)){1,12}") {
        if let Some(expected) = fasteval(&text, 1000.0) {
            let value = ours(&text, 1000.0);
            prop_assert!(same(value, expected), "{} is {}, not {}", text, value, expected);
        }
    }

    #[test]
    fn powers_and_logarithms_are_those_of_fasteval(x in -20.0..20.0f64, y in -20.0..20.0f64) {
        let names = ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "log"];
        let calls = names.iter().flat_map(|name| [format!("{name}({x})"), format!("{name}({x} / 20)")]);
        for text in calls.chain([format!("({x})^({y})"), format!("({x})^{}", y.round()), format!("log({x}, {y})")]) {
            let (value, expected) = (ours(&text, 1.0), fasteval(&text, 1.0).unwrap());
            prop_assert!(same(value, expected), "{} is {}, not {}", text, value, expected);
        }
    }
}
