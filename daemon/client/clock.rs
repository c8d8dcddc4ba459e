//! Times for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Microseconds since 1970 in the time zone of the machine; 0 is never.
pub fn moment(usec: u64) -> String {
    if usec == 0 {
        return "never".to_owned();
    }
    let moment = i64::try_from(usec).ok().and_then(|usec| Timestamp::from_microsecond(usec).ok());
    let moment = moment.map(|moment| moment.to_zoned(TimeZone::system()).strftime("%F %T").to_string());
    moment.unwrap_or_else(|| "unknown".to_owned())
}
