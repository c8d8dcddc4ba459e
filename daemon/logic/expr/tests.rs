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
        ("10*7%4", 2.0),
        ("2^3^2", 512.0),
        ("-2^2", -4.0),
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
    for (text, place, message, hint) in [
        ("", "", "empty", "such as \"4GiB\""),
        ("RAM/2", "RAM", "there is no `RAM`", "did you mean `ram`?"),
        ("ram/", "/", "ends too early", "missing"),
        ("4Ki", "4Ki", "`Ki` is no unit", "4KiB"),
        ("500k", "500k", "`k` is no unit", "500KiB"),
        ("4 GB", "G", "`G` is not expected", ""),
        ("ram/2 # half", "#", "`#` is not expected", "closing quote"),
        ("min(1, 2", "2", "ends too early", "closed by )"),
        ("(1", "1", "ends too early", "closing )"),
        ("1)", ")", "`)` is not expected", "no matching ("),
        ("min()", "min", "takes at least 1 argument", ""),
        ("floor(1, 2)", "floor", "takes 1 argument,", ""),
        ("min", "min", "is a function", "min(…)"),
        ("ram = 5", "=", "`=` is not expected", "=="),
        ("frobnicate", "frobnicate", "there is no `frobnicate`", "known are"),
        ("ram(5)", "ram", "takes no arguments", ""),
    ] {
        let error = Expr::parse(text).expect_err(text);
        assert_eq!(text.get(error.start..error.end).unwrap_or(""), place, "{text}: {error:?}");
        assert!(error.message.contains(message), "{text}: {error:?}");
        assert!(error.hint.unwrap_or_default().contains(hint), "{text}");
    }
}

#[test]
fn what_has_no_value_is_an_error() {
    for text in ["1 / 0", "ram % 0", "0 / 0", "round(0, 5)", "10^1000", "(-8)^0.5"] {
        assert!(Expr::parse(text).unwrap().evaluate(&MACHINE).is_err(), "{text}");
    }
    assert!(size_in_bytes(-5.0).is_err());
    assert!(size_in_bytes(1e30).is_err());
    assert_eq!(size_in_bytes(0.0), Ok(0));
}

#[test]
fn nesting_and_length_have_limits() {
    assert!(Expr::parse(&"(".repeat(1000)).is_err());
    assert!(Expr::parse(&"-".repeat(1000)).is_err());
    assert!(Expr::parse(&"1+".repeat(4000)).is_err());
    assert!(Expr::parse(&format!("{}1", "2^".repeat(500))).is_err());
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        (0u32..10_000).prop_map(|n| Node::Number(f64::from(n) / 4.0)),
        ((0u32..64), prop::sample::select(vec!["B", "KiB", "M", "GiB"]))
            .prop_map(|(n, unit)| Node::Amount(f64::from(n), unit.to_owned())),
        (0u32..200).prop_map(|n| Node::Share(f64::from(n))),
        prop::sample::select(Variable::ALL.to_vec()).prop_map(Node::Variable),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            (prop::sample::select(Unary::ALL.to_vec()), boxed()).prop_map(|(o, a)| Node::Unary(o, a)),
            (prop::sample::select(Binary::ALL.to_vec()), boxed(), boxed())
                .prop_map(|(o, a, b)| Node::Binary(o, a, b)),
            (boxed(), boxed(), boxed()).prop_map(|(a, b, c)| Node::Choice(a, b, c)),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|args| Node::Call(Function::Min, args)),
            inner.prop_map(|a| Node::Call(Function::Floor, vec![a])),
        ]
    })
}

/// Text in the subset that both zramd and fasteval read the same way.
fn common_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![(1u32..500).prop_map(|n| n.to_string()), Just("ram".to_owned())];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let operators = vec!["+", "-", "*", "/", "<", ">=", "==", "&&", "||"];
        prop_oneof![
            (inner.clone(), prop::sample::select(operators), inner.clone())
                .prop_map(|(a, o, b)| format!("({a} {o} {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("min({a}, {b})")),
            inner.prop_map(|a| format!("floor({a})")),
        ]
    })
}

proptest! {
    #[test]
    fn printing_and_parsing_are_inverse(node in node()) {
        let expr = Expr(node);
        prop_assert_eq!(Expr::parse(&expr.to_string()), Ok(expr));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[ -~é%()?:]{0,40}") {
        if let Ok(expr) = Expr::parse(&text) {
            expr.evaluate(&MACHINE).ok();
        }
    }

    #[test]
    fn it_agrees_with_fasteval(text in common_text()) {
        let mut names = |name: &str, _: Vec<f64>| (name == "ram").then_some(MACHINE.ram_mib);
        let theirs = fasteval::ez_eval(&text, &mut names).unwrap();
        match Expr::parse(&text).unwrap().evaluate(&MACHINE) {
            Ok(ours) => prop_assert!((ours - theirs).abs() <= theirs.abs() * 1e-12, "{} = {} or {}", text, ours, theirs),
            Err(_) => prop_assert!(text.contains('/'), "{}", text),
        }
    }
}
