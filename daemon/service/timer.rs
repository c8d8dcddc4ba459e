//! The next elapse of a systemd timer.

use zbus::Connection;

use super::systemd::property_of;
use host::Host;
use host::linux::{LinuxHost, clock};
use logic::duration::micros;

/// When this timer elapses next, in microseconds since 1970; 0 if it does not, or if it is unknown.
pub async fn next(connection: &Connection, unit: &str) -> u64 {
    let interface = "org.freedesktop.systemd1.Timer";
    let next = property_of(connection, unit, interface, "NextElapseUSecMonotonic").await;
    let next = next.and_then(|next| u64::try_from(next).ok()).unwrap_or(0);
    let now = micros(LinuxHost::new("/").monotonic());
    since_1970(next, now, clock::unix_usec())
}

/// A time of CLOCK_MONOTONIC as microseconds since 1970. PID 1 returns 0 or the largest number if there is none.
fn since_1970(next: u64, now: u64, today: u64) -> u64 {
    if next == 0 || next == u64::MAX { 0 } else { today.saturating_sub(now).saturating_add(next) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_times_are_converted_relative_to_now() {
        assert_eq!(since_1970(70, 60, 1_000_000), 1_000_010);
        assert_eq!(since_1970(50, 60, 1_000_000), 999_990, "it is late");
        assert_eq!((since_1970(0, 60, 1), since_1970(u64::MAX, 60, 1)), (0, 0));
    }
}
