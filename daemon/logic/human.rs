//! Amounts of memory: parses and formats them the same way everywhere. All prefixes are powers of 1024.

/// Suffixes and their powers of 1024. As in zramctl(8), `K` and `KiB` mean the same.
const SUFFIXES: [(&str, u32); 9] =
    [("B", 0), ("K", 1), ("KiB", 1), ("M", 2), ("MiB", 2), ("G", 3), ("GiB", 3), ("T", 4), ("TiB", 4)];

/// Bytes per `suffix`, if it is one of `B K KiB M MiB G GiB T TiB`.
pub fn bytes_per(suffix: &str) -> Option<u64> {
    SUFFIXES.iter().find(|(name, _)| *name == suffix).map(|(_, power)| 1 << (10 * power))
}

/// The unit that was probably meant: by its letter alone, or with any of `b`, `ib`, `ega`, `egabytes` behind it.
pub fn meant_unit(suffix: &str) -> Option<&'static str> {
    const NAMES: [(&str, &str); 5] = [
        ("B", "bytes"),
        ("KiB", "kilobytes"),
        ("MiB", "megabytes"),
        ("GiB", "gigabytes"),
        ("TiB", "terabytes"),
    ];
    let lower = suffix.to_ascii_lowercase();
    let is_meant = |name: &str| {
        name.starts_with(&lower) || matches!(lower.strip_prefix(&name[..1]), Some("b" | "i" | "ib"))
    };
    NAMES.into_iter().find(|(_, name)| !lower.is_empty() && is_meant(name)).map(|(unit, _)| unit)
}

/// An amount for people: one decimal of the largest unit with a value of at least 1.
pub fn human(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut power = bytes.ilog2() / 10;
    let mut tenths = tenths_of(bytes, power);
    if tenths >= 10240 {
        // 1023.96 MiB would be rounded to 1024.0 MiB; it is printed as 1.0 GiB.
        power += 1;
        tenths = tenths_of(bytes, power);
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[power as usize - 1])
}

/// A text of a difference, from that of its amount.
pub fn signed(bytes: i64, text: fn(u64) -> String) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    format!("{sign}{}", text(bytes.unsigned_abs()))
}

/// An amount for tables, as in zramctl(8): one decimal unless it is 0, no blank, one letter.
pub fn short(bytes: u64) -> String {
    let text = human(bytes);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, "B"));
    let number = number.strip_suffix(".0").unwrap_or(number);
    format!("{number}{}", &unit[..1])
}

/// Tenths of the unit 1024^`power`, rounded.
fn tenths_of(bytes: u64, power: u32) -> u128 {
    let unit = 1u128 << (10 * power);
    (u128::from(bytes) * 10 + unit / 2) / unit
}

#[cfg(test)]
mod tests {
    use crate::human::*;

    #[test]
    fn amounts_are_rounded_to_one_decimal() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (4096 * 1024, "4.0 MiB"),
            ((1 << 30) - 1, "1.0 GiB"),
            (655_989_145, "625.6 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(human(bytes), text);
        }
    }

    #[test]
    fn tables_are_written_as_zramctl_writes_them() {
        for (bytes, text) in [
            (0, "0B"),
            (68, "68B"),
            (4096, "4K"),
            (104 << 10, "104K"),
            (1536 << 20, "1.5G"),
            (1 << 28, "256M"),
            (u64::MAX, "16E"),
        ] {
            assert_eq!(short(bytes), text);
        }
    }

    #[test]
    fn differences_have_a_sign() {
        assert_eq!(signed(-1536, human), "-1.5 KiB");
        assert_eq!(signed(4096, short), "4K");
        assert_eq!(signed(0, human), "0 B");
        assert_eq!(signed(i64::MIN, short), "-8E");
    }

    #[test]
    fn units_are_powers_of_1024() {
        assert_eq!(bytes_per("GiB"), Some(1 << 30));
        assert_eq!(bytes_per("G"), Some(1 << 30));
        assert_eq!(bytes_per("GB"), None);
        assert_eq!(meant_unit("gb"), Some("GiB"));
        assert_eq!(
            ["Gib", "mb", "k", "Gigabyte", "Mi"].map(meant_unit),
            ["GiB", "MiB", "KiB", "GiB", "MiB"].map(Some)
        );
        assert_eq!(["x", "", "times", "min"].map(meant_unit), [None; 4]);
    }
}
