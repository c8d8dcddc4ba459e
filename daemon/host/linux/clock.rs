//! The time of day where the machine is, for people.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::logic::duration::micros;

/// A moment in local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
    /// Year, month 1 to 12, day 1 to 31.
    pub date: (i32, i32, i32),
    /// Hour, minute, second.
    pub time: (i32, i32, i32),
    /// Milliseconds.
    pub millis: u32,
    /// Minutes east of Greenwich.
    pub offset_minutes: i64,
}

/// The present moment.
pub fn local_time() -> LocalTime {
    // A clock before 1970 is wrong anyway; then everything happens at its beginning.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = libc::time_t::try_from(now.as_secs()).unwrap_or_default();
    at(seconds, now.subsec_millis())
}

/// Seconds since 1970; 0 when the clock is before that.
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Microseconds since 1970; 0 when the clock is before that.
pub fn unix_usec() -> u64 {
    micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// A moment in microseconds since 1970.
pub fn local_moment(usec: u64) -> LocalTime {
    let millis = u32::try_from(usec / 1000 % 1000).unwrap_or_default();
    at(libc::time_t::try_from(usec / 1_000_000).unwrap_or_default(), millis)
}

#[allow(unsafe_code)]
fn at(seconds: libc::time_t, millis: u32) -> LocalTime {
    // SAFETY: all fields of `tm` are numbers or a pointer, for which zeros are valid.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables of the right types; the function keeps neither.
    unsafe { libc::localtime_r(&raw const seconds, &raw mut parts) };
    LocalTime {
        date: (parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday),
        time: (parts.tm_hour, parts.tm_min, parts.tm_sec),
        millis,
        #[allow(clippy::useless_conversion)] // Not where it has 32 bits.
        offset_minutes: i64::from(parts.tm_gmtoff) / 60,
    }
}

impl LocalTime {
    /// `08:10:21.123`.
    pub fn clock(&self) -> String {
        let (hour, minute, second) = self.time;
        format!("{hour:02}:{minute:02}:{second:02}.{:03}", self.millis)
    }
}

impl fmt::Display for LocalTime {
    /// `2026-11-21T08:10:21.123+01:00` (RFC 3339).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date;
        let (sign, east) =
            if self.offset_minutes < 0 { ('-', -self.offset_minutes) } else { ('+', self.offset_minutes) };
        write!(f, "{year:04}-{month:02}-{day:02}T{}{sign}{:02}:{:02}", self.clock(), east / 60, east % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_rfc_3339_wants_it() {
        let time = LocalTime { date: (2026, 3, 9), time: (8, 5, 1), millis: 7, offset_minutes: -90 };
        assert_eq!(time.to_string(), "2026-03-09T08:05:01.007-01:30");
        // Whatever the zone, it is the same moment.
        let epoch = at(1_000_000_020, 0);
        let (year, month, day) = epoch.date;
        assert_eq!((year, month), (2001, 9));
        let minutes = i64::from(day) * 1440 + i64::from(epoch.time.0) * 60 + i64::from(epoch.time.1);
        assert_eq!(minutes - epoch.offset_minutes, 9 * 1440 + 60 + 47);
    }
}
