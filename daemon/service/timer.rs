//! When a timer of systemd elapses next.

use zbus::{Connection, OwnedVariant};

use super::bus::label;
use crate::host::Host;
use crate::host::linux::{LinuxHost, clock};
use crate::logic::duration::micros;

/// When this timer unit elapses next, in microseconds since 1970; 0 is never, or that nobody knows.
pub async fn next(connection: &Connection, unit: &str) -> u64 {
    // A path that asks for it has PID 1 read the unit, if it has not yet.
    let path = format!("/org/freedesktop/systemd1/unit/{}", label(unit));
    let body = ("org.freedesktop.systemd1.Timer", "NextElapseUSecMonotonic");
    let properties = Some("org.freedesktop.DBus.Properties");
    let service = Some("org.freedesktop.systemd1");
    let Ok(reply) = connection.call_method(service, path.as_str(), properties, "Get", &body).await else {
        return 0;
    };
    let next: u64 = match reply.body().deserialize::<OwnedVariant>().map(u64::try_from) {
        Ok(Ok(next)) => next,
        _ => return 0,
    };
    let now = micros(LinuxHost::new("/").monotonic());
    since_1970(next, now, clock::unix_usec())
}

/// A moment of CLOCK_MONOTONIC as a time of day. PID 1 says 0 or the largest number when there is none.
fn since_1970(next: u64, now: u64, today: u64) -> u64 {
    if next == 0 || next == u64::MAX { 0 } else { today.saturating_sub(now).saturating_add(next) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_counted_from_now() {
        assert_eq!(since_1970(70, 60, 1_000_000), 1_000_010);
        assert_eq!(since_1970(50, 60, 1_000_000), 999_990, "it is late");
        assert_eq!((since_1970(0, 60, 1), since_1970(u64::MAX, 60, 1)), (0, 0));
    }
}
