//! When the timers of RAM disks elapse next.
//!
//! PID 1 is asked beforehand, never while a property is read: zbus holds a lock on all objects while it announces one. Calls
//! wait for that lock, and behind 64 of them no reply is received, so that any user could stop the daemon.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::Notify;
use zbus::Connection;

use super::systemd::property_of;
use crate::lock::lock;
use host::Host;
use host::linux::{LinuxHost, clock};
use logic::duration::micros;
use logic::unit::ramdisk::saving_timer;

/// Minimum time between two rounds of questions.
const PAUSE: Duration = Duration::from_secs(1);

/// The next saves of RAM disks by timer.
#[derive(Debug, Default)]
pub struct NextSaves {
    /// Microseconds since 1970, by name.
    known: std::sync::Mutex<BTreeMap<String, u64>>,
    /// Notified to ask again.
    outdated: Notify,
}

impl NextSaves {
    /// The next save in microseconds since 1970; 0 if there is none, or if it is not known yet.
    pub fn of(&self, disk: &str) -> u64 {
        let next = lock(&self.known).get(disk).copied().unwrap_or(0);
        if next < clock::unix_usec() {
            self.ask();
        }
        next
    }

    /// Has PID 1 asked again.
    pub fn ask(&self) {
        self.outdated.notify_one();
    }

    /// Waits until that is wanted, and asks for these disks.
    pub async fn refresh(&self, connection: &Connection, disks: impl FnOnce() -> Vec<String>) {
        self.outdated.notified().await;
        let mut known = BTreeMap::new();
        for disk in disks() {
            let next = next(connection, &saving_timer(&disk)).await;
            known.insert(disk, next);
        }
        *lock(&self.known) = known;
        tokio::time::sleep(PAUSE).await;
    }
}

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
