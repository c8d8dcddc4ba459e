//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

use logic::duration::micros;

/// Seconds since 1970; 0 when the clock is before that.
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Microseconds since 1970; 0 when the clock is before that.
pub fn unix_usec() -> u64 {
    micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}
