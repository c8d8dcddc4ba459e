//! Compares how tightly two algorithms compress: a secondary one that is not tighter only wastes time.

use crate::device::algorithm::Algorithm;

/// Algorithms by compression ratio, loosest first, as in published tables for zram. Higher levels are tighter, except
/// for lz4.
const ORDER: [&str; 7] = ["842", "lz4", "lzo", "lzo-rle", "lz4hc", "deflate", "zstd"];

/// Which of these is tighter depends on the data and the levels.
const CLOSE: [&str; 2] = ["deflate", "zstd"];

/// Default level of an algorithm (drivers/block/zram/backend_*.c).
fn level(algorithm: &Algorithm) -> i64 {
    let given = algorithm.parameters.iter().find(|(key, _)| key == "level");
    let given = given.and_then(|(_, value)| value.parse().ok());
    match algorithm.name.as_str() {
        "lz4" => -given.unwrap_or(1),
        "lz4hc" => given.unwrap_or(9),
        "zstd" => given.unwrap_or(3),
        "deflate" => match given {
            None | Some(-1) => 6,
            Some(level) => level,
        },
        _ => 0,
    }
}

/// Whether `secondary` is tighter than `primary`; `None` if unknown.
pub fn is_tighter(primary: &Algorithm, secondary: &Algorithm) -> Option<bool> {
    let rank = |algorithm: &Algorithm| ORDER.iter().position(|name| *name == algorithm.name);
    let (first, second) = (rank(primary)?, rank(secondary)?);
    if first != second && CLOSE.contains(&primary.name.as_str()) && CLOSE.contains(&secondary.name.as_str()) {
        return None;
    }
    Some((second, level(secondary)) > (first, level(primary)))
}

/// Why `secondary` is of no use in addition to `primary`, if so.
pub fn refusal(primary: &Algorithm, secondary: &Algorithm) -> Option<String> {
    (is_tighter(primary, secondary) == Some(false)).then(|| {
        format!("{secondary} is not denser than the primary algorithm {primary}, so it would save nothing")
    })
}

#[cfg(test)]
mod tests {
    use crate::maintain::tighter::*;

    fn tighter(primary: &str, secondary: &str) -> Option<bool> {
        is_tighter(&Algorithm::parse(primary).unwrap(), &Algorithm::parse(secondary).unwrap())
    }

    #[test]
    fn a_weaker_secondary_is_recognised() {
        for (primary, secondary, expected) in [
            ("lz4", "zstd", Some(true)),
            ("lzo-rle", "lz4hc", Some(true)),
            ("zstd", "lz4", Some(false)),
            ("zstd", "zstd", Some(false)),
            ("zstd", "zstd(level=15)", Some(true)),
            ("zstd(level=3)", "zstd", Some(false)),
            ("zstd(level=15)", "zstd", Some(false)),
            ("lz4(level=8)", "lz4", Some(true)),
            ("lz4", "lz4(level=8)", Some(false)),
            ("deflate(level=9)", "deflate", Some(false)),
            ("deflate", "deflate(level=7)", Some(true)),
            ("deflate", "deflate(level=6)", Some(false)),
            ("deflate(level=-1)", "deflate(level=6)", Some(false)),
            ("lz4hc", "lz4hc(level=10)", Some(true)),
            ("lz4hc", "lz4hc(level=9)", Some(false)),
            ("zstd", "deflate", None),
            ("lz4", "snappy", None),
        ] {
            assert_eq!(tighter(primary, secondary), expected, "{primary} {secondary}");
        }
    }
}
