//! Records of pax extended headers (POSIX.1-2017, pax): `LENGTH KEY=VALUE
//! `, where LENGTH includes itself.

use super::entry::Time;

/// Appends a record.
pub fn push(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + digits(length) {
        length = rest + digits(length);
    }
    out.extend_from_slice(length.to_string().as_bytes());
    out.push(b' ');
    out.extend_from_slice(key);
    out.push(b'=');
    out.extend_from_slice(value);
    out.push(b'\n');
}

fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// A key and its value.
pub type Record<'a> = (&'a [u8], &'a [u8]);

/// All records, up to the first invalid one.
pub fn parse(mut text: &[u8]) -> impl Iterator<Item = Result<Record<'_>, &'static str>> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let next = first(text);
        text = next.map_or(&[], |(_, rest)| rest);
        Some(next.map(|(record, _)| record))
    })
}

/// The first record, and the rest.
fn first(text: &[u8]) -> Result<(Record<'_>, &[u8]), &'static str> {
    let space = text.iter().take(12).position(|byte| *byte == b' ').ok_or("a pax record without length")?;
    let length = number(&text[..space]).and_then(|length| usize::try_from(length).ok());
    let length = length.filter(|length| *length > space + 1 && *length <= text.len());
    let length = length.ok_or("a pax record with a wrong length")?;
    let (record, rest) = text.split_at(length);
    let record = record[space + 1..].strip_suffix(b"\n").ok_or("a pax record without end")?;
    let equals = record.iter().position(|byte| *byte == b'=').ok_or("a pax record without value")?;
    Ok(((&record[..equals], &record[equals + 1..]), rest))
}

/// A decimal number without sign and blanks.
pub fn number(text: &[u8]) -> Option<u64> {
    let plain = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    str::from_utf8(text).ok().filter(|_| plain)?.parse().ok()
}

/// A time in pax: a decimal number of seconds since 1970, negative for earlier times.
pub fn time_text(time: Time) -> String {
    let Time { seconds, nanoseconds } = time;
    if nanoseconds == 0 {
        return seconds.to_string();
    }
    // −1.75 s are stored as −2 s and 250 000 000 ns.
    let (sign, whole, part) = if seconds < 0 {
        ("-", (i128::from(seconds) + 1).unsigned_abs(), 1_000_000_000 - nanoseconds)
    } else {
        ("", u128::from(seconds.unsigned_abs()), nanoseconds)
    };
    let text = format!("{sign}{whole}.{part:09}");
    text.trim_end_matches('0').to_owned()
}

/// Parses such a time; digits beyond nanoseconds are ignored.
pub fn parse_time(text: &[u8]) -> Option<Time> {
    let text = str::from_utf8(text).ok()?;
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let whole = i128::from(number(whole.as_bytes())?);
    if !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut nanoseconds = 0;
    for at in 0..9 {
        nanoseconds = nanoseconds * 10 + u32::from(part.as_bytes().get(at).map_or(0, |digit| digit - b'0'));
    }
    let (seconds, nanoseconds) = match (negative, nanoseconds) {
        (false, _) => (whole, nanoseconds),
        (true, 0) => (-whole, 0),
        (true, _) => (-whole - 1, 1_000_000_000 - nanoseconds),
    };
    Some(Time { seconds: seconds.try_into().ok()?, nanoseconds })
}

/// Escapes the name of an attribute for a key, which ends at the first `=` (as GNU tar does).
pub fn escape_name(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b'%' => out.extend_from_slice(b"%25"),
            b'=' => out.extend_from_slice(b"%3D"),
            _ => out.push(*byte),
        }
    }
    out
}

/// Reverses [`escape_name`].
pub fn unescape_name(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match rest {
            [b'%', b'2', b'5', after @ ..] => (b'%', after),
            [b'%', b'3', b'D', after @ ..] => (b'=', after),
            _ => (*first, after),
        };
        out.push(byte);
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::pax::*;

    #[test]
    fn the_length_of_a_record_counts_its_own_digits() {
        for (value, text) in [("1", "7 ab=1\n"), ("123", "9 ab=123\n"), ("1234", "11 ab=1234\n")] {
            let mut out = Vec::new();
            push(&mut out, b"ab", value.as_bytes());
            assert_eq!(out, text.as_bytes());
        }
        for length in 0..1200 {
            let value = vec![b'\n'; length];
            let mut out = Vec::new();
            push(&mut out, b"k", &value);
            push(&mut out, b"l", b"=");
            let expected: Vec<(&[u8], &[u8])> = vec![(b"k", &value), (b"l", b"=")];
            assert_eq!(parse(&out).collect::<Result<Vec<_>, _>>(), Ok(expected));
        }
    }

    #[test]
    fn broken_records_are_errors() {
        for text in ["x", "6 a=1", "5 a=1\n", "0 a=1\n", "99 a=1\n", "4 a1\n", " 6 a=1\n", "+6 a=1\n"] {
            assert!(parse(text.as_bytes()).any(|record| record.is_err()), "{text}");
        }
    }

    #[test]
    fn times_before_1970_are_negative_fractions() {
        for (seconds, nanoseconds, text) in [
            (0, 0, "0"),
            (1, 500_000_000, "1.5"),
            (-2, 250_000_000, "-1.75"),
            (-1, 999_999_999, "-0.000000001"),
            (-5, 0, "-5"),
            (i64::MAX, 1, "9223372036854775807.000000001"),
            (i64::MIN, 0, "-9223372036854775808"),
            (i64::MIN, 1, "-9223372036854775807.999999999"),
        ] {
            let time = Time { seconds, nanoseconds };
            assert_eq!(time_text(time), text);
            assert_eq!(parse_time(text.as_bytes()), Some(time), "{text}");
        }
        for text in [
            "",
            "-",
            "1.x",
            "1e3",
            "--1",
            "99999999999999999999",
            "9223372036854775808",
            "-9223372036854775808.1",
        ] {
            assert_eq!(parse_time(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_time(b"1.0000000019"), Some(Time { seconds: 1, nanoseconds: 1 }));
    }

    #[test]
    fn names_of_attributes_come_back() {
        for name in ["user.a", "user.a=b", "user.%3D", "%", "%2", "user.100%="] {
            assert_eq!(unescape_name(&escape_name(name.as_bytes())), name.as_bytes());
            assert!(!escape_name(name.as_bytes()).contains(&b'='));
        }
    }
}
