//! Rounding, remainder and powers without the C mathematics library.
//!
//! Measured: a program that needs libm maps 300 KiB of it, a tenth of what the generator may use at every boot.

/// Beyond this, every `f64` is a whole number.
const WHOLE: f64 = 4_503_599_627_370_496.0;

/// Cut off towards zero.
pub fn trunc(value: f64) -> f64 {
    if !(-WHOLE..=WHOLE).contains(&value) {
        return value;
    }
    #[allow(clippy::cast_possible_truncation)] // Within 2^52.
    let whole = value as i64;
    whole as f64
}

/// The next whole number below.
pub fn floor(value: f64) -> f64 {
    let whole = trunc(value);
    if whole > value { whole - 1.0 } else { whole }
}

/// The next whole number above.
pub fn ceil(value: f64) -> f64 {
    -floor(-value)
}

/// The nearest whole number, a half away from zero.
pub fn round(value: f64) -> f64 {
    let whole = trunc(value);
    let rest = value - whole;
    if rest >= 0.5 {
        whole + 1.0
    } else if rest <= -0.5 {
        whole - 1.0
    } else {
        whole
    }
}

/// What is left of `a` after taking out whole multiples of `b`, with the sign of `a`.
pub fn remainder(a: f64, b: f64) -> f64 {
    a - b * trunc(a / b)
}

/// `base` to a whole exponent; nothing for any other.
pub fn power(base: f64, exponent: f64) -> Option<f64> {
    const LARGEST: f64 = 1024.0;
    let whole = trunc(exponent);
    let usable = (-LARGEST..=LARGEST).contains(&exponent) && (whole - exponent).abs() < f64::EPSILON;
    #[allow(clippy::cast_possible_truncation)] // Within 1024.
    usable.then(|| base.powi(whole as i32))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        #[allow(clippy::float_cmp)]
        fn they_are_those_of_the_standard_library(value in prop_oneof![any::<f64>(), -1e6..1e6f64, (-100i32..100).prop_map(|n| f64::from(n) / 2.0)]) {
            prop_assume!(value.is_finite());
            prop_assert_eq!(trunc(value), value.trunc());
            prop_assert_eq!(floor(value), value.floor());
            prop_assert_eq!(ceil(value), value.ceil());
            prop_assert_eq!(round(value), value.round());
        }
    }

    #[test]
    fn powers_and_remainders() {
        assert_eq!(power(2.0, 10.0), Some(1024.0));
        assert_eq!(power(2.0, -1.0), Some(0.5));
        assert_eq!((power(2.0, 0.5), power(2.0, 1e9)), (None, None));
        for (a, b, rest) in [(7.0, 4.0, 3.0), (-7.0, 4.0, -3.0), (7.5, 2.0, 1.5)] {
            assert!((remainder(a, b) - rest).abs() < 1e-12);
        }
    }
}
