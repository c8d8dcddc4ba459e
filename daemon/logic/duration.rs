//! Time spans in the configuration: `"90s"`, `"1h 30min"`, or a bare number of seconds. The units are systemd's.

use std::time::Duration;

const UNITS: [(&str, u64); 18] = [
    ("s", 1),
    ("sec", 1),
    ("second", 1),
    ("seconds", 1),
    ("m", 60),
    ("min", 60),
    ("minute", 60),
    ("minutes", 60),
    ("h", 3600),
    ("hr", 3600),
    ("hour", 3600),
    ("hours", 3600),
    ("d", 86_400),
    ("day", 86_400),
    ("days", 86_400),
    ("w", 604_800),
    ("week", 604_800),
    ("weeks", 604_800),
];

/// Whole microseconds; saturates at half a million years.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Parses a time span; `None` if it is invalid, or too long to count in seconds.
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = &rest[..letters];
        let factor = match unit {
            "" => 1,
            unit => UNITS.iter().find(|(name, _)| *name == unit)?.1,
        };
        rest = rest[letters..].trim_start();
        total = total.checked_add(number.checked_mul(factor)?)?;
    }
    Some(Duration::from_secs(total))
}

/// As in unit files: `90s`, `1h 30min`.
pub fn text(span: Duration) -> String {
    let mut seconds = span.as_secs();
    let mut words = Vec::new();
    for (unit, factor) in [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)] {
        if seconds >= factor {
            words.push(format!("{}{unit}", seconds / factor));
            seconds %= factor;
        }
    }
    if words.is_empty() { "0s".to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_systemd_reads_them() {
        for (text, seconds) in [
            ("90", Some(90)),
            ("90s", Some(90)),
            ("1h 30min", Some(5400)),
            ("1 hour 2 minutes 3 seconds", Some(3723)),
            ("1h30m", Some(5400)),
            ("2 d", Some(172_800)),
            ("1w", Some(604_800)),
            ("", None),
            ("h", None),
            ("-1s", None),
            ("1.5h", None),
            ("1 fortnight", None),
            ("99999999999999999999", None),
            ("18446744073709551615w", None),
        ] {
            assert_eq!(parse(text), seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        for seconds in [0, 1, 59, 60, 3599, 5400, 86_400, 90_061, u64::from(u32::MAX)] {
            let span = Duration::from_secs(seconds);
            assert_eq!(parse(&text(span)), Some(span), "{}", text(span));
        }
    }

    #[test]
    fn microseconds_are_whole_and_stay_in_range() {
        assert_eq!(micros(Duration::from_nanos(1_500_999)), 1500);
        assert_eq!(micros(Duration::MAX), u64::MAX);
    }
}
